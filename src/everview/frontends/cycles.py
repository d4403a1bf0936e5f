"""Cycles of names: groups of names that read each other, sorted so that each group follows its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def components(reads: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """The strongly connected components, each after the components it reads, by Tarjan's algorithm.

    Within one, names stand as the search finishes them, so that as few as possible read one that comes later. The stack
    is our own, because chains may be longer than Python's.

    >>> components({"odd": ["even", "zero"], "even": ["odd"], "zero": [], "far": ["far", "odd"]})
    [('zero',), ('even', 'odd'), ('far',)]
    """
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    finished: dict[str, int] = {}
    open_: dict[str, None] = {}  # names on the way of the search, or in a component that is not complete
    complete: list[tuple[str, ...]] = []
    for root in reads:
        if root in number:
            continue
        waiting = [(root, iter(reads[root]))]
        number[root] = lowest[root] = len(number)
        open_[root] = None
        while waiting:
            name, rest = waiting[-1]
            for other in rest:
                if other not in number:
                    number[other] = lowest[other] = len(number)
                    open_[other] = None
                    waiting.append((other, iter(reads[other])))
                    break
                if other in open_:
                    lowest[name] = min(lowest[name], number[other])
            else:
                waiting.pop()
                finished[name] = len(finished)
                if waiting:
                    reader = waiting[-1][0]
                    lowest[reader] = min(lowest[reader], lowest[name])
                if lowest[name] == number[name]:
                    complete.append(tuple(sorted(_closed(name, open_), key=finished.__getitem__)))
    return complete


def _closed(root: str, open_: dict[str, None]) -> list[str]:
    """Take a component out of what is open: its root, and all that the search met after."""
    names = list(open_)
    component = names[names.index(root) :]
    for name in component:
        del open_[name]
    return component
