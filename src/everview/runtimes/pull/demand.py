"""Demands: the rows wanted of a node when rows are pulled, with their order and the place to start after.

A demand grows on its way to the sources: filters add conditions, limits add an order, joins add the keys that they look
for. At a source it becomes a `Request`. Columns are places in the rows of the node that is asked.

>>> Demand(order=(Sort(0),), limit=3).and_among(Among((0,), frozenset({(7,)}))).limit
3
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from everview.orders import Direction, direction_of
from everview.scalars.expressions import Expression

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Sort:
    """A column that rows are ordered by; NULL is the least value unless ``nulls_first`` says otherwise."""

    column: int
    descends: bool = False
    nulls_first: bool = True

    @classmethod
    def of(cls, column: int, how: str) -> Sort:
        """A column in a direction as plans write it: ``desc nulls first``."""
        direction = direction_of(how)
        assert direction is not None, f"{how} is a direction"
        return cls(column, direction.startswith("desc"), direction in ("asc", "desc nulls first"))

    @property
    def direction(self) -> Direction:
        """The direction in words."""
        if self.descends:
            return "desc nulls first" if self.nulls_first else "desc"
        return "asc" if self.nulls_first else "asc nulls last"

    def at(self, column: int) -> Sort:
        """The same order of another column."""
        return self if column == self.column else Sort(column, self.descends, self.nulls_first)


@dataclass(frozen=True, slots=True)
class Among:
    """A set of keys: rows whose values in some columns are one of them. NULL is a value like any other."""

    columns: tuple[int, ...]
    keys: frozenset[Row]

    def at(self, place: Callable[[int], int]) -> Among:
        """The same keys, of columns that stand elsewhere."""
        return Among(tuple(map(place, self.columns)), self.keys)

    def of(self, chosen: Iterable[int]) -> Among:
        """The keys cut to some of their places."""
        places = tuple(chosen)
        return Among(
            tuple(self.columns[place] for place in places),
            frozenset(tuple(key[place] for place in places) for key in self.keys),
        )


@dataclass(frozen=True, slots=True)
class Demand:
    """The wanted rows: conditions and keys to satisfy, the order of the rows, and the place to start after.

    ``after`` holds values of the columns of ``order``, and all rows of the reply come after them. At most ``limit``
    rows will be read; ``near`` is only a guess of how many. With ``keep`` a view is being attached, and nodes on the
    way may keep what they need for later changes.
    """

    where: tuple[Expression, ...] = ()
    among: tuple[Among, ...] = ()
    order: tuple[Sort, ...] = ()
    after: Row | None = None
    limit: int | None = None
    near: int | None = None
    keep: bool = False

    def and_where(self, *conditions: Expression) -> Demand:
        """The demand with more conditions."""
        return replace(self, where=(*self.where, *conditions))

    def and_among(self, *among: Among) -> Demand:
        """The demand for rows that have certain keys, too."""
        return replace(self, among=(*self.among, *among))

    @property
    def guess(self) -> int | None:
        """The number of rows that will probably be read."""
        return self.limit if self.limit is not None else self.near

    @property
    def everything(self) -> bool:
        """Whether all rows are asked for, in whatever order."""
        return not (self.where or self.among) and self.after is None and self.limit is None
