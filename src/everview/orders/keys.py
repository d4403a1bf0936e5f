"""Sort keys: Python values that compare as SQL orders the rows they are made of.

NULL is before all values, ascending, and after them, descending, unless a direction says otherwise. NaN is the greatest
number; text is ordered by code points, which is the order of its UTF-8 bytes; arrays and values of type ANY are
ordered as `everview.codes.order` says.

>>> from everview.types import Schema
>>> key = row_key(Schema.parse("id BIGINT NOT NULL, n BIGINT"), ((1, "desc"), (0, "asc")))
>>> sorted([(4, 5), (2, None), (1, 5), (3, 7)], key=key)
[(3, 7), (1, 5), (4, 5), (2, None)]
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any, Final, Literal, TypeVar, cast

from everview.codes.order import atom_key
from everview.types import Decimal, Field, ScalarType, Schema, Type

Direction = Literal["asc", "desc", "asc nulls last", "desc nulls first"]  # NULLs are named where they are not as usual
Order = tuple[tuple[int, Direction], ...]  # columns by their places
SortKey = Callable[[Any], Any]
ColumnKey = Callable[[Any], Any]
C = TypeVar("C", bound=Hashable)
D = TypeVar("D", bound=str)

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_WITHOUT_ZONE: Final = dt.datetime(1970, 1, 1)


def with_ties(order: Iterable[tuple[C, D]], ties: Iterable[C]) -> tuple[tuple[C, D | Literal["asc"]], ...]:
    """An order, and behind it the columns that break its ties, ascending; each column once.

    >>> with_ties([(2, "desc"), (2, "asc")], [0, 2])
    ((2, 'desc'), (0, 'asc'))
    """
    directions: dict[C, D | Literal["asc"]] = {}
    for column, direction in order:
        directions.setdefault(column, direction)
    for column in ties:
        directions.setdefault(column, "asc")
    return tuple(directions.items())


def direction_of(words: str) -> Direction | None:
    """The direction that words like ``DESC NULLS LAST`` name, None if they name none.

    >>> direction_of("desc nulls last"), direction_of("nulls last"), direction_of("up")
    ('desc', 'asc nulls last', None)
    """
    way, *nulls = words.lower().split() or ["asc"]
    if way not in ("asc", "desc"):
        way, nulls = "asc", [way, *nulls]
    if nulls not in ([], ["nulls", "first"], ["nulls", "last"]):
        return None
    usual = "first" if way == "asc" else "last"
    return cast(Direction, way if not nulls or nulls[1] == usual else f"{way} nulls {nulls[1]}")


class Descending:
    """A value that is less than another where the value itself is greater."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Descending) -> bool:
        return other.value < self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.value == other.value

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def row_key(schema: Schema, order: Sequence[tuple[int, Direction]]) -> SortKey:
    """The function from a row to a tuple that compares as the rows stand in an order."""
    parts = [(column, column_key(schema.fields[column], direction)) for column, direction in order]
    if all(part is None for _, part in parts):
        return _picked([column for column, _ in parts])
    if all(part is None for _, part in parts[1:]):
        return _first_turned(parts)
    pairs = [(column, part or _same) for column, part in parts]
    return lambda row: tuple([part(row[column]) for column, part in pairs])


def column_key(field: Field, direction: Direction) -> ColumnKey | None:
    """The function from a column's value to what compares in a direction; None if the value itself does."""
    turn = _ascending(field.type) if direction.startswith("asc") else _descending(field.type)
    if not field.nullable:
        return turn
    value = turn or _same
    if direction in ("asc", "desc nulls first"):
        return lambda v: (0,) if v is None else (1, value(v))
    return lambda v: (1,) if v is None else (0, value(v))


def _picked(places: Sequence[int]) -> SortKey:
    if len(places) > 1:
        return itemgetter(*places)
    return (lambda row: (row[places[0]],)) if places else (lambda row: ())


def _first_turned(parts: list[tuple[int, ColumnKey | None]]) -> SortKey:
    """A key of which only the first column is not the value itself: the others are picked at once."""
    (first, turn), *others = parts
    assert turn is not None, "else all columns are picked"
    if not others:
        return lambda row: (turn(row[first]),)
    rest = _picked([column for column, _ in others])
    return lambda row: (turn(row[first]), *rest(row))


def _same(value: Any) -> Any:
    return value


def _ascending(type_: Type) -> ColumnKey | None:
    if type_.sql in ("FLOAT", "DOUBLE"):
        return lambda v: (v != v, v if v == v else 0.0)
    return None if _compares_itself(type_) else atom_key


def _descending(type_: Type) -> ColumnKey:
    """Values negated where they can be: comparing numbers is much faster than comparing `Descending`."""
    match type_:
        case ScalarType("FLOAT" | "DOUBLE"):
            return lambda v: (v == v, -v if v == v else 0.0)
        case ScalarType("TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "BOOLEAN") | ScalarType(
            "INTERVAL YEAR TO MONTH" | "INTERVAL DAY" | "INTERVAL DAY TO SECOND"
        ):
            return lambda v: -v
        case Decimal():
            return decimal.Decimal.copy_negate
        case ScalarType("DATE"):
            return lambda v: -v.toordinal()
        case ScalarType("TIMESTAMP" | "TIMESTAMP_NTZ"):
            return lambda v: (_EPOCH if v.tzinfo else _EPOCH_WITHOUT_ZONE) - v
        case _ if _compares_itself(type_):
            return Descending
        case _:
            return lambda v: Descending(atom_key(v))


def _compares_itself(type_: Type) -> bool:
    """Whether Python compares values of a type as SQL does."""
    return isinstance(type_, Decimal) or (isinstance(type_, ScalarType) and type_.sql not in ("FLOAT", "DOUBLE", "ANY"))
