"""Explaining a view: its plan, and the circuit that keeps it, with the work of every node so far."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from everview.circuit.nodes import inputs_of, reads_of
from everview.circuit.program import Program
from everview.database.definitions import ViewDefinition
from everview.later import Later
from everview.runtimes.embedded import Embedded

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.lowering.growth import growth
else:
    growth = Later("everview.lowering.growth", "growth")


def explain_view(database: Core, name: str, *, profile: bool = False) -> str:
    """See `Database.explain`."""
    with database.still:
        database.access.ready()
        compiled = database.run.state.compiled
        if compiled is not None:
            compiled.timed = profile
        return _explained(database.run, database.catalog.views[database.catalog.find_view(name)])


def _explained(run: Embedded, view: ViewDefinition) -> str:
    lines = [f"view {view.name}: {view.schema}"]
    if view.text is not None:
        lines += ["", *(f"  {line}" for line in view.text.strip().splitlines())]
    for plan in () if view.plan is None else dict.fromkeys((view.plan, view.optimized)):
        lines += ["", *(f"  {line}" for line in str(plan).splitlines())]
    if not view.materialized:
        return "\n".join([*lines, "", "plain: it stands for its definition where it is read"])
    return "\n".join([*lines, "", *_circuit(run, view.name), "", *_state(run, view.name)])


def _circuit(run: Embedded, view: str) -> list[str]:
    program, compiled = run.program, run.state.compiled
    held = {node: sum(len(trace.before) for trace in run.state.of(node)) for node in program.traces}
    timing = ", times are taken from now on" if compiled is not None and compiled.timed else ""
    lines = [f"epoch {run.epoch:,}{timing}"]
    for node in sorted(behind(program, view)):
        spent = program.spent[node] if compiled is None else compiled.spent(node)
        done = f"steps {spent.steps:,}, rows {spent.rows:,}" if spent.steps else ""
        took = f"{1e6 * spent.seconds:,.0f} µs" if spent.seconds else ""
        holding = f"holds {held[node]:,}" if node in held else ""
        how = "" if compiled is None else compiled.how(node)
        notes = ", ".join(part for part in (holding, done, took, how) if part)
        first, *inside = program.circuit.line(node).splitlines()
        lines += [f"{first}{f'   [{notes}]' if notes else ''}", *inside]
    return lines


def _state(run: Embedded, view: str) -> list[str]:
    """One line for each trace behind a view: how many rows it holds, and whether and why it is bounded."""
    said, nodes = growth(run.program.circuit), behind(run.program, view)
    held = {node: sum(len(trace.before) for trace in run.state.of(node)) for node in said}
    return [f"trace {node} holds {held[node]:,}, {text}" for node, text in sorted(said.items()) if node in nodes]


def behind(program: Program, view: str) -> set[int]:
    """The nodes of a program that a view depends on, its sink included."""
    nodes: set[int] = set()
    waiting = [program.circuit.sinks[view]]
    while waiting:
        index = waiting.pop()
        if index in nodes:
            continue
        nodes.add(index)
        node = program.circuit[index]
        waiting += [i for i in inputs_of(node) if i is not None]
        waiting += [read.node for read in reads_of(node)]
    return nodes


def overview(database: Core) -> str:
    """Tables and views of a database as HTML, every name escaped."""
    catalog = database.catalog
    rows = [("table", name, str(table.schema)) for name, table in catalog.tables.items() if not table.internal]
    rows += [("view" if v.materialized else "plain view", name, str(v.schema)) for name, v in catalog.views.items()]
    counts = [f"{len(database.holdings.contents_of(name)):,}" if kind != "plain view" else "" for kind, name, _ in rows]
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in (*row, count)) + "</tr>"
        for row, count in zip(rows, counts, strict=True)
    )
    head = "".join(f"<th>{name}</th>" for name in ("", "name", "columns", "rows"))
    return f"<p>epoch {database.run.epoch:,}</p><table><tr>{head}</tr>{body}</table>"
