"""What SQL is told of a database: relations, functions and defaults; and which relations it asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from everview.database.catalog import Catalog
from everview.database.definitions import ViewDefinition
from everview.errors import DefinitionError
from everview.frontends.sql import CreateView, UserFunction, bind
from everview.frontends.sql.decorators import known
from everview.optimize import optimize
from everview.plan.node import Plan
from everview.plan.nodes import Scan
from everview.plan.typing import cast
from everview.scalars.expressions import Expression, Literal, Now
from everview.types import Schema, Type


class Known:
    """A catalog as binding sees it. Of functions it knows those that are registered."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.read: dict[str, None] = {}  # the relations that were asked for

    def names(self) -> Iterable[str]:
        return self._catalog.relations

    def relation(self, name: str) -> Schema | Plan:
        wanted, name = self._catalog.find(name), self._catalog.seen(name)
        self.read[name] = None
        if name != wanted:
            return Scan(name, self._catalog.relations[name].schema)
        view = self._catalog.views.get(name)
        if view is None or view.materialized:
            return self._catalog.relations[name].schema
        if view.plan is None:
            raise DefinitionError(
                f"plain view {name} is made by a Python function, which SQL cannot read",
                hint="make it a materialized view",
            )
        return view.plan

    def given(self, scan: Scan) -> Scan:
        """The table that is changed by the name of a relation, whatever else rules say of it."""
        table = self._catalog.shown.get(scan.relation)
        return scan if table is None else Scan(table, self._catalog.tables[table].schema)

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
        return relations.of_plan(better).under(plan.schema)

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


Reader = Callable[[Catalog, str, str, str], ViewDefinition]


def read_again(catalog: Catalog, name: str, text: str, dialect: str) -> ViewDefinition:
    """A view whose text was read before, perhaps by another process, with the relations as they are now."""
    return READERS.get(dialect, _read_sql)(catalog, name, text, dialect)


def _read_sql(catalog: Catalog, name: str, text: str, dialect: str) -> ViewDefinition:
    known = Known(catalog)
    (statement,) = bind(text, known, dialect)
    assert isinstance(statement, CreateView) and statement.name == name, "a view is stored by the text that made it"
    return view_of(catalog, statement, known.read)


def _read_datalog(catalog: Catalog, name: str, text: str, dialect: str) -> ViewDefinition:
    from everview.database.datalog import read_rules

    return read_rules(catalog, name)


def _read_fluent(catalog: Catalog, name: str, text: str, dialect: str) -> ViewDefinition:
    from everview.database.fluent import read_query

    return read_query(catalog, name, text)


def _read_pomora(catalog: Catalog, name: str, text: str, dialect: str) -> ViewDefinition:
    from everview.database.algebra import read_program

    return read_program(catalog, name, text)


def _read_edn(catalog: Catalog, name: str, text: str, dialect: str) -> ViewDefinition:
    from everview.database.edn import read_view

    return read_view(catalog, name, text)


# By the dialect of a view's text; every other dialect is one of SQL.
READERS: dict[str, Reader] = {
    "pomora": _read_pomora,
    "fluent": _read_fluent,
    "datalog": _read_datalog,
    "edn": _read_edn,
}
