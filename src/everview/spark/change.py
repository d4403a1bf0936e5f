"""A planned change of a pipeline's definitions: what is kept, computed and dropped, and how many rows that reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from everview.circuit.program import Program
from everview.runtimes.embedded.reshape import Refusal
from everview.runtimes.embedded.turning import TurnPlan
from everview.runtimes.tables import TOMBSTONES
from everview.spark.sinks import SinkSpec
from everview.types import Schema


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The effect of a pipeline's present definitions on its stored state, told beforehand.

    ``views`` and ``sources`` say by name what becomes of them; ``kept``, ``computed`` and ``dropped`` count traces.
    ``read`` has the rows that computing takes, by where they are held. ``refused`` says why it cannot be done.

    >>> print(PlannedChange(7, {"exposure": "kept", "by_city": "new"}, {}, 5, 2, 0, {"source account": 1000}))
    from epoch 7:
      view exposure: kept
      view by_city: new
      5 traces are kept, 2 computed, 0 dropped
      reads 1,000 rows: 1,000 of source account
    """

    epoch: int
    views: Mapping[str, str]
    sources: Mapping[str, str]
    kept: int
    computed: int
    dropped: int
    read: Mapping[str, int]
    refused: tuple[str, ...] = ()

    @property
    def rows_read(self) -> int:
        """The number of rows read to compute new views."""
        return sum(self.read.values())

    @property
    def possible(self) -> bool:
        """Whether it can be done."""
        return not self.refused

    def __bool__(self) -> bool:
        """Whether anything changes."""
        changed = any(fate != "kept" for fate in (*self.views.values(), *self.sources.values()))
        return changed or bool(self.computed or self.dropped or self.refused)

    def __str__(self) -> str:
        if not self:
            return f"from epoch {self.epoch}: nothing changes" if self.epoch else "the state is new: all is computed"
        lines = [f"from epoch {self.epoch}:"]
        lines += [f"  view {name}: {fate}" for name, fate in self.views.items()]
        lines += [f"  source {name}: {fate}" for name, fate in self.sources.items() if fate != "kept"]
        lines += [f"  {self.kept} traces are kept, {self.computed} computed, {self.dropped} dropped"]
        told = ", ".join(f"{rows:,} of {what}" for what, rows in self.read.items())
        lines += [f"  reads {self.rows_read:,} rows{f': {told}' if told else ''}"]
        lines += [f"  cannot be done: {why}" for why in self.refused]
        return "\n".join(lines)


def nothing_planned() -> PlannedChange:
    """The change of a state that does not exist yet."""
    return PlannedChange(0, {}, {}, 0, 0, 0, {})


def planned_change(plan: TurnPlan, sinks: Sequence[SinkSpec]) -> PlannedChange:
    """What a plan of the runtime says, in words of the pipeline."""
    reshaped = {each.name: "; ".join(each.differences()) for each in plan.reshapes}
    known = {*plan.fed, *plan.said("tables")}
    sources = {
        name: reshaped.get(name, "kept" if name in known else "new, read at the next refresh")
        for name in plan.program.circuit.sources
        if not name.endswith(TOMBSTONES)
    }
    if not plan.changes:
        kept = dict.fromkeys(plan.program.circuit.sinks, "kept")
        return PlannedChange(plan.manifest.epoch, kept, dict.fromkeys(sources, "kept"), len(plan.kept), 0, 0, {})
    refusals = (*plan.refusals(), *sink_refusals(plan, sinks))
    return PlannedChange(
        plan.manifest.epoch,
        plan.views,
        sources,
        len(plan.kept),
        len(plan.computed),
        len(plan.dropped),
        {_place(plan, name): rows for name, rows in plan.read.items()},
        tuple(f"{message} ({hint})" for message, hint in refusals),
    )


def sink_refusals(plan: TurnPlan, sinks: Sequence[SinkSpec]) -> Iterator[Refusal]:
    """Refusals of sinks of changes whose view has other columns now."""
    circuit, before = plan.program.circuit, plan.said("views")
    for sink in sinks:
        then = before.get(plan.renamed.get(sink.view, sink.view))
        node = plan.program.contents(sink.view) if sink.view in circuit.sinks else None
        if then is None or node is None or sink.mode != "changes" or sink.callback is not None:
            continue
        now = circuit.layout(node).schema
        if Schema.parse(then["schema"]) != now:
            yield (
                f"view {sink.view} has other columns now, ({now}), and the sink has its changes with the old ones, "
                f"({then['schema']}): {sink}",
                "give the sink another path or table, which begins with all rows of the view; the old one stays",
            )


def _place(plan: TurnPlan, trace: str) -> str:
    """Where rows are held that are read: a source, a view, or a trace of an operator."""
    for what in ("tables", "views"):
        for name, said in plan.said(what).items():
            if said is not None and said["trace"] == trace:
                return f"{'source' if what == 'tables' else 'view'} {name}"
    return f"the trace of {_label(plan.program, trace)}"


def _label(program: Program, trace: str) -> str:
    return next(program.circuit.label(node) for node, name in program.names.items() if name == trace)
