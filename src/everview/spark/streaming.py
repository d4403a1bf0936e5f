"""The streaming query of a pipeline: Spark reads the streams, and each of its micro-batches is an epoch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from everview.errors import PipelineError
from everview.runtimes.spark.engine import Engine
from everview.spark.bound import OWN, SNAPSHOTS
from everview.spark.changes import normalized
from everview.spark.checkpoint import make_room, mend, plain_local_files
from everview.spark.combined import combined, counted
from everview.spark.failures import told
from everview.spark.followers import StreamFollower
from everview.spark.following import following
from everview.spark.jvm import is_connect
from everview.spark.position import Position
from everview.spark.spec import SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

OPENING: Final = 10.0  # the most seconds to wait for a query to open its sources
POLLING: Final = 0.02  # between two looks whether it has


class Streaming(StreamFollower["StreamingQuery"]):
    """Starts and stops Spark's query, in whose thread epochs run."""

    _failed: BaseException | None = None  # what ended the query

    def start(
        self, trigger: Mapping[str, Any] | None, name: str | None, require_sinks: Callable[[Engine], None]
    ) -> StreamingQuery:
        """Start the query, with the lock held; ``require_sinks`` refuses sinks that are not ours."""
        if any(is_connect(bound.frame) for bound in self._sources.by_name.values() if bound.streaming):
            raise PipelineError(
                "on Spark Connect micro-batches run at the server, and this pipeline is here",
                hint='follow files by Pipeline(…, positions="state"), or give batch frames to refresh',
            )
        if self._sources.feeds and not {"availableNow", "once"} & {*(trigger or ())}:
            raise PipelineError(
                f"source {self._sources.feeds[0].spec.name} is read between snapshots, which Spark does not follow",
                hint='call refresh() from time to time, or follow files and tables by Pipeline(…, positions="state")',
            )
        engine, checkpoint = self._state.engine(), self._state.spark_checkpoint
        streams = self._sources.streams(engine.offsets)
        if not streams:
            raise PipelineError("no source is a stream", hint="call refresh(), or read a source with readStream")
        if self.active:
            raise PipelineError("the pipeline is running already", hint="stop() it first")
        self.require(engine)
        require_sinks(engine)
        engine.restore_files()
        mend(checkpoint, Position.known(engine.offsets))
        self._state.require_own_checkpoint(engine, tuple(bound.spec.name for bound in streams))
        make_room(checkpoint, len(streams))
        self._epochs.load(engine, {}, None, again=False)
        self._stopping, self._failed = False, None
        specs = [bound.spec for bound in streams]
        together = counted(combined([normalized(bound.frame, bound.spec) for bound in streams]), specs)
        begun = threading.Event()

        def batch(frame: DataFrame, number: int) -> None:
            begun.wait()
            try:
                self.batch(specs, frame, number)
            except BaseException as error:
                self._failed = told(error) or error
                raise

        writer = together.writeStream.foreachBatch(batch).option("checkpointLocation", str(checkpoint))
        writer = writer.trigger(**dict(trigger)) if trigger else writer
        try:
            with plain_local_files(together.sparkSession):
                started = (writer.queryName(name) if name else writer).start()
                self.query = following(started, lambda: self._failed)  # first: whatever raises, `stop` ends it
                _await_sources(started)
        finally:
            begun.set()
        return self.query

    def require(self, engine: Engine) -> None:
        streams, offsets = self._sources.streams(engine.offsets), engine.offsets
        fed = offsets.get(SNAPSHOTS, ())
        if streams and (OWN in offsets or any(bound.spec.name in fed for bound in streams)):
            raise PipelineError(
                "the state has its position in the streams itself, and Spark would read them from their start",
                hint='go on with Pipeline(…, positions="state"), or start anew in an empty directory',
            )

    def batch(self, specs: Sequence[SourceSpec], frame: DataFrame, number: int) -> None:
        """Run the epoch of one micro-batch."""
        with self._lock:
            if self._stopping or self.query is None:
                raise PipelineError("the pipeline is stopping", hint="what has arrived is read at the next start")
            self._epochs.batch(self._state.engine(), specs, frame, str(self.query.id), number)

    def _end(self, query: StreamingQuery) -> None:
        query.stop()


def _await_sources(query: StreamingQuery) -> None:
    """Wait until a query that was started has opened the logs of its sources, which takes their settings."""
    latest = monotonic() + OPENING
    while query.isActive and query.status["message"].startswith("Initializing") and monotonic() < latest:
        sleep(POLLING)
