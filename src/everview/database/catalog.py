"""The catalog: all definitions of a database at one moment, and the circuit that they make together.

A catalog is a value: defining or dropping gives another one, which counts once its circuit runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from everview.circuit.circuit import Circuit
from everview.circuit.rewrite import part
from everview.circuit.stream import Stream
from everview.database.definitions import Build, TableDefinition, ViewDefinition, check_name, find_name
from everview.database.rules import Rulesets, derived_name, head_of, without_heads
from everview.errors import DefinitionError, shown
from everview.frontends.dialects import DATALOG
from everview.later import Later
from everview.lowering.lower import Lowering
from everview.plan.catalog import StoredFunction
from everview.plan.node import Plan
from everview.plan.timed import expired_of, is_companion, late_of, watermark_of
from everview.runtimes.tables import Table

if TYPE_CHECKING:
    from everview.database.planned import QueryPlans
    from everview.plan.forgotten import forgotten
else:
    QueryPlans = Later("everview.database.planned", "QueryPlans")
    forgotten = Later("everview.plan.forgotten", "forgotten")

Tables = Mapping[str, TableDefinition]
Views = Mapping[str, ViewDefinition]


@dataclass(frozen=True)
class Catalog:
    """Tables and views by name; every name is given once, whatever its case."""

    tables: Tables = field(default_factory=dict[str, TableDefinition])
    views: Views = field(default_factory=dict[str, ViewDefinition])
    rules: Rulesets = ()  # of Datalog, by which some of the views are defined
    schemas: tuple[str, ...] = ()  # name spaces beside the default one
    functions: Mapping[str, StoredFunction] = field(default_factory=dict[str, StoredFunction])  # of SQL
    timezone: str = "UTC"

    @property
    def relations(self) -> dict[str, TableDefinition | ViewDefinition]:
        return {**self.tables, **self.views}

    @cached_property
    def shown(self) -> dict[str, str]:
        """The table of each view of given and derived rows, by whose name readers get the view."""
        return {derived_name(name): name for name in self.tables if derived_name(name) in self.views}

    @cached_property
    def guards(self) -> frozenset[str]:
        """The views of rows that break constraints: there are none, and nobody is shown the views."""
        return frozenset(name for name, view in self.views.items() if view.guards is not None)

    @cached_property
    def query_plans(self) -> QueryPlans:
        """Queries that have been planned with these definitions."""
        return QueryPlans()

    @cached_property
    def watermarked(self) -> bool:
        """Whether a table has a watermark."""
        return any(table.watermark is not None for table in self.tables.values())

    @property
    def keys(self) -> dict[str, Table]:
        """The tables as the runtime keeps them, with their keys."""
        return {name: Table(table.key) for name, table in self.tables.items()}

    def find(self, name: str) -> str:
        """The name of a relation, which may be written in another case."""
        return find_name("relation", name, self.relations)

    def find_view(self, name: str) -> str:
        """The name of a view; a table that also has rules counts as one."""
        if name in self.views:
            return name
        if name in self.tables and self.seen(name) != name:
            return self.seen(name)
        if name in self.tables:
            raise DefinitionError(f'"{name}" is a table, not a view', hint=f"db.table({name!r}) reads it")
        return find_name("view", name, self.views)

    def find_materialized(self, name: str) -> str:
        """The name of a view that is materialized, and so holds rows."""
        name = self.find_view(name)
        if not self.views[name].materialized:
            raise DefinitionError(
                f"view {name} is plain: it is a name for its definition, and holds nothing",
                hint="select from it, or create it as a materialized view",
            )
        return name

    def find_table(self, name: str) -> str:
        """The name of a table."""
        if name in self.views and name not in self.tables:
            raise DefinitionError(f'"{name}" is a view, not a table', hint=f"db.view({name!r}) reads it")
        return find_name("table", name, self.tables)

    # -- other catalogs

    def with_table(self, table: TableDefinition) -> Catalog:
        self.require_free("table", table.name)
        return replace(self, tables={**self.tables, table.name: table})

    def with_view(self, view: ViewDefinition) -> Catalog:
        self.require_free("view", view.name)
        self.require_lasting(view)
        return replace(self, views={**self.views, view.name: view})

    def with_other(self, view: ViewDefinition) -> Catalog:
        """The catalog with a view in place of the one of the same name."""
        if view.name not in self.views:
            return self.with_view(view)
        if view.temporary != self.views[view.name].temporary:
            self.require_free("view", view.name)
        self.require_lasting(view)
        if not view.comments:
            view = replace(view, comments=self.views[view.name].comments)
        if self.views[view.name].dialect == DATALOG != view.dialect:
            raise DefinitionError(
                f"{head_of(view.name)} is defined by rules", hint="remove them first: db.rules() shows them"
            )
        if view.whole != self.views[view.name].whole and len(self._parts(view.name)) > 1:
            raise DefinitionError(f"{view.name} has parts, which read it", hint="drop it first, and they go with it")
        changed = replace(self, views={**self.views, view.name: view})
        changed.require_order()
        return changed

    def without(self, name: str, *, cascade: bool = False) -> Catalog:
        """The catalog without a relation; with ``cascade`` also without the views that read it."""
        own = self._parts(name)
        gone = {*own, *(reader for part in own for reader in self.readers(part))}
        if gone - own and not cascade:
            readers = ", ".join(sorted(gone - own))
            raise DefinitionError(
                f"{name} cannot be dropped: {readers} read{'s' if len(gone - own) == 1 else ''} it",
                hint="drop the readers first, or drop it with cascade",
            )
        tables = self.unconstrained(gone - own)
        return replace(
            self,
            tables={n: table for n, table in tables.items() if n not in gone and table.carries not in gone},
            views={n: view for n, view in self.views.items() if n not in gone},
            rules=without_heads(self.rules, {self.shown.get(n, n) for n in gone if n in self.views}),
        )

    def unconstrained(self, gone: Collection[str]) -> Tables:
        """The tables without the constraints whose guards are gone."""
        lost = {guards for name, view in self.views.items() if name in gone and (guards := view.guards) is not None}
        if not lost:
            return self.tables
        return {
            name: replace(table, constraints=tuple(c for c in table.constraints if (name, c.name) not in lost))
            for name, table in self.tables.items()
        }

    def _parts(self, name: str) -> set[str]:
        """A relation and its parts: views that are dropped with the relation, and not alone."""
        if name in self.tables:
            guards = (n for n in self.guards if (self.views[n].guards or ("",))[0] == name)
            beside = (watermark_of(name), late_of(name)) if self.tables[name].watermark is not None else ()
            return {name, *guards, *(n for n in beside if n in self.tables)}
        if name in self.guards:
            raise DefinitionError(f"{name} is no view", hint="write ALTER TABLE … DROP CONSTRAINT …")
        whole = self.views[name].whole if name in self.views else ""
        if whole and whole != name:
            raise DefinitionError(f"{name} is a part of {whole}", hint=f"drop {whole}")
        return {name, *(n for n, view in self.views.items() if whole and view.whole == name)}

    def readers(self, name: str) -> list[str]:
        """The views that read a relation, directly or through other views, sorted so that each follows its inputs."""
        reached = {name, *(self.views[name].beside if name in self.views else ())}
        for view in self.ordered():
            if reached.intersection(view.reads):
                reached.add(view.name)
        return [view.name for view in self.ordered() if view.name in reached and view.name != name]

    def seen(self, name: str) -> str:
        """The relation that readers get by a name: of a table with rules, the view of given and derived rows."""
        name = self.find(name)
        return derived_name(name) if derived_name(name) in self.shown else name

    def ordered(self) -> list[ViewDefinition]:
        """The views, sorted so that each follows its inputs."""
        sorter = TopologicalSorter({name: [r for r in v.reads if r in self.views] for name, v in self.views.items()})
        return [self.views[name] for name in sorter.static_order()]

    # -- views

    def plans(self, view: ViewDefinition) -> Iterator[Plan]:
        """The plan of a view; for a view made by a function, the plans of the plain views among its inputs."""
        if view.plan is not None:
            yield view.plan
            return
        for name in view.reads:
            read = self.views.get(name)
            if read is not None and not read.materialized:
                yield from self.plans(read)

    def view(self, name: str, build: Build, *, materialized: bool = True) -> ViewDefinition:
        """The definition of a view made by a function; a trial call in a circuit aside finds its inputs and columns."""
        check_name("view", name)
        aside = Aside(self)
        stream = build(aside)
        if not isinstance(stream, Stream):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DefinitionError(
                f'view "{name}": its function returned {shown(stream)}, not a stream',
                hint='return what it is made of: lambda of: of["orders"].distinct()',
            )
        return ViewDefinition(name, stream.schema, build, tuple(aside.circuit.sources), materialized=materialized)

    def anew(self, view: ViewDefinition) -> ViewDefinition:
        """A view's definition, read again with the relations as they are now."""
        if view.read is None:
            return self.view(view.name, view.build, materialized=view.materialized)
        assert view.text is not None, "what is read again has a text"
        return view.read(self, view.name, view.text, view.dialect)

    # -- as data

    def to_json(self) -> dict[str, Any]:
        return {
            "tables": [[table.name, table.to_json()] for table in self.tables.values()],
            "views": [[view.name, view.to_json()] for view in self.views.values() if view.stored],
            "rules": [ruleset.to_json() for ruleset in self.rules],
            **({"schemas": list(self.schemas)} if self.schemas else {}),
            **({"functions": [[f.name, f.text, f.dialect] for f in self.functions.values()]} if self.functions else {}),
            **({"timezone": self.timezone} if self.timezone != "UTC" else {}),
        }

    def require_free(self, what: str, name: str) -> None:
        """Refuse a name that is given already, in whatever case."""
        for known in self.relations:
            if known.casefold() == name.casefold():
                kind = "table" if known in self.tables else "view"
                raise DefinitionError(f'there is a {kind} "{known}" already', hint=f"give the {what} another name")

    def require_lasting(self, view: ViewDefinition) -> None:
        """Refuse a view that is stored and reads one that is temporary."""
        passing = [name for name in view.reads if name in self.views and self.views[name].temporary]
        if passing and not view.temporary:
            hint = f"write CREATE TEMPORARY VIEW {view.name}, or CREATE VIEW {passing[0]}"
            raise DefinitionError(f"{view.name} would outlast {passing[0]}, which is temporary", hint=hint)

    def require_order(self) -> None:
        """Refuse views that read themselves through other views."""
        try:
            self.ordered()
        except CycleError as error:
            path = " reads ".join(reversed(error.args[1]))
            raise DefinitionError(
                f"a view cannot read itself: {path}", hint="recursion is written inside one view: WITH RECURSIVE"
            ) from None


@dataclass(frozen=True)
class Assembled:
    """The query circuit of a catalog, with the streams of its tables and of its materialized views."""

    circuit: Circuit
    streams: Mapping[str, int]

    @classmethod
    def of(cls, catalog: Catalog, known: Assembled | None = None, anew: Collection[str] = ()) -> Assembled:
        """All tables and materialized views of a catalog in one circuit.

        Streams of views in ``known`` are taken over, except for views to be made ``anew``: a function that makes a
        stream is called only once, so that its result stays the same.
        """
        kept = [] if known is None else [n for n in known.streams if n in catalog.relations and n not in anew]
        circuit, built = Circuit(), dict[str, Stream]()
        if known is not None:
            views = [name for name in kept if name in catalog.views]
            circuit, moved = part(known.circuit, (known.streams[name] for name in kept), views)
            built = {name: moved[known.streams[name]] for name in kept}
        for name, table in catalog.tables.items():
            if name not in built:
                built[name] = circuit.source(name, table.schema)
        streams = Streams(circuit, catalog, built)
        sinks = circuit.sinks
        for view in catalog.ordered():
            if view.materialized and view.name not in sinks:
                circuit.sink(view.name, streams.exactly(view.name))
        for table in catalog.tables.values() if catalog.watermarked else ():
            if table.watermark is not None and table.watermark.ttl is not None:
                circuit.sink(
                    expired_of(table.name), streams.of_plan(forgotten(table.name, table.schema, table.watermark))
                )
        held = {*catalog.tables, *(name for name in circuit.sinks if not is_companion(name))}
        return cls(circuit, {name: stream.id for name, stream in built.items() if name in held})


class Streams(Mapping[str, Stream]):
    """The streams of a catalog's relations in a circuit, each built when it is first read.

    One `Lowering` lowers the plans of all views, so that nodes and loops that they share are built once.
    """

    def __init__(self, circuit: Circuit, catalog: Catalog, built: dict[str, Stream]) -> None:
        self.circuit, self._catalog, self._built = circuit, catalog, built
        self._lowering = Lowering(circuit, Exact(self))

    def of_plan(self, plan: Plan) -> Stream:
        """The stream of a plan over these relations."""
        return self._lowering.of(plan)

    def __getitem__(self, name: str) -> Stream:
        return self.exactly(self._catalog.seen(name))

    def exactly(self, name: str) -> Stream:
        """The stream of the table or view itself, not of the view that readers get by a table's name."""
        if name not in self._built:
            name = self._catalog.find(name)
        if name not in self._built:
            self._built[name] = self._catalog.views[name].build(self)
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalog.relations)

    def __len__(self) -> int:
        return len(self._catalog.relations)


def lowered_aside(catalog: Catalog, plan: Plan) -> Stream:
    """The stream of a plan in a circuit of its own: all tables are sources, and expired rows of a TTL are sinks."""
    circuit = Circuit()
    tables = {name: circuit.source(name, table.schema) for name, table in catalog.tables.items()}
    for table in catalog.tables.values():
        if table.watermark is not None and table.watermark.ttl is not None:
            circuit.sink(expired_of(table.name), tables[table.name], keep=False)
    return Streams(circuit, catalog, tables).of_plan(plan)


class Exact(Mapping[str, Stream]):
    """Streams by the names that plans use: those of the tables and views themselves."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def __getitem__(self, name: str) -> Stream:
        return self._streams.exactly(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._streams)

    def __len__(self) -> int:
        return len(self._streams)


class Aside(Mapping[str, Stream]):
    """Sources of a circuit aside, which stand for relations; each is made when it is first read."""

    def __init__(self, catalog: Catalog) -> None:
        self.circuit = Circuit()
        self._catalog = catalog

    def __getitem__(self, name: str) -> Stream:
        name = self._catalog.seen(name)
        known = self.circuit.sources
        if name in known:
            return self.circuit.stream(known[name])
        return self.circuit.source(name, self._catalog.relations[name].schema)

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalog.relations)

    def __len__(self) -> int:
        return len(self._catalog.relations)
