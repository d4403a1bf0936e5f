"""Queues of changes that wait for their reader: a bound, and a policy for changes beyond it.

- ``merge``: the new change is added to the last one that waits. Nothing is lost, and the size of the view bounds what
  waits: a net change removes at most the rows that were there, and adds at most those that are.
- ``block``: a writer waits for room, before anything is changed. The reading thread would wait for ever, so there it is
  an error, and nothing is changed.
- ``drop``: all waiting changes are forgotten. The reader gets `Missed`, and then a snapshot.
- ``error``: the subscription ends; the reader gets the waiting changes, and then `SlowReader`.

>>> queue = Queue("v", maxsize=1, policy="merge")
>>> for epoch, (row, weight) in enumerate([("a", 1), ("b", 1), ("a", -1)]):
...     queue.put(Change.of([(row, weight)], epoch))
>>> found = queue.take()
>>> list(found), found.epoch, queue.take()
([('b', 1)], 2, None)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, RLock, get_ident
from time import monotonic
from typing import Literal, get_args

from everview.errors import EverviewError, SlowReader
from everview.views.change import Change, Missed, Net, add_one

Policy = Literal["merge", "block", "drop", "error"]
POLICIES: tuple[str, ...] = get_args(Policy)
MAXSIZE = 64  # transactions that wait for a reader, unless it says otherwise
PATIENCE = 1.0  # seconds within which another thread has to begin to read, if the one that writes made the queue


class Queue:
    """A queue of changes from a writer's thread to a reader's thread."""

    def __init__(self, name: str, *, maxsize: int | None = MAXSIZE, policy: Policy = "merge") -> None:
        if policy not in POLICIES:
            raise EverviewError(f"{policy!r} is no policy", hint=f"choose one of {', '.join(POLICIES)}")
        if maxsize is not None and maxsize < 1:
            raise EverviewError(f"a queue cannot hold {maxsize} changes", hint="give 1 or more, or None for no bound")
        self.name, self.maxsize, self.policy = name, maxsize, policy
        self.stale = False  # a snapshot is due before anything else
        self.closed = False
        self._waiting: deque[Change] = deque()
        self._merged: Net | None = None  # what the last one holds, if it is the queue's own to add to
        self._missed = 0
        self._epoch = 0
        self._failure: SlowReader | None = None
        lock = RLock()  # a queue may be closed by the collector of garbage, anywhere
        self._there, self._room = Condition(lock), Condition(lock)
        self._wakes: list[Callable[[], None]] = []
        self._maker, self._reader = get_ident(), 0

    # -- the thread that changes things

    def put(self, change: Change) -> None:
        """Append a change, or do with it what the policy says if the queue is full."""
        with self._there:
            if self.closed or self.stale:
                return  # a snapshot that is due will hold it
            self._epoch = change.epoch
            if change.snapshot or not self._full:
                self._append(change)
            elif self.policy == "merge":
                self._merge(change)
            elif self.policy == "drop":
                self._drop()
            elif self.policy == "error":
                self._fail(change)
            else:
                self._append(change)  # a listener's own change: it could not wait
            self._wake()

    @property
    def full(self) -> bool:
        """Whether there is no room for another change."""
        with self._there:
            return self._full and not self.closed

    @property
    def _full(self) -> bool:
        return self._missed > 0 or (self.maxsize is not None and len(self._waiting) >= self.maxsize)

    def wait(self) -> None:
        """Wait for room; an error in the reading thread, or in the one that made the queue if nobody reads."""
        with self._there:
            until = monotonic() + PATIENCE
            while self._full and not self.closed:
                if self._reader == get_ident() or (not self._reader and self._maker == get_ident()):
                    if self._reader or monotonic() >= until:
                        raise self._deadlock()
                    self._room.wait(until - monotonic())
                else:
                    self._room.wait()

    def close(self) -> None:
        """End the queue: a reader gets the changes that wait, and then the end."""
        with self._there:
            self.closed = True
            self._wake()
            self._room.notify_all()

    def _append(self, change: Change) -> None:
        self._waiting.append(change)
        self._merged = None

    def _merge(self, change: Change) -> None:
        last = self._waiting.pop()
        if self._merged is None:
            self._merged = dict(last.net)  # others may have the same change
        for key, (row, weight) in change.net.items():
            add_one(self._merged, key, row, weight)
        if self._merged or last.snapshot:
            self._waiting.append(Change(self._merged, change.epoch, last.since, last.snapshot, last.schema))
        else:
            self._merged = None

    def _drop(self) -> None:
        self._missed += len(self._waiting) + 1
        self._waiting.clear()

    def _fail(self, change: Change) -> None:
        self._failure = SlowReader(
            f"the reader of view {self.name} fell behind by more than {self.maxsize} changes, at epoch {change.epoch}",
            hint='read faster, raise maxsize, or choose policy="merge"',
        )
        self.closed = True

    def _deadlock(self) -> SlowReader:
        return SlowReader(
            f"{self.maxsize} changes of view {self.name} wait to be read, and only this thread could read them",
            hint='read them first, or in another thread, or choose policy="merge"',
        )

    # -- the thread that reads

    def take(self) -> Change | Missed | None:
        """Take the next change; None if there is none now. `over` says whether any will come."""
        with self._there:
            self._reader = get_ident()
            if self._missed:
                taken = Missed(self._missed, self._epoch)
                self._missed, self.stale = 0, True
                return taken
            if not self._waiting:
                if self._failure is not None:
                    raise self._failure
                return None
            self._merged = None
            taken = self._waiting.popleft()
            self._room.notify_all()
            return taken

    def pause(self, timeout: float | None) -> bool:
        """Wait until a change is there or none will come; False if the time is over first."""
        with self._there:
            self._reader = get_ident()
            return self._there.wait_for(lambda: self._ready, timeout)

    def call_when_ready(self, wake: Callable[[], None]) -> bool:
        """Call ``wake`` once when a change is there; False if one is there already."""
        with self._there:
            self._reader = get_ident()
            if not self._ready:
                self._wakes.append(wake)
            return not self._ready

    def forget(self, wake: Callable[[], None]) -> None:
        """Do not call ``wake`` any more."""
        with self._there:
            if wake in self._wakes:
                self._wakes.remove(wake)

    def renew(self) -> None:
        """Forget the changes that wait, because a snapshot comes."""
        with self._there:
            self._waiting.clear()
            self._merged, self.stale = None, False

    @property
    def over(self) -> bool:
        """Whether no change waits and none will come."""
        with self._there:
            return self.closed and not (self._waiting or self._missed or self._failure)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def _ready(self) -> bool:
        return bool(self._waiting or self._missed or self.stale or self.closed)

    def _wake(self) -> None:
        self._there.notify_all()
        wakes, self._wakes = self._wakes, []
        for wake in wakes:
            wake()
