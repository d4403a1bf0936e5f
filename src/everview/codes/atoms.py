"""Single Python values to canonical bytes and back: what an ANY column holds.

The bytes are those of `everview.kernels.canonical`: equal when type and value are equal, and ordered as
`everview.codes.order` says. ``True``, ``1`` and ``1.0`` are three values; lists and tuples are one.

>>> unpack(pack(["a", 1, 1.0, None]))
('a', 1, 1.0, None)
>>> pack(1) == pack(1.0), pack(True) == pack(1), pack([1]) == pack((1,))
(False, False, True)
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

import pyarrow as pa

from everview.codes.buffers import Column
from everview.errors import WrongType
from everview.types import KINDS, Id, Symbol, Variant, atom_of_class, atom_of_kind

_WORD: Final = struct.Struct(">Q")
_SIGN: Final = 1 << 63
_NAN: Final = 0x7FF8 << 48
_BIAS: Final = 1 << 15
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_ZERO: Final = dt.date(1970, 1, 1).toordinal()
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_MIDNIGHT: Final = dt.datetime(1970, 1, 1)
_DEPTH: Final = 100
_TAGS: Final = {name: bytes([tag]) for name, tag in KINDS.items()}
_TEXT: Final[dict[int, Callable[[bytes], Any]]] = {
    KINDS["STRING"]: bytes.decode,
    KINDS["BINARY"]: bytes,
    KINDS["SYMBOL"]: lambda raw: Symbol(raw.decode()),
    KINDS["ID"]: Id,
    KINDS["VARIANT"]: Variant,
}


def pack(value: Any) -> bytes:
    """The canonical bytes of a value."""
    return _pack(value, 0)


def unpack(data: bytes) -> Any:
    """The value of canonical bytes: the inverse of `pack`, but that a list comes back as a tuple."""
    value, end = _unpack(data, 0)
    assert end == len(data), "more than one value"
    return value


def pack_all(values: Iterable[Any]) -> Column:
    """An ANY column as Arrow has it: canonical bytes, NULL for None."""
    return pa.array([None if v is None else pack(v) for v in values], pa.binary())


def any_part(packed: bytes) -> tuple[int, Any]:
    """An encoded value as an ANY column has it: its kind, and its word or the bytes that are interned."""
    tag = packed[0]
    if tag < KINDS["DECIMAL"]:
        return tag, _WORD.unpack_from(packed, 1)[0] - _SIGN
    if tag in _TEXT:
        return tag, _unescape(packed, 1)[0]
    if tag == KINDS["ATOM"]:
        return _WORD.unpack_from(packed, 1)[0] - _SIGN, _unescape(packed, 9)[0]
    return tag, packed


def any_value(kind: int, part: Any) -> Any:
    """The value of a kind and its word or bytes: the inverse of `any_part`."""
    if kind < KINDS["DECIMAL"]:
        return unpack_word(kind, part)
    if kind in _TEXT:
        return _TEXT[kind](part)
    return atom_of_kind(kind).from_bytes(part) if kind > KINDS["ATOM"] else unpack(part)


def microseconds(moment: dt.datetime) -> int:
    """The microseconds since 1970 in UTC, which is also the zone of a time without one."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)) - _EPOCH) // _MICROSECOND


def since_midnight(value: dt.time) -> int:
    """The microseconds from the beginning of the day to a time of day."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def time_of_day(micros: int) -> dt.time:
    """The time of day so many microseconds after midnight: the inverse of `since_midnight`."""
    return (_MIDNIGHT + micros * _MICROSECOND).time()


def _pack(value: Any, depth: int) -> bytes:
    pack_as = _PACKERS.get(type(value))
    if pack_as is not None:
        return pack_as(value)
    if value is None:
        return _TAGS["NULL"]
    if depth > _DEPTH:
        raise WrongType(f"a value nested more than {_DEPTH} deep", hint="flatten it")
    if isinstance(value, (list, tuple)):
        return _TAGS["ARRAY"] + b"".join(b"\1" + _pack(v, depth + 1) for v in value) + b"\0"
    if isinstance(value, dict):
        pairs = sorted((_pack(k, depth + 1), _pack(v, depth + 1)) for k, v in value.items())
        return _TAGS["MAP"] + b"".join(b"\1" + k + v for k, v in pairs) + b"\0"
    atom = atom_of_class(type(value))
    if atom is not None:
        return _TAGS["ATOM"] + _word(atom.type.kind) + _escape(atom.to_bytes(value))
    # Subclasses of the types below, and the scalars of NumPy.
    for python, packer in _PACKERS.items():
        if isinstance(value, python):
            return packer(value)
    if hasattr(value, "item") and hasattr(value, "dtype"):
        return _pack(value.item(), depth + 1)
    hint = "give a bool, number, text, bytes, date, time, Symbol, Id, list, dict, or use register_atom"
    raise WrongType(f"{value!r} of type {type(value).__name__} is no value of ANY", hint=hint)


def _word(code: int) -> bytes:
    return _WORD.pack(code + _SIGN)


def _escape(raw: bytes) -> bytes:
    return raw.replace(b"\0", b"\0\xff") + b"\0\0"


def _pack_int(value: int) -> bytes:
    if not -_SIGN <= value < _SIGN:
        hint = "integers in ANY have 64 bits: use a DECIMAL, or text"
        raise WrongType(f"{value} is outside the range of 64-bit integers", hint=hint)
    return _TAGS["INTEGER"] + _word(value)


def _pack_float(value: float) -> bytes:
    bits = _NAN if math.isnan(value) else _WORD.unpack(struct.pack(">d", value + 0.0))[0]
    return _TAGS["FLOAT"] + (_WORD.pack(bits ^ (2 * _SIGN - 1)) if bits & _SIGN else _WORD.pack(bits | _SIGN))


def _pack_str(value: str) -> bytes:
    try:
        return _TAGS["STRING"] + _escape(value.encode())
    except UnicodeEncodeError:
        hint = "half of a surrogate pair is no text: repair it, or give bytes"
        raise WrongType(f"{value!r} is not valid Unicode", hint=hint) from None


def _pack_span(value: dt.timedelta) -> bytes:
    micros = value // _MICROSECOND
    if not -_SIGN < micros < _SIGN:
        raise WrongType(f"{value} is too long", hint="an interval has less than 2**63 microseconds")
    return _TAGS["DURATION"] + _word(micros)


def _pack_decimal(value: decimal.Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise WrongType(f"{value} is not a decimal number", hint="use a float for NaN and infinity")
    number = "".join(map(str, digits)).lstrip("0")
    if not number:
        return _TAGS["DECIMAL"] + b"\2"
    exponent += len(number) + _BIAS
    if not 0 <= exponent < 2 * _BIAS:
        raise WrongType(f"{value} is too large or too small", hint=f"exponents go to {_BIAS - 1}")
    body = exponent.to_bytes(2) + bytes(int(d) + 1 for d in number.rstrip("0")) + b"\0"
    return _TAGS["DECIMAL"] + (b"\1" + bytes(255 - b for b in body) if sign else b"\3" + body)


_PACKERS: Final[dict[type, Callable[[Any], bytes]]] = {
    bool: lambda v: _TAGS["BOOLEAN"] + _word(int(v)),
    int: _pack_int,
    float: _pack_float,
    str: _pack_str,
    bytes: lambda v: _TAGS["BINARY"] + _escape(v),
    bytearray: lambda v: _TAGS["BINARY"] + _escape(bytes(v)),
    memoryview: lambda v: _TAGS["BINARY"] + _escape(bytes(v)),
    Symbol: lambda v: _TAGS["SYMBOL"] + _escape(v.name.encode()),
    Id: lambda v: _TAGS["ID"] + _escape(v.raw),
    Variant: lambda v: _TAGS["VARIANT"] + _escape(v.raw),
    decimal.Decimal: _pack_decimal,
    dt.datetime: lambda v: _TAGS["TIMESTAMP"] + _word(microseconds(v)),
    dt.date: lambda v: _TAGS["DATE"] + _word(v.toordinal() - _DAY_ZERO),
    dt.time: lambda v: _TAGS["TIME"] + _word(since_midnight(v)),
    dt.timedelta: _pack_span,
}


def _unpack(data: bytes, start: int) -> tuple[Any, int]:
    tag = data[start]
    if tag == KINDS["NULL"]:
        return None, start + 1
    if tag < KINDS["DECIMAL"]:
        return unpack_word(tag, _WORD.unpack_from(data, start + 1)[0] - _SIGN), start + 9
    if tag == KINDS["DECIMAL"]:
        return _unpack_decimal(data, start + 1)
    if tag in _TEXT:
        raw, start = _unescape(data, start + 1)
        return _TEXT[tag](raw), start
    if tag == KINDS["ATOM"]:
        atom = atom_of_kind(_WORD.unpack_from(data, start + 1)[0] - _SIGN)
        raw, start = _unescape(data, start + 9)
        return atom.from_bytes(raw), start
    if tag == KINDS["STRUCT"]:
        return _unpack_parts(data, start + 2, data[start + 1])
    parts, start = _unpack_marked(data, start + 1, 2 if tag == KINDS["MAP"] else 1)
    return (dict(parts) if tag == KINDS["MAP"] else tuple(p for (p,) in parts)), start


def _unpack_parts(data: bytes, start: int, count: int) -> tuple[tuple[Any, ...], int]:
    parts: list[Any] = []
    for _ in range(count):
        part, start = _unpack(data, start)
        parts.append(part)
    return tuple(parts), start


def _unpack_marked(data: bytes, start: int, each: int) -> tuple[list[Any], int]:
    parts: list[Any] = []
    while data[start] == 1:
        part, start = _unpack_parts(data, start + 1, each)
        parts.append(part)
    return parts, start + 1


def unpack_word(tag: int, code: int) -> Any:
    """The value of a word of a kind that is not interned."""
    if tag == KINDS["BOOLEAN"]:
        return bool(code)
    if tag == KINDS["FLOAT"]:
        bits = code ^ (_SIGN - 1) if code < 0 else code
        return struct.unpack(">d", struct.pack(">q", bits))[0]
    if tag == KINDS["DATE"]:
        return dt.date.fromordinal(code + _DAY_ZERO)
    if tag == KINDS["TIME"]:
        return time_of_day(code)
    if tag == KINDS["DURATION"]:
        return code * _MICROSECOND
    return _EPOCH + code * _MICROSECOND if tag == KINDS["TIMESTAMP"] else code


def _unpack_decimal(data: bytes, start: int) -> tuple[decimal.Decimal, int]:
    sign = data[start]
    if sign == 2:
        return decimal.Decimal(0), start + 1
    turn = 255 if sign == 1 else 0
    end = data.index(turn, start + 3)
    exponent = ((data[start + 1] ^ turn) << 8 | data[start + 2] ^ turn) - _BIAS
    digits = tuple((b ^ turn) - 1 for b in data[start + 3 : end])
    return decimal.Decimal((int(sign == 1), digits, exponent - len(digits))), end + 1


def _unescape(data: bytes, start: int) -> tuple[bytes, int]:
    end = data.index(0, start)
    while data[end + 1] == 255:
        end = data.index(0, end + 2)
    return data[start:end].replace(b"\0\xff", b"\0"), end + 2
