"""Whose turn it is: one thread at a time, and writers only when every reader that must be told has room.

It is a reentrant lock; `writing` is for those who will make listeners be told something. They wait, without holding
the lock, until no gate is full: so a reader whose queue is full may read whatever it likes before it goes on.

>>> turns = Turns()
>>> with turns.writing(), turns:
...     pass

The lock is taken and given back by the interpreter's own code, between whose steps no signal handler runs: a block that
an exception ends gives it back, wherever the exception comes. In a forked child nobody holds it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Condition, RLock
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet


class Gate(Protocol):
    """A queue with a bound that writers keep to."""

    @property
    def full(self) -> bool: ...

    def wait(self) -> None:
        """Wait until it is not; an error if this thread is the one that should empty it."""
        ...


class Turns:
    """A reentrant lock, and the gates that those who write pass first."""

    def __init__(self) -> None:
        self._lock: Any = RLock()
        self._gates: list[Gate] = []
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

    def writing(self) -> Turns:
        """This, when no gate is full. Inside of it nobody waits again: who could empty a queue, waits for us."""
        if self._gates and not self._lock._is_owned():
            while (full := next((gate for gate in self._gates if gate.full), None)) is not None:
                full.wait()
        return self

    def waited(self) -> bool:
        """Wait, without the lock meanwhile, if a gate has become full before the lock was had; whether that was so.

        Another writer may have come first. Only the outermost block waits.
        """
        full = next((gate for gate in self._gates if gate.full), None)
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
        """From now on writers wait for this one, too."""
        self._gates = [*self._gates, gate]

    def drop_gate(self, gate: Gate) -> None:
        """From now on they do not."""
        self._gates = [each for each in self._gates if each is not gate]


_all: WeakSet[Turns] = WeakSet()


def _forked() -> None:
    """The thread that held a lock may not be here: who comes now is to be refused, not to wait for ever."""
    for turns in _all:
        turns._lock._at_fork_reinit()  # pyright: ignore[reportPrivateUsage]


os.register_at_fork(after_in_child=_forked)
