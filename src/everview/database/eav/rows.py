"""Changes of rows by the attributes of their tables: gathered by key, and made at the end.

A row that is there is updated. A row that is not there is inserted with all values that were set, which must include
its columns that are NOT NULL.
"""

from __future__ import annotations

from typing import Any

from everview.database.definitions import TableDefinition
from everview.database.eav.changes import fitting
from everview.database.transaction import OpenTransaction
from everview.errors import EverviewError
from everview.frontends.edn.faults import refuse
from everview.frontends.rules.program import NOWHERE, TextPlace


class RowChanges:
    """Gathered changes of rows of a table with a key of one column."""

    def __init__(self, table: TableDefinition, tx: OpenTransaction) -> None:
        self._table, self._tx = table, tx
        (self._key,) = table.key
        self._said: dict[Any, dict[str, Any]] = {}
        self._gone: dict[Any, None] = {}
        self._places: dict[Any, TextPlace] = {}

    def set(self, key: Any, column: str, value: Any, place: TextPlace) -> None:
        """Set a column of the row with a key."""
        key = self._fitting_key(key, place)
        self._places.setdefault(key, place)
        value = fitting(value, self._table.schema[column].type, f"the values of {self._shown(column)}", place)
        if column == self._key and value != key:
            raise refuse(
                place, f"{self._shown(column)} is the key, and does not change", "retract the row, add another"
            )
        self._said.setdefault(key, {})[column] = value

    def unset(self, key: Any, column: str, value: Any, place: TextPlace) -> None:
        """Set a column to NULL if it has this value; with None, whatever its value."""
        key = self._fitting_key(key, place)
        held = self.value(key, column)
        wanted = value if value is None else fitting(value, self._table.schema[column].type, self._shown(column), place)
        if held is None or (wanted is not None and held != wanted):
            return
        if not self._table.schema[column].nullable:
            hint = f"[:db/retractEntity [:{self._table.name}/{self._key} {key!r}]] removes the row"
            raise refuse(place, f"{self._shown(column)} is NOT NULL", hint)
        self._places.setdefault(key, place)
        self._said.setdefault(key, {})[column] = None

    def remove(self, key: Any, place: TextPlace) -> None:
        """Delete the row with a key."""
        key = self._fitting_key(key, place)
        self._said.pop(key, None)
        self._gone[key] = None

    def value(self, key: Any, column: str) -> Any:
        """The value of a column after the changes so far; None for NULL, and where there is no row."""
        said = self._said.get(key, {})
        if column in said:
            return said[column]
        row = None if key in self._gone else self._stored(key)
        return None if row is None else row[column]

    def flush(self) -> None:
        """Make the changes."""
        if self._gone:
            self._tx.delete(self._table.name, [(key,) for key in self._gone])
        for key, said in self._said.items():
            row = {self._key: key, **said}
            if self._stored(key) is not None:
                if set(said) - {self._key}:
                    self._tx.update(self._table.name, [row])
            else:
                self._insert(key, row)

    def _insert(self, key: Any, row: dict[str, Any]) -> None:
        fields = self._table.schema.fields
        known = {**self._table.defaults, **row}
        lacking = [f.name for f in fields if not f.nullable and known.get(f.name) is None]
        if lacking:
            hint = (
                f"give them together: {{:{self._table.name}/{self._key} {key!r}, :{self._table.name}/{lacking[0]} …}}"
            )
            message = f"there is no row of {self._table.name} with {self._key} {key!r}, and a new one needs"
            raise refuse(self._places.get(key, NOWHERE), f"{message} {', '.join(lacking)}", hint)
        empty = {f.name: None for f in fields if f.name not in known}
        try:
            self._tx.insert(self._table.name, [{**empty, **row}])
        except EverviewError as error:
            raise refuse(self._places.get(key, NOWHERE), error.message, error.hint or "") from error

    def _stored(self, key: Any) -> dict[str, Any] | None:
        return next(iter(self._tx.rows_with(self._table.name, [(key,)])), None)

    def _fitting_key(self, key: Any, place: TextPlace) -> Any:
        return fitting(key, self._table.schema[self._key].type, f"the keys of {self._table.name}", place)

    def _shown(self, column: str) -> str:
        return f":{self._table.name}/{column}"
