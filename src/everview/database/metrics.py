"""The metrics of a database: what it holds, and what has gone in and out since it was opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.exposition import by_label, metric

if TYPE_CHECKING:
    from everview.database.core import Core


@dataclass(frozen=True, slots=True)
class DatabaseMetrics:
    """Numbers of one moment; as text, in Prometheus' format.

    ``rows_in`` and ``rows_out`` are the changed rows of tables and views since the database was opened or its
    definitions changed; ``tables`` and ``views`` the rows that are stored now, those that cancel each other included.
    """

    epoch: int
    tables: Mapping[str, int]
    views: Mapping[str, int]
    rows_in: Mapping[str, int]
    rows_out: Mapping[str, int]
    trace_rows: int
    trace_bytes: int
    interned_values: int
    interned_bytes: int
    listeners: int

    def __str__(self) -> str:
        return "".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from metric("epoch", "gauge", "The last epoch that is committed.", self.epoch)
        yield from by_label("table_rows", "gauge", "Rows stored, cancelling ones included.", "table", self.tables)
        yield from by_label("view_rows", "gauge", "Rows stored, cancelling ones included.", "view", self.views)
        yield from by_label("rows_in_total", "counter", "Changed rows that came in.", "source", self.rows_in)
        yield from by_label("rows_out_total", "counter", "Changed rows of views.", "view", self.rows_out)
        yield from metric("trace_rows", "gauge", "Rows that traces hold.", self.trace_rows)
        yield from metric("trace_bytes", "gauge", "Bytes that traces hold.", self.trace_bytes)
        yield from metric("interned_values", "gauge", "Values of the dictionary.", self.interned_values)
        yield from metric("interned_bytes", "gauge", "Bytes of the dictionary.", self.interned_bytes)
        yield from metric("listeners", "gauge", "Subscriptions to views.", self.listeners)


def metrics_of(core: Core) -> DatabaseMetrics:
    """The metrics of a database now."""
    with core.still:
        core.access.settle()
        run, catalog = core.run, core.catalog
        hidden = {*catalog.guards, *(name for name, table in catalog.tables.items() if table.internal)}
        tables = {
            name: sum(len(trace.before) for trace in run.state.of(table.resolver.trace))
            for name, table in core.definitions.relations.items()
            if name not in hidden
        }
        views = {
            name: sum(len(trace.before) for trace in run.state.of(view.node))
            for name, view in run.views.items()
            if name not in hidden and view.node is not None
        }
        traces = [trace for trace, _, _ in run.state]
        relations, sinks = core.definitions.relations, run.program.circuit.sinks
        return DatabaseMetrics(
            run.epoch,
            tables,
            {catalog.shown.get(name, name): rows for name, rows in views.items()},
            {name: _rows_of(core, relations[name].resolver.trace) for name in tables},
            {catalog.shown.get(name, name): _rows_of(core, sinks[name]) for name in views},
            sum(len(trace.before) for trace in traces),
            sum(trace.past.nbytes for trace in traces),
            len(run.dictionary),
            run.dictionary.nbytes,
            len(core.telling.listeners),
        )


def _rows_of(core: Core, node: int) -> int:
    """The number of rows that a node of the circuit has put out."""
    compiled = core.run.state.compiled
    return (core.run.program.spent[node] if compiled is None else compiled.spent(node)).rows
