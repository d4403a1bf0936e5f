"""Scans of sources, where a pipeline begins: demands become requests, and changes of the source become updates.

Conditions that the source cannot decide, and orders that it does not have, are handled here. Then the request has no
limit, and the reply is read until enough rows have come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import Any, Final

from everview.runtimes.pull.conditions import beyond, looked_up, told
from everview.runtimes.pull.demand import Among, Demand, Row, Sort
from everview.runtimes.pull.node import PullNode
from everview.runtimes.pull.rows import RowTest, satisfied, within
from everview.scalars.expressions import Expression
from everview.sources.protocol import All, Condition, Direction, Request, Source, Update, is_keyed
from everview.types import Array, Id, Symbol, Type

MOST_KEYS = 500  # that are looked for in one request
Told = tuple[tuple[Condition, ...], RowTest | None]


@dataclass(frozen=True, slots=True)
class SourceOrder:
    """A demanded order in terms of the source; ``whole`` if the key is included, so no two rows tie."""

    sorts: tuple[Sort, ...]
    places: tuple[int, ...]
    names: tuple[tuple[str, Direction], ...]
    whole: bool


class PullScan(PullNode):
    """The node of a source: all its rows."""

    def __init__(self, name: str, source: Source) -> None:
        self.name, self.source = name, source
        self.schema = source.schema
        columns = tuple(self.schema.index(column) for column in source.key)
        self._ties = columns or tuple(range(len(self.schema)))
        self.key = columns if is_keyed(source) else None
        # A row to start after is a whole one; what its other columns hold means nothing.
        self._blank = [None if f.nullable else _some(f.type) for f in self.schema.fields]
        self._orders: dict[tuple[Sort, ...], SourceOrder] = {}
        self._told: dict[tuple[Expression, ...], Told] = {}
        self.pulls = self.rows_read = 0
        self.last: Request | None = None

    @cached_property
    def reads(self) -> frozenset[str]:
        return frozenset({self.name})

    def push(self, *updates: Update) -> Update:
        (update,) = updates
        return update

    @property
    def title(self) -> str:
        return f"Scan {self.name}"

    # -- history

    def pull(self, demand: Demand) -> Iterator[Row]:
        if any(not among.keys for among in demand.among):
            return iter(())
        large = next((a for a in demand.among if len(a.keys) > MOST_KEYS), None)
        if large is not None:
            return self._in_parts(demand, large)
        conditions, test = self._decided(demand.where)
        inexact: list[Among] = []
        for among in demand.among:
            condition, exact = looked_up(among, self.schema)
            conditions = (*conditions, condition)
            if not exact:
                inexact.append(among)
        order = demand.order
        if any(s.nulls_first == s.descends and self.schema.fields[s.column].nullable for s in order):
            rows = self._asked(Request(All(conditions)))
            return satisfied(_kept(rows, inexact, test), self.schema, replace(demand, where=(), among=()))
        limit = demand.limit if not inexact and test is None else None
        known = self._orders.get(order) or self._known_order(order)
        after = None
        if demand.after is not None:
            if known.whole and self._may_stand(known, demand.after):
                after = self._row_at(known, demand.after)
            elif known.sorts:
                values = tuple(demand.after[place] for place in known.places)
                conditions = (*conditions, beyond(known.sorts, values, self.schema))
        return _kept(self._asked(Request(All(conditions), known.names, after, limit)), inexact, test)

    def _known_order(self, order: tuple[Sort, ...]) -> SourceOrder:
        """The order for the source: each column once, none after the whole key."""
        seen: dict[int, int] = {}
        for place, sort in enumerate(order):
            if not set(self._ties) <= set(seen):
                seen.setdefault(sort.column, place)
        sorts = tuple(order[place] for place in seen.values())
        directions: list[Direction] = ["desc" if s.descends else "asc" for s in sorts]
        names = tuple(zip((self.schema.names[s.column] for s in sorts), directions, strict=True))
        known = SourceOrder(sorts, tuple(seen.values()), names, set(self._ties) <= set(seen))
        self._orders[order] = known
        return known

    def _may_stand(self, order: SourceOrder, after: Row) -> bool:
        """Whether a place can be a row of the source; one padded by an outer join has NULL where a column has none."""
        values = zip((self.schema.fields[s.column] for s in order.sorts), order.places, strict=True)
        return all(field.nullable or after[place] is not None for field, place in values)

    def _row_at(self, order: SourceOrder, after: Row) -> Row:
        """A row of the source's columns that stands at a place in an order."""
        row = self._blank.copy()
        for sort, place in zip(order.sorts, order.places, strict=True):
            row[sort.column] = after[place]
        return tuple(row)

    def _decided(self, where: tuple[Expression, ...]) -> Told:
        """The conditions that the source can decide, and a test for the others."""
        decided = self._told.get(where)
        if decided is None:
            parts = [(each, told(each, self.schema)) for each in where]
            rest = [each for each, condition in parts if condition is None]
            test = RowTest(rest, self.schema) if rest else None
            decided = self._told[where] = tuple(c for _, c in parts if c is not None), test
        return decided

    def _asked(self, request: Request) -> Iterator[Row]:
        self.pulls += 1
        self.last = request
        for row in self.source.pull(request):
            self.rows_read += 1
            yield row

    def _in_parts(self, demand: Demand, large: Among) -> Iterator[Row]:
        """Ask for many keys in several requests, and sort the rows afterwards."""
        keys = list(large.keys)
        others = tuple(a for a in demand.among if a is not large)
        parts = [frozenset(keys[start : start + MOST_KEYS]) for start in range(0, len(keys), MOST_KEYS)]
        plain = Demand(demand.where, others, keep=demand.keep)
        rows = chain.from_iterable(self.pull(plain.and_among(Among(large.columns, part))) for part in parts)
        return satisfied(rows, self.schema, replace(demand, where=(), among=()))


def _kept(rows: Iterator[Row], inexact: Sequence[Among], test: RowTest | None) -> Iterator[Row]:
    for among in inexact:
        rows = within(rows, among)
    return rows if test is None else test.lazily(rows)


def _some(type_: Type) -> Any:
    """Any value of a type."""
    if type_.sql in _SOME:
        return _SOME[type_.sql]
    return () if isinstance(type_, Array) else Decimal(0)


_SOME: Final[dict[str, Any]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "ANY"), 0),
    **dict.fromkeys(("FLOAT", "DOUBLE"), 0.0),
    "BOOLEAN": False,
    "STRING": "",
    "BINARY": b"",
    "DATE": date(1970, 1, 1),
    "TIME": time(),
    "TIMESTAMP_NTZ": datetime(1970, 1, 1),
    "INTERVAL YEAR TO MONTH": 0,
    **dict.fromkeys(("INTERVAL DAY", "INTERVAL DAY TO SECOND"), timedelta()),
    "TIMESTAMP": datetime(1970, 1, 1, tzinfo=UTC),
    "SYMBOL": Symbol(""),
    "ID": Id(""),
}
