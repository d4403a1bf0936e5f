"""Words are read without Arrow: the same values as by a table of Arrow."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
from hypothesis import given

from codes import strategies
from everview.codes import Dictionary, decode, decode_rows, encode_rows, to_rows
from everview.codes.recent import RECENT
from everview.codes.unpacking import unpackers
from everview.types import STRING, Schema


@given(strategies.schemas_and_rows(strategies.types))
def test_every_type(drawn: tuple[Schema, list[tuple[Any, ...]]]) -> None:
    schema, rows = drawn
    dictionary = Dictionary()
    words = encode_rows(schema, rows, dictionary)[:, :-1]
    by_arrow = to_rows(schema, decode(schema, words, dictionary))
    for _ in range(2):  # what was looked up is remembered
        found = decode_rows(schema, words, dictionary)
        assert len(found) == len(by_arrow)
        assert all(map(strategies.same, found, by_arrow))


def test_nested_types_go_by_arrow() -> None:
    assert unpackers(Schema.parse("id BIGINT, tags ARRAY<STRING>")) == ()


def test_many_and_long_texts() -> None:
    schema, dictionary = Schema.parse("name STRING, raw BINARY"), Dictionary()
    rows = [(f"text {n}", b"%d" % n) for n in range(RECENT + 1)] + [("x" * 1000, b"y" * 1000), (None, None)]
    words = encode_rows(schema, rows, dictionary)[:, :-1]
    assert decode_rows(schema, words, dictionary) == rows
    for start in range(0, len(rows), 1000):
        assert decode_rows(schema, words[start : start + 1000].copy(), dictionary) == rows[start : start + 1000]


def test_many_moments() -> None:
    schema, dictionary = Schema.parse("at TIMESTAMP, day DATE"), Dictionary()
    first = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC)
    rows = [(first + n * dt.timedelta(hours=7), first.date() + dt.timedelta(n)) for n in range(5000)] + [(None, None)]
    assert decode_rows(schema, encode_rows(schema, rows, dictionary)[:, :-1], dictionary) == rows


def test_what_is_forgotten_is_not_remembered() -> None:
    """Two values of one code, of which the first was forgotten before the second came."""
    dictionary = Dictionary(lambda offsets, data, seed: np.full(len(offsets) - 1, 7))
    mark = dictionary.mark()
    (code,) = dictionary.intern_texts(STRING.kind, ["a"])
    assert dictionary.lookup_texts(STRING.kind, [code]) == ["a"]
    dictionary.rollback(mark)
    assert dictionary.intern_texts(STRING.kind, ["b"]) == [code]
    assert dictionary.lookup_texts(STRING.kind, [code]) == ["b"]
