"""When two engines' rows are the same: as bags, numbers by value with a tolerance, times in UTC."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

Bag = Counter[tuple[Any, ...]]


def bag(rows: Iterable[Sequence[Any]]) -> Bag:
    return Counter(tuple(_cell(value) for value in row) for row in rows)


def same(left: Bag, right: Bag) -> bool:
    """Whether the bags are equal, but for last digits of floats.

    >>> same(bag([(0.1 + 0.2, True)]), bag([(decimal.Decimal("0.3"), True)]))
    True
    >>> same(bag([(1,)]), bag([(True,)]))
    False
    """
    if left == right:
        return True
    missing, unexpected = list((right - left).elements()), list((left - right).elements())
    if len(missing) != len(unexpected):
        return False
    for row in missing:
        partner = next((other for other in unexpected if _close(row, other)), None)
        if partner is None:
            return False
        unexpected.remove(partner)
    return True


def _close(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_close, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    return left == right


def _cell(value: Any) -> Any:
    match value:
        case bool():
            return ("bool", value)  # Python's True equals 1
        case int() | float() | decimal.Decimal():
            return "NaN" if math.isnan(value) else float(f"{float(value):.9g}")
        case dt.datetime():
            return ("time", value.replace(tzinfo=None).isoformat())
        case dt.date():
            return ("date", value.isoformat())
        case list() | tuple():
            return ("array", *map(_cell, value))
        case _:
            return value


def shown(rows: Bag) -> str:
    """The rows in a line, sorted, for a report."""
    plain = sorted((_plain(row) for row in rows.elements()), key=repr)
    text = ", ".join(map(repr, plain[:20]))
    return f"{len(plain)} rows: {text}{', ...' * (len(plain) > 20)}" if plain else "no rows"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        if value and isinstance(value[0], str) and value[0] in ("bool", "time", "date"):
            return value[1]
        if value and value[0] == "array":
            return [_plain(each) for each in value[1:]]
        return tuple(map(_plain, value))
    return value
