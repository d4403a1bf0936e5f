"""EDN queries on a database: answered now or kept as views, with tables for attributes that they name first.

A view is stored as the text of its query and its arguments, under the dialect "edn".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from everview.codes.rows import to_rows
from everview.database.catalog import Catalog
from everview.database.definitions import TableDefinition, ViewDefinition, check_name
from everview.database.frontends import ReadableDatabase
from everview.database.statements import repeat
from everview.database.views import View
from everview.errors import EdnError
from everview.frontends.dialects import EDN
from everview.frontends.edn.arguments import OtherFacts, WrittenRows, as_arguments
from everview.frontends.edn.attributes import Attributes, facts_schema
from everview.frontends.edn.compile import compile_query
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import AnyForm, KeywordForm, MapForm, ScalarForm, SymbolForm, VectorForm, written
from everview.frontends.edn.parse import parse_query
from everview.frontends.edn.plans import named_plan
from everview.frontends.edn.pull_patterns import DEEPEST, endless, levelled, with_entities
from everview.frontends.edn.pulling import without_gaps
from everview.frontends.edn.query import EdnQuery, PulledEntity, SourceInput, attributes_asked
from everview.frontends.edn.reader import read
from everview.frontends.edn.symbols import DATOMIC, in_dialect
from everview.frontends.edn.transaction import is_transaction
from everview.types import ANY, Type
from everview.zset.shown import shown

if TYPE_CHECKING:
    from everview.database.core import Core


def attributes_of(catalog: Catalog) -> Attributes:
    """The attributes that the relations of a catalog make."""
    return Attributes(ReadableDatabase(catalog))


@dataclass(frozen=True)
class AskedEdn:
    """A text of EDN as it was read: a query with its arguments, or a transaction without any."""

    form: AnyForm
    text: str
    query: EdnQuery | None
    arguments: tuple[AnyForm, ...]


def asked(db: Core, text: str, values: Any, dialect: str = DATOMIC) -> AskedEdn:
    """Read a text and its arguments; facts of other databases are read here, before this one is locked."""
    said = read(text)
    form = in_dialect(said, dialect)
    given = list(values) if _is_list(values) else values
    if is_transaction(form) and _is_list(values) and all(_core_of(value) is db for value in given):
        return AskedEdn(form, text, None, ())
    query = parse_query(form)
    arguments = as_arguments(with_databases(db, query, given) if _is_list(values) else values)
    return AskedEdn(form, text if form is said else written(form), query, arguments)


def _is_list(values: Any) -> bool:
    return hasattr(values, "__iter__") and not isinstance(values, str | bytes | Mapping)


def run(db: Core, said: AskedEdn, name: str | None, *, replace: bool) -> Any:
    """Run a text of EDN: a transaction; else a query, which is a view if it has a name and is answered if not."""
    from everview.database.eav import transact

    if said.query is None and name is None:
        return transact(db, said.form)
    query = said.query or parse_query(said.form)
    if name is None:
        return answer(db, query, said.arguments)
    if any(isinstance(a, ScalarForm) and isinstance(a.value, OtherFacts) for a in said.arguments):
        hint = "give the rows of the other one, args=[other.edn(…)]; the view does not see them change"
        raise EdnError(f"view {name} reads one database, and was given two", hint=hint)
    return define(db, name, query, (said.text, said.arguments), again=replace)


# -- other databases


def with_databases(db: Core, query: EdnQuery, values: list[Any]) -> list[Any]:
    """Arguments with the facts of other databases; this one stands for ``$``, or as ``$`` for another source."""
    inputs = [one for one in query.inputs if not (isinstance(one, SourceInput) and one.name == "$")]
    while len(values) > len(inputs) and any(_core_of(value) is db for value in values):
        own = next(place for place, value in enumerate(values) if _core_of(value) is db)
        values = [*values[:own], *values[own + 1 :]]
    given = list[Any]()
    for value, one in zip_longest(values, inputs[: len(values)]):
        core = _core_of(value)
        if core is None:
            given.append(value)
        elif not isinstance(one, SourceInput):
            raise refuse(query.place, "a database is given for what is no source", "name it in :in: $ $other")
        else:
            given.append(SymbolForm("$") if core is db else ScalarForm(_facts_of(core, query, one.name)))
    return given


def _core_of(value: Any) -> Core | None:
    from everview.database.core import Core

    core = getattr(value, "_core", None)
    return core if isinstance(core, Core) else None


def _facts_of(other: Core, query: EdnQuery, source: str) -> OtherFacts:
    """The facts of another database that a query asks for, as they are now."""
    facts: dict[str, WrittenRows] = {}
    with other.still:
        other.access.ready()
        other.access.require_open()
        attributes = attributes_of(other.catalog)
        for name, place in attributes_asked(query.where, source).items():
            try:
                attribute = attributes.find(name)
                if attribute is None:
                    raise attributes.unknown(name)
            except EdnError as error:
                raise refuse(place, f"{source}: {error.message}", error.hint or "") from None
            plan = attribute.rows(None)
            rows = shown(plan.schema, to_rows(plan.schema, repeat(*other.holdings.answered(plan))))
            facts[name] = WrittenRows(tuple(rows), (attribute.entity, attribute.value))
    return OtherFacts(facts)


# -- answers


def answer(db: Core, query: EdnQuery, arguments: tuple[AnyForm, ...]) -> Any:
    """The answer of a query now, in the shape that it asks for."""
    if any(isinstance(wanted, PulledEntity) and endless(wanted.pattern) for wanted in query.find):
        query = _to_the_end(db, query, arguments)
    return _answered(db, query, arguments)


def _to_the_end(db: Core, query: EdnQuery, arguments: tuple[AnyForm, ...]) -> EdnQuery:
    """The query with as many levels of ``...`` as there are now: another one reaches no further entity."""
    for levels in (*(1 << power for power in range(5)), DEEPEST - 1):
        reached, further = (_answered(db, _with_levels(query, levels + more, every=True), arguments) for more in (0, 1))
        if reached == further:
            return _with_levels(query, levels)
    hint = "write the number of levels: {:friend 5}"
    raise refuse(query.place, f"the recursion of pull goes on for more than {DEEPEST - 1} levels", hint)


def _with_levels(query: EdnQuery, levels: int, *, every: bool = False) -> EdnQuery:
    """The query with a number in place of every ``...``; and, if that is asked, with every entity's number."""

    def with_levels(one: PulledEntity) -> PulledEntity:
        pattern = levelled(one.pattern, levels)
        return replace(one, pattern=with_entities(pattern) if every else pattern)

    return replace(query, find=tuple(with_levels(o) if isinstance(o, PulledEntity) else o for o in query.find))


def _answered(db: Core, query: EdnQuery, arguments: tuple[AnyForm, ...]) -> Any:
    compiled = compile_query(query, arguments, attributes_of(db.catalog))
    table = repeat(*db.holdings.answered(compiled.plan))
    return shaped(query, shown(compiled.plan.schema, to_rows(compiled.plan.schema, table)))


def shaped(query: EdnQuery, rows: list[tuple[Any, ...]]) -> Any:
    """Rows as a list of tuples, or of dicts if they have keys; a list of values; one tuple, or one value, or None."""
    places = [place for place, wanted in enumerate(query.find) if isinstance(wanted, PulledEntity)]
    if places:
        rows = [tuple(without_gaps(v) if place in places else v for place, v in enumerate(row)) for row in rows]
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

    All EDN queries are bound again: one may range over all attributes, or name one whose type was not known. Who reads
    a changed view is changed, too, even if its plan says the same as before: that is of another relation now.
    """
    for view in catalog.ordered():
        reads = not changed.isdisjoint(view.reads)
        if view.name not in changed and (view.dialect == EDN or reads):
            other = catalog.anew(view)
            if reads or (other.plan, other.schema) != (view.plan, view.schema):
                catalog = catalog.with_other(other)
                changed = {*changed, view.name}
    return catalog, [name for name in changed if name in catalog.views]
