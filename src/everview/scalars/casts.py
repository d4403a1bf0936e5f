"""CAST, as Spark does it in ANSI mode: what the other type does not hold fails, nothing wraps or turns into NULL.

Text is read without the white space around it; a number is rounded to a DECIMAL with halves away from zero, and cut
off towards zero to an integer; a timestamp is text, a date and a number of seconds in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.codes.columns import any_of
from everview.scalars.coercion import INTEGERS, is_integer
from everview.scalars.functions.decimals import (
    double_as_decimal,
    half_up,
    objects,
    rescaled,
    scaled,
    to_double,
    unscaled,
)
from everview.scalars.functions.kernel import Checked, Failed, Value, each, from_numbers, nulls, numbers
from everview.scalars.functions.moments import DAY, LAST_YEAR, days_of, in_years
from everview.scalars.kinds import INTERVALS, VOID
from everview.types import ANY, BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, STRING, TIMESTAMP, Array, Decimal, Struct, Type

_SPACE: Final = "".join(map(chr, range(33)))  # what Spark takes off around a value


def safe(type_: Type, to: Type) -> bool:
    """Whether a cast between two types can never fail."""
    if type_ in (to, VOID) or to in (STRING, ANY) or {type_, to} == {DATE, TIMESTAMP} or type_ == BINARY:
        return True
    if isinstance(type_, Array) and isinstance(to, Array):
        return safe(type_.element, to.element)
    if isinstance(type_, Struct) and isinstance(to, Struct):
        return all(safe(a.type, b.type) for a, b in zip(type_.fields, to.fields, strict=True))
    if is_integer(type_) and is_integer(to):
        return INTEGERS.index(to) >= INTEGERS.index(type_)
    if to in (FLOAT, DOUBLE, BOOLEAN):
        return type_ != STRING
    if isinstance(type_, Decimal) and isinstance(to, Decimal):
        return to.precision - to.scale > type_.precision - type_.scale or (
            to.scale >= type_.scale and to.precision - to.scale == type_.precision - type_.scale
        )
    if is_integer(type_) and isinstance(to, Decimal):
        return to.precision - to.scale >= {8: 3, 16: 5, 32: 10, 64: 19}[_bits(type_)]
    return type_ == BOOLEAN and is_integer(to)


def _bits(type_: Type) -> int:
    return 8 << INTEGERS.index(type_)


def convert(value: Value, type_: Type, to: Type) -> Value | Checked:
    """A column as another type."""
    if type_ == to:
        return value
    if type_ == VOID:
        return value.cast(to.arrow)
    if to == ANY:
        return any_of(type_, value)
    if isinstance(type_, Array) and isinstance(to, Array):
        return _array(value, type_, to)
    if isinstance(type_, Struct) and isinstance(to, Struct):
        return _struct(value, type_, to)
    if to == STRING:
        return _to_string(value, type_)
    caster = _CASTS.get((_family(type_), _family(to)))
    assert caster is not None, f"no cast of {type_} to {to}"
    return caster(value, type_, to)


def _family(type_: Type) -> str:
    if is_integer(type_):
        return "integer"
    if type_ in (FLOAT, DOUBLE):
        return "float"
    if type_ in INTERVALS:
        return "interval"
    return "decimal" if isinstance(type_, Decimal) else type_.sql


# -- into text


def _to_string(value: Value, type_: Type) -> Value:
    if type_ == BINARY:
        return each(pa.string(), lambda raw: raw.decode(errors="replace"), value)
    if type_ == TIMESTAMP:
        return _timestamp_text(value)
    if type_ in (FLOAT, DOUBLE):
        return _float_texts(value, float_text if type_ == DOUBLE else _single_text)
    if isinstance(type_, Decimal):
        return _decimal_text(value)
    return value.cast(pa.string())


def _decimal_text(value: Value) -> Value:
    # Arrow writes very small ones with an exponent.
    text = value.cast(pa.string())
    if pc.any(pc.match_substring(text, "E")).as_py():
        return each(pa.string(), lambda number: f"{number:f}", value)
    return text


def _timestamp_text(value: Value) -> Value:
    text = pc.strftime(value.cast(pa.timestamp("us")), "%Y-%m-%d %H:%M:%S")
    return pc.replace_substring_regex(text, r"\.?0+$", "") if len(text) else text


def _float_texts(value: Value, written: Callable[[float], str]) -> Value:
    """Floats as text: Arrow writes Java's digits, and from 0.001 to 10 million also its layout, but for a last .0."""
    size = np.abs(numbers(value, 0.0))
    plain = ((size >= 1e-3) & (size < 1e7)) | (size == 0)
    text = value.cast(pa.string())
    pointed = pc.match_substring(text, ".")
    text = pc.if_else(pointed, text, pc.binary_join_element_wise(text, pa.scalar("0"), pa.scalar(".")))
    if plain.all():
        return text
    others = pa.array(~plain)
    return pc.replace_with_mask(text, others, each(pa.string(), written, value.filter(others)))


def float_text(x: float) -> str:
    """A double as Java writes it: plainly from 0.001 to 10 million, else with an exponent."""
    return _java(repr(x))


def _single_text(x: float) -> str:
    return _java(str(np.float32(x)))


def _java(text: str) -> str:
    if text in ("nan", "inf", "-inf"):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[text]
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    mantissa, _, power = text.partition("e")
    before, _, after = mantissa.partition(".")
    digits = (before + after).lstrip("0")
    if not digits.strip("0"):
        return sign + "0.0"
    point = int(power or 0) + (len(before) if before.strip("0") else len(digits) - len(after))
    digits = digits.rstrip("0")
    if -2 <= point <= 7:
        whole = digits[:point].ljust(point, "0") if point > 0 else "0"
        rest = digits[max(point, 0) :] if point >= 0 else "0" * -point + digits
        return f"{sign}{whole}.{rest or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


# -- from text


def _trimmed(value: Value) -> Value:
    return pc.utf8_trim(value, _SPACE)


def _reading(pattern: str, read: Callable[[Value, Type], Any], what: str) -> Callable[[Value, Type, Type], Any]:
    """A cast from text: text that matches a pattern is read, other text fails."""

    def run(value: Value, type_: Type, to: Type) -> Any:
        text = _trimmed(value)
        good = pc.match_substring_regex(text, pattern)
        bad = pc.invert(good).fill_null(False)
        failing = pc.any(bad).as_py()
        values = read(pc.if_else(good, text, pa.scalar(None, text.type)) if failing else text, to)
        if not failing:
            return values
        mask = bad.to_numpy(zero_copy_only=False)
        inner = values if isinstance(values, Checked) else Checked(values, np.zeros(len(mask), bool), "")
        return Checked(inner.value, mask | inner.failed, f"it is no {what}" if mask.any() else inner.reason)

    return run


def _read_integer(text: Value, to: Type) -> Any:
    plain = pc.replace_substring_regex(text, r"^\+", "")
    try:
        return plain.cast(to.arrow)
    except pa.ArrowInvalid:
        return each(to.arrow, lambda t: _ranged(int(t), to), text)


def _ranged(number: int, to: Type) -> int:
    limit = 1 << (_bits(to) - 1)
    if not -limit <= number < limit:
        raise Failed(f"it is outside the range of {to}")
    return number


def _read_float(text: Value, to: Type) -> Any:
    plain = pc.replace_substring_regex(pc.ascii_lower(text), r"^\+", "")
    plain = pc.replace_substring_regex(plain, "^(-?)infinity$", r"\1inf")
    plain = pc.replace_substring_regex(plain, r"^([^n]*[0-9.])[df]$", r"\1")
    plain = pc.replace_substring_regex(plain, r"e\+", "e")
    # Arrow knows no digit before or after the point.
    plain = pc.replace_substring_regex(plain, r"^(-?)\.", r"\1" "0.")
    plain = pc.replace_substring_regex(plain, r"\.(e|$)", r"\1")
    try:
        return plain.cast(pa.float64()).cast(to.arrow, safe=False)
    except pa.ArrowInvalid:
        return each(to.arrow, float, plain)


def _read_decimal(text: Value, to: Type) -> Any:
    assert isinstance(to, Decimal)
    plain = pc.match_substring_regex(
        text, rf"^[+-]?[0-9]{{1,{max(to.precision - to.scale, 1)}}}(\.[0-9]{{0,{to.scale}}})?$"
    )
    if pc.all(plain.fill_null(True)).as_py() and to.precision > to.scale:
        return pc.replace_substring_regex(text, r"\.$", "").cast(to.arrow)
    return each(to.arrow, lambda t: _decimal_of_text(t, to), text)


def _decimal_of_text(text: str, to: Decimal) -> Any:
    import decimal

    number = decimal.Decimal(text)
    if number and number.adjusted() >= to.precision - to.scale + 1:
        raise Failed(f"it has more digits than {to}")
    with decimal.localcontext(decimal.Context(prec=100)):
        rounded = number.quantize(decimal.Decimal(1).scaleb(-to.scale), decimal.ROUND_HALF_UP)
    if rounded and rounded.adjusted() >= to.precision - to.scale:
        raise Failed(f"it has more digits than {to}")
    return rounded


def _read_boolean(text: Value, to: Type) -> Any:
    return pc.match_substring_regex(text, "^(?i:t|true|y|yes|1)$")


_DATE_TEXT: Final = r"^\+?(?P<y>[0-9]{4,6})(?:-(?P<m>[0-9]{1,2})(?:-(?P<d>[0-9]{1,2})(?:[ T].*)?)?)?$"
_TIME_TEXT: Final = (
    r"^\+?(?P<y>[0-9]{4,6})(?:-(?P<m>[0-9]{1,2})(?:-(?P<d>[0-9]{1,2})"
    r"(?:[ T](?P<h>[0-9]{1,2})(?::(?P<i>[0-9]{1,2})(?::(?P<s>[0-9]{1,2})(?:\.(?P<f>[0-9]*))?)?)? ?(?P<z>[^0-9: .].*)?)?"
    r")?)?$"
)


def _part(parts: Value, name: str, missing: int) -> Any:
    text = pc.struct_field(parts, name)
    filled = pc.if_else(pc.equal(text, pa.scalar("")), pa.scalar(str(missing)), text).fill_null(str(missing))
    return filled.cast(pa.int64()).to_numpy(zero_copy_only=False)


def _read_date(value: Value, type_: Type, to: Type) -> Any:
    text = _trimmed(value)
    parts = pc.extract_regex(text, _DATE_TEXT)
    days, good = days_of(_part(parts, "y", 0), _part(parts, "m", 1), _part(parts, "d", 1))
    return _read(days, good, value, to)


def _read(numbers_: Any, good: Any, value: Value, to: Type) -> Any:
    missing = nulls(value)
    failed = ~good if missing is None else ~good & ~missing
    array = from_numbers(numbers_, to.arrow, missing)
    return Checked(array, failed, f"it is no {to}") if failed.any() else array


def _read_timestamp(value: Value, type_: Type, to: Type) -> Any:
    text = _trimmed(value)
    parts = pc.extract_regex(text, _TIME_TEXT)
    days, good = days_of(_part(parts, "y", 0), _part(parts, "m", 1), _part(parts, "d", 1))
    hour, minute, second = (_part(parts, name, 0) for name in "his")
    good &= (hour < 24) & (minute < 60) & (second < 60)
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(parts, "f"), 6, "0"), 0, 6)
    micros = fraction.fill_null("0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    moments = days * DAY + (hour * 3600 + minute * 60 + second) * 1_000_000 + micros
    zones = pc.struct_field(parts, "z").fill_null("")
    if pc.any(pc.not_equal(zones, pa.scalar(""))).as_py():
        moments, known = _in_zones(moments, zones)
        good &= known
    return _read(moments, good, value, to)


def _in_zones(local: Any, zones: Value) -> tuple[Any, Any]:
    coded = zones.dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False)
    utc, known = local.copy(), np.ones(len(local), bool)
    for code, name in enumerate(coded.dictionary.to_pylist()):
        rows = codes == code
        shift = offset_of(name)
        if shift is not None:
            utc[rows] -= shift * 1_000_000
            continue
        zone = _zone(name)
        known[rows] = zone is not None
        if zone is not None:
            naive: Value = pa.array(local[rows], pa.int64()).cast(pa.timestamp("us"))
            moved = pc.assume_timezone(naive, name, ambiguous="earliest", nonexistent="latest")
            utc[rows] = moved.cast(pa.int64()).to_numpy()
    return utc, known


_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")


def offset_of(zone: str) -> int | None:
    """The seconds east of UTC of a zone that is written as an offset."""
    zone = zone.strip()
    if zone in ("", "Z", "z", "UTC", "GMT", "UT"):
        return 0
    match = _OFFSET.fullmatch(zone)
    if match is None:
        return None
    sign, hours, minutes, seconds = match.groups()
    seconds_east = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return None if seconds_east > 18 * 3600 else -seconds_east if sign == "-" else seconds_east


def _zone(name: str) -> str | None:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
    return name


# -- between numbers


def _integer(value: Value, type_: Type, to: Type) -> Any:
    try:
        return value.cast(to.arrow)
    except pa.ArrowInvalid:
        return _limited(numbers(value).astype(np.int64), to, nulls(value))


def _limited(integers: Any, to: Type, missing: Any) -> Any:
    limit = 1 << (_bits(to) - 1)
    failed = np.asarray((integers < -limit) | (integers >= limit), bool)
    if missing is not None:
        failed &= ~missing
    kept = np.where(failed, 0, integers).astype(np.int64)
    array = from_numbers(kept, to.arrow, missing)
    return Checked(array, failed, f"it is outside the range of {to}") if failed.any() else array


def _float_to_integer(value: Value, type_: Type, to: Type) -> Any:
    integers = np.trunc(numbers(value, 0.0).astype(np.float64))
    limit = 2.0 ** (_bits(to) - 1)
    missing = nulls(value)
    # A FLOAT or DOUBLE of the largest BIGINT is one more than it, and Spark lets it pass as the largest.
    top = integers == limit if _bits(to) == 64 else np.zeros(len(integers), bool)
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
        wide = {8: 3, 16: 5, 32: 10, 64: 19}[_bits(type_)] + to.scale > 18
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
    seconds = numbers(value, 0.0).astype(np.float64)
    finite = np.isfinite(seconds)
    micros = np.array([int(x * 1_000_000) if ok else 1 << 80 for x, ok in zip(seconds, finite, strict=True)], object)
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
    failed = np.array([bool(inner.failed[a:b].any()) for a, b in _spans(offsets.to_pylist())], bool)
    return Checked(made, failed, inner.reason)


def _spans(offsets: list[Any]) -> list[tuple[int, int]]:
    return list(pairwise(offsets))


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
    made = pa.StructArray.from_arrays(parts, fields=[_fields(to).field(i) for i in range(len(to.fields))], mask=mask)
    return Checked(made, failed, reason) if failed.any() else made


def _fields(type_: Struct) -> Any:
    return type_.arrow


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
    ("STRING", "integer"): _reading("^[+-]?[0-9]+$", _read_integer, "whole number"),
    ("STRING", "float"): _reading(
        r"^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?|(?i:inf|infinity))$|^(?i:nan)$",
        _read_float,
        "number",
    ),
    ("STRING", "decimal"): _reading(
        r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$", _read_decimal, "number"
    ),
    ("STRING", "BOOLEAN"): _reading("^(?i:t|true|y|yes|1|f|false|n|no|0)$", _read_boolean, "truth value"),
    ("STRING", "DATE"): _read_date,
    ("STRING", "TIMESTAMP"): _read_timestamp,
    ("STRING", "BINARY"): _same_bytes,
    ("DATE", "TIMESTAMP"): _date_to_timestamp,
    ("TIMESTAMP", "DATE"): _timestamp_to_date,
    ("TIMESTAMP", "integer"): _timestamp_to_integer,
    ("TIMESTAMP", "float"): _timestamp_to_float,
    ("TIMESTAMP", "decimal"): _timestamp_to_decimal,
    ("interval", "interval"): _same_bytes,
}
