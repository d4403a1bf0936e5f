"""Limits: the first rows in an order, of all rows or of each partition. These are kept, and none beyond.

A change beyond the last kept row changes nothing, and nothing is read for it. When a kept row goes, the row after the
last kept one is pulled. A partition that nobody has looked at is not kept; its change follows from its first rows now
and those with the change taken back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

from everview.runtimes.pull.demand import Among, Demand, Row, Sort
from everview.runtimes.pull.node import PullNode
from everview.runtimes.pull.ordering import coming_after, sort_key
from everview.runtimes.pull.rows import satisfied
from everview.sources.protocol import Update

Rows = Mapping[Row, int]
MOST_ALONE = 32  # partitions that are read one by one


@dataclass(slots=True)
class First:
    """The first rows of a partition in order, with their keys."""

    keys: list[Any]
    rows: list[Row]

    def copy(self) -> First:
        return First(self.keys.copy(), self.rows.copy())

    def put(self, key: Any, row: Row) -> None:
        place = bisect_right(self.keys, key)
        self.keys.insert(place, key)
        self.rows.insert(place, row)

    def take(self, key: Any, row: Row) -> bool:
        """Remove a row; whether it was there."""
        place = bisect_left(self.keys, key)
        while place < len(self.rows) and self.keys[place] == key:
            if self.rows[place] == row:
                del self.keys[place], self.rows[place]
                return True
            place += 1
        return False

    def add(self, key: Any, row: Row) -> None:
        """Append a row that comes after all others."""
        self.keys.append(key)
        self.rows.append(row)


class PullTop(PullNode):
    """Rows ``offset`` to ``offset + limit`` in an order, of each partition; without a limit, all after the offset."""

    def __init__(
        self, input_: PullNode, order: Sequence[Sort], limit: int | None, offset: int, partition: Sequence[int]
    ) -> None:
        self.input, self.limit, self.offset, self.partition = input_, limit, offset, tuple(partition)
        self.inputs, self.schema, self.key = (input_,), input_.schema, input_.key
        self.order = completed(order, len(self.schema), input_.key)
        self.count = offset + (limit or 0)  # rows that are kept
        if limit is not None and not partition:
            self.few = limit if input_.few is None else min(limit, input_.few)
        self._key = sort_key(self.schema, self.order)
        self._known: dict[Row, First] = {}
        self._staged: dict[Row, First] = {}
        self._complete = False  # whether a partition that is not known has no rows

    @property
    def kept(self) -> int:
        return sum(len(first.rows) for first in self._known.values())

    @property
    def title(self) -> str:
        names = self.schema.names
        by = ", ".join(f"{names[s.column]}{' desc' if s.descends else ''}" for s in self.order)
        skipped = f" after {self.offset}" if self.offset else ""
        each = f" of each {', '.join(names[column] for column in self.partition)}" if self.partition else ""
        return f"Top {'all' if self.limit is None else self.limit}{skipped}{each} by {by}"

    # -- history

    def pull(self, demand: Demand) -> Iterator[Row]:
        if self.limit is None:
            return satisfied(self._rest(demand.keep), self.schema, demand)
        if not self.partition:
            rows = self._one(demand.keep)
            if demand.order == self.order[: len(demand.order)]:
                rows, demand = self._from(rows, demand), replace(demand, order=(), after=None)
            return satisfied(rows, self.schema, demand)
        return satisfied(self._each(demand), self.schema, demand)

    def _from(self, rows: Iterator[Row], demand: Demand) -> Iterator[Row]:
        """The rows after the demand's place, without sorting: they are in its order."""
        if demand.after is None:
            return rows
        return filter(coming_after(self.schema, demand.order, demand.after), rows)

    def _one(self, keep: bool) -> Iterator[Row]:
        first = self._of(())
        if first is None:
            first = self._read(Demand(keep=keep))
            if keep:
                self._known[()] = first
                self._complete = True
        return iter(first.rows[self.offset :])

    def _read(self, demand: Demand) -> First:
        """The first rows of a demand, pulled from the input."""
        asked = replace(demand, order=self.order, limit=self.count)
        rows = list(islice(self.input.pull(asked), self.count)) if self.count else []
        return First(list(map(self._key, rows)), rows)

    def _rest(self, keep: bool) -> Iterator[Row]:
        """All rows but the first ``offset``."""
        if keep and self._of(()) is None:
            self._known[()] = self._read(Demand(keep=True))
        return islice(self.input.pull(Demand(order=self.order, keep=keep)), self.offset, None)

    def _each(self, demand: Demand) -> Iterator[Row]:
        """The first rows of each partition that a demand names."""
        if self._complete:
            known = {**self._known, **self._staged}
            yield from (row for first in known.values() for row in first.rows[self.offset :])
            return
        wanted = self._asked_for(demand)
        if wanted is None:
            yield from self._partitioned(Demand(keep=demand.keep))
            self._complete = self._complete or demand.keep
            return
        lacking: set[Row] = set()
        for key in wanted:
            first = self._of(key)
            if first is None:
                lacking.add(key)
            else:
                yield from first.rows[self.offset :]
        if len(lacking) > MOST_ALONE:
            yield from self._partitioned(Demand(among=(Among(self.partition, frozenset(lacking)),), keep=demand.keep))
            return
        for key in lacking:
            yield from self._alone(key, demand.keep)

    def _asked_for(self, demand: Demand) -> frozenset[Row] | None:
        """The keys of the partitions that a demand names, or that can exist; None if there may be many."""
        for among in demand.among:
            if sorted(among.columns) == sorted(self.partition):
                places = [among.columns.index(place) for place in self.partition]
                return frozenset(tuple(key[place] for place in places) for key in among.keys)
        return self.input.values(self.partition, demand.keep)

    def _alone(self, key: Row, keep: bool) -> list[Row]:
        """The first rows of one partition, of which no more is read."""
        first = self._read(Demand(among=(Among(self.partition, frozenset({key})),), keep=keep))
        if keep and first.rows:
            self._known[key] = first
        return first.rows[self.offset :]

    def _partitioned(self, asked: Demand) -> Iterator[Row]:
        """The first rows of many partitions, read whole and in order."""
        sorts = tuple(Sort(column) for column in self.partition)
        rows = self.input.pull(replace(asked, order=(*sorts, *self.order)))
        for key, part in groupby(rows, self._partition):
            first = list(islice(part, self.count))
            if asked.keep:
                self._known[key] = First(list(map(self._key, first)), first)
            yield from first[self.offset :]

    def _partition(self, row: Row) -> Row:
        return tuple([row[column] for column in self.partition])

    def _of(self, key: Row) -> First | None:
        first = self._staged.get(key) or self._known.get(key)
        return First([], []) if first is None and self._complete else first

    # -- changes

    def push(self, *updates: Update) -> Update:
        rows = updates[0].rows
        parts: dict[Row, dict[Row, int]] = {}
        for row, weight in rows.items():
            parts.setdefault(self._partition(row), {})[row] = weight
        out: dict[Row, int] = {}
        for key, part in parts.items():
            known = self._known.get(key)
            if known is None and self._complete:
                known = First([], [])
            if known is None:
                self._unknown(key, part, out)
            else:
                self._change(key, known, part, out)
        if self.limit is None:
            out = {row: rows.get(row, 0) - out.get(row, 0) for row in {*rows, *out}}
        return Update({row: weight for row, weight in out.items() if weight})

    def _change(self, key: Row, known: First, part: Rows, out: dict[Row, int]) -> None:
        full = len(known.rows) >= self.count
        bound = known.keys[-1] if full and known.keys else None
        first: First | None = None
        moved: dict[Row, int] = {}
        for row, weight in part.items():
            own = self._key(row)
            if full and (bound is None or own > bound or (weight > 0 and own == bound)):
                continue  # beyond what is kept
            first = first or known.copy()
            for _ in range(abs(weight)):
                if weight > 0:
                    first.put(own, row)
                    moved[row] = moved.get(row, 0) + 1
                elif first.take(own, row):
                    moved[row] = moved.get(row, 0) - 1
        if first is None:
            return
        left = len(first.rows)
        if full and left < self.count:
            self._refill(key, first)
        _add(moved, first.rows[left:], 1)
        _add(moved, first.rows[self.count :], -1)
        del first.keys[self.count :], first.rows[self.count :]
        self._staged[key] = first
        if self.offset and self.limit is not None:
            self._replaced(known, first, out)
        else:
            for row, weight in moved.items():
                out[row] = out.get(row, 0) + weight

    def _refill(self, key: Row, first: First) -> None:
        """Pull the rows that follow the last kept one; of a row that occurs several times also further copies."""
        among = (Among(self.partition, frozenset({key})),) if self.partition else ()
        lacking = self.count - len(first.rows)
        after = None
        if first.rows:
            last = first.rows[-1]
            after = tuple(last[s.column] for s in self.order)
            if self.key is None:
                for _ in range(min(lacking, self._copies(last) - first.rows.count(last))):
                    first.add(first.keys[-1], last)
                lacking = self.count - len(first.rows)
        if lacking:
            asked = Demand(among=among, order=self.order, after=after, limit=lacking)
            for row in islice(self.input.pull(asked), lacking):
                first.add(self._key(row), row)

    def _copies(self, row: Row) -> int:
        every = tuple(range(len(self.schema)))
        return sum(1 for _ in self.input.pull(Demand(among=(Among(every, frozenset({row})),))))

    def _unknown(self, key: Row, part: Rows, out: dict[Row, int]) -> None:
        """The change of a partition that is not kept: its first rows now, less those with the change taken back."""
        come = sum(weight for weight in part.values() if weight > 0)
        among = (Among(self.partition, frozenset({key})),) if self.partition else ()
        wanted = self.count + come
        rows = list(islice(self.input.pull(Demand(among=among, order=self.order, limit=wanted)), wanted))
        now = First(list(map(self._key, rows)), rows)
        before = now.copy()
        for row, weight in part.items():
            for _ in range(abs(weight)):
                if weight > 0:
                    before.take(self._key(row), row)
                else:
                    before.put(self._key(row), row)
        for first in (now, before):
            del first.keys[self.count :], first.rows[self.count :]
        self._staged[key] = now
        self._replaced(before, now, out)

    def _replaced(self, before: First, after: First, out: dict[Row, int]) -> None:
        start = self.offset if self.limit is not None else 0
        _add(out, before.rows[start:], -1)
        _add(out, after.rows[start:], 1)

    def commit(self) -> None:
        for key, first in self._staged.items():
            if first.rows or not self.partition:
                self._known[key] = first
            else:
                self._known.pop(key, None)  # one that is not known is looked at when it changes
        self._staged = {}

    def rollback(self) -> None:
        self._staged = {}


def completed(order: Sequence[Sort], width: int, key: tuple[int, ...] | None) -> tuple[Sort, ...]:
    """The order made total: ties by all columns, or until the key is included."""
    sorts: dict[int, Sort] = {}
    for sort in (*order, *(Sort(column) for column in range(width))):
        if key is not None and set(key) <= set(sorts):
            break
        sorts.setdefault(sort.column, sort)
    return tuple(sorts.values())


def _add(out: dict[Row, int], rows: Iterable[Row], weight: int) -> None:
    for row in rows:
        out[row] = out.get(row, 0) + weight
