"""Arrow tables by the addresses of their buffers: the same words as column by column, or left to that way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codes import strategies
from everview.codes import Dictionary, bulk, encode_pairs, encode_rows, encode_weighted, ingest, ingest_weighted
from everview.codes import tables as tables_of_codes
from everview.codes.ingest import split_weights
from everview.codes.tables import table_rows
from everview.errors import EverviewError, UnknownName, WrongArity
from everview.kernels.threads import at_most
from everview.kernels.xxh64 import hash_bytes
from everview.types import Schema
from torture.values import Stranger


def column_by_column(schema: Schema, table: pa.Table, dictionary: Dictionary) -> Any:
    parted = split_weights(schema, table)
    assert parted is not None
    return encode_weighted(schema, *parted, dictionary)


def conformed_first(schema: Schema, table: pa.Table, dictionary: Dictionary) -> Any:
    return encode_weighted(schema, *ingest(schema, table), dictionary)


def outcome(schema: Schema, table: Any, encode: Any) -> Any:
    """The words and what was interned, or the error's kind and text."""
    dictionary = Dictionary()
    try:
        return encode(schema, table, dictionary).tolist(), sorted(dictionary.export().codes.tolist())
    except EverviewError as error:
        return type(error), str(error)


def agrees(schema: Schema, table: pa.Table | pa.RecordBatch) -> None:
    assert outcome(schema, table, encode_pairs) == outcome(schema, table, column_by_column)
    assert outcome(schema, table, encode_rows) == outcome(schema, table, conformed_first)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, pa.Table]:
    """Tables of every type: in chunks, cut out of longer ones, with and without weights, columns in any order."""
    schema, rows = draw(strategies.schemas_and_rows(strategies.types).filter(lambda drawn: drawn[0].fields))
    whole, _ = ingest_weighted(schema, [(row, 1) for row in rows])
    if draw(st.booleans()):
        whole = whole.append_column("_weight", pa.array([draw(st.integers(-2, 2)) for _ in rows], pa.int64()))
    whole = whole.select(draw(st.permutations(whole.column_names)))
    table = whole.slice(draw(st.integers(0, 3)))
    if draw(st.booleans()):
        table = pa.concat_tables([table, whole.slice(0, draw(st.integers(0, 3)))])
    return schema, table


@given(tables())
def test_every_type(drawn: tuple[Schema, pa.Table]) -> None:
    schema, table = drawn
    agrees(schema, table)
    for part in table.to_batches():
        agrees(schema, part)


@pytest.fixture(scope="module")
def many() -> Iterator[None]:
    """A few rows are many, in blocks and pieces of two."""
    few = mock.patch.multiple(bulk, BLOCK=2, PIECE=2, SAMPLE=4, FEW=2)
    with few, mock.patch.object(tables_of_codes, "MANY", 1), at_most(2):
        yield


@pytest.mark.usefixtures("many")
@given(tables())
def test_every_type_of_many_rows(drawn: tuple[Schema, pa.Table]) -> None:
    schema, table = drawn
    agrees(schema, table)
    for part in table.to_batches():
        agrees(schema, part)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("name", [["a", "b"] * 9, ["a", None] * 9, list("abcdefghijklmnopq"), ["a", b"\xff", "b", "a"]])
def test_texts_of_many_rows(name: list[Any]) -> None:
    texts = pa.array([each if isinstance(each, bytes) or each is None else each.encode() for each in name])
    columns = {"id": list(range(len(name))), "name": texts.view(pa.string())}
    agrees(Schema.parse("id BIGINT NOT NULL, name STRING"), pa.table(columns))
    agrees(Schema.parse("id BIGINT NOT NULL, name STRING NOT NULL"), pa.table(columns))


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("name", [["a", "b"] * 9, ["a", None, "c"] * 9, list("abcdefghijklmnopq")])
def test_texts_of_many_rows_whose_hashes_collide(name: list[Any]) -> None:
    def of_few_values(offsets: Any, data: Any, seed: Any) -> Any:
        hashes = hash_bytes(offsets, data, seed)
        return hashes & 1 if seed < 8 else hashes

    dictionary, schema = Dictionary(of_few_values), Schema.parse("name STRING")
    rows = table_rows(schema, pa.table({"name": name}), dictionary)
    assert rows is not None
    assert dictionary.lookup(schema.fields[0].type, rows[:, 0].copy()).to_pylist() == name


@given(tables(), st.data())
def test_columns_of_other_types_and_with_mistakes(drawn: tuple[Schema, pa.Table], data: st.DataObject) -> None:
    schema, table = drawn
    for place, name in enumerate(table.column_names):
        others = st.sampled_from(
            [
                pa.array([None] * len(table), pa.int64()),
                pa.array([2**40] * len(table), pa.int64()),
                pa.array([7] * len(table), pa.int32()),
                pa.array([-7] * len(table), pa.int8()),
                pa.array([7] * len(table), pa.uint16()),
                pa.array([1.5] * len(table), pa.float32()),
                pa.array([float("nan")] * len(table)),
                pa.array(["12"] * len(table)),
                pa.array([2**62] * len(table), pa.timestamp("us")),
                pa.array([1_000] * len(table), pa.timestamp("us", "Europe/Berlin")),
                pa.array([1_000] * len(table), pa.timestamp("ns")),
                pa.array([2**30] * len(table), pa.date32()),
                pa.array([b"\xff"] * len(table), pa.binary()),
            ]
        )
        if data.draw(st.integers(0, 3)) == 0:
            table = table.set_column(place, name, data.draw(others))
    agrees(schema, table)


SCHEMA = Schema.parse("id BIGINT NOT NULL, n INT, name STRING")
COLUMNS: dict[str, Any] = {"id": [1, 2], "n": pa.array([3, None], pa.int32()), "name": ["a", None]}


@pytest.mark.parametrize(
    "columns",
    [
        {**COLUMNS, "more": [1, 2]},
        {"id": [1, 2]},
        {"name": ["a", "b"]},
        {**COLUMNS, "_weight": pa.array([1, None])},
        {**COLUMNS, "_weight": pa.array(["1", "x"])},
        {**COLUMNS, "_weight": pa.array([1.0, 2.5])},
        {**COLUMNS, "_weight": pa.array([1, 2], pa.int8())},
        {**COLUMNS, "id": pa.array([1, None])},
        {**COLUMNS, "n": pa.array([2**31, 1])},
        {**COLUMNS, "name": pa.array([b"\xff", b"a"]).view(pa.string())},
        {**COLUMNS, "name": pa.array(["a", "a"]).dictionary_encode()},
    ],
)
def test_tables_that_are_looked_at_closely(columns: dict[str, Any]) -> None:
    agrees(SCHEMA, pa.table(columns))


def test_extension_types_without_a_hash() -> None:
    strange = pa.ExtensionArray.from_storage(Stranger(), pa.array([3, 4]))
    agrees(SCHEMA, pa.table({**COLUMNS, "n": strange}))


def test_two_columns_of_one_name() -> None:
    agrees(SCHEMA, pa.Table.from_arrays([pa.array([1])] * 3, ["id", "n", "n"]))


def test_memory_that_is_not_aligned() -> None:
    octets = pa.py_buffer(b"x" + np.array([5, 6], np.int64).tobytes())
    column = pa.Array.from_buffers(pa.int64(), 2, [None, octets.slice(1)])
    schema = Schema.parse("id BIGINT NOT NULL")
    assert table_rows(schema, pa.table({"id": column}), Dictionary()) is None
    assert encode_pairs(schema, pa.table({"id": column}), Dictionary()).tolist() == [[5, 1], [6, 1]]


def test_a_mistake_leaves_no_entry() -> None:
    dictionary = Dictionary()
    table = pa.table({"a": ["text"], "b": pa.array([b"\xff"]).view(pa.string())})
    assert table_rows(Schema.parse("a STRING, b STRING"), table, dictionary) is None
    assert not len(dictionary)


def test_frames_and_streams_that_are_read_once() -> None:
    schema = Schema.parse("id BIGINT NOT NULL, x DOUBLE")
    table = pa.table({"id": [1, 2], "x": [0.5, None]})
    expected = encode_pairs(schema, table, Dictionary()).tolist()
    frame = pd.DataFrame({"id": [1, 2], "x": [0.5, None]})
    assert encode_pairs(schema, frame, Dictionary()).tolist() == expected
    assert encode_pairs(schema, table.to_reader(), Dictionary()).tolist() == expected
    assert outcome(schema, pa.table({"id": [None, 1]}).to_reader(), encode_pairs) == outcome(
        schema, pa.table({"id": [None, 1]}), encode_pairs
    )


def test_structured_arrays_of_numpy() -> None:
    schema = Schema.parse("id BIGINT NOT NULL, name STRING, at TIMESTAMP, x DOUBLE")
    kinds = [("id", "i4"), ("name", "U4"), ("at", "M8[us]"), ("_weight", "i8")]
    array = np.array([(1, "a", "2020-01-01", 1), (2, "b", "NaT", -1)], kinds)
    table = pa.table({name: array[name].copy() for name, _ in kinds})
    assert outcome(schema, array, encode_pairs) == outcome(schema, table, encode_pairs)
    assert outcome(schema, array, encode_rows) == outcome(schema, table, encode_rows)
    assert table_rows(schema, table, Dictionary()) is not None


@given(
    st.permutations(["id", "n", "_weight", "more"]),
    st.integers(0, 4),
    st.lists(st.sampled_from(["i8", "i8", "i8", "i4", "u8", "f8", "?"]), min_size=4, max_size=4),
    st.lists(st.tuples(*[st.integers(0, 1)] * 4), max_size=3),
    st.sampled_from(["id BIGINT NOT NULL, n BIGINT NOT NULL", "id BIGINT NOT NULL, n BIGINT", "n BIGINT NOT NULL"]),
    st.booleans(),
)
def test_arrays_of_words_are_the_tables_of_their_fields(
    names: list[str], count: int, kinds: list[str], rows: list[tuple[int, ...]], columns: str, apart: bool
) -> None:
    fields = np.dtype([*zip(names[:count], kinds[:count], strict=True)], align=apart)
    array = np.array([row[:count] for row in rows], fields)[:: 1 + apart]
    table = pa.table({name: array[name].copy() for name in fields.names})
    schema = Schema.parse(columns)
    for encode in (encode_pairs, encode_rows):
        assert outcome(schema, array, encode) == outcome(schema, table, encode)


def test_fields_that_lie_between_words() -> None:
    schema, names = Schema.parse("id BIGINT NOT NULL"), ["id", "_weight"]
    for offsets in ([8, 0], [0, 0], [4, 8], [0, 4]):
        fields = np.dtype({"names": names, "formats": ["i8", "i8"], "offsets": offsets, "itemsize": 16})
        array = np.zeros(2, fields)
        for name in names:
            array[name] = 1
        table = pa.table({name: array[name].copy() for name in names})
        assert outcome(schema, array, encode_pairs) == outcome(schema, table, encode_pairs)


def test_words_of_an_array_are_a_copy() -> None:
    array = np.array([(1, 1), (2, 1)], [("id", "i8"), ("_weight", "i8")])
    words = encode_pairs(Schema.parse("id BIGINT NOT NULL"), array, Dictionary())
    assert words.flags.c_contiguous
    words[:, -1] *= -1
    assert array["_weight"].tolist() == [1, 1]


def test_arrays_that_are_no_tables_are_refused() -> None:
    schema = Schema.parse("id BIGINT NOT NULL")
    assert outcome(schema, np.array([[1, 1]]), encode_pairs)[0] is WrongArity
    assert outcome(schema, np.array([(1, 2)], [("id", "i8"), ("more", "i8")]), encode_pairs)[0] is UnknownName


def test_missing_columns_are_null() -> None:
    schema = Schema.parse("id BIGINT NOT NULL, n BIGINT, d DECIMAL(30,2), name STRING, x ANY")
    table = pa.table({"id": [1, 2]})
    assert table_rows(schema, table, Dictionary()) is not None
    agrees(schema, table)
