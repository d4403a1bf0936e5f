"""The transactions of a database: how they begin, and how they come to count, each as one tick.

Every change of tables is a tick, atomic over all of them and over all views. One transaction at a time: other threads
wait until it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from everview.blocks import Block
from everview.database.transaction import Inner, OpenTransaction
from everview.doors import doors, inside
from everview.errors import TransactionError
from everview.later import Later
from everview.plan.timed import is_companion
from everview.zset.batch import Batch
from everview.zset.shown import as_changes, has_moments

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.database.observing import observed
    from everview.database.watermarks import judge
    from everview.observe import TickObserver
else:
    observed = Later("everview.database.observing", "observed")
    judge = Later("everview.database.watermarks", "judge")

T = TypeVar("T")


@doors()
class Transaction:
    """Changes under way. Made by `Database.transaction`; its methods return how many rows they changed."""

    @inside
    def __init__(self, tx: OpenTransaction) -> None:
        self._tx = tx

    def insert(self, table: str, rows: Any) -> int:
        """Add rows; a row whose key is there is refused. A column that a dict or frame lacks gets its default."""
        return self._tx.insert(table, rows)

    def upsert(self, table: str, rows: Any) -> int:
        """Add rows in place of those with the same keys; of several given rows with one key the last counts."""
        return self._tx.upsert(table, rows)

    def delete(self, table: str, rows: Any) -> int:
        """Remove rows: by their keys if the table has one; keys that are not there are passed over.

        From a table without a key a row goes as often as it is given, and must be there.
        """
        return self._tx.delete(table, rows)

    def update(self, table: str, rows: Any) -> int:
        """Set columns of rows: dicts, or a table or frame, with the key and the columns to be set, or whole rows.

        A key that is not there is passed over.
        """
        return self._tx.update(table, rows)

    def apply(self, changes: Mapping[str, Any], *, negative: bool = False) -> None:
        """Add rows with weights: pairs (row, weight), or tables and frames with a ``_weight`` column."""
        self._tx.apply(changes, negative=negative)

    @property
    def changes(self) -> Mapping[str, Batch]:
        """The change of every view, once the block has ended; nothing if it changed no row, or joined another."""
        return self._tx.changes


def _handle_of(tx: OpenTransaction) -> Transaction:
    """The handle of a transaction: the same one for all blocks that join it."""
    if tx.handle is None:
        tx.handle = Transaction(tx)
    return tx.handle


class Transactions:
    """The acts that change rows: a tick of its own, a with-block, or BEGIN and COMMIT of SQL."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._access = core.access
        self.observer: TickObserver | None = None  # told of every tick, if there is one
        self._known: tuple[object, frozenset[str]] = None, frozenset()  # views, and which of them have timestamps

    def tick(
        self, change: Callable[[OpenTransaction], None], done: Callable[[], None] | None = None
    ) -> dict[str, Batch]:
        """Make one tick of the changes of a function; ``done`` is called once the tick counts, before listeners are."""
        access = self._access
        with access.turns.writing():
            access.ready_to_write()
            if access.open is not None:
                raise TransactionError("apply is a tick of its own", hint="inside a transaction use tx.apply")
            if access.closed:
                access.require_open()
            try:
                with access.ticking:
                    tx = OpenTransaction(self._core, ticks=True)
                    access.open = tx
                    try:
                        change(tx)
                        if tx.outside is not None:
                            tx.outside.stage()
                        self._commit(tx)
                        if tx.outside is not None:
                            tx.outside.commit()
                    finally:  # changes that do not count by now never will
                        access.end_tick(tx)
                if done is not None:
                    done()
            finally:  # should a source refuse after the tick, the tick counts
                self._core.telling.tell()
            return tx.changes

    def block(self) -> Block[OpenTransaction]:
        """A with-block whose changes count when it ends; see `Database.transaction`."""
        return InBlock(self._core, lambda tx: tx)

    def shown_block(self) -> Block[Transaction]:
        """A with-block as `block`, which gives users a `Transaction`."""
        return InBlock(self._core, _handle_of)

    # -- transactions of SQL

    def begin(self) -> None:
        """Begin a transaction of SQL, which ends with `commit` or `rollback`."""
        with self._access.turns.writing():
            self._access.ready_to_write()
            self._access.require_open()
            if self._access.open is not None:
                raise TransactionError("a transaction is open already", hint="COMMIT or ROLLBACK it first")
            self._access.open = OpenTransaction(self._core)

    def commit(self) -> None:
        """End a transaction of SQL: all its changes count now, as one tick."""
        with self._access.turns:
            tx = self._begun_by_sql()
            try:
                self.end(tx, None)
            finally:
                self._core.telling.tell()

    def rollback(self) -> None:
        """End a transaction of SQL: none of its changes counts."""
        with self._access.turns:
            self._access.end(self._begun_by_sql())

    def _begun_by_sql(self) -> OpenTransaction:
        self._access.ready()
        tx = self._access.open
        if tx is None or not tx.by_sql:
            raise TransactionError("no transaction has begun", hint="write BEGIN first")
        return tx

    # -- the life of one, with the lock held

    def begin_in(self, block: Block[Any]) -> OpenTransaction:
        """Begin a transaction that a with-statement ends."""
        self._access.require_open()
        tx = OpenTransaction(self._core)
        tx.block = block
        self._access.open = tx
        return tx

    def end(self, tx: OpenTransaction, error: BaseException | None) -> None:
        """End a transaction: it counts now, as one tick, or not at all. A transaction without changes is no tick."""
        try:
            if error is None:
                if tx.outside is not None:
                    tx.outside.stage()
                if tx.changed:
                    self._commit(tx)
                if tx.outside is not None:
                    tx.outside.commit()
        finally:
            self._access.end(tx)

    def _commit(self, tx: OpenTransaction) -> None:
        if self.observer is None:
            self._count(tx)
            return
        with observed(self.observer, tx, self._core):
            self._count(tx)

    def _count(self, tx: OpenTransaction) -> None:
        """Let a transaction count, as one tick."""
        core = self._core
        if core.definitions.carried.views:
            core.definitions.carried.hand_to(tx)
        if core.clock.ticking:
            core.clock.tick(tx)
        if core.definitions.catalog.watermarked:
            judge(core, tx)
        core.run.advance(tx.cells(), tx.mark, tx.offsets, partial(self._counted, tx))
        if core.saving.every:
            core.saving.after_tick()

    def _counted(self, tx: OpenTransaction, outputs: Mapping[str, Batch]) -> None:
        """Note all that follows from a tick that has happened. Repeating the call is harmless."""
        core = self._core
        definitions, (views, moments) = core.definitions, self._known
        if definitions.edits:
            outputs = self._without_companions(outputs)
        if views is not core.run.views:
            moments = self._with_moments()
        if moments:
            outputs = {name: as_changes(change) if name in moments else change for name, change in outputs.items()}
        if definitions.carried.views:
            definitions.carried.note(outputs)
        if core.telling.listeners:
            core.telling.listeners.note(core.run.epoch, outputs)
        shown = definitions.catalog.shown if definitions.edits else None
        tx.changes = {shown.get(name, name): change for name, change in outputs.items()} if shown else dict(outputs)
        if self._access.tentative is not None:
            self._access.tentative.counts = True
        tx.counts = True

    def _without_companions(self, outputs: Mapping[str, Batch]) -> Mapping[str, Batch]:
        """The changes without those of views that nobody is shown: of constraints and watermarks."""
        catalog = self._core.definitions.catalog
        outputs = {name: change for name, change in outputs.items() if name not in catalog.guards}
        if not catalog.watermarked:
            return outputs
        return {name: change for name, change in outputs.items() if not is_companion(name)}

    def _with_moments(self) -> frozenset[str]:
        """The views with timestamps, whose changes are shown as SQL does."""
        views = self._core.run.views
        self._known = views, frozenset(name for name, view in views.items() if has_moments(view.schema))
        return self._known[1]


class InBlock(Block[T], Generic[T]):
    """``with db.transaction()``: a transaction that counts at its end, or joins the one that is open.

    ``shown`` turns the open transaction into the value that the block gets. The lock is not held inside the block:
    other threads wait because there is an open transaction.
    """

    def __init__(self, core: Core, shown: Callable[[OpenTransaction], T]) -> None:
        self._core, self._shown = core, shown
        self._inner: Inner | None = None

    def begin(self) -> T:
        """Begin the transaction when all others have ended, or join the open one of this thread."""
        access = self._core.access
        with access.turns.writing():
            access.ready_to_write()
            outer = access.open
            if outer is None:
                self._tx = self._core.transactions.begin_in(self)
                return self._shown(self._tx)
            self._inner = Inner(outer, self)
            return self._shown(self._inner.begin())

    def end(self, error: BaseException | None) -> None:
        """End the transaction, or leave the one that was joined."""
        access = self._core.access
        with access.turns:
            access.require_same_process()
            if self._inner is not None:
                self._inner.end(error)
                return
            try:
                self._core.transactions.end(self._tx, error)
            finally:
                self._core.telling.tell()
