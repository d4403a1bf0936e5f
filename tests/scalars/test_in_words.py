"""Expressions over words alone: what evaluation on Arrow columns gives, and nothing where that fails."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.codes import Dictionary, decode_rows, encode
from everview.errors import ArithmeticFailure, EverviewError
from everview.lowering.rows import evaluating
from everview.operators.functions import Function
from everview.operators.linear import Filter, Map
from everview.operators.operator import Context, Layout
from everview.operators.word_program import WordProgram
from everview.plan.typing import call, cast, literal
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Column, Expression
from everview.scalars.kinds import Passing
from everview.types import STRING, Field, Schema, parse_type
from scalars.drawn_columns import agrees, tables
from scalars.written import SCHEMA, expression

D = decimal.Decimal
TYPES = [
    parse_type(name)
    for name in (
        *("tinyint", "smallint", "int", "bigint", "bigint", "double", "float", "decimal(12,2)", "decimal(18,6)"),
        *("decimal(25,4)", "decimal(38,10)", "boolean", "date", "timestamp", "string"),
    )
]
COLUMNS = Schema(Field(f"c{place}", of) for place, of in enumerate(TYPES))
LITERALS = (0, 1, -1, 2, 127, 2**31 - 1, 2**63 - 1, 1.5, 0.0, D("0.01"), D("99.5"), True, False, "a", None)
UNARY = (
    *("negate", "abs", "not", "is_null", "is_not_null", "is_nan", "ceil", "floor", "round", "bit_not", "sign", "sqrt"),
    *("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear", "yearofweek", "last_day"),
    *("hour", "minute", "second", "second_fraction", "unix_seconds", "timestamp_seconds", "timestamp_millis"),
)
BINARY = (
    *("add", "subtract", "multiply", "divide", "integral_divide", "modulo", "pmod"),
    *("try_add", "try_subtract", "try_multiply", "try_divide", "try_modulo"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "null_safe_equal"),
    *("and", "or", "coalesce", "nullif", "greatest", "least", "nanvl", "bit_and", "bit_or", "bit_xor"),
    *("shiftleft", "shiftright", "shiftrightunsigned", "date_add", "date_sub", "add_months", "datediff"),
)
OF_TEXT = ("equal", "not_equal", "null_safe_equal", "coalesce", "nullif", "is_null", "if", "case", "in")
TERNARY = ("if", "case", "in", "and", "or", "greatest", "coalesce")


@st.composite
def grown(draw: st.DrawFn) -> Expression:
    """An expression of some calls and casts, each over what was made before."""
    pool: list[Expression] = [Column(place, f.name, f.type, f.nullable) for place, f in enumerate(COLUMNS.fields)]
    pool += [literal(value) for value in LITERALS]
    for _ in range(draw(st.integers(1, 6))):
        name = draw(st.sampled_from((*UNARY, *BINARY, *BINARY, *TERNARY, "cast", "try_cast")))
        count = 1 if name in (*UNARY, "cast", "try_cast") else 2 if name in BINARY else 3
        # What was made last is taken often, so that expressions grow deep; what is read from text is not in words.
        usable = [e for e in pool if name in OF_TEXT or e.type != STRING]
        chosen = [draw(st.sampled_from(usable if draw(st.booleans()) else usable[-3:])) for _ in range(count)]
        try:
            if name in ("cast", "try_cast"):
                pool.append(cast(chosen[0], draw(st.sampled_from(TYPES)), try_=name == "try_cast"))
            else:
                pool.append(call(name, *chosen))
        except EverviewError:
            continue
    return pool[-1]


@settings(max_examples=250)
@given(found=grown(), drawn=tables(TYPES, most=4).filter(lambda drawn: len(drawn[0]) > 0))
def test_words_and_columns_give_what_an_expression_means(found: Expression, drawn: list[list[Any]]) -> None:
    if not isinstance(found.type, Passing):
        agrees(found, TYPES, drawn)


COMPILED = """
i + 1
i * 2 + 1
l - i
-i
abs(i)
i % 3
pmod(i, 3)
i // 3 ;; div(i, 3)
d * 2 + 1.5
f + f
m * m
m * m + m
m / m
m + w
w * 2
w * w
div(w, m)
m % 3
case(i > 10, 1, 0)
case(i == 0, 0, div(10, i))
if_(b, i, null)
coalesce(i, l, 0)
coalesce(w, m)
nullif(i, 1)
greatest(i, l, 3)
least(m, w)
in_(i, 1, 2, null)
in_(s, 'a', 'b')
in_(i, l, 3)
s == 'abc'
s != t
coalesce(s, 'none')
case(i > 1, 'many', s)
nullif(s, 'abc')
x == x
is_null(s)
not_(b)
and_(b, i > 1)
or_(b, i > 1, l < 0)
ts > timestamp('2020-01-01 00:00:00')
dt + 1
dt - interval(1, 'month')
ts + interval(90, 'minute')
year(dt)
month(ts)
hour(ts)
datediff(dt, date('2024-01-01'))
last_day(dt)
trunc(dt, 'month')
date_trunc('hour', ts)
date_trunc('quarter', ts)
unix_seconds(ts)
cast(i, 'decimal(12,2)')
cast(m, 'int')
cast(m, 'double')
cast(w, 'decimal(12,2)')
cast(d, 'bigint')
cast(d, 'decimal(12,2)')
cast(i, 'boolean')
cast(ts, 'date')
try_cast(l, 'tinyint')
try_divide(i, 0)
round(d, 1)
round(m, 1)
ceil(d)
floor(m)
bit_and(i, 3)
shiftleft(i, 3)
is_nan(d)
"""


@pytest.mark.parametrize("text", [line.split(";;")[-1].strip() for line in COMPILED.strip().splitlines()])
def test_words_suffice(text: str) -> None:
    program = Evaluate((expression(text),)).projection_in_words(
        SCHEMA, (), tuple(range(len(SCHEMA))), _out(expression(text))
    )
    assert isinstance(program, WordProgram), program


REFUSED = [
    ("upper(s)", "the function upper"),
    ("s < t", "the order of texts"),
    ("cast(s, 'int')", "a cast of STRING to INTEGER"),
    ("cast(i, 'string')", "a cast of INTEGER to STRING"),
    ("size(a)", "a value of type ARRAY<INTEGER>"),
    ("exp(d)", "the function exp"),
    ("current_timestamp()", "the moment of the tick"),
]


def _out(found: Expression) -> Schema:
    return Schema((Field("computed", found.type, found.nullable),))


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_words_do_not_tell_says_why(text: str, why: str) -> None:
    found = expression(text)
    program = Evaluate((found,)).projection_in_words(SCHEMA, (), tuple(range(len(SCHEMA))), _out(found))
    assert program == why


ROWS = Schema.parse("id BIGINT NOT NULL, n INT, name STRING, amount DECIMAL(12,2)")
N, NAME, AMOUNT = (Column(place, f.name, f.type) for place, f in list(enumerate(ROWS.fields))[1:])
GUARDED = call("case", call("equal", N, literal(0)), literal(0), call("integral_divide", literal(10), N))


def delta_of(rows: list[tuple[Any, ...]], dictionary: Dictionary, weights: list[int] | None = None) -> Any:
    columns = [pa.array([row[place] for row in rows], f.type.arrow) for place, f in enumerate(ROWS.fields)]
    words = encode(ROWS, pa.table(columns, schema=ROWS.arrow), dictionary)
    return np.column_stack([words, np.array(weights or [1] * len(rows), np.int64)])


def mapping(*found: Expression) -> tuple[Map, Context, Schema]:
    """The operator that keeps the key and adds expressions, and what it runs with."""
    function = evaluating(found)
    out = Schema((ROWS.fields[0], *(Field(f"x{place}", e.type, e.nullable) for place, e in enumerate(found))))
    operator = Map(Layout(ROWS), function.name, out, (0,), None)
    return operator, Context(Dictionary(), {function.name: function}), out


def many(count: int) -> list[tuple[Any, ...]]:
    return [(i, i % 7 or None, ("a", "b", None)[i % 3], D(i) / 100) for i in range(count)]


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 1000])
def test_rows_go_through_in_blocks(count: int) -> None:
    found = call("multiply", call("coalesce", AMOUNT, literal(D("1.00"))), call("coalesce", N, literal(3)))
    operator, context, _ = mapping(found, call("case", call("equal", NAME, literal("a")), literal("x"), NAME))
    delta = delta_of(many(count), context.dictionary, [(-1) ** i * i for i in range(count)])
    assert isinstance(operator.in_words(context.functions), WordProgram)
    assert np.array_equal(operator.step([delta], (), context).out, operator._images(delta, context).out)


@pytest.mark.parametrize("count", [0, 1, 256, 1000])
def test_filtered_rows_go_through_in_blocks(count: int) -> None:
    for condition in (
        call("in", NAME, literal("a"), literal("z")),
        call("greater", call("modulo", N, literal(2)), literal(0)),
    ):
        function = evaluating((condition,))
        operator, context = Filter(Layout(ROWS), function.name), Context(Dictionary(), {function.name: function})
        delta = delta_of(many(count), context.dictionary)
        assert isinstance(operator.in_words(context.functions), WordProgram)
        assert np.array_equal(operator.step([delta], (), context).out, operator._kept(delta, context).out)


def test_a_branch_that_is_not_taken_does_not_fail() -> None:
    operator, context, out = mapping(GUARDED)
    delta = delta_of([(1, 0, "a", None), (2, 5, "b", None), (3, None, None, None)], context.dictionary)
    program = operator.in_words(context.functions)
    assert isinstance(program, WordProgram)
    mapped = program.run(delta, context.dictionary)
    assert mapped is not None
    assert decode_rows(out, mapped[:, :-1], context.dictionary) == [(1, 0), (2, 2), (3, None)]


def test_what_fails_in_words_raises_what_columns_raise() -> None:
    operator, context, _ = mapping(call("integral_divide", literal(10), N))
    delta = delta_of([(1, 5, "a", None), (2, 0, "b", None)], context.dictionary)
    with pytest.raises(ArithmeticFailure) as from_step:
        operator.step([delta], (), context)
    with pytest.raises(ArithmeticFailure) as from_columns:
        operator._images(delta, context)
    assert str(from_step.value) == str(from_columns.value)
    assert "division by zero" in str(from_step.value)


def test_a_failing_row_that_cancels_does_not_fail() -> None:
    operator, context, out = mapping(call("integral_divide", literal(10), N))
    delta = delta_of([(1, 5, "a", None), (2, 0, "b", None), (2, 0, "b", None)], context.dictionary, [1, 1, -1])
    step = operator.step([delta], (), context)
    assert decode_rows(out, step.out[:, :-1], context.dictionary) == [(1, 2)]


def test_constants_are_looked_up_in_the_dictionary_of_the_step() -> None:
    """A value may have one code here and another there: hashes that collide are told apart in order of arrival."""
    found = call("if", call("equal", NAME, literal("a")), literal("yes"), literal("no"))
    operator, context, out = mapping(found)
    for first in ("a", "yes", "no", "b"):
        dictionary = Dictionary(hash=lambda offsets, data, seed: np.full(len(offsets) - 1, seed, np.int64))
        dictionary.intern_values(NAME.type.kind, [first.encode()])
        delta = delta_of([(1, 0, "a", None), (2, 0, "b", None)], dictionary)
        step = operator.step([delta], (), Context(dictionary, context.functions))
        assert decode_rows(out, step.out[:, :-1], dictionary) == [(1, "yes"), (2, "no")]


def test_a_program_is_made_once_and_is_no_part_of_the_operator() -> None:
    operator, context, _ = mapping(GUARDED)
    before = repr(operator)
    program = operator.in_words(context.functions)
    assert operator.in_words(context.functions) is program
    assert repr(operator) == before
    assert operator == mapping(GUARDED)[0]


def test_what_users_wrote_is_not_in_words() -> None:
    operator = Map(Layout(ROWS), "f", ROWS.select(["id"]), (), None)
    function = Function("f", lambda ids, *rest: ids)
    assert operator.in_words({"f": function}) == "a function of users"
    context = Context(Dictionary(), {"f": function})
    delta = delta_of(many(3), context.dictionary)
    assert operator.step([delta], (), context).out[:, 0].tolist() == [0, 1, 2]


def test_an_overflow_beside_a_null_is_an_overflow() -> None:
    a, b = (Column(place, name, parse_type("bigint")) for place, name in enumerate("ab"))
    columns = [pa.array([None, -2]), pa.array([-(2**63), 2**63 - 1])]
    with pytest.raises(ArithmeticFailure):
        Evaluate((call("subtract", a, b),))(*columns)
    (tried,) = Evaluate((call("try_subtract", a, b),))(*columns)
    assert tried.to_pylist() == [None, None]


def test_seconds_beyond_all_floats_are_no_moment() -> None:
    found = cast(Column(0, "x", parse_type("double")), parse_type("timestamp"), try_=True)
    assert Evaluate((found,))(pa.array([1.7e308, 1.0]))[0].to_pylist() == [
        None,
        dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
    ]
