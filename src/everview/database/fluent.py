"""Fluent queries on a database: run now, or kept as views, one for each of their parts.

A query with related rows is several views: ``recent`` of its own rows, ``recent.artist`` of those beneath. They are
defined in one turn, stored as the query's text under the dialect "fluent", and dropped together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

from everview.codes.rows import to_rows
from everview.database.catalog import Catalog
from everview.database.definitions import ViewDefinition, check_name, find_name
from everview.database.frontends import ReadableDatabase
from everview.database.pulled import at_sources, in_shape
from everview.database.statements import repeat
from everview.database.together import Views
from everview.database.views import View
from everview.errors import DefinitionError
from everview.frontends.dialects import FLUENT
from everview.frontends.fluent import (
    Clauses,
    Home,
    PreparedQuery,
    Query,
    QueryPart,
    from_text,
    named_plans,
    parts,
    to_text,
    trees,
)
from everview.plan.node import Plan
from everview.views import Shape
from everview.zset.shown import shown

if TYPE_CHECKING:
    from everview.database.core import Core


def query_of(database: Core, relation: str, alias: str | None) -> Query:
    """A query of a relation: a table, a view, or a source that is not kept, whose rows are pulled."""
    name = find_name("relation", relation, {**database.catalog.relations, **database.attached.sources})
    if name in database.attached.sources:
        return at_sources(database).query(name, alias)
    return Query.of(AtDatabase(database), name, alias)


class AtDatabase(Home):
    """The home of queries of a database's tables and views."""

    def __init__(self, database: Core) -> None:
        self.database = database

    @property
    def catalog(self) -> ReadableDatabase:
        return ReadableDatabase(self.database.catalog)

    @property
    def definitions(self) -> Catalog:
        return self.database.catalog

    def same(self, other: Home) -> bool:
        return isinstance(other, AtDatabase) and other.database is self.database

    def run(self, query: Query, prepared: PreparedQuery | None = None) -> Any:
        with self.database.still:
            if prepared is not None and prepared.definitions is self.definitions:
                return answered(self.database, prepared.part)
            return answered(self.database, query.parts())

    def materialize(self, query: Query, name: str | None) -> Shape:
        with self.database.definitions.changing():
            name = free_name(self.database.catalog, query) if name is None else name
            self.database.definitions.redefine(with_views(self.database.catalog, name, query.said), ())
        return living(self.database, name)


# -- now


def answered(database: Core, part: QueryPart) -> Any:
    """The answer of a query, put together from the rows of all its parts at one moment."""
    with database.still:
        return trees(part, {name: _rows(database, one.plan) for name, one in part.walk("")})


def _rows(database: Core, plan: Plan) -> list[tuple[Any, ...]]:
    table, weights = database.holdings.answered(plan)
    return shown(plan.schema, to_rows(plan.schema, repeat(table, weights)))


# -- as views


def living(database: Core, name: str) -> Shape:
    """The living view of a query in the shape that it asks for: a value, a list, a table, or a tree."""
    with database.still:
        part = part_of(database.catalog, name)
        if part is None:
            raise DefinitionError(f"view {name} is no fluent query", hint="name one that materialize has made")
        return in_shape(name, part, View(database, name), Views(database, [each for each, _ in part.walk(name)]))


def free_name(catalog: Catalog, query: Query) -> str:
    """A name for a query that was given none."""
    taken = {name.casefold() for name in catalog.relations}
    names = (f"{query.said.relation} query {number}" for number in count(1))
    return next(name for name in names if name.casefold() not in taken)


def with_views(catalog: Catalog, name: str, query: Clauses) -> Catalog:
    """The catalog with the views of a query."""
    check_name("view", name)
    for view in views(catalog, name, query):
        catalog = catalog.with_view(view)
    return catalog


def views(catalog: Catalog, name: str, query: Clauses) -> Iterator[ViewDefinition]:
    """The views of a query's parts, each after the one above it."""
    known = ReadableDatabase(catalog)
    text = to_text(query)
    part = parts(query, known, name)
    for named in named_plans(part, name, tuple(known.read)):
        stored = text if named.name == name else f"{name}\n{text}"
        yield ViewDefinition.of_plan(named, stored, FLUENT, read_query)


def whole_of(name: str, text: str) -> tuple[str, Clauses]:
    """The view of the whole query that a view is a part of, and that query."""
    before, line, query = text.rpartition("\n")  # JSON has no line breaks of its own
    return (before, from_text(query)) if line else (name, from_text(text))


def read_query(catalog: Catalog, name: str, text: str, dialect: str = FLUENT) -> ViewDefinition:
    """A view by its stored text."""
    whole, query = whole_of(name, text)
    return next(view for view in views(catalog, whole, query) if view.name == name)


def part_of(catalog: Catalog, name: str) -> QueryPart | None:
    """The parts of a view's fluent query, with plans that scan the views of the parts; None for other views."""
    view = catalog.views[name]
    if view.dialect != FLUENT or view.text is None or view.whole != name:
        return None
    return parts(from_text(view.text), ReadableDatabase(catalog), name)
