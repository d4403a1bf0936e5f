"""Arrange: the trace of an indexed stream, ``I(s)``, kept sorted and shared by all that read it.

The only operator that owns a trace. It appends each delta to the trace and passes it on. A reader asks for the
trace before the tick (z⁻¹ of the trace) or after it. Appending is integration, hence linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from everview.operators.operator import Context, Layout, Matrix, Port, Step, Unary, key_partition, row_partition
from everview.traces.view import View
from everview.zset import ZSet


@dataclass(frozen=True)
class Arrange(Unary):
    """Integrate an indexed stream into a trace: ``trace[t] = Σ_{i≤t} s[i]``; the output is the stream itself."""

    source: Layout
    spread: bool = False  # on every shard a trace of its own rows, whatever their keys

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (
            Port(self.source, row_partition(self.source.schema) if self.spread else key_partition(self.source.key)),
        )

    def step(self, deltas: Sequence[Matrix], views: Sequence[View], context: Context) -> Step:
        (delta,) = deltas
        return Step(delta, append=delta)

    def meaning(self, rows: ZSet) -> ZSet:
        return rows


@dataclass(frozen=True)
class Consolidate:
    """Everything a trace holds, as one Z-set: weights summed over all times, zeros gone.

    Reading the trace after the tick this is the integral of the stream; before the tick, its delay.
    """

    source: Layout

    @property
    def inputs(self) -> tuple[Port, ...]:
        return ()

    @property
    def reads(self) -> tuple[Layout, ...]:
        return (self.source,)

    @property
    def output(self) -> Layout:
        return self.source

    def step(self, deltas: Sequence[Matrix], views: Sequence[View], context: Context) -> Step:
        (trace,) = views
        return Step(trace.consolidated())
