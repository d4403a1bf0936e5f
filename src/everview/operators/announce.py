"""Announce: the same rows on every shard, for what all shards have to know. A linear identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from everview.kernels import machine
from everview.operators.form import CompiledForm
from everview.operators.operator import Context, InPlace, Layout, OnEveryShard, Port, SameRows, Step
from everview.traces.view import TraceView
from everview.types.words import Matrix


@dataclass(frozen=True)
class Announce(InPlace, SameRows):
    """A stream of few rows, told to all shards."""

    source: Layout

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self.source, OnEveryShard()),)

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(machine.PASS)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        """The rows, once they are there."""
        return Step(deltas[0])
