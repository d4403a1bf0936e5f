"""Kafka topics as sources, on a real broker: values in JSON and Avro, keys, tombstones, Debezium's envelope."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from documented import run_page
from everview.errors import SourceError
from everview.spark import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

VIEW = "CREATE MATERIALIZED VIEW v AS SELECT owner, SUM(amount) AS total FROM account GROUP BY owner"
COLUMNS = "id BIGINT NOT NULL, owner STRING, amount BIGINT"
LONG, TEXT = "long", ["null", "string"]


def record_of(**fields: Any) -> str:
    """An Avro schema."""
    told = [{"name": name, "type": type_} for name, type_ in fields.items()]
    return json.dumps({"type": "record", "name": "account", "fields": told})


KEY = record_of(id=LONG, owner=TEXT)
SCHEMA, OLDER = record_of(id=LONG, owner=TEXT, amount=LONG), record_of(id=LONG, amount=LONG)
Record = tuple[bytes | None, bytes | None]  # a key and a value


@pytest.fixture
def topic() -> str:
    return f"t-{uuid4().hex}"


def send(kafka: str, topic: str, *records: Record) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 0})
    for key, value in records:
        producer.produce(topic, value=value, key=key)
    assert producer.flush(30) == 0


def pipeline(spark: SparkSession, state: Path, kafka: str, topic: str, **said: Any) -> Pipeline:
    p = Pipeline(spark, state / "state", place="driver", shards=2, bad_rows=said.pop("bad_rows", None))
    options = {"kafka.bootstrap.servers": kafka, "subscribe": topic, **said.pop("options", {})}
    p.source("account", format="kafka", options=options, **said)
    p.sql(VIEW)
    return p


def held(p: Pipeline) -> dict[str, int]:
    p.refresh()
    return {row.owner: row.total for row in p.view("v").collect()}


def as_json(id_: int, owner: str | None, amount: int) -> Record:
    return json.dumps({"id": id_}).encode(), json.dumps({"id": id_, "owner": owner, "amount": amount}).encode()


def test_upserts_and_tombstones_by_key_and_what_is_no_json(
    spark: SparkSession, kafka: str, topic: str, tmp_path: Path
) -> None:
    send(kafka, topic, as_json(1, "Ada", 5), as_json(2, "Bob", 7), as_json(1, "Ada", 6), (b'{"id": 2}', b"{what"))
    with pipeline(spark, tmp_path, kafka, topic, schema=COLUMNS, key="id", changes="upsert") as p:
        assert held(p) == {"Ada": 6, "Bob": 7}
        bad = p.quarantined().collect()
        assert [(row.source, row.raw) for row in bad] == [("account", "{what")]
        send(kafka, topic, (b'{"id": 2}', None), as_json(3, "Cyd", 1), (b"3", None), (b'{"payload": {"id": 9}}', None))
        assert held(p) == {"Ada": 6}
        assert p.verify()


def test_a_key_of_text_and_a_record_without_a_value_that_deletes_nothing(
    spark: SparkSession, kafka: str, topic: str, tmp_path: Path
) -> None:
    text = {"key.format": "text"}
    send(kafka, topic, (b"1", as_json(1, "Ada", 5)[1]), (b"2", as_json(2, "Bob", 5)[1]), (b"1", None))
    with pipeline(spark, tmp_path / "a", kafka, topic, schema=COLUMNS, key="id", changes="upsert", options=text) as p:
        assert held(p) == {"Bob": 5}
    with pipeline(spark, tmp_path / "b", kafka, topic, schema=COLUMNS) as p:
        assert held(p) == {"Ada": 5, "Bob": 5}
        assert [row.raw for row in p.quarantined().collect()] == ["a record without a value"]


@pytest.mark.parametrize("wrapped", [False, True])
def test_debezium(spark: SparkSession, kafka: str, topic: str, tmp_path: Path, wrapped: bool) -> None:
    row = f"STRUCT<{COLUMNS}>"
    envelope = f"before {row}, after {row}, op STRING, ts_ms BIGINT"
    schema = f"payload STRUCT<{envelope}>" if wrapped else envelope

    def event(op: str, before: Any, after: Any) -> Record:
        told = {"before": before, "after": after, "op": op, "ts_ms": 7}
        key = json.dumps({"id": (after or before)["id"]}).encode()
        return key, json.dumps({"schema": {}, "payload": told} if wrapped else told).encode()

    ada, bob = {"id": 1, "owner": "Ada", "amount": 5}, {"id": 2, "owner": "Bob", "amount": 7}
    send(kafka, topic, event("r", None, ada), event("c", None, bob), event("u", ada, ada | {"amount": 6}))
    with pipeline(spark, tmp_path, kafka, topic, schema=schema, key="id", changes="cdc") as p:
        assert held(p) == {"Ada": 6, "Bob": 7}
        gone = event("d", bob, None)
        send(kafka, topic, gone, (gone[0], None))
        assert held(p) == {"Ada": 6}


def test_operations_beside_the_row(spark: SparkSession, kafka: str, topic: str, tmp_path: Path) -> None:
    def event(what: str, record: Record) -> Record:
        assert record[1] is not None
        return record[0], json.dumps(json.loads(record[1]) | {"what": what}).encode()

    send(kafka, topic, event("insert", as_json(1, "Ada", 5)), event("insert", as_json(2, "Bob", 7)))
    said = {"schema": f"{COLUMNS}, what STRING", "key": "id", "changes": "cdc", "op": "what"}
    with pipeline(spark, tmp_path, kafka, topic, **said) as p:
        assert held(p) == {"Ada": 5, "Bob": 7}
        send(kafka, topic, event("delete", as_json(1, "Ada", 5)), (b'{"id": 2}', None))
        assert held(p) == {}


def test_avro_plain_and_by_the_schemas_of_a_registry(
    spark: SparkSession, kafka: str, topic: str, tmp_path: Path
) -> None:
    new = [avro(spark, SCHEMA, id=n, owner=owner, amount=n) for n, owner in ((1, "Ada"), (2, "Bob"))]
    send(kafka, topic, *((b"%d" % n, value) for n, value in enumerate(new, 1)), (b"9", b"\x01"), (b"1", None))
    options = {"value.format": "avro", "value.schema": SCHEMA, "key.format": "text"}
    with pipeline(spark, tmp_path / "a", kafka, topic, key="id", changes="upsert", options=options) as p:
        assert held(p) == {"Bob": 2}
        assert [row.raw for row in p.quarantined().collect()] == ["AQ=="]
    framed = f"{topic}-framed"
    older = avro(spark, OLDER, id=3, amount=30)
    send(
        kafka,
        framed,
        (b"1", b"\0\0\0\1\x02" + new[0]),
        (b"3", b"\0\0\0\0\x07" + older),
        (b"4", b"\0\0\0\0\x08" + older),
    )
    options = {"value.format": "avro", "value.schemas": json.dumps({7: OLDER, 258: SCHEMA}), "key.format": "text"}
    with pipeline(spark, tmp_path / "b", kafka, framed, key="id", changes="upsert", options=options) as p:
        assert held(p) == {"Ada": 1, None: 30}
        assert p.quarantined().count() == 1  # its schema is not known


def test_keys_in_avro(spark: SparkSession, kafka: str, topic: str, tmp_path: Path) -> None:
    """A tombstone deletes the row of its key, of two columns; one with a key that is not Avro is set aside."""

    def key(id_: int, owner: str) -> bytes:
        return avro(spark, KEY, id=id_, owner=owner)

    rows = (1, "Ada", 5), (1, "Bob", 7), (2, "", 1)
    values = [json.dumps(dict(zip(("id", "owner", "amount"), row, strict=True))).encode() for row in rows]
    send(kafka, topic, *((key(*row[:2]), value) for row, value in zip(rows, values, strict=True)))
    options = {"key.format": "avro", "key.schema": KEY}
    said: dict[str, Any] = {"schema": COLUMNS, "key": ["id", "owner"], "changes": "upsert", "options": options}
    with pipeline(spark, tmp_path, kafka, topic, bad_rows="quarantine", **said) as p:
        assert held(p) == {"Ada": 5, "Bob": 7, "": 1}
        send(kafka, topic, (key(1, "Bob"), None), (key(2, ""), None), (b"\x01", None))
        assert held(p) == {"Ada": 5}
        assert p.quarantined().count() == 1
        assert p.verify()


def avro(spark: SparkSession, schema: str, **row: Any) -> bytes:
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import to_avro

    kinds = {"id": "BIGINT", "owner": "STRING", "amount": "BIGINT"}
    given = f.struct(*(f.lit(value).cast(kinds[name]).alias(name) for name, value in row.items()))
    return bytes(spark.range(1).select(to_avro(given, schema).alias("b")).collect()[0].b)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"schema": COLUMNS, "options": {"subscribe": "t"}}, "no broker is named"),
        ({"schema": COLUMNS, "options": {"kafka.bootstrap.servers": "h:1"}}, "no topic is named"),
        ({"options": {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}}, "the columns of its values are missing"),
        (
            {"schema": COLUMNS, "options": {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "value.format": "xml"}},
            'value.format cannot be "xml"',
        ),
        (
            {"schema": COLUMNS, "stream": False, "options": {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}},
            "a topic is followed",
        ),
        (
            {"options": {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "value.format": "avro"}},
            "the Avro schema of its values is missing",
        ),
    ],
)
def test_what_no_topic_is(spark: SparkSession, tmp_path: Path, said: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        Pipeline(spark, tmp_path / "state").source("account", format="kafka", **said)


def test_the_page(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    send(kafka, "accounts", as_json(1, "Ada", 5), as_json(2, "Ada", 7), as_json(3, "Bob", 1))
    with run_page("how-to/kafka.md", spark=spark, broker=kafka, state=tmp_path / "state")["p"] as p:
        p.refresh()
    options = {"kafka.bootstrap.servers": kafka, "subscribe": "held"}
    with Pipeline(spark, tmp_path / "reader", place="driver", shards=2) as p:
        said = {"schema": "owner STRING NOT NULL, total BIGINT", "key": "owner", "changes": "upsert"}
        p.source("held", format="kafka", options=options, **said)
        p.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM held")
        p.refresh()
        assert sorted(tuple(row) for row in p.view("v").collect()) == [("Ada", 12), ("Bob", 1)]
