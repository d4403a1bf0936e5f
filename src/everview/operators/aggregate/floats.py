"""Results that are floats: doubles from the words of any number, and words from doubles."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.codes import fixed
from everview.kernels import exact_sum, quotients
from everview.operators.aggregate.result_types import FLOATS
from everview.types import DOUBLE, NULL_WORD, Decimal, Type
from everview.types.words import Matrix, Words

Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]
LOW_BITS = np.int64(2**63 - 1)


def words_of(values: Doubles, absent: Flags) -> Matrix:
    """One word a double, NULL where it is absent."""
    words = fixed.codes_of(DOUBLE, pa.array(values))
    words[absent] = NULL_WORD
    return words[:, None]


def doubles_of(type_: Type, words: Matrix) -> Doubles:
    """The doubles nearest to numbers that are not NULL."""
    if type_.sql in FLOATS:
        codes = words[:, 0]
        return (codes ^ ((codes >> 63) & LOW_BITS)).view(np.float64)
    if not isinstance(type_, Decimal):
        return words[:, -1].astype(np.float64)
    return scaled(*quotients.decimals(_digits(words), type_.scale))


def scaled(fractions: Doubles, exponents: Words) -> Doubles:
    """``fraction · 2^exponent``."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(fractions, exponents)


def _digits(words: Matrix) -> Matrix:
    columns, once = [np.ascontiguousarray(c) for c in words.T], np.ones(words.shape[0], np.int64)
    if len(columns) == 1:
        spread, width = exact_sum.spread_integers(columns[0], once), exact_sum.INTEGER_BUCKETS
    else:
        spread, width = exact_sum.spread_wide(columns[0], columns[1], once), exact_sum.WIDE_BUCKETS
    return exact_sum.accumulate(*spread, words.shape[0], width)
