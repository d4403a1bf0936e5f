"""Constants: relations that are written down, and so the same in every tick.

All of them come from one row, `Unit`, which is there from the first tick on: `Written` replaces it by the rows of a
constant, and is linear. Over whole Z-sets the unit is there in every tick; over changes it is its derivative,
``u − z⁻¹(u)``: there in the first tick after it is added, and nothing after. So a tick costs the same however much is
written down. Every shard gives the unit; distinct makes it one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from everview.codes import encode_pairs
from everview.kernels import instructions
from everview.operators.form import CompiledForm, flat
from everview.operators.operator import Context, Layout, Operator, Port, Step, UnaryOperator
from everview.traces.view import TraceView
from everview.types import BOOLEAN, Field, Schema
from everview.types.words import Matrix

ONE = np.array([[1, 1]], np.int64)


@dataclass(frozen=True)
class Unit(Operator):
    """One row without columns."""

    @property
    def inputs(self) -> tuple[Port, ...]:
        return ()

    @property
    def output(self) -> Layout:
        return Layout(Schema([Field("unit", BOOLEAN, nullable=False)]))

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(instructions.CONSTANT, flat(ONE), ONE.shape[1])

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return Step(ONE)


@dataclass(frozen=True)
class Repeated(Unit):
    """The unit again in every tick, for a circuit over changes that subtracts it one tick late."""


@dataclass(frozen=True)
class Written(UnaryOperator):
    """These rows, each as often as it stands there, for every row of the input."""

    source: Layout
    rows: tuple[tuple[Any, ...], ...]
    schema: Schema

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        weight = int(delta[:, -1].sum())
        return Step(encode_pairs(self.schema, [(row, weight) for row in self.rows], context.dictionary))
