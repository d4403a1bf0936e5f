"""Between Z-sets of rows and the matrices that operators step over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from everview.codes import decode, encode_weighted, ingest_weighted, to_rows
from everview.codes.dictionary import Dictionary
from everview.kernels.sort import sorted_by_value
from everview.operators.functions import Function
from everview.operators.index import Index, recode
from everview.operators.operator import Context, Layout, Operator
from everview.oracle.meanings import MEANINGS
from everview.oracle.rows import Rows
from everview.traces.view import Batches
from everview.types import Schema
from everview.types.words import Matrix
from everview.zset import ZSet
from everview.zset.batch import Batch

Entries = Sequence[tuple[tuple[Any, ...], int]]


class Words:
    """A dictionary, and what is coded by it."""

    def __init__(self, *functions: Function) -> None:
        self.dictionary = Dictionary()
        self.context = Context(self.dictionary, {f.name: f for f in functions})

    def delta(self, schema: Schema, entries: Entries) -> Matrix:
        """As it comes: unsorted, equal rows apart, zero weights among them."""
        return encode_weighted(schema, *ingest_weighted(schema, list(entries)), self.dictionary)

    def batch(self, layout: Layout, entries: Entries, order: Any = ()) -> Matrix:
        """Sorted and consolidated as the layout says; ``order`` is that of the index it comes from."""
        rows = self.delta(layout.schema, entries)
        recode(rows, layout.schema, order)
        whole = Batch.consolidated(layout.schema, rows, self.dictionary).rows
        by_value = self.context.order(layout)
        return whole if by_value is None else sorted_by_value(whole, *by_value.arrays)

    def view(self, layout: Layout, parts: Sequence[Entries], order: Any = ()) -> Batches:
        """A trace of a batch for each part."""
        return self.context.view(layout, *(self.batch(layout, part, order) for part in parts))

    def zset(self, schema: Schema, matrix: Matrix) -> ZSet:
        """What a matrix stands for."""
        assert matrix.dtype == np.int64
        assert matrix.shape[1] == schema.width + 1
        assert matrix.flags.c_contiguous
        return Batch.consolidated(schema, matrix, self.dictionary).to_zset()

    def meant(self, operator: Operator, *inputs: ZSet) -> ZSet:
        """What an operator of a query means to the oracle."""
        ports = zip(operator.inputs, inputs, strict=True)
        rows = tuple(Rows.inside(port.layout.schema, list(entries)) for port, entries in ports)
        found = MEANINGS[type(operator)](operator, rows, self.context.functions)
        return ZSet.of(found.outside(operator.output.schema))

    def entries(self, schema: Schema, matrix: Matrix) -> Entries:
        """The rows of a matrix as they lie."""
        rows = to_rows(schema, decode(schema, matrix[:, :-1], self.dictionary))
        return list(zip(rows, matrix[:, -1].tolist(), strict=True))


def indexed(schema: Schema, key: int) -> Layout:
    """The layout of rows in their order, indexed by their first fields."""
    return Index(Layout(schema), tuple(range(len(schema))), key).output


def key_of(layout: Layout) -> Layout:
    """The layout of the keys alone, as the right side of a semijoin."""
    names = layout.schema.names[: layout.key]
    return indexed(layout.schema.select(names), layout.key)
