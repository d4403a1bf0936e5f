"""Explaining a pipeline: what it reads, keeps and delivers, and where its last epochs ran, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import title
from everview.circuit.program import Program
from everview.lowering.growth import growth
from everview.runtimes.spark.engine import Engine
from everview.spark.progress import Progress
from everview.spark.recomputing import RecomputedView
from everview.spark.sinks import SinkSpec
from everview.spark.spec import SourceSpec

SHOWN = 5  # epochs


def explain(
    engine: Engine,
    query: Circuit,
    sources: Sequence[SourceSpec],
    sinks: Sequence[SinkSpec],
    done: Sequence[Progress],
    recomputed: Sequence[RecomputedView] = (),
) -> str:
    """The text of `Pipeline.explain`."""
    lines = [
        f"epoch {engine.epoch}, {engine.program.shards} shards, {engine.trace_rows:,} rows in traces, "
        f"{engine.state_bytes:,} bytes stored"
    ]
    lines += ["sources", *(f"  {_source(spec)}" for spec in sources)]
    lines += ["recomputed", *(f"  {view}" for view in recomputed)] if recomputed else []
    lines += ["sinks", *(f"  {sink}" for sink in sinks)] if sinks else []
    lines += ["query", *(f"  {line}" for line in str(query).splitlines())]
    lines += ["stages", *_stages(engine)]
    lines += ["traces", *_growth(engine)]
    lines += [f"placement: {engine.placement.place}", engine.placement.table()]
    lines += ["last epochs", *(f"  {_epoch(epoch)}" for epoch in done[-SHOWN:])] if done else []
    return "\n".join(lines)


def _source(spec: SourceSpec) -> str:
    key = f", key {', '.join(spec.key)}" if spec.key else ""
    order = f", ordered by {spec.order}" if spec.order else ""
    return f"{spec.name} ({spec.schema}): {spec.changes}{key}{order}"


def _growth(engine: Engine) -> Iterator[str]:
    """Whether each trace of the root is bounded, and why."""
    for node, said in sorted(growth(engine.program.circuit).items()):
        yield f"  {node}: {said}"


def _stages(engine: Engine) -> Iterator[str]:
    """The stages of a shard's work, with the rows of the traces on all shards."""
    yield from _stages_of(engine.program, engine.rows_by_trace, "  ")


def _stages_of(program: Program, rows: Counter[str], margin: str) -> Iterator[str]:
    for number, stage in enumerate(program.stages):
        arrive = (
            f": {', '.join(f'{node} {program.circuit.layout(node)}' for node in stage.moves)} arrive"
            if stage.moves
            else ""
        )
        yield f"{margin}stage {number + 1}{arrive}"
        for node in stage.nodes:
            held = f", {rows[program.names[node]]:,} rows" if node in program.names else ""
            yield f"{margin}  {node} {title(program.circuit[node])}{held}"
        for loop in program.loops[number]:
            yield f"{margin}  loop {loop.name}, repeated until nothing changes"
            yield from _stages_of(loop.program, rows, f"{margin}    ")


def _epoch(done: Progress) -> str:
    return (
        f"epoch {done.epoch} on the {done.placement} in {done.milliseconds('total'):.0f} ms "
        f"(tick {done.milliseconds('tick'):.1f} ms): {done.reason}"
    )
