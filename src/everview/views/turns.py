"""Whose turn it is: one thread at a time, and writers only when every reader that must be told has room.

It is a reentrant lock; `writing` is for those who will make listeners be told something. They wait, without holding
the lock, until no gate is full: so a reader whose queue is full may read whatever it likes before it goes on.

>>> turns = Turns()
>>> with turns.writing(), turns:
...     pass
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from threading import RLock
from typing import Protocol


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
        self._lock = RLock()
        self._depth = 0
        self._gates: list[Gate] = []

    def acquire(self, blocking: bool = True) -> bool:
        """Take it, once more if this thread has it; False if another has it, and one does not wait for that."""
        if not self._lock.acquire(blocking):
            return False
        self._depth += 1
        return True

    def release(self) -> None:
        """Give it back, once."""
        self._depth -= 1
        self._lock.release()

    def __enter__(self) -> Turns:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    @contextmanager
    def writing(self) -> Generator[None]:
        """Take it when no gate is full. Inside of it nobody waits again: who could empty a queue, waits for us."""
        self.enter_to_write()
        try:
            yield
        finally:
            self.release()

    def enter_to_write(self) -> None:
        """`acquire` when no gate is full."""
        self.acquire()
        if self._depth > 1 or not self._gates:
            return
        while (full := next((gate for gate in self._gates if gate.full), None)) is not None:
            self.release()
            full.wait()
            self.acquire()

    def add_gate(self, gate: Gate) -> None:
        """From now on writers wait for this one, too."""
        self._gates = [*self._gates, gate]

    def drop_gate(self, gate: Gate) -> None:
        """From now on they do not."""
        self._gates = [each for each in self._gates if each is not gate]
