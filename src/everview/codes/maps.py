"""Maps and variants from outside: keys that come once, and variants in the one form that a value has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from everview.codes.buffers import NO_OCTETS, Bytes, Column, bytes_array, offsets_of
from everview.codes.canonical import to_bytes
from everview.errors import WrongType
from everview.types import MapType, Type, Variant
from everview.types.words import Words


def is_variant_struct(arrow: Any) -> bool:
    """Whether a type is the struct of bytes that Spark and Parquet have for a variant."""
    if not at.is_struct(arrow) or arrow.num_fields != 2:
        return False
    return {arrow.field(0).name, arrow.field(1).name} == {"value", "metadata"}


def of_variant_parts(column: Column) -> Column:
    """The variants whose values and metadata stand in two columns of bytes."""
    pairs = zip(column.field("value").to_pylist(), column.field("metadata").to_pylist(), strict=True)
    parts = zip(pairs, column.is_valid().to_pylist(), strict=True)
    return pa.array([Variant.of_parts(*pair).raw if valid else None for pair, valid in parts], pa.binary())


def variants(name: str, column: Column) -> Column:
    """Variants in the one form that a value has, each different one read once."""
    coded = column.dictionary_encode() if not isinstance(column, pa.ChunkedArray) else None
    if coded is None:
        return pa.chunked_array([variants(name, chunk) for chunk in column.chunks], pa.binary())
    given = coded.dictionary.to_pylist()
    try:
        made = [Variant.of(Variant(raw).value).raw for raw in given]
    except WrongType as error:
        raise WrongType(f'column "{name}": {error.message}', hint=error.hint) from None
    return column if made == given else pa.array(made, pa.binary()).take(coded.indices)


def entries_of(column: Column) -> Column:
    """A column of maps as lists of structs of a key and a value, over the same buffers.

    A cast to lists would do, but for values that are NULL and of a type with NOT NULL parts, which Arrow refuses.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    lists = offsets_of(column)
    parts = [part.slice(lists[0], lists[-1] - lists[0]) for part in (column.keys, column.items)]
    fields = [pa.field("key", parts[0].type, nullable=False), pa.field("value", parts[1].type)]
    entries = pa.StructArray.from_arrays(parts, fields=fields)
    offsets: Any = pa.array(np.asarray(lists - lists[0], np.int32))
    return pa.ListArray.from_arrays(offsets, entries, mask=column.is_null() if column.null_count else None)


def check_keys(name: str, type_: MapType, column: Column, rows: np.ndarray[Any, Any]) -> None:
    """Refuse maps with a key twice, and with NULL as a key."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    lists = offsets_of(column)
    keys = column.keys.slice(lists[0], lists[-1] - lists[0])
    parents = np.repeat(np.arange(len(column)), np.diff(lists))
    if keys.null_count:
        row = int(rows[parents[keys.is_valid().index(False).as_py()]])
        raise WrongType(f'column "{name}", rows[{row}]: a map with the key NULL', hint="give every entry a key")
    twice = rows_of_repeated(type_.key, keys, parents)
    if len(twice):
        row = int(rows[twice[0]])
        raise WrongType(f'column "{name}", rows[{row}]: a map with a key twice', hint="give every key once")


def rows_of_repeated(type_: Type, keys: Column, parents: Words) -> Words:
    """The rows in which a key comes twice, given the row of every key."""
    if len(keys) < 2:
        return np.empty(0, np.int64)
    packed = bytes_array(pa.binary(), Bytes(*to_bytes(type_, keys)), NO_OCTETS)
    columns: Any = {"row": parents, "key": packed}
    counted = pa.table(columns).group_by(["row", "key"]).aggregate([([], "count_all")])
    often = counted.filter(pc.greater(counted.column("count_all"), pa.scalar(1)))
    return np.unique(often.column("row").to_numpy())
