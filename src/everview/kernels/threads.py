"""Threads for large work: how many it may use, and how its parts are divided among them.

Kernels release the GIL, so the parts of a large piece of work run side by side. Results come back in the order of the
parts, and parts do not depend on one another: the answer is the same for any number of threads.

Threads start with the work and end with it, so a fork meets none that wait. How many there may be is said once, here:
by `at_most` for a while, by `keep_to` for a process, or else by the cores of the machine.

>>> with at_most(2):
...     each(lambda n: n * n, range(5))
[0, 1, 4, 9, 16]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from threading import Thread
from typing import Final, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

PARTS: Final = 4  # a thread; more parts than threads, so that none waits long for the slowest

_here: ContextVar[int | None] = ContextVar("threads", default=None)
_kept: list[int] = []  # of this process, once it is known


def allowed() -> int:
    """The number of threads that large work may use now."""
    here = _here.get()
    if here is not None:
        return here
    if not _kept:
        keep_to(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    return _kept[0]


@contextmanager
def at_most(count: int | None) -> Generator[None]:
    """Let large work inside of a block use so many threads; None changes nothing."""
    if count is None:
        yield
        return
    token = _here.set(count)
    try:
        yield
    finally:
        _here.reset(token)


def keep_to(count: int) -> None:
    """Let large work of this process use so many threads where nothing else is said."""
    _kept[:] = [count]


def each(work: Callable[[T], R], parts: Iterable[T], beside: Callable[[], None] | None = None) -> list[R]:
    """The results of some work for each part, in order; of several exceptions that of the first part is raised.

    One thread is the caller's own; it first does what is to be done ``beside`` the work, which no other thread may do.
    If an exception ends its waiting, the others finish the parts they have begun.
    """
    given = list(parts)
    helpers = min(allowed(), len(given) + (beside is not None)) - 1
    if helpers < 1:
        if beside is not None:
            beside()
        return [work(part) for part in given]
    queue = _Queue(work, given)
    threads = [Thread(target=queue.work, name="everview work") for _ in range(helpers)]
    try:
        for thread in threads:
            thread.start()
        if beside is not None:
            beside()
        queue.work()
        for thread in threads:
            thread.join()
    except BaseException:
        queue.waiting.clear()
        raise
    return queue.results()


def ranges(rows: int, least: int) -> list[tuple[int, int]]:
    """The rows of large work as ranges of at least some rows, a few for each thread.

    >>> with at_most(1):
    ...     ranges(10, 1)
    [(0, 10)]
    """
    threads = allowed()
    count = 1 if threads == 1 else max(1, min(PARTS * threads, rows // max(1, least)))
    bounds = [rows * k // count for k in range(count + 1)]
    return list(pairwise(bounds))


class _Queue(Generic[T, R]):
    """Parts that wait to be worked on, and what came of the others."""

    def __init__(self, work: Callable[[T], R], parts: Sequence[T]) -> None:
        self.waiting = list(reversed(list(enumerate(parts))))
        self._work, self._parts = work, len(parts)
        self._done: dict[int, R] = {}
        self._failed: dict[int, BaseException] = {}

    def work(self) -> None:
        """Work on one part after the other until none waits."""
        while True:
            try:
                number, part = self.waiting.pop()
            except IndexError:
                return
            try:
                self._done[number] = self._work(part)
            except BaseException as error:  # noqa: BLE001, it is raised where it is waited for
                self._failed[number] = error
                self.waiting.clear()

    def results(self) -> list[R]:
        if self._failed:
            raise self._failed[min(self._failed)]
        return [self._done[number] for number in range(self._parts)]
