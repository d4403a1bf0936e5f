"""The numbers of entities: a new entity gets a number that no entity has had."""

from __future__ import annotations

from collections.abc import Iterable

from everview.database.eav.declared import IDS
from everview.database.transaction import OpenTransaction


class Numbers:
    """Numbers for new entities; ``tables`` hold facts, which may be of entities that were not numbered here."""

    def __init__(self, tx: OpenTransaction, tables: Iterable[str], *, kept: bool) -> None:
        self._tx = tx
        self._tables = tuple(tables)
        self._kept = kept  # whether there is a table that holds the greatest
        self._before = self._last = self._stored() if kept else 0
        self._taken: set[object] = set()
        self._looked = self._last  # up to here it is known which are taken
        self._block = 1

    def new(self) -> int:
        """A number for a new entity."""
        self._last += 1
        while self._is_taken(self._last):
            self._last += 1
        return self._last

    def see(self, number: object) -> None:
        """Take note of a number that an entity has."""
        if isinstance(number, int) and number > self._last:
            self._last = number

    def flush(self) -> None:
        """Store the greatest number."""
        if self._kept and self._last > self._before:
            self._tx.upsert(IDS.name, [(0, self._last)])

    def _stored(self) -> int:
        return next((row["last"] for row in self._tx.rows_with(IDS.name, [(0,)])), 0)

    def _is_taken(self, number: int) -> bool:
        if number > self._looked:
            # More and more at a time: one look at each table is as fast for many as for one.
            self._block = min(2 * self._block, 4096)
            self._looked = number + self._block
            wanted = [(n,) for n in range(number, self._looked + 1)]
            self._taken = {row["e"] for table in self._tables for row in self._tx.rows_with(table, wanted)}
        return number in self._taken
