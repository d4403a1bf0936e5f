"""Saving: making ticks durable, after a period or on request."""

from __future__ import annotations

import logging
from threading import Timer

from everview.database.access import Access
from everview.errors import EverviewError, TransactionError
from everview.runtimes.embedded import Embedded

log = logging.getLogger("everview.database")


class Saving:
    """The durability of a database: ``every`` is after how many seconds ticks are saved; 0 if each saves itself."""

    def __init__(self, run: Embedded, access: Access, every: float) -> None:
        self._run, self._access, self.every = run, access, every
        self._timer: Timer | None = None

    def show(self, run: Embedded) -> None:
        """Use another run from now on, which the database shows."""
        self._run = run

    def checkpoint(self) -> None:
        """See `Database.checkpoint`."""
        with self._access.turns:
            self._access.ready()
            self._access.require_open()
            self._run.save()

    def vacuum(self, keep_epochs: int) -> None:
        """See `Database.vacuum`."""
        with self._access.turns:
            self._access.ready()
            self._access.require_open()
            self._access.require_writer()
            if self._access.open is not None:
                raise TransactionError("a transaction is open", hint="vacuum when it has ended")
            self._run.vacuum(keep_epochs)

    def after_tick(self) -> None:
        """Start the timer that saves waiting ticks, unless it runs already."""
        if self._timer is not None or self.every == float("inf"):
            return
        self._timer = Timer(self.every, self._save_now)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _save_now(self) -> None:
        with self._access.turns:
            self._access.ready()
            self._timer = None
            if self._access.closed:
                return
            try:
                self._run.save()
            except EverviewError as error:
                # The next tick tries again, and says so to whoever makes it.
                log.warning("%s", error)
