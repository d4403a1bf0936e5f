"""The state directory of a pipeline: opened when it is first needed, and again after a commit of unknown outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from everview.circuit.bounds import LoopBounds
from everview.circuit.circuit import Circuit
from everview.errors import DefinitionError, ForeignState, PipelineError, StoreError
from everview.runtimes.embedded.turning import TurnPlan
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.placement import Placement
from everview.spark.bound import BoundSources, fed
from everview.spark.change import sink_refusals
from everview.spark.delivery import Delivery
from everview.spark.position import Position, query_of
from everview.spark.sinks import SinkSpec
from everview.traces.store import Store
from everview.types import unknown_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options of an engine; the defaults of ``shards`` and ``partitions`` follow the number of cores."""

    placement: Placement
    shards: int | None
    partitions: int | None
    check_functions: bool
    loops: LoopBounds | None


class PipelineState:
    """The engine of a pipeline, and the directories beside its own."""

    def __init__(
        self,
        spark: SparkSession,
        path: Path,
        circuit: Circuit,
        sources: BoundSources,
        sinks: Sequence[SinkSpec],
        delivery: Delivery,
        options: EngineOptions,
    ) -> None:
        self._spark, self.path, self._circuit, self._sources = spark, path, circuit, sources
        self._sinks, self._delivery, self._options = sinks, delivery, options
        self.current: Engine | None = None  # the engine, while it is open
        self._made: tuple[int, ...] | None = None  # which state directory was opened

    @property
    def spark_checkpoint(self) -> Path:
        """The directory where Spark keeps its position in the streams."""
        return self.path / "spark"

    @property
    def quarantine(self) -> Path:
        """The directory where bad rows are set aside."""
        return self.path / "quarantine"

    def engine(self) -> Engine:
        """The engine, opened at the first call."""
        self._require_same()
        if self.current is None:
            self.current = self._open()
            self._made = Engine.made_at(str(self.path))
            self._delivery.claims.renamed = self.current.run.renamed
            self._delivery.again(self.current)
        return self.current

    def close(self) -> None:
        """Release the state directory for other processes."""
        if self.current is not None:
            self.current.close()
            self.current = None

    def close_if_uncertain(self, engine: Engine) -> None:
        """Close after a commit that failed or that this process has not seen: only the disk knows the outcome."""
        if engine.uncertain:
            engine.close()
            self.current = None

    def require_own_checkpoint(self, engine: Engine, streams: tuple[str, ...]) -> None:
        """Refuse another query's checkpoint, or other streams, before Spark reads anything."""
        last, query = Position.known(engine.offsets), query_of(self.spark_checkpoint)
        if last is not None and (query, streams) != (last.query, last.streams):
            Position(query or "a new one", 0, "", streams).is_replay_of(last)

    def _require_same(self) -> None:
        """Refuse to go on if the state directory was deleted meanwhile; one that was put back is opened again."""
        if self._made is None:
            return
        made = Engine.made_at(str(self.path))
        if made != self._made:
            self.close()
        if made is None:
            raise StoreError(
                f"the state at {self.path} is gone: it was deleted while the pipeline had it open",
                hint="put it back and go on; or make the pipeline anew, which begins from nothing",
            )

    def _open(self) -> Engine:
        self._check_definition()
        if not Engine.exists(str(self.path)) and query_of(self.spark_checkpoint) is not None:
            raise ForeignState(
                f"{self.path} has the checkpoint of a streaming query, and the state has none of its batches",
                hint="restore the state directory, or start both anew in an empty one",
            )
        options = self._options
        parallel = int(getattr(getattr(self._spark, "sparkContext", None), "defaultParallelism", 0)) or 8
        shards = options.shards or Engine.shards_of(str(self.path)) or max(8, 2 * parallel)
        return Engine(
            self._spark,
            self._circuit,
            str(self.path),
            shards=shards,
            tables=self._sources.tables,
            placement=options.placement,
            partitions=options.partitions or min(shards, parallel),
            delivered=dict.fromkeys(sink.view for sink in self._sinks),
            check_functions=options.check_functions,
            loops=options.loops,
            fed=fed,
            ready=self._ready,
        )

    def _ready(self, plan: TurnPlan, stored: Store) -> None:
        """Before the state is turned to other definitions: sinks get its last epoch, or refuse other columns."""
        for message, hint in sink_refusals(plan, self._sinks):
            raise DefinitionError(message, hint=hint)
        self._delivery.before_turn(stored)

    def _check_definition(self) -> None:
        self._sources.require_all()
        if not self._circuit.sinks:
            raise PipelineError("there is no view", hint='end a stream with .sink("name")')
        for sink in self._sinks:
            if sink.view not in self._circuit.sinks:
                raise unknown_name("view", sink.view, self._circuit.sinks)
