"""Parameters as PostgreSQL's clients send them, in text and in binary, to literals of Everview's types."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import re
import struct
import uuid
from collections.abc import Callable
from typing import Any, Final

from everview.errors import EverviewError
from everview.frontends.sql.postgresql_arrays import NestedArray, array_elements
from everview.frontends.sql.postgresql_bytes import bytes_of_text
from everview.plan.typing import literal, number
from everview.scalars.expressions import Literal
from everview.serve.postgres.messages import MessageBody, ProtocolViolation
from everview.serve.postgres.oids import PG_ARRAYS, PG_TYPES, element_oid, type_of_oid
from everview.serve.postgres.states import ClientError
from everview.types import DAY, DAY_TIME, VARIANT, YEAR_MONTH, Array, Decimal, Type, Variant

Decoder = Callable[[bytes], Any]
_DAY_ZERO: Final = dt.date(2000, 1, 1).toordinal()
_PLAIN_ZERO: Final = dt.datetime(2000, 1, 1)
_ZERO: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
MOST_DIGITS: Final = 38  # of a DECIMAL
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_TRUE: Final = ("t", "true", "y", "yes", "on", "1")
_FALSE: Final = ("f", "false", "n", "no", "off", "0")


class Months(int):
    """An interval of whole months."""


def parameter(raw: bytes | None, oid: int, binary: bool) -> Literal:
    """The literal of a parameter.

    >>> parameter(b"7", 20, False), parameter(bytes([0, 0, 0, 7]), 23, True)
    (Literal(value=7, type=BIGINT), Literal(value=7, type=INTEGER))
    """
    type_ = type_of_oid(oid)
    if raw is None:
        return Literal(None, type_)
    return as_literal(decoded(raw, oid, binary), type_)


def decoded(raw: bytes, oid: int, binary: bool) -> Any:
    """The Python value of a parameter's bytes."""
    try:
        element = element_oid(oid)
        if element is not None:
            return _binary_array(raw, element) if binary else _text_array(_text(raw), element)
        if binary:
            return _BINARY.get(oid, _text)(raw)
        return _TEXT.get(oid, str)(_text(raw))
    except (ProtocolViolation, ClientError):
        raise
    except (ValueError, struct.error, OverflowError, decimal.InvalidOperation, RecursionError, EverviewError):
        name = PG_TYPES[oid].shown if oid in PG_TYPES else PG_ARRAYS[oid].shown + "[]" if oid in PG_ARRAYS else "text"
        if binary:
            raise ClientError(f"incorrect binary data format for type {name}", "22P03") from None
        shown = raw.decode(errors="replace")[:60]
        raise ClientError(f'invalid input syntax for type {name}: "{shown}"', "22P02") from None


def as_literal(value: Any, type_: Type) -> Literal:
    """A Python value as a literal of a type; spans and decimals as the type that fits the value."""
    if value is None:
        return Literal(None, type_)
    if isinstance(type_, Array):
        return _array_literal(value, type_)
    if isinstance(value, decimal.Decimal) and isinstance(type_, Decimal):
        return number(value)
    if isinstance(value, Months):
        return Literal(int(value), YEAR_MONTH)
    if isinstance(value, dt.timedelta):
        return literal(value, DAY if type_ == DAY else DAY_TIME)
    if type_ == VARIANT:
        return Literal(Variant.of(value), VARIANT)
    return literal(value, type_)


def _array_literal(values: Any, type_: Array) -> Literal:
    parts = [as_literal(value, type_.element) for value in values]
    element = type_.element
    decimals = [part.type for part in parts if isinstance(part.type, Decimal) and part.value is not None]
    if decimals:
        scale = max(t.scale for t in decimals)
        element = Decimal(min(38, max(t.precision - t.scale for t in decimals) + scale), scale)
    elif parts and isinstance(parts[0].type, type(element)):
        element = next((part.type for part in parts if part.value is not None), element)
    return Literal(tuple(part.value for part in parts), Array(element))


def _text(raw: bytes) -> str:
    text = raw.decode()
    if "\0" in text:
        raise ClientError('invalid byte sequence for encoding "UTF8": 0x00', "22021")
    return text


# -- text


def _truth(text: str) -> bool:
    said = text.strip().lower()
    if said in _TRUE:
        return True
    if said in _FALSE:
        return False
    raise ValueError(text)


def _whole(bits: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text)
        if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise ClientError(f'value "{text[:40]}" is out of range for type {_WHOLE[bits]}', "22003")
        return value

    return read


_WHOLE: Final = {16: "smallint", 32: "integer", 64: "bigint"}


def _moment(text: str) -> dt.datetime:
    value = dt.datetime.fromisoformat(text.strip())
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


def _plain_moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text.strip()).replace(tzinfo=None)


def _exact(text: str) -> decimal.Decimal:
    value = decimal.Decimal(text.strip())
    if not value.is_finite():
        raise ClientError(f"there is no number {text[:20]} in DECIMAL", "22003")
    if value.adjusted() < -16_383:  # as far behind the point as PostgreSQL reads digits
        raise ClientError("value overflows numeric format", "22003")
    if value and value.adjusted() >= MOST_DIGITS:
        raise ClientError(f"a number of more than {MOST_DIGITS} digits", "22003", hint="use a float8")
    return value


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise ClientError(f'"{text[:40]}" is out of range for type double precision', "22003")
    return value


_UNITS: Final = {
    "year": ("months", 12), "mon": ("months", 1), "week": ("micros", 7 * 86_400_000_000),
    "day": ("micros", 86_400_000_000), "hour": ("micros", 3_600_000_000), "min": ("micros", 60_000_000),
    "sec": ("micros", 1_000_000), "millisecond": ("micros", 1000), "microsecond": ("micros", 1),
}  # fmt: skip
_ALIASES: Final = {
    "y": "year", "yr": "year", "years": "year", "mons": "mon", "month": "mon", "months": "mon", "w": "week",
    "weeks": "week", "d": "day", "days": "day", "h": "hour", "hours": "hour", "hr": "hour", "m": "min", "mins": "min",
    "minute": "min", "minutes": "min", "s": "sec", "secs": "sec", "second": "sec", "seconds": "sec",
    "ms": "millisecond", "milliseconds": "millisecond", "us": "microsecond", "microseconds": "microsecond",
}  # fmt: skip
_SPAN: Final = re.compile(r"\s*(?:([+-]?\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?|([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+))")
_ISO: Final = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?)S)?)?"
)
_LONGEST_AMOUNT: Final = 40  # characters of a number in an interval
_ISO_UNITS: Final = ("year", "mon", "week", "day", "hour", "min", "sec")


def _interval(text: str) -> dt.timedelta | Months:
    """A span of time, as ``1 day 02:03:04``, ``2 years 3 mons`` or in ISO 8601's form."""
    parts: list[tuple[str, str]] = []
    iso = _ISO.fullmatch(text.strip())
    if iso is not None:
        parts = [(amount, unit) for amount, unit in zip(iso.groups(), _ISO_UNITS, strict=True) if amount]
    else:
        place = 0
        while place < len(text.rstrip()):
            match = _SPAN.match(text, place)
            if match is None:
                raise ValueError(text)
            hours, minutes, seconds, amount, unit = match.groups()
            if unit is None:
                sign = "-" if hours.startswith("-") else ""
                parts += [(hours, "hour"), (sign + minutes, "min"), (sign + (seconds or "0"), "sec")]
            else:
                parts.append((amount, _ALIASES.get(unit.lower(), unit.lower())))
            place = match.end()
    if not parts:
        raise ValueError(text)
    return _span({name: _sum(parts, name) for name in ("months", "micros")})


def _sum(parts: list[tuple[str, str]], what: str) -> int:
    total = decimal.Decimal(0)
    for amount, unit in parts:
        if unit not in _UNITS:
            raise ValueError(unit)
        if len(amount) > _LONGEST_AMOUNT:
            raise ClientError("interval out of range", "22008")
        kind, each = _UNITS[unit]
        total += decimal.Decimal(amount) * each if kind == what else 0
    return int(total)


def _span(parts: dict[str, int]) -> dt.timedelta | Months:
    if abs(parts["months"]) >= 1 << 31 or abs(parts["micros"]) >= 1 << 63:
        raise ClientError("interval out of range", "22008")
    if parts["months"] and parts["micros"]:
        raise ClientError("an interval has either months or days and time, not both", "22007")
    return Months(parts["months"]) if parts["months"] else parts["micros"] * _MICROSECOND


def _text_array(text: str, element: int) -> list[Any]:
    """The values of ``{1,NULL,"a b"}``."""
    try:
        elements = array_elements(text)
    except NestedArray:
        raise ClientError("arrays of arrays are given as JSON", "0A000") from None
    return [None if each is None else decoded(each.encode(), element, binary=False) for each in elements]


_TEXT: Final[dict[int, Callable[[str], Any]]] = {
    16: _truth,
    17: bytes_of_text,
    20: _whole(64),
    21: _whole(16),
    23: _whole(32),
    24: _whole(64),
    26: _whole(64),
    114: json.loads,
    700: _float,
    701: _float,
    1082: lambda text: dt.date.fromisoformat(text.strip()),
    1083: lambda text: dt.time.fromisoformat(text.strip()),
    1114: _plain_moment,
    1184: _moment,
    1186: _interval,
    1700: _exact,
    2205: _whole(64),
    2206: _whole(64),
    2950: lambda text: str(uuid.UUID(text)),
    3802: json.loads,
}


# -- binary


def _numeric(raw: bytes) -> decimal.Decimal:
    count, weight, sign, scale = struct.unpack("!hhHh", raw[:8])
    groups = struct.unpack(f"!{count}H", raw[8:])
    if sign not in (0, 0x4000):
        raise ClientError("there is no NaN and no infinity in DECIMAL", "22003")
    digits = decimal.Decimal(int("".join(f"{group:04}" for group in groups) or "0"))
    if digits and digits.adjusted() + 4 * (weight - count + 1) >= MOST_DIGITS:
        raise ClientError(f"a number of more than {MOST_DIGITS} digits", "22003", hint="use a float8")
    with decimal.localcontext(prec=200):
        value = digits.scaleb(4 * (weight - count + 1)).quantize(decimal.Decimal(1).scaleb(-scale))
    return -value if sign else value


def _binary_interval(raw: bytes) -> dt.timedelta | Months:
    micros, days, months = struct.unpack("!qii", raw)
    return _span({"months": months, "micros": micros + days * 86_400_000_000})


def _binary_array(raw: bytes, element: int) -> list[Any]:
    body = MessageBody(raw)
    dimensions, _, oid = body.int32(), body.int32(), body.oid()
    if dimensions == 0:
        return []
    if dimensions != 1:
        raise ClientError("arrays of arrays are given as JSON", "0A000")
    count, _ = body.int32(), body.int32()
    if not 0 <= count <= len(raw):
        raise ValueError(count)
    values = [body.value() for _ in range(count)]
    body.end()
    return [None if value is None else decoded(value, oid or element, binary=True) for value in values]


def _json_binary(raw: bytes) -> Any:
    if raw[:1] != b"\1":
        raise ValueError(raw[:1])
    return json.loads(raw[1:])


def _time_of(micros: int) -> dt.time:
    return (_PLAIN_ZERO + micros * _MICROSECOND).time()


def _unpacked(form: str) -> Decoder:
    return lambda raw: struct.unpack(form, raw)[0]


_BINARY: Final[dict[int, Decoder]] = {
    16: lambda raw: bool(struct.unpack("!?", raw)[0]),
    17: bytes,
    20: _unpacked("!q"),
    21: _unpacked("!h"),
    23: _unpacked("!i"),
    24: _unpacked("!I"),
    26: _unpacked("!I"),
    114: json.loads,
    700: _unpacked("!f"),
    701: _unpacked("!d"),
    1082: lambda raw: dt.date.fromordinal(struct.unpack("!i", raw)[0] + _DAY_ZERO),
    1083: lambda raw: _time_of(struct.unpack("!q", raw)[0]),
    1114: lambda raw: _PLAIN_ZERO + struct.unpack("!q", raw)[0] * _MICROSECOND,
    1184: lambda raw: _ZERO + struct.unpack("!q", raw)[0] * _MICROSECOND,
    1186: _binary_interval,
    1700: _numeric,
    2205: _unpacked("!I"),
    2206: _unpacked("!I"),
    2950: lambda raw: str(uuid.UUID(bytes=raw)),
    3802: _json_binary,
}
