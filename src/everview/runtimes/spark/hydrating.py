"""New traces of a changed definition, computed by tasks: the first tick of what is new, from what the state holds.

Each task reads the traces of its shards that computing starts from, where the driver would have to read them all. It is
one job over the stages of what is new, as a tick is; what is written counts with the commit of the turn.

A recursion runs in rounds that the driver leads, and rows of tables with other columns come by way of Arrow: where
there are any, and where rows expire, the driver computes everything that is new, as one process does.
"""

from __future__ import annotations

from collections.abc import Iterator

from everview.runtimes.embedded.hydrate import expiring_nodes, part_of
from everview.runtimes.embedded.turning import TurnPlan
from everview.runtimes.spark.stages import Job, Start

MANY_ROWS = 1 << 20  # that are read of traces: with fewer, a job costs more than it saves
NO_BYTES = -1  # of a stream for the driver: it finds the rows in the state


def hydration_job(plan: TurnPlan, path: str, partitions: int, *, check: bool, divisions: int) -> Job | None:
    """The job that computes the new traces of a turn; None if tasks cannot."""
    part = part_of(plan.program, plan.hydration.needed)
    if plan.reshapes or any(part.loops) or expiring_nodes(plan.program):
        return None
    last = len(part.stages) - 1
    return Job(
        *(part, path, plan.manifest.epoch, partitions, 0, last, check),
        divisions=divisions,
        views=dict.fromkeys(part.wanted(0, last), NO_BYTES),
        starts=tuple(_starts(plan)),
        held=plan.held,
    )


def _starts(plan: TurnPlan) -> Iterator[Start]:
    program, hydration = plan.program, plan.hydration
    stages = {node: n for n, stage in enumerate(program.stages) for node in (*stage.nodes, *stage.moves)}
    owners = {name: node for node, name in program.names.items()}
    for node in sorted(hydration.given):
        integral = hydration.known[node]
        stored = plan.moved.get(integral.name, integral.name)
        yield Start(node, stages[node], owners[integral.name], stored, integral)
