"""What a node is asked for when history is pulled: which rows of its own, in which order, from where on.

A demand grows on its way up: filters add their conditions, limits their order, joins the keys that they look for. At a
source it becomes a `Request` of that source's columns. Columns are positions in the rows of whom is asked.

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
    """A column that rows are ordered by; NULL is the least unless it is said otherwise."""

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
    """The values of some columns are one of these; NULL is a value like any other."""

    columns: tuple[int, ...]
    keys: frozenset[Row]

    def at(self, place: Callable[[int], int]) -> Among:
        """The same of rows whose columns stand elsewhere."""
        return Among(tuple(map(place, self.columns)), self.keys)

    def of(self, chosen: Iterable[int]) -> Among:
        """What it says of some of its places alone."""
        places = tuple(chosen)
        return Among(
            tuple(self.columns[place] for place in places),
            frozenset(tuple(key[place] for place in places) for key in self.keys),
        )


@dataclass(frozen=True, slots=True)
class Demand:
    """Rows for which conditions are true and whose keys are among some, in an order, after a place in it.

    ``after`` holds values of the columns of ``order``, and all rows of the reply come after them. Who asks reads no
    more than ``limit`` rows; ``near`` is only a guess of how many. ``keep`` says that a view is being attached: what
    passes may be kept by whoever needs it for updates.
    """

    where: tuple[Expression, ...] = ()
    among: tuple[Among, ...] = ()
    order: tuple[Sort, ...] = ()
    after: Row | None = None
    limit: int | None = None
    near: int | None = None
    keep: bool = False

    def and_where(self, *conditions: Expression) -> Demand:
        """Of these rows, those for which more conditions are true."""
        return replace(self, where=(*self.where, *conditions))

    def and_among(self, *among: Among) -> Demand:
        """Of these rows, those with certain keys."""
        return replace(self, among=(*self.among, *among))

    @property
    def guess(self) -> int | None:
        """How many rows are probably read."""
        return self.limit if self.limit is not None else self.near

    @property
    def everything(self) -> bool:
        """Whether all rows are asked for, in whatever order."""
        return not (self.where or self.among) and self.after is None and self.limit is None
