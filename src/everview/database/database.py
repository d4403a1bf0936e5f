"""The database: what people ask it, in SQL, Datalog, EDN or step by step, and where its rows may come from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from everview.blocks import Block
from everview.codes import encode_rows
from everview.database.core import Core
from everview.database.definitions import Build, TableDefinition, columns_and_rows
from everview.database.statements import only_reads, run_sql
from everview.database.transaction import filled
from everview.database.transactions import Transaction
from everview.database.views import Table, View
from everview.doors import doors, inside
from everview.errors import DatalogError, DefinitionError, EdnError, StoreError
from everview.frontends.dialects import EDN, POMORA, program_of
from everview.frontends.sql.parameters import ParameterValues
from everview.later import Later
from everview.plan.timed import late_of
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database import edn
    from everview.database.algebra import Assigned, add_program
    from everview.database.datalog import add_rules, living, remove_rules
    from everview.database.eav import Transacted, transact
    from everview.database.explain import explain_view, overview
    from everview.database.fluent import query_of
    from everview.database.frames import define_frame, frame_of
    from everview.database.handles import Rules
    from everview.database.identities import content_ids
    from everview.database.metrics import DatabaseMetrics, metrics_of
    from everview.database.runner import Runner
    from everview.database.verifying import verified
    from everview.database.why import why, why_not
    from everview.frontends.edn.forms import form_of
    from everview.frontends.edn.reader import read
    from everview.frontends.fluent import Query
    from everview.frontends.frame import DataFrame
    from everview.frontends.rules.faults import within_depth
    from everview.observe import TickObserver
    from everview.sources.protocol import Source
    from everview.verify import Verdict
    from everview.why import Why
else:
    edn = Later("everview.database.edn")
    add_program = Later("everview.database.algebra", "add_program")
    add_rules = Later("everview.database.datalog", "add_rules")
    living = Later("everview.database.datalog", "living")
    remove_rules = Later("everview.database.datalog", "remove_rules")
    transact = Later("everview.database.eav", "transact")
    explain_view = Later("everview.database.explain", "explain_view")
    overview = Later("everview.database.explain", "overview")
    query_of = Later("everview.database.fluent", "query_of")
    define_frame = Later("everview.database.frames", "define_frame")
    frame_of = Later("everview.database.frames", "frame_of")
    Rules = Later("everview.database.handles", "Rules")
    content_ids = Later("everview.database.identities", "content_ids")
    metrics_of = Later("everview.database.metrics", "metrics_of")
    Runner = Later("everview.database.runner", "Runner")
    verified = Later("everview.database.verifying", "verified")
    why = Later("everview.database.why", "why")
    why_not = Later("everview.database.why", "why_not")
    form_of = Later("everview.frontends.edn.forms", "form_of")
    read = Later("everview.frontends.edn.reader", "read")
    within_depth = Later("everview.frontends.rules.faults", "within_depth")


@doors()
class Database:
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

    @inside
    def __init__(self, core: Core) -> None:
        self._core = core

    # -- SQL

    def sql(self, text: str, params: Any = None, *, dialect: str = "spark") -> Any:
        """Run statements of SQL, in Spark's dialect or another, and return the result of the last one.

        ``params`` has the values of parameters: a list for each ``?`` in the order of the text, or a dict for
        ``:name``. They are bound as values of their types; a view that is created keeps them as constants.

        A query gives its rows, a change how many rows it changed, EXPLAIN a text. Outside of a transaction every change
        is a tick of its own. Statements inside of a transaction see its changes of tables so far, but views as they
        were before.
        """
        reads, access = only_reads(text), self._core.access
        reads = reads or access.read_only  # what changes anything is refused where it does
        with access.turns if reads else access.turns.writing():
            access.ready() if reads else access.ready_to_write()
            access.require_open()
            return run_sql(self._core, text, dialect, ParameterValues.of(params))

    # -- Datalog

    def datalog(self, text: str, *, dialect: str = "souffle") -> Rules | Assigned:
        """Add rules, in one turn; every relation that they define is a view, and further rules may extend it.

        ``dialect`` is souffle or pomologic; or pomora, a program whose relations are views that nothing extends.

        A relation that is declared and has no rules is a table, which is made if there is none. The rules stay until
        they are removed, by what this returns or by `remove_rules`.
        """
        core = self._core
        with core.definitions.changing(), within_depth(DatalogError):
            return add_program(core, text) if dialect == POMORA else Rules(core, add_rules(core, text, dialect))

    def rules(self) -> list[Rules]:
        """The rules that hold, by the texts that they came in."""
        self._core.access.settle()
        return [Rules(self._core, ruleset) for ruleset in self._core.catalog.rules if ruleset.rules]

    def remove_rules(self, text: str, *, dialect: str = "souffle") -> None:
        """Remove rules, in one turn, whichever text they came in; a view that has no rule left is dropped."""
        with self._core.definitions.changing(), within_depth(DatalogError):
            remove_rules(self._core, living(self._core.catalog, program_of(text, dialect)))

    def content_ids(self, relation: str, rows: Any) -> list[str]:
        """The content ids of rows, there or not, as ``C := relation(…)`` of PomoLogic binds them."""
        with self._core.still:
            self._core.access.ready()
            return content_ids(self._core, relation, rows)

    # -- EDN

    def edn(
        self, text: str, name: str | None = None, *, args: Any = (), replace: bool = False, dialect: str = "datomic"
    ) -> Any:
        """Define an EDN query as a view if a name is given; else answer the query now, in the shape of its :find.

        ``args`` has a value for each of :in but ``$``; other databases may be among them. In the ``dialect`` symbols,
        variables have no question mark. A text that is a vector of facts and maps is transacted.
        """
        with within_depth(EdnError):
            said = edn.asked(self._core, text, args, dialect)
        with self._core.still, within_depth(EdnError):
            self._core.access.ready()
            self._core.access.require_open()
            return edn.run(self._core, said, name, replace=replace)

    def transact(self, facts: Any) -> Transacted:
        """Add and retract facts, as one tick: a text of EDN, or lists and dicts; see `everview.database.eav`."""
        with self._core.still, within_depth(EdnError):
            self._core.access.ready()
            self._core.access.require_open()
            return transact(self._core, read(facts) if isinstance(facts, str) else form_of(facts))

    # -- fluent queries

    def query(self, relation: str, alias: str | None = None) -> Query:
        """A query of a table or a view, to be built step by step; see `everview.frontends.fluent.query`."""
        self._core.access.settle()
        return query_of(self._core, relation, alias)

    # -- frames

    def frame(self, relation: str) -> DataFrame:
        """A table or a view under the methods of PySpark's DataFrame; see `everview.frontends.frame.frame`."""
        self._core.access.settle()
        return frame_of(self._core, relation)

    def define(self, name: str, frame: Any, *, replace: bool = False) -> View:
        """Keep a frame as a view, with ``replace`` in place of the one of that name."""
        return define_frame(self._core, name, frame, replace=replace)

    # -- definitions

    def create_table(
        self,
        name: str,
        columns: Any,
        *,
        key: str | tuple[str, ...] | list[str] = (),
        defaults: Mapping[str, Any] | None = None,
        if_not_exists: bool = False,
    ) -> None:
        """Create a table, with columns as in ``"id BIGINT, name STRING"``; with a ``key`` no two rows have the same.

        An Arrow table or a frame in place of the columns gives its columns and its rows; for other types, cast it
        first.
        """
        core = self._core
        with core.definitions.changing():
            if if_not_exists and name in core.catalog.tables:
                return
            schema, rows = columns_and_rows(name, columns)
            table = TableDefinition.of(name, schema, key, defaults)
            if rows is None:
                core.definitions.define_table(table)
            else:
                core.definitions.define_table(table, partial(encode_rows, table.schema, filled(table, rows)))

    def create_view(
        self,
        name: str,
        build: Build,
        *,
        replace: bool = False,
        if_not_exists: bool = False,
        materialized: bool = True,
    ) -> None:
        """Create a view that a function of streams makes: ``lambda of: of["orders"].distinct()``.

        The view holds its rows at once. A plain view, one that is not ``materialized``, is only a name for its
        definition. ``replace`` puts it in place of the view of that name, whose listeners are told the difference.
        """
        self._core.definitions.create_view(
            name, build, replace=replace, if_not_exists=if_not_exists, materialized=materialized
        )

    def drop(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drop a table or a view; with ``cascade`` also the views that read it. Their subscriptions end."""
        self._core.definitions.drop(name, if_exists=if_exists, cascade=cascade)

    def tables(self) -> list[str]:
        """The names of the tables."""
        self._core.access.settle()
        return [name for name, table in self._core.catalog.tables.items() if not table.internal]

    def views(self) -> list[str]:
        """The names of the views, plain ones included."""
        self._core.access.settle()
        catalog = self._core.catalog
        return [catalog.shown.get(name, name) for name in catalog.views if name not in catalog.guards]

    # -- changes

    def apply(self, changes: Mapping[str, Any], *, negative: bool = False) -> dict[str, Batch]:
        """Apply rows with weights as one tick, and return the change of every view.

        A change that would leave a table with two rows of one key is refused, and so is removing a row that is not
        there; with ``negative``, a table without a key may hold rows with negative weights.
        """
        return self._core.transactions.tick(lambda tx: tx.apply(changes, negative=negative))

    def advance(self, now: datetime | None = None) -> dict[str, Batch]:
        """Move the clock that views read as ``now()``, to a later moment or to the present; returns their changes.

        It is a tick, in which rows come and go because their time has. A moment without a time zone is in UTC.
        """
        return self._core.clock.advance(now)

    def late(self, table: str) -> Table:
        """The late rows of a table: they came after its watermark had passed them, and did not change it.

        Each has a column ``_change``: how often it was to come, negative if it was to go. They may be deleted.
        """
        name = self._core.catalog.find_table(table)
        if self._core.catalog.tables[name].watermark is None:
            raise DefinitionError(
                f"table {name} has no watermark, so no row is late",
                hint="write WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES in CREATE TABLE",
            )
        return self.table(late_of(name))

    def transaction(self) -> Block[Transaction]:
        """A with-block whose changes count together when it ends; an exception leaves no trace of them.

        Reads inside show the state before. A block inside another joins it: its changes count when the outer block
        ends, and should the inner one raise, only its own are undone.
        """
        return self._core.transactions.shown_block()

    def begin(self) -> None:
        """Begin a transaction of SQL, which ends with `commit` or `rollback`."""
        self._core.transactions.begin()

    def commit(self) -> None:
        """End a transaction of SQL: all its changes count now, as one tick."""
        self._core.transactions.commit()

    def rollback(self) -> None:
        """End a transaction of SQL: nothing of it counts."""
        self._core.transactions.rollback()

    # -- sources

    def attach(self, name: str, source: Any, *, keep: bool = True, resync: bool = False) -> None:
        """Attach a source: a table becomes its copy and follows it by `poll`; see `everview.database.attached`.

        Without ``keep`` there is no copy, and fluent queries pull from the source. With ``resync`` a source that has
        lost its position is compared with the table, row by row.
        """
        self._core.attached.attach(name, source, keep=keep, resync=resync)

    def poll(self, *names: str, limit: int | None = None) -> dict[str, Batch]:
        """Take in, as one tick, what has changed in attached sources, all or some; returns the change of every view."""
        return self._core.attached.poll(names, limit)

    def run(self, *, every: float = 1.0, longest: float = 60.0, limit: int | None = None) -> Runner:
        """Poll all attached sources in the background, each every so many seconds, until this is stopped or closed.

        A source that fails is tried again after pauses that double up to the ``longest``, while the others go on. What
        this returns tells the lag and the errors of each source; `Runner.stop` stops it.
        """
        with self._core.still:
            self._core.access.ready()
            self._core.access.require_open()
            if self._core.runner is not None and self._core.runner.running:
                raise DefinitionError("the database is running already", hint="stop that one first")
            runner = self._core.runner = Runner(self._core, every, longest, limit)
            runner.start()
        return runner

    def detach(self, name: str) -> None:
        """Detach and close a source; the table fed by it stays unchanged until the source is attached again."""
        self._core.attached.detach(name)

    @property
    def sources(self) -> Mapping[str, Source]:
        """The sources that are attached and not kept, by name."""
        self._core.access.settle()
        return self._core.attached.sources

    # -- reading

    def view(self, name: str) -> View:
        """A materialized view."""
        self._core.access.settle()
        name = self._core.catalog.find_materialized(name)
        view = self._core.catalog.views[name]
        return edn.EdnView(self._core, name, edn.query_of(view)) if view.dialect == EDN else View(self._core, name)

    def table(self, name: str) -> Table:
        """A table."""
        self._core.access.settle()
        return Table(self._core, self._core.catalog.find_table(name))

    def explain(self, name: str, *, profile: bool = False) -> str:
        """A view's plan and circuit, with the steps, rows put out and rows held of each node so far, and how it runs.

        With ``profile``, the time of every node is taken from now on, until it is explained without; that slows down
        small ticks, in which nodes run within one compiled call otherwise.
        """
        return explain_view(self._core, name, profile=profile)

    def verify(self, name: str | None = None) -> Verdict:
        """Compute a view, or all of them, from scratch by the oracle, and compare with what the view holds."""
        return verified(self._core, name)

    def why(self, view: str, row: Any, *, rows: int = 20, seconds: float = 10.0) -> Why:
        """Why a view has a row: a tree of plan nodes down to rows of tables, read from what is kept.

        Below each node at most so many ``rows`` are shown, and how many more there are.
        """
        return why(self._core, view, row, rows=rows, seconds=seconds)

    def why_not(self, view: str, row: Any, *, rows: int = 20, seconds: float = 10.0) -> Why:
        """Why a view has no such row: the first condition that fails, and the rows that come nearest."""
        return why_not(self._core, view, row, rows=rows, seconds=seconds)

    # -- the state

    @property
    def epoch(self) -> int:
        """The number of changes of rows and of definitions so far."""
        self._core.access.settle()
        return self._core.run.epoch

    @property
    def read_only(self) -> bool:
        """Whether another process writes, and this one only reads."""
        return self._core.access.read_only

    def refresh(self) -> dict[str, Batch]:
        """Move a database that only reads to the last epoch that the writer has committed.

        Gives the change of every view that differs, and tells listeners; nothing if it is there already.
        """
        if self._core.follower is None:
            raise StoreError("the database follows no writer", hint="open it with connect(path, read_only=True)")
        return self._core.follower.refresh(self._core)

    def metrics(self) -> DatabaseMetrics:
        """Rows, bytes and changes so far, as numbers; as text, in Prometheus' format."""
        return metrics_of(self._core)

    def observe(self, observer: TickObserver | None) -> None:
        """Call ``observer(report)`` after every tick, also one that failed; None ends that.

        `everview.observe.TickSpans` makes spans of OpenTelemetry of reports, `everview.observe.TickLogs` lines of JSON.
        """
        self._core.transactions.observer = observer

    def checkpoint(self) -> None:
        """Make all ticks so far durable."""
        self._core.saving.checkpoint()

    def vacuum(self, keep_epochs: int = 1) -> None:
        """Let go of interned values that no row has any more, and of stored epochs before the last few."""
        self._core.saving.vacuum(keep_epochs)

    def close(self) -> None:
        """Make all ticks so far durable, and release the state directory for others."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        catalog = self._core.catalog
        views = len(catalog.views) - len(catalog.guards)
        return f"<database: {len(self.tables())} tables, {views} views, epoch {self.epoch}>"

    def _repr_html_(self) -> str:
        with self._core.still:
            self._core.access.ready()
            return overview(self._core)
