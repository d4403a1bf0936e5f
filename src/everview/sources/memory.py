"""Sources in memory: rows by key, or a bag of rows, with indexes as requests need them.

An index is for columns that a request binds to values, and for an order: rows are grouped by these values, each group
in the order. The first request of its kind builds the index; every change then updates it.

>>> from everview.sources.protocol import Compare
>>> tracks = Memory("id BIGINT, title STRING, rating BIGINT", "id", [(1, "a", 3), (2, "b", 5), (3, "c", 4)])
>>> list(tracks.pull(Request(order=(("rating", "desc"),), limit=2))), tracks.rows_read
([(2, 'b', 5), (3, 'c', 4)], 2)
>>> list(tracks.pull(Request(Compare("id", "=", 1)))), tracks.rows_read
([(1, 'a', 3)], 3)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from operator import itemgetter
from threading import RLock
from typing import Any, Final
from uuid import uuid4

from everview.doors import doors
from everview.errors import DuplicateKey, LostPosition, NegativeWeight, SourceError
from everview.orders import SortKey, with_ties
from everview.sources.conditions import normal, test
from everview.sources.index import MemoryIndex, Range, bound
from everview.sources.link import ended
from everview.sources.order import Order, sort_key
from everview.sources.protocol import RESYNC, Position, Reply, Request, Row, Update
from everview.sources.values import keyed, rows_of
from everview.types import Schema

NAME: Final = "a source in memory"


@doors(SourceError)
class Memory:
    """Rows in memory. What is written outside of a turn counts as done by others: the next turn tells of it.

    Other threads wait with writing while a turn is open, so that a rollback does not undo their changes.
    """

    def __init__(self, schema: Schema | str, key: str | Sequence[str] = (), rows: Iterable[Any] = ()) -> None:
        schema = Schema.parse(schema) if isinstance(schema, str) else schema
        self.schema, self.key, self.keyed = keyed(schema, key)
        self.rows_read = 0
        self._row_of = rows_of(self.schema, NAME)
        self._key_of = sort_key(self.schema, tuple((column, "asc") for column in self.key)) if self.keyed else _whole
        self._held = _Held(self.keyed)
        self._indexes: dict[tuple[tuple[str, ...], Order], MemoryIndex] = {}
        self._ahead: list[tuple[Row, int]] = []  # written outside of a turn, to be told of by the next
        self._then: _Held | None = None  # what will be held after that
        self._turn: list[tuple[Row, int]] | None = None
        self._unsure: tuple[int, Any, Any] | None = None  # a row that changes: the turn's length, its key, what was
        self._lock = RLock()  # held by the thread whose turn is open
        self._version, self._turns, self._id = 0, 0, uuid4().hex
        for row in rows:
            self._held.add(self._key_of, self._row_of(row), 1)

    # -- reading

    def pull(self, request: Request) -> Reply:
        """The rows of a request; of an index only the groups that it names are read."""
        order = with_ties(request.order, self.key)
        where = normal(request.where, self.schema)
        columns, values, whole = bound(where)
        index = self._index(columns, order)
        after = None if request.after is None else index.key_of(self._row_of(request.after))
        groups = [group for group in map(index.groups.get, values) if group]
        if not groups or request.limit == 0:
            return iter(())
        within = Range.of(self.schema, order, where, after)
        rows = self._read(within.rows(groups, self.schema, index.key_of))
        if not whole:
            holds = test(where, self.schema)
            rows = (row for row in rows if holds(row))
        return rows if request.limit is None else islice(rows, request.limit)

    def _read(self, rows: Iterator[Row]) -> Iterator[Row]:
        version = self._version
        for row in rows:
            if self._version != version:
                raise ended()
            self.rows_read += 1
            yield row

    def _index(self, columns: tuple[str, ...], order: Order) -> MemoryIndex:
        index = self._indexes.get((columns, order))
        if index is None:
            for column in (*columns, *(column for column, _ in order)):
                self.schema.index(column)
            index = self._indexes[columns, order] = MemoryIndex.of(self.schema, columns, order, self._held)
        return index

    # -- turns

    def begin(self) -> None:
        self._lock.acquire()
        if self._turn is not None:  # an exception has cut one short, in this thread
            self._undo(0)
            self._lock.release()
        self._turn = []
        for row, weight in self._ahead:
            self._change(row, weight)

    def write(self, update: Update) -> None:
        """Change rows: all, or none if one change cannot be made."""
        changes = sorted(((self._row_of(row), weight) for row, weight in update), key=itemgetter(1))
        with self._lock:
            if self._turn is None:
                then, self._then = self._then or self._with_ahead(), None  # of no use if it takes only some of them
                then.add_all(self._key_of, changes)
                self._ahead += changes
                self._then = then
            else:
                self._write(changes, len(self._turn))

    def _with_ahead(self) -> _Held:
        """What will be held after what is written ahead of the next turn."""
        then = _Held(self.keyed, self._held)
        then.add_all(self._key_of, self._ahead)
        return then

    def _write(self, changes: list[tuple[Row, int]], before: int) -> None:
        try:
            for row, weight in changes:
                self._change(row, weight)
        except BaseException:
            self._undo(before)
            raise

    def changes(self) -> Update:
        assert self._turn is not None, "changes are told inside of a turn"
        return Update.of(self._turn)

    def commit(self) -> None:
        if self._turn is None:  # an exception came when it was done already
            return
        self._turns += bool(self._turn)
        self._turn, self._ahead, self._then = None, [], None
        self._version += 1
        self._lock.release()

    def rollback(self) -> None:
        if self._turn is None:  # it has not begun, or an exception came when it was done already
            return
        self._undo(0)
        self._turn = None
        self._lock.release()

    def close(self) -> None:
        """Do nothing: rows live as long as the source."""

    def _change(self, row: Row, weight: int) -> None:
        assert self._turn is not None
        key = self._key_of(row)
        self._unsure = len(self._turn), key, self._held.get(key)
        try:
            self._held.add(self._key_of, row, weight)
        except Exception:
            self._unsure = None  # nothing has changed
            raise
        for index in self._indexes.values():
            index.change(row, weight)
        self._turn.append((row, weight))
        self._version += 1
        self._unsure = None

    def _make_sure(self) -> None:
        """Undo a change of one row that an exception has cut short; indexes are made again when they are needed."""
        if self._unsure is not None:
            assert self._turn is not None
            length, key, before = self._unsure
            self._held.put(key, before)
            self._indexes = {}
            self._version += 1
            del self._turn[length:]
            self._unsure = None

    def _undo(self, before: int) -> None:
        assert self._turn is not None
        self._make_sure()
        while len(self._turn) > before:
            row, weight = self._turn[-1]
            self._change(row, -weight)
            del self._turn[-2:]

    # -- positions, which are this object's alone

    def position(self) -> Position:
        return Position(f"{self._id}:{self._turns + bool(self._turn)}")

    def resume(self, position: Position) -> None:
        if position != self.position():
            raise LostPosition("rows in memory do not outlive their process", hint=RESYNC)

    def settle(self, position: Position) -> None:
        """Do nothing: nothing is kept for older positions."""


def _whole(row: Row) -> Row:
    return row


class _Held:
    """The rows that are held, by key or in a bag with counts; perhaps as changes on top of others."""

    def __init__(self, keyed: bool, under: _Held | None = None) -> None:
        self.keyed, self.under = keyed, under
        self.found: dict[Any, Any] = {}  # by key, the row; by row, how often. What is empty is not there.

    def __iter__(self) -> Iterator[Row]:
        if self.keyed:
            return iter(self.found.values())
        return chain.from_iterable(repeat(row, count) for row, count in self.found.items())

    def get(self, key: Any) -> Any:
        held = self.found.get(key)
        return self.under.get(key) if held is None and self.under is not None else held

    def put(self, key: Any, value: Any) -> None:
        if value or self.under is not None:
            self.found[key] = value
        else:
            self.found.pop(key, None)

    def add(self, key_of: SortKey, row: Row, weight: int) -> None:
        """Add a row as often as its weight says; raises, before anything has changed, if that cannot be."""
        key = key_of(row)
        there = self.get(key)
        if not self.keyed:
            count = (there or 0) + weight
            if count < 0:
                raise _absent(row)
            self.put(key, count)
        elif weight == 1:
            if there:
                raise DuplicateKey(f"{NAME} would hold two rows with the key {key!r}", hint="remove the other first")
            self.put(key, row)
        elif weight == -1:
            if there != row:
                raise _absent(row)
            self.put(key, ())
        else:
            raise NegativeWeight(f"a row with a key is there once, not {weight} times: {row}", hint="give 1 or -1")

    def add_all(self, key_of: SortKey, changes: Iterable[tuple[Row, int]]) -> None:
        """Add all changes; raises at the first that cannot be made."""
        for row, weight in changes:
            self.add(key_of, row, weight)


def _absent(row: Row) -> NegativeWeight:
    return NegativeWeight(f"a row would be removed that is not there: {row}", hint="rows are removed as they are")
