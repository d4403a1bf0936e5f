"""Why a view of a pipeline has a row: the driver looks into the traces of the state, and maps only those it reads."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from everview.codes import decode
from everview.errors import PipelineError
from everview.plan.node import Plan, walk
from everview.plan.nodes import Scan, scans
from everview.runtimes.embedded.once import answer_of
from everview.runtimes.spark.engine import Engine
from everview.spark.redefining import PipelineDefinitions
from everview.types import Schema, unknown_name
from everview.why import WhyAsked
from everview.why.held import Answer, HeldByRun
from everview.zset.batch import Batch

READ_WHOLE = 1_000_000  # rows of relations that the driver reads to answer a part of an explanation at once


def asking(engine: Engine, definitions: PipelineDefinitions, view: str, *, rows: int, seconds: float) -> WhyAsked:
    """Questions about a view of a pipeline; the caller holds the lock."""
    held = HeldByPipeline(engine, definitions)
    if view not in engine.run.views and held.plan_of(view) is None:
        raise unknown_name("view", view, engine.run.views)
    if held.plan_of(view) is None:
        raise PipelineError(
            f"view {view} was built of streams, or holds what was derived an epoch ago: it has no plan to look into",
            hint="define it in SQL, Datalog, EDN, step by step or by a DataFrame",
        )
    held.require_kept(view)
    return WhyAsked(held, view, rows=rows, seconds=seconds, asked="p")


class HeldByPipeline(HeldByRun):
    """The stored state of a pipeline, as explanations read it."""

    def __init__(self, engine: Engine, definitions: PipelineDefinitions) -> None:
        super().__init__(engine.run)
        self._engine, self._sources = engine, definitions.sources.by_name
        self._plan_of = cache(definitions.queries.plan_of)  # an explanation asks for the same plans again and again

    def schema_of(self, relation: str) -> Schema:
        """The columns of a source or a view."""
        if relation in self._sources:
            circuit = self._engine.program.circuit
            return circuit.layout(circuit.sources[relation]).schema
        plan = self.plan_of(relation)
        return self.run.view(relation).schema if plan is None else plan.schema

    def plan_of(self, relation: str) -> Plan | None:
        """The plan of a view; None for a source, and for a view that was built of streams."""
        return self._plan_of(relation)

    def keeps(self, relation: str) -> bool:
        """Whether the rows of a source or a view are held."""
        return relation in self.run.tables or relation in self.run.views

    def is_table(self, relation: str) -> bool:
        """Whether a relation is a source."""
        return relation in self._sources

    def kept_views(self) -> Iterable[str]:
        """The views of the state."""
        return self.run.views

    def answer(self, plan: Plan) -> Answer | None:
        """The rows of a plan now; None if the driver would have to read too many rows."""
        if sum(map(self._size, scans(plan))) > READ_WHOLE:
            return None
        rows = answer_of(plan, self._contents, self.run.dictionary, self.run.bounds)
        return decode(rows.schema, rows.rows[:, :-1], rows.dictionary), rows.weights

    def _size(self, relation: str) -> int:
        engine = self._engine
        return engine.rows_of_table(relation) if relation in self._sources else engine.rows_of(relation)

    def _contents(self, relation: str) -> Batch:
        return self._engine.contents(relation) if relation in self._sources else self.run.view(relation).contents()

    def require_kept(self, view: str) -> None:
        """Refuse a view below which a source is not kept."""
        waiting, seen = [view], set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self._sources and not self.keeps(name):
                raise PipelineError(
                    f"the contents of {name} are not kept, so the rows behind {view} are not known",
                    hint="make this source with keep=True",
                )
            plan = self.plan_of(name)
            waiting += [] if plan is None else [node.relation for node in walk(plan) if isinstance(node, Scan)]
