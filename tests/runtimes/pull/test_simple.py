"""Expressions on single rows mean what they mean on columns: NULL, NaN, decimals, timestamps, text by its bytes."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.plan.typing import call
from everview.runtimes.pull.conditions import told
from everview.runtimes.pull.demand import Sort
from everview.runtimes.pull.ordering import sort_key
from everview.runtimes.pull.rows import Rowwise
from everview.runtimes.pull.simple import simple
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Cast, Column, Expression, Literal
from everview.sources.order import sort_key as sources_key
from everview.sources.protocol import Compare
from everview.types import Schema

SCHEMA = Schema.parse(
    "i INTEGER, n BIGINT, p DECIMAL(6,2), q DECIMAL(10,4), x DOUBLE, f FLOAT, s STRING, b BINARY, d DATE, t TIMESTAMP,"
    " o BOOLEAN"
)
MOMENTS = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]
VALUES: dict[str, list[Any]] = {
    "INTEGER": [-1, 0, 7, 2**31 - 1],
    "BIGINT": [-(2**63), 0, 7, 2**53 + 1],
    "DECIMAL(6,2)": [Decimal("-1.50"), Decimal("0.00"), Decimal("7.00")],
    "DECIMAL(10,4)": [Decimal("-1.5000"), Decimal("0.0001"), Decimal("7.0000")],
    "DOUBLE": [math.nan, math.inf, -math.inf, 0.0, 7.0, 0.1],
    "FLOAT": [math.nan, 0.0, 7.0, 0.5],
    "STRING": ["", "a", "B", "é", "\U0001f600", "a%", "a_b", "x\n", "\uffff"],
    "BINARY": [b"", b"a", b"\xff"],
    "DATE": [dt.date(1969, 12, 31), dt.date(2026, 1, 1)],
    "TIMESTAMP": MOMENTS,
    "BOOLEAN": [True, False],
}
COLUMNS = [Column(at, f.name, f.type) for at, f in enumerate(SCHEMA.fields)]
ROWS = st.tuples(*(st.sampled_from([None, *VALUES[f.type.sql]]) for f in SCHEMA.fields))
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "null_safe_equal"]


@st.composite
def predicates(draw: st.DrawFn, depth: int = 2) -> Expression:
    how = draw(st.sampled_from(["compare", "in", "like", "null", "and", "or", "not"][: 7 if depth else 4]))
    column = draw(st.sampled_from(COLUMNS))
    if how in ("and", "or", "not"):
        return call(how, *(draw(predicates(depth - 1)) for _ in range(1 if how == "not" else 2)))
    if how == "null":
        return call(draw(st.sampled_from(["is_null", "is_not_null"])), column)
    if how == "like":
        text = next(c for c in COLUMNS if c.type.sql == "STRING")
        return call("like", text, Literal(draw(st.sampled_from(["a%", "%", "_", "a\\_b", "x", "%\n"])), text.type))
    constants = st.sampled_from([None, *VALUES[column.type.sql]])
    if how == "in":
        chosen = draw(st.lists(constants, min_size=1, max_size=3))
        return call("in", column, *(Literal(value, column.type) for value in chosen))
    alike = [c for c in COLUMNS if _comparable(c.type.sql, column.type.sql)]
    other = draw(st.sampled_from([*alike, Literal(draw(constants), column.type)]))
    return call(draw(st.sampled_from(COMPARISONS)), column, other)


def _comparable(a: str, b: str) -> bool:
    kinds = [{"INTEGER", "BIGINT", "DECIMAL(6,2)", "DECIMAL(10,4)", "DOUBLE"}, {"DATE", "TIMESTAMP"}]
    return a == b or any({a, b} <= kind for kind in kinds)


@settings(max_examples=300)
@given(predicates(), st.lists(ROWS, min_size=1, max_size=5))
def test_predicates(predicate: Expression, rows: list[Any]) -> None:
    columns = [pa.array([row[at] for row in rows], f.type.arrow) for at, f in enumerate(SCHEMA.fields)]
    wanted = Evaluate((predicate,))(*columns)[0].to_pylist()
    assert [value for (value,) in Rowwise((predicate,), SCHEMA)(rows)] == wanted
    run = simple(predicate)
    if run is not None:
        assert [run(row) for row in rows] == wanted


def test_what_widens_is_simple() -> None:
    at = {c.name: c for c in COLUMNS}
    row = (7, 2**53 + 1, Decimal("-1.50"), Decimal("0.0001"), 0.1, 0.5, "a", b"", dt.date(2026, 1, 1), MOMENTS[0], True)
    for name, of in (("i", "n"), ("p", "q"), ("i", "x"), ("n", "x"), ("d", "t")):
        expression = Cast(at[name], at[of].type)
        run = simple(expression)
        assert run is not None
        columns = [pa.array([value], f.type.arrow) for value, f in zip(row, SCHEMA.fields, strict=True)]
        found = run(row)
        assert found == Evaluate((expression,))(*columns)[0].to_pylist()[0]
        assert str(found) == str(Evaluate((expression,))(*columns)[0].to_pylist()[0])


@given(st.lists(ROWS, max_size=6), st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=3))
def test_the_order_of_sources_is_the_order_here(rows: list[Any], order: list[tuple[int, bool]]) -> None:
    sorts = [Sort(at, descends, not descends) for at, descends in order]
    names = tuple((SCHEMA.names[at], "desc" if descends else "asc") for at, descends in order)
    assert sorted(rows, key=sort_key(SCHEMA, sorts)) == sorted(rows, key=sources_key(SCHEMA, names))  # type: ignore[arg-type]


def test_what_a_source_is_told() -> None:
    at = {c.name: c for c in COLUMNS}

    def of(name: str, column: str, value: Any, kind: str) -> Any:
        return told(call(name, at[column], Literal(value, at[kind].type)), SCHEMA)

    assert of("less", "i", 7, "n") == Compare("i", "<", 7)  # widening loses nothing
    assert of("less", "p", Decimal("7.0000"), "q") == Compare("p", "<", Decimal("7.00"))
    assert of("less", "p", Decimal("7.0001"), "q") is None  # which the column cannot hold
    assert of("equal", "i", 7.0, "x") == Compare("i", "=", 7)
    assert of("equal", "n", float(2**53), "x") is None  # two integers become this number
    assert of("equal", "x", math.nan, "x") is None
    assert told(call("greater", Literal(3, at["n"].type), at["n"]), SCHEMA) == Compare("n", "<", 3)
    assert told(call("less", at["i"], at["n"]), SCHEMA) is None
