"""Changes coded by Spark: the JVM and its tasks give the words that `encode` gives on the driver."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as hs
from pyspark import cloudpickle
from pyspark.sql import functions as F

from codes.strategies import rows as rows_in
from everview.codes import Dictionary, Entries, encode, ingest
from everview.errors import CodeCollision, NullNotAllowed
from everview.kernels.xxh64 import hash_bytes
from everview.operators.exchange import Exchange
from everview.operators.operator import ByKey, Layout
from everview.runtimes.spark import coding as module
from everview.runtimes.spark.coding import Coding, coded
from everview.runtimes.spark.wire import Row, RowKind, error_of, from_batches, matrix_of, unpack_entries
from everview.types import STRING, Schema, Symbol

SHARDS, PARTITIONS = 5, 2
LEAST, MOST = -(2**63), 2**63 - 1
WIDE = decimal.Decimal(10**38 - 1)
AT = dt.datetime(2024, 2, 29, 12, 30, 15, 123456, dt.UTC)

# A column of each type: its values, all of which are met beside each other.
COLUMNS: dict[str, list[Any]] = {
    "a BOOLEAN": [True, False],
    "b TINYINT": [-128, 127, 0],
    "c SMALLINT": [-(2**15), 2**15 - 1],
    "d INT": [-(2**31), 2**31 - 1],
    "e BIGINT": [LEAST, MOST, -1],
    "f FLOAT": [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5],
    "g DOUBLE": [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -1e308],
    "h DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1)],
    "i TIMESTAMP": [AT, dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC), dt.datetime(1, 1, 2, tzinfo=dt.UTC)],
    "j DECIMAL(12,2)": [decimal.Decimal("9999999999.99"), decimal.Decimal("-0.01")],
    "j0 DECIMAL(18,0)": [decimal.Decimal(10**18 - 1), decimal.Decimal(1 - 10**18)],
    "j9 DECIMAL(18,18)": [decimal.Decimal(10**18 - 1).scaleb(-18), decimal.Decimal(1 - 10**18).scaleb(-18)],
    "k DECIMAL(38,0)": [WIDE, WIDE.copy_negate(), decimal.Decimal(0), decimal.Decimal(2**64), decimal.Decimal(-1)],
    "l STRING": ["", "a", "ä日本\U0001f600", "a\0b", "x" * 100],
    "m BINARY": [b"", b"\0", b"\xff" * 40],
    "n ARRAY<STRING>": [[], ["a", None], ["a"], [""]],
    "o STRUCT<x: INT, y: STRING>": [{"x": None, "y": None}, {"x": 1, "y": "ß"}],
    "p ARRAY<STRUCT<x: DOUBLE>>": [[{"x": math.nan}, None], [{"x": -0.0}]],
}


def rows_of(frame: Any) -> list[Row]:
    return list(from_batches(frame.toArrow().to_batches()))


def cells(rows: list[Row], shard: int | None = None) -> Counter[tuple[int, ...]]:
    found = [matrix_of(row) for row in rows if row.kind == RowKind.CELL and shard in (None, row.shard)]
    return Counter(tuple(line) for matrix in found for line in matrix.tolist())


def entries_of(rows: list[Row], kind: RowKind = RowKind.NEW) -> list[Entries]:
    return [unpack_entries(row.payload) for row in rows if row.kind == kind]


def loaded(rows: list[Row]) -> Dictionary:
    dictionary = Dictionary()
    for entries in entries_of(rows):
        dictionary.load(entries)
    return dictionary


def contents(dictionary: Dictionary) -> set[tuple[int, int, bytes]]:
    e = dictionary.export()
    bounds = e.offsets.tolist()
    return {(int(e.kinds[i]), int(e.codes[i]), e.data[bounds[i] : bounds[i + 1]].tobytes()) for i in range(len(e))}


def table_of(schema: Schema) -> pa.Table:
    """Every value of every column beside others, and NULL where it may be."""
    columns: list[Any] = []
    for at, (f, values) in enumerate(zip(schema.fields, COLUMNS.values(), strict=True)):
        shown = [*values, None] if f.nullable else values
        columns.append(pa.array([shown[(row + at) % len(shown)] for row in range(60)], f.type.arrow))
    return pa.Table.from_arrays(columns, schema=schema.arrow)


def changed(spark: Any, table: pa.Table) -> Any:
    frame = spark.createDataFrame(table)
    return frame.withColumns(
        {"_weight": F.lit(2).cast("bigint"), "_order": F.lit(7).cast("bigint"), "_arrival": F.lit(8).cast("bigint")}
    )


@pytest.mark.parametrize("required", ["", " NOT NULL"])
@pytest.mark.parametrize("keyed", [False, True])
def test_all_types_as_on_the_driver(spark, required, keyed):
    schema = Schema.parse(", ".join(column + required for column in COLUMNS))
    table = table_of(schema)
    partition = tuple(range(len(schema)))
    coding = Coding(3, schema, partition, SHARDS, PARTITIONS, keyed=keyed)
    rows = rows_of(coded(changed(spark, table).repartition(3), coding))
    dictionary = Dictionary()
    words = encode(schema, table, dictionary)
    extra = np.array([[7, 8, 2] if keyed else [2]] * len(words), np.int64)
    matrix = np.ascontiguousarray(np.hstack([words, extra]))
    assert {row.node for row in rows if row.kind == RowKind.CELL} == {3}
    for shard, part in enumerate(Exchange(Layout(schema), ByKey(partition)).split(matrix, SHARDS)):
        found = cells(rows, shard)
        if keyed:  # a task numbers the rows itself
            found = Counter((*line[:-2], 8, line[-1]) for line in found.elements())
        assert found == Counter(tuple(line) for line in part.tolist())
    if keyed:
        assert len({line[-2] for line in cells(rows)}) == len(words)
    assert contents(loaded(rows)) == contents(dictionary)


KINDS = (
    *("BOOLEAN", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP"),
    *("DECIMAL(18,3)", "DECIMAL(30,5)", "STRING", "BINARY"),
)
ANY_SCHEMA = Schema.parse(", ".join(f"c{at} {kind}" for at, kind in enumerate([*KINDS, "ARRAY<STRING>"])))


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=rows_in(ANY_SCHEMA, max_size=20), partition=hs.sets(hs.integers(0, len(KINDS)), min_size=1))
def test_any_rows_as_on_the_driver(spark, data, partition):
    table, _ = ingest(ANY_SCHEMA, data)
    coding = Coding(0, ANY_SCHEMA, tuple(partition), SHARDS, PARTITIONS)
    rows = rows_of(coded(changed(spark, table), coding))
    dictionary = Dictionary()
    words = encode(ANY_SCHEMA, table, dictionary)
    assert cells(rows) == Counter((*line, 2) for line in words.tolist())
    assert contents(loaded(rows)) == contents(dictionary)


def test_shards_are_those_of_the_key(spark):
    schema = Schema.parse("name STRING, id BIGINT, day DATE")
    frame = spark.range(1000).selectExpr(
        "concat('n', id % 7) AS name",
        "IF(id % 5 = 0, NULL, id % 11) AS id",
        "date_from_unix_date(0) AS day",
        "1L AS _weight",
    )
    for partition in ((0,), (1,), (1, 0)):
        rows = rows_of(coded(frame, Coding(0, schema, partition, SHARDS, PARTITIONS)))
        assert sum(cells(rows).values()) == 1000
        for row in rows:
            if row.kind == RowKind.CELL:
                parts = Exchange(Layout(schema), ByKey(partition)).split(matrix_of(row), SHARDS)
                assert [len(part) > 0 for part in parts] == [shard == row.shard for shard in range(SHARDS)]


def test_without_fields_rows_go_anywhere(spark):
    frame = spark.range(100).selectExpr("id", "1L AS _weight").coalesce(1)
    coding = Coding(0, Schema.parse("id BIGINT NOT NULL"), (), SHARDS, PARTITIONS)
    rows = rows_of(coded(frame, coding))
    assert [sum(cells(rows, shard).values()) for shard in range(SHARDS)] == [20] * SHARDS


def test_special_types_are_hashed_too(spark):
    schema = Schema.parse("s SYMBOL, i ID")
    frame = spark.createDataFrame([("a", "n1"), (None, None)], "s STRING, i STRING").selectExpr("*", "1L AS _weight")
    dictionary = Dictionary()
    words = encode(schema, pa.table({"s": ["a", None], "i": ["n1", None]}), dictionary)
    rows = rows_of(coded(frame, Coding(0, schema, (0,), SHARDS, PARTITIONS)))
    assert cells(rows) == Counter((*line, 1) for line in words.tolist())
    assert contents(loaded(rows)) == contents(dictionary)
    assert loaded(rows).export().kinds.tolist() != [STRING.kind] * 2
    assert Symbol("a") != "a"


def test_values_go_to_every_task_if_they_are_read_there(spark):
    frame = spark.createDataFrame([("a", 1), ("b", 1), ("a", 1)], "s STRING, _weight BIGINT").coalesce(1)
    schema = Schema.parse("s STRING")
    for broadcast in (False, True):
        rows = rows_of(coded(frame, Coding(0, schema, (0,), SHARDS, PARTITIONS, broadcast=broadcast)))
        (entries,) = entries_of(rows)
        assert len(entries) == 2
        sent = [row.shard for row in rows if row.kind == RowKind.ENTRIES]
        assert sent == (list(range(PARTITIONS)) if broadcast else [])


def test_bad_rows_are_left_out(spark):
    frame = spark.createDataFrame([("a", 1, None), ("b", 1, "bad")], "s STRING, _weight BIGINT, _reason STRING")
    rows = rows_of(coded(frame, Coding(0, Schema.parse("s STRING"), (0,), SHARDS, PARTITIONS)))
    assert sum(cells(rows).values()) == 1
    assert len(loaded(rows)) == 1


def test_no_rows_at_all(spark):
    frame = spark.createDataFrame([], "s STRING, a ARRAY<INT>, _weight BIGINT")
    assert rows_of(coded(frame, Coding(0, Schema.parse("s STRING, a ARRAY<INT>"), (0,), SHARDS, PARTITIONS))) == []


def test_a_mistake_is_a_row(spark):
    frame = spark.createDataFrame([(None, 1)], "i INT, _weight BIGINT")
    (row,) = rows_of(coded(frame, Coding(0, Schema.parse("i INT NOT NULL"), (0,), SHARDS, PARTITIONS)))
    assert row.kind == RowKind.ERROR
    assert isinstance(error_of(row), NullNotAllowed)


# -- collisions


def colliding(offsets: np.ndarray[Any, Any], data: np.ndarray[Any, Any], seed: int) -> np.ndarray[Any, Any]:
    """As if "one" and "two" had the hash of "one"."""
    found = hash_bytes(offsets, data, seed)
    if seed == 42:
        one = int(hash_bytes(np.array([0, 3]), np.frombuffer(b"one", np.uint8), 42)[0])
        two = int(hash_bytes(np.array([0, 3]), np.frombuffer(b"two", np.uint8), 42)[0])
        found[found == two] = one
    return found


def test_values_of_one_hash_are_told(monkeypatch):
    """A task that meets both says so: other tasks would give either of them the code."""
    monkeypatch.setattr(module, "Dictionary", lambda: Dictionary(colliding))
    coding = Coding(0, Schema.parse("s STRING"), (0,), SHARDS, PARTITIONS)
    values = module._Values(coding, None)
    values.take(STRING.kind, pa.array([b"one", b"two", b"one", None]))
    with pytest.raises(CodeCollision, match="have one hash: b'two'"):
        values.entries()


def test_exceptions_have_their_own_codes(spark):
    """A value that is known to have another code has it in rows and among the entries."""
    data = np.frombuffer(b"onetwo", np.uint8)
    taken, other = (int(hash_bytes(np.array([0, 3]), data[3:], seed)[0]) for seed in (42, 43))
    codes, kinds = np.array([taken, other]), np.array([STRING.kind] * 2)
    exceptions = Entries(codes, kinds, np.array([0, 3, 6]), data, np.array([0, 1], np.uint8))
    frame = spark.createDataFrame([(s, 1) for s in ("two", "three", None)], "s STRING, _weight BIGINT")
    coding = Coding(0, Schema.parse("s STRING"), (0,), SHARDS, PARTITIONS)
    rows = rows_of(coded(frame, coding, exceptions))
    three = Dictionary().intern(STRING, pa.array(["three"])).tolist()[0]
    assert cells(rows) == Counter([(other, 1), (three, 1), (LEAST, 1)])
    assert (STRING.kind, other, b"two") in contents(loaded(rows))


def test_a_coding_travels():
    coding = Coding(1, Schema.parse("a STRING, b BIGINT"), (0,), 8, 2, keyed=True, broadcast=True)
    assert coding.meta == ("_order", "_weight")
    assert cloudpickle.loads(cloudpickle.dumps(coding)) == coding
