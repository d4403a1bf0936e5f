"""A pipeline: DataFrames in, incremental views in between, sinks out, every epoch exactly once.

An epoch takes in what is new of all sources at once, so all views are of one moment. It is committed to the state
directory together with the position in the sources, before any sink is given anything; a sink gets each epoch under
its number, and again under the same number if a crash left it unclear whether it had it. So whatever fails between
two steps, going on from the state loses nothing and doubles nothing.

`PipelineParts` has the objects that do this, `PipelineDefining` the methods that change definitions, `PipelineReading`
those that read. Here are those that run epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from everview.errors import PipelineError
from everview.plan.timed import CLOCK
from everview.spark.defining import PipelineDefining
from everview.spark.epochs import TOKEN
from everview.spark.failures import in_our_words
from everview.spark.parts import at_least_one
from everview.spark.progress import Progress
from everview.spark.reading import PipelineReading
from everview.spark.zones import require_zone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from everview.spark.stream_loop import LoopQuery


class Pipeline(PipelineDefining, PipelineReading):
    """Views over DataFrames that stay right as the data changes.

    ```python
    p = Pipeline(spark, checkpoint="/state/bank")
    transfer = p.source("transfer", transfers, key="id", changes="upsert")
    account = p.source("account", accounts, key="id", changes="cdc")
    joined = transfer.join(account, ("src", "id"))
    joined.aggregate(["country"], total=("sum", "amount")).sink("exposure")
    p.sink("exposure", path="/out/exposure")
    p.start(trigger={"availableNow": True}).awaitTermination()
    p.view("exposure").show()
    ```
    """

    @in_our_words()
    def start(self, trigger: Mapping[str, Any] | None = None, *, name: str | None = None) -> StreamingQuery | LoopQuery:
        """Follow the streaming sources: every micro-batch is one epoch. What batch frames hold is loaded first.

        With ``positions="state"`` no query of Spark's is started; the handle has its methods to wait and to stop.
        """
        with self._lock:
            require_zone(self.spark, self._zone)
            return self._streaming.start(trigger, name, self._require_sinks)

    @in_our_words()
    def refresh(self, *, token: str | None = None, **frames: DataFrame) -> Progress | None:
        """Take in what is new, and return when the views have it.

        Streams are read as far as they go. A batch frame is read once; a frame of upserts or a snapshot, every time,
        until ``refresh(transfer=frame)`` gives more changes of its source. Under the ``token`` of the last refresh,
        frames are not read again.
        """
        with self._lock:
            require_zone(self.spark, self._zone)  # by which text in files becomes times
            engine = self._state.engine()
            self._streaming.require(engine)
            self._require_sinks(engine)
            self._delivery.again(engine)
            given = self._sources.checked(frames)
            more = 0
            if token is None or engine.offsets.get(TOKEN) != token:
                more = self._epochs.load(engine, given, token, again=True)
            while more:
                more = min(more - 1, self._epochs.load(engine, {}, None, again=False))
        if self._sources.has_streams and not self._streaming.active:
            self.start(trigger={"availableNow": True}).awaitTermination()
        return self.progress[-1] if self.progress else None

    @in_our_words()
    def advance(self, now: datetime) -> Progress | None:
        """Tell the clock of views a time, as one epoch; from then on it moves only when it is told.

        Until then it shows the present at every `refresh`, and at every trigger of a stream. A moment without a time
        zone is in UTC.
        """
        if CLOCK not in self._sources.by_name:
            raise PipelineError("no view asks the time", hint="define one with a condition on now() first")
        zoned = now.replace(tzinfo=UTC) if now.tzinfo is None else now
        micros = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        with self._lock:
            engine = self._state.engine()
            self._require_sinks(engine)
            told = {CLOCK: self.spark.sql(f"SELECT timestamp_micros({micros}) AS now")}
            self._epochs.load(engine, told, None, again=False)
        return self.progress[-1] if self.progress else None

    @in_our_words()
    def reshard(self, shards: int) -> None:
        """Split each shard in place, by tasks if the state is large; `shards` is a multiple of the present number.

        That is an epoch of its own, in which no view changes. From then on the state says how many shards there are,
        whatever the pipeline is made with.
        """
        at_least_one(shards=shards)
        with self._lock:
            self._state.reshard(shards)

    @in_our_words()
    def vacuum(self, keep_epochs: int | None = None) -> None:
        """Remove what only older epochs need, and values that no row refers to any more."""
        at_least_one(keep_epochs=keep_epochs)
        with self._lock:
            engine = self._state.engine()
            self._delivery.again(engine)
            engine.upkeep.vacuum(self._keep_epochs if keep_epochs is None else keep_epochs)
