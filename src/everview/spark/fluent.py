"""Fluent queries as views of a pipeline: one flat view for each of their parts.

``p.query("track").related_one("artist", p.query("artist"), on=("artist_id", "id")).materialize("recent")`` defines the
views ``recent`` and ``recent.artist``, each a frame with sinks of its own if it likes. `Pipeline.trees` puts their rows
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.codes.rows import to_rows
from everview.errors import PipelineError
from everview.frontends.fluent import Home, Part, Query, trees
from everview.optimize import optimize
from everview.plan.node import Plan
from everview.runtimes.embedded.rehearse import rehearse_plans
from everview.types import Schema, unknown_name
from everview.zset.shown import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.spark.queries import Queries

Keys = Mapping[str, tuple[str, ...]]  # of the sources in which no two rows have the same


class AtPipeline:
    """Where the queries of a pipeline are at home."""

    def __init__(self, queries: Queries, keys: Keys) -> None:
        self._queries, self._keys = queries, keys

    def query(self, relation: str, alias: str | None) -> Query:
        return Query.of(self, self.find(relation), alias)

    def same(self, other: Home) -> bool:
        return isinstance(other, AtPipeline) and other._queries is self._queries

    def names(self) -> Iterable[str]:
        return self._queries.relations()

    def find(self, name: str) -> str:
        if name not in self._queries.relations():
            raise unknown_name("source or view", name, self._queries.relations())
        return name

    def relation(self, name: str) -> Schema | Plan:
        return self._queries.relations()[name]

    def key(self, name: str) -> tuple[str, ...]:
        return self._keys.get(name, ())

    def prepare(self, query: Query) -> Prepared:
        return Prepared(query, query.parts())

    def run(self, query: Query) -> Any:
        raise PipelineError(
            f"a query of {query.said.relation} has no rows before the pipeline runs",
            hint="materialize it under a name, and read that view after refresh()",
        )

    def materialize(self, query: Query, name: str | None) -> tuple[str, ...]:
        """Define the views of a query; their names, its own first."""
        if not name:
            raise PipelineError("a view of a pipeline has a name", hint='write materialize("recent")')
        part = query.parts(name)
        found = dict(part.walk(name))
        for view in found:
            self._queries.require_free(view)
        better = {view: optimize(one.plan) for view, one in found.items()}
        rehearse_plans(better.values())
        for view, one in found.items():
            self._queries.add(view, one.plan, better[view], None)
        self._queries.fluent[name] = part
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that has been checked as a whole, and planned."""

    query: Query
    part: Part

    def materialize(self, name: str) -> tuple[str, ...]:
        """See `AtPipeline.materialize`."""
        return self.query.materialize(name)

    def explain(self) -> str:
        """The plan of every part, as it would be computed."""
        named = self.part.walk(self.query.said.relation)
        return "\n\n".join(f"{name}\n{optimize(part.plan)}" for name, part in named)


def put_together(name: str, part: Part, tables: Mapping[str, pa.Table]) -> Any:
    """The trees of a query, from the rows of its views."""
    rows = {view: shown(one.plan.schema, to_rows(one.plan.schema, tables[view])) for view, one in part.walk(name)}
    return trees(part, rows, name)
