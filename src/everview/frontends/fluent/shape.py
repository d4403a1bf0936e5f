"""What a fluent query becomes: a tree of flat plans, and how their rows are put together.

A query without related ones is one `QueryPart`: a plan, and a `RecordShape` that says how one of its flat rows looks to
people (names, and records beneath for relations that were joined). Every related query is a part beneath, with a plan
of its own. Its rows carry the columns that say whose they are: a row of the child belongs to every row of the parent
with the same values there. Only rows that belong to a row of the parent are in the child's plan, at most ``limit`` of
each parent. So a change of one row is a change of one row of one part, and all else stays as it is.

How to build and maintain a tree from parts, for a part ``p`` with parent part ``up``:

- group the rows of ``p`` by ``row[c] for c in p.child``; sort each group by ``p.order``, which is total but for rows
  that are equal in all columns (these are there as often as their weight says);
- a row of ``up`` holds, under ``p.name``, the group of ``tuple(row[c] for c in p.parent)``: a list of trees, or with
  ``p.one`` the first tree or None. NULL matches NULL in this lookup (where it must not match, no such row is there);
- a tree of a row is ``p.record`` filled with it, with the children's fields after.

NULL is before all values ascending, and after them descending; texts are ordered by code point, NaN is the greatest
number.

>>> record = RecordShape((("id", 0), ("artist", RecordShape((("name", 2),), present=1))))
>>> record.of((7, 3, "Ada")), record.of((8, None, None))
({'id': 7, 'artist': {'name': 'Ada'}}, {'id': 8, 'artist': None})
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from everview.plan.node import Plan

Direction = Literal["asc", "desc"]


@dataclass(frozen=True, slots=True)
class RecordShape:
    """Names, and for each the column of a flat row that it shows, or a record of further ones.

    ``present`` is a column that is NULL exactly in rows in which there is no such record: it is None there.
    """

    fields: tuple[tuple[str, int | RecordShape], ...]
    present: int | None = None

    def of(self, row: Sequence[Any]) -> dict[str, Any] | None:
        """The record of a flat row; None if the record is missing."""
        if self.present is not None and row[self.present] is None:
            return None
        return {name: row[shown] if isinstance(shown, int) else shown.of(row) for name, shown in self.fields}


@dataclass(frozen=True, slots=True)
class QueryPart:
    """One flat plan of a query, how its rows look and in which order they come, and the parts beneath.

    ``ordered`` says whether the order was asked for; ``order`` is there in any case, completed by what tells rows
    apart. The plan keeps to ``limit`` already. ``one`` is a single tree, or None, instead of a list; ``scalar`` a
    single value: the plan has always one row, and shows one column.
    """

    name: str  # the field of the parent that holds it; "" of the root
    plan: Plan
    record: RecordShape
    order: tuple[tuple[int, Direction], ...]
    ordered: bool = False
    limit: int | None = None
    one: bool = False
    scalar: bool = False
    parent: tuple[int, ...] = ()  # columns of the parent's plan
    child: tuple[int, ...] = ()  # the columns of this plan that are equal to them
    children: tuple[QueryPart, ...] = ()

    @property
    def nested(self) -> bool:
        """Whether there are parts beneath."""
        return bool(self.children)

    @property
    def plain(self) -> bool:
        """Whether the result is the plan's rows as they are: nothing beneath, nothing hidden."""
        shown = tuple(column for _, column in self.record.fields)
        return not self.children and not self.one and shown == tuple(range(len(self.plan.schema)))

    def walk(self, name: str) -> Iterator[tuple[str, QueryPart]]:
        """This part and all beneath, each with the name of its flat view: ``recent``, ``recent.artist``."""
        yield name, self
        for part in self.children:
            yield from part.walk(f"{name}.{part.name}")
