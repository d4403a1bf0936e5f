"""Exchange: rows move to the shard their key belongs to. A linear identity; with one shard, nothing at all.

A shard is a hash of the key's words modulo the number of shards, the same in every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from everview.kernels import instructions
from everview.kernels.large import arrange
from everview.kernels.shard import split
from everview.operators.form import CompiledForm
from everview.operators.operator import (
    Anywhere,
    ByKey,
    Context,
    Evenly,
    Layout,
    OnEveryShard,
    Partition,
    SameRows,
    Single,
    Step,
    word_columns,
)
from everview.traces.view import TraceView
from everview.types.words import Matrix, Words

SAMPLE = 4096  # rows
ALIKE = 0.9  # a sample with fewer different rows comes from many equal ones


@dataclass(frozen=True)
class Exchange(SameRows):
    """The same rows, partitioned anew."""

    source: Layout
    partition: Partition

    @property
    def output(self) -> Layout:
        return Layout(self.source.schema)

    @cached_property
    def _columns(self) -> Words:
        return word_columns(self.source.schema, self.partition.fields if isinstance(self.partition, ByKey) else ())

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(instructions.PASS)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        """After the rows have moved there is nothing left to do."""
        return Step(deltas[0])

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        return self.partition

    def split(self, delta: Matrix, shards: int) -> list[Matrix]:
        """The rows for each shard."""
        delta = added_up(delta)
        if isinstance(self.partition, Single) or shards == 1:
            nothing = delta[:0]
            return [delta, *([nothing] * (shards - 1))]
        if isinstance(self.partition, Evenly):
            return spread(delta, shards)
        if isinstance(self.partition, OnEveryShard):
            return [delta] * shards
        rows, bounds = split(delta, self._columns, shards)
        return [rows[bounds[s] : bounds[s + 1]] for s in range(shards)]

    def spread(self, delta: Matrix, shards: int) -> list[Matrix]:
        """The rows of a source for each shard: where they belong, or where nothing asks for a place, evenly.

        Words that follow those of the schema do not matter.
        """
        return spread(delta, shards) if isinstance(self.partition, Anywhere) else self.split(delta, shards)


def added_up(delta: Matrix) -> Matrix:
    """Consolidate rows before they move, if a sample shows that many are equal."""
    rows, columns = delta.shape
    if rows < 2 * SAMPLE:
        return delta
    words = np.arange(columns - 1)
    sample = np.ascontiguousarray(delta[:: rows // SAMPLE])
    return arrange(delta, words) if arrange(sample, words).shape[0] < ALIKE * sample.shape[0] else delta


def spread(delta: Matrix, shards: int) -> list[Matrix]:
    """Rows anywhere, about as many on each shard; a few rows do not always begin with the same one."""
    if shards == 1:
        return [delta]
    start = int(delta[0].sum()) % shards if delta.shape[0] else 0
    return [np.ascontiguousarray(delta[(s - start) % shards :: shards]) for s in range(shards)]
