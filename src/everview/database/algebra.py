"""Programs of PomoRA in a database: every relation that a program assigns to is a view, all defined in one turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from everview.database.frontends import add_text
from everview.frontends.dialects import POMORA

if TYPE_CHECKING:
    from everview.database.core import Core


class Assigned:
    """The views of one program. Made by `Database.datalog`."""

    def __init__(self, database: Core, text: str, heads: Iterable[str]) -> None:
        self._database = database
        self.text, self.dialect, self.heads = text, POMORA, tuple(heads)

    def remove(self) -> None:
        """Drop the views of the program; refused while other views read them."""
        catalog = self._database.catalog
        with self._database.definitions.changing():
            for name in reversed(self.heads):
                catalog = catalog.without(name)
            self._database.definitions.redefine(catalog, [])

    def __repr__(self) -> str:
        return f"<program for {', '.join(self.heads) or 'nothing'}>"


def add_program(database: Core, text: str) -> Assigned:
    """Define the views of a program in one turn, and return their handle."""
    return Assigned(database, text, add_text(database, text, POMORA))
