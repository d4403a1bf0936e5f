"""Tables of databases as sources: requests become SQL, and changes come from a log that triggers write.

This is what SQLite and PostgreSQL share. A turn is one transaction, and sees one state of the table and its log.
Outside of a turn, replies are of the state of the last turn: what the log has since then is undone in them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import islice
from typing import Any, Generic, TypeVar

from everview.errors import BadRows, NegativeWeight, SourceError
from everview.orders import with_ties
from everview.sources.conditions import normal, test
from everview.sources.index import at_most
from everview.sources.link import Link, ended
from everview.sources.order import beyond, segments, sort_key
from everview.sources.past import before
from everview.sources.protocol import All, Condition, Position, Reply, Request, Row, Update
from everview.sources.sql import Dialect, Sql, select
from everview.sources.values import rows_of
from everview.types import Schema

Mark = TypeVar("Mark")  # how far a log has been read
NOTHING = Update({})


class TableLog(ABC, Generic[Mark]):
    """The log of a table's changes, read in the open transaction."""

    @abstractmethod
    def since(self, mark: Mark) -> tuple[Update, Mark]:
        """The net change since a mark, and the new mark."""

    @abstractmethod
    def text(self, mark: Mark) -> Position: ...

    @abstractmethod
    def read(self, position: Position) -> Mark:
        """The mark that a position names; raises `LostPosition`."""

    @abstractmethod
    def trim(self, mark: Mark) -> None:
        """Note that this reader will not ask for anything before a mark."""

    @abstractmethod
    def take_over(self, new: Mark, old: Mark) -> None:
        """Go on as the reader that a position names, instead of the new one."""

    @abstractmethod
    def leave(self, mark: Mark) -> None:
        """Forget a reader that will not come back."""

    @abstractmethod
    def uninstall(self) -> None:
        """Remove the log and its triggers."""


class TableSource(ABC, Generic[Mark]):
    """A table of a database as a source. Subclasses say how it is read and written."""

    name: str
    schema: Schema
    key: tuple[str, ...]
    keyed: bool
    link: Link
    dialect: Dialect
    table: str  # quoted
    computed: frozenset[str] = frozenset()  # columns that the database computes, and nobody writes
    inserting: str = ""  # what an INSERT says besides
    log: TableLog[Mark] | None  # None: it is not watched
    mark: Mark  # how far changes have been told

    def __init__(self) -> None:
        self.rows_read = 0
        self._version = 0
        self._lasting = False
        self._next: Mark | None = None  # how far changes have been told in this turn
        self._asked = 0  # at which version that was
        self._given = rows_of(self.schema, self.name)

    # -- reading

    def pull(self, request: Request) -> Reply:
        """The rows of a request, read from a cursor as they are taken."""
        order, where = with_ties(request.order, self.key), normal(request.where, self.schema)
        for column, _ in order:
            self.schema.index(column)
        after = None if request.after is None else self._given(request.after)
        if request.limit == 0:
            return iter(())
        return self._reply(Request(where, order, after, request.limit), (self.link.age, self._version))

    def _reply(self, request: Request, asked: tuple[int, int]) -> Reply:
        if asked != (self.link.age, self._version):
            raise ended()
        with self.link.reply():
            changes = NOTHING if self.link.in_turn(self) or self.log is None else self.log.since(self.mark)[0]
            rows = self._rows(replace(request, limit=None) if changes else request, asked)
            if changes:
                holds = test(All((request.where, self._after(request))), self.schema)
                rows = before(rows, changes, holds, sort_key(self.schema, request.order))
            yield from rows if request.limit is None else islice(rows, request.limit)

    def _after(self, request: Request) -> Condition:
        return All() if request.after is None else beyond(request.order, self.schema, request.after)

    def _rows(self, request: Request, asked: tuple[int, int]) -> Iterator[Row]:
        """The rows of a request; those after a row are asked for in ranges that an index can seek."""
        parts = [All()] if request.after is None else segments(request.order, self.schema, request.after)
        left = request.limit
        most = at_most(request.where, self.key) if self.keyed else None
        for part in parts:
            where = request.where if request.after is None else All((request.where, part))
            few = left if most is None else most if left is None else min(left, most)
            for row in self._fetch(select(self.dialect, self.table, self.schema, where, request.order, few), few):
                yield row
                if asked != (self.link.age, self._version):
                    raise ended()
                left = None if left is None else left - 1
            if left == 0:
                return

    @abstractmethod
    def _fetch(self, query: Sql, limit: int | None) -> Iterator[Row]:
        """The rows of a query, canonical, and counted in `rows_read` as they are fetched."""

    # -- turns

    def begin(self) -> None:
        self._next = None
        self.link.begin(self)

    def write(self, update: Update) -> None:
        """Change rows of the table: a row that replaces one with its key by UPDATE, others by DELETE and INSERT."""
        self._watched()
        self.link.writing()
        self._version += 1
        for sql, row in statements(self, update):
            if self._execute(sql) != 1 and row is not None:
                hint = "rows are removed as they are; another may have changed it"
                raise NegativeWeight(f"{self.name}: a row would be removed that is not there: {row}", hint=hint)

    @abstractmethod
    def _execute(self, statement: Sql) -> int:
        """Run a statement; how many rows it changed."""

    @abstractmethod
    def one_of(self, where: str) -> str:
        """A condition that only one of the rows meets that meet another condition."""

    def changes(self) -> Update:
        assert self.link.in_turn(self), "changes are told inside of a turn"
        if self.log is None:
            return NOTHING
        self.link.reading()
        update, self._next = self.log.since(self.mark)
        self._asked = self._version
        return update

    def commit(self) -> None:
        if self._next is None or self._asked != self._version:
            self.changes()  # what was not asked for counts as told
        told = self._next
        self.link.commit(self, lambda: self._told(told))

    def rollback(self) -> None:
        self._version += 1
        self.link.rollback(self)

    def _told(self, mark: Mark | None) -> None:
        if self.log is None or mark is None:
            return
        self.mark = mark
        if not self._lasting:
            self.log.trim(mark)

    # -- positions

    def position(self) -> Position:
        self._lasting = True
        return self._watched().text(self.mark if self._next is None else self._next)

    def resume(self, position: Position) -> None:
        """Take up where a position was given."""
        with self.link.reply():
            mark = self._watched().read(position)
        self._watched().take_over(mark, self.mark)
        self.mark, self._lasting = mark, True

    def settle(self, position: Position) -> None:
        with self.link.reply():
            mark = self._watched().read(position)
        self._watched().trim(mark)

    def uninstall(self) -> None:
        """Remove the triggers and the log: no reader is told of changes any more."""
        self._watched().uninstall()
        self.log = None

    def close(self) -> None:
        """Leave the connection, and close our own one; the log forgets a reader that was asked for no position."""
        if self.log is not None and not self._lasting:
            with suppress(SourceError):  # a reader that does not come any more is forgotten in time
                self.log.leave(self.mark)
        self.log = None
        self.link.leave()

    def _watched(self) -> TableLog[Mark]:
        if self.log is None:
            raise SourceError(f"{self.name} is not watched, and so only read", hint="open it with watch=True")
        return self.log


Raw = TypeVar("Raw", bound=Hashable)


def told(changes: Iterable[tuple[Raw, int]], read: Callable[[Raw], Row]) -> Update:
    """The net of changes, with canonical rows. A row that does not fit was never told, so its removal is left out."""
    net: dict[Raw, int] = {}
    for raw, weight in changes:
        net[raw] = net.get(raw, 0) + weight
    fitting: list[tuple[Row, int]] = []
    for raw, weight in net.items():
        if weight:
            with suppress(BadRows) if weight < 0 else nullcontext():
                fitting.append((read(raw), weight))
    return Update.of(fitting)


def statements(source: TableSource[Any], update: Update) -> Iterator[tuple[Sql, Row | None]]:
    """The statements of an update, each with the row that must be there: first removals, last insertions."""
    given = source._given  # pyright: ignore[reportPrivateUsage]
    old = {(given(row)): -weight for row, weight in update if weight < 0}
    new = {(given(row)): weight for row, weight in update if weight > 0}
    pairs: list[tuple[Row, Row]] = []
    if source.keyed:
        key = key_of(source)
        by_key = {key(row): row for row in old}
        pairs = [(by_key[key(row)], row) for row in new if key(row) in by_key]
    replaced, replacing = {row for row, _ in pairs}, {row for _, row in pairs}
    for row, count in old.items():
        yield from () if row in replaced else ((_delete(source, row), row) for _ in range(count))
    for gone, come in pairs:
        yield _replace(source, gone, come), gone
    for row, count in new.items():
        yield from () if row in replacing else ((_insert(source, row), None) for _ in range(count))


def key_of(source: TableSource[Any]) -> Callable[[Row], Any]:
    return sort_key(source.schema, tuple((column, "asc") for column in source.key))


def _is(source: TableSource[Any], row: Row) -> Sql:
    dialect, values, parts = source.dialect, list[Any](), list[str]()
    for column, value in zip(source.schema.names, row, strict=True):
        by = "=" if value is not None and column in source.key else dialect.same
        parts.append(f"{dialect.equal(column)} {by} {dialect.mark(column)}")
        values.append(dialect.bind(column, value))
    return " AND ".join(parts), values


def _delete(source: TableSource[Any], row: Row) -> Sql:
    where, values = _is(source, row)
    return f"DELETE FROM {source.table} WHERE {where if source.keyed else source.one_of(where)}", values


def _replace(source: TableSource[Any], old: Row, new: Row) -> Sql:
    where, values = _is(source, old)
    dialect, pairs = source.dialect, zip(old, new, source.schema.names, strict=True)
    changed = [(column, dialect.bind(column, b)) for a, b, column in pairs if a != b and column not in source.computed]
    sets = ", ".join(f"{dialect.name(column)} = {dialect.mark(column)}" for column, _ in changed)
    return f"UPDATE {source.table} SET {sets} WHERE {where}", [*(value for _, value in changed), *values]


def _insert(source: TableSource[Any], row: Row) -> Sql:
    dialect, pairs = source.dialect, zip(source.schema.names, row, strict=True)
    bound = {column: dialect.bind(column, value) for column, value in pairs if column not in source.computed}
    columns, marks = ", ".join(map(dialect.name, bound)), ", ".join(map(dialect.mark, bound))
    return f"INSERT INTO {source.table} ({columns}){source.inserting} VALUES ({marks})", [*bound.values()]
