"""The database's side of the contract with front ends: the relations they may read, and views made of their plans.

For a language whose texts define only views (`LANGUAGES`), `add_text` and `read_text` are all that a database needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from everview.database.catalog import Catalog, lowered_aside
from everview.database.definitions import Reader, ViewDefinition, check_name
from everview.database.rules import derived_name
from everview.errors import DefinitionError
from everview.frontends.dialects import DATALOG, EDN, FLUENT, LANGUAGES, POMORA
from everview.frontends.sql import CreateView, bind
from everview.frontends.sql.parameters import NO_PARAMETERS, ParameterValues
from everview.later import Later
from everview.multiway import Statistics
from everview.plan.catalog import Readable, StoredFunction
from everview.plan.node import Plan
from everview.plan.nodes import Scan, scans
from everview.plan.typing import cast
from everview.scalars.expressions import Expression, Literal, Now
from everview.types import Schema, Type

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.database.derived import read_rules
    from everview.database.edn import read_view
    from everview.database.files import scan_files
    from everview.database.fluent import read_query
    from everview.database.information import information_of, statement_of
    from everview.database.past import scan_as_of
    from everview.frontends.sql.constraints import UniqueColumns
    from everview.lowering.closing import on_close
    from everview.plan.plain_groups import plain_groups
else:
    read_rules = Later("everview.database.derived", "read_rules")
    read_view = Later("everview.database.edn", "read_view")
    read_query = Later("everview.database.fluent", "read_query")
    scan_files = Later("everview.database.files", "scan_files")
    scan_as_of = Later("everview.database.past", "scan_as_of")
    on_close = Later("everview.lowering.closing", "on_close")
    plain_groups = Later("everview.plan.plain_groups", "plain_groups")
    information_of = Later("everview.database.information", "information_of")
    statement_of = Later("everview.database.information", "statement_of")
    UniqueColumns = Later("everview.frontends.sql.constraints", "UniqueColumns")

NO_SIZES: Mapping[str, int] = {}


class ReadableDatabase(Readable):
    """The definitions of a database as front ends read them; ``read`` collects the relations that were asked for."""

    def __init__(self, catalog: Catalog, heads: Iterable[str] = (), core: Core | None = None) -> None:
        """Read a catalog; ``heads`` are relations that the text itself defines, so it does not read their old ones.

        With its ``core``, a database is also read as of earlier epochs.
        """
        self._core = core
        self.catalog = self._catalog = catalog
        self._heads = tuple(heads)
        self.read: dict[str, None] = {}
        self.read_files: list[str] = []

    @property
    def timezone(self) -> str:
        return self._catalog.timezone

    def names(self) -> Iterable[str]:
        own = {*self._heads, *map(derived_name, self._heads), *self._catalog.guards} - self._catalog.tables.keys()
        return [name for name in self._catalog.relations if name not in own]

    def find(self, name: str) -> str:
        return self._catalog.find(name)

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

    def as_of(self, name: str, when: int | datetime) -> Plan:
        """The plan of a relation at an earlier epoch or time, for a query that is answered once."""
        if self._core is None:
            return super().as_of(name, when)
        seen = self._catalog.seen(name) if name in self._catalog.relations else name
        past = scan_as_of(self._core, seen, when)
        return self.scan(name) if past is None else past

    def files(self, format_: str, paths: Sequence[str], options: Mapping[str, Any]) -> Plan:
        """The plan that reads files; only a statement that is run once may."""
        if self._core is None:
            return super().files(format_, paths, options)
        scan = scan_files(self._core, format_, paths, options)
        self.read_files.append(scan.relation)
        return scan

    def key(self, name: str) -> tuple[str, ...]:
        """The primary key; rules may add rows to a table, whatever its key."""
        table = self._catalog.tables.get(name)
        return () if table is None or self._catalog.seen(name) != name else table.key

    def keys_of(self, plan: Plan) -> dict[str, tuple[str, ...]]:
        """The primary keys of the relations that a plan reads, in subqueries, too."""
        return {name: self.key(name) for name in (*scans(plan), *self.read)}

    def is_set(self, name: str) -> bool:
        """Whether no row is there twice: there is a key, or rules define the relation."""
        seen = self._catalog.seen(name)
        table = self._catalog.tables.get(seen)
        if table is not None:
            return bool(table.key or table.carries)
        return self._catalog.views[seen].dialect in (DATALOG, POMORA)

    def given(self, scan: Scan) -> Scan:
        table = self._catalog.shown.get(scan.relation)
        return scan if table is None else Scan(table, self._catalog.tables[table].schema)

    def default(self, table: str, column: str) -> Expression | None:
        known = self._catalog.tables.get(table)
        if known is None or column not in known.defaults:
            return None
        return _as_expression(known.defaults[column], known.schema[column].type)

    def stored_function(self, name: str) -> StoredFunction | None:
        return self._catalog.functions.get(name)

    def generated(self, table: str) -> Mapping[str, str]:
        known = self._catalog.tables.get(table)
        return {} if known is None else known.generated

    @property
    def current_schema(self) -> str:
        return "" if self._core is None else self._core.schema

    def schemas(self) -> Iterable[str]:
        return self._catalog.schemas

    def information(self, name: str) -> Sequence[tuple[Any, ...]]:
        return information_of(self._catalog, name)

    def created(self, name: str) -> str:
        return statement_of(self._catalog, name)

    def named_uniques(self, table: str) -> Mapping[str, tuple[str, ...]]:
        known = self._catalog.tables.get(table)
        constraints = () if known is None else known.constraints
        return {c.name: c.columns for c in constraints if isinstance(c, UniqueColumns)}


def _as_expression(value: Any, type_: Type) -> Expression:
    """A default as an expression."""
    return cast(value, type_) if isinstance(value, Now) else Literal(value, type_)


# -- SQL


def sql_view(statement: CreateView, known: ReadableDatabase, sizes: Mapping[str, int] = NO_SIZES) -> ViewDefinition:
    """A view by its statement; ``known`` are the relations by which it was bound.

    Its joins are ordered by the ``sizes`` of tables, which stay those of its first day: a plan that follows the tables
    would have other traces when the database is opened again.
    """
    parameters = statement.given
    reader = partial(read_sql, parameters=parameters, sizes=sizes) if parameters or sizes else read_sql
    if known.catalog.watermarked:
        statement = replace(statement, plan=plain_groups(statement.plan))
    named = statement.named(known.read, known.keys_of(statement.plan), statistics_of(sizes))
    if statement.on_close:
        named = on_close(named, lowered_aside(known.catalog, named.optimized))
    view = ViewDefinition.of_plan(named, statement.text, statement.dialect, reader)
    if parameters or sizes or statement.temporary:
        return replace(view, parameters=parameters, sizes=sizes, temporary=statement.temporary)
    return view


def statistics_of(sizes: Mapping[str, int]) -> dict[str, Statistics]:
    """The sizes of tables as the optimizer takes them."""
    return {name: Statistics(rows, ()) for name, rows in sizes.items()}


def read_sql(
    catalog: Catalog,
    name: str,
    text: str,
    dialect: str,
    parameters: Mapping[str, Literal] = NO_PARAMETERS,
    sizes: Mapping[str, int] = NO_SIZES,
) -> ViewDefinition:
    """A view by its stored statement, the values of the parameters in it, and the sizes of tables it was planned by."""
    known = ReadableDatabase(catalog)
    (statement,) = bind(text, known, dialect, ParameterValues.by_names(parameters))
    assert isinstance(statement, CreateView) and statement.name == name, "a view is stored by the text that made it"
    return sql_view(statement, known, sizes)


# -- languages whose texts define views

# How a view is read again whose stored text is more or less than a text of its language.
READERS: Final[dict[str, Reader]] = {DATALOG: read_rules, EDN: read_view, FLUENT: read_query}


def reader_of(dialect: str) -> Reader:
    """The function that reads one view of a dialect again from its stored text."""
    return read_text if dialect in LANGUAGES else READERS.get(dialect, read_sql)


def add_text(database: Core, text: str, language: str) -> tuple[str, ...]:
    """Define the views of a text, in one turn, all or none; each is stored with the whole text. Returns their names."""
    catalog = database.catalog
    made = _views(catalog, text, language)
    for view in made:
        check_name("view", view.name)
        catalog = catalog.with_view(view)
    database.definitions.redefine(catalog, [])
    return tuple(view.name for view in made)


def read_text(catalog: Catalog, name: str, text: str, language: str) -> ViewDefinition:
    """One view of a text, bound as when the text was first read: without the other views that it defines."""
    others = {other: v for other, v in catalog.views.items() if (v.dialect, v.text) != (language, text)}
    views = _views(replace(catalog, views=others), text, language, name)
    return next(view for view in views if view.name == name)


def _views(catalog: Catalog, text: str, language: str, only: str | None = None) -> list[ViewDefinition]:
    named = LANGUAGES[language](text, ReadableDatabase(catalog), only)
    return [ViewDefinition.of_plan(one, text, language, read_text) for one in named]
