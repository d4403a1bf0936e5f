"""Plans and change streams, drawn at random: every node, NULLs, duplicates, deletes of what is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from everview.plan.node import Plan
from everview.plan.nodes import (
    JOIN_KINDS,
    Aggregate,
    Asof,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    Multiway,
    Project,
    Recursive,
    Reference,
    Scan,
    Top,
    Union,
    Values,
    Window,
)
from everview.plan.typing import call, cast
from everview.scalars.expressions import (
    AggregateCall,
    Column,
    Exists,
    Expression,
    Frame,
    InQuery,
    Literal,
    Order,
    Outer,
    Scalar,
    WindowCall,
)
from everview.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, Array, Field, Schema, Type

TABLES = {
    "t": Schema.parse("a BIGINT NOT NULL, b INTEGER, c STRING"),
    "u": Schema.parse("a BIGINT, d INTEGER NOT NULL"),
    "e": Schema.parse("x INTEGER NOT NULL, y INTEGER NOT NULL"),
}
SMALL = {INTEGER: (0, 1, 2, 3), BIGINT: (0, 1, 2, 3), STRING: ("p", "q", "é"), BOOLEAN: (True, False)}
TYPES = (INTEGER, BIGINT, STRING, BOOLEAN)
AGGREGATES = (
    *("count", "count of", "count_if", "sum", "avg", "min", "max", "bool_or", "first", "max_by", "array_agg", "median"),
)
WINDOWS = (
    *("row_number", "rank", "dense_rank", "ntile", "lag", "lead", "first_value", "last_value"),
    *("sum", "count", "min", "max", "avg"),
)
DIRECTIONS = ("asc", "desc", "asc nulls last", "desc nulls first")

Draw = Callable[..., Any]
Outside = tuple[Schema, ...]  # of the queries around, the nearest last
Tick = dict[str, list[tuple[tuple[Any, ...], int]]]


# -- rows


def rows(schema: Schema) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*(st.sampled_from(SMALL[f.type] + ((None,) if f.nullable else ())) for f in schema.fields))


@st.composite
def ticks(draw: Draw, most: int = 4) -> list[Tick]:
    """Changes that leave no row with negative weight: inserts, duplicates, and deletes of what is there."""
    held = {name: Counter[tuple[Any, ...]]() for name in TABLES}
    found: list[Tick] = []
    for _ in range(draw(st.integers(1, most))):
        tick: Tick = {}
        for name, schema in TABLES.items():
            changes: list[tuple[tuple[Any, ...], int]] = []
            for row in draw(st.lists(rows(schema), max_size=5)):
                w = draw(st.sampled_from((1, 1, 2)))
                held[name][row] += w
                changes.append((row, w))
            there = sorted((row for row, w in held[name].items() if w > 0), key=repr)
            for row in draw(st.lists(st.sampled_from(there), max_size=4)) if there else []:
                if held[name][row] > 0:
                    w = draw(st.integers(1, held[name][row]))
                    held[name][row] -= w
                    changes.append((row, -w))
            if changes:
                tick[name] = changes
        found.append(tick)
    return found


# -- expressions


@st.composite
def values(draw: Draw, schema: Schema, of: Type, outside: Outside = (), depth: int = 1) -> Expression:
    """A value of a type: a column, one of a query around, a constant, or something computed."""
    found: list[Expression] = [
        Column(at, f.name, f.type, f.nullable) for at, f in enumerate(schema.fields) if f.type == of
    ]
    for level, other in enumerate(reversed(outside), 1):
        found += [Outer(at, level, f.name, f.type, f.nullable) for at, f in enumerate(other.fields) if f.type == of]
    kind = draw(st.integers(0, 5))
    if depth and kind == 0 and of in (INTEGER, BIGINT):
        one = draw(values(schema, of, outside, depth - 1))
        return call("add", one, Literal(1, of))
    if depth and kind == 1:
        condition = draw(conditions(schema, outside, 0))
        return call("if", condition, draw(values(schema, of, outside, 0)), draw(values(schema, of, outside, 0)))
    if depth and kind == 2 and of == BIGINT:
        return cast(draw(values(schema, INTEGER, outside, 0)), BIGINT)
    if found and kind < 5:
        return draw(st.sampled_from(found))
    return Literal(draw(st.sampled_from((*SMALL[of], None))), of)


@st.composite
def conditions(draw: Draw, schema: Schema, outside: Outside = (), depth: int = 1) -> Expression:
    kind = draw(st.integers(0, 7))
    if depth and kind == 0:
        return call("or", draw(conditions(schema, outside, depth - 1)), draw(conditions(schema, outside, depth - 1)))
    if depth and kind in (1, 2):
        return call("and", draw(conditions(schema, outside, depth - 1)), draw(conditions(schema, outside, depth - 1)))
    if depth and kind == 3:
        return call("not", draw(conditions(schema, outside, depth - 1)))
    of = draw(st.sampled_from(TYPES))
    one = draw(values(schema, of, outside, depth))
    if kind == 4:
        return call(draw(st.sampled_from(("is_null", "is_not_null"))), one)
    name = draw(st.sampled_from(("equal", "equal", "equal", "less", "null_safe_equal", "not_equal")))
    return call(name, one, draw(values(schema, of, outside, depth)))


@st.composite
def joining(draw: Draw, left: Schema, right: Schema, outside: Outside = ()) -> Expression | None:
    """A condition over two sides: some equalities, perhaps something else, perhaps nothing."""
    width = len(left)
    pairs = [(a, width + b) for a, f in enumerate(left.fields) for b, g in enumerate(right.fields) if f.type == g.type]
    both = [*left.fields, *right.fields]
    column = lambda at: Column(at, both[at].name, both[at].type, both[at].nullable)  # noqa: E731
    parts: list[Expression] = []
    if pairs:
        for a, b in draw(st.lists(st.sampled_from(pairs), max_size=2)):
            name = draw(st.sampled_from(("equal", "equal", "null_safe_equal")))
            parts.append(call(name, *draw(st.permutations((column(a), column(b))))))
    if draw(st.integers(0, 3)) == 0:
        parts.append(draw(conditions(_numbered([*left.types, *right.types], both), outside)))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else call("and", *parts)


def _numbered(types: Sequence[Type], fields: Sequence[Field]) -> Schema:
    return Schema(Field(f"c{at}", of, f.nullable) for at, (of, f) in enumerate(zip(types, fields, strict=True)))


@st.composite
def orders(draw: Draw, schema: Schema, outside: Outside = ()) -> Order:
    found: list[tuple[Expression, str]] = []
    for _ in range(draw(st.integers(0, 2))):
        of = draw(st.sampled_from(TYPES))
        found.append((draw(values(schema, of, outside)), draw(st.sampled_from(DIRECTIONS))))
    return tuple(found)


# -- calls


@st.composite
def aggregates(draw: Draw, schema: Schema, outside: Outside = ()) -> AggregateCall:
    kept = draw(st.none() | conditions(schema, outside))
    integer = values(schema, INTEGER, outside)
    name = draw(st.sampled_from(AGGREGATES))
    distinct = draw(st.booleans())
    match name:
        case "count":
            return AggregateCall("count", (), False, kept, (), BIGINT, False)
        case "count of":
            of = draw(st.sampled_from(TYPES))
            return AggregateCall("count", (draw(values(schema, of, outside)),), distinct, kept, (), BIGINT, False)
        case "sum":
            return AggregateCall("sum", (draw(integer),), distinct, kept, (), BIGINT, True)
        case "avg" | "median":
            return AggregateCall(name, (draw(integer),), distinct, kept, (), DOUBLE, True)
        case "bool_or":
            return AggregateCall(name, (draw(values(schema, BOOLEAN, outside)),), False, kept, (), BOOLEAN, True)
        case "count_if":
            return AggregateCall(name, (draw(conditions(schema, outside)),), False, kept, (), BIGINT, False)
        case "max_by":
            return AggregateCall(
                name, (draw(values(schema, STRING, outside)), draw(integer)), False, kept, (), STRING, True
            )
        case "first":
            return AggregateCall(
                name, (draw(values(schema, STRING, outside)),), False, kept, draw(orders(schema, outside)), STRING, True
            )
        case "array_agg":
            return AggregateCall(name, (draw(integer),), False, kept, (), Array(INTEGER), False)
        case _:
            of = draw(st.sampled_from(TYPES))
            return AggregateCall(name, (draw(values(schema, of, outside)),), distinct, kept, (), of, True)


@st.composite
def windows(draw: Draw, schema: Schema, outside: Outside = ()) -> WindowCall:
    partition = tuple(draw(values(schema, of, outside, 0)) for of in draw(st.lists(st.sampled_from(TYPES), max_size=1)))
    order = draw(orders(schema, outside))
    name = draw(st.sampled_from(WINDOWS))
    frames = (None, Frame("rows", None, 0), Frame("rows", -2, 0), Frame("rows", -1, 1), Frame("range", None, 0),
              Frame("range", None, None), Frame("rows", 1, None))  # fmt: skip
    frame = draw(st.sampled_from(frames))
    value = draw(values(schema, INTEGER, outside, 0))
    match name:
        case "row_number" | "rank" | "dense_rank":
            return WindowCall(name, (), partition, order, None, INTEGER, False)
        case "ntile":
            return WindowCall(
                name, (Literal(draw(st.integers(1, 3)), INTEGER),), partition, order, None, INTEGER, False
            )
        case "lag" | "lead":
            return WindowCall(
                name, (value, Literal(draw(st.integers(0, 2)), INTEGER)), partition, order, None, INTEGER, True
            )
        case "count":
            return WindowCall(name, (), partition, order, frame, BIGINT, False)
        case "sum":
            return WindowCall(
                name, (value,), partition, order, frame, BIGINT, True, draw(st.none() | conditions(schema))
            )
        case "avg":
            return WindowCall(name, (value,), partition, order, frame, DOUBLE, True)
        case "min" | "max":
            text = draw(values(schema, STRING, outside, 0))
            return WindowCall(name, (text,), partition, order, frame, STRING, True)
        case _:
            return WindowCall(name, (value,), partition, order, frame, INTEGER, True)


# -- plans


def scans() -> st.SearchStrategy[Plan]:
    return st.sampled_from([Scan(name, schema) for name, schema in TABLES.items()])


@st.composite
def plans(draw: Draw, depth: int = 3, outside: Outside = (), *, subqueries: bool = False) -> Plan:
    """A plan, at most so deep."""
    if depth == 0:
        return draw(scans())
    inner = plans(depth - 1, outside, subqueries=subqueries)
    kinds = ["scan", "values", "project", "filter", "join", "join", "aggregate", "distinct", "union", "sets", "top",
             "window", "asof", "multiway", "recursive"]  # fmt: skip
    if subqueries:
        kinds += ["exists", "in", "scalar", "marked"] * 2
    kind = draw(st.sampled_from(kinds))
    match kind:
        case "scan":
            return draw(scans())
        case "values":
            schema = TABLES[draw(st.sampled_from(sorted(TABLES)))]
            found = draw(st.lists(rows(schema), max_size=3))
            made = (tuple(Literal(v, f.type) for v, f in zip(row, schema.fields, strict=True)) for row in found)
            return Values(tuple(made), schema)
        case "project":
            return projected(draw, draw(inner), outside)
        case "filter":
            plan = draw(inner)
            return Filter(plan, draw(conditions(plan.schema, outside)))
        case "join":
            left, right = draw(inner), draw(plans(min(1, depth - 1), outside))
            return Join(
                left, right, draw(st.sampled_from(JOIN_KINDS)), draw(joining(left.schema, right.schema, outside))
            )
        case "aggregate":
            plan = draw(inner)
            types = draw(st.lists(st.sampled_from(TYPES), max_size=2))
            groups = tuple(draw(values(plan.schema, of, outside)) for of in types)
            calls = tuple(draw(st.lists(aggregates(plan.schema, outside), min_size=not groups, max_size=2)))
            return Aggregate(plan, groups, calls, tuple(f"g{at}" for at in range(len(groups) + len(calls))))
        case "distinct":
            return Distinct(draw(inner))
        case "union":
            return Union((shaped(draw, draw(inner), outside), shaped(draw, draw(scans()), outside)))
        case "sets":
            made = draw(st.sampled_from((Intersect, Except)))
            left, right = shaped(draw, draw(inner), outside), shaped(draw, draw(scans()), outside)
            return made(left, right, draw(st.booleans()))
        case "top":
            plan = draw(inner)
            partition = tuple(draw(st.lists(st.integers(0, len(plan.schema) - 1), max_size=1)))
            limit, offset = draw(st.none() | st.integers(0, 3)), draw(st.integers(0, 2))
            return Top(plan, draw(orders(plan.schema, outside)), limit, offset, partition)
        case "window":
            plan = draw(inner)
            calls = tuple(draw(st.lists(windows(plan.schema, outside), min_size=1, max_size=2)))
            return Window(plan, calls, tuple(f"w{at}" for at in range(len(calls))))
        case "asof":
            left, right = shaped(draw, draw(inner), outside), shaped(draw, draw(scans()), outside)
            how, toward = (
                draw(st.sampled_from(("inner", "left"))),
                draw(st.sampled_from(("backward", "forward", "nearest"))),
            )
            return Asof(left, right, ((0, 0),), (1, 1), toward, draw(st.none() | st.just(1)), draw(st.booleans()), how)
        case "multiway":
            parts = [shaped(draw, draw(plans(min(1, depth - 1), outside)), outside) for _ in range(3)]
            pairs = ((0, 1), (1, 2), (2, 0)) if draw(st.booleans()) else ((0, 1), (1, 1), (2, 1))
            terms = tuple((3 + at, pair[0]) for at, pair in enumerate(pairs))
            cyclic = draw(st.booleans())
            same = tuple((pair[0], pair[1]) for pair in pairs)
            integers = [Project(p, (p.column(1), p.column(1)), ("v", "w")) for p in parts]
            chosen, variables = (integers, same) if cyclic else (parts, terms)
            select = tuple(sorted({v for pair in variables for v in pair}))
            return Multiway(tuple(chosen), variables, select, tuple(f"v{v}" for v in select))
        case "recursive":
            return recursion(draw, shaped(draw, draw(inner), outside))
        case _:
            return with_subquery(draw, kind, draw(inner), depth, outside)


def projected(draw: Draw, plan: Plan, outside: Outside) -> Project:
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    expressions = tuple(draw(values(plan.schema, of, outside)) for of in types)
    return Project(plan, expressions, tuple(f"p{at}" for at in range(len(types))))


def shaped(draw: Draw, plan: Plan, outside: Outside) -> Project:
    """Any plan as rows of (BIGINT, INTEGER)."""
    found = draw(values(plan.schema, BIGINT, outside)), draw(values(plan.schema, INTEGER, outside))
    return Project(plan, found, ("k", "v"))


def recursion(draw: Draw, start: Plan) -> Plan:
    """Paths over the edges, from a relation of starts; linear or not."""
    edge = Scan("e", TABLES["e"])
    first = Project(start, (start.column(1), cast_down(start)), ("x", "y"))
    seeds = Filter(first, call("is_not_null", first.column(0)))
    both = Union((edge, seeds))
    path = Reference("path", both.schema)
    other: Plan = path if draw(st.booleans()) else edge
    joined = Join(path, other, "inner")
    columns = joined.columns
    joined = Join(path, other, "inner", call("equal", columns[1], columns[2]))
    longer = Project(joined, (joined.column(0), joined.column(3)), ("x", "y"))
    body = Filter(path, call("less", path.column(0), Literal(3, INTEGER))) if draw(st.booleans()) else path
    return Recursive((("path", Union((both, longer))),), body)


def cast_down(plan: Plan) -> Expression:
    return call("if", call("less", plan.column(0), Literal(2, BIGINT)), Literal(0, INTEGER), plan.column(1))


def with_subquery(draw: Draw, kind: str, plan: Plan, depth: int, outside: Outside) -> Plan:
    inside = (*outside, plan.schema)
    query = draw(plans(min(2, depth - 1), inside, subqueries=depth > 2))
    negated = draw(st.booleans())
    match kind:
        case "exists":
            return Filter(plan, Exists(query, negated))
        case "in":
            values_ = shaped(draw, query, inside)
            one = Project(values_, (values_.column(1),), ("v",))
            return Filter(plan, InQuery((draw(values(plan.schema, INTEGER, outside)),), one, negated))
        case "scalar":
            found = draw(st.sampled_from(("count", "max", "top")))
            shape = shaped(draw, query, inside)
            if found == "top":
                value: Plan = Project(Top(shape, (), 1), (shape.column(1),), ("v",))
            else:
                calls = {
                    "count": AggregateCall("count", (), False, None, (), BIGINT, False),
                    "max": AggregateCall("max", (shape.column(1),), False, None, (), INTEGER, True),
                }
                value = Aggregate(shape, (), (calls[found],), ("v",))
            return Project(plan, (*plan.columns, Scalar(value)), (*plan.schema.names, "s"))
        case _:
            values_ = shaped(draw, query, inside)
            one = Project(values_, (values_.column(1),), ("v",))
            truth = (
                Exists(query, negated)
                if draw(st.booleans())
                else InQuery((draw(values(plan.schema, INTEGER, outside)),), one, negated)
            )
            return Project(plan, (*plan.columns, truth), (*plan.schema.names, "m"))


__all__ = ["TABLES", "Tick", "plans", "ticks"]
