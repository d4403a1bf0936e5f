"""Statistics of the numbers of an array: skewness, kurtosis, and histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.scalars.functions.kernel import Kernel, Kind, Value, each, each_row, from_numbers, nulls, numbers, whole
from everview.scalars.functions.lists import KERNELS as OF_LISTS
from everview.scalars.functions.lists import Lists, lists

COMPACT: Final = OF_LISTS["array_compact"]


def _standardized(power: int) -> Kernel:
    """The kernel of the third or fourth moment around the mean, in units of the deviation; NULL without deviation."""

    def run(out: Kind, array: Value) -> Any:
        array = COMPACT(array.type, array)
        split = Lists.of(array, len(array))
        rows, parents = len(split.sizes), split.parents
        values = numbers(split.elements, 0.0).astype(np.longdouble)
        counts = np.maximum(split.sizes, 1)

        def mean(numbers_: Any) -> Any:
            sums = np.zeros(rows, np.longdouble)
            np.add.at(sums, parents, numbers_)
            return sums / counts

        with np.errstate(all="ignore"):
            apart = values - mean(values)[parents]
            second, moment = mean(apart**2), mean(apart**power)
            result = moment / second**1.5 if power == 3 else moment / second**2 - 3
        missing, none = nulls(array), (second == 0) | (split.sizes == 0)
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


def _most_frequent(out: Kind, array: Value, absent: Value, most: Value) -> Any:
    """The elements that are there most often and how often, those as frequent in their order; ``absent`` are NULL."""
    rows = max(len(a) for a in (array, absent) if not isinstance(a, pa.Scalar))
    held, missing = Lists.of(array, rows), nulls(whole(array, rows), whole(absent, rows))
    there = held.elements.is_valid()
    elements, parents = held.elements.filter(there), held.parents[there.to_numpy(zero_copy_only=False)]
    if pa.types.is_floating(elements.type):
        elements = pc.add(elements, pa.scalar(0.0, elements.type))  # 0 has no sign
    encoded = elements.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    places = np.argsort(numbers(order).astype(np.int64))
    kinds = len(places) + 1  # the last one of NULL
    keys, counts = np.unique(parents * kinds + places[numbers(encoded.indices).astype(np.int64)], return_counts=True)
    times = numbers(whole(absent, rows)).astype(np.int64)
    with_null = np.flatnonzero(times > 0)
    keys = np.concatenate([keys, with_null * kinds + kinds - 1])
    counts = np.concatenate([counts, times[with_null]])
    by_count = np.lexsort((keys, -counts, keys // kinds))
    keys, counts = keys[by_count], counts[by_count]
    sizes = np.bincount(keys // kinds, minlength=rows)
    limits = numbers(whole(most, rows)).astype(np.int64)
    rank = np.arange(len(keys)) - (np.cumsum(sizes) - sizes)[keys // kinds]
    none = np.zeros(rows, bool) if missing is None else missing
    kept = (rank < limits[keys // kinds]) & ~none[keys // kinds]
    keys, counts = keys[kept], counts[kept]
    chosen = pa.array(keys % kinds, mask=keys % kinds == kinds - 1)
    items = encoded.dictionary.take(order).take(chosen)
    pairs = pa.StructArray.from_arrays([items, pa.array(counts)], fields=[*out.value_type])
    return lists(pairs, np.bincount(keys // kinds, minlength=rows), out, missing)


KERNELS: Final[dict[str, Kernel]] = {
    "skewness_of": _standardized(3),
    "kurtosis_of": _standardized(4),
    "histogram_of": _histogram,
    "product_of": _product,
    "counts_of": _counts,
    "most_frequent_of": _most_frequent,
}
