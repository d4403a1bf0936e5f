"""Window functions, over whole columns.

- Ranks follow from places alone.
- Values of other rows (lag, first_value, …) are copied, word for word.
- The least and greatest of a frame are found by rank, from the least of all spans of 1, 2, 4, … rows.
- What is added up (sum, avg, variance, …) is added up exactly, as `Aggregate` does it: every value is spread into
  digits, and the digits of a frame are a difference of two running sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.codes import decode
from everview.operators.aggregate import Call, Weigh, slots
from everview.operators.aggregate.added import FINISHED, Sums
from everview.operators.aggregate.floats import words_of
from everview.operators.index import Direction, Index
from everview.operators.operator import Context, Layout
from everview.operators.window.frames import Flags, Places
from everview.types import BIGINT, Field, Schema
from everview.types.words import Matrix, Words

RANKS = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
COPIES = ("lag", "lead", "first_value", "last_value", "nth_value")
NEVER_NULL = (*RANKS, "count")
NONE = 1 << 62  # above all ranks
BLOCK = 1 << 12  # rows at a time, so that what is laid out densely stays small


@dataclass(frozen=True)
class Over:
    """A window function of some fields of the rows, and the frame that it sees.

    ``number`` is the distance of lag and lead, the place of nth_value, and how many buckets ntile has; ``skips`` says
    that NULLs are passed over. A second field of lag and lead is what they give where there is no such row.
    """

    function: str
    fields: tuple[int, ...]
    result: Field
    unit: str = "range"
    start: int | None = None
    end: int | None = None
    number: int = 1
    skips: bool = False

    def words(self, places: Places, schema: Schema, context: Context) -> Matrix:
        """The words of the results, one row a row."""
        if self.function in RANKS:
            return _RANKED[self.function](self, places)
        if self.function in ("lag", "lead"):
            return self._shifted(places, schema)
        low, high = places.frame(self.unit, self.start, self.end)
        if self.function in COPIES:
            return self._copied(places, schema, *self._place(places, schema, low, high))
        if self.function in ("min", "max"):
            return self._copied(places, schema, *_extreme(self, places, schema, low, high, context))
        return _added_up(self, places, schema, low, high)

    def reads_values(self, schema: Schema) -> bool:
        """Whether the function compares values of a type whose words are not in the order of the values."""
        return self.function in ("min", "max") and not schema.fields[self.fields[0]].type.ordered

    def _shifted(self, places: Places, schema: Schema) -> Matrix:
        rows = places.at - self.number if self.function == "lag" else places.at + self.number
        there = (rows >= places.starts) & (rows < places.stops)
        out = self._copied(places, schema, rows, there)
        if len(self.fields) > 1:
            other = _widened(places.rows[:, schema.words(self.fields[1])], schema.fields[self.fields[1]], self.result)
            out = np.where(there[:, None], out, other)
        return out

    def _place(self, places: Places, schema: Schema, low: Words, high: Words) -> tuple[Words, Flags]:
        """The row of each frame whose value is the result, and a mask of rows whose frame has one."""
        if self.function == "nth_value":
            rows = low + self.number - 1
            return rows, rows < high
        if not self.skips:
            return (low if self.function == "first_value" else high - 1), low < high
        present = _present(places.rows, schema, self.fields[0])
        if self.function == "first_value":
            rows = _next_present(present)[np.minimum(low, present.size - 1)]
            return rows, (low < high) & (rows < high)
        rows = _last_present(present)[np.maximum(high - 1, 0)]
        return rows, (low < high) & (rows >= low)

    def _copied(self, places: Places, schema: Schema, rows: Words, there: Flags) -> Matrix:
        """The first argument in other rows; NULL where there is none."""
        source = schema.fields[self.fields[0]]
        words = _widened(places.rows[:, schema.words(self.fields[0])], source, self.result)
        copied = words[np.where(there, rows, 0)]
        return np.where(there[:, None], copied, np.array(self.result.type.null_words(), np.int64))


def _widened(words: Matrix, old: Field, new: Field) -> Matrix:
    """The words of a field as a nullable field of the same type has them."""
    if old.words == new.words:
        return words
    assert old.type == new.type == BIGINT and new.nullable
    return np.stack([np.ones(words.shape[0], np.int64), words[:, 0]], axis=1)


def _present(rows: Matrix, schema: Schema, field: int) -> Flags:
    column = schema.fields[field]
    if not column.nullable:
        return np.ones(rows.shape[0], np.bool_)
    return rows[:, schema.words(field).start] != column.type.null_words()[0]


def _next_present(present: Flags) -> Words:
    """For each row the first present row from there on; the number of rows if there is none."""
    rows = np.where(present, np.arange(present.size), present.size)
    return np.minimum.accumulate(rows[::-1])[::-1]


def _last_present(present: Flags) -> Words:
    return np.maximum.accumulate(np.where(present, np.arange(present.size), -1))


# -- ranks


def _row_number(over: Over, places: Places) -> Matrix:
    return (places.at - places.starts + 1)[:, None]


def _rank(over: Over, places: Places) -> Matrix:
    return (places.first_peers - places.starts + 1)[:, None]


def _dense_rank(over: Over, places: Places) -> Matrix:
    return (places.peer_groups - places.peer_groups[places.starts] + 1)[:, None]


def _percent_rank(over: Over, places: Places) -> Matrix:
    others = places.stops - places.starts - 1
    return _floats((places.first_peers - places.starts) / np.maximum(others, 1))


def _cume_dist(over: Over, places: Places) -> Matrix:
    return _floats((places.after_peers - places.starts) / (places.stops - places.starts))


def _ntile(over: Over, places: Places) -> Matrix:
    """Rows are dealt to buckets in order, the first buckets being one larger."""
    place, count = places.at - places.starts, places.stops - places.starts
    size, larger = count // over.number, count % over.number
    edge = larger * (size + 1)
    buckets = np.where(place < edge, place // (size + 1), larger + (place - edge) // np.maximum(size, 1))
    return (buckets + 1)[:, None]


def _floats(values: Any) -> Matrix:
    return words_of(values.astype(np.float64), np.zeros(values.size, np.bool_))


_RANKED: dict[str, Callable[[Over, Places], Matrix]] = {
    "row_number": _row_number,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _ntile,
}


# -- least and greatest


def _extreme(
    over: Over, places: Places, schema: Schema, low: Words, high: Words, context: Context
) -> tuple[Words, Flags]:
    """A row of the frame with the least or greatest value, and where there is one that is not NULL."""
    (field,) = over.fields
    ranks = _ranks(places.rows, schema, field, context)
    one_of = np.zeros(ranks.max(initial=0) + 1, np.int64)
    one_of[ranks] = places.at
    ranks = np.where(_present(places.rows, schema, field), ranks if over.function == "min" else -ranks, NONE)
    extremes = _least(ranks, low, high)
    there = extremes != NONE
    return one_of[np.abs(np.where(there, extremes, 0))], there


def _ranks(rows: Matrix, schema: Schema, field: int, context: Context) -> Words:
    """Numbers that are ordered as the values of a field are, the same for the same value."""
    words = np.ascontiguousarray(rows[:, schema.words(field)])
    if pa.types.is_nested(schema.fields[field].type.arrow):
        return _ranks_by_value(words, Schema([schema.fields[field]]), context)
    if not schema.fields[field].type.ordered:
        column: Any = decode(Schema([schema.fields[field]]), words, context.dictionary).column(0).combine_chunks()
        return pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    order = np.lexsort(words.T[::-1])
    changes = np.ones(order.size, np.bool_)
    changes[1:] = (words[order[1:]] != words[order[:-1]]).any(axis=1)
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.cumsum(changes)
    return ranks


def _ranks_by_value(words: Matrix, schema: Schema, context: Context) -> Words:
    """`_ranks` of arrays and structs, which Arrow does not compare: their places in an index by value."""
    rows = np.concatenate([words, np.ones((words.shape[0], 1), np.int64)], axis=1)
    index = Index(Layout(schema), (0,), 0, ((0, Direction.ASC),))
    codes = index.step([rows], (), context).out[:, 0]  # of interned values, of which each has one word
    order = np.argsort(codes)
    return order[np.searchsorted(codes[order], words[:, 0])] + 1


def _least(ranks: Words, low: Words, high: Words) -> Words:
    """The least of each span; spans of 2^k rows are known from those of half their length."""
    least = np.full(low.size, NONE, np.int64)
    length = high - low
    level, spans = 0, ranks
    while True:
        matching = (length >> level) == 1
        if matching.any():
            a, b = low[matching], high[matching] - (1 << level)
            least[matching] = np.minimum(spans[a], spans[b])
        if not (length >> (level + 1)).any():
            return least
        spans = np.minimum(spans[: spans.size - (1 << level)], spans[1 << level :])
        level += 1


# -- added up


def _added_up(over: Over, places: Places, schema: Schema, low: Words, high: Words) -> Matrix:
    call = Call(over.function, over.fields)
    wanted = slots(schema, (call,))
    weigh = Weigh(Layout(schema), (), wanted)
    rows, columns, weights = (np.concatenate(part) for part in zip(*_entries(weigh, places.rows), strict=True))
    used, columns = np.unique(columns, return_inverse=True)
    running = np.zeros((places.rows.shape[0] + 1, used.size), np.int64)
    np.add.at(running, (rows + 1, columns), weights)
    running = np.cumsum(running, axis=0)
    width = wanted[-1].places.stop
    known = {slot.need: slot.places for slot in wanted}
    parts: list[Matrix] = []
    for start in range(0, low.size, BLOCK):
        span = slice(start, start + BLOCK)
        dense = np.zeros((low[span].size, width), np.int64)
        dense[:, used] = running[high[span]] - running[low[span]]
        parts.append(FINISHED[call.function](call, over.result, Sums(dense, known, schema)))
    return np.concatenate(parts)


def _entries(weigh: Weigh, rows: Matrix) -> list[tuple[Words, Words, Words]]:
    """(row, place, contribution), slot by slot."""
    entries: list[tuple[Words, Words, Words]] = []
    for slot in weigh.slots:
        origins, places, weights = weigh.spread(rows, slot)
        entries.append((origins, places + slot.base, weights))
    return entries
