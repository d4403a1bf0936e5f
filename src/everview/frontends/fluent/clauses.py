"""What a fluent query says, clause by clause.

The order in which clauses are written says nothing, but that a name is known only once it is there: FROM with its
joins, WHERE, EXISTS, GROUP BY, HAVING, SELECT, DISTINCT, ORDER BY, START AFTER, LIMIT is how they are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from everview.frontends.fluent.agg import Agg
from everview.frontends.fluent.conditions import Condition
from everview.frontends.fluent.shape import Direction

Pairs = tuple[tuple[str, str], ...]  # columns of this query and of the other that are to be equal


@dataclass(frozen=True, slots=True)
class Selected:
    """A column, all columns of a relation (``artist.*``), or an aggregate; under its own name or another."""

    what: str | Agg
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """Another query beside this one, a row for each pair; with ``left`` also for rows without a partner."""

    kind: Literal["inner", "left"]
    query: Clauses
    alias: str
    pairs: Pairs


@dataclass(frozen=True, slots=True)
class Asked:
    """Another query of which a row has a partner (``semi``) or none (``anti``)."""

    kind: Literal["semi", "anti"]
    query: Clauses
    pairs: Pairs


@dataclass(frozen=True, slots=True)
class Related:
    """Another query whose rows lie beneath those of this one."""

    name: str
    query: Clauses
    pairs: Pairs
    one: bool


@dataclass(frozen=True, slots=True)
class Clauses:
    """A whole query."""

    relation: str
    alias: str
    joins: tuple[Joined, ...] = ()
    where: tuple[Condition, ...] = ()
    asked: tuple[Asked, ...] = ()
    groups: tuple[str, ...] | None = None
    having: tuple[Condition, ...] = ()
    selected: tuple[Selected, ...] = ()
    distinct: bool = False
    order: tuple[tuple[str, Direction], ...] = ()
    after: Any = None  # a row
    limit: int | None = None
    one: bool = False
    related: tuple[Related, ...] = ()

    @property
    def aggregates(self) -> bool:
        """Whether rows are put together in groups, if only in one."""
        return self.groups is not None or any(isinstance(s.what, Agg) for s in self.selected)

    @property
    def most(self) -> int | None:
        """How many rows at most."""
        if not self.one:
            return self.limit
        return 1 if self.limit is None else min(1, self.limit)
