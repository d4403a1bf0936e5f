"""Functions of arrays on whole columns: elements added, taken out, searched and put together.

A column of arrays is one flat column of elements and the number of them in each row; a result is a choice of elements
and new numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.scalars.functions.comparison import KERNELS as COMPARISONS
from everview.scalars.functions.comparison import order_key
from everview.scalars.functions.kernel import (
    Checked,
    Kernel,
    Kind,
    Mask,
    Value,
    is_float,
    length,
    nulls,
    numbers,
    whole,
)

MOST: Final = 1 << 27  # elements in the arrays of one column
TOO_LONG: Final = f"the arrays would have more than {MOST:,} elements"


@dataclass(frozen=True, slots=True)
class Lists:
    """A column of arrays: the elements of all rows, and where those of each row begin and how many there are."""

    elements: Value
    begins: Any
    sizes: Any

    @staticmethod
    def of(array: Value, rows: int) -> Lists:
        array = whole(array, rows)
        sizes = numbers(pc.list_value_length(array)).astype(np.int64)
        return Lists(pc.list_flatten(array), np.cumsum(sizes) - sizes, sizes)

    @property
    def parents(self) -> Any:
        """The row of every element."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def places(self) -> Any:
        """The place of every element within its row, from 0."""
        return np.arange(len(self.elements)) - np.repeat(self.begins, self.sizes)


def lists(elements: Value, sizes: Any, out: Kind, missing: Mask | None = None) -> Value:
    """A column of arrays of so many elements each."""
    offsets: Value = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    wanted = elements if elements.type == out.value_type else elements.cast(out.value_type)
    return pa.ListArray.from_arrays(offsets, wanted, type=out, mask=None if missing is None else pa.array(missing))


def spans(begins: Any, sizes: Any) -> Any:
    """The numbers from each beginning on, so many of each.

    >>> spans(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    return np.repeat(begins - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


def _taken(elements: Value, places: Any, absent: Mask | None = None) -> Value:
    return elements.take(pa.array(places, mask=absent))


def too_many(sizes: Any) -> Any:
    """The rows from which on the arrays of a column have more elements than memory should hold."""
    return np.cumsum(sizes.astype(np.float64)) > MOST


def _inserted(out: Kind, array: Value, place: Any, element: Value, missing: Mask | None) -> Any:
    """The arrays with an element at a place from 0, which may lie beyond either end: NULLs are put between."""
    rows = len(place)
    old = Lists.of(array, rows)
    added = whole(element, rows)
    added = added if added.type == out.value_type else added.cast(out.value_type)
    before, behind = np.maximum(-place, 0), np.maximum(place - old.sizes, 0)
    sizes = old.sizes + 1 + before + behind
    sizes = sizes if missing is None else np.where(missing, 0, sizes)
    beyond = too_many(sizes)
    sizes = np.where(beyond, 0, sizes)
    places = spans(np.zeros(rows, np.int64), sizes)
    row = np.repeat(np.arange(rows), sizes)
    target = np.maximum(place, 0)[row]
    # An element that was there keeps its place, and those behind the new one move on.
    source = places - (places > target) - before[row]
    is_new = places == target
    absent = ~is_new & ((source < 0) | (source >= old.sizes[row]))
    joined = pa.concat_arrays([old.elements.cast(out.value_type), added])
    chosen = np.where(is_new, len(old.elements) + row, old.begins[row] + source)
    value = lists(_taken(joined, np.where(absent, 0, chosen), absent), sizes, out, missing)
    return Checked(value, beyond, TOO_LONG) if beyond.any() else value


def _append(out: Kind, array: Value, element: Value) -> Any:
    rows = length((array, element))
    return _inserted(out, array, Lists.of(array, rows).sizes, element, nulls(whole(array, rows)))


def _prepend(out: Kind, array: Value, element: Value) -> Any:
    rows = length((array, element))
    return _inserted(out, array, np.zeros(rows, np.int64), element, nulls(whole(array, rows)))


def _insert(out: Kind, array: Value, position: Value, element: Value) -> Any:
    """A position from 1, or from the end if negative: -1 puts the element last."""
    rows = length((array, position, element))
    missing = nulls(whole(array, rows), position)
    sizes = Lists.of(array, rows).sizes
    wanted = numbers(whole(position, rows), 1).astype(np.int64)
    place = np.where(wanted > 0, wanted - 1, sizes + wanted + 1)
    failed = (wanted == 0) if missing is None else (wanted == 0) & ~missing
    if failed.any():
        return Checked(whole(array, rows), failed, "0 is no position: the first is 1")
    return _inserted(out, array, place, element, missing)


def _kept(out: Kind, old: Lists, keep: Any, missing: Mask | None) -> Value:
    """The arrays with only some of their elements."""
    sizes = np.bincount(old.parents[keep], minlength=len(old.sizes))
    return lists(old.elements.filter(pa.array(keep)), sizes, out, missing)


def _compact(out: Kind, array: Value) -> Any:
    old = Lists.of(array, len(array))
    return _kept(out, old, pc.is_valid(old.elements).to_numpy(zero_copy_only=False), nulls(array))


def _equal(old: Lists, element: Value) -> Any:
    """Which elements equal the row's value; none that is NULL."""
    if not len(old.elements):
        return np.zeros(0, bool)
    sought = element if isinstance(element, pa.Scalar) else element.take(pa.array(old.parents))
    if isinstance(sought, pa.Scalar) and not sought.is_valid:
        return np.zeros(len(old.elements), bool)
    same = COMPARISONS["equal"](pa.bool_(), old.elements, sought)
    return same.fill_null(False).to_numpy(zero_copy_only=False)


def _remove(out: Kind, array: Value, element: Value) -> Any:
    rows = length((array, element))
    old = Lists.of(array, rows)
    return _kept(out, old, ~_equal(old, element), nulls(whole(array, rows), element))


def _position(out: Kind, array: Value, element: Value) -> Any:
    """The first place of a value, from 1; 0 if it is not there."""
    rows = length((array, element))
    old = Lists.of(array, rows)
    equal = np.flatnonzero(_equal(old, element))
    first = np.zeros(rows, np.int64)
    first[old.parents[equal][::-1]] = old.places[equal][::-1] + 1  # the first is written last
    return pa.array(first, mask=nulls(whole(array, rows), element))


def _repeat(out: Kind, element: Value, count: Value) -> Any:
    rows = length((element, count))
    missing = nulls(whole(count, rows))
    sizes = np.maximum(numbers(whole(count, rows)).astype(np.int64), 0)
    beyond = too_many(sizes)
    if beyond.any():
        return Checked(pa.nulls(rows, out), beyond, TOO_LONG)
    return lists(_taken(whole(element, rows), np.repeat(np.arange(rows), sizes)), sizes, out, missing)


def _slice(out: Kind, array: Value, start: Value, size: Value) -> Any:
    rows = length((array, start, size))
    old, missing = Lists.of(array, rows), nulls(whole(array, rows), start, size)
    begin = numbers(whole(start, rows), 1).astype(np.int64)
    wanted = numbers(whole(size, rows)).astype(np.int64)
    failed = (begin == 0) | (wanted < 0)
    failed = failed if missing is None else failed & ~missing
    first = np.where(begin > 0, begin - 1, old.sizes + begin)
    outside = (first < 0) | (first >= old.sizes) | failed
    sizes = np.where(outside, 0, np.minimum(wanted, old.sizes - first))
    sizes = np.maximum(sizes if missing is None else np.where(missing, 0, sizes), 0)
    value = lists(_taken(old.elements, spans(old.begins + np.where(outside, 0, first), sizes)), sizes, out, missing)
    return Checked(value, failed, "a slice starts from 1, or from -1 backwards, and has no negative length")


def _get(out: Kind, array: Value, index: Value) -> Any:
    """The element at an index from 0; NULL beyond either end."""
    rows = length((array, index))
    old = Lists.of(array, rows)
    place = numbers(whole(index, rows), -1).astype(np.int64)
    absent = (place < 0) | (place >= old.sizes)
    return _taken(old.elements, np.where(absent, 0, old.begins + place), absent)


# -- as sets


def _codes(elements: Value) -> Any:
    """A number for every element, the same for equal ones; NULL is a value like another."""
    if not len(elements):
        return np.zeros(0, np.int64)
    if is_float(elements.type):
        _, codes = np.unique(numbers(elements, 0.0) + 0.0, return_inverse=True)
        codes = codes.astype(np.int64)
        codes[elements.is_null().to_numpy(zero_copy_only=False)] = len(elements)
        return codes
    if pa.types.is_nested(elements.type) or pa.types.is_null(elements.type):
        known: dict[Any, int] = {}
        return np.array([known.setdefault(order_key(item), len(known)) for item in elements.to_pylist()], np.int64)
    return numbers(elements.dictionary_encode(null_encoding="encode").indices).astype(np.int64)


def _keyed(*columns: Lists) -> list[Any]:
    """For each column, a number for every element that is the same for equal ones of the same row."""
    codes = _codes(pa.concat_arrays([column.elements for column in columns]))
    parents = np.concatenate([column.parents for column in columns])
    keys = parents * (codes.max(initial=0) + 1) + codes
    return np.split(keys, np.cumsum([len(column.elements) for column in columns])[:-1])


def _first_of_each(keys: Any) -> Any:
    first = np.zeros(len(keys), bool)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def _both(a: Value, b: Value) -> tuple[Lists, Lists, Mask | None]:
    rows = length((a, b))
    return Lists.of(a, rows), Lists.of(b, rows), nulls(whole(a, rows), whole(b, rows))


def _union(out: Kind, a: Value, b: Value) -> Any:
    x, y, missing = _both(a, b)
    sizes = x.sizes + y.sizes
    order = np.concatenate([x.parents, y.parents]).argsort(kind="stable")
    elements = pa.concat_arrays([x.elements, y.elements]).take(pa.array(order))
    both = Lists(elements, np.cumsum(sizes) - sizes, sizes)
    (keys,) = _keyed(both)
    return _kept(out, both, _first_of_each(keys), missing)


def _among(wanted: bool) -> Kernel:
    """The kernel of the different elements of one array that are among those of another, or are not."""

    def run(out: Kind, a: Value, b: Value) -> Any:
        x, y, missing = _both(a, b)
        keys, others = _keyed(x, y)
        return _kept(out, x, _first_of_each(keys) & (np.isin(keys, others) == wanted), missing)

    return run


def _overlap(out: Kind, a: Value, b: Value) -> Any:
    """Whether two arrays have an element in common; NULL if not, both have some, and one of them is NULL."""
    x, y, missing = _both(a, b)
    rows = len(x.sizes)
    keys, others = _keyed(x, y)
    known = pc.is_valid(x.elements).to_numpy(zero_copy_only=False)
    common = np.bincount(x.parents[known & np.isin(keys, others)], minlength=rows) > 0
    unknown = np.zeros(rows, bool)
    for column in (x, y):
        unknown[column.parents[pc.is_null(column.elements).to_numpy(zero_copy_only=False)]] = True
    unknown &= ~common & (x.sizes > 0) & (y.sizes > 0)
    return pa.array(common, mask=unknown if missing is None else unknown | missing)


def _zip(out: Kind, *arrays: Value) -> Any:
    """Structs of the elements at the same place; a shorter array has NULL there."""
    rows = length(arrays)
    columns = [Lists.of(array, rows) for array in arrays]
    missing = nulls(*(whole(array, rows) for array in arrays))
    sizes = np.max([column.sizes for column in columns], axis=0)
    sizes = sizes if missing is None else np.where(missing, 0, sizes)
    places, row = spans(np.zeros(rows, np.int64), sizes), np.repeat(np.arange(rows), sizes)
    parts = [
        _taken(
            column.elements,
            np.where(places < column.sizes[row], column.begins[row] + places, 0),
            places >= column.sizes[row],
        )
        for column in columns
    ]
    return lists(pa.StructArray.from_arrays(parts, fields=list(out.value_type)), sizes, out, missing)


KERNELS: Final[dict[str, Kernel]] = {
    "array_append": _append,
    "array_prepend": _prepend,
    "array_insert": _insert,
    "array_compact": _compact,
    "array_remove": _remove,
    "array_position": _position,
    "array_repeat": _repeat,
    "slice": _slice,
    "get": _get,
    "array_union": _union,
    "array_intersect": _among(wanted=True),
    "array_except": _among(wanted=False),
    "arrays_overlap": _overlap,
    "arrays_zip": _zip,
}
