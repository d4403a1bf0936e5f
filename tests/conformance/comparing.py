"""When two results are the same: as bags, numbers by value to nine digits, times as text."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any


def comparable(rows: Iterable[Sequence[Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(_cell(value) for value in row) for row in rows)


def _cell(value: Any) -> Any:
    match value:
        case None | bool():
            return value
        case int() | float() | decimal.Decimal():
            return "NaN" if math.isnan(value) else float(f"{float(value):.9g}")
        case dt.datetime():
            return value.replace(tzinfo=None).isoformat()
        case dt.date():
            return value.isoformat()
        case list() | tuple():
            return tuple(_cell(item) for item in value)
        case dict():
            return tuple((key, _cell(item)) for key, item in value.items())
        case _:
            return value
