"""Constant: a relation that is written down, and so the same in every tick.

Over whole Z-sets it is those rows, every tick; over changes it is their derivative, ``c − z⁻¹(c)``: all of them in
the first tick after it is added, nothing after. Every shard gives all rows, so whoever adds one takes distinct rows
of it: what several shards say is then said once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from everview.codes import encode_pairs
from everview.operators.operator import Context, Layout, Matrix, Port, Step
from everview.traces.view import View
from everview.types import Schema
from everview.zset import ZSet


@dataclass(frozen=True)
class Constant:
    """These rows, once each."""

    rows: tuple[tuple[Any, ...], ...]
    schema: Schema

    @property
    def inputs(self) -> tuple[Port, ...]:
        return ()

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def step(self, deltas: Sequence[Matrix], views: Sequence[View], context: Context) -> Step:
        return Step(encode_pairs(self.schema, [(row, 1) for row in self.rows], context.dictionary))

    def meaning(self) -> ZSet:
        return ZSet.of([(row, 1) for row in self.rows])


@dataclass(frozen=True)
class Repeated(Constant):
    """The rows again in every tick, for a circuit over changes that subtracts them one tick late."""
