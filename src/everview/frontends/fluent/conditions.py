"""Conditions of fluent queries: comparisons of columns, joined by AND, OR and NOT.

>>> col("rating") > 3
ColumnTest(column='rating', operator='>', value=3)
>>> ~col("name").like("A%")
NotCondition(part=ColumnTest(column='name', operator='like', value='A%'))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from everview.errors import QueryError, shown
from everview.types import unknown_name

# What may be written, and what it is called here.
OPERATORS: Final[dict[str, str]] = {
    "=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
    "in": "in", "not in": "not in", "like": "like", "not like": "not like", "ilike": "ilike",
    "not ilike": "not ilike", "is": "is", "is not": "is not", "between": "between", "not between": "not between",
}  # fmt: skip


class Condition:
    """A condition that is true of a row, false, or unknown; combined by ``&``, ``|`` and ``~``."""

    __slots__ = ()

    def __and__(self, other: Any) -> Condition:
        return And((self, condition(other)))

    def __rand__(self, other: Any) -> Condition:
        return And((condition(other), self))

    def __or__(self, other: Any) -> Condition:
        return Or((self, condition(other)))

    def __ror__(self, other: Any) -> Condition:
        return Or((condition(other), self))

    def __invert__(self) -> Condition:
        return NotCondition(self)

    def __bool__(self) -> bool:
        raise QueryError(
            "a condition is not true or false by itself: it is asked of every row",
            hint="join conditions by & | ~ instead of and, or, not, and put each in parentheses",
        )


@dataclass(frozen=True, slots=True)
class ColumnTest(Condition):
    """A column compared with a value, with another column, or with several values."""

    column: str
    operator: str
    value: Any


@dataclass(frozen=True, slots=True)
class And(Condition):
    """All of some conditions; of none, true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or(Condition):
    """One of some conditions; of none, false."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class NotCondition(Condition):
    """The opposite of a condition; unknown stays unknown."""

    part: Condition


@dataclass(frozen=True, slots=True, eq=False)
class Col:
    """A column, to compare: ``col("rating") > 3``."""

    name: str

    def __eq__(self, value: object) -> Condition:  # pyright: ignore[reportIncompatibleMethodOverride]
        return compare(self.name, "=", value)

    def __ne__(self, value: object) -> Condition:  # pyright: ignore[reportIncompatibleMethodOverride]
        return compare(self.name, "!=", value)

    def __lt__(self, value: Any) -> Condition:
        return compare(self.name, "<", value)

    def __le__(self, value: Any) -> Condition:
        return compare(self.name, "<=", value)

    def __gt__(self, value: Any) -> Condition:
        return compare(self.name, ">", value)

    def __ge__(self, value: Any) -> Condition:
        return compare(self.name, ">=", value)

    def in_(self, values: Iterable[Any]) -> Condition:
        """The column equals one of the values."""
        return compare(self.name, "in", values)

    def not_in(self, values: Iterable[Any]) -> Condition:
        """The column equals none of the values."""
        return compare(self.name, "not in", values)

    def like(self, pattern: str) -> Condition:
        """The column is like a pattern, in which % is any text and _ any character."""
        return compare(self.name, "like", pattern)

    def ilike(self, pattern: str) -> Condition:
        """The column is like a pattern, whatever the case."""
        return compare(self.name, "ilike", pattern)

    def between(self, low: Any, high: Any) -> Condition:
        """The column is at least the one value and at most the other."""
        return compare(self.name, "between", (low, high))

    def is_null(self) -> Condition:
        """The column is NULL."""
        return compare(self.name, "is", None)

    def is_not_null(self) -> Condition:
        """The column is not NULL."""
        return compare(self.name, "is not", None)

    def _no_arithmetic(self, *_: Any) -> Any:
        raise QueryError(
            f'col("{self.name}") is compared, and not computed with',
            hint=f'compute the value first, as in col("{self.name}") > 3 + 1, or write the query in SQL: db.sql',
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __abs__ = _no_arithmetic
    __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __pow__ = __getitem__ = __call__ = _no_arithmetic

    def _no_condition(self, *_: Any) -> Any:
        raise QueryError(
            f'col("{self.name}") is a column, and no condition by itself',
            hint=f'compare it: col("{self.name}") == True, and put each condition in parentheses',
        )

    __and__ = __rand__ = __or__ = __ror__ = __invert__ = __bool__ = _no_condition
    __hash__ = None  # pyright: ignore[reportAssignmentType]


def col(name: str) -> Col:
    """A column to compare, or to compare with: ``col("price") > col("budget")``."""
    return Col(column_name(name))


def compare(column: Any, operator: Any, value: Any) -> ColumnTest:
    """A comparison as it is written, its operator and its values checked."""
    name = column.name if isinstance(column, Col) else column_name(column)
    if not isinstance(operator, str):
        raise QueryError(f"{shown(operator)} is no operator", hint=f"one of {', '.join(OPERATORS)}")
    known = OPERATORS.get(" ".join(operator.lower().split()))
    if known is None:
        raise unknown_name("operator", operator, OPERATORS)
    try:
        return ColumnTest(name, known, _value(name, known, value))
    except RecursionError:
        raise QueryError(f"{name} {known} a list that is nested too deeply", hint="give plain values") from None


def _value(name: str, known: str, value: Any) -> Any:
    value = _plain(value)
    if known in ("in", "not in"):
        return _several(name, known, value)
    if known in ("between", "not between"):
        value = _several(name, known, value)
        if len(value) != 2:
            raise QueryError(f"{name} {known} {len(value)} values", hint="give a pair: (low, high)")
    return value


def _several(name: str, operator: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | Col) or not isinstance(value, Iterable):
        raise QueryError(f"{name} {operator} {shown(value)}, which is a single value", hint=f"write [{shown(value)}]")
    return tuple(map(_plain, value))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _plain(value: Any) -> Any:
    """A NumPy number as Python's, and a list as a tuple, since a query must not change when a list does."""
    if isinstance(value, list):
        return list(map(_plain, value))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value


def condition(given: Any, *rest: Any) -> Condition:
    """A condition as it may be written: itself, ``("rating", ">", 3)``, or its three parts."""
    match (given, *rest):
        case (Condition(),):
            return given
        case ((column, operator, value),) if isinstance(given, tuple | list):
            return compare(column, operator, value)
        case (column, operator, value):
            return compare(column, operator, value)
        case (column, value) if isinstance(column, str):
            return compare(column, "=", value)
        case _:
            raise QueryError(
                f"{shown((given, *rest))} is no condition", hint='write ("rating", ">", 3), or col("rating") > 3'
            )


def and_(*parts: Any) -> Condition:
    """All of them; each a condition, or ``(column, operator, value)``."""
    return And(tuple(condition(part) for part in parts))


def or_(*parts: Any) -> Condition:
    """At least one of them."""
    return Or(tuple(condition(part) for part in parts))


def not_(part: Any, *rest: Any) -> Condition:
    """The opposite."""
    return NotCondition(condition(part, *rest))


def column_name(name: Any) -> str:
    """The name of a column; anything else is refused."""
    if isinstance(name, Col):
        return name.name
    if not isinstance(name, str) or not name:
        raise QueryError(f"{shown(name)} names no column", hint='write its name: "rating", or "track.rating"')
    return name


def relation_name(name: Any) -> str:
    """The name of a relation in a query, or of rows beneath; anything else is refused."""
    if not isinstance(name, str) or not name:
        raise QueryError(f"{shown(name)} is no name", hint='give a text: "artist"')
    return valid_text(name)


def valid_text(name: str) -> str:
    """A name that can be written down."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise QueryError(f"the name {shown(name)} is no valid text", hint="it has half of a character") from None
    return name


def columns(condition: Condition) -> tuple[str, ...]:
    """The names of the columns that a condition reads."""
    match condition:
        case ColumnTest(column, _, value):
            values = value if isinstance(value, tuple) else (value,)
            return (column, *(v.name for v in values if isinstance(v, Col)))
        case And(parts) | Or(parts):
            return tuple(name for part in parts for name in columns(part))
        case NotCondition(part):
            return columns(part)
        case _:
            raise AssertionError(f"{condition} is no condition")
