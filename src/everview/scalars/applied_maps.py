"""Functions of maps that apply a function to entries, and arrays sorted by a function, for all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.codes.buffers import NO_OCTETS, Bytes, bytes_array
from everview.codes.canonical import to_bytes
from everview.scalars.functions.kernel import Checked, nulls, numbers
from everview.scalars.functions.lists import Lists, lists
from everview.scalars.functions.maps import Maps, checked, maps
from everview.types import Type, type_of_arrow

Body = Callable[..., Any]  # of the row of each entry, and the values of the variables
Applied = Callable[[list[Any], Sequence[Body], pa.DataType], Any]


def _chunk(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _filter(given: list[Any], bodies: Sequence[Body], out: pa.DataType) -> Any:
    held = Maps.of(given[0], len(given[0]))
    verdicts = _chunk(bodies[0](pa.array(held.parents), held.keys, held.values))
    kept = verdicts.fill_null(False).to_numpy(zero_copy_only=False)
    sizes = np.bincount(held.parents[kept], minlength=len(held.sizes)).astype(np.int64)
    chosen = pa.array(kept)
    return maps(out, held.keys.filter(chosen), held.values.filter(chosen), sizes, nulls(given[0]))


def _transform_values(given: list[Any], bodies: Sequence[Body], out: pa.DataType) -> Any:
    held = Maps.of(given[0], len(given[0]))
    values = _chunk(bodies[0](pa.array(held.parents), held.keys, held.values))
    return maps(out, held.keys, values, held.sizes, nulls(given[0]))


def _transform_keys(given: list[Any], bodies: Sequence[Body], out: pa.DataType) -> Any:
    held = Maps.of(given[0], len(given[0]))
    keys = _chunk(bodies[0](pa.array(held.parents), held.keys, held.values))
    return checked(out, keys, held.values, held.sizes, nulls(given[0]))


def _zip_with(given: list[Any], bodies: Sequence[Body], out: pa.DataType) -> Any:
    """A value for each key of either map, of the values that both have for it; NULL where one has none."""
    rows = len(given[0])
    missing = nulls(*given)
    left, right = (Maps.of(array, rows) for array in given)
    present = np.ones(rows, bool) if missing is None else ~missing
    parents = np.concatenate([left.parents, right.parents])
    keys = pa.concat_arrays([left.keys, right.keys])
    numbers_ = _entry_numbers(type_of_arrow(keys.type), keys, parents)
    # Each key of a row once, in the order of the rows, the left map's first.
    order = np.lexsort((np.arange(len(parents)), parents))
    order = order[present[parents[order]]]
    _, firsts = np.unique(numbers_[order], return_index=True)
    chosen = order[np.sort(firsts)]
    sides = [_side(numbers_, chosen, 0, left), _side(numbers_, chosen, len(left.keys), right)]
    sizes = np.bincount(parents[chosen], minlength=rows).astype(np.int64)
    kept_keys = keys.take(pa.array(chosen))
    values = _chunk(bodies[0](pa.array(parents[chosen]), kept_keys, *sides))
    return maps(out, kept_keys, values, sizes, missing)


def _side(entry_numbers: Any, chosen: Any, first: int, side: Maps) -> Any:
    """The values that one map has for the chosen entries."""
    own = entry_numbers[first : first + len(side.keys)]
    order = np.argsort(own, kind="stable")
    wanted = entry_numbers[chosen]
    at = np.searchsorted(own[order], wanted)
    there = (at < len(own)) & (np.append(own[order], -1)[np.minimum(at, len(own))] == wanted)
    places = np.where(there, np.append(order, 0)[np.minimum(at, len(own))], 0)
    return _chunk(side.values).take(pa.array(places, mask=~there))


def _entry_numbers(type_: Type, keys: Any, parents: Any) -> Any:
    """A number for each entry, the same for equal keys of one row."""
    if not len(keys):
        return np.empty(0, np.int64)
    encoded = Bytes(*to_bytes(type_, keys))
    packed = bytes_array(pa.binary(), encoded, NO_OCTETS).dictionary_encode().indices
    codes = numbers(packed).astype(np.int64)
    return parents * (int(codes.max()) + 1) + codes


# -- arrays sorted by a comparison


def _array_sort(given: list[Any], bodies: Sequence[Body], out: Any) -> Any:
    """Arrays in the order of a function that compares two elements: negative, zero or positive.

    All rows are merged in step, runs of 1, 2, 4, … elements: a comparison is made of one pair of each run at a time,
    for all runs of all rows at once.
    """
    array = given[0]
    held = Lists.of(array, len(array))
    order = np.arange(len(held.elements))
    elements = _chunk(held.elements)
    failed = np.zeros(len(array), bool)
    width = 1
    while width < int(held.sizes.max(initial=0)):
        order = _merged(order, held, width, lambda a, b, rows: _compared(bodies[0], elements, a, b, rows, failed))
        width *= 2
    made = lists(elements.take(pa.array(order)), held.sizes, out, nulls(array))
    return Checked(made, failed, "the comparison of two elements is NULL") if failed.any() else made


def _compared(body: Body, elements: Any, a: Any, b: Any, rows: Any, failed: Any) -> Any:
    """Whether elements come after others; rows for which this is NULL fail."""
    verdicts = _chunk(body(pa.array(rows), elements.take(pa.array(a)), elements.take(pa.array(b))))
    unknown = verdicts.is_null().to_numpy(zero_copy_only=False)
    failed[rows[unknown]] = True
    return numbers(verdicts) > 0


def _merged(order: Any, held: Lists, width: int, after: Callable[[Any, Any, Any], Any]) -> Any:
    """The order with each two neighbouring runs of so many elements of one array made one."""
    sizes, begins = held.sizes, held.begins
    pairs = -(-sizes // (2 * width))
    rows = np.repeat(np.arange(len(sizes)), pairs)
    starts = begins[rows] + 2 * width * (np.arange(len(rows)) - np.repeat(np.cumsum(pairs) - pairs, pairs))
    ends = begins[rows] + sizes[rows]
    middles, ends = np.minimum(starts + width, ends), np.minimum(starts + 2 * width, ends)
    left, right, to = starts.copy(), middles.copy(), starts.copy()
    result = order.copy()
    open_ = np.flatnonzero((left < middles) & (right < ends))
    while len(open_):
        second = after(order[left[open_]], order[right[open_]], rows[open_])
        taken = np.where(second, right[open_], left[open_])
        result[to[open_]] = order[taken]
        to[open_] += 1
        right[open_] += second
        left[open_] += ~second
        open_ = open_[(left[open_] < middles[open_]) & (right[open_] < ends[open_])]
    for place, end in ((left, middles), (right, ends)):
        rest = end - place
        sources = np.repeat(place, rest) + np.arange(rest.sum()) - np.repeat(np.cumsum(rest) - rest, rest)
        targets = np.repeat(to, rest) + np.arange(rest.sum()) - np.repeat(np.cumsum(rest) - rest, rest)
        result[targets] = order[sources]
        to += rest
    return result


APPLIED_TO_MAPS: Final[dict[str, Applied]] = {
    "map_filter": _filter,
    "transform_values": _transform_values,
    "transform_keys": _transform_keys,
    "map_zip_with": _zip_with,
    "array_sort": _array_sort,
}
