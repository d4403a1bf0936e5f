"""Work in order on several threads: a piece begins when the pieces before it have ended.

The caller's thread works, too, and some pieces may be for it alone. If an exception cuts it short, pieces that have
begun go on to their end on their threads; so whoever touches what they work on waits for that first (`settle`). Threads
start with the work and end with it, as those of `everview.kernels.threads`.

>>> ended = []
>>> def work(thread, piece):
...     ended.append(piece)
...     return piece != 1
>>> WorkBeside([(1,), (2,), (), ()], [0, 1, 1, 0]).run(2, work)  # the piece 2 waits for one that is not done
>>> sorted(ended)
[0, 1, 3]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from time import sleep
from typing import Final

Works = Callable[[int, int], bool]  # of the numbers of a thread and of a piece: whether the piece is done

MOMENT: Final = 0.0001  # seconds between two looks at work that is about to end
NOTHING: Final = -1  # in place of a piece


class WorkBeside:
    """Pieces of work, numbered: which begin after each, after how many each begins, and which the caller alone does."""

    def __init__(
        self, followers: Sequence[Sequence[int]], waits_for: Sequence[int], callers: Collection[int] = ()
    ) -> None:
        self._followers, self._waiting, self._callers = followers, list(waits_for), callers
        self._lock = Lock()  # of all counts
        self._under_way = 0  # pieces that may begin, or have begun
        self._at_work = 0  # threads beside the caller's
        self._stopped = False
        self._helpers: list[Thread] = []
        self._ready: SimpleQueue[int] = SimpleQueue()
        self._ready_here: SimpleQueue[int] = SimpleQueue()  # pieces for the caller alone
        self._news: SimpleQueue[None] = SimpleQueue()  # to the caller: another thread has ended a piece

    def run(self, threads: int, work: Works) -> None:
        """Do all pieces on some threads, each after the pieces that it waits for."""
        self._let_begin(piece for piece, count in enumerate(self._waiting) if count == 0)
        self._helpers = [
            Thread(target=self._help, args=(number, work), name="everview work") for number in range(1, threads)
        ]
        try:
            for helper in self._helpers:
                helper.start()
            while self._under_way:
                self._do_next(work)
        finally:
            self.settle()
        for helper in self._helpers:
            helper.join()

    def settle(self) -> None:
        """Let nothing begin any more, and wait until no other thread is at work. It may be repeated."""
        with self._lock:
            self._stopped = True
        for _ in self._helpers:
            self._ready.put(NOTHING)
        while self._at_work:
            sleep(MOMENT)

    def _do_next(self, work: Works) -> None:
        """Do a piece, or wait until there may be one."""
        for ready in (self._ready_here, self._ready):
            with suppress(Empty):
                piece = ready.get_nowait()
                break
        else:
            self._news.get()
            return
        self._end(piece, done=work(0, piece))

    def _help(self, number: int, work: Works) -> None:
        """Do pieces until there are no more."""
        while True:
            piece = self._ready.get()
            with self._lock:
                if self._stopped:
                    return
                self._at_work += 1
            try:
                done = work(number, piece)
            except BaseException:  # noqa: BLE001, who goes on in turn meets it again, and raises it
                done = False
            self._end(piece, done=done)
            with self._lock:
                self._at_work -= 1
            self._news.put(None)

    def _end(self, piece: int, *, done: bool) -> None:
        """A piece has ended; if it is done, others may begin."""
        ready = list[int]()
        with self._lock:
            for follower in self._followers[piece] if done else ():
                self._waiting[follower] -= 1
                if self._waiting[follower] == 0:
                    ready.append(follower)
        self._let_begin(ready)
        with self._lock:
            self._under_way -= 1

    def _let_begin(self, pieces: Iterable[int]) -> None:
        for piece in pieces:
            with self._lock:
                self._under_way += 1
            (self._ready_here if piece in self._callers else self._ready).put(piece)
