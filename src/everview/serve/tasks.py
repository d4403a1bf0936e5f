"""Tasks: work for a thread that others wait for, and that can be stopped while it runs.

A task is stopped by an exception that the interpreter raises in its thread. The engine is made for that: whatever is
cut short is undone or completed by whoever comes next. Compiled code is not interrupted, so a stop takes effect when
the kernel at hand returns. The interpreter drops an exception that it happens to raise in a finaliser, so a stop is
repeated until the work ends. And it loses the lock of an import that is cut short, for which all later imports of the
module would wait, so a stop waits for the end of one.

>>> task = ServerTask(lambda: 6 * 7)
>>> task.run()
>>> task.result()
42
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from everview.errors import EverviewError, LimitReached, StatementCancelled, StatementTimeout

T = TypeVar("T")
LOOK: Final = 0.02  # seconds between two looks for tasks whose time is over
AGAIN: Final = 0.25  # seconds that stopped work has to end by itself before it is interrupted once more
_raise_in: Any = ctypes.pythonapi.PyThreadState_SetAsyncExc


class TaskStopped(BaseException):
    """Raised in the thread of a task that is to stop; nothing catches it but the task."""


class ServerTask(Future[T], Generic[T]):
    """The future of some work; see `stop`."""

    def __init__(self, work: Callable[[], T], *, seconds: float | None = None) -> None:
        super().__init__()
        self._work = work
        self._seconds = seconds
        self._guard = threading.Lock()
        self._thread: int | None = None  # in which the work runs
        self._reason: EverviewError | None = None
        self._stopped_at = 0.0
        self._raised = False  # whether an exception has been raised in its thread, which may not have noticed yet
        self.ends_at: float | None = None  # when it has taken too long, once it runs

    def run(self, settle: Callable[[], None] | None = None) -> None:
        """Do the work in this thread, then ``settle``, and then tell whoever waits."""
        if not self.set_running_or_notify_cancel():
            return
        done: list[T] = []
        failure: BaseException | None = None
        try:
            try:
                self._begin()
                done.append(self._work())
            except MemoryError:
                failure = _too_large()
            except Exception as error:  # noqa: BLE001, whoever waits is told
                failure = error
            self._end()
        except BaseException as error:  # noqa: BLE001, whoever waits is told
            self._end()
            failure = None if isinstance(error, TaskStopped) else error
        try:
            if settle is not None:
                settle()
        except BaseException as error:  # noqa: BLE001, whoever waits is told
            failure = failure or error
        if done and failure is None:
            self.set_result(done[0])
        else:
            self.set_exception(failure or self._reason or _cancelled())

    def stop(self, reason: EverviewError | None = None) -> bool:
        """Cancel waiting work, or interrupt running work; False after its end."""
        with self._guard:
            if self.done():
                return False
            self._reason = self._reason or reason or _cancelled()
            if self._thread is not None:
                self._interrupt(self._thread)
                return True
        return self.cancel()

    def insist(self, now: float) -> None:
        """Interrupt work once more that was stopped and still runs."""
        with self._guard:
            if self._thread is not None and self._reason is not None and now > self._stopped_at + AGAIN:
                self._interrupt(self._thread)

    def overdue(self, now: float) -> bool:
        """Whether it has run for longer than it may."""
        return self.ends_at is not None and now > self.ends_at and not self.done()

    def time_out(self) -> None:
        """Stop it because its time is over."""
        self.ends_at = None
        self.stop(
            StatementTimeout(
                f"the statement took longer than {self._seconds:g} s", hint="ask for less, or allow it more time"
            )
        )

    def _interrupt(self, thread: int) -> None:
        """Raise an exception in the thread of the work; not while that imports a module: `insist` tries again soon."""
        if _is_importing(thread):
            self._stopped_at = 0.0
            return
        self._stopped_at, self._raised = monotonic(), True
        _raise_in(ctypes.c_ulong(thread), ctypes.py_object(TaskStopped))

    def _begin(self) -> None:
        with self._guard:
            if self._reason is not None:
                raise TaskStopped
            self._thread = threading.get_ident()
            if self._seconds is not None:
                self.ends_at = monotonic() + self._seconds

    def _end(self) -> None:
        """Let nothing interrupt this thread any more; an interruption under way ends here.

        One that has not been raised yet is raised here. To take it back would leave a mark in the interpreter, which
        looks for it at every call of a function from then on, in all threads.
        """
        while True:
            try:
                with self._guard:
                    self._thread = self.ends_at = None
                if self._raised:
                    self._raised = False
                    _raise_in(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(TaskStopped))
                    while True:  # at the end of a round the interpreter raises it
                        pass
                return
            except TaskStopped:
                continue


def _is_importing(thread: int) -> bool:
    frame = sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _too_large() -> LimitReached:
    return LimitReached(
        "the statement needs more memory than the server may take",
        hint="ask for less; everview serve --memory allows it more",
    )


def _cancelled() -> StatementCancelled:
    return StatementCancelled("the statement was cancelled", hint="nothing of it counts")


class Watch:
    """A thread that stops overdue tasks, again and again if they go on."""

    def __init__(self) -> None:
        self._tasks: set[ServerTask[Any]] = set()
        self._any = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._look, name="everview-watch", daemon=True)
        self._thread.start()

    def add(self, task: ServerTask[Any]) -> None:
        """Watch a task until it is done."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._any.set()

    def close(self) -> None:
        """Watch no longer."""
        self._over = True
        self._any.set()
        self._thread.join()

    def _look(self) -> None:
        pause = threading.Event()
        while not self._over:
            self._any.wait()
            pause.wait(LOOK)
            if not self._tasks:
                self._any.clear()
                if self._tasks:
                    self._any.set()
                continue
            now = monotonic()
            for task in tuple(self._tasks):
                if task.overdue(now):
                    task.time_out()
                task.insist(now)
