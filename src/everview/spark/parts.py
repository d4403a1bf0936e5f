"""The parts of a pipeline: the objects that share its work, and the acts that need several of them.

`PipelineDefinitions` has the frames, views and sinks, `PipelineState` opens the state directory and turns it to other
definitions, `PipelineEpochs` runs one epoch in five steps, `Streaming` lets Spark's micro-batches be epochs, and
`Delivery` gives them to the sinks.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, get_args

from everview.blocks import Closing
from everview.circuit.bounds import LoopBounds
from everview.circuit.circuit import Circuit
from everview.errors import PipelineError
from everview.process import ProcessLock
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.placement import Place, Placement
from everview.spark.claims import Claims
from everview.spark.delivery import Delivery
from everview.spark.epochs import PipelineEpochs
from everview.spark.failures import in_our_words
from everview.spark.places import CheckpointPlace
from everview.spark.progress import ProgressLog
from everview.spark.redefining import PipelineDefinitions
from everview.spark.state import EngineOptions, PipelineState
from everview.spark.stream_loop import StreamLoop
from everview.spark.streaming import Streaming
from everview.spark.zones import require_zone, zone_of_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BAD_ROWS = ("fail", "quarantine")
POSITIONS = ("spark", "state")


class PipelineParts(Closing):
    """A pipeline as the objects that share its work; most of what people call is in its subclasses."""

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: str | os.PathLike[str],
        *,
        circuit: Circuit | None = None,
        shards: int | None = None,
        partitions: int | None = None,
        place: Place = "auto",
        bad_rows: str | None = None,
        keep_epochs: int = 1000,
        check_functions: bool = False,
        loops: LoopBounds | None = None,
        positions: str = "spark",
    ) -> None:
        """A pipeline whose state is in a directory that every machine of the cluster sees, or in an object store.

        ``checkpoint`` is a path, or a URL ``s3://…``, ``gs://…``, ``abfss://…`` or ``hdfs://…``.
        With a ``circuit``, `source` binds its sources to frames; without one, `source` makes them.
        ``place`` forces where ticks run; ``bad_rows`` says whether a row that cannot be taken fails its batch or is
        set aside; by default it fails it, unless it is text in files that Spark could not read. Of older epochs,
        ``keep_epochs`` stay readable. ``shards`` is fixed when the state is made.
        ``loops`` bounds what a recursion may do in one epoch; see `everview.connect`. Views mean by text without a
        time zone, by days and by hours what they mean in the session: its ``spark.sql.session.timeZone`` is kept.

        ``positions`` says who keeps the positions in streams: Spark's streaming query in its checkpoint, or the
        ``state``, which follows files, tables and topics by a loop of our own, in less time around a small epoch.
        """
        _one_of("place", place, get_args(Place))
        if bad_rows is not None:
            _one_of("bad_rows", bad_rows, BAD_ROWS)
        _one_of("positions", positions, POSITIONS)
        at_least_one(keep_epochs=keep_epochs, shards=shards, partitions=partitions)
        root = CheckpointPlace.of(os.fspath(checkpoint))
        self.spark = spark
        self.path = root.path
        self.circuit = Circuit() if circuit is None else circuit
        self._keep_epochs = keep_epochs
        self._zone = zone_of_session(spark)
        self._definitions = PipelineDefinitions(self.circuit, given=circuit is not None, zone=self._zone)
        self._sources, self._queries = self._definitions.sources, self._definitions.queries
        self._sinks = self._definitions.sinks
        self._claims = Claims(spark, root.notes)
        self._delivery = Delivery(spark, root.path, root.notes, self._sinks, self._claims)
        self._lock = ProcessLock("the pipeline")  # one epoch at a time
        options = EngineOptions(Placement(place), shards, partitions, check_functions, loops, self._zone)
        self._state = PipelineState(spark, root, self._definitions, self._delivery, options)
        self._epochs = PipelineEpochs(
            spark,
            self._definitions,
            self._state,
            self._delivery,
            placement=options.placement,
            bad_rows=bad_rows,
            keep_epochs=keep_epochs,
        )
        self._own_positions = positions == "state"
        follow = StreamLoop if self._own_positions else Streaming
        self._streaming = follow(self._sources, self._state, self._epochs, self._lock)

    @contextmanager
    def _defining(self) -> Generator[None]:
        """A block that changes definitions: all of it counts, at once if the pipeline is at work, or nothing."""
        with self._lock:
            require_zone(self.spark, self._zone)
            back = self._definitions.mark()
            try:
                yield
                self._sources.bind_clock(self.spark)
                self._state.redefined()
            except BaseException:
                back()
                raise
            if self._state.current is not None:
                self._epochs.recompute(self._state.engine(), None)

    def _require_sinks(self, engine: Engine) -> None:
        self._claims.require(self._sinks, engine.epoch)

    @in_our_words()
    def stop(self, *, drain: bool = False) -> None:
        """End the streaming query after the epoch under way; with ``drain``, after all that has arrived."""
        self._streaming.stop(drain=drain)

    def close(self) -> None:
        """Stop, and release the state directory for other processes."""
        self.stop()
        with self._lock:
            self._state.close()
            self._delivery.close()
            for bound in self._sources.feeds:
                assert bound.feed is not None
                bound.feed.close()

    @property
    def progress(self) -> ProgressLog:
        """The progress of every epoch of this process, in order."""
        return self._epochs.progress

    @property
    def epoch(self) -> int:
        """The last committed epoch; 0 before the first."""
        return self._state.engine().epoch


def at_least_one(**numbers: Any) -> None:
    """Refuse arguments that are no whole number from 1 on."""
    for what, given in numbers.items():
        if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
            raise PipelineError(f"{what} cannot be {given!r}", hint="give a whole number, 1 or more")


def _one_of(what: str, value: Any, allowed: Iterable[str]) -> None:
    choices = tuple(allowed)
    if value not in choices:
        raise PipelineError(f"{what} cannot be {value!r}", hint=f"choose one of {', '.join(choices)}")
