"""Changes of views too large for the driver: the state has references to them, and tasks read them.

Such a change is not fetched. The view has it in its trace when the epoch is committed, so it is the difference between
two epochs, which the data source reads shard by shard. What the commit keeps of it, for sinks that have yet to be given
it, is which epochs these are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from everview.circuit.nodes import Sink, inputs_of
from everview.circuit.program import Program
from everview.kernels.merge import merge
from everview.runtimes.spark import stored
from everview.types import ANY, ID, Atom, Schema, Type, parts_of_type
from everview.types.words import Words
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_BYTES = 8 << 20  # of one view's change on one shard that the driver fetches


@dataclass(frozen=True, slots=True)
class StoredChange:
    """The change of a view after one epoch and up to another; ``rows`` is the most that it can have."""

    path: str
    view: str
    schema: Schema
    since: int
    until: int
    rows: int

    def __len__(self) -> int:
        return self.rows

    def frame(self, spark: SparkSession) -> DataFrame:
        """The change as tasks read it, with ``_weight``."""
        options = {"view": self.view, "since": str(self.since), "until": str(self.until)}
        return spark.read.format("everview").options(**options).load(self.path)

    def batch(self) -> Batch:
        """The change, fetched."""
        with stored.between(self.path, self.since, self.until) as (before, after):
            whole = np.empty((0, self.schema.width + 1), np.int64)
            for shard in range(stored.shards(after)):
                whole = merge(whole, stored.changes(before, after, self.view, shard))
            states = [after] if before is None else [before, after]
            return Batch(self.schema, whole, stored.dictionary_for(self.schema, whole, states))

    @property
    def block(self) -> Words:
        """The words that a commit keeps for this change: one dimension, unlike rows, which have two."""
        return np.array([self.since, self.until, self.rows], np.int64)

    @classmethod
    def of_block(cls, path: str, view: str, schema: Schema, block: Words) -> StoredChange:
        since, until, rows = block.tolist()
        return cls(path, view, schema, since, until, rows)


Change = Batch | StoredChange


def shown_alike(schema: Schema) -> bool:
    """Whether tasks show rows as the driver does: Spark has no type for some values."""
    return not any(_is_foreign(field.type) for field in schema)


def _is_foreign(type_: Type) -> bool:
    return type_ in (ANY, ID) or isinstance(type_, Atom) or any(map(_is_foreign, parts_of_type(type_)))


@lru_cache(4)
def read_from_state(program: Program) -> dict[int, str]:
    """The views whose changes the state has, too, and that the driver wants for nothing else; by stream."""
    circuit = program.circuit
    elsewhere = {outer for loops in program.loops for loop in loops for _, outer in loop.imports}
    for first, last in program.pieces:
        elsewhere |= program.needed(first, last) | program.shared(first, last)
        for node in program.stages[first].moves:
            elsewhere.update(i for i in inputs_of(circuit[node]) if i is not None)
    sinks = [node for node in circuit if isinstance(node, Sink) and not node.table]
    inputs = Counter(sink.input for sink in sinks)
    return {
        sink.input: sink.name
        for sink in sinks
        if program.contents(sink.name) is not None
        and not sink.positive
        and sink.input not in elsewhere
        and inputs[sink.input] == 1
        and shown_alike(circuit.layout(sink.input).schema)
    }
