"""Aggregates over frames that read values in an order of their own, or each different value once.

A frame is a group of rows, and computed as one. All rows are sorted once by the order of the call. A percentile is then
the row of a rank, found bit by bit without looking at the rows of each frame; the value at an end of the order is the
least or greatest rank; for the others the rows of every frame are gathered, those of equal frames once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from everview.operators.aggregate import Call
from everview.operators.aggregate.collected import collected
from everview.operators.aggregate.operator import COLLECTED, ENDS
from everview.operators.aggregate.ordered import IN_ORDER, Lay, Ordered, Ordering
from everview.operators.index import Index
from everview.operators.operator import Context, Layout
from everview.operators.window.frames import Flags, Places
from everview.operators.window.functions import NONE, FramedOver, Spans, added_up, least, present_in, widened
from everview.types import BIGINT, Field, Schema
from everview.types.words import Matrix, Words

ROWS = Call("count")
GATHERED = 1 << 21  # rows of frames at a time
PERCENTILES = ("percentile", "percentile discrete", "quantile")


@dataclass(frozen=True)
class AggregateOver(FramedOver):
    """An aggregate over frames, with all that a call over groups says: DISTINCT, an order, a share, a separator."""

    call: Call = ROWS

    def reads_values(self, schema: Schema) -> bool:
        if not self.call.ordered and not self.call.distinct:
            return False
        ordering = Ordering.of(self.call, schema)
        return self.function in COLLECTED or any(not schema.fields[f].type.ordered for f, _ in ordering.fields)

    def words(self, places: Places, schema: Schema, context: Context) -> Matrix:
        call, spans = self.call, self.spans(places, schema)
        if not call.ordered and not call.distinct:
            return added_up(call, self.result, places.rows, schema, spans)
        rows = RowsInOrder.of(call, places.rows, schema, context)
        if self.function in ENDS:
            return self._end(rows, spans)
        field = rows.schema.fields[rows.places[call.fields[0]]]
        if self.function in PERCENTILES and not call.distinct:
            return IN_ORDER[self.function](call, field, Quantiles(rows.lay, (), (), rows, spans))
        frames, frame_of_row = np.unique(np.stack([e for span in spans for e in span], 1), axis=0, return_inverse=True)
        parts = [self._of_frames(rows, frames[block], field, context) for block in _blocks(frames)]
        return np.concatenate(parts)[frame_of_row.ravel()]

    def _end(self, rows: RowsInOrder, spans: Spans) -> Matrix:
        """The value of the first or last row of each frame, in the order of the call."""
        first = self.function in ("min", "first")
        ranks = np.where(rows.present, rows.ranks if first else -rows.ranks, NONE)
        extremes = np.minimum.reduce([least(ranks, low, high) for low, high in spans])
        there = extremes != NONE
        words = rows.rows[np.abs(np.where(there, extremes, 0)), rows.lay.words[self.call.fields[0]]]
        return np.where(there[:, None], words, np.array(self.result.type.null_words(), np.int64))

    def _of_frames(self, rows: RowsInOrder, frames: Matrix, field: Field, context: Context) -> Matrix:
        """The results of some frames, whose rows are gathered."""
        gathered = GatheredFrames(rows.lay, (), (), rows, frames)
        if not self.call.ordered:
            values, starts = gathered.all_of(self.call)
            plain = replace(self.call, fields=(rows.places[self.call.fields[0]],), distinct=False)
            return added_up(plain, self.result, values, rows.schema, [(starts[:-1], starts[1:])])
        if self.function in IN_ORDER:
            return IN_ORDER[self.function](self.call, field, gathered)
        return collected(self.call, rows.source, self.result, gathered, context)


@dataclass(frozen=True)
class RowsInOrder:
    """The different rows of some partitions, in the order of a call, and the rank that every row has among them.

    All fields are nullable here: a frame may have no rows.
    """

    source: Schema  # of the partitions
    lay: Lay
    rows: Matrix
    ranks: Words
    present: Flags  # the rows that a call counts

    @property
    def schema(self) -> Schema:
        return self.lay.layout.schema

    @cached_property
    def places(self) -> dict[int, int]:
        """Where the fields of the partitions stand among those of the rows in order."""
        return {field: place for place, (field, _) in enumerate(self.lay.ordering.fields)}

    @staticmethod
    def of(call: Call, rows: Matrix, schema: Schema, context: Context) -> RowsInOrder:
        """Sort the rows of partitions."""
        source = Schema(Field(field.name, field.type) for field in schema.fields)
        ordering = Ordering.of(call, source)
        fields = [field for field, _ in ordering.fields]
        number = Field(_unlike([source.names[field] for field in fields]), BIGINT, nullable=False)
        chosen = Schema([*(source.fields[field] for field in fields), number])
        columns = [widened(rows[:, schema.words(f)], schema.fields[f], source.fields[f]) for f in fields]
        count = rows.shape[0]
        given = np.column_stack([*columns, np.arange(count), np.ones(count, np.int64)])
        index = Index(Layout(chosen), tuple(range(len(chosen))), 0, ordering.order(0))
        ordered = index.step([given], (), context).out
        differs = np.ones(count, np.bool_)
        differs[1:] = (ordered[1:, :-2] != ordered[:-1, :-2]).any(axis=1)
        ranks = np.empty(count, np.int64)
        ranks[ordered[:, -2]] = np.cumsum(differs) - 1
        lay = Lay(ordering, index.output)
        present = np.logical_and.reduce([present_in(rows, schema, f) for f in ordering.present], initial=True)
        return RowsInOrder(source, lay, lay.restored(ordered[differs]), ranks, np.broadcast_to(present, count))


def _unlike(names: list[str]) -> str:
    name = "number"
    while name in names:
        name += "'"
    return name


def _blocks(frames: Matrix) -> Iterator[slice]:
    """Frames at a time, of about as many rows each."""
    sizes = (frames[:, 1::2] - frames[:, ::2]).sum(axis=1)
    blocks = np.cumsum(sizes) // GATHERED
    edges = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), frames.shape[0]]
    for start, stop in pairwise(edges):
        yield slice(start, stop)


@dataclass(frozen=True)
class GatheredFrames(Ordered):
    """Frames as groups, with the rows of each in the order of the call; a frame is (first, end) of every span."""

    sorted_rows: RowsInOrder
    frames: Matrix

    @cached_property
    def everything(self) -> tuple[Matrix, Words]:
        count, spans = self.frames.shape[0], self.frames.shape[1] // 2
        lows = self.frames[:, ::2].ravel()
        sizes = self.frames[:, 1::2].ravel() - lows
        frame = np.repeat(np.repeat(np.arange(count), spans), sizes)
        row = np.arange(frame.size) + np.repeat(lows - (np.cumsum(sizes) - sizes), sizes)
        kept = self.sorted_rows.present[row]
        every = max(self.sorted_rows.rows.shape[0], 1)
        keys, weights = np.unique((frame * every + self.sorted_rows.ranks[row])[kept], return_counts=True)
        rows = self.sorted_rows.rows[keys % every]
        rows[:, -1] = weights
        return rows, np.searchsorted(keys // every, np.arange(count + 1))


@dataclass(frozen=True)
class Quantiles(Ordered):
    """Frames as groups, of which the value at a place is asked; their rows are never gathered.

    Ranks are told bit by bit, from the highest: rows whose bit is 0 are put before those whose bit is 1, each in their
    order, so that a frame stays a span, and how many rows of the frame have a 0 tells which half has the place.
    """

    sorted_rows: RowsInOrder
    spans: Spans

    @cached_property
    def everything(self) -> tuple[Matrix, Words]:
        return self.sorted_rows.rows, np.zeros(1, np.int64)

    @cached_property
    def _edges(self) -> Spans:
        """The spans among the rows that count."""
        known = np.append(0, np.cumsum(self.sorted_rows.present))
        return [(known[low], known[high]) for low, high in self.spans]

    def counts(self, call: Call) -> Words:
        counts = [high - low for low, high in self._edges]
        return sum(counts[1:], counts[0])

    def at(self, call: Call, places: Words) -> Words:
        ranks, edges = self.sorted_rows.ranks[self.sorted_rows.present], self._edges
        values, left = np.zeros(places.size, np.int64), places
        for bit in reversed(range(int(ranks.max(initial=0)).bit_length())):
            ones = (ranks >> bit & 1).astype(np.bool_)
            zeros = np.append(0, np.cumsum(~ones))
            inside = [zeros[high] - zeros[low] for low, high in edges]
            lower = sum(inside[1:], inside[0])
            upper = left >= lower
            values |= upper.astype(np.int64) << bit
            left = np.where(upper, left - lower, left)
            edges = [
                (np.where(upper, zeros[-1] + low - zeros[low], zeros[low]),
                 np.where(upper, zeros[-1] + high - zeros[high], zeros[high]))
                for low, high in edges
            ]  # fmt: skip
            ranks = np.concatenate([ranks[~ones], ranks[ones]])
        return np.where((places >= 0) & (places < self.counts(call)), values, -1)
