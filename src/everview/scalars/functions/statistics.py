"""Statistics of the numbers of an array: skewness, kurtosis, and histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import numpy as np

from everview.scalars.functions.kernel import Kernel, Kind, Value, each, each_row, from_numbers, nulls, numbers
from everview.scalars.functions.lists import KERNELS as OF_LISTS
from everview.scalars.functions.lists import Lists

COMPACT: Final = OF_LISTS["array_compact"]


def _standardized(power: int) -> Kernel:
    """The kernel of the third or fourth moment around the mean, in units of the deviation; NULL without deviation."""

    def run(out: Kind, array: Value) -> Any:
        array = COMPACT(array.type, array)
        lists = Lists.of(array, len(array))
        rows, parents = len(lists.sizes), lists.parents
        values = numbers(lists.elements, 0.0).astype(np.longdouble)
        counts = np.maximum(lists.sizes, 1)

        def mean(numbers_: Any) -> Any:
            sums = np.zeros(rows, np.longdouble)
            np.add.at(sums, parents, numbers_)
            return sums / counts

        with np.errstate(all="ignore"):
            apart = values - mean(values)[parents]
            second, moment = mean(apart**2), mean(apart**power)
            result = moment / second**1.5 if power == 3 else moment / second**2 - 3
        missing, none = nulls(array), (second == 0) | (lists.sizes == 0)
        return from_numbers(result.astype(np.float64), out, none if missing is None else none | missing)

    return run


def _histogram(out: Kind, array: Value, bins: Value) -> Any:
    return each(out, _binned, array, bins)


def _binned(values: list[Any], bins: int) -> list[dict[str, float]] | None:
    """So many bins at most: values are put in one by one from the least on, and the nearest two bins become one."""
    values = [value for value in values if value is not None and math.isfinite(value)]
    if not values:
        return None
    middles: list[float] = []
    sizes: list[float] = []
    for value in values:
        if middles and middles[-1] == value:
            sizes[-1] += 1.0
            continue
        middles.append(value)
        sizes.append(1.0)
        if len(middles) > bins:
            closest = min(range(bins), key=lambda place: middles[place + 1] - middles[place])
            size = sizes[closest] + sizes[closest + 1]
            middles[closest : closest + 2] = [
                (middles[closest] * sizes[closest] + middles[closest + 1] * sizes[closest + 1]) / size
            ]
            sizes[closest : closest + 2] = [size]
    return [{"x": middle, "y": size} for middle, size in zip(middles, sizes, strict=True)]


def _product(out: Kind, array: Value) -> Any:
    return each_row(out, lambda values: _multiplied(values or ()), array)


def _multiplied(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.prod(known) if known else None


def _counts(out: Kind, array: Value) -> Any:
    return each_row(out, lambda values: _counted(values or ()), array)


def _counted(values: Sequence[Any]) -> list[tuple[Any, int]] | None:
    """How often each value is there; equal values are beside each other."""
    known = (value for value in values if value is not None)
    groups = groupby(known, key=lambda value: value if value == value else "NaN")
    counted = [[*same] for _, same in groups]
    return [(same[0], len(same)) for same in counted] or None


KERNELS: Final[dict[str, Kernel]] = {
    "skewness_of": _standardized(3),
    "kurtosis_of": _standardized(4),
    "histogram_of": _histogram,
    "product_of": _product,
    "counts_of": _counts,
}
