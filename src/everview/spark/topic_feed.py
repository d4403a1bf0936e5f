"""Kafka topics whose positions the state keeps: each look asks the brokers how far topics go, and reads up to there.

A position is the offset after the last record that was read, of each partition. A new partition is read from its
beginning. Records that the brokers have dropped before they were read are refused, as is a topic that was made anew.
With ``maxOffsetsPerTrigger``, an epoch takes so many records, of each partition its share.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import pyspark.sql.types as st

from everview.errors import MissingRuntime, SourceError
from everview.spark.feeds import NewChanges
from everview.spark.jvm import own_java
from everview.spark.kafka import DEFAULTS, KAFKA, OURS, TOPICS, TopicFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("everview.spark")
Partition: TypeAlias = tuple[str, int]
Offsets: TypeAlias = dict[Partition, int]
STARTING: Final = "startingOffsets"
AT_ONCE: Final = "maxoffsetspertrigger"
LOSS: Final = "failondataloss"
_EARLIEST, _LATEST = -2, -1  # as the JSON of Spark's option has them
_SPARK_ALONE: Final = (
    *("startingtimestamp", "startingoffsetsbytimestamp", "startingoffsetsbytimestampstrategy", "endingoffsets"),
    *("endingtimestamp", "endingoffsetsbytimestamp", "minoffsetspertrigger", "maxtriggerdelay"),
)
_LEVEL: Final = "kafka.isolation.level"
_PREFIX: Final = "kafka."
_FOUND: Final = re.compile(r"([A-Za-z0-9._-]+)-(\d+)=ListOffsetsResultInfo\(offset=(-?\d+)")


class TopicFeed:
    """What is new in topics."""

    pause: ClassVar[float] = 0.0  # a look is a question to the brokers, no job of Spark

    def __init__(self, topic: TopicFrame) -> None:
        given = {option.lower(): (option, value) for option, value in topic.options.items()}
        for option in _SPARK_ALONE:
            if option in given:
                raise SourceError(f'source "{topic.name}": only Spark has the option {given[option][0]}',
                                  hint=f'leave it out, or give {STARTING}; or positions="spark"')  # fmt: skip
        self.topic, self._brokers = topic, None
        self._at_once = _number(topic.name, *given[AT_ONCE]) if AT_ONCE in given else None
        self._strict = given.get(LOSS, (LOSS, "true"))[1].lower() != "false"
        self._starting = given.get(STARTING.lower(), (STARTING, DEFAULTS[STARTING]))[1]
        ours = {STARTING.lower(), AT_ONCE, *(name.lower() for name in (*OURS, *TOPICS))}
        self._reading = DEFAULTS | {name: value for name, value in topic.options.items() if name.lower() not in ours}
        self._brokers: Brokers | None

    @property
    def schema(self) -> st.StructType:
        """The columns of values."""
        return self.topic.schema

    @property
    def corrupt(self) -> str | None:
        """The column that has values which could not be decoded."""
        return self.topic.corrupt

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that are taken; all if None."""
        return self.topic.columns

    @property
    def beside(self) -> tuple[str, ...]:
        """The columns that are not of the row."""
        return self.topic.beside

    def style(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """How rows are changes; see `TopicFrame.style`."""
        return self.topic.style(said)

    def read(self, spark: SparkSession) -> DataFrame:
        """The frame, over all records that are there."""
        topics = {name: value for name, value in self.topic.options.items() if name in TOPICS}
        return self.topic.rows(spark.read.format(KAFKA).options(**self._reading, **topics).load())

    def since(self, spark: SparkSession, last: Any) -> NewChanges | None:
        """The records after a position, or from where the source begins; None if there are none."""
        if self._brokers is None:
            self._brokers = Brokers(spark, self.topic)
        try:
            ends = self._brokers.offsets(latest=True)
            if last is not None and ends == _of_json(last):
                return None
            first = self._brokers.offsets(latest=False, of=ends)
        except BaseException:
            self.close()
            raise
        ends = {each: max(ends[each], first[each]) for each in ends}  # if records were dropped between the two looks
        begin = self._beginning(first, ends) if last is None else self._resumed(_of_json(last), first, ends)
        upto, more = shared(begin, ends, self._at_once)
        anywhere = last is None and self._starting != "earliest"  # where the source begins is to be noted
        if upto == begin and not (anywhere and begin):
            return None
        return NewChanges(self._between(spark, begin, upto), _as_json(upto), more)

    def close(self) -> None:
        """Let go of the brokers."""
        if self._brokers is not None:
            self._brokers.close()
            self._brokers = None

    def _beginning(self, first: Offsets, ends: Offsets) -> Offsets:
        """Where a state begins, as the option says."""
        if self._starting in ("earliest", "latest"):
            return dict(first if self._starting == "earliest" else ends)
        try:
            said = _of_json(json.loads(self._starting))
        except (ValueError, AttributeError):
            raise self._refused(
                f"{STARTING} is not JSON of offsets", '"earliest", "latest", or {"t": {"0": 7}}'
            ) from None
        missing = [partition for partition in ends if partition not in said]
        if missing:
            raise self._refused(
                f"{STARTING} says nothing of {_named(missing)}", "-2 is the earliest one, -1 the latest"
            )
        known = {_EARLIEST: first, _LATEST: ends}
        return {each: known[said[each]][each] if said[each] in known else said[each] for each in ends}

    def _resumed(self, last: Offsets, first: Offsets, ends: Offsets) -> Offsets:
        """Where to go on: after what was read, in new partitions at the beginning."""
        lost = [each for each in last if each not in ends]
        lost += [each for each in last if each in ends and not first[each] <= last[each] <= ends[each]]
        if lost and self._strict:
            raise self._refused(f"the brokers no longer have the records after those that were read of {_named(lost)}",
                                "they were dropped before they were read, or the topic was made anew: begin with a new "
                                "state, or say failOnDataLoss=false and go on with what is there")  # fmt: skip
        if lost:
            log.warning('source "%s": records of %s were dropped before they were read', self.topic.name, _named(lost))
        return {each: first[each] if each in lost else last.get(each, first[each]) for each in ends}

    def _between(self, spark: SparkSession, begin: Offsets, upto: Offsets) -> DataFrame:
        """The rows of the records between two positions; partitions that have none are not asked."""
        read = [each for each in upto if upto[each] > begin[each]] or [*upto]
        assigned: dict[str, list[int]] = {}
        for topic, partition in read:
            assigned.setdefault(topic, []).append(partition)
        options = self._reading | {
            "assign": json.dumps(assigned),
            STARTING: json.dumps(_as_json({each: begin[each] for each in read})),
            "endingOffsets": json.dumps(_as_json({each: upto[each] for each in read})),
        }
        return self.topic.rows(spark.read.format(KAFKA).options(**options).load())

    def _refused(self, what: str, hint: str) -> SourceError:
        return SourceError(f'source "{self.topic.name}": {what}', hint=hint)


def shared(begin: Offsets, ends: Offsets, most: int | None) -> tuple[Offsets, int]:
    """How far an epoch reads that takes so many records, and how many more epochs the others take.

    >>> shared({("t", 0): 0, ("t", 1): 5}, {("t", 0): 9, ("t", 1): 6}, 4)
    ({('t', 0): 4, ('t', 1): 5}, 2)
    """
    left = {each: ends[each] - begin[each] for each in ends}
    total = sum(left.values())
    if most is None or total <= most:
        return dict(ends), 0
    taken = {each: count * most // total for each, count in left.items()}
    rest = most - sum(taken.values())
    for each, count in left.items():
        if rest and taken[each] < count:
            taken[each], rest = taken[each] + 1, rest - 1
    return {each: begin[each] + taken[each] for each in ends}, -((most - total) // most)


class Brokers:
    """The brokers behind a source, asked by the client that Spark's connector brings along."""

    def __init__(self, spark: SparkSession, topic: TopicFrame) -> None:
        java = own_java(spark, "following topics by positions in the state")
        self._jvm, self._topic = java.jvm, topic
        self._clients = java.jvm.org.apache.kafka.clients.admin
        options = DEFAULTS | dict(topic.options)
        settings = java.jvm.java.util.HashMap()
        for name, value in options.items():
            if name.startswith(_PREFIX) and name != _LEVEL:
                settings.put(name.removeprefix(_PREFIX), value)
        try:
            self._admin = self._clients.Admin.create(settings)
        except TypeError:  # what Py4J makes of a class that is not there
            raise MissingRuntime(
                "the session has no client of Kafka",
                hint=f"give it the jar org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version} and what that needs",
            ) from None
        level = "READ_UNCOMMITTED" if options[_LEVEL] == "read_uncommitted" else "READ_COMMITTED"
        isolation = java.jvm.org.apache.kafka.common.IsolationLevel.valueOf(level)
        self._asking = self._clients.ListOffsetsOptions(isolation)

    def offsets(self, *, latest: bool, of: Iterable[Partition] | None = None) -> Offsets:
        """The offset after the last record that may be read, or that of the first one, of each partition."""
        spec = self._clients.OffsetSpec.latest() if latest else self._clients.OffsetSpec.earliest()
        asked = self._jvm.java.util.HashMap()
        partitions = self._partitions() if of is None else [*of]
        for topic, partition in partitions:
            asked.put(self._jvm.org.apache.kafka.common.TopicPartition(topic, partition), spec)
        told = str(self._got(self._admin.listOffsets(asked, self._asking).all()).toString())  # one call, not one each
        offsets = {(topic, int(partition)): int(offset) for topic, partition, offset in _FOUND.findall(told)}
        assert offsets.keys() == {*partitions}, "the brokers answer for all partitions"
        return dict(sorted(offsets.items()))

    def close(self) -> None:
        """Let go of the brokers."""
        self._admin.close()

    def _partitions(self) -> list[Partition]:
        how = next(each for each in TOPICS if each in self._topic.options)
        said = self._topic.options[how]
        if how == "assign":
            return [(topic, int(each)) for topic, parts in json.loads(said).items() for each in parts]
        if how == "subscribePattern":
            every = [str(name) for name in self._got(self._admin.listTopics().names())]
            matches = self._jvm.java.util.regex.Pattern.matches
            return self._of_topics([name for name in every if matches(said, name)])
        return self._of_topics([name.strip() for name in said.split(",")])

    def _of_topics(self, topics: list[str]) -> list[Partition]:
        asked = self._jvm.java.util.ArrayList()
        for topic in topics:
            asked.add(topic)
        found = self._got(self._admin.describeTopics(asked).allTopicNames())
        return [(topic, each) for topic in topics for each in range(found.get(topic).partitions().size())]

    def _got(self, future: Any) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return future.get()
        except Py4JJavaError as error:
            cause = error.java_exception.getCause() or error.java_exception
            what = f"{cause.getClass().getSimpleName()}: {cause.getMessage()}"
            raise SourceError(
                f'source "{self._topic.name}": the brokers do not tell how far its topics go: {what}',
                hint="are the brokers and the topics there, and may this user describe them?",
            ) from error


def _number(source: str, option: str, value: str) -> int:
    if not value.isdecimal() or not int(value):
        raise SourceError(
            f'source "{source}": {option} cannot be "{value}"', hint="give a number of records, 1 or more"
        )
    return int(value)


def _as_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Offsets as Spark's options have them: by topic, then by partition."""
    told: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        told.setdefault(topic, {})[str(partition)] = offset
    return told


def _of_json(told: Any) -> Offsets:
    return {
        (topic, int(partition)): int(offset) for topic, parts in told.items() for partition, offset in parts.items()
    }


def _named(partitions: Iterable[Partition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))
