"""Simple expressions as Python functions of a row: columns, constants, comparisons, logic, and casts that only widen.

Truth has three values, None is NULL. NaN equals itself and is greater than every number; text is compared by code
point, which is the order of its bytes.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from everview.errors import BadPattern
from everview.runtimes.pull.demand import Row
from everview.scalars.expressions import Call, Cast, Column, Expression, Literal
from everview.scalars.functions.patterns import like_regex
from everview.sources.conditions import decided, negated
from everview.types import BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, STRING, TIME, TIMESTAMP, TIMESTAMP_NTZ, Decimal, Type

Run = Callable[[Row], Any]
WIDTHS: Final = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}  # digits
FLOATS: Final = (FLOAT, DOUBLE)
DIGITS: Final = decimal.Context(prec=80)


@lru_cache(maxsize=4096)
def simple(expression: Expression) -> Run | None:
    """The expression as a function of a row; None if it is not simple."""
    match expression:
        case Column(index):
            return lambda row: row[index]
        case Literal(value, of):
            return (lambda row: value) if value is None or plain(of) else None
        case Cast(argument, of, _):
            return _widened(argument, of)
        case Call("and" | "or" | "not" | "is_null" | "is_not_null" | "coalesce" as name, arguments):
            runs = [simple(a) for a in arguments]
            return _LOGIC[name](*[r for r in runs if r is not None]) if all(runs) else None
        case Call("in", (value, *chosen)):
            return _in(value, chosen)
        case Call("like", (value, Literal(str() as pattern), *escape)):
            return _like(value, pattern, escape)
        case Call("null_safe_equal", (a, b)):
            return _null_safe(a, b)
        case Call(name, (a, b)) if name in _PLAIN:
            return _compared(name, a, b)
        case _:
            return None


def plain(type_: Type) -> bool:
    """Whether Python compares values of a type as SQL does, but for NaN."""
    scalar = type_ in (BOOLEAN, *FLOATS, DATE, TIMESTAMP, STRING, BINARY, TIME, TIMESTAMP_NTZ)
    return scalar or type_.sql in WIDTHS or isinstance(type_, Decimal)


# -- logic


def _coalesce(*runs: Run) -> Run:
    return lambda row: next((value for one in runs if (value := one(row)) is not None), None)


_LOGIC: Final[dict[str, Callable[..., Run]]] = {
    "and": lambda *runs: decided(runs, by=False),
    "or": lambda *runs: decided(runs, by=True),
    "not": negated,
    "coalesce": _coalesce,
    "is_null": lambda one: lambda row: one(row) is None,
    "is_not_null": lambda one: lambda row: one(row) is not None,
}


# -- comparisons


def _equal(a: Any, b: Any) -> bool:
    return a == b or (a != a and b != b)


def _less(a: Any, b: Any) -> bool:
    return a < b or (a == a and b != b)


_PLAIN: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}
_OF_FLOATS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "equal": _equal,
    "not_equal": lambda a, b: not _equal(a, b),
    "less": _less,
    "less_equal": lambda a, b: not _less(b, a),
    "greater": lambda a, b: _less(b, a),
    "greater_equal": lambda a, b: not _less(a, b),
}


def _both(a: Expression, b: Expression) -> tuple[Run, Run] | None:
    x, y = simple(a), simple(b)
    return None if x is None or y is None or a.type != b.type or not plain(a.type) else (x, y)


def _compared(name: str, a: Expression, b: Expression) -> Run | None:
    both = _both(a, b)
    if both is None:
        return None
    x, y = both
    meets = (_OF_FLOATS if a.type in FLOATS else _PLAIN)[name]

    def run(row: Row) -> bool | None:
        p, q = x(row), y(row)
        return None if p is None or q is None else meets(p, q)

    return run


def _null_safe(a: Expression, b: Expression) -> Run | None:
    both = _both(a, b)
    if both is None:
        return None
    x, y = both

    def run(row: Row) -> bool:
        p, q = x(row), y(row)
        return p is q if p is None or q is None else _equal(p, q)

    return run


def _in(value: Expression, chosen: list[Expression]) -> Run | None:
    one = simple(value)
    constants = [c.value for c in chosen if isinstance(c, Literal) and (c.value is None or c.type == value.type)]
    if one is None or len(constants) < len(chosen) or not plain(value.type) or value.type in FLOATS:
        return None
    known = frozenset(c for c in constants if c is not None)
    otherwise = None if len(known) < len(constants) and None in constants else False

    def run(row: Row) -> bool | None:
        member = one(row)
        return None if member is None else True if member in known else otherwise

    return run


def _like(value: Expression, pattern: str, escape: list[Expression]) -> Run | None:
    one, mark = simple(value), escape[0].value if escape and isinstance(escape[0], Literal) else "\\"
    if one is None:
        return None
    try:
        compiled = re.compile(like_regex(pattern, mark))
    except BadPattern:
        return None  # the evaluator says what is wrong, when a row comes to it

    def run(row: Row) -> bool | None:
        text = one(row)
        return None if text is None else compiled.fullmatch(text) is not None

    return run


# -- casts


def _widened(argument: Expression, type_: Type) -> Run | None:
    one, change = simple(argument), widening(argument.type, type_)
    if one is None or change is None:
        return None

    def run(row: Row) -> Any:
        value = one(row)
        return None if value is None else change(value)

    return run


def widening(old: Type, new: Type) -> Callable[[Any], Any] | None:
    """The function that turns a value into one of a wider type; None if the type is not wider."""
    if old == new or (old.sql in WIDTHS and new.sql in WIDTHS and WIDTHS[old.sql] <= WIDTHS[new.sql]):
        return lambda value: value
    if old.sql in WIDTHS and new == DOUBLE:
        return float
    if old == DATE and new == TIMESTAMP:
        return lambda value: dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if not isinstance(new, Decimal):
        return None
    kind = Decimal(WIDTHS[old.sql], 0) if old.sql in WIDTHS else old
    if not isinstance(kind, Decimal) or kind.scale > new.scale:
        return None
    unit = decimal.Decimal(1).scaleb(-new.scale)
    fits = kind.precision - kind.scale <= new.precision - new.scale
    return (lambda value: decimal.Decimal(value).quantize(unit, context=DIGITS)) if fits else None
