"""Columns of Python values to words without Arrow, prepared for each schema: the way of the few rows of a small tick.

A column is looked at as a whole: if all of its values have one type that needs no judgement, it is converted in one
pass; else `coerce` judges value by value. A mistake raises one of `MISTAKES`, and whoever calls takes the way of large
inputs, which words the error.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, amount DECIMAL(12,2)")
>>> [packer.pack(column, Dictionary()) for packer, column in zip(packers(schema), [(1, 2), ("9.50", None)])]
[((1, 2),), ([950, -9223372036854775808],)]
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any, Final

import numpy as np

from everview.codes.atoms import any_part, microseconds, since_midnight
from everview.codes.coerce import INTEGER_BITS, Unfit, coerce
from everview.codes.dictionary import Dictionary
from everview.errors import EverviewError
from everview.kernels.jit import cause_of, made_of
from everview.types import BIGINT, COMPOSITE, NULL_WORD, Decimal, Field, ScalarType, Schema, Type
from everview.types.words import Matrix

MISTAKES: Final = (
    *(Unfit, EverviewError, TypeError, ValueError, KeyError, AttributeError, OverflowError, struct.error),
    decimal.DecimalException,
)
Values = Sequence[Any]
PackedColumn = tuple[Sequence[int], ...]  # the words of a column: one sequence, or two
Pack = Callable[[Values, Dictionary], PackedColumn]

_NONE: Final = type(None)
_DAY_ZERO: Final = dt.date(1970, 1, 1).toordinal()
_EPOCH: Final = dt.datetime(1970, 1, 1)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_LOW: Final = 2**64 - 1
_LOW_BITS: Final = 2**63 - 1
_INFINITY, _NAN = 0x7FF0 << 48, 0x7FF8 << 48  # the bits of these floats
_MANY: Final = 64  # rows; from here on NumPy transposes columns faster than Python interleaves them


@dataclass(frozen=True, slots=True)
class Packer:
    """The conversion of one column to words: a function for each plain Python type, and one for coerced values."""

    of: Type
    nullable: bool
    plain: Mapping[type, Pack]
    coerced: Pack
    null: tuple[int, ...]
    same: type | None  # of values that are their own words

    def pack(self, values: Values, dictionary: Dictionary) -> PackedColumn:
        """The words of a column that has a value at least."""
        kind = type(values[0])
        pack = self.plain.get(kind)
        if pack is not None and (len(values) == 1 or {*map(type, values)} == {kind}):
            return pack(values, dictionary)
        if _NONE in map(type, values):
            return self._pack_nulls(values, dictionary)
        values = [coerce(self.of, value) for value in values]
        if _NONE in map(type, values):  # what pandas and NumPy have for a missing moment
            return self._pack_nulls(values, dictionary)
        return self.coerced(values, dictionary)

    def _pack_nulls(self, values: Values, dictionary: Dictionary) -> PackedColumn:
        if not self.nullable:
            raise Unfit("NULL in a NOT NULL column", "")
        present = [value for value in values if value is not None]
        if not present:
            return tuple([word] * len(values) for word in self.null)
        packed = self.pack(present, dictionary)
        return tuple(_spread(values, words, null) for words, null in zip(packed, self.null, strict=True))


def all_of(kind: type, values: Values) -> bool:
    """Whether all of one or more values have exactly one type."""
    return type(values[0]) is kind and (len(values) == 1 or {*map(type, values)} == {kind})


def _spread(values: Values, words: Sequence[int], null: int) -> list[int]:
    """Words for all values of a column, given the words of those that are not NULL."""
    following = iter(words)
    return [null if value is None else next(following) for value in values]


@cache
def packers(schema: Schema) -> tuple[Packer, ...]:
    """How each column of a schema is packed; nothing if it has nested types, or no columns."""
    if any(isinstance(f.type, COMPOSITE) for f in schema.fields):
        return ()
    return tuple(map(_packer, schema.fields))


@cache
def is_whole(schema: Schema) -> bool:
    """Whether values of all columns are their own words: whole numbers of 64 bits that are never NULL."""
    prepared = packers(schema)
    return bool(prepared) and all(packer.same is int for packer in prepared)


def packed_row(prepared: tuple[Packer, ...], row: Sequence[Any], weight: int, dictionary: Dictionary) -> Matrix:
    """The delta matrix of one row; raises one of `MISTAKES`."""
    words: list[int] = []
    for packer, value in zip(prepared, row, strict=True):
        if packer.same is type(value):
            words.append(value)  # 64 bits are checked where the matrix is made
        else:
            for column in packer.pack((value,), dictionary):
                words += column
    words.append(weight)
    return np.array([words], np.int64)


def packed_rows(
    prepared: tuple[Packer, ...], columns: Sequence[Values], weights: Sequence[int], dictionary: Dictionary
) -> Matrix:
    """The delta matrix of columns and weights; raises one of `MISTAKES`."""
    rows = len(weights)
    words: list[Sequence[int]] = []
    for packer, column in zip(prepared, columns, strict=True):
        if packer.same is type(column[0]) and (rows == 1 or {*map(type, column)} == {packer.same}):
            words.append(column)  # 64 bits are checked where the matrix is made
        else:
            words += packer.pack(column, dictionary)
    words.append(weights)
    return _interleaved(words, rows)


@cache
def whole_pairs(schema: Schema) -> Callable[[list[Any]], Matrix | None] | None:
    """How to read pairs (row, weight) of `is_whole`: the delta matrix, or None if one is not of tuples and integers.

    None if this interpreter's values cannot be read, or the schema has other columns.
    """
    if not is_whole(schema):
        return None
    from everview.kernels.pairs import INT, READS, TUPLE, read_pairs  # which other programs do without

    if not READS:
        return None
    kernel, width = made_of(read_pairs), len(schema.fields) + 1

    def read(pairs: list[Any]) -> Matrix | None:
        delta: Matrix = np.empty((len(pairs), width), np.int64)
        try:
            return delta if kernel.direct(delta, id(pairs), TUPLE, INT) else None
        except SystemError as error:
            raise cause_of(error) from None

    return read


def _interleaved(words: Sequence[Sequence[int]], rows: int) -> Matrix:
    """Columns of words as a matrix; a word that does not fit in 64 bits is one of `MISTAKES`."""
    width = len(words)
    if rows >= _MANY:
        return np.array(words, np.int64).T.copy()
    octets = bytearray(8 * rows * width)
    struct.pack_into(f"{rows * width}q", octets, 0, *chain.from_iterable(zip(*words, strict=True)))
    return np.frombuffer(octets, np.int64).reshape(rows, width)


def _packer(field: Field) -> Packer:
    type_ = field.type
    plain, coerced = _packs(type_)
    flagged = type_ == BIGINT and field.nullable
    if flagged:
        plain, coerced = {kind: _flagged(pack) for kind, pack in plain.items()}, _flagged(coerced)
    same = int if type_ == BIGINT and not flagged else None
    return Packer(type_, field.nullable, plain, coerced, tuple(type_.null_words()), same)


def _packs(type_: Type) -> tuple[Mapping[type, Pack], Pack]:
    match type_:
        case Decimal():
            numbers = partial(_decimals, _Scaling.of(type_))
            texts = partial(_texts_of_decimals, _Scaling.of(type_))
            return {decimal.Decimal: numbers, int: numbers, str: texts}, numbers
        case ScalarType("STRING" | "SYMBOL"):
            texts = partial(_texts, type_.kind)
            return {str: texts}, texts
        case ScalarType("BINARY" | "ID"):
            octets = partial(_bytes, type_.kind)
            return {bytes: octets}, octets
        case ScalarType("VARIANT"):
            return {}, partial(_bytes, type_.kind)
        case ScalarType(name) if name in INTEGER_BITS:
            whole = partial(_integers, 1 << (INTEGER_BITS[name] - 1))
            return {int: whole, np.int64: partial(_numpy_integers, whole)}, whole
        case ScalarType(name):
            return _PLAIN[name], _COERCED[name]
        case _:  # of a user's own type
            return {}, partial(_bytes, type_.kind)


# -- columns without NULL


def _flagged(pack: Pack) -> Pack:
    """A nullable BIGINT: a word that says that there is a value, and the value."""
    return lambda values, dictionary: ([1] * len(values), *pack(values, dictionary))


def _integers(limit: int, values: Values, dictionary: Dictionary) -> PackedColumn:
    if limit <= _LOW_BITS and (min(values) < -limit or max(values) >= limit):
        raise Unfit("outside the range of the type", "")
    return (values,)  # 64 bits are checked where the matrix is made


def _numpy_integers(pack: Pack, values: Values, dictionary: Dictionary) -> PackedColumn:
    return pack([value.item() for value in values], dictionary)


def _truths(values: Values, dictionary: Dictionary) -> PackedColumn:
    return ([*map(int, values)],)


def _floats(values: Values, dictionary: Dictionary) -> PackedColumn:
    """Their bits, as words that sort as the numbers do; -0.0 is 0.0, and every NaN the one that sorts last."""
    bits = struct.unpack(f"{len(values)}q", struct.pack(f"{len(values)}d", *values))
    return ([word if 0 <= word <= _INFINITY else _turned(word) for word in bits],)


def _turned(bits: int) -> int:
    """The word of a float that is negative or no number."""
    if (bits & _LOW_BITS) > _INFINITY:
        return _NAN
    return bits ^ _LOW_BITS if bits & _LOW_BITS else 0


def _whole_floats(values: Values, dictionary: Dictionary) -> PackedColumn:
    floats = [*map(float, values)]
    if floats != [*values]:
        raise Unfit("a number that has no exact DOUBLE", "")
    return _floats(floats, dictionary)


def _days(values: Values, dictionary: Dictionary) -> PackedColumn:
    return ([value.toordinal() - _DAY_ZERO for value in values],)


def _moments(values: Values, dictionary: Dictionary) -> PackedColumn:
    try:
        return ([(value - _EPOCH) // _MICROSECOND for value in values],)
    except TypeError:  # one has a zone
        return ([*map(microseconds, values)],)


def _local_moments(values: Values, dictionary: Dictionary) -> PackedColumn:
    return ([(value - _EPOCH) // _MICROSECOND for value in values],)  # one with a zone raises


def _times(values: Values, dictionary: Dictionary) -> PackedColumn:
    if any(value.tzinfo for value in values):
        raise Unfit("a time with a zone", "")
    return ([*map(since_midnight, values)],)


def _spans(values: Values, dictionary: Dictionary) -> PackedColumn:
    return ([value // _MICROSECOND for value in values],)  # 64 bits are checked where the matrix is made


def _texts(kind: int, values: Values, dictionary: Dictionary) -> PackedColumn:
    return (dictionary.intern_texts(kind, values),)


def _bytes(kind: int, values: Values, dictionary: Dictionary) -> PackedColumn:
    return (dictionary.intern_values(kind, values),)


def _anything(values: Values, dictionary: Dictionary) -> PackedColumn:
    """Kinds and words of packed values; words of interned kinds are codes."""
    parts = [any_part(value) for value in values]
    words: list[Any] = [word for _, word in parts]
    places: dict[int, list[int]] = {}
    for place, (kind, word) in enumerate(parts):
        if type(word) is bytes:
            places.setdefault(kind, []).append(place)
    for kind, those in places.items():
        codes = dictionary.intern_values(kind, [words[place] for place in those])
        for place, code in zip(those, codes, strict=True):
            words[place] = code
    return [kind for kind, _ in parts], words


# -- decimals


@dataclass(frozen=True, slots=True)
class _Scaling:
    """Exact conversion to integers of a DECIMAL: what has too many digits, before or after the point, raises."""

    scale: int
    words: int
    unit: decimal.Decimal
    exact: decimal.Context
    usual: re.Pattern[str]  # lines of text with all digits after the point, as they nearly always are

    @classmethod
    def of(cls, type_: Decimal) -> _Scaling:
        traps = [decimal.Inexact, decimal.InvalidOperation, decimal.Overflow]
        whole = f"[0-9]{{1,{type_.precision - type_.scale}}}" if type_.precision > type_.scale else "0"
        usual = rf"(?:-?{whole}\.[0-9]{{{type_.scale}}}\n)+" if type_.scale else rf"(?:-?{whole}\n)+"
        unit = decimal.Decimal(1).scaleb(-type_.scale)
        exact = decimal.Context(prec=type_.precision, traps=traps)
        return cls(type_.scale, type_.words(), unit, exact, re.compile(usual))

    def packed(self, numbers: Sequence[int]) -> PackedColumn:
        """The words of scaled numbers."""
        if self.words == 1:
            return (numbers,)
        return [number >> 64 for number in numbers], [(number & _LOW) + NULL_WORD for number in numbers]


def _decimals(scaling: _Scaling, values: Values, dictionary: Dictionary) -> PackedColumn:
    """Numbers or texts, as whole multiples of the last digit."""
    quantize, scale, unit = scaling.exact.quantize, scaling.scale, scaling.unit
    scaled = scaling.exact.scaleb
    return scaling.packed([int(scaled(quantize(decimal.Decimal(value), unit), scale)) for value in values])


def _texts_of_decimals(scaling: _Scaling, values: Values, dictionary: Dictionary) -> PackedColumn:
    text = "\n".join(values) + "\n"
    if scaling.usual.fullmatch(text):
        numbers = [*map(int, text.replace(".", "").split())]
        if len(numbers) == len(values):
            return (numbers,) if scaling.words == 1 else scaling.packed(numbers)
    return _decimals(scaling, values, dictionary)


_PLAIN: Final[dict[str, Mapping[type, Pack]]] = {
    "BOOLEAN": {bool: _truths},
    "FLOAT": {},
    "DOUBLE": {float: _floats, np.float64: _floats, int: _whole_floats},
    "DATE": {dt.date: _days},
    "TIMESTAMP": {dt.datetime: _moments},
    "TIMESTAMP_NTZ": {dt.datetime: _local_moments},
    "TIME": {dt.time: _times},
    "INTERVAL DAY": {},
    "INTERVAL DAY TO SECOND": {},
    "INTERVAL YEAR TO MONTH": {},
    "ANY": {},
}
_COERCED: Final[dict[str, Pack]] = {
    "BOOLEAN": _truths,
    "FLOAT": _floats,
    "DOUBLE": _floats,
    "DATE": _days,
    "TIMESTAMP": _moments,
    "TIMESTAMP_NTZ": _local_moments,
    "TIME": _times,
    "INTERVAL DAY": _spans,
    "INTERVAL DAY TO SECOND": _spans,
    "INTERVAL YEAR TO MONTH": lambda values, dictionary: (values,),
    "ANY": _anything,
}
