"""The state directory of a pipeline: opened when it is first needed, and again after a commit of unknown outcome."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from everview.circuit.bounds import LoopBounds
from everview.errors import DefinitionError, ForeignState, PipelineError, StoreError
from everview.runtimes.embedded.turning import TurnPlan
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.evolving import StoredState, planned_turn
from everview.runtimes.spark.placement import Placement
from everview.scalars.session_zone import UTC
from everview.spark.bound import fed
from everview.spark.change import PlannedChange, nothing_planned, planned_change, sink_refusals
from everview.spark.delivery import Delivery
from everview.spark.places import CheckpointPlace
from everview.spark.position import Position, query_of
from everview.spark.redefining import PipelineDefinitions
from everview.spark.zones import require_same_zone
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
    zone: str = UTC


class PipelineState:
    """The engine of a pipeline, and the directories beside its own."""

    def __init__(
        self,
        spark: SparkSession,
        place: CheckpointPlace,
        definitions: PipelineDefinitions,
        delivery: Delivery,
        options: EngineOptions,
    ) -> None:
        self._spark, self.place, self.path, self._definitions = spark, place, place.path, definitions
        self._delivery, self._options = delivery, options
        self.current: Engine | None = None  # the engine, while it is open
        self._version: object = None  # of the definitions that it has
        self._made: tuple[int, ...] | None = None  # which state directory was opened

    @property
    def spark_checkpoint(self) -> Path:
        """The directory where Spark keeps its position in the streams."""
        return self.place.spark

    def engine(self) -> Engine:
        """The engine, opened at the first call, and turned to other definitions if there are any since the last."""
        self._require_same()
        version = self._definitions.version
        if self.current is None:
            self._taken(self._open(), version)
        elif self._version != version:
            self._redefine(self.current)
            self._taken(self.current, version)
        assert self.current is not None, "an engine was opened"
        self.current.run.delivered = self._definitions.delivered
        return self.current

    def _taken(self, engine: Engine, version: object) -> None:
        """Take an engine with a version of the definitions, and deliver its last epoch to sinks that lack it."""
        self.current, self._version = engine, version
        self._made = Engine.made_at(str(self.path))
        self._delivery.claims.now_named(engine.run.renamed)
        self._delivery.again(engine)

    def redefined(self) -> None:
        """Let changed definitions count at once, if the engine is open."""
        if self.current is not None:
            self._check_sinks()
            self._delivery.again(self.engine())

    def _redefine(self, engine: Engine) -> None:
        self._check_definition()
        try:
            engine.redefine(self._definitions.circuit, self._definitions.tables, self._definitions.delivered)
        except BaseException:
            self.close_if_uncertain(engine)
            raise

    def reshard(self, shards: int) -> None:
        """Give the state more shards, and open it anew."""
        engine = self.engine()
        self._delivery.again(engine)
        try:
            engine.upkeep.reshard(self._definitions.circuit, shards)
        finally:
            self.close_if_uncertain(engine)
        self.engine()

    def planned(self) -> PlannedChange:
        """The plan for going on from the stored state with the definitions; nothing is opened to be written."""
        self._check_definition()
        if not Engine.exists(str(self.path)):
            return nothing_planned()
        circuit, tables = self._definitions.circuit, self._definitions.tables
        plan = planned_turn(str(self.path), circuit, tables, self._shards(), fed)
        return planned_change(plan, self._definitions.sinks)

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
        if last is not None and (query, streams[: len(last.streams)]) != (last.query, last.streams):
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
        # In an object store, Spark's checkpoint goes with the state: one without it is left of another state.
        lasting = isinstance(self.path, Path) and query_of(self.spark_checkpoint) is not None
        if lasting and not Engine.exists(str(self.path)):
            raise ForeignState(
                f"{self.path} has the checkpoint of a streaming query, and the state has none of its batches",
                hint="restore the state directory, or start both anew in an empty one",
            )
        self._delivery.opening()
        options, shards = self._options, self._shards()
        require_same_zone(options.zone, Engine.zone_of(str(self.path)))
        return Engine(
            self._spark,
            self._definitions.circuit,
            str(self.path),
            shards=shards,
            tables=self._definitions.tables,
            placement=options.placement,
            partitions=options.partitions or min(shards, self._parallel),
            delivered=self._definitions.delivered,
            check_functions=options.check_functions,
            loops=options.loops,
            fed=fed,
            ready=self._ready,
            zone=options.zone,
        )

    def _ready(self, plan: TurnPlan, stored: StoredState) -> None:
        """Before the state is turned to other definitions: sinks get its last epoch, or refuse other columns."""
        for message, hint in sink_refusals(plan, self._definitions.sinks):
            raise DefinitionError(message, hint=hint)
        self._delivery.before_turn(stored)

    @property
    def _parallel(self) -> int:
        return int(getattr(getattr(self._spark, "sparkContext", None), "defaultParallelism", 0)) or 8

    def _shards(self) -> int:
        stored = Engine.shards_of(str(self.path))
        if stored is not None and Engine.is_split(str(self.path)):
            return stored  # it was made with fewer
        return self._options.shards or stored or max(8, 2 * self._parallel)

    def _check_definition(self) -> None:
        self._definitions.sources.require_all()
        if not self._definitions.workshop.sinks:
            raise PipelineError("there is no view", hint='end a stream with .sink("name")')
        self._check_sinks()

    def _check_sinks(self) -> None:
        views = self._definitions.workshop.sinks
        for sink in self._definitions.sinks:
            if sink.view not in views:
                raise unknown_name("view", sink.view, views)
