"""In which order rows stand: by some columns, ascending or descending, then by all others.

NULL is before all values, ascending, and after them, descending, unless ``nulls last`` or ``nulls first`` says
otherwise; NaN is the greatest number; texts are ordered by their code points. Rows with equal keys are equal, so a row
is found by its key.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, n BIGINT")
>>> key = sort_key(schema, order_of(schema, ["n desc"]))
>>> sorted([(1, 5), (2, None), (4, 5), (3, 7)], key=key)
[(3, 7), (1, 5), (4, 5), (2, None)]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, Literal, cast

from everview.codes.order import atom_key
from everview.errors import SchemaError, shown
from everview.types import BOOLEAN, DATE, DOUBLE, FLOAT, STRING, TIMESTAMP, Decimal, Field, Schema, Type

Direction = Literal["asc", "desc", "asc nulls last", "desc nulls first"]
Order = tuple[tuple[int, Direction], ...]  # columns by their places
By = str | tuple[str, str]  # "rating desc", or ("rating", "desc")
SortKey = Callable[[Any], Any]
INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


class Down:
    """A value that is less than another where the value itself is greater."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Down) -> bool:
        return other.value < self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Down) and self.value == other.value

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def order_of(schema: Schema, by: By | Iterable[By]) -> Order:
    """An order from names: ``"rating desc"``, ``("rating", "desc")``, or several of these."""
    return tuple(_item(schema, item) for item in ([by] if _single(by) else by))  # pyright: ignore[reportArgumentType]


def _single(by: Any) -> bool:
    return isinstance(by, str) or (isinstance(by, tuple) and len(by) == 2 and _direction(str(by[1])) is not None)  # pyright: ignore[reportUnknownArgumentType]


def _item(schema: Schema, item: By) -> tuple[int, Direction]:
    if not isinstance(item, str) and not (isinstance(item, tuple) and all(isinstance(part, str) for part in item)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SchemaError(f"{shown(item)} is no order", hint='write ordered("rating desc"), or ("rating", "desc")')
    name, how = item if isinstance(item, tuple) else _told_apart(schema, item)
    direction = _direction(how)
    if direction is None:
        raise SchemaError(f"{how} is no direction", hint='write "asc" or "desc", as in ordered("rating desc")')
    return schema.index(name), direction


def _told_apart(schema: Schema, item: str) -> tuple[str, str]:
    """The name and the direction in ``"rating desc nulls first"``; a name may have spaces."""
    if item in schema or " " not in item.strip():
        return item.strip(), "asc"
    found = re.fullmatch(r"(.*?)\s+((?:asc|desc)?\s*(?:nulls\s+(?:first|last))?)", item.strip(), re.IGNORECASE)
    name, _, last = item.rpartition(" ")
    return (found[1], found[2]) if found else (name, last)


def _direction(how: str) -> Direction | None:
    """One of four: where NULL stands is only said where it is not usual."""
    words = how.lower().split()
    way = words.pop(0) if words and words[0] in ("asc", "desc") else "asc"
    if words not in ([], ["nulls", "first"], ["nulls", "last"]):
        return None
    usual = "first" if way == "asc" else "last"
    return cast(Direction, way if not words or words[1] == usual else f"{way} nulls {words[1]}")


def complete(schema: Schema, order: Order) -> Order:
    """The order with all other columns for its ties, ascending; each column once."""
    found: dict[int, Direction] = {}
    for at, direction in (*order, *((at, "asc") for at in range(len(schema)))):
        found.setdefault(at, cast(Direction, direction))
    return tuple(found.items())


def sort_key(schema: Schema, order: Order) -> SortKey:
    """A function of rows whose values compare as the rows do, ties broken by all columns."""
    parts = [(at, _part(schema.fields[at], direction)) for at, direction in complete(schema, order)]
    if all(part is None for _, part in parts):
        return _picked([at for at, _ in parts])
    if all(part is None for _, part in parts[1:]):
        return _first_turned(parts)
    pairs = [(at, part or _same) for at, part in parts]
    return lambda row: tuple([part(row[at]) for at, part in pairs])


def _picked(places: Sequence[int]) -> SortKey:
    if len(places) > 1:
        return itemgetter(*places)
    return (lambda row: (row[places[0]],)) if places else (lambda row: ())


def _first_turned(parts: list[tuple[int, Callable[[Any], Any] | None]]) -> SortKey:
    (first, turn), *others = parts
    rest = _picked([at for at, _ in others])
    assert turn is not None
    return lambda row: (turn(row[first]), *rest(row))


def _same(value: Any) -> Any:
    return value


def _part(field: Field, direction: Direction) -> Callable[[Any], Any] | None:
    """How a column's values become comparable; None if they are so already."""
    turn = _straight(field.type) if direction.startswith("asc") else _turned(field.type)
    if not field.nullable:
        return turn
    value = turn or _same
    if direction in ("asc", "desc nulls first"):
        return lambda v: (0,) if v is None else (1, value(v))
    return lambda v: (1,) if v is None else (0, value(v))


def _straight(of: Type) -> Callable[[Any], Any] | None:
    if of in (FLOAT, DOUBLE):
        return lambda v: (v != v, v if v == v else 0.0)
    return None if _plain(of) else atom_key


def _turned(of: Type) -> Callable[[Any], Any]:
    if of in (FLOAT, DOUBLE):
        return lambda v: (v == v, -v if v == v else 0.0)
    if of == BOOLEAN or of.sql in INTEGERS:
        return lambda v: -v
    if isinstance(of, Decimal):
        return lambda v: v.copy_negate()
    if of == DATE:
        return lambda v: -v.toordinal()
    return Down if _plain(of) else lambda v: Down(atom_key(v))


def _plain(of: Type) -> bool:
    """Whether Python compares values as SQL does."""
    return of in (BOOLEAN, STRING, DATE, TIMESTAMP) or of.sql in (*INTEGERS, "BINARY") or isinstance(of, Decimal)
