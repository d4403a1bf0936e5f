"""Values as PostgreSQL sends them, in text and in binary: a function for each type, applied to whole columns."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from everview.serve.postgres.oids import oid_of
from everview.types import FLOAT, YEAR_MONTH, Array, Symbol, Type, Variant

Encoder = Callable[[Any], bytes]
_DAY_ZERO: Final = dt.date(2000, 1, 1).toordinal()
_PLAIN_ZERO: Final = dt.datetime(2000, 1, 1)
_ZERO: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_QUOTED: Final = frozenset('{}", \\\t\n\r\v\f')


def encode_column(type_: Type, values: Sequence[Any], binary: bool) -> list[bytes | None]:
    """The bytes of each value of a column; None for NULL.

    >>> from everview.types import BOOLEAN, Array, STRING
    >>> encode_column(BOOLEAN, [True, None], binary=False), encode_column(Array(STRING), [["a b", None]], False)
    ([b't', None], [b'{"a b",NULL}'])
    """
    encode = encoder_of(type_, binary)
    return [None if value is None else encode(value) for value in values]


def encoder_of(type_: Type, binary: bool) -> Encoder:
    """The function that encodes values of a type."""
    oid = oid_of(type_)
    if isinstance(type_, Array) and oid not in (114,):
        return _binary_array(type_) if binary else _text_array(type_)
    if type_ == YEAR_MONTH:
        return _binary_months if binary else _text_months
    if type_ == FLOAT and not binary:
        return lambda value: _text_float(value, str(np.float32(value)))
    return (_BINARY if binary else _TEXT)[oid]


# -- text


def _text_float(value: float, shown: str | None = None) -> bytes:
    if math.isnan(value):
        return b"NaN"
    if math.isinf(value):
        return b"Infinity" if value > 0 else b"-Infinity"
    return (shown or repr(value)).removesuffix(".0").encode()


def text_of(value: Any) -> str:
    """Text, a symbol or an identity as text."""
    return value if isinstance(value, str) else value.name if isinstance(value, Symbol) else str(value)


def _moment(value: dt.datetime) -> dt.datetime:
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


def _text_plain_moment(value: dt.datetime) -> bytes:
    return value.replace(tzinfo=None).isoformat(" ").encode()


def _text_moment(value: dt.datetime) -> bytes:
    return _moment(value).replace(tzinfo=None).isoformat(" ").encode() + b"+00"


def _text_interval(value: dt.timedelta) -> bytes:
    """A span as PostgreSQL writes it: ``1 day 02:03:04``, the clock with a sign of its own."""
    days = value.days if value >= dt.timedelta(0) else -((-value).days)
    rest = value - dt.timedelta(days)
    parts = [f"{days} day{'' if abs(days) == 1 else 's'}"] if days else []
    if rest or not days:
        micros = abs(rest // _MICROSECOND)
        seconds, micros = divmod(micros, 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        fraction = f".{micros:06}".rstrip("0") if micros else ""
        parts.append(f"{'-' if rest < dt.timedelta(0) else ''}{clock}{fraction}")
    return " ".join(parts).encode()


def _text_months(value: int) -> bytes:
    sign = -1 if value < 0 else 1
    years, months = divmod(abs(value), 12)
    parts = [f"{sign * years} year{'' if years == 1 else 's'}"] if years else []
    parts += [f"{sign * months} mon{'' if months == 1 else 's'}"] if months else []
    return (" ".join(parts) or "00:00:00").encode()


def _text_array(type_: Array) -> Encoder:
    element = encoder_of(type_.element, binary=False)

    def encode(values: Sequence[Any]) -> bytes:
        parts = ["NULL" if value is None else _quoted(element(value).decode()) for value in values]
        return f"{{{','.join(parts)}}}".encode()

    return encode


def _quoted(text: str) -> str:
    if text and text.upper() != "NULL" and not _QUOTED.intersection(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# -- JSON


def json_text(value: Any) -> str:
    """A value as JSON: decimals as exact numbers; moments, bytes (base64) and keys of maps as text.

    >>> json_text({"a": [1, None, decimal.Decimal("0.10")], "b": b"\\0"})
    '{"a": [1, null, 0.10], "b": "AA=="}'
    """
    match value:
        case Variant():
            return json_text(value.value)
        case float():
            return repr(float(value)) if math.isfinite(value) else f'"{value}"'
        case None | bool() | int() | str():
            return json.dumps(value, ensure_ascii=False)
        case decimal.Decimal():
            return format(value, "f")
        case bytes():
            return json.dumps(base64.b64encode(value).decode())
        case Mapping():
            return "{" + ", ".join(f"{_json_key(key)}: {json_text(part)}" for key, part in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(json_text, value)) + "]"
        case dt.datetime() | dt.date() | dt.time():
            return json.dumps(value.isoformat())
        case dt.timedelta():
            return json.dumps(_text_interval(value).decode())
        case _:
            return json.dumps(text_of(value), ensure_ascii=False)


def _json_key(key: Any) -> str:
    said = json_text(key)
    return said if said.startswith('"') else json.dumps(said, ensure_ascii=False)


def text_json(value: Any) -> bytes:
    return json_text(value).encode(errors="replace")


_TEXT: Final[dict[int, Encoder]] = {
    16: lambda value: b"t" if value else b"f",
    17: lambda value: b"\\x" + value.hex().encode(),
    20: lambda value: b"%d" % value,
    21: lambda value: b"%d" % value,
    23: lambda value: b"%d" % value,
    26: lambda value: b"%d" % value,
    25: lambda value: text_of(value).encode(errors="replace"),
    114: text_json,
    700: _text_float,
    701: _text_float,
    1082: lambda value: value.isoformat().encode(),
    1083: lambda value: value.isoformat().encode(),
    1114: _text_plain_moment,
    1184: _text_moment,
    1186: _text_interval,
    1700: lambda value: format(value, "f").encode(),
    3802: text_json,
}


# -- binary


def _binary_numeric(value: decimal.Decimal) -> bytes:
    """Groups of four digits, with the weight of the first and the number of digits after the point."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return struct.pack("!hhHh", 0, 0, 0xC000, 0)
    number = "".join(map(str, digits)) + "0" * max(exponent, 0)
    scale = max(-exponent, 0)
    whole, fraction = (number[:-scale], number[-scale:].rjust(scale, "0")) if scale else (number, "")
    whole = whole.lstrip("0")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    both, weight = whole + fraction, len(whole) // 4 - 1
    groups = [int(both[place : place + 4]) for place in range(0, len(both), 4)]
    while groups and groups[0] == 0:
        groups, weight = groups[1:], weight - 1
    while groups and groups[-1] == 0:
        groups.pop()
    if not groups:
        return struct.pack("!hhHh", 0, 0, 0, scale)
    return struct.pack(f"!hhHh{len(groups)}h", len(groups), weight, 0x4000 if sign else 0, scale, *groups)


def _binary_interval(value: dt.timedelta) -> bytes:
    days = value.days if value >= dt.timedelta(0) else -((-value).days)
    return struct.pack("!qii", (value - dt.timedelta(days)) // _MICROSECOND, days, 0)


def _binary_months(value: int) -> bytes:
    return struct.pack("!qii", 0, 0, value)


def _binary_array(type_: Array) -> Encoder:
    element, oid = encoder_of(type_.element, binary=True), oid_of(type_.element)

    def encode(values: Sequence[Any]) -> bytes:
        if not values:
            return struct.pack("!iiI", 0, 0, oid)
        parts = [struct.pack("!iiIii", 1, int(any(v is None for v in values)), oid, len(values), 1)]
        for value in values:
            raw = None if value is None else element(value)
            parts.append(struct.pack("!i", -1) if raw is None else struct.pack("!i", len(raw)) + raw)
        return b"".join(parts)

    return encode


def _micros_of_day(value: dt.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


_BINARY: Final[dict[int, Encoder]] = {
    16: lambda value: b"\1" if value else b"\0",
    17: bytes,
    20: struct.Struct("!q").pack,
    21: struct.Struct("!h").pack,
    23: struct.Struct("!i").pack,
    26: lambda value: struct.pack("!I", value & 0xFFFFFFFF),
    25: _TEXT[25],
    114: text_json,
    700: struct.Struct("!f").pack,
    701: struct.Struct("!d").pack,
    1082: lambda value: struct.pack("!i", value.toordinal() - _DAY_ZERO),
    1083: lambda value: struct.pack("!q", _micros_of_day(value)),
    1114: lambda value: struct.pack("!q", (value.replace(tzinfo=None) - _PLAIN_ZERO) // _MICROSECOND),
    1184: lambda value: struct.pack("!q", (_moment(value) - _ZERO) // _MICROSECOND),
    1186: _binary_interval,
    1700: _binary_numeric,
    3802: lambda value: b"\1" + text_json(value),
}
