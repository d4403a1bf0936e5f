"""Canonical bytes: one way for columns and for values, ordered as values, and back."""

from __future__ import annotations

import decimal
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codes.strategies import atoms, cells, names, same, scalar_types, types, values
from everview.codes import atom_key, ingest, pack, pack_all, to_rows, unpack
from everview.codes.buffers import bytes_of, valid_of
from everview.codes.canonical import from_bytes, to_bytes
from everview.errors import WrongType
from everview.kernels.canonical_read import first_malformed
from everview.types import BIGINT, Array, Field, Schema, Struct, parse_type


def rows_of(column):
    offsets, data = column
    raw = data.tobytes()
    return [raw[a:b] for a, b in itertools.pairwise(offsets.tolist())]


@given(atoms)
def test_values_come_back(value):
    assert same(unpack(pack(value)), value)


@given(st.lists(st.none() | atoms, max_size=10))
def test_bytes_are_ordered_as_values(found):
    assert [atom_key(v) for v in sorted(found, key=pack)] == sorted(map(atom_key, found))


@given(scalar_types, st.data())
def test_columns_and_values_have_the_same_bytes(of, data):
    found = data.draw(st.lists(cells(Field("x", of)), max_size=6))
    schema = Schema([Field("x", Array(of))])
    column = ingest(schema, [(found,)])[0].column(0).combine_chunks()
    typed = [float(np.float32(v)) if of.sql == "FLOAT" and v is not None else v for v in found]
    assert rows_of(to_bytes(Array(of), column)) == [pack(typed)]


@given(types, st.data())
def test_nested_columns_come_back(of, data):
    found = data.draw(st.lists(st.none() | values(of), max_size=6))
    schema = Schema([Field("x", of)])
    table, _ = ingest(schema, [(v,) for v in found])
    column = table.column(0).combine_chunks()
    for cut in range(len(found) + 1):
        part = column.slice(cut)
        back = from_bytes(of, *to_bytes(of, part))
        back.validate(full=True)
        assert same(to_rows(schema, pa.table([back], schema=schema.arrow)), [(v,) for v in found[cut:]])


def test_deep_nesting():
    of = parse_type("ARRAY<STRUCT<a: ARRAY<STRUCT<b: ARRAY<STRING>, c: DECIMAL(38,10)>>, d: ARRAY<ARRAY<DOUBLE>>>>")
    number = decimal.Decimal("-1234567890123456789012345678.0123456789")
    value = [
        {"a": [{"b": ["x\0", None], "c": number}, None], "d": [[1.5], [], None]},
        {"a": None, "d": []},
        None,
    ]
    column = pa.array([value, None, [], value * 3], of.arrow)
    assert from_bytes(of, *to_bytes(of, column)).equals(column)


def test_what_hides_under_null_does_not_count():
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), pa.array([1, 2, 3]), mask=pa.array([True, False]))
    assert rows_of(to_bytes(Array(BIGINT), lists)) == [b"\0", pack([3])]
    structs = pa.StructArray.from_arrays([pa.array([1, 2])], names=["a"], mask=pa.array([True, False]))
    first, second = rows_of(to_bytes(Struct([Field("a", BIGINT)]), structs))
    assert first == b"\0"
    assert second == b"\x68\x01" + pack(2)


@given(st.lists(atoms, min_size=1, max_size=5))
def test_encoded_values_are_recognised(found):
    column = pack_all(found)
    assert first_malformed(*bytes_of(column), valid_of(column)) == -1


@given(atoms, st.data())
def test_truncated_and_extended_values_are_malformed(value, data):
    raw = pack(value)
    for wrong in (raw[: data.draw(st.integers(0, len(raw) - 1))], raw + b"\0"):
        column = pa.array([raw, wrong], pa.binary())
        assert first_malformed(*bytes_of(column), valid_of(column)) == 1


@given(st.lists(st.binary(max_size=12) | atoms.map(lambda v: pack(v)[:-1] + b"\1"), max_size=5))
def test_noise_is_malformed_or_a_value(found):
    column = pa.array(found, pa.binary())
    row = first_malformed(*bytes_of(column), valid_of(column))
    assert -1 <= row < len(found)


def test_other_zeros_and_nans_are_malformed():
    zero = pack(0.0)
    minus_zero = zero[:1] + b"\x7f" + b"\xff" * 7
    other_nan = zero[:1] + b"\xff\xf8" + b"\0" * 5 + b"\1"
    column = pa.array([zero, minus_zero], pa.binary())
    assert first_malformed(*bytes_of(column), valid_of(column)) == 1
    column = pa.array([pack(float("nan")), other_nan], pa.binary())
    assert first_malformed(*bytes_of(column), valid_of(column)) == 1


REFUSED = [
    (2**63, "outside the range of 64-bit integers", "DECIMAL"),
    (-(2**63) - 1, "outside the range of 64-bit integers", "DECIMAL"),
    ("\ud800", "not valid Unicode", "bytes"),
    (decimal.Decimal("NaN"), "is not a decimal number", "float"),
    (decimal.Decimal("1e40000"), "too large or too small", "32767"),
    (object, "is no value of ANY", "register_atom"),
]


@pytest.mark.parametrize(("value", "message", "hint"), REFUSED)
def test_values_without_encoding(value, message, hint):
    with pytest.raises(WrongType, match=message) as raised:
        pack(value)
    assert hint in raised.value.hint


def test_values_nested_too_deep():
    value = []
    for _ in range(200):
        value = [value]
    with pytest.raises(WrongType, match="nested more than 100 deep"):
        pack(value)


@given(st.lists(names, max_size=3, unique=True))
def test_arrays_are_not_structs(found):
    of = Struct(Field(name, BIGINT) for name in found)
    structs = to_bytes(of, pa.array([dict.fromkeys(found, 1)], of.arrow)) if found else None
    if structs is not None:
        assert rows_of(structs) != [pack([1] * len(found))]
