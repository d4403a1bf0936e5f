"""Random plans over three relations, and the rows that they hold: keys, NULLs, ties, a bag, and every plain type."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Distinct, Filter, Join, Project, Scan, Top, Union
from everview.plan.typing import call, literal
from everview.scalars.expressions import AggregateCall, Column, Expression, Literal
from everview.types import BIGINT, DOUBLE, Schema

ARTIST = Schema.parse("id BIGINT NOT NULL, name STRING, country STRING")
TRACK = Schema.parse(
    "id BIGINT NOT NULL, artist BIGINT, rating BIGINT, price DECIMAL(8,2), score DOUBLE, at TIMESTAMP, hit BOOLEAN"
)
TAG = Schema.parse("track BIGINT, tag STRING")
SCHEMAS = {"artist": ARTIST, "track": TRACK, "tag": TAG}
KEYS = {"artist": ("id",), "track": ("id",), "tag": ()}

WORDS = st.sampled_from([None, "", "a", "b", "ab", "é", "Z", "z_", "a%b"])
MOMENTS = [dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2, 3)]


def _maybe(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([None, *values])


ROWS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "artist": st.tuples(st.integers(1, 5), WORDS, _maybe("UK", "DE")),
    "track": st.tuples(
        st.integers(1, 9),
        _maybe(1, 2, 3, 4, 7),
        _maybe(1, 2, 3),
        _maybe(Decimal("0.50"), Decimal("1.25"), Decimal("-3.00")),
        _maybe(0.0, 0.1, -1.5, math.inf),
        _maybe(*MOMENTS),
        _maybe(True, False),
    ),
    "tag": st.tuples(_maybe(1, 2, 3, 8), _maybe("x", "y")),
}


def contents(name: str) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Rows of a relation; with a key, none has another's."""
    if KEYS[name]:
        return st.lists(ROWS[name], max_size=7, unique_by=lambda row: row[0])
    return st.lists(ROWS[name], max_size=7)


# -- expressions

CONSTANTS: dict[str, list[Any]] = {
    "BIGINT": [0, 1, 2, 3, 7],
    "STRING": ["", "a", "é", "x"],
    "DECIMAL(8,2)": [Decimal("0.50"), Decimal("1.00")],
    "DOUBLE": [0.0, 0.1, math.inf],
    "TIMESTAMP": MOMENTS,
    "BOOLEAN": [True, False],
}
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "null_safe_equal")


@st.composite
def predicates(draw: st.DrawFn, plan: Plan, depth: int = 2) -> Expression:
    if depth and draw(st.booleans()):
        how = draw(st.sampled_from(["and", "or", "not"]))
        parts = [draw(predicates(plan, depth - 1)) for _ in range(1 if how == "not" else 2)]
        return call(how, *parts)
    column = draw(st.sampled_from(plan.columns))
    constants = CONSTANTS.get(column.type.sql)
    how = draw(st.sampled_from(["compare", "in", "null", "like", "columns"]))
    if constants is None or how == "null":
        return call(draw(st.sampled_from(["is_null", "is_not_null"])), column)
    if how == "like" and column.type.sql == "STRING":
        return call("like", column, literal(draw(st.sampled_from(["a%", "_", "%b", "z\\_", ""]))))
    if how == "in":
        chosen = draw(st.lists(st.sampled_from(constants), min_size=1, max_size=3))
        return call("in", column, *(Literal(value, column.type) for value in chosen))
    others = [c for c in plan.columns if c.type == column.type]
    constant = Literal(draw(st.sampled_from(constants)), column.type)
    other = draw(st.sampled_from(others)) if how == "columns" else constant
    return call(draw(st.sampled_from(COMPARISONS)), column, other)


# -- plans


@st.composite
def plans(draw: st.DrawFn, depth: int = 4) -> Plan:
    """A plan of at most so many nodes upon each other."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        name = draw(st.sampled_from(["artist", "track", "track", "tag"]))
        return Scan(name, SCHEMAS[name])
    return draw(draw(st.sampled_from(NODES))(depth - 1))


@st.composite
def _filters(draw: st.DrawFn, depth: int) -> Plan:
    input_ = draw(plans(depth))
    return Filter(input_, draw(predicates(input_)))


@st.composite
def _projects(draw: st.DrawFn, depth: int) -> Plan:
    input_ = draw(plans(depth))
    chosen: list[Expression] = draw(st.lists(st.sampled_from(input_.columns), min_size=1, max_size=4))
    numbers = [c for c in input_.columns if c.type == BIGINT]
    if numbers and draw(st.booleans()):
        chosen.append(call("add", draw(st.sampled_from(numbers)), literal(1)))
    return Project(input_, tuple(chosen), tuple(f"p{at}" for at in range(len(chosen))))


@st.composite
def _joins(draw: st.DrawFn, depth: int) -> Plan:
    left, right = draw(plans(depth)), draw(plans(max(0, depth - 1)))
    width = len(left.schema)
    pairs = [(a, b) for a in left.columns for b in right.columns if a.type == b.type and a.type.sql in CONSTANTS]
    kind = draw(st.sampled_from(["inner", "inner", "left", "semi", "anti", "right", "full"]))
    parts: list[Expression] = []
    for _ in range(draw(st.integers(1, 2)) if pairs else 0):
        a, b = draw(st.sampled_from(pairs))
        there = Column(b.index + width, b.name, b.type, b.nullable)
        how = draw(st.sampled_from(["equal", "equal", "equal", "null_safe_equal", "less"]))
        parts.append(call(how, a, there))
    condition = None if not parts else parts[0] if len(parts) == 1 else call("and", *parts)
    return Join(left, right, kind, condition)


def _aggregate_call(draw: st.DrawFn, plan: Plan) -> AggregateCall:
    column = draw(st.sampled_from(plan.columns))
    name = draw(st.sampled_from(["count", "sum", "avg", "min", "max", "array_agg", "count distinct"]))
    where = draw(predicates(plan, 0)) if draw(st.integers(0, 3)) == 0 else None
    numeric = column.type in (BIGINT, DOUBLE)
    if name == "count distinct":
        return AggregateCall("count", (column,), True, where, (), BIGINT, False)
    if name == "count" or (name in ("sum", "avg") and not numeric):
        arguments = (column,) if draw(st.booleans()) else ()
        return AggregateCall("count", arguments, False, where, (), BIGINT, False)
    if name in ("min", "max"):
        return AggregateCall(name, (column,), False, where, (), column.type, True)
    if name == "array_agg" and column.type.sql in CONSTANTS:
        from everview.types import Array

        order = ((draw(st.sampled_from(plan.columns)), draw(st.sampled_from(["asc", "desc"]))),)
        if order[0][0].type.sql not in CONSTANTS:
            order = ()
        return AggregateCall("array_agg", (column,), False, where, order, Array(column.type), False)
    if numeric:
        of = DOUBLE if name == "avg" or column.type == DOUBLE else BIGINT
        return AggregateCall("avg" if name == "avg" else "sum", (column,), False, where, (), of, True)
    return AggregateCall("count", (), False, where, (), BIGINT, False)


@st.composite
def _aggregates(draw: st.DrawFn, depth: int) -> Plan:
    input_ = draw(plans(depth))
    groups = tuple(draw(st.lists(st.sampled_from(input_.columns), max_size=2, unique=True)))
    calls = tuple(_aggregate_call(draw, input_) for _ in range(draw(st.integers(1, 3))))
    return Aggregate(input_, groups, calls, tuple(f"g{at}" for at in range(len(groups) + len(calls))))


@st.composite
def _tops(draw: st.DrawFn, depth: int) -> Plan:
    input_ = draw(plans(depth))
    ways = st.sampled_from(["asc", "desc", "asc", "desc", "asc nulls last", "desc nulls first"])
    order = tuple((c, draw(ways)) for c in draw(st.lists(st.sampled_from(input_.columns), max_size=2, unique=True)))
    partition = tuple(c.index for c in draw(st.lists(st.sampled_from(input_.columns), max_size=1)))
    if draw(st.integers(0, 2)):
        partition = ()
    limit = draw(st.sampled_from([0, 1, 2, 3, 3, None] if not partition else [1, 2]))
    return Top(input_, order, limit, draw(st.sampled_from([0, 0, 0, 1, 2])), partition)


@st.composite
def _distincts(draw: st.DrawFn, depth: int) -> Plan:
    return Distinct(draw(plans(depth)))


@st.composite
def _unions(draw: st.DrawFn, depth: int) -> Plan:
    input_ = draw(plans(depth))
    return Union((input_, Filter(input_, draw(predicates(input_)))))


NODES: list[Callable[[int], st.SearchStrategy[Plan]]] = [
    _filters, _filters, _projects, _joins, _joins, _joins, _aggregates, _tops, _tops, _distincts, _unions,
]  # fmt: skip
