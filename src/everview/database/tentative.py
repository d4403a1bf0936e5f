"""Definitions undone when the changes after them fail: a table is made and filled, or not made at all."""

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
        """Begin: from now on a failure undoes what is done."""
        assert self._database.access.tentative is None, "one at a time"
        self._database.access.tentative = self

    def end(self, error: BaseException | None) -> None:
        """All of it counts, or nothing."""
        if error is None:
            self.counts = True
        self.settle()

    def settle(self) -> None:
        """Undo the definitions if the block does not count, and forget the block. Repeating the call is harmless."""
        if not self.counts:
            self._undo()
        self._database.access.tentative = None


def undoing_table(database: Core, name: str) -> Callable[[], None]:
    """The undo of a table about to be defined: a function to drop the table again. Its name must be free now."""
    assert name not in database.catalog.tables, "the name is free"

    def undo() -> None:
        if name in database.catalog.tables:
            database.definitions.drop(name)

    return undo
