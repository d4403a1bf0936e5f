"""Rows in every form that users have them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import everview as ev
from codes.strategies import KEY, cells, fixed_types
from everview.codes import (
    Dictionary,
    decode,
    encode,
    encode_pairs,
    encode_rows,
    ingest,
    ingest_weighted,
    pack,
    to_rows,
)
from everview.errors import EverviewError, NullNotAllowed, WrongType
from everview.types import ANY, DOUBLE, STRING, Array, Decimal, Field, Id, Schema, Symbol, type_of_arrow

ACCOUNT = Schema.parse("id BIGINT NOT NULL, owner STRING, amount DECIMAL(12,2)")
ROWS = [(1, "Ada", decimal.Decimal("9.50")), (2, None, None)]
FORMS = {
    "tuples": ROWS,
    "lists": [list(row) for row in ROWS],
    "a generator": (row for row in ROWS),
    "dicts": [{"amount": "9.50", "id": 1, "owner": "Ada"}, {"id": 2}],
    "table": pa.table({"id": [1, 2], "owner": ["Ada", None], "amount": ["9.50", None]}),
    "batch": pa.record_batch({"owner": ["Ada", None], "id": [1, 2], "amount": ["9.5", None]}),
    "pandas": pd.DataFrame({"id": [1, 2], "owner": ["Ada", None], "amount": [9.5, None]}, index=[7, 8]),
    "pandas by an index": pd.DataFrame({"id": [1, 2], "owner": ["Ada", None], "amount": [9.5, None]}).set_index("id"),
    "pandas by an index, of objects": pd.DataFrame({"id": [1, 2], "owner": ["Ada", None], "amount": ["9.5", None]})
    .astype(object)
    .set_index(["owner", "id"]),
    "tuples and dicts": [ROWS[0], {"id": 2}],
    "polars": pl.DataFrame({"id": [1, 2], "owner": ["Ada", None], "amount": [9.5, None]}),
    "reader": pa.table({"id": [1, 2], "owner": ["Ada", None], "amount": ["9.5", None]}).to_reader(),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    table, weights = ingest(ACCOUNT, FORMS[form])
    assert table.schema.equals(ACCOUNT.arrow)
    assert to_rows(ACCOUNT, table) == ROWS
    assert weights.tolist() == [1, 1]


WEIGHTED = {
    "dicts": [{"id": 1, "_weight": 2}, {"id": 2, "_weight": -1}],
    "table": pa.table({"_weight": pa.array([2, -1], pa.int8()), "id": [1, 2]}),
    "pandas": pd.DataFrame({"id": [1, 2], "_weight": [2, -1]}),
    "polars": pl.DataFrame({"id": [1, 2], "_weight": [2, -1]}),
}


@pytest.mark.parametrize("form", WEIGHTED)
@pytest.mark.parametrize("reader", [ingest, ingest_weighted])
def test_a_weight_column(form, reader):
    if form == "dicts" and reader is ingest_weighted:
        return
    table, weights = reader(ACCOUNT, WEIGHTED[form])
    assert to_rows(ACCOUNT, table) == [(1, None, None), (2, None, None)]
    assert weights.tolist() == [2, -1]
    assert weights.dtype == np.int64


def test_pairs_of_row_and_weight():
    pairs = [(ROWS[0], +1), ({"id": 2}, -3)]
    table, weights = ingest_weighted(ACCOUNT, pairs)
    assert to_rows(ACCOUNT, table) == ROWS
    assert weights.tolist() == [1, -3]
    d = Dictionary()
    delta = encode_pairs(ACCOUNT, pairs, d)
    assert delta[:, -1].tolist() == [1, -3]
    assert np.array_equal(delta[:, :-1], encode(ACCOUNT, table, d))


def test_a_schema_may_have_a_column_of_that_name():
    schema = Schema.parse("_weight DOUBLE")
    table, weights = ingest(schema, [{"_weight": 1.5}])
    assert to_rows(schema, table) == [(1.5,)]
    assert weights.tolist() == [1]


@pytest.mark.parametrize("data", [[], (), iter([]), pa.table({"id": pa.array([], pa.int64())})])
def test_no_rows(data):
    table, weights = ingest(ACCOUNT, data)
    assert table.num_rows == len(weights) == 0
    assert encode(ACCOUNT, table, Dictionary()).shape == (0, 3)
    assert encode_rows(ACCOUNT, [], Dictionary()).shape == (0, 4)


UTC = dt.UTC
PLUS_TWO = dt.timezone(dt.timedelta(hours=2))
D = decimal.Decimal
KEPT = uuid.UUID(int=5)

# (type, given, kept): what is accepted without loss.
COERCED = [
    ("BIGINT", 1.0, 1),
    ("BIGINT", D("2.00"), 2),
    ("TINYINT", np.int64(-128), -128),
    ("DOUBLE", 2**60, float(2**60)),
    ("DOUBLE", D("0.1"), 0.1),
    ("FLOAT", 0.1, float(np.float32(0.1))),
    ("FLOAT", math.inf, math.inf),
    ("DOUBLE", np.float32(0.5), 0.5),
    ("DECIMAL(12,2)", 9.5, D("9.50")),
    ("DECIMAL(12,2)", 0.1, D("0.10")),
    ("DECIMAL(12,2)", "9.5", D("9.50")),
    ("DECIMAL(12,2)", "1e3", D("1000.00")),
    ("DECIMAL(12,2)", 7, D("7.00")),
    ("DECIMAL(38,0)", 10**38 - 1, D(10**38 - 1)),
    ("DATE", "2026-01-31", dt.date(2026, 1, 31)),
    ("DATE", dt.datetime(2026, 1, 31), dt.date(2026, 1, 31)),
    ("DATE", "1815-12-10", dt.date(1815, 12, 10)),
    ("TIMESTAMP", "2026-01-31", dt.datetime(2026, 1, 31, tzinfo=UTC)),
    ("TIMESTAMP", "2026-01-31 12:00:00.5", dt.datetime(2026, 1, 31, 12, 0, 0, 500000, UTC)),
    ("TIMESTAMP", "2026-01-31T12:00:00+02:00", dt.datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ("TIMESTAMP", "2026-01-31T12:00:00Z", dt.datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ("TIMESTAMP", dt.datetime(2026, 1, 31, 12, tzinfo=PLUS_TWO), dt.datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ("TIMESTAMP", dt.datetime(2026, 1, 31, 12), dt.datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ("TIMESTAMP", dt.date(2026, 1, 31), dt.datetime(2026, 1, 31, tzinfo=UTC)),
    ("BINARY", bytearray(b"x"), b"x"),
    ("SYMBOL", "a", Symbol("a")),
    ("SYMBOL", Symbol("a"), Symbol("a")),
    ("ID", "a", Id("a")),
    ("ID", b"\xff", Id(b"\xff")),
    ("ANY", [1, "a"], (1, "a")),
    ("ANY", True, True),
    ("ANY", np.int32(5), 5),
    ("ARRAY<DATE>", ["2026-01-31", None], [dt.date(2026, 1, 31), None]),
    ("ARRAY<DECIMAL(5,1)>", (1, "2.5"), [D("1.0"), D("2.5")]),
    ("ARRAY<INT>", np.array([1, 2]), [1, 2]),
    ("ARRAY<SYMBOL>", ["a", Symbol("b")], [Symbol("a"), Symbol("b")]),
    ("STRUCT<x: INT, y: ID>", (1, "a"), {"x": 1, "y": Id("a")}),
    ("STRUCT<x: INT, y: ANY>", {"y": 1.5}, {"x": None, "y": 1.5}),
    ("TestKey", KEPT, KEPT),
    ("ARRAY<TestKey>", [KEPT], [KEPT]),
]


@pytest.mark.parametrize(("sql", "given_value", "kept"), COERCED)
@pytest.mark.parametrize("times", [1, 100])
def test_coercion(sql, given_value, kept, times):
    schema = Schema.parse(f"x {sql}")
    rows = [(given_value,), (None,)] * times
    table, _ = ingest(schema, rows)
    expected = [(kept,), (None,)] * times
    assert to_rows(schema, table) == expected
    d = Dictionary()
    assert np.array_equal(encode_rows(schema, rows, d)[:, :-1], encode(schema, table, d))
    assert to_rows(schema, decode(schema, encode(schema, table, d), d)) == expected


ARROW = [
    ("BIGINT", pa.array([1, None], pa.int8()), [1, None]),
    ("TINYINT", pa.array([1, 127], pa.uint64()), [1, 127]),
    ("BIGINT", pa.array([1.0, None]), [1, None]),
    ("INT", pa.array([D("3.00")]), [3]),
    ("DOUBLE", pa.array([1, 2**53]), [1.0, 2.0**53]),
    ("DOUBLE", pa.array([2**60]), [2.0**60]),
    ("DOUBLE", pa.array([D("0.1")]), [0.1]),
    ("FLOAT", pa.array([0.5, math.inf]), [0.5, math.inf]),
    ("DECIMAL(12,2)", pa.array([5]), [D("5.00")]),
    ("DECIMAL(12,2)", pa.array([9.5, 0.1]), [D("9.50"), D("0.10")]),
    ("DECIMAL(38,2)", pa.array([D("1.5")]), [D("1.50")]),
    ("DECIMAL(12,2)", pa.array(["1.5", None]), [D("1.50"), None]),
    ("DATE", pa.array([0, 86_400_000], pa.date64()), [dt.date(1970, 1, 1), dt.date(1970, 1, 2)]),
    ("DATE", pa.array([dt.datetime(2026, 1, 31)]), [dt.date(2026, 1, 31)]),
    ("TIMESTAMP", pa.array([1_000], pa.timestamp("ns")), [dt.datetime(1970, 1, 1, 0, 0, 0, 1, UTC)]),
    (
        "TIMESTAMP",
        pa.array([1], pa.timestamp("s", "Europe/Berlin")),
        [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)],
    ),
    ("TIMESTAMP", pa.array(["2026-01-31 10:00:00"]), [dt.datetime(2026, 1, 31, 10, tzinfo=UTC)]),
    (
        "TIMESTAMP",
        pa.array(["2026-01-31 10:00:00", "2026-01-31T10:00Z"]),
        [dt.datetime(2026, 1, 31, 10, tzinfo=UTC)] * 2,
    ),
    ("STRING", pa.array(["a", None], pa.large_string()), ["a", None]),
    ("STRING", pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    ("STRING", pa.nulls(2), [None, None]),
    ("SYMBOL", pa.array(["a"]), [Symbol("a")]),
    ("ID", pa.array(["a"]), [Id("a")]),
    ("ID", pa.array([b"\0"], pa.large_binary()), [Id(b"\0")]),
    ("BINARY", pa.array([b"ab"], pa.binary(2)), [b"ab"]),
    ("ANY", pa.array([1, None]), [1, None]),
    ("ANY", pa.array(["a"]), ["a"]),
    ("ANY", pa.array([[1.5]]), [(1.5,)]),
    ("ANY", pa.array([pack(Symbol("a"))]), [Symbol("a")]),
    ("ARRAY<BIGINT>", pa.array([[1], None, [2, 3]], pa.list_(pa.int8())), [[1], None, [2, 3]]),
    ("ARRAY<BIGINT>", pa.array([[1, 2]], pa.list_(pa.int64(), 2)), [[1, 2]]),
    ("ARRAY<BIGINT>", pa.array([[1], [2]], pa.large_list(pa.int64())), [[1], [2]]),
    ("ARRAY<ANY>", pa.array([[1], None]), [[1], None]),
    ("ARRAY<DATE>", pa.array([["2026-01-31"]]), [[dt.date(2026, 1, 31)]]),
    (
        "ARRAY<STRUCT<key: STRING, value: INT>>",
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        [[{"key": "a", "value": 1}]],
    ),
    ("STRUCT<x: INT, y: STRING>", pa.array([{"y": "a"}, None]), [{"x": None, "y": "a"}, None]),
]


@pytest.mark.parametrize(("sql", "column", "kept"), ARROW)
def test_arrow_columns_conform(sql, column, kept):
    schema = Schema.parse(f"x {sql}")
    table, _ = ingest(schema, pa.table({"x": column}))
    table.validate(full=True)
    assert table.schema.equals(schema.arrow)
    assert to_rows(schema, table) == [(v,) for v in kept]
    later = pa.table({"x": pa.concat_arrays([column, column])}).slice(len(column))
    assert to_rows(schema, ingest(schema, later)[0]) == [(v,) for v in kept]


@example((DOUBLE, [1.5, 1.7129679458928375e-55]))
@example((STRING, ["0", "3e-55"]))
@given(fixed_types.flatmap(lambda of: st.tuples(st.just(of), st.lists(cells(Field("x", of)), max_size=5))))
def test_arrow_and_python_agree_on_decimals_and_floats(pair):
    of, found = pair
    column = pa.array([None if v is None else v for v in found], of.arrow)
    for target in (Decimal(38, 10), DOUBLE, Decimal(18, 2)):
        schema = Schema([Field("x", target)])
        outcomes = []
        for data in (pa.table({"x": column}), [(v,) for v in column.to_pylist()]):
            try:
                outcomes.append(str(to_rows(schema, ingest(schema, data)[0])))
            except EverviewError as error:
                outcomes.append(type(error).__name__)
        assert outcomes[0] == outcomes[1], (of, target)


def test_any_columns_take_any_type():
    for column in (pa.array([dt.date(2026, 1, 1)]), pa.array([[{"a": 1}]]), pa.array([D("1.5")])):
        of = type_of_arrow(column.type)
        schema = Schema([Field("x", ANY)])
        table, _ = ingest(schema, pa.table({"x": column}))
        assert table.num_rows == 1, of


def test_symbols_are_not_strings_in_any():
    schema = Schema([Field("x", ANY), Field("y", Array(ANY))])
    rows = [("a", ["a"]), (Symbol("a"), [Symbol("a")]), (Id("a"), [Id("a")]), (KEPT, [KEPT])]
    d = Dictionary()
    words = encode_rows(schema, rows, d)
    assert len(np.unique(words[:, :2], axis=0)) == len(np.unique(words[:, 2])) == 4
    assert KEY.kind in words[:, 0]


NANOS = np.datetime64("2026-01-01T00:00:00.123456789", "ns")


@pytest.mark.parametrize(
    "data",
    [
        [(1, NANOS)],
        [(1, pd.Timestamp(NANOS))],
        [{"id": 1, "at": pd.Timestamp(NANOS, tz="UTC")}],
        pa.table({"id": [1], "at": pa.array([NANOS], pa.timestamp("ns"))}),
        pa.table({"id": [1], "at": pa.array([NANOS], pa.timestamp("ns")).cast(pa.timestamp("ns", "UTC"))}),
        pa.table({"id": [1], "at": pa.array([NANOS], pa.timestamp("ns")).dictionary_encode()}),
        pa.table({"id": [1], "at": ["2026-01-01 00:00:00.123456789"]}),
        pd.DataFrame({"id": [1], "at": [pd.Timestamp(NANOS)]}),
        pl.DataFrame({"id": [1], "at": [1_767_225_600_123_456_789]}).cast({"at": pl.Datetime("ns")}),
    ],
)
@pytest.mark.parametrize("of", ["TIMESTAMP", "DATE", "ARRAY<TIMESTAMP>"])
def test_nanoseconds_are_never_cut_off(data: object, of: str) -> None:
    with pytest.raises(WrongType):
        ingest(Schema.parse(f"id BIGINT, at {of}"), data)
    if of == "TIMESTAMP":
        with pytest.raises(WrongType, match=r'column "at", rows\[0\]: .*123456789.* is finer than a microsecond'):
            ingest(Schema.parse(f"id BIGINT, at {of}"), data)


@pytest.mark.parametrize("of", [np.datetime64, pd.Timestamp])
def test_nanoseconds_that_are_whole_microseconds_are_kept(of: type) -> None:
    at = np.datetime64("2026-01-01T00:00:00.123456", "ns")
    schema = Schema.parse("at TIMESTAMP, moments ARRAY<TIMESTAMP>")
    exact = [(dt.datetime(2026, 1, 1, 0, 0, 0, 123456, dt.UTC),) * 2]
    (row,) = ingest(schema, [(of(at), [of(at)])])[0].to_pylist()
    assert [(row["at"], row["moments"][0])] == exact
    column = pa.array([at, None], pa.timestamp("ns"))
    found = ingest(Schema.parse("at TIMESTAMP"), pa.table({"at": column}))[0].column(0).to_pylist()
    assert found == [exact[0][0], None]


@pytest.mark.parametrize("nothing", [pd.NaT, np.datetime64("NaT"), np.datetime64("NaT", "ns")])
def test_not_a_time_is_null(nothing: object) -> None:
    with ev.connect() as db:
        db.sql("CREATE TABLE t (a BIGINT NOT NULL, at TIMESTAMP)")
        db.apply({"t": [((1, nothing), 1)]})
        assert db.table("t").rows() == [(1, None)]
        db.sql("CREATE TABLE u (at TIMESTAMP NOT NULL)")
        with pytest.raises(NullNotAllowed):
            db.apply({"u": [((nothing,), 1)]})
