"""A pipeline as text: its nodes, what sources were asked last, how many rows were read, and how many are kept."""

from __future__ import annotations

from collections.abc import Iterator

from everview.runtimes.pull.feed import PulledFeed
from everview.runtimes.pull.node import PullNode
from everview.runtimes.pull.scan import PullScan
from everview.sources.protocol import All, Any_, Compare, Condition, Not, Request

MOST = 5  # values that are shown of a list


def explained(feed: PulledFeed) -> str:
    """The nodes of a view as lines, inputs indented under the node that reads them."""
    return "\n".join([f"view of {len(feed)} rows", *_lines(feed.root, 1)])


def _lines(node: PullNode, depth: int) -> Iterator[str]:
    kept = f" [keeps {node.kept}]" if node.kept else ""
    yield f"{'  ' * depth}{node.title}{kept}"
    if isinstance(node, PullScan):
        yield f"{'  ' * (depth + 1)}{node.pulls} pulls, {node.rows_read} rows; {_asked(node.last)}"
    for input_ in node.inputs:
        yield from _lines(input_, depth + 1)


def _asked(request: Request | None) -> str:
    if request is None:
        return "nothing was asked"
    parts = [f"where {text(request.where)}"] if request.where != All() else []
    parts += [f"order by {', '.join(f'{c} {way}' for c, way in request.order)}"] if request.order else []
    parts += ["after a row"] if request.after is not None else []
    parts += [f"limit {request.limit}"] if request.limit is not None else []
    return f"asked last: {' '.join(parts) or 'everything'}"


def text(condition: Condition) -> str:
    """A condition as people write it.

    >>> text(All((Compare("a", ">", 3), Not(Compare("b", "in", (1, 2))))))
    'a > 3 and not (b in 1, 2)'
    """
    match condition:
        case Compare(column, operator, value):
            return f"{column} {operator} {_value(value)}"
        case All(conditions):
            return " and ".join(map(_inner, conditions)) or "true"
        case Any_(conditions):
            return " or ".join(map(_inner, conditions)) or "false"
        case Not(inner):
            return f"not ({text(inner)})"


def _inner(condition: Condition) -> str:
    several = isinstance(condition, All | Any_) and len(condition.conditions) > 1
    return f"({text(condition)})" if several else text(condition)


def _value(value: object) -> str:
    if not isinstance(value, tuple):
        return "NULL" if value is None else repr(value)
    more = f", … {len(value)} values" if len(value) > MOST else ""
    return ", ".join(map(repr, value[:MOST])) + more
