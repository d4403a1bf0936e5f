"""The protocol of sources: a source answers requests for rows, and tells its changes as updates.

A `Request` says which rows are wanted and in which order; a reply is an iterator of these rows, in order, each once,
which may be left unread. An `Update` is what has changed: rows with weights, without an order, all of them.

A source answers from the state after all updates that it has told so far, and none later: its changes and its replies
inside of one turn are of one state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NewType, Protocol, runtime_checkable

from everview.types import Schema

Row = tuple[Any, ...]
Direction = Literal["asc", "desc"]
Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "not in", "like", "not like", "is", "is not"]


# -- what is asked for


@dataclass(frozen=True, slots=True)
class Compare:
    """A column compared with a value, as SQL does: NULL compares to nothing, but for ``is`` and ``is not``."""

    column: str
    operator: Operator
    value: Any


@dataclass(frozen=True, slots=True)
class All:
    """The conjunction of conditions; of none, true."""

    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Any_:
    """The disjunction of conditions; of none, false."""

    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a condition; of unknown, unknown."""

    condition: Condition


Condition = Compare | All | Any_ | Not


@dataclass(frozen=True, slots=True)
class Request:
    """A request for rows: which ones, in which order, from where on, and how many at most.

    NULL is before all values, ascending, and after them, descending; text and bytes are in the order of their bytes,
    and NaN is after all other numbers. Ties are broken by the key, ascending, so the order is total; ``after`` is a
    row (of the source's columns) that all rows of the reply come after. `everview.sources.order` has that order as a
    function of rows, and `everview.sources.conditions` what a condition says of a row.
    """

    where: Condition = field(default_factory=All)
    order: tuple[tuple[str, Direction], ...] = ()
    after: Row | None = None
    limit: int | None = None

    def and_(self, condition: Condition) -> Request:
        """The request for those of its rows that also meet a condition."""
        known = self.where.conditions if isinstance(self.where, All) else (self.where,)
        return replace(self, where=All((*known, condition)))


# -- what comes back

# Ordered, each row once, may be left before its end; of a source without a key, a row comes as often as it is there.
# The next `begin`, `write`, `commit` or `rollback` ends a reply: who reads on is told so by a `SourceError`.
Reply = Iterator[Row]


@dataclass(frozen=True, slots=True)
class Update:
    """A net change: rows with weights, without an order; no row twice, and none with weight 0."""

    rows: Mapping[Row, int]

    @classmethod
    def of(cls, changes: Iterable[tuple[Row, int]]) -> Update:
        """The net of some changes."""
        net: dict[Row, int] = {}
        for row, weight in changes:
            total = net.get(row, 0) + weight
            if total:
                net[row] = total
            else:
                net.pop(row, None)
        return cls(net)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __iter__(self) -> Iterator[tuple[Row, int]]:
        return iter(self.rows.items())

    def __len__(self) -> int:
        return len(self.rows)


RESYNC: Final = "attach it with resync=True to compare it with the table, row by row"
Position = NewType("Position", str)  # how far a source's changes have been read: text, for it alone to understand


@runtime_checkable
class Source(Protocol):
    """Rows of one relation, kept elsewhere.

    Rows are tuples of the schema's columns, and a value is always the same in Python: a TIMESTAMP is a datetime with
    the zone UTC (which views then show without), a DECIMAL has its scale, an ARRAY is a tuple, NaN is `math.nan`
    itself. So equal rows are equal tuples, whatever source they come from; see `everview.sources.values`.

    Changes come in turns: `begin` opens one, `write` changes rows in it, `changes` tells all that has changed since
    the last turn that was committed (what was written, and what others did; asked again, it tells all of it again),
    `pull` answers from the state that those changes lead to, and `commit` or `rollback` ends it. After a rollback,
    what others did is told again by the next turn. Outside of a turn `pull` answers from the state of the last.
    """

    schema: Schema
    key: tuple[str, ...]  # no two rows have the same; without one, all columns, and a row may be there several times
    rows_read: int  # how many rows it has read for replies so far

    def pull(self, request: Request) -> Reply: ...
    def begin(self) -> None: ...
    def write(self, update: Update) -> None: ...
    def changes(self) -> Update: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


def is_keyed(source: Source) -> bool:
    """Whether no two rows are equal; a source that does not say has a key if that is not all columns."""
    return bool(getattr(source, "keyed", len(source.key) < len(source.schema)))


@runtime_checkable
class Followed(Source, Protocol):
    """A source that can be followed over restarts, because the source can resume from a position given before.

    `position` is asked for inside of a turn, after `changes`: how far those go. It is the same as before if nothing
    has happened. From the first time that it is asked, the source keeps its log until `settle` says that an older
    position will not be resumed from; else committing a turn is enough.
    """

    def position(self) -> Position: ...
    def resume(self, position: Position) -> None:
        """Take up where a position was given; raises `LostPosition` if what came after it is not known any more."""
        ...

    def settle(self, position: Position) -> None: ...
