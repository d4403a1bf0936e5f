"""Forked processes: a child has copies of what its parent opened, and must not use them.

Two processes that go on from one open state would both append to the same files. So an open object keeps the number
of forks from the time when it was made, and compares.

>>> made = forks()
>>> require_same(made, "the database")
"""

from __future__ import annotations

import os
from threading import RLock
from typing import Any, Final
from weakref import WeakSet

from everview.errors import ForkedProcess

FORKS: Final = [0]  # the number of them, for those who ask at every tick


_locks: WeakSet[ProcessLock] = WeakSet()


def _forked() -> None:
    FORKS[0] += 1
    for lock in _locks:  # the thread that held one may not be here, and who comes is to be refused, not to wait
        lock.renew()


os.register_at_fork(after_in_child=_forked)


def forks() -> int:
    """The number of forks between the first process and this one."""
    return FORKS[0]


def require_same(made: int, what: str) -> None:
    """Refuse an object that was made before a fork; ``made`` is the number of `forks` at that time."""
    if made != FORKS[0]:
        raise ForkedProcess(
            f"{what} was opened by another process, of which this one is a fork",
            hint="connect after the fork, in the process that uses it; or start processes by spawn",
        )


class ProcessLock:
    """A reentrant lock that belongs to one process: taking it in a forked child is refused.

    >>> with ProcessLock("the pipeline"):
    ...     pass
    """

    def __init__(self, what: str) -> None:
        self._what, self._made = what, forks()
        self._lock: Any = RLock()
        _locks.add(self)

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock, again if this thread has it; without ``blocking``, False if another thread has it."""
        require_same(self._made, self._what)
        return self._lock.acquire(blocking)

    def release(self) -> None:
        """Give the lock back once."""
        self._lock.release()

    def renew(self) -> None:
        """Free the lock in a forked child, where no thread holds it."""
        self._lock._at_fork_reinit()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()
