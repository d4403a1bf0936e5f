"""Make a failing case small: take parts away from the query and the stream as long as it still fails."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from torture.random_sql.clauses import Derived, Generated, Join, Query, Recursive, Row, Select, SetOperation, With
from torture.random_sql.tables import TableShape, Tick, contents
from torture.random_sql.trees import Call, Constant, Expr, Name, Node

SIMPLE = {
    "INT": Constant("INT", "1", "1"),
    "DOUBLE": Constant("DOUBLE", "1.0D", "CAST(1.0 AS DOUBLE)"),
    "DEC": Constant("DEC", "1.25", "1.25"),
    "STR": Constant("STR", "'a'", "'a'"),
    "BOOL": Constant("BOOL", "true", "true"),
    "DATE": Constant("DATE", "DATE '2020-01-01'", "DATE '2020-01-01'"),
    "TIME": Constant("TIME", "TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP '2020-01-01 00:00:00'"),
    "ARRAY": Constant("ARRAY", "array(1)", "[1]"),
}
OPTIONAL = ("where", "group", "having", "ending", "on")
LISTS = {"items": 1, "keys": 1, "rows": 1, "listed": 1, "sets": 1}


@dataclass(frozen=True)
class Case:
    """A query as a view over tables and their changes; the view is made after `made_after` ticks."""

    shapes: tuple[TableShape, ...]
    ticks: tuple[Tick, ...]
    made_after: int
    query: Query


def reduced(case: Case, fails: Callable[[Case], bool], seconds: float) -> Case:
    """The smallest case found in the time that `fails` as `case` does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        smaller = next((each for each in _smaller(case) if time.monotonic() < deadline and fails(each)), None)
        if smaller is None:
            return case
        case = smaller
    return case


def _smaller(case: Case) -> Iterator[Case]:
    yield from _fewer_ticks(case)
    for query in parts_away(case.query):
        yield replace(case, query=query)
    yield from _fewer_tables(case)
    yield from _fewer_rows(case)


def _fewer_ticks(case: Case) -> Iterator[Case]:
    if len(case.ticks) > 1:
        loaded = {name: [(row, 1) for row in rows] for name, rows in contents(case.shapes, list(case.ticks)).items()}
        yield replace(case, ticks=(loaded,), made_after=1)
        yield replace(case, ticks=(loaded,), made_after=0)
        for at in range(len(case.ticks) - 1):
            merged = {
                name: [*case.ticks[at].get(name, []), *case.ticks[at + 1].get(name, [])]
                for name in {**case.ticks[at], **case.ticks[at + 1]}
            }
            ticks = (*case.ticks[:at], merged, *case.ticks[at + 2 :])
            yield replace(case, ticks=ticks, made_after=min(case.made_after, len(ticks)))
        yield replace(case, ticks=case.ticks[:-1], made_after=min(case.made_after, len(case.ticks) - 1))
    if case.made_after > 1:
        yield replace(case, made_after=1)


def _fewer_tables(case: Case) -> Iterator[Case]:
    text = case.query.text("spark")
    for shape in case.shapes:
        if f"{shape.name} AS" not in text and len(case.shapes) > 1:
            ticks = tuple({name: rows for name, rows in tick.items() if name != shape.name} for tick in case.ticks)
            yield replace(case, shapes=tuple(s for s in case.shapes if s != shape), ticks=ticks)


def _fewer_rows(case: Case) -> Iterator[Case]:
    for at, tick in enumerate(case.ticks):
        for name, changes in tick.items():
            for size in (len(changes), len(changes) // 2, 1):
                for start in range(0, len(changes), size or 1):
                    if size:
                        left = {**tick, name: [*changes[:start], *changes[start + size :]]}
                        smaller = replace(case, ticks=(*case.ticks[:at], left, *case.ticks[at + 1 :]))
                        if _is_possible(smaller):
                            yield smaller


def _is_possible(case: Case) -> bool:
    """Whether nothing is deleted that is not there."""
    held: dict[str, int] = {}
    for tick in case.ticks:
        for name, changes in tick.items():
            for row, weight in changes:
                key = f"{name} {row!r}"
                held[key] = held.get(key, 0) + weight
        if min(held.values(), default=0) < 0:
            return False
    return True


# -- queries


def parts_away(node: Any) -> Iterator[Any]:
    """The same tree with one part taken away, large parts first."""
    yield from _in_place(node)
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if isinstance(node, Recursive) and field.name == "step":
            continue  # without its bound it would have no end
        if isinstance(value, Node):
            yield from (replace(node, **{field.name: each}) for each in parts_away(value))
        elif isinstance(value, tuple) and field.name != "args":
            least = LISTS.get(field.name)
            if least is not None and len(value) > least:
                yield from (replace(node, **{field.name: value[:at] + value[at + 1 :]}) for at in range(len(value)))
            yield from _inside(node, field.name, value)
        elif isinstance(value, tuple):
            yield from _inside(node, field.name, value)


def _inside(node: Any, name: str, value: tuple[Any, ...]) -> Iterator[Any]:
    for at, each in enumerate(value):
        if isinstance(each, Node):
            for smaller in parts_away(each):
                yield replace(node, **{name: (*value[:at], smaller, *value[at + 1 :])})


def _in_place(node: Node) -> Iterator[Node]:
    for name in OPTIONAL:
        if getattr(node, name, None) is not None:
            yield replace(node, **{name: None})
    if getattr(node, "distinct", False):
        yield replace(node, distinct=False)
    match node:
        case Select():
            if isinstance(node.source, Derived):
                yield node.source.query
        case SetOperation():
            yield from (node.left, node.right)
        case With():
            yield from (node.named, node.body)
        case Join():
            yield from (node.left, node.right)
        case Generated():
            yield node.source
        case Call():
            yield from (arg for arg in node.args if arg.type == node.type)
            yield SIMPLE[node.type]
        case Name() | Row():
            pass
        case Constant():
            if node != SIMPLE[node.type] and node.spark != "NULL" and not node.spark.startswith("CAST(NULL"):
                yield SIMPLE[node.type]
        case Expr():
            yield SIMPLE[node.type]
        case _:
            pass
