"""Access to a database: one thread at a time, in the process that connected, with nothing left half done.

A signal handler or a lack of memory may raise an exception at any moment. The next caller first undoes the act that was
cut short, or completes it if it counts already: `Access.ready` sees to that.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, current_thread
from typing import TYPE_CHECKING

from everview.blocks import Busy
from everview.errors import StoreError
from everview.process import FORKS, forks, require_same
from everview.runtimes.embedded import Embedded
from everview.views import Turns

if TYPE_CHECKING:
    from everview.database.tentative import Tentative
    from everview.database.transaction import OpenTransaction

PATIENCE = 0.05  # seconds after which one who waits for a transaction looks whether it can still end


class Access:
    """The lock of a database, and what is under way over several calls: a transaction, tentative definitions."""

    def __init__(self, run: Embedded) -> None:
        self._run = run
        self._made = forks()
        self._amending: Busy | None = None
        self.turns = Turns()
        self.ticking = Lock()  # held by a transaction that is one call; the interpreter gives it back, whatever raises
        self.open: OpenTransaction | None = None  # the transaction under way
        self.tentative: Tentative | None = None  # definitions that count only if what follows them does
        self.closed = False
        self.read_only = False  # whether another process writes, which this one follows
        self.unfinished: Callable[[], None] | None = None  # a move to another epoch that has begun

    def show(self, run: Embedded) -> None:
        """Use another run from now on, which the database shows."""
        self._run = run

    def finish(self) -> None:
        """Complete a move to another epoch, if one has begun."""
        if self.unfinished is not None:
            self.unfinished()
            self.unfinished = None

    def ready(self) -> None:
        """Finish, with the lock held, what an exception has cut short, and wait for other threads' transactions."""
        if self.unfinished is not None:
            self.finish()
        if self._made != FORKS[0]:
            self.require_same_process()
        if self._run.ending is not None:
            self._run.recover()
        if self.open is not None:
            self._pass_open()
        if self.tentative is not None and not self.tentative.alive:
            self._amend(self.tentative)

    def ready_to_write(self) -> None:
        """Do as `ready`, and wait for room in every queue that blocks writers; a thread that is writing may go on."""
        self.require_writer()
        under_way = self.open is not None or self.tentative is not None or self._run.ending is not None
        if not under_way and not self.turns.gates and self._made == FORKS[0]:
            return  # as is nearly always so
        self.ready()
        while self.open is None and self.turns.waited():
            self.ready()

    def require_writer(self) -> None:
        """Refuse what changes a database that is open to read only."""
        if self.read_only:
            raise StoreError("the database is open to read only", hint="connect without read_only to change it")

    def settle(self) -> None:
        """Finish what an exception has cut short, even while a transaction is open."""
        with self.turns:
            self.require_same_process()
            self.finish()
            self._run.recover()

    def require_same_process(self) -> None:
        """Refuse a process that was forked from the one that connected."""
        require_same(self._made, "the database")

    def require_open(self) -> None:
        """Refuse changes after `close`."""
        if self.closed:
            raise StoreError("the database is closed", hint="connect again")

    def end(self, tx: OpenTransaction) -> None:
        """End a transaction: changes that do not count by now never will. Repeating the call is harmless."""
        self.end_tick(tx)
        self.turns.over.notify_all()

    def end_tick(self, tx: OpenTransaction) -> None:
        """Do as `end`, for a transaction during which the lock is held: no other thread waits for its end."""
        if self._run.ending is not None:
            self._run.recover()
        if not tx.counts:
            self._run.abandon(tx.mark)
        if tx.outside is not None:
            tx.outside.end()
        tx.closed = True
        self.open = None
        tx.block = None  # the two refer to each other, and would wait for the collector with all that they hold

    def _pass_open(self) -> None:
        """Get past an open transaction: end one that nobody else can end, and wait for one of another thread."""
        while (tx := self.open) is not None:
            if not tx.alive:
                self.end(tx)
            elif tx.thread is current_thread():
                return
            else:
                self.turns.over.wait(PATIENCE)

    def _amend(self, tentative: Tentative) -> None:
        if self._amending is not None and self._amending.alive:
            return
        busy = Busy()
        with busy:
            self._amending = busy
            tentative.settle()
