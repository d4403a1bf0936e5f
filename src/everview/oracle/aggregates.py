"""The meaning of aggregates: plain functions of a group's rows, each with its weight.

Numbers are whole multiples of a unit (1, a power of ten, 2^-1074), so that sums and squares are Python's integers:
exact, in one pass, and rounded once at the end. Aggregates that read an order take the values of positive weight, a
value of weight w as w values.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from everview.errors import WeightOverflow
from everview.operators.aggregate import Aggregate, Call
from everview.operators.functions import Function
from everview.operators.index import Direction
from everview.oracle.calls import answers
from everview.oracle.rows import Entry, Row, Rows, picking
from everview.oracle.values import Keyed, in_order, rank
from everview.types import BIGINT, DOUBLE, FLOAT, INTERVALS, YEAR_MONTH, Array, Decimal, Schema, Type

DIGITS = decimal.Context(prec=100, traps=[decimal.Inexact])
FINEST = 1074  # every float is a multiple of 2^-1074
LONGEST = 2**31 - 1  # values that a list may have

Values = list[tuple[Any, int]]


def aggregated(aggregate: Aggregate, group: Sequence[int], rows: Rows, functions: Mapping[str, Function]) -> Rows:
    """A row for every group whose weights sum to more than zero."""
    there = {key: entries for key, entries in rows.by(group).items() if sum(w for _, w in entries) > 0}
    results = [_results(call, aggregate.source, list(there.values()), functions) for call in aggregate.calls]
    return Rows({key + tuple(values): 1 for key, *values in zip(there, *results, strict=True)})


def result(call: Call, schema: Schema, entries: list[Entry], functions: Mapping[str, Function] | None = None) -> Any:
    """The result of a call for one group."""
    return _results(call, schema, [entries], functions or {})[0]


def _results(call: Call, schema: Schema, groups: list[list[Entry]], functions: Mapping[str, Function]) -> list[Any]:
    """The results of a call for all groups."""
    if not call.fields:
        return [sum(w for _, w in entries) for entries in groups]
    if call.function == "user":
        assert call.returns is not None, "a user's function has a type"
        types = [Array(schema.fields[f].type) for f in call.fields]
        given = [_lists(call, ordered(call, schema, entries)) for entries in groups]
        return answers(functions[call.user], types, given, call.returns.type)
    one = _meaning(call, schema)
    return [one(entries) for entries in groups]


def _meaning(call: Call, schema: Schema) -> Callable[[list[Entry]], Any]:
    """The function from a group's entries to the result of a call."""
    type_, result = schema.fields[call.fields[0]].type, call.result(schema, "result").type
    match call.function:
        case "count":
            return lambda entries: sum(w for _, w in _present(call, entries))
        case "sum" | "avg" | "avg double":
            return lambda entries: _sum(call, type_, result, _values(call, entries))
        case "variance" | "variance pop":
            return lambda entries: _rounded(_variance(call, type_, _values(call, entries)))
        case "stddev" | "stddev pop":
            return lambda entries: _root(_variance(call, type_, _values(call, entries)))
        case "try sum" | "try avg":
            plain = replace(call, function=call.function.removeprefix("try "))
            return lambda entries: _tried(plain, type_, result, _values(call, entries))
        case "covariance" | "covariance pop":
            return lambda entries: _rounded(_covariance(call, list(_present(call, entries))))
        case "bit_and" | "bit_or" | "bit_xor":
            return lambda entries: _bitwise(call, _values(call, entries))
        case "bool_and" | "bool_or":
            return lambda entries: _truth(call, _values(call, entries))
        case "min" | "max":
            return _extreme(call, type_)
        case "first" | "last":
            place = {"first": 0, "last": -1}[call.function]
            return lambda entries: [value for (value,), _ in ordered(call, schema, entries) or [((None,), 1)]][place]
        case "percentile" | "percentile discrete" | "quantile":
            return lambda entries: _percentile(call, type_, ordered(call, schema, entries))
        case "mode":
            return lambda entries: _mode(ordered(call, schema, entries))
        case "array":
            return lambda entries: _lists(call, ordered(call, schema, entries))[0]
        case "string":
            return lambda entries: _text(call, ordered(call, schema, entries))
        case _:
            raise AssertionError(f"the oracle knows no {call.function}")


def _present(call: Call, entries: Sequence[Entry]) -> Iterator[Entry]:
    """The arguments of a call in entries without NULL; different ones once if it is DISTINCT."""
    pick = picking(call.fields)
    picked = ((pick(row), w) for row, w in entries)
    values = ((value, w) for value, w in picked if None not in value)
    return ((value, 1) for value, w in Rows.of(values) if w > 0) if call.distinct else values


def _values(call: Call, entries: Sequence[Entry]) -> Values:
    """The arguments of a call of one field."""
    if call.distinct:
        return [(value, w) for (value,), w in _present(call, entries)]
    (field,) = call.fields
    return [(row[field], w) for row, w in entries if row[field] is not None]


# -- added up


def _multiples(type_: Type) -> tuple[Callable[[Any], int], int]:
    """A function from a finite number to its count of units, and the number of units in 1."""
    if isinstance(type_, Decimal):
        return (lambda value: int(value.scaleb(type_.scale, DIGITS))), 10**type_.scale
    if type_ in (FLOAT, DOUBLE):
        return _float_multiple, 1 << FINEST
    return int, 1


def _float_multiple(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator << (FINEST + 1 - denominator.bit_length())


def _endless(type_: Type, values: Values) -> list[float]:
    """The infinities and NaN whose weights do not cancel, once each."""
    if type_ not in (FLOAT, DOUBLE):
        return []
    sums: dict[float, int] = {}
    for value, w in values:
        if not math.isfinite(value):
            sums[value] = sums.get(value, 0) + w
    return [value for value, w in sums.items() if w]


def _finite(type_: Type, values: Values) -> Values:
    return [(value, w) for value, w in values if math.isfinite(value)] if type_ in (FLOAT, DOUBLE) else values


def _sum(call: Call, type_: Type, result: Type, values: Values) -> Any:
    """The exact sum or quotient, rounded once; with an infinity or NaN, that, or NaN if there are several."""
    count = sum(w for _, w in values)
    if count == 0:
        return None
    divisor = 1 if call.function == "sum" else count
    endless = _endless(type_, values)
    if endless:
        # NaN is always the same object: that is how it equals itself inside a row.
        lone = math.copysign(1, divisor) * endless[0]
        return lone if len(endless) == 1 and lone == lone else math.nan
    multiple, unit = _multiples(type_)
    total = sum(multiple(value) * w for value, w in _finite(type_, values))
    if result == BIGINT:
        return _in_range(total, call, result)
    if type_ in INTERVALS:
        return _interval(Fraction(total, divisor), call, result)
    exact = Fraction(total, unit * divisor)
    return _in_range(_decimal(exact, result), call, result) if isinstance(result, Decimal) else _float(exact)


def _interval(x: Fraction, call: Call, type_: Type) -> int:
    """Months or microseconds, rounded half away from zero."""
    size = math.floor(abs(x) + Fraction(1, 2))
    most = 2**31 - 1 if type_ == YEAR_MONTH else 2**63 - 1
    if size > most + (x < 0 and type_ == YEAR_MONTH):
        raise WeightOverflow(f"{call.function} left the range of {type_}", hint="cast it first")
    return size if x >= 0 else -size


def _tried(call: Call, type_: Type, result: Type, values: Values) -> Any:
    try:
        return _sum(call, type_, result, values)
    except WeightOverflow:
        return None


def _decimal(x: Fraction, type_: Decimal) -> decimal.Decimal:
    """A fraction as a DECIMAL, rounded once, half away from zero."""
    scaled = x * 10**type_.scale
    size = math.floor(abs(scaled) + Fraction(1, 2))
    return decimal.Decimal(size if scaled >= 0 else -size).scaleb(-type_.scale, DIGITS)


def _float(x: Fraction) -> float:
    try:
        return x.numerator / x.denominator  # Python divides integers with one rounding, to nearest even
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _in_range(value: Any, call: Call, type_: Type) -> Any:
    limit = 10 ** (type_.precision - type_.scale) if isinstance(type_, Decimal) else 2**63
    if -limit <= value < limit and (type_ == BIGINT or value != -limit):
        return value
    raise WeightOverflow(f"{call.function} of a group left the range of {type_}", hint="cast it to a wider type")


def _variance(call: Call, type_: Type, values: Values) -> Fraction | float | None:
    """The exact variance; NULL for too few values, NaN if one is not finite."""
    count, lost = sum(w for _, w in values), 0 if call.function.endswith("pop") else 1
    if count <= lost:
        return None
    if _endless(type_, values):
        return math.nan
    multiple, unit = _multiples(type_)
    numbers = [(multiple(value), w) for value, w in _finite(type_, values)]
    sums, squares = sum(x * w for x, w in numbers), sum(x * x * w for x, w in numbers)
    return Fraction(count * squares - sums * sums, count * (count - lost) * unit * unit)


def _covariance(call: Call, pairs: list[Entry]) -> Fraction | float | None:
    """The exact covariance; NULL for too few pairs, NaN if a number is not finite."""
    count, lost = sum(w for _, w in pairs), 0 if call.function.endswith("pop") else 1
    if count <= lost:
        return None
    if any(_endless(DOUBLE, [(pair[side], w) for pair, w in pairs]) for side in (0, 1)):
        return math.nan
    finite = [(Fraction(x), Fraction(y), w) for (x, y), w in pairs if math.isfinite(x) and math.isfinite(y)]
    # Of a pair with one number that is not finite, and cancelled, the other one counts in its sum.
    sums = [sum(Fraction(pair[side]) * w for pair, w in pairs if math.isfinite(pair[side])) for side in (0, 1)]
    return (count * sum(x * y * w for x, y, w in finite) - sums[0] * sums[1]) / (count * (count - lost))


def _bitwise(call: Call, values: Values) -> int | None:
    """All values bit by bit; a value of weight w counts w times."""
    count = sum(w for _, w in values)
    if count == 0:
        return None
    total = 0
    for bit in range(64):
        ones = sum(w for value, w in values if value >> bit & 1)
        one = {"bit_and": ones == count, "bit_or": ones > 0, "bit_xor": ones % 2 == 1}[call.function]
        total += one << bit
    return total - (1 << 64) if total >> 63 else total


def _rounded(x: Fraction | float | None) -> float | None:
    return _float(x) if isinstance(x, Fraction) else x


def _root(x: Fraction | float | None) -> float | None:
    """The square root; computed on a value scaled by a power of four, as the square may be beyond the floats."""
    if not isinstance(x, Fraction):
        return x
    if x <= 0:
        return 0.0 if x == 0 else math.nan
    power = x.numerator.bit_length() - x.denominator.bit_length()
    power -= power % 2
    return math.ldexp(math.sqrt(_float(x / Fraction(2) ** power)), power // 2)


def _truth(call: Call, values: Values) -> bool | None:
    """All are true if none is false, any is true if one is; of no values, NULL."""
    trues = sum(w for value, w in values if value)
    falses = sum(w for value, w in values if not value)
    if trues <= 0 and falses <= 0:
        return None
    return trues > 0 if call.function == "bool_or" else falses <= 0


# -- in order


def _extreme(call: Call, type_: Type) -> Callable[[list[Entry]], Any]:
    """The least or greatest value of positive weight, NULL if there is none."""
    choose, key = (min if call.function == "min" else max), rank(type_)

    def extreme(entries: list[Entry]) -> Any:
        values = _values(call, entries)
        if any(w < 0 for _, w in values):
            values = [(value, w) for value, w in _sums(values).items() if w > 0]
        return choose((value for value, _ in values), key=key, default=None)

    return extreme


def _sums(values: Values) -> dict[Any, int]:
    sums: dict[Any, int] = {}
    for value, w in values:
        sums[value] = sums.get(value, 0) + w
    return sums


def ordered(call: Call, schema: Schema, entries: list[Entry]) -> list[Entry]:
    """The arguments of a call, in the order that it asks for and then in their own; with weights, all positive."""
    items = [*call.order, *((field, Direction.ASC) for field in call.fields)]
    order: list[Keyed] = [(place, schema.fields[f].type, how) for place, (f, how) in enumerate(items)]
    arguments = picking(range(len(call.order), len(items)))
    pick = picking([field for field, _ in items])
    chosen = [(row, w) for row, w in Rows.of((pick(row), w) for row, w in entries) if w > 0]
    if not call.nulls:
        chosen = [(row, w) for row, w in chosen if None not in arguments(row)]
    return [(arguments(row), 1 if call.distinct else w) for row, w in in_order(chosen, order)]


def _percentile(call: Call, type_: Type, values: Sequence[Entry]) -> Any:
    """The value at a fraction of the group, as the reference of aggregates says; numbers as floats."""
    count = sum(w for _, w in values)
    if count == 0:
        return None
    number = isinstance(type_, Decimal) or type_.sql in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE")
    if call.function != "percentile":
        value = _at(values, max(1, math.ceil(call.fraction * count)) - 1)
        return float(value) if number and call.function == "percentile discrete" else value
    place = call.fraction * (count - 1)
    low, high = math.floor(place), math.ceil(place)
    a, b = float(_at(values, low)), float(_at(values, high))
    if a == b or (a != a and b != b):
        return a
    between = (high - place) * a + (place - low) * b
    return math.nan if between != between else between + 0.0


def _mode(values: Sequence[Entry]) -> Any:
    """The most frequent value; of several, the first in the order; NULL of none."""
    ((value,), _) = max(values, key=lambda entry: entry[1], default=((None,), 0))
    return value


def _at(values: Sequence[Entry], place: int) -> Any:
    """The value at a place, counted from 0; a value of weight w takes w."""
    for (value,), w in values:
        if place < w:
            return value
        place -= w
    raise AssertionError("a place inside the group")


def _lists(call: Call, values: Sequence[Entry]) -> Row:
    """A list for every argument, each value as often as it weighs."""
    count = sum(w for _, w in values)
    if count > LONGEST:
        name = call.user or call.function
        raise WeightOverflow(f"{name} of a group would take {count:,} values", hint="group by more columns")
    return tuple(tuple(row[place] for row, w in values for _ in range(w)) for place in range(len(call.fields)))


def _text(call: Call, values: Sequence[Entry]) -> str | None:
    (texts,) = _lists(call, values)
    return call.separator.join(texts) if texts else None
