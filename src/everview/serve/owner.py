"""The owner of a served database: one thread changes it, others answer queries on snapshots of what is committed.

- `Owner.submit` runs work on the database in the writer's thread, one after the other, in order.
- `Owner.read` runs work on a snapshot in a reader's thread; it waits for no writer, and no writer waits for it.
- `Owner.subscribe` follows a view; see `everview.serve.changes`.

A snapshot is published after every act of the writer, before whoever waits for the act is told: so everybody reads
what they have written.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from everview.blocks import Closing
from everview.database import Database
from everview.database.parked import ParkedChanges, park, resume
from everview.database.snapshots import DatabaseSnapshot, core_of, snapshot_of
from everview.errors import EverviewError, LimitReached, StoreError
from everview.observe import several
from everview.serve.changes import ChangeHub, ChangeSubscriber
from everview.serve.limits import ServeLimits
from everview.serve.roles import Role
from everview.serve.tasks import ServerTask, Watch
from everview.serve.timeline import EpochsOf, TicksSeen

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.serve.pipeline_model import PipelineModel

T = TypeVar("T")
NOTHING: Final = ()  # in place of work, when none has come for a while
log = logging.getLogger("everview.serve")


class TransactionHolder(Protocol):
    """One who may have a transaction of SQL open over several pieces of work; parked while others have their turn."""

    parked: ParkedChanges | None

    def lost(self) -> None:
        """Take note that the transaction is over, and counts for nothing."""
        ...


class Owner(Closing):
    """A database and its serving threads; `close` lets submitted work end first."""

    def __init__(
        self,
        database: Database,
        limits: ServeLimits | None = None,
        *,
        follow: Callable[[Database], object] | None = None,
        every: float = 0.2,
        epochs: EpochsOf | None = None,
        model: Callable[[], PipelineModel | None] = lambda: None,
    ) -> None:
        """Own a database until `close`, which closes it.

        With ``follow`` clients only read, and it is called ``every`` so many seconds to take in what another process
        has written; for a database that is open to read only, that is `Database.refresh`. ``epochs`` gives the last
        epochs of the process that writes; without it, they are the ticks of the database. ``model`` gives the
        definitions of a pipeline that is followed.
        """
        self.limits = limits or ServeLimits()
        self._database = database
        self._core: Core = core_of(database)
        self._core.sealed = True
        self._follows = Database.refresh if follow is None and database.read_only else follow
        self._every = every
        self.model = model
        self.epochs: EpochsOf = self._observed() if epochs is None else epochs
        self.statements: Counter[str] = Counter()  # that have ended, by where they ran
        self.seconds: dict[str, float] = defaultdict(float)  # that they took
        self._queue: SimpleQueue[tuple[ServerTask[Any], TransactionHolder | None] | tuple[()] | None] = SimpleQueue()
        self._holder: TransactionHolder | None = None  # whose transaction is open in the database
        self._waiting = 0
        self._closing = False
        self._guard = threading.Lock()
        self.snapshot: DatabaseSnapshot = snapshot_of(database)
        self._idle: tuple[DatabaseSnapshot, list[Database]] = self.snapshot, []  # databases that show the last snapshot
        self.hub = ChangeHub(database, self.limits)
        self._watch = Watch()
        self._readers = ThreadPoolExecutor(self.limits.readers, thread_name_prefix="everview-read")
        self._writer = threading.Thread(target=self._write, name="everview-write", daemon=True)
        self._writer.start()

    def _observed(self) -> EpochsOf:
        """The ticks of the database from now on; whoever observes them already is told as before."""
        ticks, known = TicksSeen(), self._core.transactions.observer
        self._database.observe(ticks if known is None else several(known, ticks))
        return ticks.epochs

    @property
    def read_only(self) -> bool:
        """Whether this server only follows another process, which writes."""
        return self._follows is not None

    def allowed(self, role: Role) -> Role:
        """The role that somebody has here: nobody does more than read where another process writes."""
        return Role.READ if self.read_only else role

    @property
    def waiting(self) -> int:
        """The number of tasks that wait or run."""
        return self._waiting

    @property
    def closing(self) -> bool:
        """Whether it takes no more work."""
        return self._closing

    def holds(self, holder: TransactionHolder) -> bool:
        """Whether a transaction of this one is open in the database."""
        return self._holder is holder

    # -- work

    def submit(
        self, work: Callable[[Database], T], *, seconds: float | None = None, holder: TransactionHolder | None = None
    ) -> ServerTask[T]:
        """Run work on the database in the writer's thread; ``seconds`` is how long it may take once it runs."""
        task = ServerTask(lambda: self._begun(work, holder), seconds=self._seconds(seconds))
        self._admit(task)
        self._queue.put((task, holder))
        return task

    def read(self, work: Callable[[Database], T], *, seconds: float | None = None) -> ServerTask[T]:
        """Run work on the last snapshot, as a database that only reads, in a thread of its own."""
        task = ServerTask(lambda: self._shown(work), seconds=self._seconds(seconds))
        self._admit(task)
        self._readers.submit(self._answer, task)
        return task

    def now(self, work: Callable[[Database], T | None]) -> T | None:
        """Run work of microseconds on the last snapshot, in this thread; None if it turns out to be more."""
        began = monotonic()
        done = self._shown(work)
        if done is not None:
            self._count("loop", began)
        return done

    def _shown(self, work: Callable[[Database], T]) -> T:
        """Do some work on a database that shows the last snapshot.

        The database is kept for the next reader; but not if an exception has cut the work short.
        """
        snapshot, idle = self._idle
        try:
            database = idle.pop()
        except IndexError:
            database = snapshot.reader()
        done = work(database)
        idle.append(database)
        return done

    def _answer(self, task: ServerTask[Any]) -> None:
        began = monotonic()
        task.run()
        self._count("reader", began)

    def _count(self, where: str, began: float) -> None:
        with self._guard:
            self.statements[where] += 1
            self.seconds[where] += monotonic() - began

    def subscribe(self, view: str, *, since: int | None = None, snapshot: bool = True) -> ServerTask[ChangeSubscriber]:
        """Follow a view from now on; or from an epoch on, ``since``, as far as its changes are kept.

        With ``snapshot`` it begins with all rows if it cannot go on from ``since``; else that is an error.
        """

        def work(_: Database) -> ChangeSubscriber:
            return self.hub.subscribe(view, self._publish(), since=since, snapshot=snapshot)

        return self.submit(work)

    def _seconds(self, seconds: float | None) -> float:
        return self.limits.statement_seconds if seconds is None else min(seconds, self.limits.statement_seconds)

    def _admit(self, task: ServerTask[Any]) -> None:
        with self._guard:
            if self._closing:
                raise StoreError("the server is stopping", hint="connect again when it has started")
            if self._waiting >= self.limits.waiting:
                raise LimitReached(f"{self._waiting:,} statements wait already", hint="try again in a moment")
            self._waiting += 1
        task.add_done_callback(self._done)
        self._watch.add(task)

    def _done(self, _: Future[Any]) -> None:
        with self._guard:
            self._waiting -= 1

    # -- the writer's thread

    def _write(self) -> None:
        followed = monotonic()
        while True:
            try:
                taken = self._queue.get(timeout=self._every if self.read_only else None)
            except Empty:
                taken = NOTHING
            if taken is None:
                return
            if self.read_only and monotonic() - followed >= self._every:
                self._follow()
                followed = monotonic()
            if not taken:
                continue
            task, holder = taken
            began = monotonic()
            if self._holder is not None and self._holder is not holder:
                self._holder.parked, self._holder = park(self._core), None
            task.run(partial(self._settle, holder))
            self._count("writer", began)

    def _begun(self, work: Callable[[Database], T], holder: TransactionHolder | None) -> T:
        """Do a client's work, in the transaction of that client."""
        if holder is not None and holder.parked is not None:
            try:
                resume(self._core, holder.parked)
            except EverviewError:
                holder.parked = None
                holder.lost()
                raise
            holder.parked, self._holder = None, holder
        return work(self._database)

    def _settle(self, holder: TransactionHolder | None) -> None:
        """After some work: note whose transaction is open, and publish what is committed."""
        self._core.access.settle()
        if self._core.access.open is None:
            self._holder = None
        elif holder is None or holder.parked is not None:  # left open by nobody, or only half resumed
            self._core.transactions.rollback()
            self._holder = None
        else:
            self._holder = holder
        self._publish()

    def _publish(self) -> DatabaseSnapshot:
        self.snapshot = snapshot_of(self._database, self.snapshot)
        if self._idle[0] is not self.snapshot:
            self._idle = self.snapshot, []
        self.hub.tell()
        return self.snapshot

    def _follow(self) -> None:
        """Move to the last epoch of the process that writes."""
        try:
            if self._follows is not None:
                self._follows(self._database)
        except EverviewError as error:
            log.warning("the writer cannot be followed now: %s", error.message)
        self._publish()

    # -- the end

    def close(self) -> None:
        """Take nothing more, let what was submitted end, tell subscribers, and close the database."""
        with self._guard:
            if self._closing:
                return
            self._closing = True
        self._queue.put(None)
        self._writer.join()
        self._readers.shutdown()
        self._watch.close()
        self.hub.close()
        if self._core.access.open is not None:
            park(self._core)
        self._database.close()
