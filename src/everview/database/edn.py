"""EDN queries on a database: answered now or kept as views, with tables for attributes that they name first.

A view is stored as the text of its query and its arguments, under the dialect "edn".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from everview.codes.rows import to_rows
from everview.database.catalog import Catalog
from everview.database.definitions import TableDefinition, ViewDefinition, check_name
from everview.database.frontends import ReadableDatabase
from everview.database.statements import repeat
from everview.database.views import View
from everview.frontends.dialects import EDN
from everview.frontends.edn.arguments import as_arguments
from everview.frontends.edn.attributes import Attributes, facts_schema
from everview.frontends.edn.compile import compile_query
from everview.frontends.edn.forms import AnyForm, KeywordForm, MapForm, ScalarForm, VectorForm, written
from everview.frontends.edn.parse import parse_query
from everview.frontends.edn.plans import named_plan
from everview.frontends.edn.pulling import without_gaps
from everview.frontends.edn.query import EdnQuery, Pulled
from everview.frontends.edn.reader import read
from everview.frontends.edn.transaction import is_transaction
from everview.types import ANY, Type
from everview.zset.shown import shown

if TYPE_CHECKING:
    from everview.database.core import Core


def attributes_of(catalog: Catalog) -> Attributes:
    """The attributes that the relations of a catalog make."""
    return Attributes(ReadableDatabase(catalog))


def run(db: Core, text: str, name: str | None, values: Iterable[Any], *, replace: bool) -> Any:
    """Run a text of EDN: a transaction; else a query, which is a view if it has a name and is answered if not."""
    from everview.database.eav import transact

    form, arguments = read(text), as_arguments(values)
    if name is None and not arguments and is_transaction(form):
        return transact(db, form)
    query = parse_query(form)
    if name is None:
        return answer(db, query, arguments)
    return define(db, name, query, (text, arguments), again=replace)


# -- answers


def answer(db: Core, query: EdnQuery, arguments: tuple[AnyForm, ...]) -> Any:
    """The answer of a query now, in the shape that it asks for."""
    compiled = compile_query(query, arguments, attributes_of(db.catalog))
    table = repeat(*db.holdings.answered(compiled.plan))
    return shaped(query, shown(compiled.plan.schema, to_rows(compiled.plan.schema, table)))


def shaped(query: EdnQuery, rows: list[tuple[Any, ...]]) -> Any:
    """Rows as a list of tuples, or of dicts if they have keys; a list of values; one tuple, or one value, or None."""
    places = [at for at, found in enumerate(query.find) if isinstance(found, Pulled)]
    if places:
        rows = [tuple(without_gaps(v) if at in places else v for at, v in enumerate(row)) for row in rows]
    answers: list[Any] = rows if query.keys is None else [dict(zip(query.keys, row, strict=True)) for row in rows]
    match query.shape:
        case "relation":
            return answers
        case "collection":
            return [row[0] for row in rows]
        case "tuple":
            return answers[0] if answers else None
        case "scalar":
            return rows[0][0] if rows else None


class EdnView(View):
    """A view that an EDN query defines."""

    def __init__(self, database: Core, name: str, query: EdnQuery) -> None:
        super().__init__(database, name)
        self._query = query

    def answer(self) -> Any:
        """The rows of the view, in the shape that the query asks for."""
        return shaped(self._query, self.rows())


# -- views


def define(db: Core, name: str, query: EdnQuery, written: tuple[str, tuple[AnyForm, ...]], *, again: bool) -> EdnView:
    """Define a view by an EDN query and its text, along with the attributes first named by the query."""
    check_name("view", name)
    text, arguments = written
    with db.definitions.changing():
        if not again:
            db.catalog.require_free("view", name)
        compiled = compile_query(query, arguments, attributes_of(db.catalog), lenient=True)
        catalog, anew = with_attributes(db.catalog, compiled.open)
        view = view_of(catalog, name, text, arguments)
        if name in catalog.views:
            catalog, more = with_read_anew(catalog.with_other(view), {name})
            db.definitions.redefine(catalog, [*anew, *more])
        else:
            db.definitions.redefine(catalog.with_view(view), anew)
    return EdnView(db, name, query)


def view_of(catalog: Catalog, name: str, text: str, arguments: tuple[AnyForm, ...]) -> ViewDefinition:
    """A view by the text of its query."""
    named = named_plan(name, text, arguments, ReadableDatabase(catalog))
    return ViewDefinition.of_plan(named, stored(text, arguments), EDN, read_view)


def stored(text: str, arguments: tuple[AnyForm, ...]) -> str:
    """A query and its arguments as one text."""
    return written(MapForm(((KeywordForm(":query"), ScalarForm(text)), (KeywordForm(":args"), VectorForm(arguments)))))


def read_view(catalog: Catalog, name: str, text: str, dialect: str = EDN) -> ViewDefinition:
    """A view that was stored."""
    said = read(text)
    assert isinstance(said, MapForm), "a view is stored as a map"
    query, arguments = said.get(":query"), said.get(":args")
    assert isinstance(query, ScalarForm) and isinstance(arguments, VectorForm), "of its query and its arguments"
    return view_of(catalog, name, query.value, arguments.items)


def query_of(view: ViewDefinition) -> EdnQuery:
    """The query of a view."""
    said = read(view.text or "")
    query = said.get(":query") if isinstance(said, MapForm) else None
    assert isinstance(query, ScalarForm), "a view is stored as a map of its query and its arguments"
    return parse_query(read(query.value))


def without_itself(database: object, values: Any) -> Any:
    """Arguments without the database itself, which may stand among them, for ``$``."""
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        return values
    return [value for value in values if value is not database]


# -- attributes


def with_attributes(catalog: Catalog, types: Mapping[str, Type | None]) -> tuple[Catalog, list[str]]:
    """A catalog in which attributes hold values of these types, and the views to be made anew.

    An attribute of unknown type is a table of ANY, which is empty until the first value shows the type.
    """
    changed = dict[str, TableDefinition]()
    for name, type_ in types.items():
        known = catalog.tables.get(name)
        if known is None:
            catalog.require_free("attribute", name)
            changed[name] = fact_table(name, type_, many=True)
        elif type_ is not None and known.schema.types[1] != type_:
            changed[name] = fact_table(name, type_, many=len(known.key) == 2)
    if not changed:
        return catalog, []
    replaced = [name for name in changed if name in catalog.tables]
    whole, anew = with_read_anew(replace(catalog, tables={**catalog.tables, **changed}), set(changed))
    return whole, [*replaced, *anew]


def fact_table(name: str, type_: Type | None, *, many: bool) -> TableDefinition:
    """The table of an attribute: facts are a set, and an entity has one value, or many."""
    return TableDefinition.of(name, facts_schema(type_ or ANY), key=("e", "v") if many else ("e",))


def with_read_anew(catalog: Catalog, changed: set[str]) -> tuple[Catalog, list[str]]:
    """The catalog after binding the readers of changed relations again, with the names of all changed views.

    All EDN queries are bound again: one may range over all attributes, or name one whose type was not known.
    """
    for view in catalog.ordered():
        if view.name not in changed and (view.dialect == EDN or changed.intersection(view.reads)):
            other = catalog.anew(view)
            if (other.plan, other.schema) != (view.plan, view.schema) or view.plan is None:
                catalog = catalog.with_other(other)
                changed = {*changed, view.name}
    return catalog, [name for name in changed if name in catalog.views]
