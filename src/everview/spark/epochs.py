"""Epochs of a pipeline: each takes in what is new, ticks, commits, and delivers, exactly once.

1. read what is new, 2. tick, 3. commit state, position and the changes for the sinks, 4. deliver to the sinks,
5. note that they have it. Before 3 nothing has happened; after it the batch is recognised and only 4 and 5 are left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import BadRows, CodeCollision
from everview.observe import TickObserver, TickReport
from everview.plan.timed import CLOCK
from everview.runtimes.spark.engine import Edits, Engine, Ticked
from everview.runtimes.spark.epoch_notes import EpochNotes
from everview.runtimes.spark.placement import Decision, Placement
from everview.spark.arrivals import BAD, Arrival
from everview.spark.batching import counted, is_too_large
from everview.spark.bound import GIVEN
from everview.spark.changes import normalized
from everview.spark.checkpoint import require_planned
from everview.spark.combined import arrived
from everview.spark.delivery import Delivery
from everview.spark.describe import described
from everview.spark.lateness import judged
from everview.spark.position import Position
from everview.spark.progress import Progress, ProgressLog
from everview.spark.recomputing import RecomputedView, Recomputing, difference, levels
from everview.spark.redefining import PipelineDefinitions
from everview.spark.shaping import LATE, UNREADABLE
from everview.spark.spec import SourceSpec
from everview.spark.state import PipelineState
from everview.spark.traps import Traps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("everview.spark")

TOKEN = "token"  # under which the offsets have what the last refresh called itself
FIRST = 50_000  # rows of a first load, which is usually large, that are fetched to see whether it is
LARGE = 64 << 20  # bytes of the files behind batch frames that need not be fetched to know that they are many
VACUUM_EVERY = 100  # epochs
REMEMBERED = 10_000  # epochs whose progress is kept


class PipelineEpochs:
    """Runs one epoch at a time; the caller holds the lock of the pipeline."""

    def __init__(
        self,
        spark: SparkSession,
        definitions: PipelineDefinitions,
        state: PipelineState,
        delivery: Delivery,
        *,
        placement: Placement,
        bad_rows: str | None,
        keep_epochs: int,
    ) -> None:
        self._spark, self._sources, self._queries = spark, definitions.sources, definitions.queries
        self._state, self._delivery, self._recomputing = state, delivery, Recomputing()
        self._placement, self._bad_rows, self._keep_epochs = placement, bad_rows, keep_epochs
        self.progress = ProgressLog()
        self._notes = EpochNotes(state.path)
        self.traps = Traps()
        self.observer: TickObserver | None = None  # told of every epoch, if there is one

    def batch(self, engine: Engine, specs: Sequence[SourceSpec], frame: DataFrame, query: str, number: int) -> None:
        """Run the epoch of one micro-batch of a streaming query, unless the state has it already."""
        streams = tuple(spec.name for spec in specs)
        checkpoint = self._state.spark_checkpoint
        position = Position.of(query, number, checkpoint, streams)
        if position.is_replay_of(Position.known(engine.offsets)):
            self._delivery.again(engine)
            self.recompute(engine, number)
            return
        require_planned(self._spark, checkpoint, number, streams)
        if self._sources.follows_clock(self._offsets(engine)):
            self._tick(engine)
        arrival = Arrival.in_one(specs, arrived(frame))
        self._run(engine, self._in_time(engine, arrival), position.to_offsets(), number)
        self.recompute(engine, number)

    def files(
        self,
        engine: Engine,
        specs: Sequence[SourceSpec],
        frames: Sequence[DataFrame],
        offsets: Mapping[str, Any],
        number: int,
        edits: Edits,
    ) -> None:
        """Run the epoch of files that a loop of our own has found, from the frames of their changes.

        ``edits`` say in its commit which files these are.
        """
        if self._sources.follows_clock(self._offsets(engine)):
            self._tick(engine)
        with engine.committing(edits):
            self._run(engine, self._in_time(engine, Arrival.of(specs, frames)), offsets, number)
        self.recompute(engine, number)

    def recompute(self, engine: Engine, batch: int | None) -> None:
        """Let Spark compute the views that were asked for so, unless no epoch has passed since it did.

        Those that do not read each other share an epoch; where nothing differs, there is none.
        """
        views = self._queries.recomputed_views
        if not engine.epoch or not self._recomputing.due(views, engine.epoch):
            return
        for level in levels(views, self._queries.readers):
            self._recompute(engine, level, batch)
        self._recomputing.done(views, engine.epoch)

    def _recompute(self, engine: Engine, views: Sequence[RecomputedView], batch: int | None) -> None:
        found = {v: difference(v, self._delivery.rows(engine, v.name), partial(self._delivery.rows, engine)).persist()
                 for v in views}  # fmt: skip
        try:
            moved = {view: frame for view, frame in found.items() if frame.count()}
            if moved:
                specs = self._sources.named([view.source for view in moved])
                frames = [normalized(frame, spec) for frame, spec in zip(moved.values(), specs, strict=True)]
                self._run(engine, Arrival.of(specs, frames), {}, batch, tuple(view.name for view in moved))
        finally:
            for frame in found.values():
                frame.unpersist()

    def _in_time(self, engine: Engine, arrival: Arrival) -> Arrival:
        """The arriving rows, with late ones marked and watermarks moved, if sources have any."""
        if not any(self._sources.by_name[spec.name].watermark for spec in arrival.specs):
            return arrival
        return Arrival.of(*judged(engine, self._sources, arrival.specs, arrival.frames))

    def _offsets(self, engine: Engine) -> Mapping[str, Any]:
        """The offsets of the state, without what was told to a clock that has gone since."""
        offsets = engine.offsets
        if CLOCK not in self._sources.by_name or CLOCK not in offsets.get(GIVEN, ()) or engine.rows_of_table(CLOCK):
            return offsets
        return {**offsets, GIVEN: [name for name in offsets[GIVEN] if name != CLOCK]}

    def _tick(self, engine: Engine) -> None:
        """Run one epoch in which only time has passed."""
        clock = self._sources.by_name[CLOCK]
        self._run(engine, Arrival.of([clock.spec], [normalized(clock.frame, clock.spec)]), {}, None)

    def load(self, engine: Engine, given: Mapping[str, DataFrame], token: str | None, *, again: bool) -> int:
        """Run one epoch of the batch frames that were not read yet, of the given ones, and of what is new in feeds.

        Returns how many more epochs feeds need for what is there now.
        """
        frames, offsets, more = self._sources.due(self._offsets(engine), given, again=again)
        if again:
            self.traps.read_once(self._sources.by_name, engine.offsets, given)
        if frames:
            self._load(engine, frames, offsets, token)
        self.recompute(engine, None)
        return more

    def _load(
        self, engine: Engine, frames: Mapping[str, DataFrame], offsets: dict[str, Any], token: str | None
    ) -> None:
        if token is not None:
            offsets[TOKEN] = token
        specs = self._sources.named([*frames])
        arriving = [normalized(frame, spec) for frame, spec in zip(frames.values(), specs, strict=True)]
        self._run(engine, self._in_time(engine, Arrival.of(specs, arriving)), offsets, None)

    def _run(
        self,
        engine: Engine,
        arrival: Arrival,
        offsets: Mapping[str, Any],
        batch: int | None,
        recomputed: tuple[str, ...] = (),
    ) -> None:
        """Run steps 1 to 5 of an epoch; ``recomputed`` names the views whose change is a recomputation by Spark."""
        self._delivery.again(engine)  # what a sink has not got yet, it gets first
        engine.say_definitions(self._queries.written)
        start, epoch = perf_counter(), engine.epoch + 1
        with described(self._spark, epoch, alone=batch is None) as describe:
            describe("read what is new")
            limit = self._limit(engine, arrival, batch)
            fetched = None if limit == 0 else arrival.fetch(None if self._placement.place == "driver" else limit)
            read = perf_counter()
            try:
                if fetched is not None:
                    rows = fetched.rows
                    bad = self._set_aside(engine.epoch + 1, [fetched.bad()])
                    decision = self._decided(sum(rows.values()))
                    ticked = engine.tick(fetched.changes(), offsets, decision, describe)
                    self._placement.learn_driver(sum(rows.values()), read - start, ticked.tick)
                else:
                    ticked, bad = self._on_cluster(engine, arrival, offsets, describe)
                    rows = dict(ticked.arrived)
                    self._placement.cluster.learn(sum(rows.values()), ticked.tick)
            except BaseException as error:
                self._failed(epoch, perf_counter() - start, error)
                self._state.close_if_uncertain(engine)
                raise
            describe("sinks")
            sinks = perf_counter()
            self._delivery.give(engine, ticked.changes)
        done = perf_counter()
        times = {"fetch": read - start, "tick": ticked.tick, "commit": ticked.commit, "sinks": done - sinks}
        self._note(engine, ticked, batch, rows, bad, times | {"total": done - start}, recomputed)
        self.traps.deletes(engine)
        if engine.epoch % VACUUM_EVERY == 0:
            engine.upkeep.sweep(self._keep_epochs)

    def _limit(self, engine: Engine, arrival: Arrival, batch: int | None) -> int:
        """The most rows to fetch to the driver, beyond which the cluster does all; 0 fetches none."""
        limit = self._placement.limit
        if batch is not None or self._placement.place != "auto":
            return limit
        if arrival.local_bytes() > LARGE:
            return 0
        return min(limit, FIRST) if engine.epoch == 0 else limit

    def _decided(self, rows: int) -> Decision:
        """The decision for rows that are on the driver already: they are worked on there."""
        if self._placement.place != "auto":
            return Decision("driver", f"{self._placement.place} was asked for")
        return self._placement.fetched(rows)

    def _on_cluster(
        self, engine: Engine, arrival: Arrival, offsets: Mapping[str, Any], describe: Callable[[str], None]
    ) -> tuple[Ticked, int]:
        """Run a tick by tasks; if two values have one code, repeat it on the driver, which sees both values."""
        bad = 0

        def inspect(parts: Sequence[pa.Table]) -> None:
            nonlocal bad
            bad = self._set_aside(engine.epoch + 1, parts)

        decision = self._placement.unfetched()
        try:
            frame, whole = arrival.coded(engine), arrival.whole(engine)
            tick = partial(engine.tick_on_cluster, frame, whole, offsets, decision, describe, inspect)
            return self._in_batches(engine, arrival, tick), bad
        except CodeCollision as collision:
            log.info("%s: the driver encodes the batch", collision.message)
            fetched = arrival.fetch(None)
            assert fetched is not None, "without a limit all rows are fetched"
            bad = self._set_aside(engine.epoch + 1, [fetched.bad()])
            again = Decision("driver", "two values have one code")
            return engine.tick(fetched.changes(), offsets, again, describe), bad

    def _in_batches(self, engine: Engine, arrival: Arrival, tick: Callable[[], Ticked]) -> Ticked:
        """Run a tick by tasks that are given rows in batches of a number; if those are too large, in smaller ones."""
        try:
            with counted(self._spark, engine.path, [spec.schema for spec in arrival.specs]):
                return tick()
        except Exception as error:
            if not is_too_large(error):
                raise
            log.info("rows are very long: Spark weighs their batches")
            return tick()

    def _set_aside(self, epoch: int, parts: Sequence[pa.Table]) -> int:
        """Refuse bad rows, or set them aside under the epoch's number, and return how many there were.

        Unless a user has decided, rows are refused, and text that is no row is set aside; late rows always are.
        """
        bad = sum(table.num_rows for table in parts)
        settled: Any = pa.array([LATE] if self._bad_rows == "fail" else [UNREADABLE, LATE])
        refused = [table.filter(pc.invert(pc.is_in(table.column("reason"), settled))) for table in parts]
        if self._bad_rows == "quarantine" or not any(map(len, refused)):
            place = self._state.place
            if bad or place.holds_aside(epoch):
                place.set_aside(epoch, [BAD.empty_table(), *parts])
        else:
            bad = sum(map(len, refused))
            first = next(table.slice(0, 1).to_pylist()[0] for table in refused if table.num_rows)
            many = f"{bad:,} bad row{'s' if bad > 1 else ''}"
            raise BadRows(
                f"source {first['source']} has {many}, the first one {first['raw']}: {first['reason']}",
                hint='nothing was applied; Pipeline(…, bad_rows="quarantine") sets such rows aside',
            )
        return bad

    def _note(
        self,
        engine: Engine,
        ticked: Ticked,
        batch: int | None,
        rows: Mapping[str, int],
        bad: int,
        times: Mapping[str, float],
        recomputed: tuple[str, ...],
    ) -> None:
        del self.progress[:-REMEMBERED]
        where = " then ".join(dict.fromkeys(made.where for made in ticked.decisions))
        by_spark = [f"Spark has recomputed {', '.join(recomputed)}"] if recomputed else []
        done = Progress(
            epoch=ticked.epoch,
            batch=batch,
            rows_in=rows,
            rows_out={name: len(changes) for name, changes in ticked.changes.items()},
            times=times,
            placement=where,
            reason="; ".join((*by_spark, *(made.reason for made in ticked.decisions))),
            state_bytes=engine.state_bytes,
            trace_rows=engine.trace_rows,
            bad_rows=bad,
            recomputed=recomputed,
        )
        self.progress.append(done)
        self._notes.add(done.to_dict() | {"ended": self.progress.totals.ended})
        if self.observer is not None:
            seconds = times["total"]
            self._tell(TickReport(done.epoch, _ago(seconds), seconds, rows, done.rows_out, placement=where))

    def _failed(self, epoch: int, seconds: float, error: BaseException) -> None:
        self._tell(TickReport(epoch, _ago(seconds), seconds, {}, {}, failure=str(error) or type(error).__name__))

    def _tell(self, report: TickReport) -> None:
        """Report an epoch to the observer, if any; an observer's failure is logged and changes nothing."""
        try:
            if self.observer is not None:
                self.observer(report)
        except Exception:
            log.exception("an observer of epochs raised")


def _ago(seconds: float) -> int:
    """The moment so many seconds ago, in nanoseconds since 1970."""
    return time_ns() - int(seconds * 1e9)
