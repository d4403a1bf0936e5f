"""What SQL is told of a database: relations, functions and defaults; and which relations it asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from everview.database.catalog import Catalog
from everview.database.definitions import ViewDefinition
from everview.errors import DefinitionError
from everview.frontends.sql import CreateView, UserFunction, bind
from everview.frontends.sql.decorators import known
from everview.optimize import optimize
from everview.plan.expressions import Expression, Literal, Now
from everview.plan.lower import lower
from everview.plan.node import Plan
from everview.plan.typing import cast
from everview.types import Schema, Type


class Known:
    """A catalog as binding sees it. Of functions it knows those that are registered."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.read: dict[str, None] = {}  # the relations that were asked for

    def names(self) -> Iterable[str]:
        return self._catalog.relations

    def relation(self, name: str) -> Schema | Plan:
        name = self._catalog.find(name)
        self.read[name] = None
        view = self._catalog.views.get(name)
        if view is None or view.materialized:
            return self._catalog.relations[name].schema
        if view.plan is None:
            raise DefinitionError(
                f"plain view {name} is made by a Python function, which SQL cannot read",
                hint="make it a materialized view",
            )
        return view.plan

    def function(self, name: str) -> UserFunction | None:
        return known(name)

    def default(self, table: str, column: str) -> Expression | None:
        found = self._catalog.tables.get(table)
        if found is None or column not in found.defaults:
            return None
        return as_expression(found.defaults[column], found.schema[column].type)


def as_expression(value: Any, of: Type) -> Expression:
    """A default as SQL has it."""
    return cast(value, of) if isinstance(value, Now) else Literal(value, of)


def view_of(catalog: Catalog, statement: CreateView, read: Iterable[str]) -> ViewDefinition:
    """A view by its statement; ``read`` are the relations that were asked for when it was bound."""
    plan = statement.plan
    better = optimize(plan)

    def build(relations: Any) -> Any:
        return lower(better, relations, relations.circuit).under(plan.schema)

    return ViewDefinition(
        statement.name,
        plan.schema,
        build,
        tuple(read),
        statement.text,
        statement.dialect,
        plan,
        statement.materialized,
        statement.order,
        better,
    )


def read_again(catalog: Catalog, name: str, text: str, dialect: str) -> ViewDefinition:
    """A view whose text was read before, perhaps by another process, with the relations as they are now."""
    known = Known(catalog)
    (statement,) = bind(text, known, dialect)
    assert isinstance(statement, CreateView) and statement.name == name, "a view is stored by the text that made it"
    return view_of(catalog, statement, known.read)
