"""Rows to words and back: every type, nullable or not, by both ways."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codes.strategies import cells, fixed_types, same, scalar_types, schemas_and_rows, values
from everview.codes import (
    Dictionary,
    atom_key,
    decode,
    decode_rows,
    decode_weighted,
    encode,
    encode_pairs,
    encode_rows,
    encode_weighted,
    ingest,
    references,
    to_rows,
)
from everview.codes.encode import column_by_column
from everview.codes.messages import weighted_table
from everview.types import ANY, BIGINT, Field, Schema


@given(schemas_and_rows(scalar_types) | schemas_and_rows())
def test_round_trip(given_rows):
    schema, rows = given_rows
    table, weights = ingest(schema, rows)
    assert table.schema.equals(schema.arrow, check_metadata=True)
    d = Dictionary()
    words = encode(schema, table, d)
    assert words.shape == (len(rows), schema.width)
    decoded = decode(schema, words, d)
    decoded.validate(full=True)
    assert decoded.schema.equals(schema.arrow, check_metadata=True)
    assert same(to_rows(schema, decoded), rows)
    assert np.array_equal(encode(schema, decoded, d), words)
    assert weights.tolist() == [1] * len(rows)


@given(schemas_and_rows(scalar_types) | schemas_and_rows())
def test_few_rows_go_the_same_way(given_rows):
    schema, rows = given_rows
    d = Dictionary()
    table, _ = ingest(schema, rows)
    words = encode(schema, table, d)
    assert np.array_equal(encode_rows(schema, rows, d)[:, :-1], words)
    weighted = encode_pairs(schema, [(row, i - 1) for i, row in enumerate(rows)], d)
    assert np.array_equal(weighted[:, :-1], words)
    assert weighted[:, -1].tolist() == [i - 1 for i in range(len(rows))]
    assert same(decode_rows(schema, words, d), to_rows(schema, decode(schema, words, d)))
    assert same(decode_rows(schema, words, d), rows)


@given(schemas_and_rows(), st.data())
def test_slices_and_chunks(given_rows, data):
    schema, rows = given_rows
    table, _ = ingest(schema, rows)
    if not schema.fields:
        return
    d = Dictionary()
    whole = encode(schema, table, d)
    cut = data.draw(st.integers(0, len(rows)))
    assert np.array_equal(encode(schema, table.slice(cut), d), whole[cut:])
    chunked = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    assert np.array_equal(encode(schema, chunked, d), whole)
    for batch in table.to_batches():
        assert np.array_equal(encode(schema, batch, d), whole)


@given(schemas_and_rows(scalar_types) | schemas_and_rows(), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_a_message_has_what_the_columns_have(given_rows, weights):
    schema, rows = given_rows
    d = Dictionary()
    weights = (weights + [1] * len(rows))[: len(rows)]
    delta = encode_pairs(schema, list(zip(rows, weights, strict=True)), d)
    table, wanted = decode_weighted(schema, delta, d), column_by_column(schema, delta, d)
    table.validate(full=True)
    assert table.schema.equals(wanted.schema, check_metadata=True)
    assert same(to_rows(schema, table.drop_columns(["_weight"])), to_rows(schema, wanted.drop_columns(["_weight"])))
    assert table["_weight"].to_pylist() == weights


def test_a_code_that_is_unknown_is_no_message():
    schema = Schema.parse("name STRING")
    assert weighted_table(schema, np.array([[12345, 1]]), Dictionary()) is None


@given(schemas_and_rows(), st.data())
def test_deltas_carry_weights(given_rows, data):
    schema, rows = given_rows
    weights = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=len(rows), max_size=len(rows))), np.int64)
    if not schema.fields or "_weight" in schema:
        return
    table, _ = ingest(schema, rows)
    d = Dictionary()
    delta = encode_weighted(schema, table, weights, d)
    assert delta.flags.c_contiguous
    assert delta[:, -1].tolist() == weights.tolist()
    decoded = decode_weighted(schema, delta, d)
    assert decoded.column("_weight").to_pylist() == weights.tolist()
    again, again_weights = ingest(schema, decoded)
    assert np.array_equal(encode_weighted(schema, again, again_weights, d), delta)


@given(fixed_types.flatmap(lambda of: st.tuples(st.just(of), st.booleans())), st.data())
def test_fixed_codes_are_ordered_as_values(pair, data):
    of, nullable = pair
    field = Field("x", of, nullable)
    found = data.draw(st.lists(cells(field), max_size=20))
    schema = Schema([field])
    words = encode(schema, ingest(schema, [(v,) for v in found])[0], Dictionary())
    by_code = [found[i] for i in np.lexsort(words.T[::-1])]
    assert same([atom_key(v) for v in by_code], sorted(map(atom_key, found)))


@given(st.lists(values(ANY), max_size=12))
def test_any_compares_by_value(found):
    schema = Schema.of(x=ANY)
    d = Dictionary()
    words = encode_rows(schema, [(v,) for v in found], d)[:, :-1]
    for a, left in zip(found, words, strict=True):
        for b, right in zip(found, words, strict=True):
            equal = np.array_equal(left, right)
            assert equal == (atom_key(a) == atom_key(b))


def test_null_and_the_edges_of_bigint():
    schema = Schema.of(a=BIGINT, b=BIGINT.not_null)
    rows = [(-(2**63), -(2**63)), (None, 2**63 - 1)]
    d = Dictionary()
    words = encode_rows(schema, rows, d)
    assert words.tolist() == [[1, -(2**63), -(2**63), 1], [0, 0, 2**63 - 1, 1]]
    assert decode_rows(schema, words[:, :-1], d) == rows


def test_one_nan_and_one_zero():
    schema = Schema.parse("x DOUBLE, y FLOAT")
    odd = np.array([0x7FF8000000000001, -1], np.int64).view(np.float64)
    table = pa.table({"x": [*odd, -0.0, 0.0], "y": pa.array([math.nan, math.nan, -0.0, 0.0], pa.float32())})
    words = encode(schema, table, Dictionary())
    assert len(np.unique(words, axis=0)) == 2
    assert words[0, 0] > encode(schema, pa.table({"x": [math.inf]}), Dictionary())[0, 0]


def test_a_schema_without_columns():
    schema = Schema()
    d = Dictionary()
    words = encode_rows(schema, [(), ()], d)
    assert words.tolist() == [[1], [1]]
    assert decode_rows(schema, words[:, :-1], d) == [(), ()]


def test_types_of_one_shape_share_their_codes():
    d = Dictionary()
    narrow, wide = Schema.parse("x ARRAY<INT>"), Schema.parse("x ARRAY<BIGINT>")
    assert encode_rows(narrow, [([1, 2],)], d).tolist() == encode_rows(wide, [([1, 2],)], d).tolist()
    a, b = Schema.parse("x STRUCT<a: INT>"), Schema.parse("x STRUCT<b: INT>")
    assert encode_rows(a, [((1,),)], d).tolist() == encode_rows(b, [((1,),)], d).tolist()


@pytest.mark.parametrize(
    "others", [(["a", None], ["a"]), ([], [None]), ([["a"]], ["a", "a"]), (["a", "b"], ["b", "a"])]
)
def test_composite_values_are_told_apart(others):
    schema = Schema.of(x=ANY)
    d = Dictionary()
    words = encode_rows(schema, [(v,) for v in others], d)
    assert words[0].tolist() != words[1].tolist()


@given(schemas_and_rows())
def test_references_are_what_decoding_needs(given_rows):
    schema, rows = given_rows
    d = Dictionary()
    d.intern_values(64, [b"unused", b"too"])
    words = encode_rows(schema, rows, d)[:, :-1]
    d.sweep(references(schema, words))
    assert same(decode_rows(schema, words, d), rows)
    assert len(d) == sum(len(codes[codes != -(2**63)]) for codes in references(schema, words).values())


def test_a_map_may_hold_null_for_a_struct_with_a_field_that_may_not_be_null():
    schema = Schema.parse("m MAP<STRING, STRUCT<a: BOOLEAN NOT NULL>>")
    table, _ = ingest(schema, [({"k": None},), (None,), ({"k": {"a": True}},)])
    assert table.column("m").to_pylist() == [[("k", None)], None, [("k", {"a": True})]]
