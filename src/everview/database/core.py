"""The core of a database: tables and views in one circuit, definitions that change and ticks, each all or nothing.

Every change of tables is a tick, atomic over all of them and over all views. Every change of definitions gives
another circuit, which takes over the traces that both have. One thread at a time: others wait.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import ExitStack, contextmanager
from threading import Timer, get_ident
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.circuit.circuit import Circuit
from everview.codes import decode
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
from everview.database.transaction import Transaction
from everview.doors import doors
from everview.errors import EverviewError, StoreError, TransactionError
from everview.optimize import optimize
from everview.plan.lower import lower
from everview.plan.node import Plan
from everview.plan.nodes import scans
from everview.runtimes.embedded import Embedded
from everview.runtimes.embedded.once import answer
from everview.runtimes.embedded.relation import Relation
from everview.types import Schema, unknown_name
from everview.views import Subscription, Turns
from everview.views.feed import Together
from everview.views.subscription import Ended, Listener
from everview.zset.batch import Batch

log = logging.getLogger("everview.database")
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
        self._open: Transaction | None = None
        self._owner: int | None = None
        self._listeners = Listeners()
        self._closed = False
        self._by_sql = False  # whether the open transaction ends by `commit` or `rollback`
        self._take_relations()
        self._carried = Carried(self)
        self.attached = Attached(self)

    # -- definitions

    def define_table(self, table: TableDefinition, *, replace: bool = False) -> None:
        """A table by its definition; with ``replace`` in place of the one of that name, which nobody may read."""
        with self.defining():
            known = replace and table.name in self.catalog.tables
            without = self.catalog.without(table.name) if known else self.catalog
            wanted = without.with_table(table)  # refused, if it is, while everything is as it was
            if known:
                self._turn(without)  # so that no trace of the old one is taken for the new one's
            self._turn(wanted)

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
            self.define_table(TableDefinition.of(name, schema, key, defaults))
        if rows is not None:
            self._fill(name, rows)

    def _fill(self, name: str, rows: pa.Table) -> None:
        """Put the first rows into a new table; should they not fit, the table is not there."""
        try:
            with self.transaction() as tx:
                tx.insert(name, rows)
        except BaseException:
            self.drop(name)
            raise

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
        return [name for name, table in self.catalog.tables.items() if not table.carries]

    def views(self) -> list[str]:
        """The names of the views, plain ones included."""
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
            if self._open is not None:
                raise TransactionError("apply is a tick of its own", hint="inside a transaction use tx.apply")
            try:
                with self._transaction() as tx:
                    change(tx)
                    tx.outside.stage()
                    outputs = self._commit(tx)
                    tx.mark = self.run.dictionary.mark()  # what comes now undoes nothing of the tick
                    tx.outside.commit()
                done()
            finally:  # should a source refuse after the tick, the tick counts
                self._tell()
            return outputs

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Changes that count together, when the block ends; an exception leaves no trace of them.

        Reads inside show the state before. One inside another joins it: its changes count when the outer ends, and
        should it raise, only its own are undone.
        """
        with self._lock.writing():
            if self._open is not None:
                with self._inner(self._open) as tx:
                    yield tx
                return
            try:
                with self._transaction() as tx:
                    yield tx
                    self._commit_changes(tx)
            finally:  # should a source refuse after the tick, the tick counts
                self._tell()

    def begin(self) -> None:
        """Begin a transaction of SQL, which ends with `commit` or `rollback`."""
        with self._lock.writing():
            self.require_open()
            if self._open is not None:
                raise TransactionError("a transaction is open already", hint="COMMIT or ROLLBACK it first")
            self._lock.acquire()  # it is this thread's until it ends
            self._begin()
            self._by_sql = True

    def commit(self) -> None:
        """End a transaction of SQL: all its changes count now, as one tick."""
        with self._lock:
            try:
                with self._ending() as tx:
                    self._commit_changes(tx)
            finally:
                self._tell()

    def rollback(self) -> None:
        """End a transaction of SQL: nothing of it counts."""
        with self._ending() as tx:
            self.run.dictionary.rollback(tx.mark)

    @contextmanager
    def _ending(self) -> Generator[Transaction]:
        with self._lock:
            if self._open is None or not self._by_sql:
                raise TransactionError("no transaction has begun", hint="write BEGIN first")
            tx = self._open
            try:
                yield tx
            except BaseException:
                self.run.dictionary.rollback(tx.mark)
                raise
            finally:
                self._by_sql = False
                self._end(tx)
                self._lock.release()

    # -- reading

    def contents_of(self, name: str) -> Batch:
        """What a table or a materialized view holds, each row with its weight."""
        with self._lock:
            if name in self.relations:
                return as_changes(self.relations[name].rows(self.run.state))
            if name in self.run.views:
                return as_changes(self.run.views[name].contents())
            raise unknown_name("relation", name, [*self.relations, *self.run.views])

    def contents_now(self, name: str) -> Batch:
        """What a relation holds; a table with what the open transaction has changed so far."""
        if self._open is not None and name in self.relations:
            return self._open.contents(self.relations[name])
        return self.contents_of(name)

    def schema_of(self, name: str) -> Schema:
        """The columns of a relation."""
        if name not in self.catalog.relations:
            raise unknown_name("relation", name, self.catalog.relations)
        return self.catalog.relations[name].schema

    def answer(self, plan: Plan) -> Batch:
        """The rows of a plan, now. It holds words that are forgotten: see `answered`."""
        better, circuit = optimize(plan), Circuit()
        given = {name: self.contents_now(name) for name in scans(better)}
        streams = {name: circuit.source(name, rows.schema) for name, rows in given.items()}
        lower(better, streams, circuit).under(plan.schema).sink("answer", keep=False)
        return answer(circuit, given, self.run.dictionary)["answer"]

    def answered(self, plan: Plan) -> tuple[pa.Table, NDArray[np.int64]]:
        """The rows of a plan, now, and their weights; nothing of it stays in the database."""
        with self._lock:
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
            self.require_open()
            found = self._listeners.add(name, listener, self.run.epoch, ended)
            return self._begun(found, lambda: self.contents_of(name), snapshot)

    def subscribe_all(
        self, names: Collection[str], listener: Together, *, snapshot: bool = False, ended: Ended | None = None
    ) -> Subscription:
        """Call ``listener({view: changes}, epoch)`` once after every tick that changed any of some views."""
        with self._lock:
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
        return self.run.epoch

    @property
    def still(self) -> Turns:
        """Who holds it, for that nothing changes meanwhile."""
        return self._lock

    def checkpoint(self) -> None:
        """Make durable what is not yet."""
        with self._lock:
            self.require_open()
            self.run.save()

    def vacuum(self, keep_epochs: int = 1) -> None:
        """Let go of interned values that no row has any more, and of stored epochs before the last few."""
        with self._lock:
            self.require_open()
            if self._open is not None:
                raise TransactionError("a transaction is open", hint="vacuum when it has ended")
            self.run.vacuum(keep_epochs)

    def close(self) -> None:
        """Make durable what is not yet, and let the next one open the state directory."""
        with self._lock:
            if self._open is not None:
                raise TransactionError("a transaction is open", hint="close when it has ended")
            if self._closed:
                return
            if self._timer is not None:
                self._timer.cancel()
            self._closed = True
            with ExitStack() as closing:  # all of it, whatever one of them says
                closing.callback(self._listeners.tell)
                closing.callback(self.attached.close)
                closing.callback(self.run.close)
                self._listeners.end_all_but(())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- inside: definitions

    @contextmanager
    def defining(self) -> Generator[None]:
        """Within this definitions change; not inside a transaction."""
        with self._lock.writing():
            self.require_open()
            if self._open is not None:
                raise TransactionError(
                    "definitions do not change inside a transaction", hint="define tables and views before or after it"
                )
            yield
            self._listeners.tell()

    def redefine(self, catalog: Catalog, anew: Collection[str]) -> None:
        """Go on with other definitions; who listens to views that are made anew is told how they differ."""
        before = {name: held for name in anew if (held := self._held(name)) is not None}
        self._turn(catalog, anew)
        self._tell_differences(before)

    def _turn(self, catalog: Catalog, anew: Collection[str] = ()) -> None:
        """Go on with other definitions: all of it, or nothing."""
        self.attached.require_apart(catalog)
        assembled = Assembled.of(catalog, self._assembled, anew)
        self.run.turn(assembled.circuit, tables=catalog.keys, says={DESCRIPTION: catalog.to_json()})
        self.catalog, self._assembled = catalog, assembled
        self._take_relations()
        self._carried = Carried(self)
        self._listeners.end_all_but(self.run.views)

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
        return self.contents_of(name) if name in self.run.views and self._listeners.has(name) else None

    def _tell_differences(self, before: Mapping[str, Batch]) -> None:
        """Tell who listens how views differ; to one that held rows of other columns, nobody listens any more."""
        changes: dict[str, Batch] = {}
        for name, held in before.items():
            after = self.contents_of(name)
            if not len(held):
                changes[name] = after
            elif after.schema != held.schema:
                self._listeners.end(name)
            else:
                changes[name] = after - held
        if changes:
            self._listeners.note(self.run.epoch, changes)

    # -- inside: transactions

    @contextmanager
    def _transaction(self) -> Generator[Transaction]:
        self.require_open()
        tx = self._begin()
        try:
            yield tx
        except BaseException:
            self.run.dictionary.rollback(tx.mark)
            raise
        finally:
            self._end(tx)

    def _begin(self) -> Transaction:
        self._open, self._owner = Transaction(self), get_ident()
        return self._open

    def _end(self, tx: Transaction) -> None:
        tx.closed = True
        self._open = self._owner = None
        tx.outside.end()

    @contextmanager
    def _inner(self, tx: Transaction) -> Generator[Transaction]:
        savepoint, mark = tx.savepoint(), self.run.dictionary.mark()
        try:
            yield tx
        except BaseException:
            tx.back_to(savepoint)
            self.run.dictionary.rollback(mark)
            raise

    def _commit_changes(self, tx: Transaction) -> None:
        """A transaction that changes nothing is no tick, and leaves nothing."""
        tx.outside.stage()
        if tx.changed:
            tx.changes = self._commit(tx)
            tx.mark = self.run.dictionary.mark()  # what comes now undoes nothing of the tick
        else:
            self.run.dictionary.rollback(tx.mark)
        tx.outside.commit()

    def _tell(self) -> None:
        """Tell who listens, to views here and over sources that are not kept."""
        try:
            self._listeners.tell()
        finally:
            self.attached.pipeline.tell()

    def _commit(self, tx: Transaction) -> dict[str, Batch]:
        self._carried.hand_to(tx)
        outputs = {name: as_changes(found) for name, found in self.run.advance(tx.cells(), tx.mark, tx.offsets).items()}
        self._carried.note(outputs)
        if self._every:
            self._save_later()
        self._listeners.note(self.run.epoch, outputs)
        shown = self.catalog.shown
        return {shown.get(name, name): found for name, found in outputs.items()} if shown else outputs

    def require_owner(self) -> None:
        """Refuse a transaction's commands in another thread than its own."""
        if self._owner != get_ident():
            raise TransactionError("the transaction is another thread's", hint="begin one in this thread")

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
            self._timer = None
            if self._closed:
                return
            try:
                self.run.save()
            except EverviewError as error:
                # The next tick tries again, and says so to whoever makes it.
                log.warning("%s", error)
