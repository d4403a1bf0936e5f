"""Pad: rows with NULL in the columns that they lack, as outer joins need them. Linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from everview.operators.operator import Context, Layout, Step, UnaryOperator
from everview.traces.view import TraceView
from everview.types import Schema
from everview.types.words import Matrix


@dataclass(frozen=True)
class Pad(UnaryOperator):
    """Lay out each row as ``schema``: its own field, or NULL where there is none."""

    source: Layout
    fields: tuple[int | None, ...]
    schema: Schema

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        out = np.empty((delta.shape[0], self.schema.width + 1), np.int64)
        for i, field in enumerate(self.fields):
            if field is None:
                out[:, self.schema.words(i)] = self.schema.fields[i].type.null_words()
            else:
                out[:, self.schema.words(i)] = delta[:, self.source.schema.words(field)]
        out[:, -1] = delta[:, -1]
        return Step(out)
