"""Functions of arrays and structs."""

from __future__ import annotations

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
    Value,
    each,
    each_row,
    length,
    nulls,
    numbers,
    whole,
)


def _array(out: Kind, *arguments: Value) -> Any:
    if not arguments:
        return pa.array([[]], out)
    rows, width = length(arguments), len(arguments)
    joined = pa.concat_arrays([whole(a, rows) for a in arguments])
    order = (np.arange(rows)[:, None] + rows * np.arange(width)).ravel()
    offsets: Value = pa.array(np.arange(rows + 1, dtype=np.int32) * width, pa.int32())
    return pa.ListArray.from_arrays(offsets, joined.take(pa.array(order)), type=out)


def _contains(out: Kind, array: Value, value: Value) -> Any:
    """Whether an array contains a value; NULL if no element equals it and an element is NULL."""
    rows = length((array, value))
    array = whole(array, rows)
    parents = pc.list_parent_indices(array)
    sought = value if isinstance(value, pa.Scalar) else value.take(parents)
    if isinstance(value, pa.Scalar) and not value.is_valid:
        return pa.nulls(rows, out)
    elements = pc.list_flatten(array)
    if not len(elements):
        return pc.if_else(_valid(array, value, rows), pa.scalar(False), pa.scalar(None, out))
    same = COMPARISONS["equal"](pa.bool_(), elements, sought)
    where = numbers(parents)
    contained = np.bincount(where[same.fill_null(False).to_numpy(zero_copy_only=False)], minlength=rows) > 0
    unknown = np.bincount(where[same.is_null().to_numpy(zero_copy_only=False)], minlength=rows) > 0
    answer = pa.array(contained, mask=unknown & ~contained)
    return pc.if_else(_valid(array, value, rows), answer, pa.scalar(None, out))


def _valid(array: Value, value: Value, rows: int) -> Value:
    missing = nulls(array, value)
    return pa.repeat(pa.scalar(True), rows) if missing is None else pa.array(~missing)


def _element_at(out: Kind, array: Value, index: Value) -> Any:
    """The element at an index from 1, or from the end if negative; an index beyond either end fails."""
    rows = length((array, index))
    array = whole(array, rows)
    position = numbers(whole(index, rows), 1).astype(np.int64)
    sizes = numbers(pc.list_value_length(array)).astype(np.int64)
    begins = np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64)
    missing = nulls(array, index)
    place = np.where(position > 0, position - 1, sizes + position)
    inside = (position != 0) & (place >= 0) & (place < sizes)
    lost = ~inside if missing is None else ~inside | missing
    elements = pc.list_flatten(array).take(pa.array(begins + place, mask=lost))
    failed = ~inside if missing is None else ~inside & ~missing
    return Checked(elements, failed, "the index is outside the array") if failed.any() else elements


def _try_element_at(out: Kind, array: Value, index: Value) -> Any:
    """The element at an index; NULL beyond either end, but index 0 fails."""
    element = _element_at(out, array, index)
    if not isinstance(element, Checked):
        return element
    zero = numbers(whole(index, length((array, index))), 1) == 0
    return Checked(element.value, element.failed & zero, "0 is no index: the first is 1")


def _sort(out: Kind, array: Value, *ascending: Value) -> Any:
    def ordered(items: list[Any], up: bool = True) -> list[Any]:
        return sorted(items, key=order_key, reverse=not up)

    return each(out, ordered, array, *ascending)


def _sort_nulls_last(out: Kind, array: Value) -> Any:
    return each(out, lambda items: sorted(items, key=lambda item: (item is None, order_key(item))), array)


def _distinct(out: Kind, array: Value) -> Any:
    """The distinct elements, in the order in which they first occur."""

    def once(items: list[Any]) -> list[Any]:
        first: dict[Any, Any] = {}
        for item in items:
            first.setdefault(order_key(item), item)
        return list(first.values())

    return each(out, once, array)


def _flatten(out: Kind, array: Value) -> Any:
    """The arrays of an array as one; NULL if one of them is."""
    return each(out, lambda parts: None if None in parts else [item for part in parts for item in part], array)


def _extreme(largest: bool) -> Kernel:
    def run(out: Kind, array: Value) -> Any:
        return each(out, one, array)

    def one(items: list[Any]) -> Any:
        known = [item for item in items if item is not None]
        return (max if largest else min)(known, key=order_key, default=None)

    return run


def _join(out: Kind, array: Value, separator: Value, instead: Value | None = None) -> Any:
    def joined(items: list[Any] | None, mark: str | None, null: str | None = None) -> str | None:
        if items is None or mark is None or (instead is not None and null is None):
            return None
        kept = [null if item is None else item for item in items]
        return mark.join(item for item in kept if item is not None)

    return each_row(out, joined, array, separator, *(() if instead is None else (instead,)))


def _field(out: Kind, value: Value, name: Value) -> Any:
    return pc.struct_field(value, name.as_py())


def _struct(out: Kind, *arguments: Value) -> Any:
    rows = length(arguments)
    return pa.StructArray.from_arrays([whole(a, rows) for a in arguments[1::2]], fields=list(out))


KERNELS: Final[dict[str, Kernel]] = {
    "array": _array,
    "array_contains": _contains,
    "size": lambda out, array: pc.list_value_length(array),
    "element_at": _element_at,
    "try_element_at": _try_element_at,
    "sort_array": _sort,
    "array_sort": _sort_nulls_last,
    "array_distinct": _distinct,
    "flatten": _flatten,
    "array_min": _extreme(largest=False),
    "array_max": _extreme(largest=True),
    "array_join": _join,
    "get_field": _field,
    "named_struct": _struct,
}
FAILING: Final = frozenset({"element_at", "try_element_at"})
