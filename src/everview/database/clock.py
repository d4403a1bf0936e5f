"""The clock of a database: the current time that kept views read, which moves only when it is told to.

It is a table of one row, made with the first view that asks the time. So a tick of the clock is a tick like any other:
atomic, durable, told to listeners, and the same when it is repeated.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Final

from everview.codes import encode_pairs, encode_rows
from everview.database.catalog import Catalog
from everview.database.definitions import TableDefinition
from everview.errors import EverviewError, shown
from everview.plan.timed import CLOCK, CLOCK_SCHEMA
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.database.transaction import OpenTransaction

CLOCKS: Final = ("told", "wall")


def with_clock(catalog: Catalog) -> Catalog:
    """The catalog with a clock, if a view reads one."""
    if CLOCK in catalog.tables or not any(CLOCK in view.reads for view in catalog.views.values()):
        return catalog
    return catalog.with_table(TableDefinition.of(CLOCK, CLOCK_SCHEMA))


class Clock:
    """How the current time of a database moves: when `Database.advance` says so, or with every tick."""

    def __init__(self, core: Core, kind: str = "told") -> None:
        self._core = core
        self.ticking = kind == "wall"

    def advance(self, now: dt.datetime | None) -> dict[str, Batch]:
        """See `Database.advance`."""
        moment = wall_time() if now is None else _checked(now)
        core = self._core
        with core.still.writing():
            if CLOCK not in core.catalog.tables:
                rows = partial(encode_rows, CLOCK_SCHEMA, [(moment,)])
                core.definitions.define_table(TableDefinition.of(CLOCK, CLOCK_SCHEMA), rows)
                return {}
            return core.transactions.tick(lambda tx: self.move(tx, moment, strictly=now is not None))

    def tick(self, tx: OpenTransaction) -> None:
        """Move a clock that follows the wall's, as a part of a tick."""
        if CLOCK in self._core.definitions.relations:
            self.move(tx, wall_time(), strictly=False)

    def move(self, tx: OpenTransaction, moment: dt.datetime, *, strictly: bool) -> None:
        """Set the clock in a transaction; a moment that has passed is refused if ``strictly``, else it is left out."""
        relation = self._core.definitions.relations[CLOCK]
        held = [time for ((time,), _) in tx.contents(relation)]
        if held and moment <= max(held):
            if strictly and moment < max(held):
                raise EverviewError(
                    f"the clock shows {max(held)} and cannot go back to {moment}", hint="give a later moment"
                )
            return
        changes = [((moment,), 1), *(((time,), -1) for time in held)]
        tx.carry(CLOCK, encode_pairs(CLOCK_SCHEMA, changes, self._core.run.dictionary))


def wall_time() -> dt.datetime:
    """The time that the machine's clock shows, in UTC."""
    return dt.datetime.now(dt.UTC)


def _checked(now: dt.datetime) -> dt.datetime:
    """A moment as the clock holds it: without a time zone it is in UTC, as every TIMESTAMP."""
    if now.tzinfo is None:
        return now.replace(tzinfo=dt.UTC)
    try:
        return now.astimezone(dt.UTC)
    except OverflowError:
        raise EverviewError(f"{shown(now)} is no moment", hint="give one between the years 1 and 9999") from None


def kind_of(clock: str | bool) -> str:
    """The kind of clock by its name; True stands for a clock that moves by itself, False for one moved by `advance`."""
    kind = CLOCKS[clock] if isinstance(clock, bool) else clock
    if kind not in CLOCKS:
        raise EverviewError(f"clock {kind!r} is not known", hint=f"one of {', '.join(map(repr, CLOCKS))}")
    return kind


def first_rows_of(catalog: Catalog, known: Collection[str]) -> list[tuple[dt.datetime]] | None:
    """The first row of a clock that a catalog has and the relations known so far had not."""
    return [(wall_time(),)] if CLOCK in catalog.tables and CLOCK not in known else None
