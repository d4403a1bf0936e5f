"""Changes of views for subscribers: kept for a while, told to each once, and bounded for those that are slow.

The writer's thread only appends what a tick has changed to the queue of each subscriber, and wakes the event loops in
which subscribers wait. Rows are decoded where they are read, once for all subscribers of a view.

A subscriber that comes back names the last epoch it has seen. It goes on from there if all changes since are kept in
memory; or, in a directory that still has that epoch, by the difference to the rows of today, as one change.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

from everview.codes.encode import encode_weighted
from everview.codes.forked import ForkedDictionary
from everview.database.snapshots import DatabaseSnapshot, core_of
from everview.errors import EverviewError, LostPosition, SlowReader, StoreError
from everview.runtimes.embedded.history import contents_at, kept_epoch
from everview.types import Schema
from everview.zset.batch import Batch
from everview.zset.shown import as_changes

if TYPE_CHECKING:
    from everview.database import Database
    from everview.listening import Subscription
    from everview.serve.limits import ServeLimits

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class ViewChange:
    """The change of a view in one epoch; with ``snapshot``, all its rows at that epoch."""

    view: str
    epoch: int
    batch: Batch
    snapshot: bool = False
    _guard: threading.RLock = field(default_factory=threading.RLock)  # what is made may be made of something made once
    _made: dict[Any, Any] = field(default_factory=dict[Any, Any])

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.batch.schema

    def __len__(self) -> int:
        """The number of different rows."""
        return len(self.batch)

    def once(self, key: Any, make: Callable[[Self], T]) -> T:
        """The result of a function of the change, such as the bytes to send: computed once for all subscribers."""
        made = self._made.get(key)
        if made is not None:
            return made
        with self._guard:
            if key not in self._made:
                self._made[key] = make(self)
            return self._made[key]

    def pairs(self) -> list[tuple[tuple[Any, ...], int]]:
        """The rows and their weights."""
        return self.once("pairs", lambda change: list(change.batch))


class ChangeLog:
    """The last changes of one view: all of those after the epoch `after`."""

    def __init__(self, after: int, limits: ServeLimits) -> None:
        self.after = after
        self._limits = limits
        self._kept: deque[ViewChange] = deque()
        self._rows = 0

    def append(self, change: ViewChange) -> None:
        """Keep a change, and let go of the oldest ones beyond the limits."""
        self._kept.append(change)
        self._rows += len(change)
        while len(self._kept) > self._limits.kept_changes or self._rows > self._limits.kept_rows:
            gone = self._kept.popleft()
            self._rows -= len(gone)
            self.after = gone.epoch

    def since(self, epoch: int) -> list[ViewChange] | None:
        """The changes after an epoch; None if some of them are not kept."""
        return [change for change in self._kept if change.epoch > epoch] if epoch >= self.after else None


class ChangeSubscriber:
    """One subscriber of a view: ``async for change in subscriber``, until it is closed or ends.

    It raises `SlowReader` if it was cut off for being slow. `begin` gives what comes before the first change: all rows,
    or the difference since the epoch to go on from; it may take a while, so it is for a reader's thread.
    """

    def __init__(self, hub: ChangeHub, view: str, limits: ServeLimits, start: FirstChange | None) -> None:
        self.view = view
        self._hub, self._limits, self._start = hub, limits, start
        self._queue: deque[ViewChange] = deque()
        self._came = self._went = 0  # rows; each number is changed by one thread alone, so neither loses a change
        self._failure: EverviewError | None = None
        self._over = False
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None

    def begin(self) -> ViewChange | None:
        """The first message: all rows, or the changes since an earlier epoch; None if changes simply go on."""
        return None if self._start is None else self._start.change()

    def take(self) -> list[ViewChange]:
        """The changes that wait, without waiting for more."""
        taken: list[ViewChange] = []
        while (change := self._next()) is not None:
            taken.append(change)
        if not taken and self._failure is not None:
            raise self._failure
        return taken

    def _next(self) -> ViewChange | None:
        """The first change that waits; None if there is none, perhaps because the writer has just let go of it."""
        try:
            change = self._queue.popleft()
        except IndexError:
            return None
        rows = len(change)
        self._went += rows
        return change

    @property
    def over(self) -> bool:
        """Whether nothing waits and nothing more will come."""
        return self._over and not self._queue

    async def wait(self) -> None:
        """Wait until a change is there or none will come; in one task at a time."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiter = loop, waiter
        try:
            if not self._queue and not self._over:  # looked at after the waiter can be woken
                await waiter
        finally:
            self._waiter = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ViewChange:
        while (change := self._next()) is None:
            if self.over:
                if self._failure is not None:
                    raise self._failure
                raise StopAsyncIteration
            await self.wait()
        return change

    def nudge(self) -> None:
        """End the present wait, if there is one; in the event loop of the wait."""
        if self._waiter is not None and not self._waiter[1].done():
            self._waiter[1].set_result(None)

    def close(self) -> None:
        """Follow the view no longer."""
        self._hub.drop(self)
        self.end(None)

    # -- the writer's thread

    def put(self, change: ViewChange) -> None:
        """Append a change; a subscriber that has too many of them waiting is cut off."""
        if self._over:
            return
        waiting = self._came - self._went
        if len(self._queue) >= self._limits.subscriber_changes or waiting > self._limits.subscriber_rows:
            self._queue.clear()
            self.end(
                SlowReader(
                    f"the subscriber of view {self.view} fell behind by {self._limits.subscriber_changes:,} changes or "
                    f"{self._limits.subscriber_rows:,} rows, and was cut off at epoch {change.epoch}",
                    hint="read faster, or subscribe again from the last epoch that was read",
                )
            )
            return
        rows = len(change)
        self._came += rows
        self._queue.append(change)

    def end(self, failure: EverviewError | None) -> None:
        """Let nothing more come; a ``failure`` is raised when what waits has been read."""
        if not self._over:
            self._failure, self._over = failure, True
        self._hub.wake(self)

    @property
    def waiter(self) -> tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None:
        """The event loop of the present wait, and the event that ends the wait."""
        return self._waiter


@dataclass(frozen=True, slots=True)
class FirstChange:
    """The first message to a new subscriber: the rows of a snapshot, or their difference to an earlier epoch's."""

    view: str
    snapshot: DatabaseSnapshot
    since: int | None = None  # the epoch that the subscriber has seen
    whole: bool = True  # whether it takes all rows if the difference cannot be said

    def change(self) -> ViewChange:
        """The difference if it can be said, else all rows."""
        held = core_of(self.snapshot.reader()).holdings.contents_of(self.view)
        difference = self._difference(Batch(held.schema, held.rows, held.dictionary))
        if difference is not None:
            return ViewChange(self.view, self.snapshot.epoch, as_changes(difference))
        if self.since is not None and not self.whole:
            hint = "begin with all rows of the view"
            raise LostPosition(f"the changes of view {self.view} since epoch {self.since} are not kept", hint=hint)
        return ViewChange(self.view, self.snapshot.epoch, held, snapshot=True)

    def _difference(self, held: Batch) -> Batch | None:
        """The changes since an epoch, if the directory still has it with the same columns."""
        path, since = self.snapshot.path, self.since
        if path is None or since is None or not 0 < since <= self.snapshot.epoch:
            return None
        try:
            past = contents_at(path, self.view, kept_epoch(path, since))
        except EverviewError:  # let go of, or there was no such view
            return None
        if Schema.from_arrow(past.rows.schema).types != Schema.from_arrow(held.schema.arrow).types:
            return None
        if {*past.rows.schema.names} != {*held.schema.names}:
            return None
        rows = past.rows.select(list(held.schema.names))
        encoded = encode_weighted(held.schema, rows, past.weights, held.dictionary)
        return held - Batch.consolidated(held.schema, encoded, held.dictionary)


class ChangeHub:
    """The subscribers of a database by view; all of it but `drop` and `wake` is for the writer's thread."""

    def __init__(self, database: Database, limits: ServeLimits) -> None:
        self._database, self._core, self._limits = database, core_of(database), limits
        self._logs: dict[str, ChangeLog] = {}
        self._listening: dict[str, Subscription] = {}
        self._subscribers: dict[str, set[ChangeSubscriber]] = {}
        self._fork: tuple[int, ForkedDictionary] | None = None
        self._awake: list[ChangeSubscriber] = []
        self._guard = threading.Lock()

    def __len__(self) -> int:
        """The number of subscribers."""
        return sum(map(len, self._subscribers.values()))

    def subscribe(
        self, view: str, now: DatabaseSnapshot, *, since: int | None = None, snapshot: bool = True
    ) -> ChangeSubscriber:
        """See `Owner.subscribe`; ``now`` is the snapshot of this moment."""
        name = self._core.catalog.find_materialized(view)
        log = self._listen(name)
        kept = None if since is None or since > now.epoch else log.since(since)
        start = None if kept is not None else FirstChange(name, now, since, snapshot)
        subscriber = ChangeSubscriber(self, name, self._limits, start)
        for change in kept or ():
            subscriber.put(change)
        with self._guard:
            self._subscribers.setdefault(name, set()).add(subscriber)
        return subscriber

    def drop(self, subscriber: ChangeSubscriber) -> None:
        """Tell a subscriber no more."""
        with self._guard:
            self._subscribers.get(subscriber.view, set()).discard(subscriber)

    def tell(self) -> None:
        """Wake the event loops whose subscribers have got something, each once."""
        awake, self._awake = self._awake, []
        waiting: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        for subscriber in awake:
            waiter = subscriber.waiter
            if waiter is not None:
                waiting.setdefault(waiter[0], []).append(waiter[1])
        for loop, waiters in waiting.items():
            _wake(loop, waiters)

    def wake(self, subscriber: ChangeSubscriber) -> None:
        """Wake one subscriber, if it waits."""
        waiter = subscriber.waiter
        if waiter is not None:
            _wake(waiter[0], [waiter[1]])

    def close(self) -> None:
        """End all subscribers: the server stops."""
        for name in tuple(self._subscribers):
            self._end(name, StoreError("the server has stopped", hint="subscribe again from the last epoch seen"))

    def _listen(self, name: str) -> ChangeLog:
        if name not in self._logs:
            listener = self._database.view(name).subscribe
            self._listening[name] = listener(
                lambda changes, epoch: self._note(name, changes, epoch), ended=lambda: self._ended(name)
            )
            self._logs[name] = ChangeLog(self._core.run.epoch, self._limits)
        return self._logs[name]

    def _note(self, name: str, changes: Batch, epoch: int) -> None:
        """Append what a tick has changed to the queues of a view's subscribers."""
        batch = Batch.in_order(changes.schema, changes.rows, self._forked(epoch))
        change = ViewChange(name, epoch, as_changes(batch))
        self._logs[name].append(change)
        with self._guard:
            subscribers = tuple(self._subscribers.get(name, ()))
        for subscriber in subscribers:
            subscriber.put(change)
        self._awake.extend(subscribers)

    def _forked(self, epoch: int) -> ForkedDictionary:
        """The values of an epoch, as they stay whatever the writer forgets."""
        if self._fork is None or self._fork[0] != epoch:
            dictionary = self._core.run.dictionary
            self._fork = epoch, ForkedDictionary(dictionary, dictionary.mark())
        return self._fork[1]

    def _ended(self, name: str) -> None:
        self._logs.pop(name, None)
        self._listening.pop(name, None)
        self._end(name, None)

    def _end(self, name: str, failure: EverviewError | None) -> None:
        with self._guard:
            subscribers = self._subscribers.pop(name, set())
        for subscriber in subscribers:
            subscriber.end(failure)


def _wake(loop: asyncio.AbstractEventLoop, waiters: list[asyncio.Future[None]]) -> None:
    def wake() -> None:
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    if not loop.is_closed():
        loop.call_soon_threadsafe(wake)
