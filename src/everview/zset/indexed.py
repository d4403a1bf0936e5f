"""Indexed Z-sets: Z-sets grouped by key, and by further keys below it: a trie whose leaves carry the weights.

Invariant, from construction on: all leaves lie equally deep, no key leads to nothing, siblings are distinct
and no leaf has weight zero. Levels above the leaves have no weights: a key is there if something lies below
it, even if the weights below it sum to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from everview.doors import doors
from everview.errors import SchemaError, WrongType, shown
from everview.zset.elements import identity, position
from everview.zset.reference import ZSet, pairs, several
from everview.zset.tables import table
from everview.zset.weights import checked

Path = tuple[Any, ...]  # the keys from the root to a leaf, and the leaf's element


@doors()
class IndexedZSet:
    """A trie of Z-sets, written as nested dictionaries; frozen.

    >>> places = IndexedZSet({"Germany": {"Berlin": 1, "Munich": -1}, "USA": {"NYC": -1, "LA": 1}})
    >>> places["Germany"]
    ZSet({'Berlin': 1, 'Munich': -1})
    >>> places == IndexedZSet.of([
    ...     (("USA", "LA"), 1), (("USA", "NYC"), -1), (("Germany", "Munich"), -1), (("Germany", "Berlin"), 1),
    ... ])
    True
    """

    __slots__ = ("_children",)
    _children: dict[Hashable, tuple[Any, ZSet | IndexedZSet]]

    def __init__(self, children: Mapping[Any, Any] | None = None) -> None:
        object.__setattr__(self, "_children", _grown(_paths(children or {})))

    @classmethod
    def of(cls, entries: Iterable[tuple[Path, int]]) -> IndexedZSet:
        """The sum of weighted paths ``(key, …, value)``, in any order and as often as they come."""
        indexed = cls.__new__(cls)
        object.__setattr__(indexed, "_children", _grown(entries))
        return indexed

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("an indexed Z-set is frozen; adding gives a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return IndexedZSet.of, (list(self),)

    # -- access by key, then by value

    @property
    def depth(self) -> int:
        """The length of every path: 2 if keys lead to Z-sets; 0 if there is none."""
        for _, child in self._children.values():
            return 1 + (1 if isinstance(child, ZSet) else child.depth)
        return 0

    def keys(self) -> list[Any]:
        """The keys of the first level, in order."""
        return [key for key, _ in self._sorted()]

    def __getitem__(self, key: Any) -> ZSet | IndexedZSet:
        """What lies below a key; if nothing does, an empty Z-set."""
        return self.get_by_prefix((key,))

    def __contains__(self, key: Any) -> bool:
        return identity(key) in self._children

    def __iter__(self) -> Iterator[tuple[Path, int]]:
        """Paths with their weights, by key, then by value.

        >>> list(IndexedZSet({"b": {1: 1}, "a": {3: -1, 2: 5}}))
        [(('a', 2), 5), (('a', 3), -1), (('b', 1), 1)]
        """
        for key, child in self._sorted():
            for rest, weight in child:
                yield (key, *(rest if isinstance(child, IndexedZSet) else (rest,))), weight

    def __len__(self) -> int:
        """The number of paths."""
        return sum(len(child) for _, child in self._children.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndexedZSet):
            return NotImplemented
        return self._below() == other._below()

    def __hash__(self) -> int:
        return hash(frozenset(self._below().items()))

    def _below(self) -> dict[Hashable, ZSet | IndexedZSet]:
        return {key: child for key, (_, child) in self._children.items()}

    def _sorted(self) -> list[tuple[Any, ZSet | IndexedZSet]]:
        return sorted(self._children.values(), key=lambda pair: position(pair[0]))

    # -- a group

    def __add__(self, other: IndexedZSet) -> IndexedZSet:
        if not isinstance(other, IndexedZSet):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return IndexedZSet.of([*self, *other])

    def __neg__(self) -> IndexedZSet:
        return self * -1

    def __sub__(self, other: IndexedZSet) -> IndexedZSet:
        if not isinstance(other, IndexedZSet):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return IndexedZSet.of([*self, *((path, -weight) for path, weight in other)])

    def __mul__(self, factor: int) -> IndexedZSet:
        scale = checked(factor)
        return IndexedZSet.of((path, weight * scale) for path, weight in self)

    __rmul__ = __mul__

    # -- operators

    def flatten(self) -> ZSet:
        """The paths as elements of one Z-set; below the keys of `ZSet.index_with`, ``(key, value)`` pairs.

        >>> IndexedZSet({"a": {1: 2}}).flatten()
        ZSet({('a', 1): 2})
        """
        return ZSet.of(self)

    def values(self, key: Any) -> ZSet:
        """All that lies below a key, as one Z-set; of a deeper trie, the rests of the paths."""
        child = self[key]
        return child if isinstance(child, ZSet) else child.flatten()

    def join(self, other: IndexedZSet, function: Callable[[Any, Any, Any], Any]) -> ZSet:
        """Apply ``function(key, value, value)`` to values of matching keys; weights multiply. Bilinear.

        >>> a = IndexedZSet({"a": {1: 1}, "b": {2: 2}, "c": {2: 1}})
        >>> b = IndexedZSet({"a": {1: 1}, "b": {3: 1, 4: -1}})
        >>> a.join(b, lambda key, v1, v2: (key, (v1, v2)))
        ZSet({('a', (1, 1)): 1, ('b', (2, 3)): 2, ('b', (2, 4)): -2})
        """
        return ZSet.of(
            (function(key, left, right), left_weight * right_weight)
            for key in self.keys()
            for left, left_weight in self.values(key)
            for right, right_weight in other.values(key)
        )

    # -- building result tries one level at a time

    def extend_leaves(self, function: Callable[[Path, int], ZSet]) -> IndexedZSet:
        """One level more: below every leaf, the Z-set that the function makes of its path and its weight.

        >>> places = IndexedZSet({"Germany": {"Berlin": 1, "Munich": -1}, "USA": {"NYC": -1, "LA": 1}})
        >>> for path, weight in places:
        ...     print(path, weight)
        ('Germany', 'Berlin') 1
        ('Germany', 'Munich') -1
        ('USA', 'LA') 1
        ('USA', 'NYC') -1
        >>> places.extend_leaves(lambda prefix, weight: ZSet({prefix[1][0]: weight * 2}))
        IndexedZSet({'Germany': {'Berlin': {'B': 2}, 'Munich': {'M': -2}},
                     'USA': {'LA': {'L': 2}, 'NYC': {'N': -2}}})
        """
        return IndexedZSet.of(
            ((*path, extension), extended)
            for path, weight in self
            for extension, extended in pairs(several(function, path, weight))
        )

    def get_by_prefix(self, prefix: Sequence[Any]) -> ZSet | IndexedZSet:
        """What lies below a prefix of the paths; an empty Z-set if there is no such prefix.

        >>> places = IndexedZSet({
        ...     "Germany": {"Berlin": {"Mitte": -1, "Kreuzberg": 1}, "Munich": {"Schwabing": 1}},
        ...     "USA": {"NYC": {"Queens": 1}},
        ... })
        >>> places.get_by_prefix(("Germany", "Berlin"))
        ZSet({'Kreuzberg': 1, 'Mitte': -1})
        >>> places.get_by_prefix(()) == places
        True
        >>> places.get_by_prefix(("France",)), places.get_by_prefix(("France", "Paris"))
        (IndexedZSet({}), ZSet({}))
        """
        if not prefix:
            return self
        if self._children and len(prefix) >= self.depth:
            raise SchemaError(
                f"no Z-set lies below the prefix {tuple(prefix)!r}", hint=f"paths have {self.depth} members"
            )
        below = self._children.get(identity(prefix[0]))
        if below is not None:
            return below[1].get_by_prefix(prefix[1:])
        return ZSet() if len(prefix) == self.depth - 1 else IndexedZSet()

    def as_zset_view(self) -> ZSet:
        """The keys of the first level, each with weight 1: levels above the leaves have no weights.

        >>> places = IndexedZSet({
        ...     "Germany": {"Berlin": {"Mitte": -1, "Kreuzberg": 1}, "Munich": {"Schwabing": 1}},
        ...     "USA": {"NYC": {"Queens": 1}},
        ... })
        >>> places.as_zset_view()
        ZSet({'Germany': 1, 'USA': 1})
        >>> places.get_by_prefix(["Germany"]).as_zset_view()
        ZSet({'Berlin': 1, 'Munich': 1})
        >>> places.get_by_prefix(["Germany", "Berlin"]).as_zset_view()
        ZSet({'Kreuzberg': 1, 'Mitte': -1})
        """
        return ZSet.of((key, 1) for key in self.keys())

    # -- display

    def __repr__(self) -> str:
        return f"IndexedZSet({self._written()})"

    def _written(self) -> str:
        return "{" + ", ".join(f"{key!r}: {child._written()}" for key, child in self._sorted()) + "}"

    def _repr_html_(self) -> str:
        header = [f"key {level}" for level in range(1, self.depth)] + ["value", "weight"]
        return table(header, ((*path, weight) for path, weight in self), len(self))


def _paths(children: Mapping[Any, Any]) -> Iterator[tuple[Path, int]]:
    """The weighted paths of nested dictionaries or Z-sets."""
    for key, child in children.items():
        if isinstance(child, IndexedZSet):
            below: Iterable[tuple[Path, int]] = child
        elif isinstance(child, ZSet):
            below = (((element,), weight) for element, weight in child)
        elif isinstance(child, Mapping):
            below = _paths(cast(Mapping[Any, Any], child))
        else:
            below = [((), child)]
        for rest, weight in below:
            yield (key, *rest), weight


def _grown(entries: Iterable[tuple[Path, int]]) -> dict[Hashable, tuple[Any, ZSet | IndexedZSet]]:
    """The children of a trie with these paths."""
    branches: dict[Hashable, tuple[Any, list[tuple[Path, int]]]] = {}
    lengths: set[int] = set()
    for path, weight in pairs(entries):
        if not isinstance(path, tuple | list):
            raise WrongType(f"{shown(path)} is no path of an indexed Z-set", hint="give a tuple of a key and a value")
        lengths.add(len(path))
        branches.setdefault(identity(path[0]) if path else None, (path[:1], []))[1].append((tuple(path[1:]), weight))
    if lengths and (len(lengths) > 1 or min(lengths) < 2):
        raise SchemaError(
            f"the paths of an indexed Z-set have one length of at least 2, not {sorted(lengths)}",
            hint="give every weight a key and a value",
        )
    children = {key: (branch[0], _child(rests)) for key, (branch, rests) in branches.items()}
    return {key: (branch, child) for key, (branch, child) in children.items() if child}


def _child(entries: list[tuple[Path, int]]) -> ZSet | IndexedZSet:
    if len(entries[0][0]) == 1:
        return ZSet.of((path[0], weight) for path, weight in entries)
    return IndexedZSet.of(entries)
