"""What arrives from Spark: every style of changes in one shape, and every bad row with its reason."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest

from everview.errors import EverviewError, SchemaDrift, SchemaError, SourceError, UnknownName
from everview.spark.changes import normalized
from everview.spark.combined import arrived, combined, only, split
from everview.spark.spec import META, SourceSpec, check_drift, schema_of, spec_of
from everview.types import Schema

UTC = dt.UTC


def changes(frame: Any, **said: Any) -> list[tuple[Any, ...]]:
    """The values and weights of good rows, in the order in which they are to be applied."""
    spec = spec_of("s", frame, **said)
    rows = normalized(frame, spec).orderBy("_order", "_arrival").collect()
    return [(*row[: len(spec.schema)], row["_weight"]) for row in rows if row["_reason"] is None]


def reasons(frame: Any, **said: Any) -> list[str | None]:
    """Why each row is bad, None where it is good."""
    rows = normalized(frame, spec_of("s", frame, **said)).select("_reason", "_raw").collect()
    assert all((row["_reason"] is None) == (row["_raw"] is None) for row in rows)
    return [row["_reason"] for row in rows]


def refusal(expected: type[EverviewError], frame: Any, **said: Any) -> str:
    with pytest.raises(expected) as found:
        spec_of("s", frame, **said)
    assert type(found.value) is expected
    assert found.value.hint
    return found.value.message


# -- schemas


def test_the_schema_of_a_frame(spark):
    ddl = (
        "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT NOT NULL, f FLOAT, g DOUBLE, h DATE, i TIMESTAMP, "
        "j TIMESTAMP_NTZ, k STRING, l BINARY, m DECIMAL(20,3), n ARRAY<STRING>, o STRUCT<x: INT NOT NULL, y: STRING>, "
        "p MAP<STRING, INT>, q VARIANT, r INTERVAL DAY TO SECOND, s INTERVAL YEAR TO MONTH, t ARRAY<VARIANT>"
    )
    expected = (
        "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT NOT NULL, f FLOAT, g DOUBLE, h DATE, i TIMESTAMP, "
        "j TIMESTAMP, k STRING, l BINARY, m DECIMAL(20,3), n ARRAY<STRING>, o STRUCT<x: INT NOT NULL, y: STRING>, "
        "p MAP<STRING, INT>, q VARIANT, r INTERVAL DAY TO SECOND, s INTERVAL YEAR TO MONTH, t ARRAY<VARIANT>"
    )
    frame = spark.createDataFrame([], ddl)
    assert schema_of(frame) == Schema.parse(expected)
    assert schema_of(frame, ["k", "e"]) == Schema.parse("k STRING, e BIGINT NOT NULL")
    with pytest.raises(UnknownName):
        schema_of(frame, ["nope"])


def test_a_type_that_nothing_here_holds_is_named(spark):
    with pytest.raises(SchemaError, match='"odd"'):
        schema_of(spark.sql("SELECT NULL AS odd"))


# -- definitions


def test_definitions_that_cannot_be(spark):
    frame = spark.createDataFrame([], "id INT, at TIMESTAMP, amount DOUBLE, note STRING, _weight STRING")
    plain = frame.drop("_weight")
    assert "merge" in refusal(SourceError, plain, changes="merge")
    assert "needs a key" in refusal(SourceError, plain, changes="upsert")
    assert "needs a key" in refusal(SourceError, plain, changes="snapshot")
    assert not spec_of("t", plain, key="id").keyed  # rows that are added up may have a key: it does not matter
    assert '"nope"' in refusal(SourceError, plain, changes="upsert", key=["id", "nope"])
    assert "twice" in refusal(SourceError, plain, changes="upsert", key=["id", "id"])
    assert "needs a column" in refusal(SourceError, plain, changes="cdc", key="id")
    assert '"kind"' in refusal(SourceError, plain, changes="cdc", op="kind")
    assert "INT" in refusal(SourceError, plain, changes="cdc", op="id")
    assert "cdc" in refusal(SourceError, plain, op="note")
    assert '"_weight"' in refusal(SourceError, plain, changes="weights")
    assert "STRING" in refusal(SourceError, frame, changes="weights")
    assert '"when"' in refusal(SourceError, plain, changes="upsert", key="id", order="when")
    assert "DOUBLE" in refusal(SourceError, plain, changes="upsert", key="id", order="amount")
    assert "without a key" in refusal(SourceError, plain, order="at")
    assert '"_weight"' in refusal(SourceError, frame)
    assert "no columns" in refusal(SourceError, frame.select("note"), changes="cdc", op="note")
    assert "two columns" in refusal(SourceError, plain.selectExpr("id", "note AS ID"))


def test_columns_are_matched_to_a_schema_by_name(spark):
    frame = spark.createDataFrame(
        [(1, 2, 1.5, "x", decimal.Decimal("1.5"))], "extra INT, id INT, f FLOAT, s STRING, d DECIMAL(4,1)"
    )
    schema = Schema.parse("s STRING, id BIGINT NOT NULL, f DOUBLE, d DECIMAL(12,2)")
    assert changes(frame, schema=schema) == [("x", 2, 1.5, decimal.Decimal("1.50"), 1)]
    wide = normalized(frame, spec_of("s", frame, schema=schema))
    assert [f.dataType.simpleString() for f in wide.schema][:4] == ["string", "bigint", "double", "decimal(12,2)"]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ("c BIGINT", "INT"),
        ("c DOUBLE", "FLOAT"),
        ("c DATE", "TIMESTAMP"),
        ("c TIMESTAMP", "DATE"),
        ("c DECIMAL(12,2)", "DECIMAL(12,3)"),
        ("c DECIMAL(12,2)", "DOUBLE"),
        ("c BIGINT", "DECIMAL(18,0)"),
        ("c BIGINT", "DOUBLE"),
        ("c INT", "STRING"),
        ("c STRING", "BINARY"),
        ("c ARRAY<BIGINT>", "ARRAY<INT>"),
        ("c STRUCT<a: INT>", "STRUCT<b: INT>"),
    ],
)
def test_what_might_lose_a_value_is_refused(spark, found, wanted):
    frame = spark.createDataFrame([], found)
    message = refusal(SourceError, frame, schema=Schema.parse(f"c {wanted}"))
    sql = [schema["c"].type.sql for schema in (schema_of(frame), Schema.parse(f"c {wanted}"))]
    assert message == f'source "s": column "c" is {sql[0]}, not {sql[1]}'


def test_a_missing_column_is_named(spark):
    frame = spark.createDataFrame([], "id INT, nmae STRING")
    with pytest.raises(SourceError, match=r'"name" does not exist.*\n.*did you mean "nmae"'):
        spec_of("s", frame, schema=Schema.parse("id INT, name STRING"))


def test_drift(spark):
    spec = spec_of("s", spark.createDataFrame([], "id BIGINT, name STRING"), key="id", changes="upsert")
    check_drift(spark.createDataFrame([], "name STRING, more INT, id INT"), spec)
    for other in ("id BIGINT", "id BIGINT, name INT", "id DOUBLE, name STRING"):
        with pytest.raises(SchemaDrift, match="since the pipeline was started"):
            check_drift(spark.createDataFrame([], other), spec)
    row = "STRUCT<id: INT>"
    spec = spec_of("s", spark.createDataFrame([], f"before {row}, after {row}, op STRING"), changes="cdc")
    with pytest.raises(SchemaDrift, match="are gone"):
        check_drift(spark.createDataFrame([], "id INT, op STRING"), spec)


# -- styles


def test_append(spark):
    frame = spark.createDataFrame([(1, "a"), (1, "a"), (None, None)], "id INT, `odd name.` STRING")
    assert changes(frame) == [(1, "a", 1), (1, "a", 1), (None, None, 1)]


@pytest.mark.parametrize(
    ("kind", "early", "late", "step"),
    [
        ("INT", -5, 7, 12),
        ("DECIMAL(18,0)", decimal.Decimal(-5), decimal.Decimal(7), 12),
        ("DATE", dt.date(1969, 12, 31), dt.date(1970, 1, 2), 2),
        ("TIMESTAMP", dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), dt.datetime(1970, 1, 1, tzinfo=UTC), 1),
        ("TIMESTAMP_NTZ", dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1, 1), 3_600_000_001),
    ],
)
def test_upserts_are_in_the_order_of_a_column(spark, kind, early, late, step):
    frame = spark.createDataFrame([(1, late), (1, early), (2, None)], f"id INT, at {kind}")
    spec = spec_of("s", frame, key="id", changes="upsert", order="at")
    rows = normalized(frame, spec).collect()
    assert [row["_reason"] for row in rows] == [None, None, 'NULL in "at", by which changes are ordered']
    assert rows[0]["_order"] - rows[1]["_order"] == step
    assert [row["_weight"] for row in rows] == [1, 1, 1]


def test_of_one_order_the_last_to_arrive_is_last(spark):
    frame = spark.createDataFrame([(1, f"{i}") for i in range(100)], "id INT, name STRING").repartition(1)
    assert [name for _, name, _ in changes(frame, key="id", changes="upsert")] == [r.name for r in frame.collect()]


@pytest.mark.parametrize("kind", ["BIGINT", "TINYINT", "DOUBLE", "DECIMAL(30,2)"])
def test_weights(spark, kind):
    frame = spark.sql(f"SELECT id, CAST(w AS {kind}) AS w FROM VALUES (1, 2), (2, -3), (3, 0), (4, NULL) AS t(id, w)")
    assert changes(frame, changes="weights", weight="w") == [(1, 2), (2, -3), (3, 0)]
    assert reasons(frame, changes="weights", weight="w")[3] == "the weight is NULL, not a whole number of 64 bits"


@pytest.mark.parametrize("bad", ["1.5D", "1e30D", "CAST('NaN' AS DOUBLE)", "1.25", "99999999999999999999"])
def test_weights_that_are_none(spark, bad):
    (reason,) = reasons(spark.sql(f"SELECT 1 AS id, {bad} AS _weight"), changes="weights")
    assert reason is not None
    assert "not a whole number" in reason


OPERATIONS = [
    *((op, 1) for op in ("c", "r", "i", "insert", "READ", "+I", "u", "Update", "+U", "update_postimage")),
    *((op, None) for op in ("-U", "update_preimage", "ub")),
    *((op, -1) for op in ("d", "DELETE", "-D", "x", " d ")),
]


def test_operations_by_key(spark):
    frame = spark.createDataFrame(
        [(i, "n", op) for i, (op, _) in enumerate(OPERATIONS)], "id INT, name STRING, op STRING"
    )
    found = changes(frame, changes="cdc", key="id")
    assert found == [(i, "n" if w > 0 else None, w) for i, (_, w) in enumerate(OPERATIONS) if w is not None]


def test_operations_without_a_key(spark):
    frame = spark.createDataFrame([(i, op) for i, (op, _) in enumerate(OPERATIONS)], "id INT, what STRING")
    found = changes(frame, changes="cdc", op="what")
    assert found == [(i, -1 if w is None else w) for i, (_, w) in enumerate(OPERATIONS)]


def test_unknown_operations(spark):
    frame = spark.createDataFrame([(1, "z"), (2, None), (3, "")], "id INT, op STRING")
    expected = ["unknown operation 'z'", "no operation: it is NULL", "unknown operation ''"]
    assert reasons(frame, changes="cdc") == expected
    assert reasons(frame, changes="cdc", key="id") == expected


def test_the_change_feed_of_a_table_format(spark):
    frame = spark.createDataFrame(
        [(1, "a", "insert", 7), (1, "a", "update_preimage", 8), (1, "b", "update_postimage", 8), (1, "b", "delete", 9)],
        "id INT, name STRING, _change_type STRING, _commit_version BIGINT",
    )
    spec = spec_of("s", frame, changes="cdc", key="id")
    assert (spec.op, spec.order, spec.schema.names) == ("_change_type", "_commit_version", ("id", "name"))
    assert changes(frame, changes="cdc", key="id") == [(1, "a", 1), (1, "b", 1), (1, None, -1)]
    assert changes(frame, changes="cdc") == [(1, "a", 1), (1, "a", -1), (1, "b", 1), (1, "b", -1)]


def test_only_the_key_of_a_delete_counts(spark):
    columns = (
        "id INT, b BOOLEAN, i SMALLINT, l BIGINT, f FLOAT, d DECIMAL(20,2), t TIMESTAMP, n TIMESTAMP_NTZ, day DATE, "
        "s STRING, y BINARY, a ARRAY<INT>, m MAP<STRING, INT>, r STRUCT<x: INT, z: ARRAY<STRING>>"
    )
    frame = spark.createDataFrame([(1, *[None] * 13, "d")], f"{columns}, op STRING")
    loose = schema_of(frame.drop("op"))
    strict = Schema.parse(", ".join(f"{f} NOT NULL" for f in loose))
    (row,) = changes(frame, changes="cdc", key="id", schema=strict)
    assert row[0] == 1
    assert row[-1] == -1
    assert None not in row
    assert changes(frame, changes="cdc", key="id") == [(1, *[None] * 13, -1)]
    put = frame.drop("op").selectExpr("*", "'c' AS op")
    assert reasons(put, changes="cdc", key="id", schema=strict) == ['NULL in column "b", which is NOT NULL']


def test_bad_rows(spark):
    frame = spark.createDataFrame(
        [(1, None, "d"), (None, "x", "u"), (None, "x", "d")], "id INT, name STRING, op STRING"
    )
    no_key = 'NULL in key column "id"'
    assert reasons(frame, changes="cdc", key="id") == [None, no_key, "a delete without the values of its key"]
    assert reasons(frame.drop("op"), changes="upsert", key=["name", "id"])[:2] == ['NULL in key column "name"', no_key]
    required = Schema.parse("id INT NOT NULL, name STRING NOT NULL")
    assert reasons(frame, schema=required)[0] == 'NULL in column "name", which is NOT NULL'
    (raw, *_) = normalized(frame, spec_of("s", frame, schema=required)).collect()
    assert raw["_raw"] == '{"id":1,"op":"d"}'


def test_values_that_have_no_code_are_bad(spark):
    text = spark.sql("SELECT CAST(X'ff61' AS STRING) AS s")
    assert reasons(text) == ['column "s": text that is not UTF-8']
    time = spark.sql("SELECT timestamp_micros(CAST(-9223372036854775808 AS BIGINT)) AS t")
    assert reasons(time) == ['column "t": the least timestamp of all, which stands for NULL']


def test_null_deep_inside(spark):
    schema = Schema.parse("a ARRAY<STRUCT<x: INT NOT NULL>>, r STRUCT<y: STRUCT<z: INT NOT NULL>>")
    frame = spark.createDataFrame(
        [
            (None, None),
            ([None, (1,)], (None,)),
            ([(1,), (None,)], None),
            ([], ((None,),)),
        ],
        "a ARRAY<STRUCT<x: INT>>, r STRUCT<y: STRUCT<z: INT>>",
    )
    inside = 'NULL inside column "{}", where it is NOT NULL'
    assert reasons(frame, schema=schema) == [None, None, inside.format("a"), inside.format("r")]


def test_collations_do_not_change_what_is_equal(spark):
    frame = spark.sql("SELECT collate('A', 'UTF8_LCASE') AS s")
    (field, *_) = normalized(frame, spec_of("s", frame)).schema.fields
    assert field.dataType.simpleString() == "string"


# -- Debezium

ROW = "STRUCT<id: INT, name: STRING>"
EVENTS = [
    (None, (1, "a"), "c", 1),
    ((1, "a"), (1, "b"), "u", 2),
    (None, (2, "c"), "r", 3),
    ((2, "c"), (3, "c"), "u", 4),
    ((1, None), None, "d", 5),
    (None, None, None, None),
]
BAD = [
    (None, None, "d", 6),
    (None, None, "u", 6),
    (None, None, "t", 6),
    (None, (1, "a"), "q", 6),
    (None, (None, "a"), "c", 6),
    ((None, "a"), None, "d", 6),
]


def events(spark: Any, rows: Any, shape: str) -> Any:
    frame = spark.createDataFrame(rows, f"before {ROW}, after {ROW}, op STRING, ts_ms BIGINT")
    if shape == "columns":
        return frame
    whole = "named_struct('before', before, 'after', after, 'op', op, 'ts_ms', ts_ms)"
    return frame.selectExpr(f"IF(op IS NULL, NULL, {whole}) AS payload", "'s' AS schema")


@pytest.mark.parametrize("shape", ["columns", "payload"])
def test_envelopes(spark, shape):
    frame = events(spark, EVENTS, shape)
    assert changes(frame, changes="cdc", key="id") == [
        *[(1, "a", 1), (1, "b", 1), (2, "c", 1)],
        *[(2, None, -1), (3, "c", 1)],
        (1, None, -1),
    ]
    found = changes(frame, changes="cdc")
    assert sorted(found[:6]) == sorted([(1, "a", 1), (1, "a", -1), (1, "b", 1), (2, "c", 1), (2, "c", -1), (3, "c", 1)])
    assert found[6:] == [(1, None, -1)]


@pytest.mark.parametrize("shape", ["columns", "payload"])
def test_bad_envelopes(spark, shape):
    frame = events(spark, BAD, shape)
    assert reasons(frame, changes="cdc", key="id") == [
        "a delete without the values of its key",
        "an operation without the row after it",
        "a table was truncated, which says nothing of the rows it had",
        "unknown operation 'q'",
        'NULL in key column "id"',
        "a delete without the values of its key",
    ]
    no_before = "an operation without the row before it, in a source without a key"
    assert reasons(frame, changes="cdc")[:3] == [no_before, no_before, "an operation without the row after it"]


def test_the_order_of_events(spark):
    late = [((1, "a"), (1, "b"), "u", 2), (None, (1, "a"), "c", 1)]
    frame = events(spark, late, "columns")
    assert changes(frame, changes="cdc", key="id") == [(1, "a", 1), (1, "b", 1)]
    frame = frame.selectExpr("before", "after", "op", "named_struct('lsn', -ts_ms) AS source")
    assert changes(frame, changes="cdc", key="id", order="source.lsn") == [(1, "b", 1), (1, "a", 1)]
    assert changes(frame, changes="cdc", key="id", order="id") == [(1, "b", 1), (1, "a", 1)]
    assert '"nope"' in refusal(SourceError, frame, changes="cdc", key="id", order="nope")
    assert '"nope"' in refusal(SourceError, frame, changes="cdc", key="id", order="source.nope")


def test_an_envelope_matched_to_a_schema(spark):
    frame = events(spark, EVENTS, "columns")
    schema = Schema.parse("name STRING NOT NULL, id BIGINT NOT NULL")
    assert changes(frame, changes="cdc", key="id", schema=schema)[-1] == ("", 1, -1)
    assert 'NULL in column "name", which is NOT NULL' in reasons(frame, changes="cdc", schema=schema)


# -- all sources together


def sources(spark: Any) -> list[tuple[Any, SourceSpec]]:
    people = spark.createDataFrame([(1, "ada"), (None, "bob")], "id BIGINT, name STRING")
    nothing = spark.createDataFrame([], "x DOUBLE, r STRUCT<y: INT>")
    counted = spark.createDataFrame([("a", 2), ("b", -1), ("c", 3)], "word STRING, _weight INT")
    return [
        (people, spec_of("people", people, key="id", changes="upsert")),
        (nothing, spec_of("nothing", nothing)),
        (counted, spec_of("counted", counted, changes="weights")),
    ]


def test_combined_and_split(spark):
    frames = [normalized(frame, spec) for frame, spec in sources(spark)]
    parts = split(combined(frames).toArrow(), 3)
    assert [part.num_rows for part in parts] == [2, 0, 3]
    for part, frame in zip(parts, frames, strict=True):
        alone = frame.toArrow()
        assert part.column_names == alone.column_names
        same = [name for name in part.column_names if name != "_arrival"]
        assert part.select(same).to_pylist() == alone.select(same).to_pylist()
        arrivals = part.column("_arrival").to_pylist()
        assert arrivals == sorted(arrivals)
    assert only(combined(frames), 2).toArrow().to_pylist() == frames[2].toArrow().to_pylist()
    assert [part.num_rows for part in split(combined(frames).limit(0).toArrow(), 3)] == [0, 0, 0]


def test_a_stream_of_all_sources(spark, tmp_path):
    """One query over two file streams: each epoch has the rows of both, apart again on the driver."""
    said: list[dict[str, Any]] = [
        {"changes": "upsert", "key": "id", "order": "at"},
        {"changes": "cdc", "key": "id"},
    ]
    row = "STRUCT<id: BIGINT, name: STRING>"
    shapes = ["id BIGINT, at TIMESTAMP", f"before {row}, after {row}, op STRING, ts_ms BIGINT"]
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    spark.sql("SELECT 1L AS id, now() AS at UNION ALL SELECT NULL, now()").coalesce(1).write.parquet(paths[0])
    events(spark, EVENTS, "columns").selectExpr(
        f"CAST(before AS {row}) AS before", f"CAST(after AS {row}) AS after", "op", "ts_ms"
    ).coalesce(1).write.parquet(paths[1])
    streams = [spark.readStream.schema(shape).parquet(path) for shape, path in zip(shapes, paths, strict=True)]
    specs = [spec_of(f"s{i}", stream, **what) for i, (stream, what) in enumerate(zip(streams, said, strict=True))]
    whole = combined([normalized(stream, spec) for stream, spec in zip(streams, specs, strict=True)])
    found: list[list[pa.Table]] = []
    numbered: list[pa.Table] = []

    def take(batch: Any, _: int) -> None:
        found.append(split(batch.toArrow(), 2))
        numbered.append(only(arrived(batch), 1).toArrow())

    query = (
        whole.writeStream.outputMode("append")
        .foreachBatch(take)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert query.exception() is None
    ((people, others),) = found
    assert people.column_names == ["id", "at", *META]
    assert people.column("_reason").to_pylist() == [None, 'NULL in key column "id"']
    assert people.column("_raw").to_pylist()[1].startswith('{"at":')
    assert others.select(["id", "name", "_weight"]).to_pylist()[-1] == {"id": 1, "name": None, "_weight": -1}
    assert others.num_rows == 6
    arrivals = numbered[0].column("_arrival").to_pylist()
    assert len(set(arrivals)) == 6
    assert numbered[0].drop_columns(["_arrival"]).to_pylist() == others.drop_columns(["_arrival"]).to_pylist()
