"""Views that go without waiting: the collector of garbage closes them anywhere, in a thread that may hold what others
wait for. If another is at work, it is left to whoever comes next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from everview.runtimes.pull.feed import PulledFeed


class Lock(AbstractContextManager[Any], Protocol):
    """A lock that its holder may take again."""

    def acquire(self, blocking: bool = True) -> bool: ...
    def release(self) -> None: ...


class Leaving:
    """Views that nobody holds any more, until somebody has the lock to ``detach`` them."""

    def __init__(self, lock: Lock, detach: Callable[..., None]) -> None:
        self._lock, self._detach = lock, detach
        self._gone: deque[PulledFeed] = deque()

    def add(self, feeds: Iterable[PulledFeed]) -> None:
        """Let views go: now, if nobody else is at work."""
        self._gone.extend(feeds)
        if self._lock.acquire(False):
            try:
                self.sweep()
            finally:
                self._lock.release()

    def sweep(self) -> None:
        """Let go of all that wait, with the lock held."""
        feeds: list[PulledFeed] = []
        while self._gone:
            feeds.append(self._gone.popleft())
        if feeds:
            self._detach(*feeds)
