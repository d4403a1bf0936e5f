"""Aggregates of what was added up: counts, sums, averages, variances, and whether all or any are true."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from everview.errors import WeightOverflow
from everview.kernels import exact_sum, quotients, sums
from everview.operators.aggregate.call import Call
from everview.operators.aggregate.floats import Flags, scaled, words_of
from everview.operators.aggregate.result_types import FLOATS
from everview.operators.aggregate.weigh import SQUARES, Kind, Need, counted, sum_kind
from everview.operators.form import Line
from everview.types import BIGINT, DOUBLE, INTERVALS, NULL_WORD, YEAR_MONTH, Decimal, Field, Schema
from everview.types.words import Matrix, Words

TRY: Final = "try "  # before what gives NULL where it would overflow


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
        return words_of(scaled(*quotients.averages(digits, counts, field.type.scale)), counts == 0), None
    if call.function in ("avg", "avg double") and result.type == DOUBLE:
        average = exact_sum.average_floats if float_sum else exact_sum.average_integers
        return average(digits, counts)[:, None], None
    if float_sum:
        return exact_sum.round_floats(digits)[:, None], None
    if field.type in INTERVALS:
        return _sum_of_intervals(call, result, digits, counts)
    if not isinstance(result.type, Decimal):
        values, overflow = exact_sum.finish_integers(digits, exact_sum.INT64_MIN, exact_sum.INT64_MAX)
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


def _sum_of_intervals(call: Call, result: Field, digits: Matrix, counts: Words) -> tuple[Matrix, np.ndarray]:
    """Months or microseconds: a sum, or a mean rounded with halves away from zero."""
    if call.function == "avg":
        _, low, overflow = exact_sum.average_decimals(digits, counts, 0, 38)
        return (low ^ np.int64(NULL_WORD))[:, None], overflow
    # The least word of all is NULL, no interval.
    least, greatest = (-(2**31), 2**31 - 1) if result.type == YEAR_MONTH else (NULL_WORD + 1, exact_sum.INT64_MAX)
    values, overflow = exact_sum.finish_integers(digits, least, greatest)
    return values[:, None], overflow


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
    counts, field = sums.counts(call), sums.source.fields[call.fields[0]]
    kind = sum_kind(field)
    lost = 0 if call.function.endswith("pop") else 1
    scale = field.type.scale if isinstance(field.type, Decimal) else 0
    values, squares = sums.digits(call, kind), sums.digits(call, SQUARES[kind])
    special = np.zeros(counts.size, np.bool_)
    if kind is Kind.FLOAT:
        special = values[:, exact_sum.FLOAT_BUCKETS :].any(axis=1)
        values = np.ascontiguousarray(values[:, : exact_sum.FLOAT_BUCKETS])
    fractions, exponents = quotients.variances(values, squares, counts, lost, scale)
    if kind is Kind.FLOAT:
        exponents += quotients.FLOAT_UNIT
    if call.function.startswith("stddev"):
        fractions = np.sqrt(np.where(fractions < 0, np.nan, fractions))
        exponents //= 2
    variance = scaled(fractions, exponents)
    variance[special] = np.nan
    return words_of(variance, counts <= lost)


def _covariance(call: Call, result: Field, sums: Sums) -> Matrix:
    """The covariance of two columns, rounded once; NULL of too few pairs, NaN if a number is not finite."""
    counts, lost = sums.counts(call), 0 if call.function.endswith("pop") else 1
    first, second = call.fields
    sides = [sums.of((Kind.FLOAT, field, ())) for field in call.fields]
    special = np.zeros(counts.size, np.bool_)
    for digits in sides:
        special |= digits[:, exact_sum.FLOAT_BUCKETS :].any(axis=1)
    a, b = (np.ascontiguousarray(digits[:, : exact_sum.FLOAT_BUCKETS]) for digits in sides)
    products = sums.of((Kind.FLOAT_PRODUCTS, first, (second,)))
    fractions, exponents = quotients.covariances(a, b, products, counts, lost)
    covariance = scaled(fractions, exponents + quotients.FLOAT_UNIT)
    covariance[special] = np.nan
    return words_of(covariance, counts <= lost)


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


def compiled_call(call: Call, result: Field, word: int, places: Mapping[Need, slice], source: Schema) -> Line | None:
    """A linear aggregate as a line for `everview.kernels.sums`, its result at a word; None if it has none."""
    count = places[counted(source, call)].start
    if call.function == "count":
        return sums.COUNT, 0, 0, count, word, sums.NEVER, 0, 1, 0
    if not call.fields or call.function not in ("sum", "avg", "avg double", "bool_and", "bool_or"):
        return None
    field, distinct = source.fields[call.fields[0]], call.fields if call.distinct else ()
    null = null_mark(result)
    if call.function in ("bool_and", "bool_or"):
        trues = places[Kind.TRUES, call.fields[0], distinct]
        kind = sums.ALL_TRUE if call.function == "bool_and" else sums.ANY_TRUE
        return kind, trues.start, trues.stop, count, word, null, 0, 1, 0
    kind = _compiled_sum(call, field, result)
    if kind is None:
        return None
    digits = places[sum_kind(field), call.fields[0], distinct]
    precision = result.type.precision if isinstance(result.type, Decimal) else 0
    decimals = isinstance(result.type, Decimal) and isinstance(field.type, Decimal)
    power = _scale(result) - _scale(field) if decimals else 0
    words = result.type.words(nullable=False)
    return kind, digits.start, digits.stop, count, word, null, precision, words, power


def _scale(field: Field) -> int:
    return field.type.scale if isinstance(field.type, Decimal) else 0


def _compiled_sum(call: Call, field: Field, result: Field) -> int | None:
    """The kind of a sum or average, chosen as `_sum` does."""
    float_sum = field.type.sql in FLOATS
    if field.type in INTERVALS or (call.function == "avg double" and isinstance(field.type, Decimal)):
        return None
    if call.function in ("avg", "avg double") and result.type == DOUBLE:
        return sums.MEAN_FLOAT if float_sum else sums.MEAN_INTEGER
    if float_sum:
        return sums.SUM_FLOAT
    if not isinstance(result.type, Decimal):
        return sums.SUM_INTEGER
    return sums.MEAN_DECIMAL if call.function == "avg" else sums.SUM_DECIMAL
