"""Rows in FROM: a plan, and the scope that names its columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from everview.frontends.sql.generators import Generator, generated
from everview.frontends.sql.names import Scope, Visible
from everview.plan.node import Plan
from everview.plan.nodes import Values
from everview.scalars.expressions import TRUE, Expression
from everview.types import BOOLEAN, Field, Schema

ONE_ROW = Values(((TRUE,),), Schema([Field("one row", BOOLEAN, nullable=False)]))  # what a query without FROM reads


@dataclass(frozen=True)
class NamedRows:
    """Rows with the scope that names their columns; ``order`` is the ORDER BY of a subquery, if it has one."""

    plan: Plan
    scope: Scope
    order: tuple[tuple[Expression, str], ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class Elements(NamedRows):
    """The rows of the left beside those that a generator makes of each; the scope names only the generated columns."""

    left: Plan
    generator: Generator
    relation: str | None
    names: tuple[str, ...]

    @staticmethod
    def of(
        left: Plan, generator: Generator, relation: str | None, names: tuple[str, ...], outer: Scope | None
    ) -> Elements:
        """The elements that a generator makes of the rows of the left, under a relation's name."""
        plan = generated(left, generator, names)
        start = len(left.schema)
        visible = (Visible(relation, name, plan.column(start + place)) for place, name in enumerate(names))
        return Elements(plan, Scope(tuple(visible), outer), left, generator, relation, names)
