"""The meaning of CAST, one value at a time."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import struct
import zoneinfo
from fractions import Fraction
from typing import Any, Final

from everview.types import (
    ANY,
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTERVALS,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    YEAR_MONTH,
    Array,
    Decimal,
    MapType,
    Struct,
    Type,
)

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_BITS: Final[dict[Type, int]] = {TINYINT: 8, SMALLINT: 16, INTEGER: 32, BIGINT: 64}


class NoValue(Exception):
    """Raised where an expression has no value: a cast or a function that fails."""


def cast_value(value: Any, type_: Type, to: Type) -> Any:
    """The value as the other type; raises `NoValue`."""
    if value is None or type_ == to or to == ANY:
        return value
    if VARIANT in (type_, to):
        from everview.oracle.scalar_variants import from_variant, to_variant

        return to_variant(value, type_) if to == VARIANT else from_variant(value.value, to)
    if isinstance(type_, Array) and isinstance(to, Array):
        return [cast_value(v, type_.element, to.element) for v in value]
    if isinstance(type_, Struct) and isinstance(to, Struct):
        parts = zip(value.values(), type_.fields, to.fields, strict=True)
        return {b.name: cast_value(v, a.type, b.type) for v, a, b in parts}
    if isinstance(type_, MapType) and isinstance(to, MapType):
        return _map(value, type_, to)
    if to == STRING:
        return composite_text(value, type_)
    if isinstance(value, str):
        return _read(value.strip("".join(map(chr, range(33)))), value, to)
    return _convert(value, type_, to)


def _map(value: dict[Any, Any], type_: MapType, to: MapType) -> dict[Any, Any]:
    from everview.oracle.scalar_maps import entries, made

    pairs = entries(value, type_)
    return made([(cast_value(k, type_.key, to.key), cast_value(v, type_.value, to.value)) for k, v in pairs])


def composite_text(value: Any, type_: Type) -> str:
    """A value as text: ``[1, null]``, ``{1, null}``, ``{a -> 1}``."""
    if value is None:
        return "null"
    if isinstance(type_, Array):
        return f"[{', '.join(composite_text(v, type_.element) for v in value)}]"
    if isinstance(type_, Struct):
        parts = zip(value.values(), type_.fields, strict=True)
        return f"{{{', '.join(composite_text(v, f.type) for v, f in parts)}}}"
    if isinstance(type_, MapType):
        from everview.oracle.scalar_maps import entries

        pairs = entries(value, type_)
        shown = (f"{composite_text(k, type_.key)} -> {composite_text(v, type_.value)}" for k, v in pairs)
        return f"{{{', '.join(shown)}}}"
    if type_ == VARIANT:
        from everview.oracle.scalar_variants import from_variant

        text = from_variant(value.value, STRING)
        return "null" if text is None else text
    return _text(value, type_)


def rounded_decimal(exact: Any, to: Decimal) -> decimal.Decimal:
    """The nearest decimal, halves away from zero."""
    scaled = Fraction(exact) * 10**to.scale
    size = math.floor(abs(scaled) + Fraction(1, 2))
    if size >= 10**to.precision:
        raise NoValue(f"more digits than {to}")
    sign = 1 if scaled < 0 and size else 0
    return decimal.Decimal((sign, tuple(map(int, str(size))), -to.scale))


def _integer(exact: Any, to: Type) -> int:
    integer = math.trunc(exact)
    if not -(1 << (_BITS[to] - 1)) <= integer < 1 << (_BITS[to] - 1):
        raise NoValue(f"outside {to}")
    return integer


def _convert(value: Any, type_: Type, to: Type) -> Any:
    if type_ in INTERVALS or to in INTERVALS:
        return _interval(value, type_, to)
    if isinstance(value, dt.time):
        seconds = Fraction(_of_day(value), 1_000_000)
        return rounded_decimal(seconds, to) if isinstance(to, Decimal) else _integer(seconds, to)
    if to == BOOLEAN:
        return value != 0
    if isinstance(value, dt.date):
        return _from_date(value, type_, to)
    if to == TIMESTAMP:
        return _from_seconds(value)
    exact = Fraction(_shortest(value, type_)) if isinstance(value, float) and math.isfinite(value) else value
    if isinstance(value, float) and not math.isfinite(value) and to not in (FLOAT, DOUBLE):
        raise NoValue("not finite")
    if isinstance(to, Decimal):
        return rounded_decimal(exact, to)
    if to in (FLOAT, DOUBLE):
        return _single(float(value)) if to == FLOAT else float(value)
    if value == 2.0**63 and to == BIGINT and isinstance(value, float):
        return 2**63 - 1
    return _integer(Fraction(value) if isinstance(value, (float, decimal.Decimal)) else value, to)


def _from_date(value: dt.date, type_: Type, to: Type) -> Any:
    """A date or a timestamp, with a zone or without, as another type."""
    if not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day, tzinfo=None if to == TIMESTAMP_NTZ else dt.UTC)
    if to == TIME:
        return value.astimezone(dt.UTC).time() if value.tzinfo else value.time()
    if TIMESTAMP_NTZ not in (type_, to):
        return _from_timestamp(value, to)
    if to == DATE:
        return value.date()
    return value.replace(tzinfo=None if to == TIMESTAMP_NTZ else dt.UTC)


def _of_day(time: dt.time) -> int:
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 1_000_000 + time.microsecond


_UNITS: Final = {"INTERVAL YEAR TO MONTH": 1, "INTERVAL DAY": 86_400_000_000, "INTERVAL DAY TO SECOND": 1_000_000}


def _interval(value: Any, type_: Type, to: Type) -> Any:
    """Between intervals and with numbers, which count the last unit; what has no place there is cut off."""
    if type_ not in INTERVALS:
        counted = math.trunc(value) if to.sql != "INTERVAL DAY TO SECOND" else Fraction(value)
        words, limit = math.trunc(counted * _UNITS[to.sql]), 1 << (31 if to == YEAR_MONTH else 63)
        if not -limit + (to != YEAR_MONTH) <= words < limit:
            raise NoValue(f"outside {to}")
        return words
    words = value // dt.timedelta(microseconds=1) if isinstance(value, dt.timedelta) else value
    if to in INTERVALS:
        return math.trunc(Fraction(words, _UNITS[to.sql])) * _UNITS[to.sql] if to == DAY else words
    units = Fraction(words, _UNITS[type_.sql])
    if isinstance(to, Decimal):
        return rounded_decimal(units if type_.sql == "INTERVAL DAY TO SECOND" else math.trunc(units), to)
    return _integer(units, to)


def _read_interval(text: str, to: Type) -> int:
    """``1-2``, ``3``, ``1 02:03:04.5``, by itself or as SQL writes the literal."""
    sign = 1
    units = to.sql.removeprefix("INTERVAL ")
    written = re.fullmatch(rf"interval\s+([+-]?)'(.*)'\s+{units.replace(' ', '[ ]+')}", text, re.IGNORECASE | re.DOTALL)
    if written is not None:
        sign, text = -1 if written[1] == "-" else 1, written[2]
    if text[:1] in ("+", "-"):
        sign, text = -sign if text[0] == "-" else sign, text[1:]
    forms = {
        "YEAR TO MONTH": r"([0-9]+)-([0-9]+)",
        "DAY": r"([0-9]+)",
        "DAY TO SECOND": r"([0-9]+) ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]{1,9}))?",
    }
    match = re.fullmatch(forms[units], text)
    if match is None:
        raise NoValue("no interval")
    first, *rest = (int(part or 0) for part in match.groups()[:4])
    if any(part >= most for part, most in zip(rest, (12,) if to == YEAR_MONTH else (24, 60, 60), strict=False)):
        raise NoValue("no interval")
    if to == YEAR_MONTH:
        words = first * 12 + rest[0]
    else:
        clock = dt.timedelta(hours=rest[0], minutes=rest[1], seconds=rest[2]) if rest else dt.timedelta()
        fraction = int(f"{match[5] or ''}000000"[:6]) if rest else 0
        words = first * 86_400_000_000 + clock // dt.timedelta(microseconds=1) + fraction
    if words >= 1 << (31 if to == YEAR_MONTH else 63):
        raise NoValue("outside the range")
    return sign * words


def read_time(text: str) -> dt.time:
    """``12:30``, ``12:30:15.5``, also after a T, and of half a day as ``1:30 PM``."""
    match = re.fullmatch(
        r"T?([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?(?: ?([AaPp])[Mm])?", text, re.ASCII
    )
    if match is None:
        raise NoValue("no time")
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    if match[5] is not None:
        if not 1 <= hour <= 12:
            raise NoValue("no time")
        hour = hour % 12 + (12 if match[5] in "pP" else 0)
    try:
        return dt.time(hour, minute, second, int(f"{match[4] or ''}000000"[:6]))
    except ValueError:
        raise NoValue("no time") from None


def _interval_text(value: Any, type_: Type) -> str:
    if type_ == YEAR_MONTH:
        body = f"{abs(value) // 12}-{abs(value) % 12}"
        return f"INTERVAL '{'-' * (value < 0)}{body}' YEAR TO MONTH"
    size = abs(value)
    sign = "-" if value < dt.timedelta() else ""
    if type_ == DAY:
        return f"INTERVAL '{sign}{size.days}' DAY"
    clock = _clock_text((dt.datetime.min + dt.timedelta(seconds=size.seconds, microseconds=size.microseconds)).time())
    return f"INTERVAL '{sign}{size.days} {clock}' DAY TO SECOND"


def _clock_text(time: dt.time) -> str:
    text = time.isoformat("microseconds")
    return text.rstrip("0").rstrip(".") if time.microsecond else text[:8]


def _shortest(value: float, type_: Type) -> str:
    if type_ != FLOAT:
        return repr(value)
    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        if _single(float(text)) == value:
            return text
    return repr(value)


def _single(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _from_timestamp(value: dt.datetime, to: Type) -> Any:
    micros = (value - EPOCH) // dt.timedelta(microseconds=1)
    if to == DATE:
        return value.astimezone(dt.UTC).date()
    if to in _BITS:
        return _integer(micros // 1_000_000, to)
    if isinstance(to, Decimal):
        return rounded_decimal(Fraction(micros, 1_000_000), to)
    return _single(micros / 1_000_000.0) if to == FLOAT else micros / 1_000_000.0


def _from_seconds(value: Any) -> dt.datetime:
    if isinstance(value, float):
        if not math.isfinite(value * 1_000_000):
            raise NoValue("not finite")
        micros = int(value * 1_000_000)
    else:
        micros = math.trunc(Fraction(value) * 1_000_000)
    try:
        return EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        raise NoValue("outside the years 1 to 9999") from None


# -- text


def _text(value: Any, type_: Type) -> str:
    if type_ in INTERVALS:
        return _interval_text(value, type_)
    match value:
        case dt.time():
            return _clock_text(value)
        case bool():
            return "true" if value else "false"
        case bytes():
            return value.decode(errors="replace")
        case float():
            return _float_text(value, type_)
        case decimal.Decimal():
            return f"{value:f}"
        case dt.datetime():
            return _timestamp_text(value)
        case _:
            return str(value)


def _timestamp_text(value: dt.datetime) -> str:
    value = value.astimezone(dt.UTC) if value.tzinfo else value
    whole = f"{value.year:04}-{value.month:02}-{value.day:02} {value.hour:02}:{value.minute:02}:{value.second:02}"
    return whole + (f".{value.microsecond:06}".rstrip("0") if value.microsecond else "")


def _float_text(value: float, type_: Type) -> str:
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    number = decimal.Decimal(_shortest(value, type_))
    if decimal.Decimal("0.001") <= abs(number) < 10_000_000:
        text = f"{number:f}"
        text = text.rstrip("0") if "." in text else text
        return text + "0" if text.endswith(".") else text if "." in text else text + ".0"
    sign, digits, _ = number.normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{number.adjusted()}"


def _read(text: str, given: str, to: Type) -> Any:
    if to == BINARY:
        return given.encode()
    if to == BOOLEAN:
        return _read_boolean(text.lower())
    if to in _BITS:
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise NoValue("no whole number")
        return _integer(int(text), to)
    if to == DATE:
        return read_date(text)
    if to == TIMESTAMP:
        return read_timestamp(text)
    if to == TIMESTAMP_NTZ:
        return _read_local(text)
    if to == TIME:
        return read_time(text)
    if to in INTERVALS:
        return _read_interval(text, to)
    return _read_number(text, to)


def _read_boolean(text: str) -> bool:
    if text in ("t", "true", "y", "yes", "1"):
        return True
    if text in ("f", "false", "n", "no", "0"):
        return False
    raise NoValue("no truth value")


def _read_number(text: str, to: Type) -> Any:
    plain = re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text)
    if isinstance(to, Decimal):
        if not plain:
            raise NoValue("no number")
        if decimal.Decimal(text).adjusted() > 100:
            raise NoValue("too many digits")
        return rounded_decimal(Fraction(text), to)
    special = re.fullmatch(r"[+-]?(inf|infinity)|nan", text, re.IGNORECASE)
    if not plain and not special and text[-1:] in "dDfF":
        return _read_number(text[:-1], to) if re.fullmatch(r".*[0-9.]", text[:-1]) else _none()
    if not plain and not special:
        raise NoValue("no number")
    return _single(float(text)) if to == FLOAT else float(text)


def _none() -> Any:
    raise NoValue("no number")


def read_date(text: str) -> dt.date:
    """``2024``, ``2024-1``, ``2024-1-5``, and that with anything after a space or a T."""
    match = re.fullmatch(r"\+?([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", text)
    if match is None:
        raise NoValue("no date")
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        return dt.date(year, month, day)
    except ValueError:
        raise NoValue("no such date") from None


# Java's short names of zones.
SHORT_ZONES: Final = {
    "PST": "America/Los_Angeles", "CST": "America/Chicago", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00", "ECT": "Europe/Paris", "AET": "Australia/Sydney",
    "ACT": "Australia/Darwin", "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo",
    "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare",
    "CNT": "America/St_Johns", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "IET": "America/Indiana/Indianapolis", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip


def read_timestamp(text: str) -> dt.datetime:
    """A date, a time of day to the minute or finer, and a zone; each part may be left out from the end."""
    head, _, rest = re.sub(r"^([^ T]*)T", r"\1 ", text).partition(" ")
    if not rest:
        day = read_date(head)
        return dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)
    day = read_date(head)
    if head.count("-") != 2:
        raise NoValue("no timestamp")
    match = re.fullmatch(r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?)? ?([^0-9: .].*)?", rest)
    if match is None:
        raise NoValue("no timestamp")
    hour, minute, second, fraction, zone = match.groups()
    micros = int(f"{fraction or ''}000000"[:6])
    try:
        local = dt.datetime(day.year, day.month, day.day, int(hour), int(minute or 0), int(second or 0), micros)
        return local.replace(tzinfo=_zone(zone or "Z")).astimezone(dt.UTC)
    except (ValueError, OverflowError, KeyError, OSError):
        raise NoValue("no timestamp") from None


def _read_local(text: str) -> dt.datetime:
    """Read a timestamp as a local one, ignoring its zone, which must exist."""
    read_timestamp(text)
    zoned = re.fullmatch(r"(.*[ T][0-9]{1,2}(?::[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]*)?)?)?) ?[^0-9: .].*", text)
    return read_timestamp(zoned[1] if zoned else text).replace(tzinfo=None)


def _zone(name: str) -> dt.tzinfo:
    name = SHORT_ZONES.get(name, name)
    if name in ("Z", "z", "UTC", "GMT", "UT"):
        return dt.UTC
    match = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?", name)
    if match is None:
        return zoneinfo.ZoneInfo(name)
    sign, hours, minutes, seconds = match.groups()
    shift = dt.timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    if shift > dt.timedelta(hours=18):
        raise NoValue("no zone")
    return dt.timezone(-shift if sign == "-" else shift)
