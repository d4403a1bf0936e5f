"""Arrange: the trace of an indexed stream, ``I(s)``, kept sorted and shared by all that read it.

The only operator that owns a trace. It appends each delta to the trace and passes it on. A reader asks for the
trace before the tick (z⁻¹ of the trace) or after it. Appending is integration, hence linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from everview.kernels import instructions
from everview.kernels.timed import stamped
from everview.operators.form import CompiledForm
from everview.operators.operator import (
    Context,
    InPlace,
    Layout,
    Operator,
    Partition,
    Port,
    SameRows,
    Step,
    TimedStep,
    TimedView,
    key_partition,
    row_partition,
)
from everview.traces.view import TraceView
from everview.types.words import Matrix, Words


@dataclass(frozen=True)
class Arrange(InPlace, SameRows):
    """Integrate an indexed stream into a trace: ``trace[t] = Σ_{i≤t} s[i]``; the output is the stream itself."""

    source: Layout
    spread: bool = False  # on every shard a trace of its own rows, whatever their keys
    relays = True
    orders_values = True

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (
            Port(self.source, row_partition(self.source.schema) if self.spread else key_partition(self.source.key)),
        )

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(instructions.ARRANGE)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        return Step(delta, append=delta)

    def step_at(
        self, now: Words, deltas: Sequence[Matrix], woken: Matrix | None, views: Sequence[TimedView], context: Context
    ) -> TimedStep:
        (delta,) = deltas
        return TimedStep(delta, append=stamped(delta, now))


@dataclass(frozen=True)
class Consolidate(Operator):
    """Everything a trace holds, as one Z-set: weights summed over all times, zeros gone.

    Reading the trace after the tick this is the integral of the stream; before the tick, its delay.
    """

    source: Layout
    root_only = "a trace is not read whole inside a child", "integrate at the root, then enter"

    @property
    def inputs(self) -> tuple[Port, ...]:
        return ()

    @property
    def alone(self) -> bool:
        return True

    @property
    def reads(self) -> tuple[Layout, ...]:
        return (self.source,)

    @property
    def output(self) -> Layout:
        return self.source

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (trace,) = views
        return Step(trace.consolidated())

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        return reads[0]
