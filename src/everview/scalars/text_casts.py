"""Casts into text and from text, as Spark does them in ANSI mode.

Text is read without the white space around it; text that is no value of the other type fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.scalars.coercion import bits
from everview.scalars.functions.kernel import Checked, Failed, Kind, Value, each, from_numbers, nulls, numbers
from everview.scalars.functions.moments import DAY, days_of, in_years
from everview.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    INTERVALS,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    Decimal,
    MapType,
    Struct,
    Type,
)

_SPACE: Final = "".join(map(chr, range(33)))  # what Spark takes off around a value


# -- into text


def to_string(value: Value, type_: Type) -> Value:
    """A column of any type as text."""
    if type_ == BINARY:
        return each(pa.string(), lambda raw: raw.decode(errors="replace"), value)
    if type_ in (TIMESTAMP, TIMESTAMP_NTZ):
        return _timestamp_text(value)
    if type_ == TIME or type_ in INTERVALS:
        from everview.scalars.span_casts import span_text

        return span_text(value, type_)
    if type_ in (FLOAT, DOUBLE):
        return _float_texts(value, float_text if type_ == DOUBLE else _single_text)
    if isinstance(type_, Decimal):
        return _decimal_text(value)
    if isinstance(type_, (Array, Struct, MapType)):
        return _composite_text(value, type_)
    if type_ == VARIANT:
        from everview.scalars.functions.variants import variant_text

        return variant_text(value)
    return value.cast(pa.string())


def _composite_text(value: Value, type_: Array | Struct | MapType) -> Value:
    """Values with parts: ``[1, null]``, ``{1, null}``, ``{a -> 1}``; the texts of the parts put together."""
    match type_:
        case Array(element):
            return _joined(value, [_texts(pc.list_flatten(value), element)], "[", "]")
        case MapType(key, item):
            from everview.codes.maps import entries_of

            entries = entries_of(value)
            flat = pc.list_flatten(entries)
            return _joined(entries, [_texts(flat.field(0), key), _texts(flat.field(1), item)], "{", "}")
        case Struct(fields):
            parts = [_texts(pc.struct_field(value, [place]), f.type) for place, f in enumerate(fields)]
            inner = pc.binary_join_element_wise(*parts, ", ") if parts else pa.repeat(pa.scalar(""), len(value))
            return _between(value, "{", inner, "}")


def _texts(value: Value, type_: Type) -> Value:
    return to_string(value, type_).fill_null("null")


def _joined(value: Value, parts: list[Value], first: str, last: str) -> Value:
    """The texts of the elements of lists, between brackets; the second part, if there is one, after an arrow."""
    texts = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, " -> ")
    sizes = pc.list_value_length(value).fill_null(0).to_numpy(zero_copy_only=False)
    offsets: Value = pa.array(np.append(0, np.cumsum(sizes)).astype(np.int32))
    lists: Value = pa.ListArray.from_arrays(offsets, texts)
    return _between(value, first, pc.binary_join(lists, ", "), last)


def _between(value: Value, first: str, inner: Value, last: str) -> Value:
    """Texts between brackets; NULL where the value is."""
    whole = pc.binary_join_element_wise(pa.scalar(first), inner, pa.scalar(last), pa.scalar(""))
    return pc.if_else(value.is_null(), pa.scalar(None, pa.string()), whole)


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
    limit = 1 << (bits(to) - 1)
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
    moments, zones, good = _parsed(value)
    if pc.any(pc.not_equal(zones, pa.scalar(""))).as_py():
        instants, known = _in_zones(moments, zones)
        good &= known & in_years(instants // DAY)
        moments = np.where(good, instants, 0) if to == TIMESTAMP else moments  # else a zone is read and passed over
    return _read(moments, good, value, to)


def read_in_zone(value: Value, out: Kind, instants_of: Callable[[Any], Any]) -> Any:
    """Text as timestamps; those that name no zone are turned into instants by a function."""
    local, zones, good = _parsed(value)
    bare = pc.equal(zones, pa.scalar("")).to_numpy(zero_copy_only=False)
    instants, known = _in_zones(local, zones)
    instants[bare] = instants_of(local[bare])
    good &= known & in_years(instants // DAY)
    return _read(np.where(good, instants, 0), good, value, TIMESTAMP)


def _parsed(value: Value) -> tuple[Any, Value, Any]:
    """Texts parsed as local times in microseconds, their zones' names, and a mask of those that parsed."""
    text = _trimmed(value)
    parts = pc.extract_regex(text, _TIME_TEXT)
    days, good = days_of(_part(parts, "y", 0), _part(parts, "m", 1), _part(parts, "d", 1))
    hour, minute, second = (_part(parts, name, 0) for name in "his")
    good &= (hour < 24) & (minute < 60) & (second < 60)
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(parts, "f"), 6, "0"), 0, 6)
    micros = fraction.fill_null("0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    moments = days * DAY + (hour * 3600 + minute * 60 + second) * 1_000_000 + micros
    return moments, pc.struct_field(parts, "z").fill_null(""), good


def _in_zones(local: Any, zones: Value) -> tuple[Any, Any]:
    from everview.scalars.functions.zones import instants_in, zone_of

    coded = zones.dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False)
    utc, known = local.copy(), np.ones(len(local), bool)
    for code, name in enumerate(coded.dictionary.to_pylist()):
        rows = codes == code
        shift = offset_of(name)
        if shift is not None:
            utc[rows] -= shift * 1_000_000
            continue
        zone = zone_of(name)
        known[rows] = zone is not None
        if isinstance(zone, int):
            utc[rows] -= zone
        elif zone is not None:
            utc[rows] = instants_in(zone, local[rows])
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


# Casts from text, by the family of the other type.
FROM_TEXT: Final[dict[str, Callable[[Value, Type, Type], Any]]] = {
    "integer": _reading("^[+-]?[0-9]+$", _read_integer, "whole number"),
    "float": _reading(
        r"^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?|(?i:inf|infinity))$|^(?i:nan)$",
        _read_float,
        "number",
    ),
    "decimal": _reading(r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$", _read_decimal, "number"),
    "BOOLEAN": _reading("^(?i:t|true|y|yes|1|f|false|n|no|0)$", _read_boolean, "truth value"),
    "DATE": _read_date,
    "TIMESTAMP": _read_timestamp,
    "TIMESTAMP_NTZ": _read_timestamp,
}
