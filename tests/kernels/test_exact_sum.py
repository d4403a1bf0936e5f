"""Exact sums against rational arithmetic: every order, every weight, every deletion gives the same sum."""

from __future__ import annotations

import math
import random
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everview.kernels.exact_sum import (
    BITS,
    FLOAT_WIDTH,
    INFINITY_BUCKET,
    INT64_MAX,
    INT64_MIN,
    INTEGER_BUCKETS,
    MINUS_INFINITY_BUCKET,
    NAN_BUCKET,
    WIDE_BUCKETS,
    accumulate,
    average_decimals,
    average_floats,
    average_integers,
    finish_decimals,
    finish_integers,
    round_floats,
    spread_floats,
    spread_integers,
    spread_wide,
)

NULL_CODE = INT64_MIN
NAN_CODE = 0x7FF8 << 48


# ---------------------------------------------------------------- reference


def word(value: int) -> int:
    """An unsigned 64-bit pattern as a signed word."""
    return value - (1 << 64) if value >= 1 << 63 else value


def code(x: float) -> int:
    if x != x:
        return NAN_CODE
    bits = int(np.float64(x + 0.0).view(np.int64))
    return bits ^ INT64_MAX if bits < 0 else bits


def decode(c: int) -> float | None:
    if c == NULL_CODE:
        return None
    return float(np.int64(c ^ INT64_MAX if c < 0 else c).view(np.float64))


def nearest(x: Fraction) -> float:
    """The float nearest to a rational; beyond the range, ±inf."""
    try:
        return x.numerator / x.denominator  # division of Python integers rounds once, to nearest even
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def column(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def dense(entries: tuple[np.ndarray, np.ndarray, np.ndarray], width: int) -> np.ndarray:
    """All entries as one group."""
    return accumulate(np.zeros_like(entries[0]), entries[1], entries[2], 1, width)


def floats(weighted: list[tuple[float, int]]) -> np.ndarray:
    codes, weights = column([code(x) for x, _ in weighted]), column([w for _, w in weighted])
    return dense(spread_floats(codes, weights), FLOAT_WIDTH)


def integers(weighted: list[tuple[int, int]]) -> np.ndarray:
    values, weights = column([v for v, _ in weighted]), column([w for _, w in weighted])
    return dense(spread_integers(values, weights), INTEGER_BUCKETS)


def split(value: int) -> tuple[int, int]:
    """A 128-bit integer as its signed high word and its biased low word."""
    return value >> 64, word((value & ((1 << 64) - 1)) ^ (1 << 63))


def unsplit(high: int, low: int) -> int:
    return (int(high) << 64) + (int(low) + (1 << 63))


def wides(weighted: list[tuple[int, int]]) -> np.ndarray:
    words = [split(v) for v, _ in weighted]
    highs, lows = column([h for h, _ in words]), column([lo for _, lo in words])
    return dense(spread_wide(highs, lows, column([w for _, w in weighted])), WIDE_BUCKETS)


def sum_of(weighted: list[tuple[float, int]]) -> float | None:
    return decode(int(round_floats(floats(weighted))[0]))


finite = st.floats(allow_nan=False, allow_infinity=False)
weight = st.integers(-(1 << 34), 1 << 34) | st.integers(-3, 3)
weighted_floats = st.lists(st.tuples(finite, weight), max_size=30)
int64 = st.integers(INT64_MIN, INT64_MAX) | st.integers(-100, 100)
decimal38 = st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-(10**20), 10**20)


def exact(weighted: list[tuple[float, int]]) -> Fraction:
    return sum((Fraction(x) * w for x, w in weighted), Fraction(0))


# ---------------------------------------------------------------- spreading


@given(st.lists(finite, max_size=20))
def test_entries_of_a_float_add_up_to_it_with_small_digits_of_its_sign(values: list[float]) -> None:
    origins, buckets, sums = spread_floats(column([code(x) for x in values]), column([1] * len(values)))
    totals = [Fraction(0)] * len(values)
    for origin, bucket, digit in zip(origins.tolist(), buckets.tolist(), sums.tolist(), strict=True):
        assert digit != 0
        assert abs(digit) < 1 << BITS
        assert (digit > 0) == (values[origin] > 0)
        assert 0 <= bucket < NAN_BUCKET
        totals[origin] += Fraction(digit) * Fraction(2) ** (BITS * bucket - 1074)
    assert totals == [Fraction(x) for x in values]


@given(st.lists(int64, max_size=20))
def test_entries_of_an_integer_add_up_to_it(values: list[int]) -> None:
    origins, buckets, sums = spread_integers(column(values), column([1] * len(values)))
    totals = [0] * len(values)
    for origin, bucket, digit in zip(origins.tolist(), buckets.tolist(), sums.tolist(), strict=True):
        assert digit != 0
        assert abs(digit) < 1 << BITS
        assert (digit > 0) == (values[origin] > 0)
        totals[origin] += digit << (BITS * bucket)
    assert totals == values


@given(st.lists(decimal38, max_size=20))
def test_entries_of_a_wide_decimal_add_up_to_it(values: list[int]) -> None:
    words = [split(v) for v in values]
    entries = spread_wide(column([h for h, _ in words]), column([lo for _, lo in words]), column([1] * len(values)))
    totals = [0] * len(values)
    for origin, bucket, digit in zip(*(e.tolist() for e in entries), strict=True):
        assert digit != 0
        assert abs(digit) < 1 << BITS
        assert bucket < WIDE_BUCKETS
        totals[origin] += digit << (BITS * bucket)
    assert totals == values


def test_a_small_integer_takes_one_entry() -> None:
    origins, buckets, sums = spread_integers(column([7, 0, -9]), column([2, 5, 3]))
    assert (origins.tolist(), buckets.tolist(), sums.tolist()) == ([0, 2], [0, 0], [14, -27])


def test_null_and_weight_zero_add_nothing() -> None:
    assert spread_floats(column([NULL_CODE, code(1.5)]), column([1, 0]))[0].size == 0
    assert spread_integers(column([4]), column([0]))[0].size == 0
    assert spread_wide(column([INT64_MIN]), column([INT64_MIN]), column([1]))[0].size == 0


@pytest.mark.parametrize("weights", [1 << 40, -(1 << 40), INT64_MIN, INT64_MAX])
def test_a_product_beyond_64_bits_raises(weights: int) -> None:
    with pytest.raises(OverflowError):
        spread_floats(column([code(-math.pi)]), column([weights]))
    with pytest.raises(OverflowError):
        spread_integers(column([(1 << 26) - 1]), column([weights]))
    with pytest.raises(OverflowError):
        spread_wide(*(column([w]) for w in split(10**37)), column([weights]))


def test_the_least_weight_times_minus_one_raises() -> None:
    with pytest.raises(OverflowError):
        spread_integers(column([-1]), column([INT64_MIN]))
    assert integers([(1, INT64_MIN)]).tolist() == [[INT64_MIN, 0, 0]]


@given(st.integers(1 - (1 << BITS), (1 << BITS) - 1), st.integers(INT64_MIN, INT64_MAX))
@example(-(1 << 25), 1 << 38)
@example(1 << 25, 1 << 38)
@example(1 << 25, -(1 << 38))
def test_a_product_is_exact_or_raises(digit: int, weight: int) -> None:
    if INT64_MIN <= digit * weight <= INT64_MAX:
        assert integers([(digit, weight)])[0, 0] == digit * weight
        return
    with pytest.raises(OverflowError):
        integers([(digit, weight)])


def test_a_bucket_beyond_64_bits_raises() -> None:
    with pytest.raises(OverflowError):
        integers([(1, INT64_MAX), (1, 1)])


# ---------------------------------------------------------------- sums of floats


@given(weighted_floats)
def test_a_sum_is_exact_and_rounded_once(weighted: list[tuple[float, int]]) -> None:
    assert sum_of(weighted) == nearest(exact(weighted))


@given(st.lists(finite, max_size=30), st.randoms(use_true_random=False))
def test_a_sum_does_not_depend_on_order_and_agrees_with_fsum(values: list[float], rng: random.Random) -> None:
    shuffled = rng.sample(values, len(values))
    total = sum_of([(x, 1) for x in values])
    assert total == sum_of([(x, 1) for x in shuffled])
    try:
        assert total == math.fsum(values)
    except OverflowError:  # fsum gives up on intermediate results beyond the range
        assert total == nearest(exact([(x, 1) for x in values]))


@given(weighted_floats, weighted_floats)
def test_a_deletion_returns_exactly_to_where_the_sum_was(
    kept: list[tuple[float, int]], passing: list[tuple[float, int]]
) -> None:
    undone = kept + passing + [(x, -w) for x, w in passing]
    assert floats(undone).tolist() == floats(kept).tolist()


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([], 0.0),
        ([1e308, -1e308, 5e-324], 5e-324),
        ([1e308, 1e308], math.inf),
        ([1e308, 1e308, -1e308], 1e308),
        ([-1e308, -1e308], -math.inf),
        ([5e-324, 5e-324], 1e-323),
        ([-5e-324], -5e-324),
        ([2.2250738585072014e-308, -5e-324], 2.225073858507201e-308),
        ([2.225073858507201e-308, 5e-324], 2.2250738585072014e-308),
        ([0.1] * 10, 1.0),
        ([1.0, 2.0**-53], 1.0),
        ([1.0 + 2.0**-52, 2.0**-53], 1.0 + 2.0**-51),
        ([1.0, 2.0**-53, 5e-324], 1.0 + 2.0**-52),
        ([1.7976931348623157e308, 9.9792015476736e291], math.inf),
        ([1.7976931348623157e308, 9.979201547673598e291], 1.7976931348623157e308),
        ([math.inf, 1.0], math.inf),
        ([-math.inf, 1e308, 1e308], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
    ],
)
def test_corners(values: list[float], total: float) -> None:
    assert repr(sum_of([(x, 1) for x in values])) == repr(total)


def test_a_zero_sum_has_no_sign() -> None:
    assert round_floats(floats([(-1.5, 1), (1.5, 1)])).tolist() == [0]


def test_specials_are_counted_and_go_away() -> None:
    mixed = [(math.nan, 2), (math.inf, 1), (-math.inf, 3), (2.5, 1)]
    counts = floats(mixed)[0, NAN_BUCKET : MINUS_INFINITY_BUCKET + 1]
    assert counts.tolist() == [2, 1, 3]
    assert INFINITY_BUCKET == NAN_BUCKET + 1
    assert sum_of([*mixed, (math.nan, -2), (-math.inf, -3)]) == math.inf
    assert sum_of([*mixed, (math.nan, -2), (math.inf, -1), (-math.inf, -3)]) == 2.5
    assert sum_of([(math.inf, -1)]) == math.inf  # present, whatever its sign


@given(st.lists(st.integers(INT64_MIN, INT64_MAX), min_size=81, max_size=81))
def test_carrying_full_buckets_does_not_overflow(buckets: list[int]) -> None:
    value = sum((Fraction(b) * Fraction(2) ** (BITS * k - 1074) for k, b in enumerate(buckets)), Fraction(0))
    assert decode(int(round_floats(column([*buckets, 0, 0, 0])[None, :])[0])) == nearest(value)


@given(
    st.lists(st.tuples(st.integers(0, 80), st.integers(-3, 3) | st.integers(INT64_MIN, INT64_MAX)), max_size=6),
    st.integers(INT64_MIN, INT64_MAX) | st.integers(-9, 9),
)
def test_averages_of_sparse_buckets_are_rounded_once(buckets: list[tuple[int, int]], count: int) -> None:
    row = [0] * FLOAT_WIDTH
    for k, digit in buckets:
        row[k] = digit
    value = sum((Fraction(b) * Fraction(2) ** (BITS * k - 1074) for k, b in enumerate(row)), Fraction(0))
    expected = None if count == 0 else nearest(value / count)
    assert decode(int(average_floats(column(row)[None, :], column([count]))[0])) == expected
    assert decode(int(round_floats(column(row)[None, :])[0])) == nearest(value)


@given(weighted_floats, st.integers(-(1 << 40), 1 << 40) | st.sampled_from([1, -1, INT64_MIN, INT64_MAX]))
def test_an_average_is_exact_and_rounded_once(weighted: list[tuple[float, int]], count: int) -> None:
    average = decode(int(average_floats(floats(weighted), column([count]))[0]))
    assert average == (nearest(exact(weighted) / count) if count else None)


@pytest.mark.parametrize(
    ("values", "count", "average"),
    [
        ([5e-324], 2, 0.0),  # a tie, to even
        ([5e-324] * 3, 2, 1e-323),
        ([5e-324] * 3, 4, 5e-324),
        ([1.7976931348623157e308] * 3, 3, 1.7976931348623157e308),  # the sum alone would be infinite
        ([0.1, 0.2, 0.3], 3, 0.2),
        ([math.inf], -1, -math.inf),
        ([math.nan], -1, math.nan),
        ([math.inf], 0, None),
    ],
)
def test_corners_of_averages(values: list[float], count: int, average: float | None) -> None:
    result = decode(int(average_floats(floats([(x, 1) for x in values]), column([count]))[0]))
    assert repr(result) == repr(average)


# ---------------------------------------------------------------- integers and decimals


@given(st.lists(st.tuples(int64, weight), max_size=20))
def test_an_integer_sum_is_exact_or_flagged(weighted: list[tuple[int, int]]) -> None:
    total = sum(v * w for v, w in weighted)
    values, overflow = finish_integers(integers(weighted), INT64_MIN, INT64_MAX)
    assert overflow[0] == (not INT64_MIN <= total <= INT64_MAX)
    assert overflow[0] or values[0] == total


@pytest.mark.parametrize("total", [INT64_MAX, INT64_MAX + 1, INT64_MIN, INT64_MIN - 1, 0, 1 << 78, -(1 << 90)])
def test_integer_sums_at_the_edge(total: int) -> None:
    buckets = [total & ((1 << BITS) - 1), (total >> BITS) & ((1 << BITS) - 1), total >> (2 * BITS)]
    values, overflow = finish_integers(column(buckets)[None, :], INT64_MIN, INT64_MAX)
    assert bool(overflow[0]) == (not INT64_MIN <= total <= INT64_MAX)
    assert overflow[0] or values[0] == total


@given(st.lists(st.tuples(st.integers(-(10**8), 10**8), st.integers(-9, 9)), max_size=20))
def test_a_narrow_decimal_sum_is_flagged_at_its_own_precision(weighted: list[tuple[int, int]]) -> None:
    total = sum(v * w for v, w in weighted)
    values, overflow = finish_integers(integers(weighted), 1 - 10**9, 10**9 - 1)
    assert bool(overflow[0]) == (abs(total) >= 10**9)
    assert overflow[0] or values[0] == total


@given(st.lists(st.tuples(decimal38, st.integers(-9, 9)), max_size=20), st.integers(1, 38))
def test_a_decimal_sum_is_exact_or_flagged(weighted: list[tuple[int, int]], precision: int) -> None:
    total = sum(v * w for v, w in weighted)
    highs, lows, overflow = finish_decimals(wides(weighted), precision)
    assert bool(overflow[0]) == (abs(total) >= 10**precision)
    assert overflow[0] or unsplit(highs[0], lows[0]) == total


@pytest.mark.parametrize("total", [10**38 - 1, 10**38, 1 - 10**38, -(10**38), 1 << 64, -(1 << 64), -1, 0])
def test_decimal_sums_at_the_edge(total: int) -> None:
    half = total // 2
    highs, lows, overflow = finish_decimals(wides([(half, 1), (total - half, 1)]), 38)
    assert bool(overflow[0]) == (abs(total) >= 10**38)
    assert overflow[0] or (int(highs[0]), int(lows[0])) == split(total)


@given(st.integers(INT64_MIN, INT64_MAX), st.integers(1, 38))
def test_a_single_bucket_is_enough(bucket: int, precision: int) -> None:
    highs, lows, overflow = finish_decimals(column([bucket])[None, :], precision)
    assert bool(overflow[0]) == (abs(bucket) >= 10**precision)
    assert overflow[0] or unsplit(highs[0], lows[0]) == bucket


@given(st.lists(st.tuples(int64, st.integers(-9, 9)), max_size=20))
def test_integers_sum_to_a_wide_decimal_as_well(weighted: list[tuple[int, int]]) -> None:
    highs, lows, overflow = finish_decimals(integers(weighted), 38)
    assert not overflow[0]
    assert unsplit(highs[0], lows[0]) == sum(v * w for v, w in weighted)


@given(st.lists(st.tuples(int64, weight), max_size=20), int64)
def test_an_average_of_integers_is_the_nearest_float(weighted: list[tuple[int, int]], count: int) -> None:
    total = sum(v * w for v, w in weighted)
    average = decode(int(average_integers(integers(weighted), column([count]))[0]))
    assert average == (nearest(Fraction(total, count)) if count else None)


@given(st.lists(st.tuples(decimal38, st.integers(-9, 9)), max_size=20), int64, st.integers(0, 38))
def test_an_average_of_decimals_rounds_half_away_from_zero(
    weighted: list[tuple[int, int]], count: int, power: int
) -> None:
    total = sum(v * w for v, w in weighted)
    highs, lows, overflow = average_decimals(wides(weighted), column([count]), power, 38)
    if count == 0:
        assert (highs[0], lows[0], overflow[0]) == (INT64_MIN, INT64_MIN, 0)
        return
    quotient, rest = divmod(abs(total) * 10**power, abs(count))
    size = quotient + (2 * rest >= abs(count))
    assert bool(overflow[0]) == (size >= 10**38)
    assert overflow[0] or unsplit(highs[0], lows[0]) == (size if (total < 0) == (count < 0) else -size)


@given(st.lists(st.integers(-(10**11), 10**11), min_size=1, max_size=9))
def test_an_average_of_decimals_agrees_with_decimal_arithmetic(cents: list[int]) -> None:
    """DECIMAL(12,2) averages to DECIMAL(16,6)."""
    highs, lows, overflow = average_decimals(integers([(v, 1) for v in cents]), column([len(cents)]), 4, 16)
    exactly = Context(prec=60).divide(Decimal(sum(cents)).scaleb(-2), len(cents))
    rounded = exactly.quantize(Decimal("0.000001"), rounding=ROUND_HALF_UP, context=Context(prec=60))
    assert not overflow[0]
    assert int(highs[0]) in (0, -1)
    assert Decimal(word((int(lows[0]) ^ INT64_MIN) & ((1 << 64) - 1))).scaleb(-6) == rounded


def test_an_average_is_flagged_at_its_precision() -> None:
    highs, lows, overflow = average_decimals(integers([(9, 1)]), column([1]), 4, 4)
    assert overflow[0] == 1
    highs, lows, overflow = average_decimals(integers([(9, 1)]), column([1]), 3, 4)
    assert not overflow[0]
    assert unsplit(highs[0], lows[0]) == 9000


# ---------------------------------------------------------------- many groups at once


def test_groups_are_read_side_by_side() -> None:
    rng = np.random.default_rng(7)
    values = (rng.standard_normal(3000) * 10.0 ** rng.integers(-300, 300, 3000)).tolist()
    groups = rng.integers(0, 50, 3000)
    origins, buckets, sums = spread_floats(column([code(x) for x in values]), column([1] * 3000))
    matrix = accumulate(groups[origins], buckets, sums, 50, FLOAT_WIDTH)
    by_group = [[x for x, g in zip(values, groups, strict=True) if g == group] for group in range(50)]
    assert [decode(int(c)) for c in round_floats(matrix)] == [math.fsum(v) for v in by_group]


def test_a_read_only_array_is_accepted() -> None:
    codes, weights = column([code(1.0)]), column([1])
    codes.flags.writeable = weights.flags.writeable = False
    assert spread_floats(codes, weights)[0].size == 1
