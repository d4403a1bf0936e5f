"""Delivery: sinks get every epoch under its number, and once more if it is unclear whether they have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from everview.errors import StoreError
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.evolving import StoredState, stored_changes
from everview.runtimes.spark.stored import views
from everview.spark.beginnings import Beginnings
from everview.spark.claims import Claims
from everview.spark.sinks import SinkSpec, deliver
from everview.spark.topics import TopicWriter
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Whole: TypeAlias = "Callable[[str], pa.Table | DataFrame]"  # the rows of a view
FEW = 100_000  # rows of a view that the driver hands to Spark itself


class Delivery:
    """Gives the changes of epochs to the sinks of a pipeline, and remembers on disk which epoch they have."""

    def __init__(self, spark: SparkSession, state: Path, sinks: Sequence[SinkSpec], claims: Claims) -> None:
        self._spark, self._state, self._sinks, self.claims = spark, state, sinks, claims
        self._note = state / "delivered"
        self._beginnings = Beginnings(state)

    def give(self, engine: Engine, changes: Mapping[str, Batch]) -> None:
        """Deliver the changes of the engine's epoch to every sink."""
        self._give(engine.epoch, changes, lambda view: self._whole(engine, view))

    def _give(self, epoch: int, changes: Mapping[str, Batch], whole: Whole) -> None:
        for sink in self._sinks:
            if sink.view in changes and not self._beginnings.covers(sink, epoch):
                self._give_one(sink, epoch, changes[sink.view], whole)
        self.mark(epoch)

    def _give_one(self, sink: SinkSpec, epoch: int, changes: Batch, whole: Whole) -> None:
        self.claims.take(sink, epoch)
        deliver(self._spark, sink, epoch, changes, partial(whole, sink.view), state=self.claims.state)
        if sink.overwritten:
            self.claims.mark(sink)

    def _begin(self, engine: Engine) -> None:
        """Give sinks that begin with a snapshot, and have not yet begun, all rows of their views."""
        for sink in self._sinks:
            if self._beginnings.due(sink, engine.epoch):
                self._beginnings.note(sink, engine.epoch, done=not engine.epoch)
                if engine.epoch:
                    rows = engine.run.view(sink.view).contents()
                    self._give_one(sink, engine.epoch, rows, lambda view: self._whole(engine, view))
                    self._beginnings.note(sink, engine.epoch, done=True)

    def close(self) -> None:
        """Let go of the brokers that topics are at."""
        if any(sink.topic is not None for sink in self._sinks):
            TopicWriter.close_all(self.claims.state)

    def mark(self, epoch: int) -> None:
        """Note that the sinks have an epoch."""
        written = self._note.with_name("delivered.writing")
        try:
            written.write_text(str(epoch))
            written.replace(self._note)
        except OSError as error:
            raise StoreError(
                f"epoch {epoch} was delivered, and the state cannot note that: {error}",
                hint="remove the cause and go on; the epoch is delivered once more then",
            ) from error

    def again(self, engine: Engine) -> None:
        """Deliver the last epoch once more, unless the sinks are known to have it; new sinks may begin."""
        if engine.epoch and self._sinks and self.last != engine.epoch:
            self.give(engine, engine.last_changes())
        self._begin(engine)

    def before_turn(self, stored: StoredState) -> None:
        """Deliver the last epoch of a state that is about to be turned to other definitions, as `again` does.

        Afterwards its changes are gone. A view that the state does not have is none of that epoch.
        """
        if not self._sinks or self.last == stored.epoch:
            return
        known = views(stored)
        schemas = {sink.view: known[sink.view].schema for sink in self._sinks if sink.view in known}
        changes = stored_changes(stored, schemas)
        self._give(stored.epoch, changes, lambda view: read(self._spark, self._state, view, epoch=stored.epoch))

    @property
    def last(self) -> int:
        """The last epoch that all sinks are known to have; -1 if none."""
        try:
            return int(self._note.read_text())
        except (FileNotFoundError, ValueError):
            return -1

    def _whole(self, engine: Engine, view: str) -> pa.Table | DataFrame:
        held = engine.run.view(view)
        return (
            held.to_arrow() if len(held.contents()) <= FEW else read(self._spark, self._state, view, epoch=engine.epoch)
        )


def read(spark: SparkSession, state: Path, view: str, **options: int) -> DataFrame:
    """A frame of a view's rows or changes in a state directory."""
    reader = spark.read.format("everview").option("view", view)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(str(state))
