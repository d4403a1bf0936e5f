"""CAST between every two types that SQL casts between, on drawn columns, against its meaning one row at a time."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.errors import CastFailure, TypeMismatch
from everview.plan.typing import cast, castable, literal
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Column
from everview.types import DATE, DOUBLE, INTEGER, INTERVALS, STRING, TIME, TIMESTAMP, TIMESTAMP_NTZ, Type, parse_type
from scalars.drawn_columns import agrees, tables

TYPES = [
    parse_type(name)
    for name in (
        *(
            "boolean",
            "tinyint",
            "smallint",
            "int",
            "bigint",
            "float",
            "double",
            "date",
            "timestamp",
            "string",
            "binary",
        ),
        *("decimal(12,2)", "decimal(38,10)", "decimal(5,0)", "decimal(19,19)", "array<int>", "array<string>"),
        *("time", "timestamp_ntz", "interval year to month", "interval day", "interval day to second"),
        *("struct<x: int, y: string>", "struct<x: bigint, y: double>"),
        *("map<string, int>", "map<string, string>", "map<int, bigint>", "variant", "array<variant>"),
        "struct<a: int, b: array<variant>>",
    )
]
PAIRS = [(a, b) for a in TYPES for b in TYPES if a != b and castable(a, b)]


@pytest.mark.parametrize("of", TYPES, ids=str)
@settings(max_examples=40)
@given(data=st.data())
def test_a_cast_is_its_meaning(of: Type, data: st.DataObject) -> None:
    to = data.draw(st.sampled_from([b for a, b in PAIRS if a == of]))
    column = Column(0, "x", of)
    drawn = data.draw(tables([of], most=3))
    agrees(cast(column, to), [of], drawn)
    agrees(cast(column, to, try_=True), [of], drawn)


NUMERALS = st.text("0123456789.eE+- dnaif", max_size=9)
MOMENTS = st.from_regex(
    r"\A\+?20[0-9]{2}(-[0-9]{1,2}){0,2}"
    r"([ T][0-9]{1,2}(:[0-9]{1,2}){0,2}(\.[0-9]{0,8})?( ?[+-][0-9]{1,2}(:[0-9]{2})?|Z)?)?\Z"
)


@pytest.mark.parametrize("to", ["int", "bigint", "double", "float", "decimal(6,2)", "decimal(38,10)", "boolean"])
@settings(max_examples=40)
@given(texts=st.lists(NUMERALS, max_size=4))
def test_text_is_read_as_its_meaning_says(to: str, texts: list[str]) -> None:
    agrees(cast(Column(0, "x", STRING), parse_type(to), try_=True), [STRING], [texts])


@pytest.mark.parametrize("to", [DATE, TIMESTAMP, TIMESTAMP_NTZ], ids=str)
@settings(max_examples=60)
@given(texts=st.lists(MOMENTS, max_size=4))
def test_moments_are_read_as_their_meaning_says(to: Type, texts: list[str]) -> None:
    agrees(cast(Column(0, "x", STRING), to, try_=True), [STRING], [texts])


TIMES = st.from_regex(r"\A ?T?[0-9]{1,2}(:[0-9]{1,2}){1,2}(\.[0-9]{0,8})?( ?[AaPp][Mm])?\Z")
SPANS = st.from_regex(
    r"\A(interval [+-]?')?[+-]?[0-9]{1,3}(-[0-9]{1,2}| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]{1,7})?)?"
    r"(' (DAY|DAY TO SECOND|year to  month))?\Z"
)


@pytest.mark.parametrize("to", [TIME, *INTERVALS], ids=str)
@settings(max_examples=40)
@given(data=st.data())
def test_times_and_intervals_are_read_as_their_meaning_says(to: Type, data: st.DataObject) -> None:
    texts = data.draw(st.lists(TIMES if to == TIME else SPANS, max_size=4))
    agrees(cast(Column(0, "x", STRING), to, try_=True), [STRING], [texts])


@given(numbers=st.lists(st.floats(), max_size=8))
def test_a_double_is_the_same_after_being_text(numbers: list[float]) -> None:
    (found,) = Evaluate((cast(cast(Column(0, "x", DOUBLE), STRING), DOUBLE),))(pa.array(numbers, pa.float64()))
    assert [repr(v) for v in found.to_pylist()] == ["nan" if math.isnan(v) else repr(v) for v in numbers]


def test_a_failing_cast_names_the_expression_and_the_value() -> None:
    with pytest.raises(CastFailure, match=r"'x1' is not an INTEGER: it is no whole number in CAST\(c AS INTEGER\)"):
        Evaluate((cast(Column(0, "c", STRING), INTEGER),))(pa.array(["1", None, "x1", "y"]))


def test_what_sql_does_not_cast_is_refused() -> None:
    with pytest.raises(TypeMismatch, match="there is no cast of DATE to INTEGER"):
        cast(Column(0, "d", DATE), INTEGER)


def test_a_literal_null_is_a_null_of_the_other_type() -> None:
    assert cast(literal(None), DATE) == literal(None, DATE)


ZONED = ("2027-03-28 02:30:00 Europe/Berlin", "2026-10-25 02:30:00 Europe/Berlin", "2050-07-01 00:00:00 Europe/Berlin",
         "2026-01-01 00:00:00 PST", "2026-01-01 00:00 IST", "9999-12-31 23:00:00 America/Los_Angeles",
         "0001-01-01 00:00:00 +08:00", "9999-12-31 23:59:59 -00:01", "2026-01-01 00:00:00 Nowhere/Town")  # fmt: skip


@pytest.mark.parametrize("text", ZONED)
def test_texts_that_name_a_zone(text: str) -> None:
    """Skipped and repeated hours, years after the last listed change of clocks, Java's short names, the last years."""
    agrees(cast(Column(0, "t", STRING), TIMESTAMP, try_=True), [STRING], [[text, None]])
    agrees(cast(Column(0, "t", STRING), TIMESTAMP), [STRING], [[text]])
