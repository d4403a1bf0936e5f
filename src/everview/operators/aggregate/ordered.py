"""Aggregates that read a group's rows in an order: the orders they ask for, the ends of a group, and percentiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from everview.kernels import reshape, sums
from everview.kernels.places import rows_at, spans, totals
from everview.kernels.tally import align
from everview.operators.aggregate.added import null_mark
from everview.operators.aggregate.call import Call, FieldOrder
from everview.operators.aggregate.floats import doubles_of, words_of
from everview.operators.aggregate.result_types import is_number
from everview.operators.form import Line
from everview.operators.index import Direction, Index, Order, restore, restoring
from everview.operators.operator import Layout
from everview.traces.view import TraceView
from everview.types import Field, Schema
from everview.types.words import Matrix, Words

EVERYTHING = 2**63 - 1  # places


@dataclass(frozen=True)
class Ordering:
    """How rows lie within a group: by these fields in turn, without the rows that are NULL in one of ``present``."""

    fields: FieldOrder
    present: tuple[int, ...]

    @staticmethod
    def of(call: Call, schema: Schema) -> Ordering:
        """The order that a call asks for, then that of its arguments."""
        directions: dict[int, Direction] = {}
        for field, direction in (*call.order, *((field, Direction.ASC) for field in call.fields)):
            directions.setdefault(field, direction)
        present = () if call.nulls else tuple(sorted(f for f in set(call.fields) if schema.fields[f].nullable))
        return Ordering(tuple(directions.items()), present)

    def index(self, schema: Schema, group: tuple[int, ...]) -> Index:
        """The index in which rows lie so, group by group."""
        fields = (*group, *(field for field, _ in self.fields))
        return Index(Layout(schema), fields, len(group), self.order(len(group)))

    def order(self, key: int) -> Order:
        """The directions of an index of so many key fields."""
        return tuple((key + place, direction) for place, (_, direction) in enumerate(self.fields))


def orderings(schema: Schema, calls: Iterable[Call]) -> tuple[Ordering, ...]:
    """The orders that these calls ask for, each once."""
    return tuple(dict.fromkeys(Ordering.of(call, schema) for call in calls if call.ordered))


@dataclass(frozen=True)
class Lay:
    """Where the fields of an order lie in the rows of its index."""

    ordering: Ordering
    layout: Layout

    @cached_property
    def key(self) -> int:
        """How many words tell groups apart."""
        return self.layout.key_words

    @cached_property
    def words(self) -> dict[int, slice]:
        """The words of every field of the source that the order is by."""
        fields = enumerate((field for field, _ in self.ordering.fields), self.layout.key)
        return {field: self.layout.schema.words(place) for place, field in fields}

    @cached_property
    def order(self) -> Order:
        return self.ordering.order(self.layout.key)

    def restored(self, rows: Matrix) -> Matrix:
        """The rows of the index with their own words, in place."""
        restore(rows, self.layout.schema, self.order)
        return rows


@dataclass(frozen=True)
class Ordered:
    """Groups in some states, state after state, with their rows in an order."""

    lay: Lay
    groups: Sequence[Matrix]  # those that are there, in each state
    views: Sequence[TraceView]

    @cached_property
    def everything(self) -> tuple[Matrix, Words]:
        """Every row of positive weight, and where the rows of each group begin and the last ones end."""
        key = self.lay.key
        states = zip(self.groups, self.views, strict=True)
        rows_by_state = [view.first_rows(groups, key, 0, EVERYTHING) for groups, view in states]
        starts, base = [np.zeros(1, np.int64)], 0
        for groups, rows in zip(self.groups, rows_by_state, strict=True):
            starts.append(base + spans(groups, rows, key)[1:])
            base += rows.shape[0]
        return self.lay.restored(np.concatenate(rows_by_state)), np.concatenate(starts)

    def all_of(self, call: Call) -> tuple[Matrix, Words]:
        """The rows of `everything` for a call; for a distinct call, every row has weight 1."""
        rows, starts = self.everything
        if call.distinct:
            rows = rows.copy()
            rows[:, -1] = 1
        return rows, starts

    def counts(self, call: Call) -> Words:
        """How many values each group has."""
        rows, starts = self.all_of(call)
        return totals(np.ascontiguousarray(rows[:, -1]), starts)

    def at(self, call: Call, places: Words) -> Words:
        """The row of `everything` that takes a place of each group; -1 where the group has no such place."""
        rows, starts = self.all_of(call)
        return rows_at(np.ascontiguousarray(rows[:, -1]), starts, places)

    def end(self, call: Call, result: Field) -> Matrix:
        """The value at one end of each group, NULL where the group has none."""
        key, place = self.lay.key, self.lay.words[call.fields[0]]
        first = call.function in ("min", "first")
        out = np.empty((sum(map(len, self.groups)), result.words), np.int64)
        out[:] = result.type.null_words() if result.nullable else 0
        start = 0
        for groups, view in zip(self.groups, self.views, strict=True):
            ends = view.first_rows(groups, key, 0, 1) if first else view.last_rows(groups, key)
            values = out[start : start + groups.shape[0]]
            align(values, groups, self.lay.restored(ends), key, place.start, place.stop)
            start += groups.shape[0]
        return out


def compiled_end(call: Call, result: Field, word: int, lay: Lay, number: int) -> Line | None:
    """The value at an end of a group as a line for `everview.kernels.sums`; None if a call reads more than an end."""
    if call.function not in ("min", "first", "max", "last") or result.words > 2:
        return None
    kind = sums.LEAST_OF if call.function in ("min", "first") else sums.GREATEST_OF
    words = lay.words[call.fields[0]]
    plan = dict(enumerate(how for how, _ in restoring(lay.layout.schema, lay.order)))
    hows = [plan.get(place, reshape.WORD) for place in range(words.start, words.stop)]
    return kind, words.start, words.stop, number, word, null_mark(result), hows[0], hows[-1], 0


def _percentile(call: Call, field: Field, ordered: Ordered) -> Matrix:
    """The value at a fraction of each group; between two values, between them in proportion.

    Of n values the place is ``fraction · (n − 1)``, counted from 0. The discrete one takes the first place, counted
    from 1, that is at least ``fraction · n``; so does a quantile, which stays a value of the column's own type.
    """
    rows, _ = ordered.everything
    values, counts = rows[:, ordered.lay.words[call.fields[0]]], ordered.counts(call)
    if call.function != "percentile":
        place = np.maximum(np.ceil(call.fraction * counts), 1) - 1
        pick = _picked if call.function == "percentile discrete" else _own
        return pick(field, values, ordered.at(call, place.astype(np.int64)))
    place = call.fraction * (counts - 1)
    low, high = np.floor(place), np.ceil(place)
    absent = counts == 0
    a, b = (_doubles(field, values, ordered.at(call, p.astype(np.int64))) for p in (low, high))
    with np.errstate(invalid="ignore", over="ignore"):
        between = (high - place) * a + (place - low) * b
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return words_of(np.where(same, a, between), absent)


def _mode(call: Call, field: Field, ordered: Ordered) -> Matrix:
    """The most frequent value of each group; of several, the first in the order."""
    rows, starts = ordered.all_of(call)
    values, sizes = rows[:, ordered.lay.words[call.fields[0]]], np.diff(starts)
    by_weight = np.lexsort((np.arange(rows.shape[0]), -rows[:, -1], np.repeat(np.arange(sizes.size), sizes)))
    chosen = np.full(sizes.size, -1, np.int64)
    chosen[sizes > 0] = by_weight[starts[:-1][sizes > 0]]
    return _own(field, values, chosen)


def _picked(field: Field, values: Matrix, rows: Words) -> Matrix:
    """The values of rows, numbers as doubles; NULL where there is no row."""
    if is_number(field.type):
        return words_of(_doubles(field, values, rows), rows < 0)
    return _own(field, values, rows)


def _own(field: Field, values: Matrix, rows: Words) -> Matrix:
    """The values of rows as they are; NULL where there is no row."""
    absent = rows < 0
    out = np.empty((rows.size, field.words), np.int64)
    out[~absent] = values[rows[~absent]]
    if field.nullable:
        out[absent] = field.type.null_words()
    return out


def _doubles(field: Field, values: Matrix, rows: Words) -> np.ndarray:
    out = np.zeros(rows.size)
    there = rows >= 0
    out[there] = doubles_of(field.type, values[rows[there]])
    return out


# The words of the results of the aggregates that read the whole group in its order.
IN_ORDER: Final[Mapping[str, Callable[[Call, Field, Ordered], Matrix]]] = {
    "percentile": _percentile,
    "percentile discrete": _percentile,
    "quantile": _percentile,
    "mode": _mode,
}
