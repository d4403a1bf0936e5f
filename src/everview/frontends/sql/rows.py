"""Rows on their way through FROM: a plan, and what its columns are called."""

from __future__ import annotations

from dataclasses import dataclass

from everview.frontends.sql.names import Scope
from everview.plan.expressions import TRUE
from everview.plan.node import Plan
from everview.plan.nodes import Values
from everview.types import BOOLEAN, Field, Schema

ONE_ROW = Values(((TRUE,),), Schema([Field("one row", BOOLEAN, nullable=False)]))  # what a query without FROM reads


@dataclass(frozen=True)
class Rows:
    """Rows, and what their columns are called."""

    plan: Plan
    scope: Scope


@dataclass(frozen=True)
class Elements(Rows):
    """The rows of the left once for each element; the scope names the element only."""

    left: Plan
