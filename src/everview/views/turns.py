"""A lock for one thread at a time, which writers take only when the queue of every blocking reader has room.

The lock is reentrant. Writers, whose changes listeners will be told of, call `writing`, which waits without the lock
until no gate is full: so a reader whose queue is full may read whatever it likes before it empties the queue.

>>> turns = Turns()
>>> with turns.writing(), turns:
...     pass

The lock is taken and given back by the interpreter's own code, between whose steps no signal handler runs: a block that
an exception ends gives it back, wherever the exception comes. In a forked child nobody holds it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Condition, RLock
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet


class Gate(Protocol):
    """A bounded queue for which writers wait."""

    @property
    def full(self) -> bool: ...

    def wait(self) -> None:
        """Wait until the queue has room; an error in the thread that should empty it."""
        ...


class Turns:
    """A reentrant lock with gates: writers wait until none of them is full."""

    def __init__(self) -> None:
        self._lock: Any = RLock()
        self.gates: list[Gate] = []  # for which writers wait
        self.acquire: Callable[..., bool] = self._lock.acquire
        self.release: Callable[[], None] = self._lock.release
        self.over = Condition(self._lock)  # told when whoever had a turn over several blocks has ended it
        _all.add(self)

    if TYPE_CHECKING:

        def __enter__(self) -> Any: ...
        def __exit__(self, *error: object) -> None: ...

    else:
        # A with-statement finds these by the class, and calls what they give: the lock's own.
        __enter__ = property(lambda self: self._lock.__enter__)
        __exit__ = property(lambda self: self._lock.__exit__)

    def writing(self) -> AbstractContextManager[Any]:
        """Wait until no gate is full, then give this lock; its holder does not wait, as readers may need the lock."""
        if self.gates and not self._lock._is_owned():
            while (full := next((gate for gate in self.gates if gate.full), None)) is not None:
                full.wait()
        return self._lock

    def waited(self) -> bool:
        """Wait, giving the lock back meanwhile, if another writer has filled a gate before this one had the lock.

        Returns whether it waited; only the outermost block does.
        """
        full = next((gate for gate in self.gates if gate.full), None)
        if full is None:
            return False
        saved = self._lock._release_save()
        try:
            outermost = saved[0] == 1
            if outermost:
                full.wait()
        finally:
            self._lock._acquire_restore(saved)
        return outermost

    def add_gate(self, gate: Gate) -> None:
        """Let writers wait for a gate."""
        self.gates = [*self.gates, gate]

    def drop_gate(self, gate: Gate) -> None:
        """Let writers wait for a gate no more."""
        self.gates = [each for each in self.gates if each is not gate]


_all: WeakSet[Turns] = WeakSet()


def _forked() -> None:
    """Free all locks in a forked child, where the threads that held them do not exist."""
    for turns in _all:
        turns._lock._at_fork_reinit()  # pyright: ignore[reportPrivateUsage]


os.register_at_fork(after_in_child=_forked)
