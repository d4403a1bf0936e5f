"""Fluent queries at work: run now, or kept as views, one for each of their parts.

A query with related rows is several views: ``recent`` of its own rows, ``recent.artist`` of those beneath. They are
defined in one turn, stored as the query's text under the dialect "fluent", and dropped together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from everview.codes.rows import to_rows
from everview.database.catalog import Catalog
from everview.database.definitions import ViewDefinition, check_name, find_name
from everview.database.known import Known
from everview.database.pulled import at_sources, in_shape
from everview.database.shown import shown
from everview.database.statements import repeat
from everview.database.together import Views
from everview.database.views import View
from everview.errors import DefinitionError
from everview.frontends.fluent import Clauses, Home, Part, Query, from_text, parts, to_text, trees
from everview.optimize import optimize
from everview.plan.node import Plan
from everview.views import Shape

if TYPE_CHECKING:
    from everview.database.core import Core

FLUENT: Final = "fluent"  # the dialect of views that are fluent queries


class Readable(Known):
    """What a fluent query is told of a catalog, and which relations it asked for."""

    def find(self, name: str) -> str:
        """The name of a relation as it was defined."""
        return self._catalog.find(name)

    def key(self, name: str) -> tuple[str, ...]:
        """The primary key; rules may add rows to a table, whatever its key."""
        table = self._catalog.tables.get(name)
        return () if table is None or self._catalog.seen(name) != name else table.key


def query_of(database: Core, relation: str, alias: str | None) -> Query:
    """A query of a table or a view; or of a source that is not kept, which it pulls from."""
    name = find_name("relation", relation, {**database.catalog.relations, **database.attached.sources})
    if name in database.attached.sources:
        return at_sources(database).query(name, alias)
    return Query.of(AtDatabase(database), name, alias)


class AtDatabase:
    """Where the queries of a database are at home."""

    def __init__(self, database: Core) -> None:
        self.database = database

    def same(self, other: Home) -> bool:
        return isinstance(other, AtDatabase) and other.database is self.database

    def names(self) -> Any:
        return self._now.names()

    def find(self, name: str) -> str:
        return self._now.find(name)

    def relation(self, name: str) -> Any:
        return self._now.relation(name)

    def key(self, name: str) -> tuple[str, ...]:
        return self._now.key(name)

    @property
    def _now(self) -> Readable:
        return Readable(self.database.catalog)

    def prepare(self, query: Query) -> Prepared:
        return Prepared(self, query, query.parts(), self.database.catalog)

    def run(self, query: Query) -> Any:
        return answered(self.database, query.parts())

    def materialize(self, query: Query, name: str | None) -> Shape:
        with self.database.definitions.changing():
            name = free_name(self.database.catalog, query) if name is None else name
            self.database.definitions.redefine(with_views(self.database.catalog, name, query.said), ())
        return living(self.database, name)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that has been checked as a whole, and planned."""

    home: AtDatabase
    query: Query
    part: Part
    catalog: Catalog

    def run(self) -> Any:
        """What it gives now; see `Query.run`. If definitions have changed since, it is planned anew."""
        with self.home.database.still:
            known = self.home.database.catalog is self.catalog
            return answered(self.home.database, self.part if known else self.query.parts())

    def materialize(self, name: str | None = None) -> Shape:
        """A view of it; see `Query.materialize`."""
        return self.query.materialize(name)

    def explain(self) -> str:
        """The plan of every part, as it would be computed."""
        named = self.part.walk(self.query.said.relation)
        return "\n\n".join(f"{name}\n{optimize(part.plan)}" for name, part in named)


# -- now


def answered(database: Core, part: Part) -> Any:
    """What a query gives, from the rows of all its parts at one moment."""
    with database.still:
        return trees(part, {name: _rows(database, one.plan) for name, one in part.walk("")})


def _rows(database: Core, plan: Plan) -> list[tuple[Any, ...]]:
    table, weights = database.holdings.answered(plan)
    return shown(plan.schema, to_rows(plan.schema, repeat(table, weights)))


# -- as views


def living(database: Core, name: str) -> Shape:
    """The view of a query in the shape that it asks for: a value, a list, a table, or a tree of what lies beneath."""
    with database.still:
        part = part_of(database.catalog, name)
        if part is None:
            raise DefinitionError(f"view {name} is no fluent query", hint="name one that materialize has made")
        return in_shape(name, part, View(database, name), Views(database, [each for each, _ in part.walk(name)]))


def free_name(catalog: Catalog, query: Query) -> str:
    """A name for a query that was given none."""
    taken = {name.casefold() for name in catalog.relations}
    found = (f"{query.said.relation} query {number}" for number in count(1))
    return next(name for name in found if name.casefold() not in taken)


def with_views(catalog: Catalog, name: str, query: Clauses) -> Catalog:
    """The catalog with the views of a query."""
    check_name("view", name)
    for view in views(catalog, name, query):
        catalog = catalog.with_view(view)
    return catalog


def views(catalog: Catalog, name: str, query: Clauses) -> Iterator[ViewDefinition]:
    """The views of a query's parts, each after the one above it."""
    known = Readable(catalog)
    text = to_text(query)
    for view, part in list(parts(query, known, name).walk(name)):
        above = () if view == name else (view[: -len(part.name) - 1],)
        yield _view(name, view, part, text, (*above, *known.read))


def _view(whole: str, name: str, part: Part, text: str, reads: tuple[str, ...]) -> ViewDefinition:
    better = optimize(part.plan)
    order = tuple((part.plan.column(at), way) for at, way in part.order) if part.ordered else ()
    return ViewDefinition(
        name,
        part.plan.schema,
        partial(_build, part.plan, better),
        reads,
        text if name == whole else f"{whole}\n{text}",
        FLUENT,
        part.plan,
        order=order,
        optimized=better,
        whole=whole,
    )


def _build(plan: Plan, better: Plan, relations: Any) -> Any:
    return relations.of_plan(better).under(plan.schema)


def whole_of(name: str, text: str) -> tuple[str, Clauses]:
    """The view that a view is a part of, and the query of that."""
    before, line, query = text.rpartition("\n")  # JSON has no line breaks of its own
    return (before, from_text(query)) if line else (name, from_text(text))


def read_query(catalog: Catalog, name: str, text: str) -> ViewDefinition:
    """A view by its stored text; see `read_again`."""
    whole, query = whole_of(name, text)
    return next(view for view in views(catalog, whole, query) if view.name == name)


def part_of(catalog: Catalog, name: str) -> Part | None:
    """The parts of the query that a view is, with plans over the views themselves; None if it is no fluent query."""
    view = catalog.views[name]
    if view.dialect != FLUENT or view.text is None or view.whole != name:
        return None
    return parts(from_text(view.text), Readable(catalog), name)
