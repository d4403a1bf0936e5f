"""The work of a circuit's nodes: rows put out, time taken and rows held, read while somebody looks.

The counters are the engine's own. Times of compiled nodes are taken only while somebody looks, since that makes ticks
slower: whoever reads the work asks for them, and they end when nobody has read it for a while.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from everview.circuit.draw import drawn_id
from everview.database.snapshots import core_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everview.circuit.program import Program
    from everview.database import Database
    from everview.runtimes.compiled import Compiled
    from everview.serve.explorer.folding import FoldedCircuit

FEW = 2_000  # nodes of a circuit of which all are asked whether they are compiled; of a larger one, those drawn


@dataclass(frozen=True, slots=True)
class CircuitWork:
    """The counters of a moment, by the names of nodes."""

    epoch: int
    program: Program
    compiled: Compiled | None
    rows: Mapping[str, int]
    steps: Mapping[str, int]
    seconds: Mapping[str, float]
    held: Mapping[str, int]
    known: dict[str, str] = field(default_factory=dict[str, str])  # where nodes run, as far as that was asked

    def how(self, name: str) -> str:
        """Where a node of the root runs; nodes of a recursion run where the recursion does, and have no entry."""
        if name not in self.known:
            node = name[1:]
            said = self.compiled.how(int(node)) if self.compiled is not None and node.isdecimal() else ""
            self.known[name] = said
        return self.known[name]


def work_of(database: Database, before: CircuitWork | None = None) -> CircuitWork:
    """The work of now, with times from now on; for the writer's thread."""
    core = core_of(database)
    run = core.run
    program, compiled = run.program, run.state.compiled
    rows: dict[str, int] = {}
    steps: dict[str, int] = {}
    seconds: dict[str, float] = {}
    if compiled is not None:
        compiled.timed = True
    spent = program.spent if compiled is None else compiled.all_spent()
    for node_id, each in enumerate(spent):
        if each.steps:
            name = f"n{node_id}"
            rows[name], steps[name], seconds[name] = each.rows, each.steps, each.seconds
    held = {
        drawn_id(inner.circuit, node): sum(len(trace.before) for trace in run.state.of(node, path))
        for path, inner in program.nested()
        for node in inner.traces
    }
    same = before is not None and before.program is program and before.compiled is compiled
    known = before.known if before is not None and same else {}
    return CircuitWork(run.epoch, program, compiled, rows, steps, seconds, held, known)


def end_times(database: Database) -> None:
    """Take the times of nodes no longer; for the writer's thread."""
    compiled = core_of(database).run.state.compiled
    if compiled is not None:
        compiled.timed = False


def work_by_box(work: CircuitWork, folded: FoldedCircuit, seen: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The work of every drawn box: for a folded box, the sum over its nodes, and the rows of its output."""
    told: dict[str, dict[str, Any]] = {}
    all_told = len(folded.nodes) <= FEW
    for node, box in seen.items():
        sums = told.setdefault(box, {"rows": 0, "steps": 0, "ms": 0.0, "held": 0})
        sums["steps"] = max(sums["steps"], work.steps.get(node, 0))
        sums["ms"] += 1000 * work.seconds.get(node, 0.0)
        sums["held"] += work.held.get(node, 0)
        if all_told or box == node:
            _count(sums, work.how(node))
    for box, sums in told.items():
        sums["rows"] = sum(work.rows.get(end, 0) for end in folded.ends.get(box, (box,)))
        sums["ms"] = round(sums["ms"], 3)
    return told


def _count(sums: dict[str, Any], how: str) -> None:
    if how.startswith("compiled"):
        sums["compiled"] = sums.get("compiled", 0) + 1
    elif how:
        sums["python"] = sums.get("python", 0) + 1
