"""Progress on a terminal while kernels are compiled, which takes a while when Everview is first used on a machine.

Nothing is shown during the first two seconds of waiting, nor when standard error is not a terminal.
"""

from __future__ import annotations

import sys
from threading import Thread
from time import monotonic
from typing import Final

PATIENCE: Final = 2.0  # seconds
ABOUT: Final = 20  # kernels that a small program uses
EVERY: Final = 0.1  # seconds between two looks at what is being compiled


def is_watched() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


class CompilingProgress:
    """How many kernels this process has begun to compile, and how long it has waited for them.

    >>> progress = CompilingProgress()
    >>> progress.begin("merge_some")
    >>> progress.text
    'compiling kernels for this machine, once: 1 of about 20 (merge_some)'
    """

    def __init__(self) -> None:
        self.about = ABOUT  # how many kernels are expected to be compiled
        self.is_shown = True
        self._begun = 0
        self._name = ""
        self._waited = 0.0  # seconds

    def begin(self, name: str) -> None:
        """Count a kernel that is not in the cache on disk, and is compiled from now on."""
        self._begun += 1
        self._name = name

    @property
    def text(self) -> str:
        about = max(self.about, self._begun + -self._begun % 10)
        return f"compiling kernels for this machine, once: {self._begun} of about {about} ({self._name})"

    def wait_for(self, loading: Thread) -> None:
        """Wait until a thread has loaded a kernel; show progress if it has to compile, and that takes long."""
        began, before = monotonic(), self._begun
        try:
            loading.join(max(PATIENCE - self._waited, EVERY))
            if loading.is_alive() and self._begun > before and self.is_shown and is_watched():
                self._show(loading)
            loading.join()
        finally:
            if self._begun > before:
                self._waited += monotonic() - began

    def _show(self, loading: Thread) -> None:
        from rich.console import Console

        with Console(stderr=True).status(self.text) as status:
            while loading.is_alive():
                loading.join(EVERY)
                status.update(self.text)


progress: Final = CompilingProgress()
