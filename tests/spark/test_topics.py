"""Views to Kafka topics: each epoch once, whatever dies; without transactions, replays that can be told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from everview.errors import SinkError
from everview.spark import Pipeline, delivery
from everview.spark.keyed import by_key
from everview.spark.sinks import sink_of
from everview.spark.topics import TopicWriter
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEW = "CREATE MATERIALIZED VIEW v AS SELECT owner, SUM(amount) AS total FROM account GROUP BY owner"
COLUMNS = "id BIGINT NOT NULL, owner STRING, amount BIGINT"


def put(kafka: str, topic: str, *rows: tuple[int, str | None, int]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 0})
    for id_, owner, amount in rows:
        value = None if owner is None else json.dumps({"id": id_, "owner": owner, "amount": amount})
        producer.produce(topic, key=json.dumps({"id": id_}), value=value)
    assert producer.flush(30) == 0


def read(kafka: str, topic: str, level: str = "read_committed") -> list[tuple[int, int, Any, Any]]:
    """The records of a topic as consumers see them: epoch, number, key and value."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    settings = {"bootstrap.servers": kafka, "group.id": uuid4().hex, "isolation.level": level}
    consumer = Consumer(settings | {"enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in (0, 1)])
    ended, records = 0, []
    while ended < 2:
        message = consumer.poll(30)
        assert message is not None, "the broker does not answer"
        if message.error() is not None:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            ended += 1
            continue
        headers = {name: int(value) for name, value in message.headers()}
        told = [None if text is None else json.loads(text) for text in (message.key(), message.value())]
        records.append((headers["everview-epoch"], headers["everview-number"], *told))
    consumer.close()
    return sorted(records, key=lambda record: record[:2])


def latest(records: list[tuple[int, int, Any, Any]]) -> dict[str, int]:
    """The view, as the last records of the keys tell it."""
    last = {key["owner"]: value for _, _, key, value in records}
    return {owner: value["total"] for owner, value in last.items() if value is not None}


def build(spark: SparkSession, root: Path, kafka: str, topic: str, *, positions: str = "spark", **how: Any) -> Pipeline:
    p = Pipeline(spark, root / "state", place="driver", shards=2, positions=positions)
    server = {"kafka.bootstrap.servers": kafka}
    options = server | {"subscribe": topic, "maxOffsetsPerTrigger": 1}
    p.source("account", format="kafka", schema=COLUMNS, key="id", changes="upsert", options=options)
    p.sql(VIEW)
    how = {"mode": "upsert", "key": "owner"} | how
    p.sink("v", topic=f"{topic}-out", **how, **server)
    return p


@pytest.mark.parametrize("positions", ["spark", "state"])
def test_a_killed_process_leaves_no_record_and_loses_none(
    spark: SparkSession, kafka: str, tmp_path: Path, positions: str
) -> None:
    """Killed in the middle of a transaction; then ended between a transaction's commit and the note of it."""
    topic = f"t-{uuid4().hex}"
    put(kafka, topic, (1, "Ada", 5), (2, "Bob", 7), (1, "Ada", 6))
    with (tmp_path / "log").open("wb") as log:  # a pipe would be open for as long as its Java lives
        command = [sys.executable, __file__, str(tmp_path), kafka, topic, positions]
        ran = subprocess.run(command, check=False, stdout=log, stderr=log)
    assert ran.returncode == -signal.SIGKILL, (tmp_path / "log").read_text()
    committed = read(kafka, f"{topic}-out")
    assert {record[0] for record in committed} == {1}
    put(kafka, topic, (2, None, 0))
    with build(spark, tmp_path, kafka, topic, positions=positions) as p:
        p.refresh()
        assert p.verify()
    records = read(kafka, f"{topic}-out")
    assert latest(records) == {"Ada": 6}
    assert records[: len(committed)] == committed
    assert len({record[:2] for record in records}) == len(records)
    assert not [id_ for _, id_ in TopicWriter._open if topic in id_]  # closed with the pipeline
    (tmp_path / "state" / "delivered").write_text("1")
    with build(spark, tmp_path, kafka, topic, positions=positions) as p:
        p.refresh()
    assert read(kafka, f"{topic}-out") == records


def test_without_transactions_a_replay_has_the_same_headers(
    spark: SparkSession, kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"t-{uuid4().hex}"
    put(kafka, topic, (1, "Ada", 5), (2, "Bob", 7))
    how = {"mode": "changes", "key": "owner", "exactly_once": False}

    def fail(*_: Any) -> None:
        raise OSError("gone")

    p = build(spark, tmp_path, kafka, topic, **how)
    with monkeypatch.context() as patched:
        patched.setattr(delivery.Delivery, "mark", fail)
        with pytest.raises(Exception, match="gone"):
            p.refresh()
    p.close()
    with build(spark, tmp_path, kafka, topic, **how) as p:
        p.refresh()
    records = read(kafka, f"{topic}-out")
    sent = {(epoch, number): (key, value) for epoch, number, key, value in records}
    assert len(sent) < len(records)  # some of them twice, under the same headers
    assert {(epoch, number, str(key), str(value)) for epoch, number, key, value in records} == {
        (*place, str(key), str(value)) for place, (key, value) in sent.items()
    }
    assert sorted((key["owner"], value["total"], value["_weight"]) for key, value in sent.values()) == [
        ("Ada", 5, 1), ("Bob", 7, 1),
    ]  # fmt: skip


def test_a_state_that_is_an_older_copy_is_refused(spark: SparkSession, kafka: str) -> None:
    topic, state = f"t-{uuid4().hex}", uuid4().hex
    spec = sink_of("v", topic=topic, mode="upsert", key="k", options={"kafka.bootstrap.servers": kafka})
    batch = Batch.of("k BIGINT NOT NULL, s STRING", [((1, "a"), 1)])
    delivery.deliver(spark, spec, 7, batch, lambda: None, state=state)  # type: ignore[arg-type, return-value]
    TopicWriter._open.clear()
    with pytest.raises(SinkError, match="has epoch 7, and the state is at epoch 5"):
        delivery.deliver(spark, spec, 5, batch, lambda: None, state=state)  # type: ignore[arg-type, return-value]
    assert [record[2:] for record in read(kafka, topic)] == [({"k": 1}, {"k": 1, "s": "a"})]


# -- changes by key


def test_changes_by_key() -> None:
    rows = [((1, None), -1), ((1, "b"), 1), ((None, "new"), 1), ((3, "gone"), -1)]
    table = by_key("v", Batch.of("k BIGINT, s STRING", rows), ("k",))
    found = {(row["k"], row["s"], row["_everview_op"]) for row in table.to_pylist()}
    assert found == {(1, "b", "update"), (None, "new", "insert"), (3, "gone", "delete")}


@pytest.mark.parametrize("rows", [[((1, "a"), 1), ((1, "b"), 1)], [((1, "a"), 2)], [((1, "a"), -1), ((1, "b"), -1)]])
def test_a_key_of_two_rows_is_refused(rows: list[Any]) -> None:
    with pytest.raises(SinkError, match="several rows with k = 1"):
        by_key("v", Batch.of("k BIGINT, s STRING", [((0, "z"), 1), *rows]), ("k",))


def test_a_key_that_is_no_column_is_refused() -> None:
    with pytest.raises(SinkError, match='the key of its sink: column "K2"'):
        by_key("v", Batch.of("k BIGINT", [((1,), 1)]), ("K2",))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"topic": "t"}, "no broker is named"),
        ({"topic": "t", "mode": "upsert"}, "needs a key"),
        ({"topic": "t", "mode": "snapshot"}, "a topic has no snapshots"),
        ({"topic": "t", "format": "json"}, "cannot have format json"),
        ({"path": "p", "mode": "upsert", "key": "k"}, "only a topic, a table of Delta or Iceberg, or a database"),
        ({"path": "p", "key": "k"}, "a key says nothing"),
    ],
)
def test_what_no_topic_is(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SinkError, match=message):
        sink_of("v", **given)


def killed(root: str, kafka: str, topic: str, positions: str) -> None:
    """Run until the second epoch is being sent, and die."""
    from conftest import _start_spark

    plain = TopicWriter._produce

    def produce(self: TopicWriter, key: Any, value: Any, headers: Any) -> None:
        plain(self, key, value, headers)
        if headers[0][1] == b"2":
            self._producer.flush(30)  # the broker has the record, and the transaction is open
            os.kill(os.getpid(), signal.SIGKILL)

    TopicWriter._produce = produce  # type: ignore[method-assign]
    build(_start_spark(Path(root)), Path(root), kafka, topic, positions=positions).refresh()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    killed(*sys.argv[1:])
