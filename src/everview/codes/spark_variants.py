"""Variants as Spark and Parquet have them in Arrow: structs of two byte strings, the value and the metadata."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from everview.types import VARIANT, Variant
from everview.types.arrow import field_of_arrow

# The mark by which Spark knows that a struct is a variant.
_PARTS: Final = (
    pa.field("value", pa.binary(), nullable=False),
    pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
)
VARIANT_STRUCT: Final = pa.struct(list(_PARTS))


def in_parts(column: Any) -> Any:
    """A column of variants as Spark has it."""
    held = [None if raw is None else Variant(raw).parts for raw in column.to_pylist()]
    parts = [None if pair is None else {"value": pair[0], "metadata": pair[1]} for pair in held]
    return pa.array(parts, VARIANT_STRUCT)


def as_spark(table: pa.Table) -> pa.Table:
    """A table with its variants as Spark has them."""
    for place, field in enumerate(table.schema):
        if field_of_arrow(field).type == VARIANT:
            new = pa.field(field.name, VARIANT_STRUCT, field.nullable)
            table = table.set_column(place, new, in_parts(table.column(place)))
    return table
