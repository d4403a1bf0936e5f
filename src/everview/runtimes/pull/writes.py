"""The changes of one source that a transaction has collected, before they are written.

In a source with a key, rows are replaced and removed by key: the row under a key is pulled once. A nested transaction
that fails goes back to its savepoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from everview.codes.encode import WEIGHT
from everview.codes.frames import as_arrow, is_frame, python_rows
from everview.codes.ingest import as_rows, check_once, ingest, ingest_weighted
from everview.codes.rows import to_rows
from everview.errors import DefinitionError, DuplicateKey, NegativeWeight, WrongArity, WrongType, shown
from everview.runtimes.pull.conditions import looked_up
from everview.runtimes.pull.demand import Among, Row
from everview.runtimes.pull.scan import MOST_KEYS
from everview.sources.protocol import Request, Source, Update, is_keyed
from everview.sources.values import rows_of
from everview.types import unknown_name

NO_KEY = "a source without a key is changed by whole rows: insert and delete"
Held = dict[Row, tuple[Row | None, Row | None]]  # by key: what is there, and what is to be


_reading = lru_cache(maxsize=256)(rows_of)


class Writes:
    """The collected changes of one source: by key if it has one, else by row."""

    def __init__(self, name: str, source: Source) -> None:
        self.name, self.source = name, source
        self._row_of = _reading(source.schema, name)
        self._places = tuple(source.schema.index(column) for column in source.key)
        self.keyed = is_keyed(source)
        self._held: Held = {}
        self._bag: dict[Row, int] = {}

    # -- what is to change

    def insert(self, rows: Any) -> int:
        """Add rows; one whose key is there is refused."""
        given = self._weighted(rows)
        if self.keyed:
            self._settle()
            self._apply_by_key(given)
        else:
            self.apply(given)
        return sum(weight for _, weight in given)

    def upsert(self, rows: Any) -> int:
        """Add rows in place of those with their keys; of several with one key the last counts."""
        self._require_key("upsert")
        given = [row for row, _ in self._weighted(rows, once="upsert")]
        self._settle()
        held = self._known(map(self._key, given))
        for row in given:
            held[self._key(row)] = (held[self._key(row)][0], row)
        self._held.update(held)
        return len(given)

    def delete(self, rows: Any) -> int:
        """Remove rows: by their keys if there is one, and those that are not there are no mistake."""
        if not self.keyed:
            given = self._weighted(rows)
            self.apply([(row, -weight) for row, weight in given])
            return sum(weight for _, weight in given)
        keys = list(dict.fromkeys(self._keys(rows)))
        self._settle()
        held = self._known(keys)
        gone = [key for key in keys if held[key][1] is not None]
        self._held.update({key: (held[key][0], None) for key in keys})
        return len(gone)

    def update(self, rows: Any) -> int:
        """Set the columns that a row names beside its key; a tuple names all. Absent rows are passed over."""
        self._require_key("update")
        given = [(self._key_of(values), values) for values in map(self._by_name, _listed(rows))]
        self._settle()
        held = self._known(key for key, _ in given)
        found = [(key, values) for key, values in given if held[key][1] is not None]
        for key, values in found:
            there, now = held[key]
            held[key] = (there, self._row_of(dict(zip(self.source.schema.names, now or (), strict=True)) | values))
        self._held.update(held)
        return len({key for key, _ in found})

    def apply(self, changes: Any) -> None:
        """Add rows with weights; what cannot be is refused by the source, when they are written."""
        for row, weight in self._pairs(changes):
            self._bag[row] = self._bag.get(row, 0) + weight

    def _settle(self) -> None:
        """Turn rows with weights into changes by key, before a command that works by key."""
        if self._bag and self.keyed:
            self._apply_by_key(list(self._bag.items()))
            self._bag = {}

    def _apply_by_key(self, pairs: list[tuple[Row, int]]) -> None:
        """Take in rows with weights by key: removals first, so that a key may be used again."""
        held = self._known(self._key(row) for row, _ in pairs)
        net = Update.of(pairs)
        for row, weight in sorted(net, key=lambda pair: pair[1]):
            key = self._key(row)
            there, now = held[key]
            if weight < 0 and (weight < -1 or now != row):
                raise NegativeWeight(f"{self.name}: a row would be removed that is not there: {row}", hint="look again")
            if weight > 0 and (weight > 1 or now is not None):
                hint = "upsert replaces it"
                raise DuplicateKey(f"{self.name} would hold two rows with the key {key}", hint=hint)
            held[key] = (there, row if weight > 0 else None)
        self._held.update(held)

    # -- what it comes to

    def net(self) -> Update:
        """The net change of the source."""
        changes = dict(self._bag)
        for there, now in self._held.values():
            if there == now:
                continue
            if there is not None:
                changes[there] = changes.get(there, 0) - 1
            if now is not None:
                changes[now] = changes.get(now, 0) + 1
        return Update({row: weight for row, weight in changes.items() if weight})

    def savepoint(self) -> tuple[Held, dict[Row, int]]:
        """The changes collected so far, for `back_to`."""
        return dict(self._held), dict(self._bag)

    def back_to(self, savepoint: tuple[Held, dict[Row, int]]) -> None:
        """Forget what has been collected since a savepoint."""
        self._held, self._bag = savepoint

    # -- inside

    def _key(self, row: Row) -> Row:
        return tuple(row[column] for column in self._places)

    def _known(self, keys: Iterable[Row]) -> Held:
        """The rows under some keys: as the source has them, and as they will be."""
        wanted = set(keys)
        known: Held = {key: self._held[key] for key in wanted if key in self._held}
        lacking = list(wanted - set(known))
        known.update(dict.fromkeys(lacking, (None, None)))
        for start in range(0, len(lacking), MOST_KEYS):
            part = Among(self._places, frozenset(lacking[start : start + MOST_KEYS]))
            condition, _ = looked_up(part, self.source.schema)
            for row in self.source.pull(Request(condition)):
                if (key := self._key(row)) in known:
                    known[key] = (row, row)
        return known

    def _require_key(self, what: str) -> None:
        if not self.keyed:
            raise DefinitionError(f"{what}: source {self.name} has no key", hint=NO_KEY)

    def _weighted(self, rows: Any, *, once: str = "") -> list[tuple[Row, int]]:
        """Rows with the weights that a table, a frame or a dict has in ``_weight``; ``once`` refuses all but 1."""
        if isinstance(rows, list) and not any(isinstance(row, Mapping) and WEIGHT in row for row in rows):
            return [(self._row_of(row), 1) for row in rows]
        table, weights = ingest(self.source.schema, rows)
        if once:
            check_once(weights, once)
        return list(zip(map(self._row_of, to_rows(self.source.schema, table)), weights.tolist(), strict=True))

    def _pairs(self, changes: Any) -> list[tuple[Row, int]]:
        if isinstance(changes, list):
            return [(self._row_of(row), weight) for row, weight in _checked(changes)]
        if isinstance(changes, Update):
            return list(changes)
        table, weights = ingest_weighted(self.source.schema, changes)
        rows = map(self._row_of, to_rows(self.source.schema, table))
        return list(zip(rows, weights.tolist(), strict=True))

    def _keys(self, rows: Any) -> list[Row]:
        """The keys of rows, which may be whole rows or keys only."""
        return [self._key_of(row) for row in _listed(rows)]

    def _by_name(self, row: Any) -> dict[str, Any]:
        """The values of a row to be updated, by columns."""
        if isinstance(row, Mapping):
            return dict(row)
        if isinstance(row, tuple | list) and len(row) == len(self.source.schema):
            return dict(zip(self.source.schema.names, row, strict=True))
        raise WrongType(
            f"{self.name}: {shown(row)} names no columns", hint="update takes dicts, whole rows, or a table"
        )

    def _key_of(self, row: Any) -> Row:
        names = self.source.key
        if isinstance(row, Mapping):
            for column in row:
                if column not in self.source.schema:
                    raise unknown_name("column", str(column), self.source.schema.names)
            lacking = [column for column in names if column not in row]
            if lacking:
                raise WrongArity(f"{self.name}: {row!r} has no {lacking[0]}", hint=f"the key is {', '.join(names)}")
            values = tuple(row[column] for column in names)
        else:
            values = tuple(row) if isinstance(row, tuple | list) else (row,)
            if len(values) == len(self.source.schema):
                return self._key(self._row_of(values))
        if len(values) != len(names):
            raise WrongArity(f"{self.name}: {row!r} is no key", hint=f"the key is {', '.join(names)}")
        return _reading(self.source.schema.select(names), self.name)(values)


def _listed(rows: Any) -> Sequence[Any]:
    """Rows in any form, one by one: those of a table or frame as dicts."""
    table = as_arrow(rows)
    if table is not None:
        return table.to_pylist()
    return python_rows(rows) if is_frame(rows) else as_rows(rows)


def _checked(changes: list[Any]) -> list[Any]:
    for place, pair in enumerate(changes):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[1], int):
            hint = "write ((1, 'a'), +1): a row, and how often it is added or removed"
            raise WrongArity(f"rows[{place}] is {pair!r}, which is no pair of a row and a weight", hint=hint)
    return changes
