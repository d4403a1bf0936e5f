"""The background runner: a thread that polls every attached source, again and again, until it is stopped.

Each source has a rhythm of its own. One that fails is tried again after twice the time, and then twice that, up to a
longest pause, while the others go on; what it could not take in it takes in when it can, exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import TIMEOUT_MAX, Event, Thread, current_thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from everview.blocks import Closing
from everview.doors import doors, inside
from everview.errors import DefinitionError, EverviewError, ListenerError

if TYPE_CHECKING:
    from everview.database.core import Core

PATIENCE: Final = 0.5  # seconds after which the runner looks whether sources have come or the database is closed
WRITER: Final = "writer"  # under which a database that only reads follows the process that writes
_NEVER: Final = float("inf")


@dataclass(slots=True)
class SourceRhythm:
    """The state of one source: its last complete read, its next try, and its failures in a row."""

    due: float
    read: float | None = None
    failures: int = 0  # in a row
    error: BaseException | None = None


@doors()
class Runner(Closing):
    """A database's background runner, made by `Database.run`: lag and errors of its sources, and how to stop it."""

    @inside
    def __init__(self, core: Core, every: float, longest: float, limit: int | None) -> None:
        for what, seconds in (("every", every), ("longest", longest)):
            if not 0 < seconds <= TIMEOUT_MAX:
                raise DefinitionError(f"{what} is {seconds} s", hint="give a positive number of seconds")
        if limit is not None and limit < 1:
            raise DefinitionError(f"a limit of {limit} takes nothing in", hint="give one of 1 or more, or None")
        self._core, self._every, self._longest, self._limit = core, float(every), float(max(every, longest)), limit
        self._began = monotonic()
        self._stopped = Event()
        self._rhythms: dict[str, SourceRhythm] = {}
        self._thread = Thread(target=self._run, name="everview runner", daemon=True)

    @inside
    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it polls: it was not stopped, and the database is not closed."""
        return self._thread.is_alive() and not self._stopped.is_set()

    def lag(self) -> dict[str, float]:
        """For how many seconds each source has not been read to its end."""
        now = monotonic()
        return {name: now - (self._began if r.read is None else r.read) for name, r in [*self._rhythms.items()]}

    def errors(self) -> dict[str, BaseException]:
        """The errors of sources that could not be read when they were last tried."""
        return {name: r.error for name, r in [*self._rhythms.items()] if r.error is not None}

    def stop(self, timeout: float | None = None) -> bool:
        """Stop after the poll under way, and wait for that, for so many seconds at most; whether it has ended."""
        if timeout is not None and not timeout >= 0:
            raise DefinitionError(f"nobody waits for {timeout} s", hint="give a number of seconds, or None")
        self._stopped.set()
        if current_thread() is not self._thread:
            self._thread.join(None if timeout is None else float(min(timeout, TIMEOUT_MAX)))
        return not self._thread.is_alive()

    def close(self) -> None:
        """`stop`, as at the end of a with-block."""
        self.stop()

    @inside
    def ask_to_stop(self) -> None:
        """Stop soon, without waiting: for a thread that holds the lock which a poll may wait for."""
        self._stopped.set()

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped"
        return f"<runner, {state}: {len(self._rhythms)} sources, {len(self.errors())} failing>"

    # -- the thread

    def _run(self) -> None:
        while not self._stopped.is_set() and not self._core.access.closed:
            self._look_for_sources()
            for name, rhythm in self._rhythms.items():
                if rhythm.due <= monotonic() and not self._stopped.is_set():
                    self._poll(name, rhythm)
            soonest = min((rhythm.due for rhythm in self._rhythms.values()), default=_NEVER)
            self._stopped.wait(max(0.0, min(soonest - monotonic(), PATIENCE)))

    def _look_for_sources(self) -> None:
        """Take up newly attached sources, and drop detached ones."""
        names = [*self._core.attached.names(), *([WRITER] if self._core.follower is not None else [])]
        now = monotonic()
        self._rhythms = {name: self._rhythms.get(name) or SourceRhythm(now) for name in names}

    def _poll(self, name: str, rhythm: SourceRhythm) -> None:
        try:
            if name == WRITER and self._core.follower is not None:
                self._core.follower.refresh(self._core)
            else:
                self._core.attached.poll((name,), self._limit)
            rhythm.error = None
        except ListenerError as error:  # the tick counts
            rhythm.error = error
        except Exception as error:  # noqa: BLE001, whatever a source raises, the others go on
            if self._core.access.closed or (
                isinstance(error, EverviewError) and name not in self._core.attached.names()
            ):
                return
            rhythm.error = error
            rhythm.failures += 1
            rhythm.due = monotonic() + min(self._every * 2.0 ** min(rhythm.failures, 30), self._longest)
            return
        rhythm.failures = 0
        rhythm.read = monotonic()
        rhythm.due = rhythm.read + self._every
