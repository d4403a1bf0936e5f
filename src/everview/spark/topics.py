"""Kafka topics as sinks: the changes of a view as records, each epoch in one transaction of the broker.

The transaction also commits the epoch's number, as the offset of a consumer group that nobody reads by. So after a
crash the broker itself knows which epoch was the last, and an epoch that it has is not sent again: consumers that read
committed records see each epoch once. A second process with the same state takes the transactions over, and the first
one is refused from then on.

Without transactions (``exactly_once=False``), records are sent by Spark, and an epoch may be sent twice. Either way
each record has two headers: ``everview-epoch``, and ``everview-number``, its place in the epoch. An epoch that is sent
again has the same records with the same headers, so that consumers can drop what they have had.

Records are numbered in the order of their keys and values, as text. The driver has those of a small change at once, and
of a large one a chunk at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from everview.errors import MissingRuntime, SinkError
from everview.runtimes.spark.stored_change import Change, StoredChange
from everview.spark.chunks import chunks, parts_for
from everview.spark.keyed import DELETE, OP, changes_frame, keyed_change, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from everview.spark.sinks import SinkSpec

PREFIX: Final = "kafka."
EPOCH_HEADER, NUMBER_HEADER = "everview-epoch", "everview-number"
NUMBER: Final = "_everview_number"
ORDER: Final = ("key", "value")  # the columns of records, by which they are numbered
# Keys go where Java's clients put them; a large epoch may take long.
PRODUCER: Final = {"partitioner": "murmur2_random", "transaction.timeout.ms": 600_000, "linger.ms": 5}
SECONDS: Final = 60.0  # to wait for a broker
# Microseconds and the zone, as in files of JSON; a column that is NULL is told.
_JSON: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC", "ignoreNullFields": "false",
}  # fmt: skip


def deliver_records(spark: SparkSession, spec: SinkSpec, epoch: int, changes: Change, state: str) -> None:
    """Send an epoch to a topic; the broker has it once, if transactions are used."""
    if not len(changes):
        return
    records = _records(spark, spec, changes)
    if not spec.exactly_once:
        one = records.repartition(1) if isinstance(changes, StoredChange) else records.coalesce(1)
        _send_by_spark(one, spec, epoch)
        return
    writer = TopicWriter.of(spec, state, epoch)
    try:
        writer.write(epoch, lambda: _tables(records, changes))
    except BaseException:
        writer.forget()
        raise


def _records(spark: SparkSession, spec: SinkSpec, changes: Change) -> DataFrame:
    """The records of an epoch: ``key`` and ``value``; a value is JSON, or NULL for a key that is gone."""
    from pyspark.sql import functions as f

    upsert = spec.mode == "upsert"
    frame = keyed_change(spark, spec.view, changes, spec.key).frame(spark) if upsert else changes_frame(spark, changes)
    value = f.to_json(f.struct(*(quoted(name) for name in frame.columns if name != OP)), _JSON)
    key = f.to_json(f.struct(*map(quoted, spec.key)), _JSON) if spec.key else f.lit(None).cast("string")
    value = f.when(f.col(OP) != DELETE, value) if upsert else value
    return frame.select(key.alias("key"), value.alias("value"))


def _tables(records: DataFrame, changes: Change) -> Iterator[pa.Table]:
    """The records in their order, a bounded number at a time."""
    if isinstance(changes, StoredChange):
        parts = records.repartition(parts_for(len(changes)), *ORDER)
        yield from chunks(parts.sortWithinPartitions(*ORDER))
    else:
        yield records.toArrow().sort_by([(name, "ascending") for name in ORDER])


def _send_by_spark(records: DataFrame, spec: SinkSpec, epoch: int) -> None:
    """Let one task send the records, in the order of their numbers."""
    from pyspark.sql import functions as f

    def header(name: str, value: Any) -> Any:
        return f.struct(f.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))

    number = f.monotonically_increasing_id()  # in the only partition these are the places of its rows
    ordered = records.sortWithinPartitions(*ORDER).withColumn(NUMBER, number)
    headers = f.array(header(EPOCH_HEADER, f.lit(epoch)), header(NUMBER_HEADER, f.col(NUMBER)))
    assert spec.topic is not None
    writer = ordered.select("key", "value", headers.alias("headers")).write.format("kafka").options(**spec.options)
    writer.option("topic", spec.topic).option("includeHeaders", "true").save()


class TopicWriter:
    """The transactions of one sink in this process."""

    _open: Final[dict[tuple[int, str], TopicWriter]] = {}  # by process, as a client does not survive a fork, and id

    def __init__(self, spec: SinkSpec, id_: str, epoch: int) -> None:
        client: Any = _client()
        assert spec.topic is not None
        settings = {name.removeprefix(PREFIX): value for name, value in spec.options.items()}
        self._topic, self._id, self._said = spec.topic, id_, str(spec)
        self._client, self._marker = client, client.TopicPartition(spec.topic, 0)
        self._producer = client.Producer(PRODUCER | settings | {"transactional.id": id_})
        self._producer.init_transactions(
            SECONDS
        )  # what an earlier process has left open is decided, and it is shut out
        self._group = client.Consumer(settings | {"group.id": id_, "enable.auto.commit": False})
        self._epoch = int(self._group.committed([self._marker], timeout=SECONDS)[0].offset)
        if self._epoch > epoch:
            self._group.close()
            raise SinkError(
                f"topic {spec.topic} has epoch {self._epoch}, and the state is at epoch {epoch}: {spec}",
                hint="the state is an older copy: give the sink another topic, or go on from the newer state",
            )

    @classmethod
    def of(cls, spec: SinkSpec, state: str, epoch: int) -> TopicWriter:
        """The writer of a sink, which is made when it is first asked for."""
        id_ = f"everview-{state}-{spec.topic}"
        place = (os.getpid(), id_)
        if place not in cls._open:
            cls._open[place] = cls(spec, id_, epoch)
        return cls._open[place]

    @classmethod
    def close_all(cls, state: str) -> None:
        """Let go of the brokers that sinks of a state have written to in this process."""
        for (process, id_), writer in [*cls._open.items()]:
            if process == os.getpid() and id_.startswith(f"everview-{state}-"):
                writer.forget()

    def forget(self) -> None:
        """Drop the open producer after a failure: the next epoch asks the broker how far it is."""
        self._open.pop((os.getpid(), self._id), None)
        self._group.close()

    def write(self, epoch: int, records: Callable[[], Iterator[pa.Table]]) -> None:
        """Send an epoch, unless the broker has it; the records are asked for then, and not again."""
        if epoch <= self._epoch:
            return
        tables = records()
        first = [*islice(tables, 1)]  # may take long, and a transaction has little time
        self._producer.begin_transaction()
        try:
            for key, value, headers in _encoded(epoch, chain(first, tables)):
                self._produce(key, value, headers)
            noted = [self._client.TopicPartition(self._topic, 0, epoch)]
            self._producer.send_offsets_to_transaction(noted, self._group.consumer_group_metadata(), SECONDS)
            self._producer.commit_transaction(SECONDS * 10)
        except self._client.KafkaException as error:
            if error.args[0].txn_requires_abort():
                self._producer.abort_transaction(SECONDS)
            raise
        except Exception:  # of the tasks that make the records
            self._producer.abort_transaction(SECONDS)
            raise
        self._epoch = epoch

    def _produce(self, key: Any, value: Any, headers: list[tuple[str, bytes]]) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value=value, key=key, headers=headers)
                return
            except BufferError:
                self._producer.poll(1.0)  # the client's queue is full: let it send


def _encoded(epoch: int, tables: Iterable[pa.Table]) -> Iterator[tuple[Any, Any, list[tuple[str, bytes]]]]:
    number, places = b"%d" % epoch, count()
    for chunk in (batch for table in tables for batch in table.to_batches(max_chunksize=10_000)):
        for key, value, place in zip(*(chunk.column(name).to_pylist() for name in ORDER), places, strict=False):
            yield key, value, [(EPOCH_HEADER, number), (NUMBER_HEADER, b"%d" % place)]


def _client() -> Any:
    try:
        return import_module("confluent_kafka")
    except ImportError:
        raise MissingRuntime(
            "transactions of Kafka need a client: pip install 'everview[kafka]'; "
            "or give the sink exactly_once=False, and Spark sends the records."
        ) from None
