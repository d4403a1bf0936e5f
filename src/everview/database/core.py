"""The core of a database: tables and views in one circuit, definitions that change and ticks, each all or nothing.

Every change of tables is a tick, atomic over all of them and over all views. Every change of definitions gives
another circuit, which takes over the traces that both have. One thread at a time: others wait.

An exception may come at any moment, of a signal handler or for lack of memory. Whatever it cuts short is undone, or
completed if it counts already, by the next who comes, before anything else: `ready` sees to that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Timer, current_thread
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.blocks import Block, Busy
from everview.circuit.circuit import Circuit
from everview.circuit.program import Program
from everview.codes import decode, encode_rows
from everview.codes.dictionary import Dictionary
from everview.database.attached import Attached
from everview.database.carried import Carried
from everview.database.catalog import Assembled, Catalog
from everview.database.definitions import (
    Build,
    TableDefinition,
    ViewDefinition,
    check_name,
    columns_and_rows,
    find_name,
)
from everview.database.known import read_again
from everview.database.listeners import Listeners
from everview.database.shown import as_changes
from everview.database.tentative import Tentative
from everview.database.transaction import Inner, Transaction, filled
from everview.doors import doors, inside
from everview.errors import EverviewError, StoreError, TransactionError
from everview.lowering.lower import lower
from everview.optimize import optimize
from everview.plan.node import Plan
from everview.plan.nodes import scans
from everview.plan.timed import check_timeless
from everview.process import forks, require_same
from everview.runtimes.embedded import Embedded
from everview.runtimes.embedded.once import answer
from everview.runtimes.embedded.relation import Relation
from everview.runtimes.embedded.runtime import FirstRows
from everview.runtimes.embedded.state import State
from everview.runtimes.embedded.tick import Cells
from everview.types import Schema, unknown_name
from everview.views import Subscription, Turns
from everview.views.feed import Together
from everview.views.subscription import Ended, Listener
from everview.zset.batch import Batch

Matrix = NDArray[np.int64]
log = logging.getLogger("everview.database")
PATIENCE = 0.05  # seconds after which one who waits for a transaction looks whether it can still end
DESCRIPTION = "database"  # what a state directory says of its definitions, by this name


@doors()
class Core:
    """What a database is, whatever it is asked in; see `everview.database.database.Database`."""

    def __init__(self, run: Embedded, catalog: Catalog, assembled: Assembled, *, every: float = 0.0) -> None:
        self.run = run
        self.catalog = catalog
        self._assembled = assembled
        self.relations: dict[str, Relation] = {}
        self._lock = Turns()
        self._every = every
        self._timer: Timer | None = None
        self._made = forks()
        self._open: Transaction | None = None
        self._listeners = Listeners()
        self._dropped = False  # whether who listens to views that are gone has yet to be told so
        self._closed = self._ended = False
        self.tentative: Tentative | None = None  # definitions that count only if what follows them does
        self._amending: Busy | None = None
        self._take_relations()
        self._carried = Carried(self)
        self.attached = Attached(self)

    # -- definitions

    def define_table(
        self, table: TableDefinition, rows: Callable[[Dictionary], Matrix] | None = None, *, replace: bool = False
    ) -> None:
        """A table by its definition; with ``replace`` in place of the one of that name, which nobody may read.

        Its first ``rows`` are given as words of the database's dictionary. They and the definition are one act: should
        the rows not fit, or the process end, all is as it was before.
        """
        with self.defining():
            known = replace and table.name in self.catalog.tables
            without = self.catalog.without(table.name) if known else self.catalog
            wanted = without.with_table(table)
            first = None if rows is None else partial(self._first_rows, wanted, table.name, rows)
            # No trace of the old one is taken for the new one's.
            self._turn(wanted, keeping=without if known else None, first=first)

    def _first_rows(
        self, catalog: Catalog, name: str, rows: Callable[[Dictionary], Matrix], program: Program, state: State
    ) -> Cells:
        """The rows of a new table, checked as every change is, where they arrive in a program."""
        relation = Relation.of(program, name, catalog.keys[name], self.run.dictionary)
        pending = relation.add(rows(self.run.dictionary), state, relation.nothing())
        return [{relation.source: relation.delta(part)} if len(part) else {} for part in pending]

    def create_table(
        self,
        name: str,
        columns: Any,
        *,
        key: str | tuple[str, ...] | list[str] = (),
        defaults: Mapping[str, Any] | None = None,
        if_not_exists: bool = False,
    ) -> None:
        """A new table, with columns as in ``"id BIGINT, name STRING"``; with a ``key`` no two rows have the same.

        A table or frame in place of the columns gives its own, and its rows; columns of other types are cast there.
        """
        with self.defining():
            if if_not_exists and name in self.catalog.tables:
                return
            schema, rows = columns_and_rows(name, columns)
            table = TableDefinition.of(name, schema, key, defaults)
            if rows is None:
                self.define_table(table)
            else:
                self.define_table(table, partial(encode_rows, table.schema, filled(table, rows)))

    def create_view(
        self,
        name: str,
        build: Build,
        *,
        replace: bool = False,
        if_not_exists: bool = False,
        materialized: bool = True,
    ) -> None:
        """A view that a function of streams makes: ``lambda of: of["orders"].distinct()``.

        It holds at once what the tables say. A plain view, one that is not ``materialized``, is only a name for its
        definition. ``replace`` puts it in place of the view of that name; who listens to that is told the difference.
        """
        with self.defining():
            if if_not_exists and name in self.catalog.views:
                return
            self.define(self.catalog.view(name, build, materialized=materialized), replace=replace)

    def define(self, view: ViewDefinition, *, replace: bool = False) -> None:
        """A view by its definition; see `create_view`."""
        with self.defining():
            check_name("view", view.name)
            known = self.catalog.views.get(view.name)
            if known is None or not replace:
                self._turn(self.catalog.with_view(view))
                return
            changed = self._read_anew(self.catalog.with_other(view), view.name)
            self.redefine(changed, [view.name, *changed.readers(view.name)])

    def drop(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drop a table or a view; with ``cascade`` also the views that read it. Who listens is told no more."""
        with self.defining():
            if if_exists and name not in self.catalog.relations:
                return
            name = find_name("table or view", name, self.catalog.relations)
            self._turn(self.catalog.without(name, cascade=cascade))

    def tables(self) -> list[str]:
        """The names of the tables."""
        self.settle()
        return [name for name, table in self.catalog.tables.items() if not table.carries]

    def views(self) -> list[str]:
        """The names of the views, plain ones included."""
        self.settle()
        return [self.catalog.shown.get(name, name) for name in self.catalog.views]

    # -- changes

    def apply(self, changes: Mapping[str, Any], *, negative: bool = False) -> dict[str, Batch]:
        """One tick of rows with weights; returns the change of every view.

        What would leave a table with two rows of one key is refused, and what removes a row that is not there; with
        ``negative``, a table without a key may owe rows.
        """
        return self.tick(lambda tx: tx.apply(changes, negative=negative))

    def tick(self, change: Callable[[Transaction], None], done: Callable[[], None] = lambda: None) -> dict[str, Batch]:
        """One tick of what a function changes; ``done`` is called once it counts, before who listens is told."""
        with self._lock.writing():
            self.ready_to_write()
            if self._open is not None:
                raise TransactionError("apply is a tick of its own", hint="inside a transaction use tx.apply")
            try:
                with Opened(self) as tx:
                    change(tx)
                    tx.outside.stage()
                    self._commit(tx)
                    tx.outside.commit()
                done()
            finally:  # should a source refuse after the tick, the tick counts
                self.tell()
            return tx.changes

    def transaction(self) -> Block[Transaction]:
        """Changes that count together, when the block ends; an exception leaves no trace of them.

        Reads inside show the state before. One inside another joins it: its changes count when the outer ends, and
        should it raise, only its own are undone.
        """
        return InBlock(self)

    def begin(self) -> None:
        """Begin a transaction of SQL, which ends with `commit` or `rollback`."""
        with self._lock.writing():
            self.ready_to_write()
            self.require_open()
            if self._open is not None:
                raise TransactionError("a transaction is open already", hint="COMMIT or ROLLBACK it first")
            self._open = Transaction(self)

    def commit(self) -> None:
        """End a transaction of SQL: all its changes count now, as one tick."""
        with self._lock:
            tx = self._begun_by_sql()
            try:
                self.end_transaction(tx, None)
            finally:
                self.tell()

    def rollback(self) -> None:
        """End a transaction of SQL: nothing of it counts."""
        with self._lock:
            self.undo(self._begun_by_sql())

    def _begun_by_sql(self) -> Transaction:
        self.ready()
        if self._open is None or self._open.block is not None:
            raise TransactionError("no transaction has begun", hint="write BEGIN first")
        return self._open

    # -- reading

    def contents_of(self, name: str) -> Batch:
        """What a table or a materialized view holds, each row with its weight."""
        with self._lock:
            self.ready()
            return self._contents(name)

    def _contents(self, name: str) -> Batch:
        if name in self.relations:
            return as_changes(self.relations[name].rows(self.run.state))
        if name in self.run.views:
            return as_changes(self.run.views[name].held())
        raise unknown_name("relation", name, [*self.relations, *self.run.views])

    def contents_now(self, name: str) -> Batch:
        """What a relation holds; a table with what the open transaction has changed so far."""
        if self._open is not None and name in self.relations:
            return self._open.contents(self.relations[name])
        return self.contents_of(name)

    def schema_of(self, name: str) -> Schema:
        """The columns of a relation."""
        self.settle()
        if name not in self.catalog.relations:
            raise unknown_name("relation", name, self.catalog.relations)
        return self.catalog.relations[name].schema

    def answer(self, plan: Plan) -> Batch:
        """The rows of a plan, now. It holds words that are forgotten: see `answered`."""
        better, circuit = optimize(plan), Circuit()
        given = {name: self.contents_now(name) for name in scans(better)}
        streams = {name: circuit.source(name, rows.schema) for name, rows in given.items()}
        lower(better, streams, circuit).under(plan.schema).sink("answer", keep=False)
        return answer(circuit, given, self.run.dictionary, self.run.bounds)["answer"]

    def answered(self, plan: Plan) -> tuple[pa.Table, NDArray[np.int64]]:
        """The rows of a plan, now, and their weights; nothing of it stays in the database."""
        with self._lock:
            self.ready()
            self.require_open()
            mark = self.run.dictionary.mark()
            try:
                found = self.answer(plan)
                return decode(found.schema, found.rows[:, :-1], found.dictionary), found.weights
            finally:
                self.run.dictionary.rollback(mark)

    def subscribe(
        self, name: str, listener: Listener, *, snapshot: bool = False, ended: Ended | None = None
    ) -> Subscription:
        """See `View.subscribe`."""
        with self._lock:
            self.ready()
            self.require_open()
            found = self._listeners.add(name, listener, self.run.epoch, ended)
            return self._begun(found, lambda: self.contents_of(name), snapshot)

    def subscribe_all(
        self, names: Collection[str], listener: Together, *, snapshot: bool = False, ended: Ended | None = None
    ) -> Subscription:
        """Call ``listener({view: changes}, epoch)`` once after every tick that changed any of some views."""
        with self._lock:
            self.ready()
            self.require_open()
            found = self._listeners.add_group(names, listener, self.run.epoch, ended)
            return self._begun(found, lambda: {name: self.contents_of(name) for name in names}, snapshot)

    def _begun(self, found: Subscription, contents: Callable[[], Any], snapshot: bool) -> Subscription:
        try:
            held = contents()  # refused if it is not there
            if snapshot:
                found.listener(held, self.run.epoch)
        except BaseException:
            found.close()
            raise
        return found

    # -- the state

    @property
    def epoch(self) -> int:
        """How many changes of rows and of definitions there have been."""
        self.settle()
        return self.run.epoch

    @property
    def still(self) -> Turns:
        """Who holds it, for that nothing changes meanwhile."""
        return self._lock

    def checkpoint(self) -> None:
        """Make durable what is not yet."""
        with self._lock:
            self.ready()
            self.require_open()
            self.run.save()

    def vacuum(self, keep_epochs: int = 1) -> None:
        """Let go of interned values that no row has any more, and of stored epochs before the last few."""
        with self._lock:
            self.ready()
            self.require_open()
            if self._open is not None:
                raise TransactionError("a transaction is open", hint="vacuum when it has ended")
            self.run.vacuum(keep_epochs)

    def close(self) -> None:
        """Make durable what is not yet, and let the next one open the state directory."""
        with self._lock:
            self.ready()
            if self._open is not None:
                raise TransactionError("a transaction is open", hint="close when it has ended")
            if self._ended:
                return
            if self._timer is not None:
                self._timer.cancel()
            self._closed = True
            with ExitStack() as closing:  # all of it, whatever one of them says
                closing.callback(self._listeners.tell)
                closing.callback(self.attached.close)
                closing.callback(self.run.close)
                self._listeners.end_all_but(())
            self._ended = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- inside: definitions

    @contextmanager
    def defining(self) -> Generator[None]:
        """Within this definitions change; not inside a transaction."""
        with self._lock.writing():
            self.ready_to_write()
            self.require_open()
            if self._open is not None:
                raise TransactionError(
                    "definitions do not change inside a transaction", hint="define tables and views before or after it"
                )
            yield
            self._tell_of_ends()
            self._listeners.tell()

    def redefine(self, catalog: Catalog, anew: Collection[str]) -> None:
        """Go on with other definitions; who listens to views that are made anew is told how they differ."""
        before = {name: held for name in anew if (held := self._held(name)) is not None}
        self._turn(catalog, anew, before=before)

    def _turn(
        self,
        catalog: Catalog,
        anew: Collection[str] = (),
        *,
        before: Mapping[str, Batch] | None = None,
        keeping: Catalog | None = None,
        first: FirstRows | None = None,
    ) -> None:
        """Go on with other definitions: all of it, or nothing.

        Who listens to views that held some rows ``before`` is told how they differ. Of traces those are taken over that
        the catalog ``keeping`` has, too, if it is given. ``first`` gives the rows of new tables.
        """
        self.attached.require_apart(catalog)
        self._check_timeless(catalog)
        known = self._assembled if keeping is None else Assembled.of(keeping, self._assembled)
        assembled = Assembled.of(catalog, known, anew)
        kept = None if keeping is None else (known.circuit, keeping.keys)

        def turned() -> None:
            self.catalog, self._assembled = catalog, assembled
            self._take_relations()
            self._carried = Carried(self)
            self._dropped = True
            self._note_differences(before or {})

        says = {DESCRIPTION: catalog.to_json()}
        self.run.turn(assembled.circuit, tables=catalog.keys, says=says, keeping=kept, first=first, done=turned)
        self._tell_of_ends()

    def _tell_of_ends(self) -> None:
        """Tell who listens to views that are gone."""
        if self._dropped:
            self._listeners.end_all_but(self.run.views)
            self._dropped = False

    def _check_timeless(self, catalog: Catalog) -> None:
        """Refuse new views that are kept and read the current time."""
        for name, view in catalog.views.items():
            if view.materialized and self.catalog.views.get(name) is not view:
                for plan in catalog.plans(view):
                    check_timeless(name, plan)

    def _take_relations(self) -> None:
        self.relations = {
            name: Relation.of(self.run.program, name, table, self.run.dictionary)
            for name, table in self.catalog.keys.items()
        }

    def _read_anew(self, catalog: Catalog, name: str) -> Catalog:
        """The catalog with the definitions of a relation's readers read again, as its columns may be others now."""
        for reader in catalog.readers(name):
            view = catalog.views[reader]
            catalog = catalog.with_other(self._defined_anew(catalog, view))
        return catalog

    def _defined_anew(self, catalog: Catalog, view: ViewDefinition) -> ViewDefinition:
        if view.text is not None:
            return read_again(catalog, view.name, view.text, view.dialect)
        return catalog.view(view.name, view.build, materialized=view.materialized)

    def _held(self, name: str) -> Batch | None:
        return self._contents(name) if name in self.run.views and self._listeners.has(name) else None

    def _note_differences(self, before: Mapping[str, Batch]) -> None:
        """Tell who listens how views differ; to one that held rows of other columns, nobody listens any more."""
        changes: dict[str, Batch] = {}
        for name, held in before.items():
            after = self._contents(name)
            if not len(held):
                changes[name] = after
            elif after.schema != held.schema:
                self._listeners.end(name)
            else:
                changes[name] = after - held
        if changes:
            self._listeners.note(self.run.epoch, changes)

    # -- inside: transactions

    def ready(self) -> None:
        """See to it, with the lock held, that nothing is left half done, and that no other thread has a transaction."""
        if self._made != forks():
            self.require_here()
        self.run.recover()
        if self._open is not None:
            self._pass_open()
        if self.tentative is not None and not self.tentative.alive:
            self._amend(self.tentative)

    def ready_to_write(self) -> None:
        """`ready`, and every queue of changes that writers wait for has room; one that writes may go on writing."""
        self.ready()
        while self._open is None and self._lock.waited():
            self.ready()

    def settle(self) -> None:
        """See to it that nothing is left half done, whoever has a transaction."""
        with self._lock:
            require_same(self._made, "the database")
            self.run.recover()

    def _pass_open(self) -> None:
        """Go on beside an open transaction: end it if nobody else can, and wait for it if it is another thread's."""
        while (tx := self._open) is not None:
            if not tx.alive:
                self.undo(tx)
            elif tx.thread is current_thread():
                return
            else:
                self._lock.over.wait(PATIENCE)

    def _amend(self, tentative: Tentative) -> None:
        if self._amending is not None and self._amending.alive:
            return
        busy = Busy()
        with busy:
            self._amending = busy
            tentative.settle()

    @inside
    def begin_transaction(self, block: Block[Transaction]) -> Transaction:
        """A transaction that a with-statement ends."""
        self.require_open()
        tx = Transaction(self)
        tx.block = block
        self._open = tx
        return tx

    @inside
    def end_transaction(self, tx: Transaction, error: BaseException | None) -> None:
        """A transaction counts now, as one tick, or not at all."""
        try:
            if error is None:
                self._commit_changes(tx)
        finally:
            self.undo(tx)

    @inside
    def undo(self, tx: Transaction) -> None:
        """End a transaction: what does not count by now never will. It may be repeated."""
        self.run.recover()
        if not tx.counts:
            self.run.rollback(tx.mark)
        tx.outside.end()
        tx.closed = True
        self._open = None
        self._lock.over.notify_all()

    def _commit_changes(self, tx: Transaction) -> None:
        """A transaction that changes nothing is no tick, and leaves nothing."""
        tx.outside.stage()
        if tx.changed:
            self._commit(tx)
        tx.outside.commit()

    def tell(self) -> None:
        """Tell who listens, to views here and over sources that are not kept."""
        try:
            self._listeners.tell()
        finally:
            self.attached.pipeline.tell()

    def _commit(self, tx: Transaction) -> None:
        self._carried.hand_to(tx)
        self.run.advance(tx.cells(), tx.mark, tx.offsets, partial(self._counted, tx))
        if self._every:
            self._save_later()

    def _counted(self, tx: Transaction, outputs: Mapping[str, Batch]) -> None:
        """The tick of a transaction has happened: note all that follows from that. It may be repeated."""
        outputs = {name: as_changes(found) for name, found in outputs.items()}
        self._carried.note(outputs)
        self._listeners.note(self.run.epoch, outputs)
        shown = self.catalog.shown
        tx.changes = {shown.get(name, name): found for name, found in outputs.items()} if shown else outputs
        if self.tentative is not None:
            self.tentative.counts = True
        tx.counts = True

    @property
    def open_transaction(self) -> Transaction | None:
        """The transaction under way, if there is one."""
        return self._open

    def require_here(self) -> None:
        """Refuse a process that was forked from the one that connected."""
        require_same(self._made, "the database")

    def require_open(self) -> None:
        """Refuse what comes after the end."""
        if self._closed:
            raise StoreError("the database is closed", hint="connect again")

    # -- inside: durability

    def _save_later(self) -> None:
        """Commit what waits within the time that is set, also if nothing more happens."""
        if self._timer is not None or self._every == float("inf"):
            return
        self._timer = Timer(self._every, self._save_now)
        self._timer.daemon = True
        self._timer.start()

    def _save_now(self) -> None:
        with self._lock:
            self.ready()
            self._timer = None
            if self._closed:
                return
            try:
                self.run.save()
            except EverviewError as error:
                # The next tick tries again, and says so to whoever makes it.
                log.warning("%s", error)


class Opened(Block[Transaction]):
    """A transaction as long as its block lasts; whoever opens it holds the lock, and commits it."""

    def __init__(self, database: Core) -> None:
        self._database = database

    def begin(self) -> Transaction:
        """Begin it."""
        self._tx = self._database.begin_transaction(self)
        return self._tx

    def end(self, error: BaseException | None) -> None:
        """What does not count by now never will."""
        self._database.undo(self._tx)


class InBlock(Block[Transaction]):
    """``with db.transaction()``: one that counts at its end, or joins the one that is open.

    The lock is not held in between: other threads wait because there is an open transaction.
    """

    def __init__(self, database: Core) -> None:
        self._database = database
        self._inner: Inner | None = None

    def begin(self) -> Transaction:
        """Begin it, when all others have ended."""
        database = self._database
        with database.still.writing():
            database.ready_to_write()
            outer = database.open_transaction
            if outer is None:
                self._tx = database.begin_transaction(self)
                return self._tx
            self._inner = Inner(outer, self)
            return self._inner.begin()

    def end(self, error: BaseException | None) -> None:
        """End it."""
        database = self._database
        with database.still:
            database.require_here()
            if self._inner is not None:
                self._inner.end(error)
                return
            try:
                database.end_transaction(self._tx, error)
            finally:
                database.tell()
