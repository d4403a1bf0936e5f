"""Stopping a command that runs, by Ctrl-C (SIGINT) or by SIGTERM.

The work runs in a thread of its own, while the main thread only shows its progress and waits. So a signal is noticed
at once and interrupts nothing in the middle. The first signal asks the work to end; after a second signal, or after
`PATIENCE` seconds, the process ends without waiting for the work. That is safe where `kill -9` is.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Final

EVERY: Final = 0.1  # seconds between two looks
PATIENCE: Final = 10.0  # seconds for what is under way when the end is asked for
BEGINNING: Final = 1.0  # and for what has not begun anything that could be lost
LINGERING: Final = 3.0  # seconds for the process to end, once there is nothing left to do
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def _nothing() -> None: ...


class Stop:
    """The messages between the two threads: whether the end was asked for, and how to show and end the work.

    The work sets ``look``, which shows its progress, ``end``, which makes it end, ``close``, which gives the terminal
    back, and ``said``, its last message.
    """

    def __init__(self) -> None:
        self.asked = 0  # how often
        self.signal = 0  # by which signal first
        self.look: Callable[[], None] = _nothing
        self.end: Callable[[], None] = _nothing
        self.close: Callable[[], None] = _nothing
        self.said = ""
        self.endless = False  # whether to be stopped is the only way to end

    def __bool__(self) -> bool:
        return self.asked > 0

    def note(self, number: int, _: object = None) -> None:
        """Handle a signal: note that the end was asked for, and nothing else."""
        self.asked += 1
        self.signal = self.signal or number


@contextmanager
def stoppable() -> Generator[Stop]:
    """A block in which the signals that ask for the end are noted; afterwards the former handlers are back."""
    stop = Stop()
    before = {number: signal.signal(number, stop.note) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def hush(stop: Stop) -> None:
    """Log nothing more through the root logger, once the end was asked for.

    A signal to a whole process group ends Java, too, and Java's client logs each connection that breaks by that with
    its stack: no news for somebody who has asked for the end.
    """
    logging.getLogger().addFilter(lambda _: not stop)


def until_stopped(work: Callable[[], object], stop: Stop) -> bool:
    """Run the work until it is done or the end is asked for; False if the work had to be given up.

    An exception of the work is raised here, unless the end was asked for: then it is only a way to end.
    """
    failures: list[BaseException] = []

    def worked() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised in the main thread
            failures.append(error)

    worker = threading.Thread(target=worked, name="everview", daemon=True)
    worker.start()
    while worker.is_alive() and not stop:
        worker.join(EVERY)
        stop.look()
    if stop and not _ended(worker, stop):
        with suppress(Exception):
            stop.close()
        return False
    if failures and not stop:
        raise failures[0]
    return True


def end_within(seconds: float, code: int) -> None:
    """End the process with a code in any case, even if threads that were given up hold it back."""

    def end() -> None:
        sys.stdout.flush()
        os._exit(code)

    watch = threading.Timer(seconds, end)
    watch.daemon = True
    watch.start()


def _ended(worker: threading.Thread, stop: Stop) -> bool:
    """Wait for the work to end, until patience is over or a second signal comes; whether it has ended."""
    threading.Thread(target=_ending, args=(worker, stop), daemon=True).start()
    asked, until = stop.asked, monotonic() + (BEGINNING if stop.end is _nothing else PATIENCE)
    while worker.is_alive() and stop.asked == asked and monotonic() < until:
        worker.join(EVERY)
    return not worker.is_alive()


def _ending(worker: threading.Thread, stop: Stop) -> None:
    """Ask the work to end, repeatedly until it has: a request may come too early, while the work is still starting."""
    while worker.is_alive():
        with suppress(Exception):
            stop.end()
        worker.join(EVERY)
