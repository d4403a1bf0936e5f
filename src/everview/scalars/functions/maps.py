"""Functions of maps on whole columns.

A column of maps is one column of keys and one of values, and the number of entries in each row, in order. What makes
maps fails where a key is NULL or comes twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.codes.maps import rows_of_repeated
from everview.scalars.functions.comparison import KERNELS as COMPARISONS
from everview.scalars.functions.comparison import order_key
from everview.scalars.functions.kernel import (
    Checked,
    Failed,
    Kernel,
    Kind,
    Mask,
    Value,
    constant,
    each,
    is_float,
    length,
    nulls,
    whole,
)
from everview.scalars.functions.lists import Lists, lists, spans
from everview.types import type_of_arrow

NULL_KEY: Final = "a map has no NULL as a key"
TWICE: Final = "a map has each key once"


def entries_type(kind: Kind) -> Kind:
    """The Arrow type of arrays of the entries of maps."""
    return pa.list_(pa.field("element", pa.struct([kind.key_field, kind.item_field])))


@dataclass(frozen=True, slots=True)
class Maps:
    """A column of maps: the keys and the values of all rows, and where those of each row begin, and how many."""

    keys: Value
    values: Value
    begins: Any
    sizes: Any

    @staticmethod
    def of(array: Value, rows: int) -> Maps:
        held = Lists.of(whole(array, rows).cast(entries_type(array.type)), rows)
        return Maps(held.elements.field(0), held.elements.field(1), held.begins, held.sizes)

    @property
    def parents(self) -> Any:
        """The row of every entry."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def place_of(self, keys: Value) -> Any:
        """Where the entry of a key of each row stands; -1 where there is none."""
        out = np.full(len(self.sizes), -1, np.int64)
        if len(self.keys):
            parents = self.parents
            sought = keys if isinstance(keys, pa.Scalar) else keys.take(pa.array(parents))
            same = COMPARISONS["equal"](pa.bool_(), self.keys, sought).fill_null(False)
            places = np.flatnonzero(same.to_numpy(zero_copy_only=False))
            out[parents[places]] = places
        return out


def maps(out: Kind, keys: Value, values: Value, sizes: Any, missing: Mask | None = None) -> Value:
    """A column of maps of so many entries each."""
    offsets: Any = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    keys = keys if keys.type == out.key_type else keys.cast(out.key_type)
    values = values if values.type == out.item_type else values.cast(out.item_type)
    mask = None if missing is None else pa.array(missing)
    return pa.MapArray.from_arrays(offsets, keys, values, type=out, mask=mask)


def checked(out: Kind, keys: Value, values: Value, sizes: Any, missing: Mask | None = None) -> Any:
    """A column of maps; a NULL key, or the same key twice, is a failure of its row."""
    if is_float(keys.type):
        keys = pc.add(keys, pa.scalar(0.0, keys.type))  # -0.0 is 0.0
    parents = np.repeat(np.arange(len(sizes)), sizes)
    failed = np.zeros(len(sizes), bool)
    absent = keys.is_null().to_numpy(zero_copy_only=False)
    reason = NULL_KEY if absent.any() else TWICE
    failed[parents[absent]] = True
    failed[rows_of_repeated(type_of_arrow(keys.type), keys, parents)] = True
    if missing is not None:
        failed &= ~missing
    if not failed.any():
        return maps(out, keys, values, sizes, missing)
    good = ~failed[parents]
    kept = pa.array(good)
    made = maps(out, keys.filter(kept), values.filter(kept), np.where(failed, 0, sizes), missing)
    return Checked(made, failed, reason)


# -- making


def _interleaved(columns: list[Value], rows: int) -> Value:
    order = (np.arange(rows)[:, None] + rows * np.arange(len(columns))).ravel()
    return pa.concat_arrays([whole(column, rows) for column in columns]).take(pa.array(order))


def _map(out: Kind, *arguments: Value) -> Any:
    if not arguments:
        return pa.array([[]], out)
    rows = length(arguments)
    keys, values = (_interleaved(list(arguments[first::2]), rows) for first in (0, 1))
    return checked(out, keys, values, np.full(rows, len(arguments) // 2))


def _from_arrays(out: Kind, keys: Value, values: Value) -> Any:
    rows = length((keys, values))
    missing = nulls(keys, values)
    a, b = Lists.of(keys, rows), Lists.of(values, rows)
    present = np.ones(rows, bool) if missing is None else ~missing
    uneven = (a.sizes != b.sizes) & present
    sizes = np.where(present & ~uneven, a.sizes, 0)
    made = checked(
        out,
        a.elements.take(pa.array(spans(a.begins, sizes))),
        b.elements.take(pa.array(spans(b.begins, sizes))),
        sizes,
        missing,
    )
    if not uneven.any():
        return made
    failed = uneven | made.failed if isinstance(made, Checked) else uneven
    return Checked(made.value if isinstance(made, Checked) else made, failed, "there are not as many values as keys")


def _from_entries(out: Kind, array: Value) -> Any:
    """Maps of arrays of entries; NULL where an entry is."""
    rows = length((array,))
    held = Lists.of(array, rows)
    missing = nulls(array)
    absent = np.zeros(rows, bool) if missing is None else missing.copy()
    parents = held.parents
    absent[parents[held.elements.is_null().to_numpy(zero_copy_only=False)]] = True
    kept = pa.array(~absent[parents])
    entries = held.elements.filter(kept)
    return checked(out, entries.field(0), entries.field(1), np.where(absent, 0, held.sizes), absent)


def _concat(out: Kind, *arguments: Value) -> Any:
    if not arguments:
        return pa.array([[]], out)
    rows = length(arguments)
    missing = nulls(*arguments)
    held = [Maps.of(argument, rows) for argument in arguments]
    present = np.ones(rows, bool) if missing is None else ~missing
    sizes = [np.where(present, one.sizes, 0) for one in held]
    before = np.cumsum([0, *(len(one.keys) for one in held)])
    begins = np.stack([one.begins + first for one, first in zip(held, before, strict=False)], axis=1).ravel()
    order = pa.array(spans(begins, np.stack(sizes, axis=1).ravel()))
    keys = pa.concat_arrays([one.keys for one in held]).take(order)
    values = pa.concat_arrays([_as(one.values, out.item_type) for one in held]).take(order)
    return checked(out, keys, values, sum(sizes), missing)


def _as(values: Value, kind: Kind) -> Value:
    return values if values.type == kind else values.cast(kind)


def _of_text(out: Kind, text: Value, pairs: Value, between: Value) -> Any:
    """Maps of texts such as ``a:1,b:2``; the marks are regular expressions."""

    def read(given: str) -> list[tuple[str, str | None]]:
        entries: list[tuple[str, str | None]] = []
        for part in re.split(pairs.as_py(), given):
            key, *value = re.split(between.as_py(), part, maxsplit=1)
            entries.append((key, value[0] if value else None))
        if len({key for key, _ in entries}) < len(entries):
            raise Failed(TWICE)
        return entries

    return each(out, read, text)


# -- reading


def _parts(which: str) -> Kernel:
    def run(out: Kind, array: Value) -> Any:
        held = Maps.of(array, length((array,)))
        return lists(getattr(held, which), held.sizes, out, nulls(array))

    return run


def _entries(out: Kind, array: Value) -> Any:
    rows = length((array,))
    held = Lists.of(whole(array, rows).cast(entries_type(array.type)), rows)
    return lists(held.elements, held.sizes, out, nulls(array))


def _value(out: Kind, array: Value, key: Value) -> Any:
    """The value of a key; NULL where there is none."""
    rows = length((array, key))
    held = Maps.of(array, rows)
    place = held.place_of(key)
    return held.values.take(pa.array(place, mask=place < 0))


def _contains(out: Kind, array: Value, key: Value) -> Any:
    rows = length((array, key))
    return pa.array(Maps.of(array, rows).place_of(key) >= 0, mask=nulls(array, key))


def _size(out: Kind, array: Value) -> Any:
    rows = length((array,))
    return pc.list_value_length(whole(array, rows).cast(entries_type(array.type)))


def _sorted(out: Kind, array: Value) -> Any:
    """Maps with their entries in the order of the keys."""
    return each(out, lambda entries: sorted(entries, key=lambda entry: order_key(entry[0])), array)


KERNELS: Final[dict[str, Kernel]] = {
    "map": _map,
    "map_from_arrays": _from_arrays,
    "map_from_entries": _from_entries,
    "map_concat": _concat,
    "str_to_map": constant(1, constant(2, _of_text)),
    "map_keys": _parts("keys"),
    "map_values": _parts("values"),
    "map_entries": _entries,
    "map_value": _value,
    "map_contains_key": _contains,
    "map_size": _size,
    "map_sorted": _sorted,
}


__all__ = ["KERNELS", "Maps", "checked", "maps"]
