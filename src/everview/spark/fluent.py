"""Fluent queries as views of a pipeline: one flat view for each of their parts.

``p.query("track").related_one("artist", p.query("artist"), on=("artist_id", "id")).materialize("recent")`` defines the
views ``recent`` and ``recent.artist``, each a frame with sinks of its own if it likes. `Pipeline.trees` puts their rows
together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from everview.codes.rows import to_rows
from everview.errors import PipelineError
from everview.frontends.dialects import FLUENT
from everview.frontends.fluent import Home, PreparedQuery, Query, QueryPart, named_plans, to_text, trees
from everview.plan.catalog import Tables
from everview.zset.shown import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.spark.queries import Queries

Keys = Mapping[str, tuple[str, ...]]  # of the sources in which no two rows have the same


class AtSparkPipeline(Home):
    """The home of queries of a pipeline's sources and views."""

    def __init__(
        self, queries: Queries, keys: Keys, defining: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """``defining`` is the block in which views are defined."""
        self._queries, self._keys, self._defining = queries, keys, defining

    def query(self, relation: str, alias: str | None) -> Query:
        return Query.of(self, self.catalog.find(relation), alias)

    @property
    def catalog(self) -> Tables:
        return self._queries.readable(self._keys)

    @property
    def definitions(self) -> AtSparkPipeline:
        return self

    def same(self, other: Home) -> bool:
        return isinstance(other, AtSparkPipeline) and other._queries is self._queries

    def run(self, query: Query, prepared: PreparedQuery | None = None) -> Any:
        raise PipelineError(
            f"a query of {query.said.relation} has no rows before the pipeline runs",
            hint="materialize it under a name, and read that view after refresh()",
        )

    def materialize(self, query: Query, name: str | None) -> tuple[str, ...]:
        """Define the views of a query, and return their names, its own first."""
        if not name:
            raise PipelineError("a view of a pipeline has a name", hint='write materialize("recent")')
        part = query.parts(name)
        views = named_plans(part, name)
        with self._defining():
            text = to_text(query.said)
            for view in views:
                self._queries.define([view], (text if view.name == name else f"{name}\n{text}", FLUENT))
            self._queries.fluent[name] = part
        return tuple(view.name for view in views)


def put_together(name: str, part: QueryPart, tables: Mapping[str, pa.Table]) -> Any:
    """The trees of a query, from the rows of its views."""
    rows = {view: shown(one.plan.schema, to_rows(one.plan.schema, tables[view])) for view, one in part.walk(name)}
    return trees(part, rows, name)
