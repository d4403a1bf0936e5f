"""Variances are exact until they are rounded, so nothing is lost between, before or after."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import everview as ev
from everview.circuit import Circuit, incrementalize
from everview.kernels import exact_sum, places, quotients
from everview.runtimes.embedded import Embedded
from operators.aggregate.meanings import quotient, square_root

DIGITS = Context(prec=50)
floats = st.floats(allow_nan=False, allow_infinity=False)
weights = st.sampled_from([1, 1, 2, 3, -1, 10**6, 2**33])
FAMILIES = {
    "DOUBLE": floats,
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DECIMAL(18,5)": st.decimals(-(10**13) + 1, 10**13 - 1, places=5),
    "DECIMAL(38,7)": st.integers(1 - 10**38, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-7, DIGITS)),
}


def exact(entries: Sequence[tuple[Any, int]], lost: int) -> Fraction | None:
    n = sum(w for _, w in entries)
    if n <= lost:
        return None
    sums = sum(Fraction(x) * w for x, w in entries)
    return (n * sum(Fraction(x) ** 2 * w for x, w in entries) - sums**2) / (n * (n - lost))


def ulps(found: float, wanted: float) -> float:
    return 0.0 if found == wanted else abs(found - wanted) / math.ulp(wanted)


def run_of(of: str) -> Embedded:
    circuit = Circuit()
    rows = circuit.source("t", f"x {of} NOT NULL")
    calls = {"v": "variance", "vp": "variance pop", "s": "stddev", "sp": "stddev pop"}
    rows.aggregate(**{name: (call, "x") for name, call in calls.items()}).sink("found")
    return Embedded(incrementalize(circuit))


@pytest.mark.parametrize("of", FAMILIES)
@given(data=st.data())
def test_variances_are_right_to_the_last_bit_and_deviations_nearly(of: str, data: st.DataObject) -> None:
    entries = data.draw(st.lists(st.tuples(FAMILIES[of], weights), min_size=1, max_size=6))
    run = run_of(of)
    run.tick({"t": [((x,), w) for x, w in entries]})
    if sum(w for _, w in entries) <= 0:
        assert run.view("found").rows() == []
        return
    ((v, vp, s, sp),) = run.view("found").rows()
    for lost, variance, deviation in ((1, v, s), (0, vp, sp)):
        wanted = exact(entries, lost)
        if wanted is None:
            assert variance is None
            assert deviation is None
            continue
        # Below the normal floats a result is rounded twice.
        assert ulps(variance, quotient(wanted)) <= (0 if abs(wanted) > Fraction(2) ** -1022 else 1)
        if wanted < 0:
            assert math.isnan(deviation)
        else:
            assert ulps(deviation, square_root(wanted)) <= 1


@given(kept=st.lists(floats, min_size=2, max_size=5), gone=st.lists(floats, max_size=5))
@example(kept=[1.0, 2.0], gone=[1e300, -1e300, 5e-324])
@example(kept=[1e8, 1e8 + 1], gone=[math.nan, math.inf])
def test_a_deletion_takes_back_what_the_insertion_brought(kept: list[float], gone: list[float]) -> None:
    run = run_of("DOUBLE")
    run.tick({"t": [((x,), 1) for x in kept]})
    before = run.view("found").rows()
    run.tick({"t": [((x,), 1) for x in gone]})
    run.tick({"t": [((x,), -1) for x in gone]})
    assert run.view("found").rows() == before


CASES: list[tuple[list[float], float | None, float | None]] = [
    ([1.0], None, 0.0),
    ([1.0, 1.0], 0.0, 0.0),
    ([1e200, 0.0], math.inf, math.inf),
    ([1e-200, 0.0], 0.0, 0.0),
    ([math.inf], None, math.nan),
    ([math.nan, 1.0], math.nan, math.nan),
    ([math.inf, -math.inf], math.nan, math.nan),
    ([1e16, 1e16 + 2, 1e16 + 4], 4.0, 8 / 3),
]


@pytest.mark.parametrize(("values", "sample", "population"), CASES, ids=str)
def test_variances_of_few_and_of_extreme_values(
    values: list[float], sample: float | None, population: float | None
) -> None:
    run = run_of("DOUBLE")
    run.tick({"t": [((x,), 1) for x in values]})
    ((v, vp, _, _),) = run.view("found").rows()
    assert repr((v, vp)) == repr((sample, population))


def test_a_deviation_is_there_where_its_square_is_not() -> None:
    run = run_of("DOUBLE")
    run.tick({"t": [((1e-200,), 1), ((3e-200,), 1), ((1e200,), 0)]})
    ((_, vp, _, sp),) = run.view("found").rows()
    assert vp == 0.0
    assert ulps(sp, 1e-200) <= 1


# -- kernels


@given(x=floats, weight=st.integers(-(2**36), 2**36))
def test_squares_are_spread_exactly(x: float, weight: int) -> None:
    code = np.array([x]).view(np.int64)
    code = np.where(code < 0, code ^ np.int64(2**63 - 1), code)
    once = exact_sum.spread_floats(code, np.array([1]))
    _, buckets, sums = quotients.spread_squares(once, np.array([weight]), quotients.FLOAT_DIGITS)
    total = sum(int(s) * 2 ** (26 * int(k)) for k, s in zip(buckets, sums, strict=True))
    assert Fraction(total) * Fraction(2) ** quotients.FLOAT_UNIT == Fraction(x) ** 2 * weight


@given(value=st.integers(1 - 10**38, 10**38 - 1), scale=st.integers(0, 38))
def test_decimals_as_floats_are_rounded_once(value: int, scale: int) -> None:
    low = (value & 2**64 - 1) - 2**63
    spread = exact_sum.spread_wide(np.array([value >> 64]), np.array([low]), np.array([1]))
    dense = exact_sum.accumulate(*spread, 1, exact_sum.WIDE_BUCKETS)
    fraction, exponent = quotients.decimals(dense, scale)
    assert math.ldexp(fraction[0], int(exponent[0])) == value / 10**scale


def test_places_of_rows_and_groups() -> None:
    groups = np.array([[1, 1], [2, 1], [3, 1], [5, 1]])
    rows = np.array([[1, 7, 2], [1, 8, 1], [3, 4, 5], [5, 0, 1]])
    starts = places.spans(groups, rows, 1)
    assert starts.tolist() == [0, 2, 2, 3, 4]
    weighed = rows[:, -1].copy()
    assert places.totals(weighed, starts).tolist() == [3, 0, 5, 1]
    assert places.rows_at(weighed, starts, np.array([2, 0, 4, 1])).tolist() == [1, -1, 2, -1]


@pytest.mark.parametrize(("precision", "scale"), [(4, 2), (8, 2), (18, 6), (18, 18), (38, 10), (38, 38)])
def test_the_average_of_decimals_as_a_double_is_the_nearest_to_the_exact_one(precision: int, scale: int) -> None:
    """DuckDB's AVG: the sum of DECIMALs is exact, and only the quotient is rounded."""
    chance, db = random.Random(precision + scale), ev.connect()
    db.sql(f"CREATE TABLE x (g INTEGER, d DECIMAL({precision},{scale}))", dialect="duckdb")
    db.sql("CREATE MATERIALIZED VIEW means AS SELECT g, avg(d), avg(DISTINCT d) FROM x GROUP BY g", dialect="duckdb")
    largest = 10 ** min(precision, 36) - 1
    held = [(at % 40, chance.randint(-largest, largest) // 10 ** chance.randrange(precision)) for at in range(300)]
    db.apply({"x": [((g, _amount(units, scale)), 1) for g, units in held]})
    gone, held = held[:90], held[90:]
    db.apply({"x": [((g, _amount(units, scale)), -1) for g, units in gone]})
    groups = {g: [units for other, units in held if other == g] for g, _ in held}
    wanted = {(g, _mean(units, scale), _mean(list(set(units)), scale)) for g, units in groups.items()}
    assert set(db.view("means").rows()) == wanted


def _amount(units: int, scale: int) -> Decimal:
    return Decimal(units).scaleb(-scale, Context(prec=80))


def _mean(units: list[int], scale: int) -> float:
    exact = Fraction(sum(units), len(units) * 10**scale)
    return exact.numerator / exact.denominator
