"""A counter of rows on the terminal: shown while a long read goes on, from its third second until its end."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from time import monotonic
from typing import Final, TypeVar

from rich.console import Console

T = TypeVar("T")
PATIENCE: Final = 2.0  # seconds
EVERY: Final = 1000  # rows between two looks at the clock
log = logging.getLogger("everview.sources")


def counted(rows: Iterable[T], what: str, console: Console | None = None) -> list[T]:
    """All rows of an iterable as a list; a long read shows on the console how many rows it has.

    >>> counted(iter("abc"), "copying letters")
    ['a', 'b', 'c']
    """
    began, taken = monotonic(), list[T]()
    rows = iter(rows)
    for row in rows:
        taken.append(row)
        if len(taken) % EVERY == 0 and monotonic() - began > PATIENCE:
            break
    else:
        return taken
    console = console or Console(stderr=True)
    with console.status(f"{what}: {len(taken):,} rows") as status:
        for row in rows:
            taken.append(row)
            if len(taken) % (10 * EVERY) == 0:
                status.update(f"{what}: {len(taken):,} rows")
    log.info("%s: %s rows in %.1f s", what, f"{len(taken):,}", monotonic() - began)
    return taken
