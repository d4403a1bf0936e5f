"""Exact sums, from which rows can be taken back: whole multiples of a unit, and counts of infinities and NaN.

The unit is 1 for integers, a power of ten for decimals, 2^-1074 for floats, of which every float is a multiple. So the
order in which rows come and go does not matter, and a result is rounded once.

>>> from everview.types import DOUBLE
>>> units = Sum.of(DOUBLE)
>>> state = units.added(units.zero, [(1e308, 1), (0.1, 1)])
>>> total(units.added(state, [(1e308, -1)]), DOUBLE)
0.1
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from everview.errors import WeightOverflow
from everview.types import BIGINT, DOUBLE, FLOAT, Decimal, Type

FINEST: Final = 1074
DIGITS: Final = decimal.Context(prec=100)


@dataclass(frozen=True, slots=True)
class Total:
    """The state of a sum: how many values, the sum of the finite ones, and counts of infinities and NaN."""

    unit: int  # how many units make one
    count: int = 0
    units: int = 0
    endless: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Sum:
    """The way in which values of a type are added up: as whole multiples of a unit."""

    zero: Total
    units: Callable[[Any], int]

    @staticmethod
    def of(type_: Type) -> Sum:
        """The way for an integer, decimal or float type."""
        if isinstance(type_, Decimal):
            return Sum(Total(10**type_.scale), lambda value: int(value.scaleb(type_.scale, DIGITS)))
        return Sum(Total(1 << FINEST), _multiple) if type_ in (FLOAT, DOUBLE) else Sum(Total(1), int)

    def added(self, state: Total, values: Iterable[tuple[Any, int]]) -> Total:
        """The state with values added as often as their weights say."""
        count, sum_, endless = state.count, state.units, state.endless
        for value, weight in values:
            count += weight
            if isinstance(value, float) and not math.isfinite(value):
                endless = _noted(endless, repr(value), weight)
            else:
                sum_ += weight * self.units(value)
        return Total(state.unit, count, sum_, endless)


def _multiple(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator << (FINEST + 1 - denominator.bit_length())


def _noted(endless: tuple[tuple[str, int], ...], value: str, weight: int) -> tuple[tuple[str, int], ...]:
    counts = dict(endless)
    counts[value] = counts.get(value, 0) + weight
    return tuple((each, count) for each, count in counts.items() if count)


def total(state: Total, type_: Type) -> Any:
    """The sum in a type; None of no values."""
    return _divided(state, 1, type_, "sum")


def average(state: Total, type_: Type) -> Any:
    """The mean in a type; None of no values."""
    return _divided(state, state.count, type_, "avg")


def _divided(state: Total, divisor: int, type_: Type, name: str) -> Any:
    if state.count == 0:
        return None
    if state.endless:
        return float(state.endless[0][0]) if len(state.endless) == 1 and state.endless[0][0] != "nan" else math.nan
    if type_ == BIGINT:
        return _in_range(state.units, type_, name, 2**63)
    exact = Fraction(state.units, state.unit * divisor)
    if not isinstance(type_, Decimal):
        return _float(exact)
    rounded = math.floor(abs(exact) * 10**type_.scale + Fraction(1, 2))
    _in_range(rounded, type_, name, 10**type_.precision)
    return decimal.Decimal(rounded if exact >= 0 else -rounded).scaleb(-type_.scale, DIGITS)


def _in_range(value: int, type_: Type, name: str, limit: int) -> int:
    if -limit <= value < limit:
        return value
    raise WeightOverflow(f"{name} of a group left the range of {type_}", hint="cast it to a wider type")


def _float(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
