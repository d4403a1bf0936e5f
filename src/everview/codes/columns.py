"""Columns of Python values to Arrow arrays of exactly the column's type.

Where every value has the type that Arrow expects, Arrow converts the column as a whole; anything else goes
through `coerce`, value by value, which also words the error.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from everview.codes.atoms import pack_all
from everview.codes.buffers import Column, bytes_array, valid_of
from everview.codes.canonical import to_bytes
from everview.codes.coerce import NullInside, Unfit, coerce, null_not_allowed
from everview.codes.rows import python_values
from everview.errors import WrongType
from everview.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Decimal,
    Field,
    Id,
    MapType,
    ScalarType,
    Symbol,
    Type,
    Variant,
    parts_of_type,
)

# The Python types that Arrow converts exactly as `coerce` would, or refuses.
_INT: Final = frozenset({int})
_RAW: Final[dict[str, set[type]]] = {"ID": {Id}, "VARIANT": {Variant}}  # values that Arrow gets as their bytes
_PLAIN: Final[dict[str, frozenset[type]]] = {
    "BOOLEAN": frozenset({bool}),
    "TINYINT": _INT,
    "SMALLINT": _INT,
    "INTEGER": _INT,
    "BIGINT": _INT,
    "DOUBLE": frozenset({float, int}),
    "DATE": frozenset({dt.date}),
    "TIMESTAMP": frozenset({dt.datetime}),
    "TIME": frozenset({dt.time}),
    "INTERVAL DAY TO SECOND": frozenset({dt.timedelta}),
    "INTERVAL YEAR TO MONTH": _INT,
    "STRING": frozenset({str}),
    "SYMBOL": frozenset({str}),
    "BINARY": frozenset({bytes}),
    "ID": frozenset({bytes}),
}
_FARTHEST: Final = 1_000  # places from the point
_DECIMALS: Final = frozenset({decimal.Decimal, int})
_LISTS: Final = frozenset({list, tuple})
_REFUSALS: Final = (pa.ArrowException, OverflowError, UnicodeEncodeError)
# ANY columns of one Python type, which need no Python per value.
_ONE_KIND: Final[dict[type, Type]] = {bool: BOOLEAN, int: BIGINT, float: DOUBLE, str: STRING}


_EPOCH: Final = dt.datetime(1970, 1, 1)
_DAYS: Final = ((dt.datetime.min - _EPOCH).days, (dt.datetime.max - _EPOCH).days)
_DAY_LONG: Final = 86_400_000_000
_MOMENTS: Final = (_DAYS[0] * _DAY_LONG, (_DAYS[1] + 1) * _DAY_LONG - 1)
YEARS: Final[dict[Type, tuple[int, int]]] = {
    DATE: _DAYS,
    TIMESTAMP: _MOMENTS,
    TIMESTAMP_NTZ: _MOMENTS,
    TIME: (0, _DAY_LONG - 1),
}


def from_python(field: Field, values: Sequence[Any]) -> Column:
    """The Arrow array of a column; raises `WrongType` or `NullNotAllowed`, naming the column and the row."""
    try:
        array = _whole(field.type, values)
    except _REFUSALS:
        array = None
    if array is None:
        array = _one_by_one(field.name, field.type, values)
    check_years(field.name, field.type, array)
    if array.null_count and not field.nullable:
        raise null_not_allowed(field.name, array.is_valid().index(False).as_py())
    return array


def check_years(name: str, type_: Type, array: Column) -> None:
    """Refuse dates and moments outside of the years 1 to 9999, which neither Python nor SQL can show.

    Times beyond a day, and days that are not whole, are refused, too.
    """
    if type_ == DAY:
        _check_days(name, array)
    if type_ not in YEARS or not len(array):
        return
    kind = pa.int32() if type_ == DATE else pa.int64()
    low, high = (pa.scalar(bound, kind) for bound in YEARS[type_])
    words: Any = array.cast(kind)
    outside = pc.or_(pc.less(words, low), pc.greater(words, high)).fill_null(False)
    if pc.any(outside).as_py():
        row = outside.index(True).as_py()
        if type_ == TIME:
            raise WrongType(f'column "{name}", rows[{row}]: a TIME is within a day', hint="use an INTERVAL for others")
        hint = "a missing value is NULL, not a date far away"
        raise WrongType(f'column "{name}", rows[{row}]: a {type_} has years 1 to 9999', hint=hint)


def _check_days(name: str, array: Column) -> None:
    rest = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) % _DAY_LONG != 0
    if rest.any():
        hint = "declare the column INTERVAL DAY TO SECOND"
        raise WrongType(f'column "{name}", rows[{int(rest.argmax())}]: no whole number of days', hint=hint)


def any_of(type_: Type, array: Column) -> Column:
    """A typed column as an ANY column."""
    if _has_map(type_):
        return pack_all(python_values(type_, array))  # where the entries of maps are sorted
    return bytes_array(pa.binary(), to_bytes(type_, array), valid_of(array))


def _has_map(type_: Type) -> bool:
    return isinstance(type_, MapType) or any(map(_has_map, parts_of_type(type_)))


def _whole(type_: Type, values: Sequence[Any]) -> Column | None:
    """The Arrow array of a whole column, or None where Arrow might read the values as another type."""
    kinds = set(map(type, values))
    kinds.discard(type(None))
    match type_:
        case ScalarType("ANY"):
            return _any(values, kinds)
        case ScalarType("SYMBOL") if kinds == {Symbol}:
            return pa.array([None if v is None else v.name for v in values], type_.arrow)
        case ScalarType(name) if kinds == _RAW.get(name):
            return pa.array([None if v is None else v.raw for v in values], type_.arrow)
        case ScalarType("TIME" | "TIMESTAMP_NTZ") if any(getattr(v, "tzinfo", None) for v in values):
            return None
        case ScalarType(name) if kinds <= _PLAIN.get(name, frozenset()):
            return pa.array(values, type_.arrow)
        case Decimal() if kinds <= _DECIMALS:
            far = any(map(_is_far, values))  # for these Arrow would take very long, or end the process
            return None if far else pa.array(values, type_.arrow)
        case Decimal() if kinds == {str}:
            return pa.array(values, pa.string()).cast(type_.arrow)
        case Array(element) if kinds <= _LISTS:
            return _lists(type_, element, values)
        case _:
            return None


def _is_far(value: Any) -> bool:
    if isinstance(value, decimal.Decimal):
        return not -_FARTHEST < value.adjusted() < _FARTHEST
    return isinstance(value, int) and value.bit_length() > _FARTHEST


def _any(values: Sequence[Any], kinds: set[type]) -> Column | None:
    type_ = _ONE_KIND.get(next(iter(kinds))) if len(kinds) == 1 else None
    return None if type_ is None else any_of(type_, pa.array(values, type_.arrow))


def _lists(type_: Array, element: Type, values: Sequence[Any]) -> Column | None:
    child = _whole(element, list(chain.from_iterable(v for v in values if v is not None)))
    if child is None:
        return None
    offsets = list(accumulate((0 if v is None else len(v) for v in values), initial=0))
    mask = pa.array([v is None for v in values], pa.bool_()) if None in values else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), child, type=type_.arrow, mask=mask)


def _one_by_one(name: str, type_: Type, values: Sequence[Any]) -> Column:
    fitting: list[Any] = []
    for row, value in enumerate(values):
        try:
            fitting.append(coerce(type_, value))
        except Unfit as unfit:
            raise WrongType(f'column "{name}", rows[{row}]: {unfit.message}', hint=unfit.hint) from None
        except NullInside as inside:
            raise null_not_allowed(f"{name}.{inside}", row) from None
    return pa.array(fitting, type_.arrow)
