"""Few rows are packed column by column without Arrow: with the same words as by the way of many rows, or not at all."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codes import strategies
from everview.codes import Dictionary, encode_pairs, encode_rows, encode_weighted, ingest_weighted
from everview.codes.packing import packers
from everview.codes.small import _packed_pairs
from everview.errors import EverviewError
from everview.types import NULL_WORD, Schema, Symbol

Pairs = list[Any]
weights = st.integers(-3, 3)


class Spoken(enum.StrEnum):
    """Texts of a class of their own."""

    HELLO = "hello"


def by_arrow(schema: Schema, pairs: Pairs, dictionary: Dictionary) -> Any:
    return encode_weighted(schema, *ingest_weighted(schema, pairs), dictionary)


def outcome(schema: Schema, pairs: Pairs, encode: Any) -> Any:
    """The words, or the error's kind and text."""
    dictionary = Dictionary()
    try:
        return encode(schema, pairs, dictionary).tolist(), sorted(dictionary.export().codes.tolist())
    except EverviewError as error:
        return type(error), str(error)


@st.composite
def schemas_and_pairs(draw: st.DrawFn) -> tuple[Schema, Pairs]:
    """Rows that fit, as tuples or dicts, with weights."""
    schema, rows = draw(strategies.schemas_and_rows(strategies.scalar_types))
    forms = draw(st.sampled_from(["tuples", "dicts", "both"]))

    def form(place: int, row: tuple[Any, ...]) -> Any:
        as_dict = forms == "dicts" or (forms == "both" and place % 2)
        return dict(zip(schema.names, row, strict=True)) if as_dict else row

    return schema, [(form(place, row), draw(weights)) for place, row in enumerate(rows)]


@given(schemas_and_pairs())
def test_rows_that_fit_have_the_words_of_the_way_of_many_rows(drawn: tuple[Schema, Pairs]) -> None:
    schema, pairs = drawn
    assert outcome(schema, pairs, encode_pairs) == outcome(schema, pairs, by_arrow)


odd: st.SearchStrategy[Any] = st.one_of(
    strategies.scalar_atoms,
    st.none(),
    st.integers(-(2**70), 2**70),
    st.floats().map(np.float64),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
    st.decimals(allow_nan=True, places=3),
    st.datetimes(),
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(-(10**6), 10**6, places=2).map(str),
    st.sampled_from(
        [
            *("9.50", "-0.00", "1.00\n2.00", "1e3", "  7 ", "1_000", "nan", "2020-01-31", "2020-01-31 12:00", "x", ""),
            *(decimal.Decimal("1e999"), decimal.Decimal("nan"), decimal.Decimal("1e-40"), decimal.Decimal("-0")),
            *(decimal.Decimal("1." + "0" * 90 + "1"), decimal.Decimal("0." + "9" * 38), 2**53 + 1, -(2**63), 2**63),
            *(np.datetime64("NaT"), pd.NaT, pd.Timestamp("2020-01-01"), np.bool_(True), np.str_("n"), Spoken.HELLO),
            *("\ud800", bytearray(b"b"), memoryview(b"m"), Symbol("s"), [1], {"a": 1}, object, 1e300, float("inf")),
        ]
    ),
)


@given(strategies.schemas(strategies.scalar_types).flatmap(lambda s: st.tuples(st.just(s), st.data())))
def test_any_values_fit_as_they_do_by_the_way_of_many_rows_or_are_left_to_it(drawn: tuple[Schema, Any]) -> None:
    schema, data = drawn
    columns = [strategies.cells(field) | odd for field in schema.fields]
    rows = data.draw(st.lists(st.tuples(*columns), min_size=1, max_size=3))
    pairs = [(row, data.draw(weights)) for row in rows]
    dictionary = Dictionary()
    packed = _packed_pairs(schema, pairs, dictionary)
    slow = outcome(schema, pairs, by_arrow)
    assert packed is None or (packed.tolist(), sorted(dictionary.export().codes.tolist())) == slow
    assert packed is not None or not len(dictionary)
    assert outcome(schema, pairs, encode_pairs) == slow


whole = st.integers(-5, 5)
few_odd = st.one_of(
    *(whole, whole, whole, whole, st.sampled_from([2**63, -(2**63), 2**63 - 1, True, 1.0, None, "1", np.int64(3)]))
)


@given(st.lists(st.tuples(st.one_of(*[st.tuples(*[few_odd] * 2)] * 6, st.tuples(few_odd), st.lists(whole)), few_odd)))
def test_whole_numbers_that_are_their_own_words(pairs: Pairs) -> None:
    schema = Schema.parse("id BIGINT NOT NULL, amount BIGINT NOT NULL")
    assert outcome(schema, pairs, encode_pairs) == outcome(schema, pairs, by_arrow)


def test_words_may_be_changed_in_place() -> None:
    for schema in map(Schema.parse, ("id BIGINT NOT NULL", "id BIGINT")):
        encode_pairs(schema, [((1,), 1), ((2,), 1)], Dictionary())[:, -1] *= -1


@pytest.mark.parametrize(
    "pairs",
    [
        [((1, "a"), 1), ((2,), 1)],
        [((1, "a"), 1, 1)],
        [((1, "a"),)],
        [[(1, "a"), 1]],
        [((1, "a"), True)],
        [((1, "a"), 1.0)],
        [((1, "a"), 2**63)],
        [([1, "a"], 1)],
        [({"id": 1, "nam": "a"}, 1)],
        [({"id": 1, "name": "a", "more": 2}, 1)],
        [({"id": 1}, 1)],
        [({"name": "a"}, 1)],
        [({"id": 1, "name": "a"}, 1), ((2, "b"), -1)],
        [{(1, "a"): 0, 1: 0}],
        ["ab"],
        [((1, "a"), 1), None],
    ],
    ids=repr,
)
def test_pairs_of_every_form(pairs: Pairs) -> None:
    schema = Schema.parse("id BIGINT NOT NULL, name STRING")
    assert outcome(schema, pairs, encode_pairs) == outcome(schema, pairs, by_arrow)


@given(st.lists(st.decimals(-(10**11), 10**11, places=2), min_size=1), st.sampled_from([9, 12, 20]))
@example([decimal.Decimal("0.00")], 12)
def test_texts_of_decimals_are_their_numbers(numbers: list[decimal.Decimal], precision: int) -> None:
    schema = Schema.parse(f"amount DECIMAL({precision},2)")
    texts, values = ([((form(number),), 1) for number in numbers] for form in (str, lambda number: number))
    expected = outcome(schema, values, by_arrow)
    assert outcome(schema, values, encode_pairs) == expected
    if isinstance(expected[0], list):
        assert outcome(schema, texts, encode_pairs) == expected


def test_nested_types_are_not_packed() -> None:
    schema = Schema.parse("id BIGINT, tags ARRAY<STRING>")
    assert packers(schema) == ()
    assert len(encode_rows(schema, [(1, ["a"])], Dictionary())) == 1


def test_moments_with_and_without_zone_in_one_column() -> None:
    schema = Schema.parse("at TIMESTAMP")
    plain = dt.datetime(2020, 1, 1, 12)
    zoned = plain.replace(tzinfo=dt.timezone(dt.timedelta(hours=1)))
    words = encode_rows(schema, [(plain,), (zoned,), (None,)], Dictionary())[:, 0].tolist()
    assert words[0] - words[1] == 3_600_000_000
    assert words[2] == NULL_WORD
