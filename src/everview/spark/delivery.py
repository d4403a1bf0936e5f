"""Delivery: sinks get every epoch under its number, and once more if it is unclear whether they have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from everview.errors import StoreError
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.evolving import StoredState, stored_changes
from everview.runtimes.spark.stored import opened, rows_in, views
from everview.runtimes.spark.stored_change import Change, StoredChange, shown_alike
from everview.spark.absences import Absence, Absences, missed
from everview.spark.beginnings import Beginnings
from everview.spark.claims import Claims
from everview.spark.folders import Folder
from everview.spark.frames import frame_of
from everview.spark.sinks import SinkSpec, deliver
from everview.spark.topics import TopicWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Whole: TypeAlias = "Callable[[str], pa.Table | DataFrame]"  # the rows of a view
DELIVERED = "delivered"  # the note of the last epoch that all sinks have
FEW = 100_000  # rows of a view that the driver hands to Spark itself


class Delivery:
    """Gives the changes of epochs to the sinks of a pipeline, and remembers on disk which epoch they have."""

    def __init__(
        self, spark: SparkSession, state: Path | str, notes: Folder, sinks: Sequence[SinkSpec], claims: Claims
    ) -> None:
        self._spark, self._state, self._sinks, self.claims = spark, state, sinks, claims
        self._notes = notes
        self._beginnings, self._absences = Beginnings(notes, state), Absences(notes)

    def opening(self) -> None:
        """Look at the notes anew: another process may have had the state since."""
        self._absences.reread()

    def give(self, engine: Engine, changes: Mapping[str, Change]) -> None:
        """Deliver the changes of the engine's epoch to every sink."""
        self._give(engine.epoch, changes, lambda view: self._whole(engine, view))

    def _give(self, epoch: int, changes: Mapping[str, Change], whole: Whole) -> None:
        self._absences.look(self._sinks, epoch, delivered=self.last)
        for sink in self._sinks:
            if sink.view in changes and not self._beginnings.covers(sink, epoch) and not self._absences.of(sink):
                self._give_one(sink, epoch, changes[sink.view], whole)
        self.mark(epoch)

    def _give_one(self, sink: SinkSpec, epoch: int, changes: Change, whole: Whole) -> None:
        self.claims.take(sink, epoch)
        deliver(self._spark, sink, epoch, changes, partial(whole, sink.view), state=self.claims.state)
        if sink.overwritten:
            self.claims.mark(sink)

    def _begin(self, engine: Engine) -> None:
        """Give sinks that begin with a snapshot, and have not yet begun, all rows of their views.

        Those that were away get what they missed.
        """
        for sink in self._sinks:
            absence = self._absences.of(sink)
            if absence is not None and sink.begin == "snapshot" and self.claims.is_unwritten(sink):
                self._beginnings.forget(sink)  # somebody has removed what it had
            if self._beginnings.due(sink, engine.epoch):
                self._beginnings.note(sink, engine.epoch, done=not engine.epoch)
                if engine.epoch:
                    self._give_now(engine, sink, self._all(engine, sink.view))
                    self._beginnings.note(sink, engine.epoch, done=True)
            elif absence is not None:
                change = self._missed(engine, sink, absence)
                self._absences.begin(sink, absence, engine.epoch)
                self._give_now(engine, sink, change)
            if absence is not None:
                self._absences.end(sink)

    def _give_now(self, engine: Engine, sink: SinkSpec, changes: Change) -> None:
        self._give_one(sink, engine.epoch, changes, lambda view: self._whole(engine, view))

    def _missed(self, engine: Engine, sink: SinkSpec, absence: Absence) -> Change:
        """What has changed in a sink's view while the sink was away."""
        held = engine.run.view(sink.view)
        try:
            with opened(engine.path, absence.since) as then:
                before = views(then).get(sink.view)
                gone = 0 if before is None else rows_in(then, before.trace)
        except StoreError as error:
            raise missed(sink, absence, "cannot be told what has changed: that epoch is kept no more") from error
        if before is None or before.schema != held.schema:
            what = "is not there in that epoch" if before is None else "has other columns now"
            raise missed(sink, absence, f"cannot be told what has changed: the view {what}")
        where = engine.path, sink.view, held.schema, absence.since, engine.epoch
        change = StoredChange(*where, gone + engine.rows_of(sink.view))
        return change.batch() if change.rows <= FEW or not shown_alike(held.schema) else change

    def _all(self, engine: Engine, view: str) -> Change:
        """All rows of a view, as the change that they are since the beginning."""
        held, rows = engine.run.view(view), engine.rows_of(view)
        if rows <= FEW or not shown_alike(held.schema):
            return held.contents()
        return StoredChange(engine.path, view, held.schema, 0, engine.epoch, rows)

    def close(self) -> None:
        """Let go of the brokers that topics are at."""
        if any(sink.topic is not None for sink in self._sinks):
            TopicWriter.close_all(self.claims.state)

    def mark(self, epoch: int) -> None:
        """Note that the sinks have an epoch."""
        try:
            self._notes.note(DELIVERED, str(epoch).encode())
        except (OSError, StoreError) as error:
            raise StoreError(
                f"epoch {epoch} was delivered, and the state cannot note that: {error}",
                hint="remove the cause and go on; the epoch is delivered once more then",
            ) from error

    def again(self, engine: Engine) -> None:
        """Deliver the last epoch once more, unless the sinks are known to have it; new sinks may begin."""
        self._absences.look(self._sinks, engine.epoch, delivered=self.last)
        if engine.epoch and self._sinks and self.last != engine.epoch:
            self.give(engine, engine.last_changes())
        self._begin(engine)

    def before_turn(self, stored: StoredState) -> None:
        """Deliver the last epoch of a state that is about to be turned to other definitions, as `again` does.

        Afterwards its changes are gone. A view that the state does not have is none of that epoch.
        """
        self._absences.look(self._sinks, stored.epoch, delivered=self.last)
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
            return int(self._notes.read(DELIVERED) or b"-1")
        except ValueError:
            return -1

    def rows(self, engine: Engine, name: str) -> DataFrame:
        """A frame of what a view has now, or a source."""
        if name not in engine.run.views:
            return read_table(self._spark, self._state, engine, name)
        whole = self._whole(engine, name)
        return frame_of(self._spark, whole) if isinstance(whole, pa.Table) else whole

    def _whole(self, engine: Engine, view: str) -> pa.Table | DataFrame:
        if engine.rows_of(view) <= FEW:
            return engine.run.view(view).to_arrow()
        return read(self._spark, self._state, view, epoch=engine.epoch)


def read_table(spark: SparkSession, state: Path | str, engine: Engine, name: str) -> DataFrame:
    """A frame of what a source holds, each row as often as its weight, and its columns in their own order."""
    schema = engine.program.circuit.layout(engine.program.circuit.sources[name]).schema
    if engine.rows_of_table(name) <= FEW or not shown_alike(schema):
        contents = engine.contents(name)
        often: Any = pa.array(np.repeat(np.arange(len(contents)), np.maximum(contents.weights, 0)))
        return frame_of(spark, contents.to_arrow().drop_columns("_weight").take(often))
    read = spark.read.format("everview").option("table", name).option("epoch", str(engine.epoch))
    return read.load(str(state)).select(*(f"`{column.replace('`', '``')}`" for column in schema.names))


def read(spark: SparkSession, state: Path | str, view: str, **options: int) -> DataFrame:
    """A frame of a view's rows or changes in a state directory."""
    reader = spark.read.format("everview").option("view", view)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(str(state))
