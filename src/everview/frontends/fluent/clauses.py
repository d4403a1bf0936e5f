"""The clauses of a fluent query.

Clauses may be written in any order, except that a name is known only after the join that brings it. They are evaluated
in this order: FROM with its joins, WHERE, EXISTS, GROUP BY, HAVING, SELECT, DISTINCT, ORDER BY, START AFTER, LIMIT.
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
    """A joined query: a row for each pair; with ``left`` also for rows without a partner."""

    kind: Literal["inner", "left"]
    query: Clauses
    alias: str
    pairs: Pairs


@dataclass(frozen=True, slots=True)
class PartnerQuery:
    """Another query in which a row must have a partner (``semi``), or must have none (``anti``)."""

    kind: Literal["semi", "anti"]
    query: Clauses
    pairs: Pairs


@dataclass(frozen=True, slots=True)
class RelatedQuery:
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
    asked: tuple[PartnerQuery, ...] = ()
    groups: tuple[str, ...] | None = None
    having: tuple[Condition, ...] = ()
    selected: tuple[Selected, ...] = ()
    distinct: bool = False
    order: tuple[tuple[str, Direction], ...] = ()
    after: Any = None  # a row
    limit: int | None = None
    one: bool = False
    related: tuple[RelatedQuery, ...] = ()

    @property
    def aggregates(self) -> bool:
        """Whether rows are grouped, be it in a single group."""
        return self.groups is not None or any(isinstance(s.what, Agg) for s in self.selected)

    @property
    def most(self) -> int | None:
        """The greatest number of rows that are asked for; None without a limit."""
        if not self.one:
            return self.limit
        return 1 if self.limit is None else min(1, self.limit)
