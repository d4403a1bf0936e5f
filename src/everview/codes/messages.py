"""Delta matrices to Arrow tables by a message: one call of a kernel, and one of Arrow, whatever the columns.

Arrow's own format for a record batch in memory or on the way is a head and the buffers of all columns. Arrow reads it
without copying, so a table of few rows costs a third of what it does column by column.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, amount DECIMAL(12,2)")
>>> weighted_table(schema, np.array([[1, 950, -1]]), Dictionary()).to_pylist()
[{'id': 1, 'amount': Decimal('9.50'), '_weight': -1}]
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.codes.buffers import buffer_of
from everview.codes.dictionary import Dictionary
from everview.codes.encode import WEIGHT, references, weighted_schema
from everview.kernels import arrow as forms
from everview.kernels.message import BYTES, message
from everview.types import BIGINT, Decimal, Field, ScalarType, Schema
from everview.types.words import Matrix, Words

_FORMS: Final[dict[str, int]] = {
    "TINYINT": forms.INT8,
    "SMALLINT": forms.INT16,
    "INTEGER": forms.INT32,
    "BIGINT": forms.INT64,
    "FLOAT": forms.FLOAT32,
    "DOUBLE": forms.FLOAT64,
    "DATE": forms.INT32,
    "TIMESTAMP": forms.INT64,
    "TIMESTAMP_NTZ": forms.INT64,
    "TIME": forms.INT64,
    "INTERVAL DAY": forms.INT64,
    "INTERVAL DAY TO SECOND": forms.INT64,
    "INTERVAL YEAR TO MONTH": forms.INT32,
    "BOOLEAN": forms.BITS,
}


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """The columns of messages: how each is written, and a head in which only numbers are to be replaced."""

    arrow: pa.Schema
    head: Words
    places: Words
    plan: Matrix


def weighted_table(schema: Schema, matrix: Matrix, dictionary: Dictionary) -> pa.Table | None:
    """The table of a delta or batch matrix, weights last; None if a column is nested, or has too many bytes."""
    layout = _layout(schema)
    if layout is None or not len(matrix):
        return None
    if dictionary.is_partial:
        for kind, codes in references(schema, matrix).items():
            dictionary.require(kind, codes)
    words = message(np.ascontiguousarray(matrix), layout.head, layout.places, layout.plan, *dictionary.arrays())
    if not len(words):
        return None
    read: Any = pa.ipc.read_record_batch
    return pa.Table.from_batches([read(buffer_of(words), layout.arrow)])


@cache
def _layout(schema: Schema) -> MessageLayout | None:
    fields = (*schema.fields, Field(WEIGHT, BIGINT, nullable=False))
    starts = (*(place.start for place in schema.slices), schema.width)
    lines = [_line(field, start) for field, start in zip(fields, starts, strict=True)]
    arrow = weighted_schema(schema)
    nulls: Any = pa.nulls
    one = pa.RecordBatch.from_arrays([nulls(1, type_) for type_ in arrow.types], schema=arrow)
    head, places = _head(one.serialize().to_pybytes())
    if None in lines or any(place % 8 for place in places):
        return None
    plan = np.array(lines, np.int64)
    return MessageLayout(arrow, np.frombuffer(head, np.int64), np.array(places, np.int64) // 8, plan)


def _line(field: Field, word: int) -> list[int] | None:
    """The line of a column in the plan of `message`; None if it is nested, or each value has a type of its own."""
    flagged = field.type == BIGINT and field.nullable
    checked = field.type != BIGINT or field.nullable
    match field.type:
        case Decimal():
            form = forms.DECIMAL if field.type.words() == 1 else forms.WIDE_DECIMAL
        case ScalarType(name) if name in _FORMS:
            form = _FORMS[name]
        case _ if field.type.arrow in (pa.string(), pa.binary()) and field.type.interned:
            form = BYTES
        case _:
            return None
    return [form, word, int(checked), int(flagged), field.type.kind]


def _head(data: bytes) -> tuple[bytes, tuple[int, int, int, int]]:
    """The head of a message of Arrow's, and where its numbers stand: of rows, NULLs, buffers, and bytes of the body.

    The head is a flatbuffer behind two numbers of 32 bits. A table of that format begins with the distance back to the
    places of its members; members that are no numbers are the distance to where they stand, as is the beginning.
    """
    begin, size = 8, struct.unpack_from("<I", data, 4)[0]
    whole = _target(data, begin)
    batch = _target(data, _member(data, whole, 2))
    nodes, buffers = (_target(data, _member(data, batch, number)) + 4 for number in (1, 2))
    return data[: begin + size], (_member(data, batch, 0), nodes, buffers, _member(data, whole, 3))


def _member(data: bytes, table: int, number: int) -> int:
    """Where a member of a table stands."""
    places = table - struct.unpack_from("<i", data, table)[0]
    return table + struct.unpack_from("<H", data, places + 4 + 2 * number)[0]


def _target(data: bytes, at: int) -> int:
    """The position to which a stored offset points."""
    return at + struct.unpack_from("<I", data, at)[0]
