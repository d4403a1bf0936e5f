"""The changes of a view as they come, for whoever iterates: in a thread, or in an event loop.

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

import asyncio
from collections.abc import Generator
from contextlib import suppress
from typing import Any

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


@doors()
class Changes:
    """A view's changes from the moment this was made, each as ``(changes, epoch)``; in an event loop, as ``changes``.

    Iterating waits for the next one, and ends when the view does; `next` with a timeout gives up. ``maxsize`` and
    ``policy`` say how many may wait, and what becomes of more: see `everview.views.queue`. Cancelling or breaking off
    loses nothing: the next one who asks gets what is there.
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
        while (found := self._wait(None)) is not None:
            yield found, found.epoch

    def next(self, timeout: float | None = None) -> tuple[Change | Missed, int]:
        """The next one; an error if none comes within so many seconds, or ever."""
        found = self._wait(timeout)
        if found is not None:
            return found, found.epoch
        if self._queue.over:
            raise EverviewError(f"the changes of view {self.name} are closed", hint="ask the view for new ones")
        raise EverviewError(f"view {self.name} did not change within {timeout} s", hint="wait longer")

    def ready(self) -> list[tuple[Change | Missed, int]]:
        """Those that are there, without waiting."""
        found: list[tuple[Change | Missed, int]] = []
        while (one := self._take()) is not None:
            found.append((one, one.epoch))
        return found

    def _wait(self, timeout: float | None) -> Change | Missed | None:
        """The next one; None when the time or all is over."""
        while (found := self._take()) is None:
            if self._queue.over or not self._queue.pause(timeout):
                return None
        return found

    def _take(self) -> Change | Missed | None:
        require_same(self._made, f"the changes of view {self.name}")
        if self._queue.stale:
            self._refresh()
        return self._queue.take()

    def _refresh(self) -> None:
        """After a gap, begin again with a snapshot; nothing changes meanwhile."""
        with self._feed.lock:
            self._subscription.close()
            self._queue.renew()
            if not self._queue.closed:
                self._subscription = _subscribed(self._feed, self._queue, True)

    # -- in an event loop

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Change | Missed:
        loop = asyncio.get_running_loop()
        while True:
            if self._queue.stale:
                # The lock may be held for as long as a tick takes.
                await loop.run_in_executor(None, self._refresh)
            found = self._queue.take()
            if found is not None:
                return found
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
        """Whether no more will come than what is there."""
        return self._queue.closed

    def close(self) -> None:
        """No more of them; who waits, waits no longer."""
        self._subscription.close()
        self._queue.close()
        if isinstance(self._feed.lock, Turns):
            self._feed.lock.drop_gate(self._queue)

    async def aclose(self) -> None:
        """`close`, for those who expect it of what they iterate over."""
        self.close()

    def __enter__(self) -> Changes:
        return self

    def __exit__(self, *error: object) -> None:
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
    """Put what a feed tells into a queue; the first, if it is asked for, is the snapshot."""
    schema: Schema | None = getattr(feed, "schema", None)
    key = itself if schema is None else identity(schema)
    first = [snapshot]
    gated = isinstance(feed.lock, Turns)

    def told(changes: Weighted, epoch: int) -> None:
        whole, first[0] = first[0], False
        found = changes if isinstance(changes, Change) else Change.of(changes, epoch, key, schema=schema)
        if whole:
            found = Change(found.net, epoch, found.since, True, schema)
        try:
            if queue.policy == "block" and not gated and not whole:
                queue.wait()
        finally:
            queue.put(found)

    return feed.subscribe(told, snapshot=snapshot, ended=queue.close)


def _resolve(ready: asyncio.Future[None]) -> Any:
    if not ready.done():
        ready.set_result(None)
