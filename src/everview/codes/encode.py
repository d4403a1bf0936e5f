"""Tables to matrices of words, and back: whole columns, in the layout that the schema gives.

``decode(schema, encode(schema, table, d), d)`` is the table, with ``-0.0`` as ``0.0``. With weights the
matrix has one more column, the weights, last: a delta matrix.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, owner STRING")
>>> d = Dictionary()
>>> words = encode(schema, pa.table({"id": [1, 2], "owner": ["Ada", None]}), d)
>>> words.shape
(2, 2)
>>> decode(schema, words, d).to_pylist()
[{'id': 1, 'owner': 'Ada'}, {'id': 2, 'owner': None}]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa

from everview.codes import anything, canonical, fixed
from everview.codes.buffers import LARGEST, Bytes, Column, Octets, bytes_array, bytes_of, nulls, valid_of
from everview.codes.conform import conform_chunks, has_required
from everview.codes.dictionary import Dictionary
from everview.errors import WrongType
from everview.types import ANY, COMPOSITE, INTERVALS, VARIANT, Field, Schema, unknown_name
from everview.types.words import Words

WEIGHT: Final = "_weight"


def encode(schema: Schema, data: pa.Table | pa.RecordBatch, dictionary: Dictionary) -> Words:
    """The words of every row: ``int64[n, schema.width]``."""
    out = np.empty((data.num_rows, schema.width), np.int64)
    _fill(out, schema, data, dictionary)
    return out


def encode_weighted(schema: Schema, data: pa.Table | pa.RecordBatch, weights: Words, dictionary: Dictionary) -> Words:
    """A delta matrix: the words of every row, and its weight."""
    assert len(weights) == data.num_rows, "one weight for every row"
    out = np.empty((data.num_rows, schema.width + 1), np.int64)
    _fill(out, schema, data, dictionary)
    out[:, -1] = weights
    return out


def decode(schema: Schema, words: Words, dictionary: Dictionary) -> pa.Table:
    """The table of a matrix of words."""
    assert words.shape[1] == schema.width, "a row of words for this schema"
    return table_of(schema, _columns(schema, words, dictionary), len(words))


def decode_weighted(schema: Schema, matrix: Words, dictionary: Dictionary) -> pa.Table:
    """The table of a delta or batch matrix, with its weights as the column ``_weight``."""
    assert matrix.shape[1] == schema.width + 1, "a row of words for this schema, and a weight"
    table = _by_message()(schema, matrix, dictionary)
    return column_by_column(schema, matrix, dictionary) if table is None else table


@cache
def _by_message() -> Callable[[Schema, Words, Dictionary], pa.Table | None]:
    """The shortest way, which a start does without."""
    from everview.codes.messages import weighted_table

    return weighted_table


@cache
def weighted_schema(schema: Schema) -> pa.Schema:
    """The columns of tables with weights."""
    return schema.arrow.append(pa.field(WEIGHT, pa.int64(), nullable=False))


def column_by_column(schema: Schema, matrix: Words, dictionary: Dictionary) -> pa.Table:
    """`decode_weighted` for all types and sizes."""
    weights = pa.array(np.ascontiguousarray(matrix[:, -1]))
    return pa.Table.from_arrays([*_columns(schema, matrix, dictionary), weights], schema=weighted_schema(schema))


def references(schema: Schema, words: Words) -> Mapping[int, Words]:
    """The dictionary codes that rows refer to, by kind: what `Dictionary.sweep` must keep."""
    by_kind: dict[int, list[Words]] = {}
    for f, place in zip(schema.fields, schema.slices, strict=True):
        if f.type == ANY:
            for kind, codes in anything.codes_by_kind(words, place.start):
                by_kind.setdefault(kind, []).append(codes)
        elif f.type.interned:
            by_kind.setdefault(f.type.kind, []).append(words[:, place.start])
    return {kind: np.unique(np.concatenate(codes)) for kind, codes in by_kind.items()}


def _fill(out: Words, schema: Schema, data: pa.Table | pa.RecordBatch, dictionary: Dictionary) -> None:
    for codec, column in zip(codecs(schema), columns_by_name(schema, data), strict=True):
        codec.put_column(out, column, dictionary)


def table_of(schema: Schema, columns: list[Column], rows: int) -> pa.Table:
    """A table of these columns; one without columns has rows all the same."""
    if columns:
        return pa.Table.from_arrays(columns, schema=schema.arrow)
    return pa.table({"": nulls(ANY, rows)}).select([])


def columns_by_name(schema: Schema, data: pa.Table | pa.RecordBatch) -> list[Column]:
    """The columns of a table in the order of the schema; missing nullable ones are all NULL."""
    names = tuple(data.schema.names)
    if names == schema.names:
        return data.columns
    for name in names:
        if name not in schema.names:
            raise unknown_name("column", name, schema.names)
    return [
        data.column(names.index(f.name)) if f.name in names else nulls(f.type, data.num_rows) for f in schema.fields
    ]


@cache
def codecs(schema: Schema) -> tuple[Codec, ...]:
    """How each column of a schema enters and leaves a matrix."""
    return tuple(_codec(f, place.start) for f, place in zip(schema.fields, schema.slices, strict=True))


def _columns(schema: Schema, words: Words, dictionary: Dictionary) -> list[Column]:
    words = np.ascontiguousarray(words)
    return [codec.take(words, dictionary) for codec in codecs(schema)]


@dataclass(frozen=True, slots=True)
class Codec:
    """One column of a schema: how it enters and leaves a matrix. Made once; small ticks feel every lookup."""

    field: Field
    column: int  # its first word
    arrow: pa.DataType
    nullable: bool
    checked: bool  # may an array of the right Arrow type still be wrong inside?

    def fits(self, array: Column) -> bool:
        """Whether an array needs no conversion and no further check."""
        return array.type == self.arrow and (self.nullable or array.null_count == 0) and not self.checked

    def put_column(self, out: Words, column: Column, dictionary: Dictionary) -> None:
        """Write the words of a column, whatever its chunks and its type; what does not conform raises."""
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        if len(chunks) == 1 and self.fits(chunks[0]):
            self.put(out, chunks[0], dictionary)
            return
        first = 0
        for chunk in conform_chunks(self.field, column):
            self.put(out[first : first + len(chunk)], chunk, dictionary, first)
            first += len(chunk)

    def put(self, out: Words, array: Column, dictionary: Dictionary, first: int = 0) -> None:
        """Write the words of an array that conforms; `first` is its first row, for errors."""
        raise NotImplementedError

    def take(self, words: Words, dictionary: Dictionary) -> Column:
        """The array of a column of words; the inverse of `put`."""
        raise NotImplementedError


class FixedCodec(Codec):
    """A column whose words are its values."""

    __slots__ = ()

    def put(self, out: Words, array: Column, dictionary: Dictionary, first: int = 0) -> None:
        row = fixed.put(out, self.column, self.field.type, self.nullable, array)
        if row >= 0:
            what = "interval" if self.field.type in INTERVALS else "timestamp"
            hint = f"that {what} stands for NULL; use a later one"
            where = f'column "{self.field.name}", rows[{first + row}]'
            raise WrongType(f"{where}: the least {what} of all", hint=hint)

    def take(self, words: Words, dictionary: Dictionary) -> Column:
        return fixed.take(words, self.column, self.field.type, self.nullable)


class AnyCodec(Codec):
    """A column of (kind, word)."""

    __slots__ = ()

    def put(self, out: Words, array: Column, dictionary: Dictionary, first: int = 0) -> None:
        anything.put(out, self.column, array, dictionary)

    def take(self, words: Words, dictionary: Dictionary) -> Column:
        return anything.take(words, self.column, dictionary)


class InternedCodec(Codec):
    """A column of dictionary codes of raw bytes."""

    __slots__ = ()

    def put(self, out: Words, array: Column, dictionary: Dictionary, first: int = 0) -> None:
        out[:, self.column] = dictionary.intern_bytes(self.field.type.kind, self.bytes(array), valid_of(array))

    def take(self, words: Words, dictionary: Dictionary) -> Column:
        chunks = self._chunks(words[:, self.column].copy(), dictionary)
        return chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks)

    def _chunks(self, codes: Words, dictionary: Dictionary) -> list[Column]:
        """The values of codes, in as many arrays as 32-bit offsets ask for."""
        column, valid = dictionary.lookup_bytes(self.field.type.kind, codes)
        if column.offsets[-1] <= LARGEST or len(codes) == 1:
            return [self.array(column, valid)]
        half = len(codes) // 2
        return self._chunks(codes[:half], dictionary) + self._chunks(codes[half:], dictionary)

    def bytes(self, array: Column) -> Bytes:
        """The bytes to intern for each value."""
        return bytes_of(array)

    def array(self, column: Bytes, valid: Octets) -> Column:
        """The array of interned bytes."""
        return bytes_array(self.arrow, column, valid)


class CompositeCodec(InternedCodec):
    """A column of dictionary codes of canonical bytes."""

    __slots__ = ()

    def bytes(self, array: Column) -> Bytes:
        return canonical.to_bytes(self.field.type, array)

    def array(self, column: Bytes, valid: Octets) -> Column:
        return canonical.read(self.field.type, column.data, np.where(valid, column.offsets[:-1], -1))


def _codec(field: Field, column: int) -> Codec:
    type_ = field.type
    arguments = (field, column, type_.arrow, field.nullable, type_ in (ANY, VARIANT) or has_required(type_))
    if type_ == ANY:
        return AnyCodec(*arguments)
    if isinstance(type_, COMPOSITE):
        return CompositeCodec(*arguments)
    return InternedCodec(*arguments) if type_.interned else FixedCodec(*arguments)
