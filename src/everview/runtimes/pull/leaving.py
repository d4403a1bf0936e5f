"""Views that end without waiting for the lock.

The garbage collector closes views anywhere, in a thread that may hold what others wait for. If another thread has the
lock, the views are detached by whoever takes it next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from everview.runtimes.pull.feed import PulledFeed


class Lock(AbstractContextManager[Any], Protocol):
    """A reentrant lock."""

    def acquire(self, blocking: bool = True) -> bool: ...
    def release(self) -> None: ...


class Leaving:
    """Views that wait to be detached until some thread holds the lock."""

    def __init__(self, lock: Lock, detach: Callable[..., None]) -> None:
        self._lock, self._detach = lock, detach
        self._gone: deque[PulledFeed] = deque()

    def add(self, feeds: Iterable[PulledFeed]) -> None:
        """Detach views: now if the lock is free, else when it is held next."""
        self._gone.extend(feeds)
        if self._lock.acquire(False):
            try:
                self.sweep()
            finally:
                self._lock.release()

    def sweep(self) -> None:
        """Detach all views that wait; the caller holds the lock."""
        feeds: list[PulledFeed] = []
        while self._gone:
            feeds.append(self._gone.popleft())
        if feeds:
            self._detach(*feeds)
