"""SQL in Spark's dialect, or in another, to statements whose queries are plans.

`bind` reads a text against a catalog. It knows relations, columns and types, and refuses with the place in the text
what is wrong or cannot be maintained; how a plan is computed is not its concern.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from everview.frontends.sql.bind import bind, bind_query
from everview.frontends.sql.context import Catalog, UserFunction
from everview.frontends.sql.statements import (
    Begin,
    Commit,
    CreateTable,
    CreateView,
    Delete,
    Drop,
    Explain,
    Insert,
    Merge,
    Rollback,
    Select,
    Statement,
    Update,
)
from everview.plan.node import Plan
from everview.scalars.expressions import Expression
from everview.types import Schema


class Tables:
    """A catalog of relations that are given: schemas of tables, plans of views."""

    def __init__(self, relations: Mapping[str, Schema | Plan], functions: Iterable[UserFunction] = ()) -> None:
        self.relations = dict(relations)
        self.functions = {f.name.lower(): f for f in functions}

    def names(self) -> Iterable[str]:
        """Of all relations."""
        return self.relations

    def relation(self, name: str) -> Schema | Plan:
        """A schema or a plan."""
        return self.relations[name]

    def function(self, name: str) -> UserFunction | None:
        """A user's function."""
        return self.functions.get(name)

    def default(self, table: str, column: str) -> Expression | None:
        """No column has one."""
        return None


__all__ = [
    "Begin",
    "Catalog",
    "Commit",
    "CreateTable",
    "CreateView",
    "Delete",
    "Drop",
    "Explain",
    "Insert",
    "Merge",
    "Rollback",
    "Select",
    "Statement",
    "Tables",
    "Update",
    "UserFunction",
    "bind",
    "bind_query",
]
