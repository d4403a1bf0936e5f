"""Definitions that count only if what follows them does: a table that is made to be filled, or is not there at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from everview.blocks import Block

if TYPE_CHECKING:
    from everview.database.core import Core


class Tentative(Block[None]):
    """A block in which definitions change, and then rows; if no tick of it counts, ``undo`` takes the former back.

    ``undo`` is called again should an exception cut it short. If the block raises nothing, all of it counts.
    """

    def __init__(self, database: Core, undo: Callable[[], None]) -> None:
        self._database, self._undo = database, undo
        self.counts = False

    def begin(self) -> None:
        """From now on it is known what to undo."""
        assert self._database.access.tentative is None, "one at a time"
        self._database.access.tentative = self

    def end(self, error: BaseException | None) -> None:
        """All of it counts, or nothing."""
        if error is None:
            self.counts = True
        self.settle()

    def settle(self) -> None:
        """Undo it, if it does not count. It may be repeated."""
        if not self.counts:
            self._undo()
        self._database.access.tentative = None


def undoing_table(database: Core, name: str) -> Callable[[], None]:
    """What takes back a table that is defined after this, under a name that is free."""
    assert name not in database.catalog.tables, "the name is free"

    def undo() -> None:
        if name in database.catalog.tables:
            database.definitions.drop(name)

    return undo
