"""The meaning of functions of arrays, one list at a time."""

from __future__ import annotations

import calendar
import datetime as dt
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cmp_to_key, reduce
from itertools import pairwise
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue
from everview.oracle.scalar_maps import made as made_map
from everview.oracle.scalar_order import compare
from everview.types import Array, Struct, Type


def _same(a: Any, b: Any) -> bool:
    return compare(a, b) == 0


def _among(item: Any, items: list[Any]) -> bool:
    return any(_same(item, other) for other in items)


def _different(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        if not _among(item, kept):
            kept.append(item)
    return kept


def _insert(items: list[Any] | None, position: int | None, element: Any) -> list[Any] | None:
    if items is None or position is None:
        return None
    if position == 0:
        raise NoValue("no position 0")
    if position < 0:
        turned = _insert(items[::-1], -position, element)
        assert turned is not None
        return turned[::-1]
    longer = items + [None] * (position - 1 - len(items))
    return [*longer[: position - 1], element, *longer[position - 1 :]]


def _slice(items: list[Any], start: int, size: int) -> list[Any]:
    if start == 0 or size < 0:
        raise NoValue("no such slice")
    first = start - 1 if start > 0 else len(items) + start
    return [] if first < 0 else items[first : first + size]


def _overlap(a: list[Any], b: list[Any]) -> bool | None:
    if any(item is not None and _among(item, b) for item in a):
        return True
    return None if a and b and (None in [*a, *b]) else False


def _zip(type_: Type, types: list[Type], values: list[Any]) -> list[dict[str, Any]]:
    assert isinstance(type_, Array) and isinstance(type_.element, Struct)
    names = [field.name for field in type_.element.fields]
    places = range(max(map(len, values)))
    return [
        {name: items[at] if at < len(items) else None for name, items in zip(names, values, strict=True)}
        for at in places
    ]


def _sequence(type_: Type, types: list[Type], values: list[Any]) -> list[Any]:
    start, stop = values[:2]
    step: Any = values[2]
    moments = isinstance(start, dt.date)
    months = moments and "MONTH" in types[2].sql
    if moments and not months:
        step = dt.timedelta(microseconds=step) if isinstance(step, int) else step
    none: Any = dt.timedelta() if moments and not months else 0
    if start == stop:
        return [start]
    if step == none or (step > none) != (stop > start):
        raise NoValue("the step leads away")
    if not moments and (stop - start) // step > 10**6:
        raise NoValue("too long")
    listed: list[Any] = []
    while True:
        at = _months_on(start, step * len(listed)) if months else start + step * len(listed)
        if at is None or (at > stop if step > none else at < stop):
            return listed
        listed.append(at)


def _months_on(when: Any, months: int) -> Any:
    year, month = divmod(when.year * 12 + when.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return None
    return when.replace(year=year, month=month + 1, day=min(when.day, calendar.monthrange(year, month + 1)[1]))


def _last(items: list[Any]) -> list[Any]:
    known = sorted((item for item in items if item is not None), key=cmp_to_key(compare))
    return known + [None] * (len(items) - len(known))


def _standardized(power: int) -> Callable[[list[float | None]], float | None]:
    """The moment of a power around the mean in units of the deviation, exactly up to the last step."""

    def run(given: list[float | None]) -> float | None:
        values = [value for value in given if value is not None]
        if not values:
            return None
        if not all(map(math.isfinite, values)):
            return math.nan
        mean = sum(map(Fraction, values)) / len(values)
        second, moment = (sum((Fraction(v) - mean) ** p for v in values) / len(values) for p in (2, power))
        if second == 0:
            return None
        if power == 4:
            return float(moment / second**2 - 3)
        return math.copysign(math.sqrt(moment**2 / second**3), -1 if moment < 0 else 1)

    return run


def _product(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return reduce(lambda a, b: a * b, known[1:], known[0]) if known else None


def _counts(values: list[Any]) -> Any:
    counts: list[list[Any]] = []
    for value in values:
        if value is None:
            continue
        if counts and compare(counts[-1][0], value) == 0:
            counts[-1][1] += 1
        else:
            counts.append([value, 1])
    return made_map([(value, count) for value, count in counts]) if counts else None


def _histogram(values: list[float | None], bins: int) -> list[dict[str, float]] | None:
    made: list[tuple[float, float]] = []
    for value in values:
        if value is None or not math.isfinite(value):
            continue
        if made and made[-1][0] == value:
            made[-1] = (value, made[-1][1] + 1.0)
            continue
        made = [*made, (value, 1.0)]
        if len(made) > bins:
            gaps = [b[0] - a[0] for a, b in pairwise(made)]
            closest = gaps.index(min(gaps))
            (a, n), (b, m) = made[closest : closest + 2]
            made = [*made[:closest], ((a * n + b * m) / (n + m), n + m), *made[closest + 2 :]]
    return [{"x": x, "y": y} for x, y in made] or None


def _most_frequent(items: list[Any], absent: int, most: int) -> list[dict[str, Any]]:
    there = sorted((item for item in items if item is not None), key=cmp_to_key(compare))
    counted = [(item, sum(_same(item, other) for other in there)) for item in _different(there)]
    counted += [(None, absent)] * (absent > 0)
    ranked = sorted(counted, key=lambda pair: -pair[1])
    return [{"item": item, "count": count} for item, count in ranked[: max(most, 0)]]


def _of(function: Callable[..., Any]) -> Callable[[Type, list[Type], list[Any]], Any]:
    return lambda type_, types, values: function(*values)


ARRAYS: Final[Mapping[str, Callable[[Type, list[Type], list[Any]], Any]]] = {
    "array_append": _of(lambda items, element: None if items is None else [*items, element]),
    "array_prepend": _of(lambda items, element: None if items is None else [element, *items]),
    "array_insert": _of(_insert),
    "array_compact": _of(lambda items: [item for item in items if item is not None]),
    "array_remove": _of(lambda items, element: [i for i in items if i is None or not _same(i, element)]),
    "array_position": _of(
        lambda items, e: next((n for n, i in enumerate(items, 1) if i is not None and _same(i, e)), 0)
    ),
    "array_repeat": _of(lambda element, count: None if count is None else [element] * count),
    "slice": _of(_slice),
    "get": _of(lambda items, index: items[index] if 0 <= index < len(items) else None),
    "array_union": _of(lambda a, b: _different(a + b)),
    "array_intersect": _of(lambda a, b: [item for item in _different(a) if _among(item, b)]),
    "array_except": _of(lambda a, b: [item for item in _different(a) if not _among(item, b)]),
    "arrays_overlap": _of(_overlap),
    "arrays_zip": _zip,
    "sequence": _sequence,
    "array_sort": _of(_last),
    "skewness_of": _of(_standardized(3)),
    "kurtosis_of": _of(_standardized(4)),
    "histogram_of": _of(_histogram),
    "product_of": _of(_product),
    "counts_of": _of(_counts),
    "most_frequent_of": _of(_most_frequent),
}
SEES_NULL: Final = ("array_append", "array_prepend", "array_insert", "array_repeat")
