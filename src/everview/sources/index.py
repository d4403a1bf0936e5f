"""Indexes in memory: rows grouped by the values of some columns, each group in an order.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, n BIGINT NOT NULL")
>>> by_n = MemoryIndex.of(schema, ("n",), (("id", "desc"),), [(1, 5), (2, 7), (3, 5)])
>>> list(by_n.groups[5,].after())
[(3, 5), (1, 5)]
>>> bound(All((Compare("n", "=", 5), Compare("id", "<", 3))))[::2]
(('n',), False)
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, product, takewhile
from operator import itemgetter
from typing import Any, Final

from everview.orders import SortedRows, SortKey
from everview.sources.conditions import test
from everview.sources.order import Order, first_key, sort_key
from everview.sources.protocol import All, Compare, Condition, Row
from everview.types import Schema

MOST_GROUPS: Final = 10_000  # that one request reads


@dataclass(slots=True)
class MemoryIndex:
    """Rows grouped by the values of some columns, each group in an order."""

    group_of: SortKey
    key_of: SortKey
    groups: dict[Any, SortedRows] = field(default_factory=dict[Any, SortedRows])

    @classmethod
    def of(cls, schema: Schema, columns: tuple[str, ...], order: Order, rows: Iterable[Row]) -> MemoryIndex:
        places = [schema.index(column) for column in columns]
        index = cls(_values_at(places), sort_key(schema, order))
        groups: dict[Any, list[tuple[Any, Row]]] = {}
        for row in rows:
            groups.setdefault(index.group_of(row), []).append((index.key_of(row), row))
        index.groups = {values: SortedRows(group) for values, group in groups.items()}
        return index

    def change(self, row: Row, weight: int) -> None:
        group, key = self.group_of(row), self.key_of(row)
        rows = self.groups.get(group)
        if rows is None:
            rows = self.groups[group] = SortedRows()
        for _ in range(abs(weight)):
            if weight > 0:
                rows.add(key, row, 0)
            else:
                rows.remove(key, 0)
        if not rows:
            del self.groups[group]


def _values_at(places: list[int]) -> SortKey:
    if not places:
        return lambda row: ()
    if len(places) == 1:
        place = places[0]
        return lambda row: (row[place],)
    return itemgetter(*places)


def bound(where: Condition) -> tuple[tuple[str, ...], Iterable[tuple[Any, ...]], bool]:
    """The columns that a condition binds to values, these values, and whether the condition says nothing else."""
    conjuncts = list(_conjuncts(where))
    bindings: dict[str, tuple[Any, ...]] = {}
    groups, used = 1, 0
    for each in conjuncts:
        values = _values(each)
        if values is None or each.column in bindings or groups * len(values) > MOST_GROUPS:
            continue
        bindings[each.column] = values
        groups, used = groups * len(values), used + 1
    columns = tuple(sorted(bindings))
    return columns, product(*(bindings[column] for column in columns)), used == len(conjuncts)


def at_most(where: Condition, key: Sequence[str]) -> int | None:
    """The most rows that can meet a condition, if it binds the key; else None."""
    columns, values, _ = bound(where)
    return sum(1 for _ in values) if set(key) <= set(columns) else None


def _conjuncts(where: Condition) -> Iterator[Any]:
    if isinstance(where, All):
        yield from chain.from_iterable(map(_conjuncts, where.conditions))
    else:
        yield where


def _values(condition: Condition) -> tuple[Any, ...] | None:
    if not isinstance(condition, Compare):
        return None
    match condition.operator:
        case "=":
            return () if condition.value is None else (condition.value,)
        case "in":
            return tuple(value for value in condition.value if value is not None)
        case "is":
            return (condition.value,)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Range:
    """A range of an order: the sort key where it begins, and a condition that is false of all rows after its end."""

    start: Any = None
    after: bool = False  # whether it begins after that key, or with it
    until: Condition | None = None

    @classmethod
    def of(cls, schema: Schema, order: Order, where: Condition, after: Any) -> Range:
        """The range that a condition on the first ordered column and a sort key leave."""
        column, direction = order[0]
        begins, ends = (">", "<") if direction == "asc" else ("<", ">")
        start, is_after, until = after, True, None
        for each in _conjuncts(where):
            if not isinstance(each, Compare) or each.column != column or each.value is None:
                continue
            if each.operator in (begins, begins + "="):
                key = first_key(schema, order, each.value)
                if start is None or start < key:
                    start, is_after = key, False
            elif each.operator in (ends, ends + "="):
                until = each
        return cls(start, is_after, until)

    def rows(self, groups: list[SortedRows], schema: Schema, key_of: SortKey) -> Iterator[Row]:
        """The rows of some groups in this range, in order."""
        parts = [group.after(self.start) if self.after else group.since(self.start) for group in groups]
        rows_in_order = parts[0] if len(parts) == 1 else heapq.merge(*parts, key=key_of)
        if self.until is None:
            return rows_in_order
        holds = test(self.until, schema)
        return takewhile(lambda row: holds(row) is not False, rows_in_order)
