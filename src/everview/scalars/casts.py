"""CAST, as Spark does it in ANSI mode: what the other type does not hold fails, nothing wraps or turns into NULL.

Text is read without the white space around it; a number is rounded to a DECIMAL with halves away from zero, and cut
off towards zero to an integer; a timestamp is text, a date and a number of seconds in UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.codes.columns import any_of
from everview.scalars.coercion import MOMENTS, bits, is_integer
from everview.scalars.functions.decimals import (
    double_as_decimal,
    half_up,
    objects,
    rescaled,
    scaled,
    to_double,
    unscaled,
)
from everview.scalars.functions.kernel import Checked, Value, from_numbers, nulls, numbers
from everview.scalars.functions.moments import DAY, LAST_YEAR, in_years
from everview.scalars.kinds import INTERVALS, VOID
from everview.scalars.text_casts import FROM_TEXT, to_string
from everview.types import (
    ANY,
    BINARY,
    BOOLEAN,
    DOUBLE,
    DURATIONS,
    FLOAT,
    INTEGERS,
    STRING,
    TIME,
    VARIANT,
    Array,
    Decimal,
    MapType,
    Struct,
    Type,
)


def safe(type_: Type, to: Type) -> bool:
    """Whether a cast between two types can never fail."""
    if VARIANT in (type_, to):
        return to == VARIANT
    if type_ in (to, VOID) or to in (STRING, ANY) or type_ == BINARY or (type_ in MOMENTS and to in (*MOMENTS, TIME)):
        return True
    if type_ in INTERVALS or to in INTERVALS:
        return type_ in DURATIONS and to in DURATIONS
    if isinstance(type_, Array) and isinstance(to, Array):
        return safe(type_.element, to.element)
    if isinstance(type_, Struct) and isinstance(to, Struct):
        return all(safe(a.type, b.type) for a, b in zip(type_.fields, to.fields, strict=True))
    if isinstance(type_, MapType) and isinstance(to, MapType):
        return safe(type_.value, to.value) and type_.key == to.key
    if is_integer(type_) and is_integer(to):
        return INTEGERS.index(to) >= INTEGERS.index(type_)
    if to in (FLOAT, DOUBLE, BOOLEAN):
        return type_ != STRING
    if isinstance(type_, Decimal) and isinstance(to, Decimal):
        return to.precision - to.scale > type_.precision - type_.scale or (
            to.scale >= type_.scale and to.precision - to.scale == type_.precision - type_.scale
        )
    if is_integer(type_) and isinstance(to, Decimal):
        return to.precision - to.scale >= {8: 3, 16: 5, 32: 10, 64: 19}[bits(type_)]
    return type_ == BOOLEAN and is_integer(to)


def convert(value: Value, type_: Type, to: Type) -> Value | Checked:
    """A column as another type."""
    if type_ == to:
        return value
    if type_ == VOID:
        return value.cast(to.arrow)
    if to == ANY:
        return any_of(type_, value)
    if VARIANT in (type_, to):
        return _variant(value, type_, to)
    if isinstance(type_, Array) and isinstance(to, Array):
        return _array(value, type_, to)
    if isinstance(type_, Struct) and isinstance(to, Struct):
        return _struct(value, type_, to)
    if isinstance(type_, MapType) and isinstance(to, MapType):
        return _map(value, type_, to)
    if to == STRING:
        return to_string(value, type_)
    caster = _CASTS.get((_family(type_), _family(to))) or _of_spans(_family(type_), _family(to))
    assert caster is not None, f"no cast of {type_} to {to}"
    return caster(value, type_, to)


def is_converted(type_: Type, to: Type) -> bool:
    """Whether there is a cast between two types without parts."""
    if type_ == to or to == STRING or (_family(type_), _family(to)) in _CASTS:
        return True
    return _of_spans(_family(type_), _family(to)) is not None


def _variant(value: Value, type_: Type, to: Type) -> Any:
    from everview.scalars.functions.variants import to_variant
    from everview.scalars.variant_casts import from_variant

    return to_variant(value, type_) if to == VARIANT else from_variant(value, to)


def _of_spans(given: str, to: str) -> Callable[[Value, Type, Type], Any] | None:
    """The cast of intervals, times of day or timestamps without a zone, whose module few queries need."""
    from everview.scalars.span_casts import SPAN_CASTS

    return SPAN_CASTS.get((given, to))


def _family(type_: Type) -> str:
    if is_integer(type_):
        return "integer"
    if type_ in (FLOAT, DOUBLE):
        return "float"
    if type_ in INTERVALS:
        return "interval"
    return "decimal" if isinstance(type_, Decimal) else type_.sql


# -- between numbers


def _integer(value: Value, type_: Type, to: Type) -> Any:
    try:
        return value.cast(to.arrow)
    except pa.ArrowInvalid:
        return _limited(numbers(value).astype(np.int64), to, nulls(value))


def _limited(integers: Any, to: Type, missing: Any) -> Any:
    limit = 1 << (bits(to) - 1)
    failed = np.asarray((integers < -limit) | (integers >= limit), bool)
    if missing is not None:
        failed &= ~missing
    kept = np.where(failed, 0, integers).astype(np.int64)
    array = from_numbers(kept, to.arrow, missing)
    return Checked(array, failed, f"it is outside the range of {to}") if failed.any() else array


def _float_to_integer(value: Value, type_: Type, to: Type) -> Any:
    integers = np.trunc(numbers(value, 0.0).astype(np.float64))
    limit = 2.0 ** (bits(to) - 1)
    missing = nulls(value)
    # A FLOAT or DOUBLE of the largest BIGINT is one more than it, and Spark lets it pass as the largest.
    top = integers == limit if bits(to) == 64 else np.zeros(len(integers), bool)
    failed = ~((integers >= -limit) & (integers < limit)) & ~top
    if missing is not None:
        failed &= ~missing
    kept = np.where(failed | top, 0, integers).astype(np.int64)
    kept[top] = np.iinfo(np.int64).max
    array = from_numbers(kept, to.arrow, missing)
    return Checked(array, failed, f"it is outside the range of {to}") if failed.any() else array


def _decimal_to_integer(value: Value, type_: Type, to: Type) -> Any:
    assert isinstance(type_, Decimal)
    integers = scaled(value)
    unit = 10**type_.scale
    whole_numbers = np.abs(integers) // unit
    whole_numbers = np.where(integers < 0, -whole_numbers, whole_numbers)
    return _limited(whole_numbers, to, nulls(value))


def _to_float(value: Value, type_: Type, to: Type) -> Value:
    if isinstance(type_, Decimal):
        return to_double(value).cast(to.arrow, safe=False)
    return value.cast(to.arrow, safe=False)


def _to_decimal(value: Value, type_: Type, to: Type) -> Any:
    assert isinstance(to, Decimal)
    if isinstance(type_, Decimal):
        return rescaled(value, to.arrow)
    if type_ == BOOLEAN:
        return _to_decimal(value.cast(pa.int8()), INTEGERS[0], to)
    if is_integer(type_):
        integers = numbers(value).astype(np.int64)
        wide = {8: 3, 16: 5, 32: 10, 64: 19}[bits(type_)] + to.scale > 18
        return unscaled(half_up(objects(integers) if wide else integers, -to.scale), to.arrow, nulls(value))
    return _float_to_decimal(value, type_, to)


def _float_to_decimal(value: Value, type_: Type, to: Decimal) -> Any:
    if type_ == FLOAT:
        # The shortest text of the FLOAT, not of the DOUBLE nearest to it.
        value = value.cast(pa.string()).cast(pa.float64())
    integers, beyond = double_as_decimal(value, to.scale)
    missing = nulls(value)
    if missing is not None:
        beyond = beyond & ~missing
    made = unscaled(integers, to.arrow, missing)
    if not beyond.any():
        return made
    inner = made if isinstance(made, Checked) else Checked(made, beyond, "")
    return Checked(inner.value, inner.failed | beyond, f"it is no {to}")


def _to_boolean(value: Value, type_: Type, to: Type) -> Value:
    if isinstance(type_, Decimal):
        return from_numbers(np.asarray(scaled(value) != 0, bool), to.arrow, nulls(value))
    return from_numbers(numbers(value) != 0, to.arrow, nulls(value))


def _boolean_to_number(value: Value, type_: Type, to: Type) -> Value:
    return value.cast(pa.int8()).cast(to.arrow)


# -- moments


def _date_to_timestamp(value: Value, type_: Type, to: Type) -> Value:
    return from_numbers(numbers(value).astype(np.int64) * DAY, to.arrow, nulls(value))


def _timestamp_to_date(value: Value, type_: Type, to: Type) -> Value:
    return from_numbers(numbers(value) // DAY, to.arrow, nulls(value))


def _timestamp_to_integer(value: Value, type_: Type, to: Type) -> Any:
    return _limited(numbers(value) // 1_000_000, to, nulls(value))


def _timestamp_to_float(value: Value, type_: Type, to: Type) -> Value:
    return from_numbers(numbers(value) / 1_000_000.0, to.arrow, nulls(value))


def _timestamp_to_decimal(value: Value, type_: Type, to: Type) -> Any:
    return rescaled(unscaled(numbers(value).astype(object), pa.decimal128(20, 6), nulls(value)), to.arrow)


def _seconds(value: Value, type_: Type, to: Type) -> Any:
    """A number of seconds since 1970."""
    if isinstance(type_, Decimal):
        micros = scaled(value)
        drop = type_.scale - 6
        micros = objects(micros)
        cut = np.array([_cut(v, drop) for v in micros], object) if len(micros) else micros
        return _moments(cut, nulls(value), to)
    if is_integer(type_):
        return _moments(numbers(value).astype(object) * 1_000_000, nulls(value), to)
    with np.errstate(over="ignore"):
        seconds = numbers(value, 0.0).astype(np.float64) * 1_000_000
    finite = np.isfinite(seconds)
    micros = np.array([int(x) if ok else 1 << 80 for x, ok in zip(seconds, finite, strict=True)], object)
    return _moments(micros, nulls(value), to)


def _cut(value: int, drop: int) -> int:
    if drop <= 0:
        return value * 10**-drop
    return value // 10**drop if value >= 0 else -(-value // 10**drop)


def _moments(micros: Any, missing: Any, to: Type) -> Any:
    if not len(micros):
        return from_numbers(np.array([], np.int64), to.arrow, None)
    days = micros // DAY
    good = np.asarray(in_years(days), bool)
    failed = ~good if missing is None else ~good & ~missing
    array = from_numbers(np.where(good, micros, 0).astype(np.int64), to.arrow, missing)
    return Checked(array, failed, f"it is outside the years 1 to {LAST_YEAR}") if failed.any() else array


def _same_bytes(value: Value, type_: Type, to: Type) -> Value:
    return value.cast(to.arrow)


# -- arrays and structs


def _array(value: Value, type_: Array, to: Array) -> Any:
    offsets = value.offsets
    inner = convert(value.values, type_.element, to.element)
    missing = value.is_null() if value.null_count else None
    elements = inner.value if isinstance(inner, Checked) else inner
    offsets = pa.array(offsets.to_numpy(zero_copy_only=False), pa.int32())
    made = pa.ListArray.from_arrays(offsets, elements, type=to.arrow, mask=missing)
    if not isinstance(inner, Checked):
        return made
    failed = np.array([bool(inner.failed[a:b].any()) for a, b in pairwise(offsets.to_pylist())], bool)
    return Checked(made, failed, inner.reason)


def _struct(value: Value, type_: Struct, to: Struct) -> Any:
    parts: list[Value] = []
    failed = np.zeros(len(value), bool)
    reason = ""
    for number, (a, b) in enumerate(zip(type_.fields, to.fields, strict=True)):
        converted = convert(pc.struct_field(value, [number]), a.type, b.type)
        if isinstance(converted, Checked):
            failed |= converted.failed
            converted, reason = converted.value, converted.reason
        parts.append(converted)
    mask = value.is_null() if value.null_count else None
    made = pa.StructArray.from_arrays(parts, fields=[to.arrow.field(i) for i in range(len(to.fields))], mask=mask)
    return Checked(made, failed, reason) if failed.any() else made


def _map(value: Value, type_: MapType, to: MapType) -> Any:
    """Maps of other types; keys that become one fail."""
    from everview.scalars.functions.maps import Maps, checked

    held = Maps.of(value, len(value))
    failed, reason = np.zeros(len(value), bool), ""
    parts: list[Value] = []
    for column, a, b in ((held.keys, type_.key, to.key), (held.values, type_.value, to.value)):
        converted = convert(column, a, b)
        if isinstance(converted, Checked):
            failed[held.parents[converted.failed]] = True
            converted, reason = converted.value, converted.reason
        parts.append(converted)
    kept, sizes = pa.array(~failed[held.parents]), np.where(failed, 0, held.sizes)
    made = checked(to.arrow, parts[0].filter(kept), parts[1].filter(kept), sizes, nulls(value))
    if isinstance(made, Checked):
        return Checked(made.value, made.failed | failed, reason or made.reason)
    return Checked(made, failed, reason) if failed.any() else made


_CASTS: Final[dict[tuple[str, str], Callable[[Value, Type, Type], Any]]] = {
    ("integer", "integer"): _integer,
    ("integer", "float"): _to_float,
    ("integer", "decimal"): _to_decimal,
    ("integer", "BOOLEAN"): _to_boolean,
    ("integer", "TIMESTAMP"): _seconds,
    ("float", "integer"): _float_to_integer,
    ("float", "float"): _to_float,
    ("float", "decimal"): _to_decimal,
    ("float", "BOOLEAN"): _to_boolean,
    ("float", "TIMESTAMP"): _seconds,
    ("decimal", "integer"): _decimal_to_integer,
    ("decimal", "float"): _to_float,
    ("decimal", "decimal"): _to_decimal,
    ("decimal", "BOOLEAN"): _to_boolean,
    ("decimal", "TIMESTAMP"): _seconds,
    ("BOOLEAN", "integer"): _boolean_to_number,
    ("BOOLEAN", "float"): _boolean_to_number,
    ("BOOLEAN", "decimal"): _to_decimal,
    **{("STRING", to): cast for to, cast in FROM_TEXT.items()},
    ("STRING", "BINARY"): _same_bytes,
    ("DATE", "TIMESTAMP"): _date_to_timestamp,
    ("TIMESTAMP", "DATE"): _timestamp_to_date,
    ("TIMESTAMP", "integer"): _timestamp_to_integer,
    ("TIMESTAMP", "float"): _timestamp_to_float,
    ("TIMESTAMP", "decimal"): _timestamp_to_decimal,
    ("DATE", "TIMESTAMP_NTZ"): _date_to_timestamp,
    ("TIMESTAMP_NTZ", "DATE"): _timestamp_to_date,
}
