"""Reports of ticks for an observer; loaded when there is one."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter, time_ns
from typing import TYPE_CHECKING

from everview.observe import TickObserver, TickReport
from everview.plan.timed import is_companion

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.database.transaction import OpenTransaction

log = logging.getLogger("everview.database")


@contextmanager
def observed(observer: TickObserver, tx: OpenTransaction, core: Core) -> Generator[None]:
    """A block in which a tick happens: afterwards the observer is told; should it raise, the log is."""
    began, start = time_ns(), perf_counter()
    rows_in = {
        name: sum(part.shape[0] for part in tx.pending(core.definitions.relations[name]))
        for name in tx.changing
        if not is_companion(name)
    }
    epoch, failure = core.run.epoch + 1, None
    try:
        yield
    except BaseException as error:
        failure = str(error) or type(error).__name__
        raise
    finally:
        rows_out = {name: len(change) for name, change in tx.changes.items() if len(change)}
        report = TickReport(epoch, began, perf_counter() - start, rows_in, rows_out, failure)
        try:
            observer(report)
        except Exception:  # whatever the observer does, the tick is what it is
            log.exception("an observer of ticks raised")
