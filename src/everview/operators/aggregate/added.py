"""Aggregates of what was added up: counts, sums, averages, variances, and whether all or any are true."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from everview.errors import WeightOverflow
from everview.kernels import exact_sum, quotients, sums
from everview.operators.aggregate.call import Call
from everview.operators.aggregate.floats import Flags
from everview.operators.aggregate.result_types import FLOATS
from everview.operators.aggregate.weigh import SQUARES, Kind, Need, counted, sum_kind
from everview.operators.form import Line
from everview.types import BIGINT, DOUBLE, INTERVALS, NULL_WORD, YEAR_MONTH, Decimal, Field, Schema
from everview.types.words import Matrix, Words

TRY: Final = "try "  # before what gives NULL where it would overflow
WIDEST: Final = 38  # decimal digits


@dataclass(frozen=True)
class Sums:
    """What was added up for some groups: a row a group, a column a place."""

    dense: Matrix
    places: Mapping[Need, slice]
    source: Schema  # of the rows before weighing

    def of(self, need: Need) -> Matrix:
        return np.ascontiguousarray(self.dense[:, self.places[need]])

    def counts(self, call: Call) -> Words:
        """The number of values that a call aggregates, for each group."""
        return self.of(counted(self.source, call))[:, 0]

    def digits(self, call: Call, kind: Kind) -> Matrix:
        return self.of((kind, call.fields[0], call.fields if call.distinct else ()))


def _count(call: Call, result: Field, sums: Sums) -> Matrix:
    return sums.counts(call)[:, None]


def _sum_or_mean(call: Call, result: Field, sums: Sums) -> Matrix:
    attempt, call = call.function.startswith(TRY), replace(call, function=call.function.removeprefix(TRY))
    counts, field = sums.counts(call), sums.source.fields[call.fields[0]]
    words, overflow = _sum(call, field, result, sums.digits(call, sum_kind(field)), counts)
    if attempt and overflow is not None:
        return _nulled(words, (overflow != 0) | (counts == 0), result)
    if overflow is not None and overflow.any():
        raise WeightOverflow(
            f"{call.function}({field.name}) of a group left the range of {result.type}",
            hint="cast the field to a wider type before adding it up",
        )
    return _nulled(words, counts == 0, result)


def _sum(call: Call, field: Field, result: Field, digits: Matrix, counts: Words) -> tuple[Matrix, np.ndarray | None]:
    """The value words of a sum or average (without a NULL flag), and where it is out of range."""
    float_sum = field.type.sql in FLOATS
    if call.function == "avg double" and isinstance(field.type, Decimal):
        return quotients.averages(digits, counts, field.type.scale)[:, None], None
    if call.function in ("avg", "avg double") and result.type == DOUBLE:
        average = exact_sum.average_floats if float_sum else exact_sum.average_integers
        return average(digits, counts)[:, None], None
    if float_sum:
        return exact_sum.round_floats(digits)[:, None], None
    if field.type in INTERVALS and call.function == "avg":  # rounded, halves away from zero
        _, low, overflow = exact_sum.average_decimals(digits, counts, 0, WIDEST)
        return (low ^ np.int64(NULL_WORD))[:, None], overflow
    if not isinstance(result.type, Decimal):
        values, overflow = exact_sum.finish_integers(digits, *_bounds(result))
        return values[:, None], overflow
    precision = result.type.precision
    if call.function == "avg":
        assert isinstance(field.type, Decimal)
        power = result.type.scale - field.type.scale
        high, low, overflow = exact_sum.average_decimals(digits, counts, power, precision)
    else:
        high, low, overflow = exact_sum.finish_decimals(digits, precision)
    if result.words == 1:
        return (low ^ np.int64(NULL_WORD))[:, None], overflow
    return np.stack([high, low], axis=1), overflow


def _bounds(result: Field) -> tuple[int, int]:
    """The least and the greatest sum of a type of one word; of an interval, the least word of all is NULL."""
    if result.type == YEAR_MONTH:
        return -(2**31), 2**31 - 1
    return NULL_WORD + 1 if result.type in INTERVALS else exact_sum.INT64_MIN, exact_sum.INT64_MAX


def _nulled(words: Matrix, absent: Flags, field: Field) -> Matrix:
    if not field.nullable:
        return words
    if field.type == BIGINT:
        return np.stack([np.where(absent, 0, 1), np.where(absent, 0, words[:, 0])], axis=1)
    words[absent] = NULL_WORD
    return words


def _truth(call: Call, result: Field, sums: Sums) -> Matrix:
    """All are true if none is false, any is true if one is; of no values, NULL."""
    counts, trues = sums.counts(call), sums.digits(call, Kind.TRUES)[:, 0]
    any_true, any_false = trues > 0, counts - trues > 0
    truth = any_true if call.function == "bool_or" else ~any_false
    return np.where(any_true | any_false, truth, NULL_WORD)[:, None]


def _variance(call: Call, result: Field, sums: Sums) -> Matrix:
    """The variance, rounded once (its root once more); NULL of too few values, NaN if one of them is not finite."""
    field = sums.source.fields[call.fields[0]]
    kind = sum_kind(field)
    values, squares = sums.digits(call, kind), sums.digits(call, SQUARES[kind])
    return quotients.variances(values, squares, sums.counts(call), _lost(call), _scale(field), _is_root(call))[:, None]


def _covariance(call: Call, result: Field, sums: Sums) -> Matrix:
    """The covariance of two columns, rounded once; NULL of too few pairs, NaN if a number is not finite."""
    first, second = call.fields
    a, b = (sums.of((Kind.FLOAT, field, ())) for field in call.fields)
    products = sums.of((Kind.FLOAT_PRODUCTS, first, (second,)))
    return quotients.covariances(a, b, products, sums.counts(call), _lost(call))[:, None]


def _lost(call: Call) -> int:
    """How many of the values a variance does not divide by."""
    return 0 if call.function.endswith("pop") else 1


def _is_root(call: Call) -> bool:
    return call.function.startswith("stddev")


def _bitwise(call: Call, result: Field, sums: Sums) -> Matrix:
    """All values bit by bit, from how often each bit is one; NULL of no values."""
    counts, ones = sums.counts(call), sums.digits(call, Kind.BITS)
    if call.function == "bit_xor":
        bits = ones & 1
    else:
        bits = ones == counts[:, None] if call.function == "bit_and" else ones > 0
    words = (bits.astype(np.uint64) << np.arange(64, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    return _nulled(words.view(np.int64)[:, None].copy(), counts == 0, result)


# Every linear aggregate: the words of a call's results, one row a group, from what was added up.
FINISHED: Final[Mapping[str, Callable[[Call, Field, Sums], Matrix]]] = {
    "count": _count,
    "sum": _sum_or_mean,
    "avg": _sum_or_mean,
    "avg double": _sum_or_mean,
    "variance": _variance,
    "variance pop": _variance,
    "stddev": _variance,
    "stddev pop": _variance,
    "bool_and": _truth,
    "bool_or": _truth,
    "try sum": _sum_or_mean,
    "try avg": _sum_or_mean,
    "covariance": _covariance,
    "covariance pop": _covariance,
    "bit_and": _bitwise,
    "bit_or": _bitwise,
    "bit_xor": _bitwise,
}


def null_mark(result: Field) -> int:
    """How `everview.kernels.sums` is to write a result that is NULL."""
    return sums.NEVER if not result.nullable else sums.FLAGGED if result.type == BIGINT else sums.LEAST


def compiled_call(call: Call, result: Field, word: int, places: Mapping[Need, slice], source: Schema) -> Line:
    """A linear aggregate as a line for `everview.kernels.sums`, its result at a word."""
    count = places[counted(source, call)].start
    if call.function == "count":
        return sums.COUNT, 0, 0, count, word, sums.NEVER, 0, 1, 0
    null, line = null_mark(result), _compiled_sum
    if call.function in BY_PLACES:
        line = _compiled_places
    elif call.function in ("covariance", "covariance pop"):
        line = _compiled_covariance
    elif FINISHED[call.function] is _variance:
        line = _compiled_variance
    elif call.function.startswith(TRY):
        null |= sums.TRIED
    kind, first, last, *more = line(call, result, places, source)
    return kind, first, last, count, word, null, *more


# The aggregates whose results need no arguments besides the places: their kinds as kernels have them, and their places.
BY_PLACES: Final = {
    "bool_and": (sums.ALL_TRUE, Kind.TRUES),
    "bool_or": (sums.ANY_TRUE, Kind.TRUES),
    "bit_and": (sums.ALL_BITS, Kind.BITS),
    "bit_or": (sums.ANY_BITS, Kind.BITS),
    "bit_xor": (sums.ODD_BITS, Kind.BITS),
}


def _scale(field: Field) -> int:
    return field.type.scale if isinstance(field.type, Decimal) else 0


def _span(call: Call, kind: Kind, places: Mapping[Need, slice]) -> tuple[int, int]:
    """The places of what was added up of the first field of a call."""
    span = places[kind, call.fields[0], call.fields if call.distinct else ()]
    return span.start, span.stop


def _compiled_places(call: Call, result: Field, places: Mapping[Need, slice], source: Schema) -> Line:
    kind, summed = BY_PLACES[call.function]
    return kind, *_span(call, summed, places), 0, 1, 0


def _compiled_variance(call: Call, result: Field, places: Mapping[Need, slice], source: Schema) -> Line:
    field = source.fields[call.fields[0]]
    kind = sum_kind(field)
    squares, _ = _span(call, SQUARES[kind], places)
    return sums.VARIANCE, *_span(call, kind, places), squares, _lost(call) | 2 * _is_root(call), _scale(field)


def _compiled_covariance(call: Call, result: Field, places: Mapping[Need, slice], source: Schema) -> Line:
    first, second = call.fields
    other, products = places[Kind.FLOAT, second, ()].start, places[Kind.FLOAT_PRODUCTS, first, (second,)].start
    return sums.COVARIANCE, *_span(call, Kind.FLOAT, places), other, _lost(call), products


def _compiled_sum(call: Call, result: Field, places: Mapping[Need, slice], source: Schema) -> Line:
    """A sum or average, its kind chosen as `_sum` does."""
    field, function = source.fields[call.fields[0]], call.function.removeprefix(TRY)
    span, float_sum, mean = _span(call, sum_kind(field), places), field.type.sql in FLOATS, function != "sum"
    if function == "avg double" and isinstance(field.type, Decimal):
        return sums.MEAN_SCALED, *span, 0, 1, _scale(field)
    if mean and result.type == DOUBLE:
        return sums.MEAN_FLOAT if float_sum else sums.MEAN_INTEGER, *span, 0, 1, 0
    if float_sum:
        return sums.SUM_FLOAT, *span, 0, 1, 0
    if field.type in INTERVALS and mean:
        return sums.MEAN_DECIMAL, *span, WIDEST, 1, 0
    if not isinstance(result.type, Decimal):
        least, greatest = _bounds(result)
        return sums.SUM_INTEGER, *span, least, 1, greatest
    precision, words = result.type.precision, result.type.words(nullable=False)
    power = _scale(result) - _scale(field) if isinstance(field.type, Decimal) else 0
    return sums.MEAN_DECIMAL if mean else sums.SUM_DECIMAL, *span, precision, words, power
