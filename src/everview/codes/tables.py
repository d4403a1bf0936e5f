"""Arrow tables with weights to delta matrices, prepared once for the columns that a table has.

Columns of fixed width go by the addresses of their buffers, all of them in one call for each record batch; the others
(text, nested types, whatever is of another type than the column) go one by one, as in `encode`. A mistake is left to
the way that judges column by column, which words the error.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, owner STRING")
>>> table = pa.table({"id": [1, 2], "owner": ["Ada", None], "_weight": [1, -1]})
>>> table_rows(schema, table, Dictionary())[:, [0, 2]].tolist()
[[1, 1], [2, -1]]
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from everview.codes.coerce import INTEGER_BITS
from everview.codes.columns import YEARS
from everview.codes.conform import check_text
from everview.codes.dictionary import Dictionary
from everview.codes.encode import WEIGHT, Codec, codecs
from everview.codes.packing import MISTAKES, Packer, packers
from everview.kernels import arrow as kernels
from everview.kernels.threads import allowed
from everview.types import BIGINT, INTERVALS, STRING, Decimal, Field, ScalarType, Schema
from everview.types.words import Matrix

_LEAST, _GREATEST = -(2**63), 2**63 - 1
_FEW: Final = 64  # texts
MANY: Final = 1 << 12  # rows; below, there is nothing to be gained by threads
MANY_ALONE: Final = 1 << 15  # and by blocks, in one thread
_KNOWN: Final = 8  # layouts of tables that are remembered for a schema
_OWN_FORMS: Final[dict[str, int]] = {  # of types that are read where the column has just their own type of Arrow
    "TIMESTAMP_NTZ": kernels.INT64,
    "TIME": kernels.INT64,
    "INTERVAL DAY TO SECOND": kernels.INT64,
    "DATE": kernels.INT32,
    "BOOLEAN": kernels.BITS,
    "DOUBLE": kernels.FLOAT64,
    "FLOAT": kernels.FLOAT32,
}
_FORMS: Final[dict[pa.DataType, int]] = {
    pa.int8(): kernels.INT8,
    pa.int16(): kernels.INT16,
    pa.int32(): kernels.INT32,
    pa.int64(): kernels.INT64,
}

_address_in: Any = ctypes.pythonapi.PyCapsule_GetPointer
_address_in.restype = ctypes.c_void_p
_address_in.argtypes = [ctypes.py_object, ctypes.c_char_p]


@dataclass(frozen=True, slots=True)
class OtherColumn:
    """A column of a table that goes by itself; a few texts go without Arrow's kernels."""

    place: int
    codec: Codec
    texts: Packer | None

    def is_text(self, data: pa.Table | pa.RecordBatch) -> bool:
        """Whether the column is text as it is, without NULL where there must be none."""
        return self.texts is not None and (self.codec.nullable or data.column(self.place).null_count == 0)

    def put(self, out: Matrix, column: Any, dictionary: Dictionary) -> None:
        """Write the words of the column; raises one of `MISTAKES`."""
        codec = self.codec
        if self.texts is not None and 0 < len(out) <= _FEW:
            (out[:, codec.column],) = self.texts.pack(column.to_pylist(), dictionary)
            return
        check_text(codec.field.name, codec.field.type, column)
        codec.put_column(out, column, dictionary)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns of some Arrow tables: a line for each that the kernel `put_batch` takes, and all others."""

    arrow: pa.Schema
    plan: Matrix
    others: tuple[OtherColumn, ...]
    constants: tuple[tuple[int, int], ...]  # words that are the same in all rows: of missing columns, or the weight
    width: int

    def encode(self, data: pa.Table | pa.RecordBatch, dictionary: Dictionary) -> Matrix | None:
        """The delta matrix; None where something must be looked at more closely."""
        if is_many(data.num_rows):
            return self._encode_many(data, dictionary)
        out = np.empty((data.num_rows, self.width + 1), np.int64)
        first = 0
        for part in data.to_batches() if isinstance(data, pa.Table) else (data,):
            _, capsule = part.__arrow_c_array__()  # it holds the struct until it is gone
            if kernels.put_batch(out, first, _address_in(capsule, b"arrow_array"), self.plan) < len(self.plan):
                return None
            first += part.num_rows
        for word, value in self.constants:
            out[:, word] = value
        for other in self.others:
            other.put(out, data.column(other.place), dictionary)
        return out

    def _encode_many(self, data: pa.Table | pa.RecordBatch, dictionary: Dictionary) -> Matrix | None:
        """`encode` of many rows: texts first, and then all columns block by block."""
        from everview.codes import bulk  # here: small changes do without

        out = np.empty((data.num_rows, self.width + 1), np.int64)
        texts = [other for other in self.others if other.is_text(data)]
        columns = [(other.codec.field, data.column(other.place)) for other in texts]
        codes = list(zip((other.codec.column for other in texts), bulk.text_columns(columns, dictionary), strict=True))
        corrected = list[tuple[int, bulk.TextColumn]]()

        def fill(first: int, block: pa.RecordBatch) -> bool:
            last = first + block.num_rows
            _, capsule = block.__arrow_c_array__()
            done = kernels.put_batch(out, first, _address_in(capsule, b"arrow_array"), self.plan)
            for word, value in self.constants:
                out[first:last, word] = value
            for word, column in codes:
                out[first:last, word] = column.of_rows(first, last)
            return done == len(self.plan)

        def intern() -> None:
            corrected.extend((word, column) for word, column in codes if column.intern(dictionary))

        if not bulk.filled(data, fill, intern):
            return None
        for word, column in corrected:
            out[:, word] = column.of_rows(0, len(out))
        for other in self.others:
            if other not in texts:
                other.put(out, data.column(other.place), dictionary)
        return out


def is_many(rows: int) -> bool:
    """Whether a table of so many rows is read block by block, in the order of the trace that it is for."""
    return rows >= (MANY if allowed() > 1 else MANY_ALONE)


def table_rows(schema: Schema, data: pa.Table | pa.RecordBatch, dictionary: Dictionary) -> Matrix | None:
    """The delta matrix of a table, with the weights of its column ``_weight``; None where there is a mistake."""
    layout = _layout(schema, data.schema)
    if layout is None:
        return None
    entries = len(dictionary)
    try:
        return layout.encode(data, dictionary)
    except MISTAKES:  # perhaps not the first one
        dictionary.keep_first(entries)
        return None


@cache
def _layouts(schema: Schema) -> list[tuple[pa.Schema, TableLayout | None]]:
    """The layouts that tables for a schema had before."""
    return []


def _layout(schema: Schema, arrow: pa.Schema) -> TableLayout | None:
    known = _layouts(schema)
    for each, layout in known:
        if each.equals(arrow):
            return layout
    layout = _new_layout(schema, arrow)
    known[:] = [(arrow, layout), *known[: _KNOWN - 1]]
    return layout


def _new_layout(schema: Schema, arrow: pa.Schema) -> TableLayout | None:
    """The layout of tables with columns of a schema and no others; None if these are not so."""
    names = arrow.names
    weighted = WEIGHT in names and WEIGHT not in schema.names
    if len({*names}) < len(names) or not {*names} <= {*schema.names, *([WEIGHT] if weighted else [])}:
        return None
    lines, others = list[list[int]](), list[OtherColumn]()
    constants = [] if weighted else [(schema.width, 1)]
    for i, codec in enumerate(codecs(schema)):
        if codec.field.name not in names:
            if not codec.nullable:
                return None
            constants += enumerate(codec.field.type.null_words(), codec.column)
            continue
        place = names.index(codec.field.name)
        line = _line(codec.field, place, codec.column, arrow.field(place).type)
        if line is None:
            texts = codec.field.type == STRING and arrow.field(place).type == pa.string()
            others.append(OtherColumn(place, codec, packers(schema)[i] if texts and packers(schema) else None))
        else:
            lines.append(line)
    if weighted:
        place = names.index(WEIGHT)
        line = _line(Field(WEIGHT, BIGINT, nullable=False), place, schema.width, arrow.field(place).type)
        if line is None:
            return None
        lines.append(line)
    plan = np.array(lines, np.int64).reshape(-1, 7)
    return TableLayout(arrow, plan, tuple(others), tuple(constants), schema.width)


def _line(field: Field, place: int, word: int, arrow: pa.DataType) -> list[int] | None:
    """The line of a column in the plan of `put_batch`; None if its values are not for that."""
    form, (least, greatest) = _form(field, arrow), (_LEAST, _GREATEST)
    if form is None:
        return None
    if isinstance(field.type, ScalarType) and field.type.name in INTEGER_BITS:
        limit = 1 << (INTEGER_BITS[field.type.name] - 1)
        least, greatest = -limit, limit - 1
    elif field.type in YEARS:
        least, greatest = YEARS[field.type]
    elif field.type in INTERVALS:
        least = _LEAST + 1  # the least word of all is NULL
    flagged = field.type == BIGINT and field.nullable
    return [place, form, word, int(field.nullable), int(flagged), least, greatest]


def _form(field: Field, arrow: pa.DataType) -> int | None:
    if isinstance(arrow, pa.BaseExtensionType):  # of somebody's own, which need not even have a hash
        return None
    match field.type:
        case Decimal():
            wide = field.type.words() == 2
            return None if arrow != field.type.arrow else kernels.WIDE_DECIMAL if wide else kernels.DECIMAL
        case ScalarType(name) if name in INTEGER_BITS:
            return _FORMS.get(arrow)
        case ScalarType("TIMESTAMP"):
            return kernels.INT64 if at.is_timestamp(arrow) and arrow.unit == "us" else None
        case ScalarType("DOUBLE") if arrow == pa.float32():
            return kernels.FLOAT32
        case ScalarType(name) if name in _OWN_FORMS:
            return _OWN_FORMS[name] if arrow == field.type.arrow else None
        case _:
            return None
