"""Kafka topics that the state follows itself, on a real broker: each record once, and none that is gone is missed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from everview.errors import PipelineError, SourceError
from everview.spark import Pipeline
from everview.traces.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = "id BIGINT NOT NULL, amount BIGINT"
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT id, SUM(amount) AS total FROM account GROUP BY id"


@pytest.fixture
def topic() -> str:
    return f"t-{uuid4().hex}"


def send(kafka: str, topic: str, *rows: tuple[int, int | None], partition: int = 0, commit: bool | None = None) -> None:
    """Send records to a partition, in a transaction if it is said how that ends; without an amount, tombstones."""
    from confluent_kafka import Producer

    more = {} if commit is None else {"transactional.id": uuid4().hex}
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 0} | more)
    if commit is not None:
        producer.init_transactions(30)
        producer.begin_transaction()
    for id_, amount in rows:
        value = None if amount is None else json.dumps({"id": id_, "amount": amount})
        producer.produce(topic, key=json.dumps({"id": id_}), value=value, partition=partition)
    assert producer.flush(30) == 0
    if commit is not None:
        (producer.commit_transaction if commit else producer.abort_transaction)(30)


def administrate(kafka: str, what: str, *given: Any) -> None:
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": kafka})
    for future in getattr(client, what)(*given).values():
        future.result(30)


def make(kafka: str, topic: str, partitions: int) -> None:
    from confluent_kafka.admin import NewTopic

    administrate(kafka, "create_topics", [NewTopic(topic, num_partitions=partitions, replication_factor=1)])


def drop_before(kafka: str, topic: str, offset: int) -> None:
    """Let the broker drop the records of partition 0 before an offset."""
    from confluent_kafka import TopicPartition

    administrate(kafka, "delete_records", [TopicPartition(topic, 0, offset)])


def build(spark: SparkSession, root: Path, kafka: str, positions: str = "state", **options: Any) -> Pipeline:
    p = Pipeline(spark, root / "state", place="driver", shards=2, positions=positions)
    given = {"kafka.bootstrap.servers": kafka} | options
    p.source("account", format="kafka", schema=COLUMNS, key="id", changes="upsert", options=given)
    p.sql(VIEW)
    return p


def held(p: Pipeline) -> dict[int, int]:
    return {row.id: row.total for row in p.view("v").collect()}


def test_a_life_of_a_topic(
    spark: SparkSession, kafka: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Epochs of so many records, transactions, crashes, a loop at work, partitions that come: each record once."""
    from confluent_kafka.admin import NewPartitions

    make(kafka, topic, 2)
    how: dict[str, Any] = {"subscribePattern": f"{topic}.*", "maxOffsetsPerTrigger": 2}
    with build(spark, tmp_path, kafka, **how) as p:
        p.refresh()
        assert p.epoch == 0  # nothing is there
        send(kafka, topic, (1, 1), (2, 2), (1, 3))
        send(kafka, topic, (3, 1), (4, 4), partition=1)
        p.refresh()
        assert (held(p), [sum(each.rows_in.values()) for each in p.progress]) == ({1: 3, 2: 2, 3: 1, 4: 4}, [2, 2, 1])
        send(kafka, topic, (1, 100), commit=False)
        send(kafka, topic, (2, None), (5, 5), commit=True)
        p.refresh()
        assert held(p) == {1: 3, 3: 1, 4: 4, 5: 5}
        done = p.epoch
        p.refresh()
        assert p.epoch == done
    plain = Store.commit
    for number, when in enumerate(("before", "after")):
        send(kafka, topic, (6, number), partition=1)

        def crash(self: Store, *given: Any, when: str = when, **more: Any) -> Any:
            if when == "after":
                plain(self, *given, **more)
            raise OSError(f"crashed {when} the commit")

        p = build(spark, tmp_path, kafka, **how)
        with monkeypatch.context() as patched:
            patched.setattr(Store, "commit", crash)
            with pytest.raises(Exception, match="crashed"):
                p.refresh()
        p.close()
    with build(spark, tmp_path, kafka, **how) as p:
        query = p.start(trigger={"processingTime": "50 milliseconds"})
        query.processAllAvailable()
        assert held(p) == {1: 3, 3: 1, 4: 4, 5: 5, 6: 1}
        administrate(kafka, "create_partitions", [NewPartitions(topic, 3)])
        make(kafka, f"{topic}-b", 1)
        send(kafka, topic, (7, 7), partition=2)
        send(kafka, f"{topic}-b", (8, 8))
        p.stop(drain=True)
        assert held(p) == {1: 3, 3: 1, 4: 4, 5: 5, 6: 1, 7: 7, 8: 8}
        assert p.verify()
        assert not (tmp_path / "state" / "spark").exists()
    with build(spark, tmp_path, kafka, "spark", **how) as p, pytest.raises(PipelineError, match="has its position"):
        p.refresh()


def test_records_that_the_broker_has_dropped(spark: SparkSession, kafka: str, topic: str, tmp_path: Path) -> None:
    make(kafka, topic, 1)
    send(kafka, topic, (1, 1), (2, 2), (3, 3))
    drop_before(kafka, topic, 1)
    with build(spark, tmp_path, kafka, subscribe=topic) as p:
        p.refresh()
        assert held(p) == {2: 2, 3: 3}  # what was gone before the state began is not missed
        send(kafka, topic, (4, 4), (5, 5))
        drop_before(kafka, topic, 4)
        with pytest.raises(SourceError, match=f"no longer have the records after those that were read of {topic}-0"):
            p.refresh()
        assert held(p) == {2: 2, 3: 3}
    with build(spark, tmp_path, kafka, subscribe=topic, failOnDataLoss="false") as p:
        p.refresh()
        assert held(p) == {2: 2, 3: 3, 5: 5}


@pytest.mark.parametrize(
    ("starting", "expected"),
    [("latest", {3: 3}), ('{"TOPIC": {"0": 1}}', {2: 2, 3: 3}), ('{"TOPIC": {"0": -2}}', {1: 1, 2: 2, 3: 3})],
)
def test_where_a_state_begins(
    spark: SparkSession, kafka: str, topic: str, tmp_path: Path, starting: str, expected: dict[int, int]
) -> None:
    """What comes between the first look and the next one is not lost, though no record was there to note."""
    make(kafka, topic, 1)
    send(kafka, topic, (1, 1), (2, 2))
    how = {"assign": json.dumps({topic: [0]}), "startingOffsets": starting.replace("TOPIC", topic)}
    for _ in range(2):
        with build(spark, tmp_path, kafka, **how) as p:
            p.refresh()
            found = held(p)
        if 3 not in found:
            send(kafka, topic, (3, 3))
    assert found == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffsetsByTimestamp": "{}"}, "only Spark has the option startingOffsetsByTimestamp"),
        ({"maxOffsetsPerTrigger": "many"}, 'maxOffsetsPerTrigger cannot be "many"'),
        ({"startingOffsets": "soon"}, "startingOffsets is not JSON of offsets"),
        ({"startingOffsets": "{}"}, "startingOffsets says nothing of .*-0"),
        ({"subscribe": "nowhere"}, "the brokers do not tell how far its topics go: UnknownTopicOrPartition"),
    ],
)
def test_what_cannot_be_followed(
    spark: SparkSession, kafka: str, topic: str, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    make(kafka, topic, 1)
    with pytest.raises(SourceError, match=said), build(spark, tmp_path, kafka, **{"subscribe": topic} | options) as p:
        p.refresh()
