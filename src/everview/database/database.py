"""The database: what people ask it, in SQL, Datalog, EDN or step by step, and where its rows may come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from everview.database import edn
from everview.database.algebra import Assigned, add_program
from everview.database.core import Core
from everview.database.datalog import add_rules, living, remove_rules
from everview.database.definitions import Reader, find_name
from everview.database.derived import read_rules
from everview.database.eav import Transacted, transact
from everview.database.explain import explained, overview
from everview.database.fluent import FLUENT, query_of, read_query
from everview.database.frontends import reader
from everview.database.handles import Rules
from everview.database.identities import content_ids
from everview.database.rules import DATALOG
from everview.database.statements import only_reads, run_sql
from everview.database.views import Table, View
from everview.doors import doors
from everview.errors import DatalogError, DefinitionError, EdnError
from everview.frontends.dialects import POMORA, program_of
from everview.frontends.edn.forms import form_of
from everview.frontends.edn.reader import read
from everview.frontends.fluent import Query
from everview.frontends.pomora.plans import named_plans as pomora_plans
from everview.frontends.rules.faults import within_depth
from everview.sources.protocol import Source
from everview.verify import Verdict, verify, verify_plans
from everview.zset.batch import Batch

# How the stored text of a view is read, by its dialect; every other dialect is one of SQL.
READERS: Final[dict[str, Reader]] = {
    DATALOG: read_rules,
    POMORA: reader(pomora_plans),
    edn.EDN: edn.read_view,
    FLUENT: read_query,
}


@doors()
class Database(Core):
    """Tables, and views over them. Made by `everview.connect`.

    >>> from everview import connect
    >>> db = connect()
    >>> db.create_table("orders", "id BIGINT, customer STRING, amount BIGINT NOT NULL", key="id")
    >>> db.create_view("totals", lambda of: of["orders"].aggregate(["customer"], total=("sum", "amount")))
    >>> with db.transaction() as tx:
    ...     tx.insert("orders", [(1, "Ada", 5), (2, "Bob", 7)])
    2
    >>> sorted(db.view("totals").rows())
    [('Ada', 5), ('Bob', 7)]
    >>> sorted(db.apply({"orders": [((3, "Ada", 1), +1)]})["totals"])
    [(('Ada', 5), -1), (('Ada', 6), 1)]
    """

    # -- SQL

    def sql(self, text: str, *, dialect: str = "spark") -> Any:
        """Run statements of SQL, in Spark's dialect or another; what the last of them gives.

        A query gives its rows, a change how many rows it changed, EXPLAIN a text. Every change is a tick of its own,
        outside of a transaction. Queries and changes inside of one see its changes of tables so far, but views as they
        were before.
        """
        reads = only_reads(text)
        with self._lock if reads else self._lock.writing():
            self.ready() if reads else self.ready_to_write()
            self.require_open()
            return run_sql(self, text, dialect)

    # -- Datalog

    def datalog(self, text: str, *, dialect: str = "souffle") -> Rules | Assigned:
        """Add rules, in one turn; every relation that they define is a view, and further rules may extend it.

        ``dialect`` is souffle or pomologic; or pomora, a program whose relations are views that nothing extends.

        A relation that is declared and has no rules is a table, which is made if there is none. The rules stay until
        they are removed, by what this returns or by `remove_rules`.
        """
        with self.defining(), within_depth(DatalogError):
            return add_program(self, text) if dialect == POMORA else Rules(self, add_rules(self, text, dialect))

    def rules(self) -> list[Rules]:
        """The rules that hold, by the texts that they came in."""
        self.settle()
        return [Rules(self, found) for found in self.catalog.rules if found.rules]

    def remove_rules(self, text: str, *, dialect: str = "souffle") -> None:
        """Remove rules, in one turn, wherever they came from; a view that has none left is dropped."""
        with self.defining(), within_depth(DatalogError):
            remove_rules(self, living(self.catalog, program_of(text, dialect)))

    def content_ids(self, relation: str, rows: Any) -> list[str]:
        """What ``C := relation(…)`` of PomoLogic binds for rows, there or not: to refer to them from elsewhere."""
        with self._lock:
            self.ready()
            return content_ids(self, relation, rows)

    # -- EDN

    def edn(self, text: str, name: str | None = None, *, args: Any = (), replace: bool = False) -> Any:
        """An EDN query: with a name a view that is kept, without one its answer now, as its :find asks for it.

        ``args`` has a value for each of :in but ``$``. A text that is a vector of facts and maps is transacted.
        """
        with self._lock, within_depth(EdnError):
            self.ready()
            self.require_open()
            return edn.run(self, text, name, args, replace=replace)

    def transact(self, facts: Any) -> Transacted:
        """Add and retract facts, as one tick: a text of EDN, or lists and dicts; see `everview.database.eav`."""
        with self._lock, within_depth(EdnError):
            self.ready()
            self.require_open()
            return transact(self, read(facts) if isinstance(facts, str) else form_of(facts))

    # -- fluent queries

    def query(self, relation: str, alias: str | None = None) -> Query:
        """A query of a table or a view, to be built step by step; see `everview.frontends.fluent.query`."""
        self.settle()
        return query_of(self, relation, alias)

    # -- sources

    def attach(self, name: str, source: Any, *, keep: bool = True, resync: bool = False) -> None:
        """A table that is a copy of a source, and follows it by `poll`; see `everview.database.attached`.

        A source that is not to be kept is only read, by fluent queries. With ``resync`` a source that has lost its
        position is compared with the table, row by row.
        """
        self.attached.attach(name, source, keep=keep, resync=resync)

    def poll(self, *names: str, limit: int | None = None) -> dict[str, Batch]:
        """Take in, as one tick, what has changed in attached sources, all or some; returns the change of every view."""
        return self.attached.poll(names, limit)

    def detach(self, name: str) -> None:
        """Let a source go; the table that followed it stays as it is, until the source is attached again."""
        self.attached.detach(name)

    @property
    def sources(self) -> Mapping[str, Source]:
        """The sources that are attached and not kept, by name."""
        self.settle()
        return self.attached.sources

    # -- reading

    def view(self, name: str) -> View:
        """A materialized view."""
        self.settle()
        name = self._view_name(name)
        view = self.catalog.views[name]
        if not view.materialized:
            raise DefinitionError(
                f"view {name} is plain: it is a name for its definition, and holds nothing",
                hint="select from it, or create it as a materialized view",
            )
        return edn.Found(self, name, edn.query_of(view)) if view.dialect == edn.EDN else View(self, name)

    def _view_name(self, name: str) -> str:
        """The name of a view; a table that rules are about is seen as one."""
        if name in self.catalog.views:
            return name
        if name in self.catalog.tables and self.catalog.seen(name) != name:
            return self.catalog.seen(name)
        if name in self.catalog.tables:
            raise DefinitionError(f'"{name}" is a table, not a view', hint=f"db.table({name!r}) reads it")
        return find_name("view", name, self.catalog.views)

    def table(self, name: str) -> Table:
        """A table."""
        self.settle()
        if name in self.catalog.views and name not in self.catalog.tables:
            raise DefinitionError(f'"{name}" is a view, not a table', hint=f"db.view({name!r}) reads it")
        return Table(self, find_name("table", name, self.catalog.tables))

    def explain(self, name: str) -> str:
        """A view's plan and circuit, with what each node has done so far: steps, rows put out, time, rows held."""
        with self._lock:
            self.ready()
            name = self._view_name(name)
            return explained(self.run, self.catalog.views[name])

    def verify(self, name: str | None = None) -> Verdict:
        """A view, or all of them, computed from scratch by the oracle and compared with what it holds."""
        with self._lock:
            self.ready()
            names = [*self.run.views] if name is None else [self.view(name).name]
            tables = {table: self.contents_of(table) for table in self.relations}
            held = {view: self.contents_of(view) for view in names}
            wanted = {view: held[view] for view in names if not self._by_plans(view)}
            found = verify(self._assembled.circuit, tables, wanted)
            plans = {v.name: v.plan for v in self.catalog.ordered() if v.materialized and self._by_plans(v.name)}
            more = verify_plans(plans, tables, {view: held[view] for view in names if view in plans})
            both = {**found.views, **more.views}
            shown = self.catalog.shown
            return Verdict({shown.get(view, view): both[view] for view in names}, found.seconds + more.seconds)

    def _by_plans(self, name: str) -> bool:
        """Whether a view and all that it reads come from plans."""
        view = self.catalog.views.get(name)
        return view is None or (view.plan is not None and all(map(self._by_plans, view.reads)))

    def __repr__(self) -> str:
        return f"<database: {len(self.catalog.tables)} tables, {len(self.catalog.views)} views, epoch {self.epoch}>"

    def _repr_html_(self) -> str:
        with self._lock:
            self.ready()
            return overview(self)
