"""Iterators over the changes of a view, in a thread or in an event loop.

>>> from everview import connect
>>> db = connect()
>>> _ = db.sql("CREATE TABLE t (n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT n FROM t")
>>> with db.view("v").changes(snapshot=True) as changes:
...     _ = db.apply({"t": [((1,), 1)]})
...     for change, epoch in changes.ready():
...         print(change.snapshot, list(change))
True []
False [((1,), 1)]
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from everview.blocks import Closing
from everview.doors import doors
from everview.errors import EverviewError
from everview.listening import Handle
from everview.process import forks, require_same
from everview.types import Schema
from everview.views.change import Change, Missed
from everview.views.feed import Feed, Weighted
from everview.views.identity import identity, itself
from everview.views.queue import MAXSIZE, Policy, Queue
from everview.views.turns import Turns

if TYPE_CHECKING:
    import asyncio


@doors()
class Changes(Closing):
    """A view's changes from the moment this was made, each as ``(changes, epoch)``; in an event loop, as ``changes``.

    Iterating waits for the next change, and ends when the view does; `next` can give up after a time. ``maxsize`` and
    ``policy`` say how many changes may wait, and what becomes of more: see `everview.views.queue`. Cancelling or
    breaking off loses nothing: changes that wait are there for the next iteration.
    """

    def __init__(
        self,
        feed: Feed,
        name: str,
        *,
        snapshot: bool = False,
        maxsize: int | None = MAXSIZE,
        policy: Policy = "merge",
    ) -> None:
        self.name = name
        self._made = forks()
        self._feed = feed
        self._queue = Queue(name, maxsize=maxsize, policy=policy)
        self._subscription = _subscribed(feed, self._queue, snapshot)
        if policy == "block" and isinstance(feed.lock, Turns):
            feed.lock.add_gate(self._queue)

    # -- in a thread

    def __iter__(self) -> Generator[tuple[Change | Missed, int]]:
        while (change := self._wait(None)) is not None:
            yield change, change.epoch

    def next(self, timeout: float | None = None) -> tuple[Change | Missed, int]:
        """Wait for the next change; an error if none comes within so many seconds, or ever."""
        change = self._wait(timeout)
        if change is not None:
            return change, change.epoch
        if self._queue.over:
            raise EverviewError(f"the changes of view {self.name} are closed", hint="ask the view for new ones")
        raise EverviewError(f"view {self.name} did not change within {timeout} s", hint="wait longer")

    def ready(self) -> list[tuple[Change | Missed, int]]:
        """The changes that are there, without waiting."""
        changes: list[tuple[Change | Missed, int]] = []
        while (one := self._take()) is not None:
            changes.append((one, one.epoch))
        return changes

    def _wait(self, timeout: float | None) -> Change | Missed | None:
        """Wait for the next change; None when the time is over or no more will come."""
        while (change := self._take()) is None:
            if self._queue.over or not self._queue.pause(timeout):
                return None
        return change

    def _take(self) -> Change | Missed | None:
        require_same(self._made, f"the changes of view {self.name}")
        if self._queue.stale:
            self._refresh()
        return self._queue.take()

    def _refresh(self) -> None:
        """Begin again with a snapshot after a gap, holding the feed's lock."""
        with self._feed.lock:
            self._subscription.close()
            self._queue.renew()
            if not self._queue.closed:
                self._subscription = _subscribed(self._feed, self._queue, True)

    # -- in an event loop

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Change | Missed:
        import asyncio

        loop = asyncio.get_running_loop()
        while True:
            if self._queue.stale:
                # The lock may be held for as long as a tick takes.
                await loop.run_in_executor(None, self._refresh)
            change = self._queue.take()
            if change is not None:
                return change
            if self._queue.over:
                raise StopAsyncIteration
            await self._ready_in(loop)

    async def _ready_in(self, loop: asyncio.AbstractEventLoop) -> None:
        ready: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
                loop.call_soon_threadsafe(_resolve, ready)

        if self._queue.call_when_ready(wake):
            try:
                await ready
            finally:
                self._queue.forget(wake)

    # -- the end

    @property
    def closed(self) -> bool:
        """Whether no changes will come but those that wait."""
        return self._queue.closed

    def close(self) -> None:
        """End the changes; a thread that waits for one stops waiting."""
        self._subscription.close()
        self._queue.close()
        if isinstance(self._feed.lock, Turns):
            self._feed.lock.drop_gate(self._queue)

    async def aclose(self) -> None:
        """`close`, as asynchronous iterators have it."""
        self.close()

    async def __aenter__(self) -> Changes:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_subscription") and self._made == forks():
            self.close()  # whoever breaks off a loop over a view has nothing else to close

    def __repr__(self) -> str:
        return f"<changes of {self.name}: {len(self._queue)} waiting, policy {self._queue.policy}>"


def _subscribed(feed: Feed, queue: Queue, snapshot: bool) -> Handle:
    """Subscribe a queue to a feed; with ``snapshot`` the first change in it is all that there is."""
    schema: Schema | None = getattr(feed, "schema", None)
    key = itself if schema is None else identity(schema)
    first = [snapshot]
    gated = isinstance(feed.lock, Turns)

    def told(changes: Weighted, epoch: int) -> None:
        whole, first[0] = first[0], False
        change = changes if isinstance(changes, Change) else Change.of(changes, epoch, key, schema=schema)
        if whole:
            change = Change(change.net, epoch, change.since, True, schema)
        try:
            if queue.policy == "block" and not gated and not whole:
                queue.wait()
        finally:
            queue.put(change)

    return feed.subscribe(told, snapshot=snapshot, ended=queue.close)


def _resolve(ready: asyncio.Future[None]) -> Any:
    if not ready.done():
        ready.set_result(None)
