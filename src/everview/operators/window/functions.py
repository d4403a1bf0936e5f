"""Window functions, over whole columns.

- Ranks follow from places alone.
- Values of other rows (lag, first_value, …) are copied, word for word. So are the first and the last moment of the
  session of a row: of the rows around it that follow each other closely.
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
SESSIONS = ("session start", "session last")  # names that no SQL can write
NEVER_NULL = (*RANKS, "count")
NONE = 1 << 62  # above all ranks
BLOCK = 1 << 12  # rows at a time, so that what is laid out densely stays small
Spans = list[tuple[Words, Words]]  # (first, end) of each row, span by span


@dataclass(frozen=True)
class Over:
    """A window function of some fields of the rows, and the frame that it sees.

    ``number`` is the distance of lag and lead, the place of nth_value, how many buckets ntile has, and the gap of
    sessions in microseconds; ``skips`` says that NULLs are passed over. A second field of lag and lead is what they
    give where there is no such row.
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
        if self.function in SESSIONS:
            return self._edge_of_session(places, schema)
        spans = self.spans(places, schema)
        if self.function in COPIES:
            return self._copied(places, schema, *self._place(places, schema, spans))
        if self.function in ("min", "max"):
            return self._copied(places, schema, *_extreme(self, places, schema, spans, context))
        return added_up(Call(self.function, self.fields), self.result, places.rows, schema, spans)

    def spans(self, places: Places, schema: Schema) -> Spans:
        """The frame of each row, as spans of rows in order that have no row in common."""
        return [places.frame(self.unit, self.start, self.end)]

    def reads_values(self, schema: Schema) -> bool:
        """Whether the function compares values of a type whose words are not in the order of the values."""
        return self.function in ("min", "max") and not schema.fields[self.fields[0]].type.ordered

    def _edge_of_session(self, places: Places, schema: Schema) -> Matrix:
        """The first or the last moment of each row's session, which ends where no row follows within the gap."""
        moments = places.rows[:, schema.words(self.fields[0]).start]
        begins = places.at == places.starts
        begins[1:] |= moments[1:] - moments[:-1] > self.number
        session = np.cumsum(begins) - 1
        edges = np.append(np.flatnonzero(begins), moments.size)
        rows = edges[session] if self.function == "session start" else edges[session + 1] - 1
        return self._copied(places, schema, rows, np.ones(moments.size, np.bool_))

    def _shifted(self, places: Places, schema: Schema) -> Matrix:
        if self.skips and self.number:
            rows, there = self._shifted_over_nulls(places, schema)
        else:
            rows = places.at - self.number if self.function == "lag" else places.at + self.number
            there = (rows >= places.starts) & (rows < places.stops)
        out = self._copied(places, schema, rows, there)
        if len(self.fields) > 1:
            other = widened(places.rows[:, schema.words(self.fields[1])], schema.fields[self.fields[1]], self.result)
            out = np.where(there[:, None], out, other)
        return out

    def _shifted_over_nulls(self, places: Places, schema: Schema) -> tuple[Words, Flags]:
        """For each row, the row with the n-th value before or after it that is not NULL, and whether there is one."""
        present = present_in(places.rows, schema, self.fields[0])
        known = np.append(0, np.cumsum(present))
        forward = (self.function == "lead") == (self.number > 0)
        steps = abs(self.number)
        number = known[places.at + 1] + steps - 1 if forward else known[places.at] - steps
        there = (number < known[places.stops]) & (number >= known[places.starts])
        rows = np.append(np.flatnonzero(present), 0)
        return rows[np.where(there, number, 0)], there

    def _place(self, places: Places, schema: Schema, spans: Spans) -> tuple[Words, Flags]:
        """The row of each frame whose value is the result, and a mask of rows whose frame has one."""
        count = places.rows.shape[0]
        chosen = present_in(places.rows, schema, self.fields[0]) if self.skips else np.ones(count, np.bool_)
        known = np.append(0, np.cumsum(chosen))
        counts = [known[high] - known[low] for low, high in spans]
        whole = sum(counts[1:], counts[0])
        number = whole if self.function == "last_value" else np.full(count, 1, np.int64)
        number = np.full(count, self.number, np.int64) if self.function == "nth_value" else number
        there = (number >= 1) & (number <= whole)
        rows = np.append(np.flatnonzero(chosen), 0)
        out = np.zeros(count, np.int64)
        for (low, _), held in zip(spans, counts, strict=True):
            inside = (number >= 1) & (number <= held)
            out = np.where(inside, rows[np.where(inside, known[low] + number - 1, 0)], out)
            number = number - held
        return out, there

    def _copied(self, places: Places, schema: Schema, rows: Words, there: Flags) -> Matrix:
        """The first argument in other rows; NULL where there is none."""
        source = schema.fields[self.fields[0]]
        words = widened(places.rows[:, schema.words(self.fields[0])], source, self.result)
        copied = words[np.where(there, rows, 0)]
        return np.where(there[:, None], copied, np.array(self.result.type.null_words(), np.int64))


@dataclass(frozen=True)
class FramedOver(Over):
    """A window function over a frame of RANGE by distance, or one without some of its rows.

    ``key`` is the field that rows are sorted by, ``low`` and ``high`` those with the values at which a row's frame
    starts and ends, of the same type; -1 where there is no distance. ``exclude`` says which rows are left out.
    """

    key: int = -1
    low: int = -1
    high: int = -1
    descending: bool = False
    exclude: str = ""

    def spans(self, places: Places, schema: Schema) -> Spans:
        """The frame of each row, without what is left out."""
        low, high = places.frame(self.unit, self.start, self.end)
        if self.low >= 0:
            low = self._edge(places, schema, self.low, places.first_peers, after=False)
        if self.high >= 0:
            high = self._edge(places, schema, self.high, places.after_peers, after=True)
        return self._kept(places, low, np.maximum(low, high))

    def _edge(self, places: Places, schema: Schema, field: int, peers: Words, *, after: bool) -> Words:
        """Where frames start or end by distance; of a row without a key, with its peers."""
        present = present_in(places.rows, schema, self.key)
        key, bound = (places.rows[:, schema.words(place)] for place in (self.key, field))
        key = widened(key, schema.fields[self.key], schema.fields[field])  # a key may never be NULL, and yet a bound
        rows = places.by_distance(key, bound, present, after=after, descending=self.descending)
        beyond = ~present_in(places.rows, schema, field)  # further than the type of the key reaches
        distance = self.end if after else self.start
        rows = np.where(beyond, places.starts if (distance or 0) < 0 else places.stops, rows)
        return np.where(present, rows, peers)

    def _kept(self, places: Places, low: Words, high: Words) -> Spans:
        if not self.exclude:
            return [(low, high)]
        first, after = (
            (places.at, places.at + 1) if self.exclude == "current row" else (places.first_peers, places.after_peers)
        )
        before = low, np.clip(first, low, high)
        behind = np.clip(after, low, high), high
        if self.exclude != "ties":
            return [before, behind]
        return [before, (np.clip(places.at, low, high), np.clip(places.at + 1, low, high)), behind]


def widened(words: Matrix, old: Field, new: Field) -> Matrix:
    """The words of a field as a nullable field of the same type has them."""
    if old.words == new.words:
        return words
    assert old.type == new.type == BIGINT and new.nullable
    return np.stack([np.ones(words.shape[0], np.int64), words[:, 0]], axis=1)


def present_in(rows: Matrix, schema: Schema, field: int) -> Flags:
    """Which rows have a value of a field."""
    column = schema.fields[field]
    if not column.nullable:
        return np.ones(rows.shape[0], np.bool_)
    return rows[:, schema.words(field).start] != column.type.null_words()[0]


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


def _extreme(over: Over, places: Places, schema: Schema, spans: Spans, context: Context) -> tuple[Words, Flags]:
    """A row of the frame with the least or greatest value, and where there is one that is not NULL."""
    (field,) = over.fields
    ranks = _ranks(places.rows, schema, field, context)
    one_of = np.zeros(ranks.max(initial=0) + 1, np.int64)
    one_of[ranks] = places.at
    ranks = np.where(present_in(places.rows, schema, field), ranks if over.function == "min" else -ranks, NONE)
    extremes = np.minimum.reduce([least(ranks, low, high) for low, high in spans])
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


def least(ranks: Words, low: Words, high: Words) -> Words:
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


def added_up(call: Call, result: Field, rows: Matrix, schema: Schema, spans: Spans) -> Matrix:
    """The words of a call that is added up over spans of rows, one row a span."""
    wanted = slots(schema, (call,))
    weigh = Weigh(Layout(schema), (), wanted)
    origins, columns, weights = (np.concatenate(part) for part in zip(*_entries(weigh, rows), strict=True))
    used, columns = np.unique(columns, return_inverse=True)
    running = np.zeros((rows.shape[0] + 1, used.size), np.int64)
    np.add.at(running, (origins + 1, columns), weights)
    running = np.cumsum(running, axis=0)
    width = wanted[-1].places.stop
    known = {slot.need: slot.places for slot in wanted}
    parts: list[Matrix] = []
    for start in range(0, spans[0][0].size, BLOCK):
        block = slice(start, start + BLOCK)
        dense = np.zeros((spans[0][0][block].size, width), np.int64)
        for low, high in spans:
            dense[:, used] += running[high[block]] - running[low[block]]
        parts.append(FINISHED[call.function](call, result, Sums(dense, known, schema)))
    return np.concatenate(parts)


def _entries(weigh: Weigh, rows: Matrix) -> list[tuple[Words, Words, Words]]:
    """(row, place, contribution), slot by slot."""
    entries: list[tuple[Words, Words, Words]] = []
    for slot in weigh.slots:
        origins, places, weights = weigh.spread(rows, slot)
        entries.append((origins, places + slot.base, weights))
    return entries
