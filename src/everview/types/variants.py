"""Variants: values that carry their own types, in the binary form that Parquet and Spark have for them.

A variant is two byte strings: the metadata, a dictionary of all keys inside, and the value, which refers to it. Here
one follows the other, in the one form that a value has: keys sorted, numbers of offsets as short as they can be,
integers in the fewest bytes. So two variants are the same exactly when their bytes are.

>>> held = Variant.of({"b": [1, 2.5, None], "a": "text"})
>>> held, held.value
(Variant({'a': 'text', 'b': [1, 2.5, None]}), {'a': 'text', 'b': [1, 2.5, None]})
>>> Variant.of_parts(*held.parts) == held
True
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from everview.errors import WrongType

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_ZERO: Final = dt.date(1970, 1, 1).toordinal()
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_DEPTH: Final = 200  # levels of nesting
_NULL, _TRUE, _FALSE, _INT1, _INT2, _INT4, _INT8, _DOUBLE = range(8)
_DECIMAL4, _DECIMAL8, _DECIMAL16, _DATE, _TIMESTAMP, _PLAIN_TIMESTAMP, _FLOAT, _BINARY, _STRING, _TIME = range(8, 18)
_UUID: Final = 20
_PRIMITIVE, _SHORT, _OBJECT, _ARRAY = range(4)
_INTEGERS: Final = ((_INT1, 1), (_INT2, 2), (_INT4, 4), (_INT8, 8))
_DECIMALS: Final = ((_DECIMAL4, 4, 9), (_DECIMAL8, 8, 18), (_DECIMAL16, 16, 38))
_CONSTANTS: Final = {_NULL: None, _TRUE: True, _FALSE: False}
_SIZES: Final = {
    **dict.fromkeys((_NULL, _TRUE, _FALSE), 0),
    **dict(_INTEGERS),
    **{tag: size + 1 for tag, size, _ in _DECIMALS},
    **{_DOUBLE: 8, _DATE: 4, _TIMESTAMP: 8, _PLAIN_TIMESTAMP: 8, _FLOAT: 4, _TIME: 8, _UUID: 16},
}


class SingleFloat(float):
    """A number of a variant that is a FLOAT, not a DOUBLE."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A value with its own type: ``Variant.of(None)`` is a null inside, and not NULL."""

    raw: bytes  # metadata, then value

    def __post_init__(self) -> None:
        if not isinstance(self.raw, bytes):  # pyright: ignore[reportUnnecessaryIsInstance], a mistake of callers
            raise WrongType(
                f"Variant({self.raw!r}) would be of bytes as Spark has them", hint="write Variant.of(value)"
            )

    @staticmethod
    def of(value: Any) -> Variant:
        """The variant of a Python value: None, truth values, numbers, text, bytes, moments, lists, dicts by text."""
        return Variant(_VariantWriter(value).raw())

    @staticmethod
    def of_parts(value: bytes, metadata: bytes) -> Variant:
        """The variant of the two byte strings that Spark and Parquet have."""
        return Variant.of(Variant(bytes(metadata) + bytes(value)).value)

    @property
    def value(self) -> Any:
        """The Python value: a FLOAT is a `SingleFloat`, a timestamp without zone a datetime without one."""
        keys, start = _keys(self.raw)
        try:
            return _VariantReader(self.raw, keys).value(start, 0)[0]
        except (IndexError, struct.error, ValueError, OverflowError):
            raise _malformed() from None

    @property
    def parts(self) -> tuple[bytes, bytes]:
        """The value and the metadata, as Spark and Parquet have them."""
        _, start = _keys(self.raw)
        return self.raw[start:], self.raw[:start]

    def __repr__(self) -> str:
        return f"Variant({self.value!r})"


def _malformed() -> WrongType:
    return WrongType("bytes that are no variant", hint="give Variant.of(value), or what parse_json makes")


# -- writing


class _VariantWriter:
    """The bytes of one value."""

    def __init__(self, value: Any) -> None:
        names: set[str] = set()
        _gather(value, names, 0)
        self.keys = sorted(_text(name) for name in names)
        self.numbers = {name: number for number, name in enumerate(self.keys)}
        self.of = value

    def raw(self) -> bytes:
        ends = [0]
        for key in self.keys:
            ends.append(ends[-1] + len(key))
        size = _width(max(ends[-1], len(self.keys)))
        head = 1 | 1 << 4 | (size - 1) << 6  # version 1, with sorted keys
        counts = b"".join(number.to_bytes(size, "little") for number in (len(self.keys), *ends))
        return bytes([head]) + counts + b"".join(self.keys) + self.value(self.of)

    def value(self, value: Any) -> bytes:
        if isinstance(value, Mapping):
            parts = sorted((_text(name), self.value(part)) for name, part in value.items())
            return self._object([name for name, _ in parts], [part for _, part in parts])
        if isinstance(value, (list, tuple)):
            parts = [self.value(part) for part in value]
            size, ends = _ends(parts)
            large = len(parts) > 255
            head = _ARRAY | (size - 1) << 2 | large << 4
            return bytes([head]) + len(parts).to_bytes(4 if large else 1, "little") + ends + b"".join(parts)
        return _single(value)

    def _object(self, names: list[bytes], parts: list[bytes]) -> bytes:
        size, ends = _ends(parts)
        large = len(parts) > 255
        width = _width(max([self.numbers[name] for name in names], default=0))
        head = _OBJECT | (size - 1) << 2 | (width - 1) << 4 | large << 6
        count = len(parts).to_bytes(4 if large else 1, "little")
        ids = b"".join(self.numbers[name].to_bytes(width, "little") for name in names)
        return bytes([head]) + count + ids + ends + b"".join(parts)


def _gather(value: Any, names: set[str], depth: int) -> None:
    if depth > _DEPTH:
        raise WrongType(f"a variant nested more than {_DEPTH} deep", hint="flatten it")
    if isinstance(value, Mapping):
        for name, part in value.items():
            if not isinstance(name, str):
                raise WrongType(f"{name!r} as a key of a variant", hint="keys of variants are text")
            names.add(name)
            _gather(part, names, depth + 1)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _gather(part, names, depth + 1)


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _ends(parts: list[bytes]) -> tuple[int, bytes]:
    """The number of bytes of an offset, and the offsets of all parts and of their end."""
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len(part))
    size = _width(ends[-1])
    return size, b"".join(end.to_bytes(size, "little") for end in ends)


def _text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise WrongType(f"{text!r} is not valid Unicode", hint="half of a surrogate pair is no text") from None


def _primitive(tag: int, rest: bytes = b"") -> bytes:
    return bytes([tag << 2 | _PRIMITIVE]) + rest


def _single(value: Any) -> bytes:
    if value is None:
        return _primitive(_NULL)
    for kind, write in _WRITERS.items():
        if isinstance(value, kind):
            return write(value)
    if hasattr(value, "item") and hasattr(value, "dtype"):
        return _single(value.item())
    hint = "give None, a truth value, number, text, bytes, moment, list or dict"
    raise WrongType(f"{value!r} of type {type(value).__name__} has no place in a variant", hint=hint)


def _write_text(value: str) -> bytes:
    octets = _text(value)
    if len(octets) < 64:
        return bytes([len(octets) << 2 | _SHORT]) + octets
    return _primitive(_STRING, len(octets).to_bytes(4, "little") + octets)


def _write_integer(value: int) -> bytes:
    for tag, size in _INTEGERS:
        if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
            return _primitive(tag, value.to_bytes(size, "little", signed=True))
    return _write_decimal(decimal.Decimal(value))


def _write_decimal(value: decimal.Decimal) -> bytes:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise WrongType(f"{value} is not a decimal number", hint="use a float for NaN and infinity")
    scale = max(-exponent, 0)
    unscaled = int(value.scaleb(scale, decimal.Context(prec=80)))
    needed = max(len(digits) + max(exponent, 0), scale)
    for tag, size, most in _DECIMALS:
        if needed <= most:
            return _primitive(tag, bytes([scale]) + unscaled.to_bytes(size, "little", signed=True))
    raise WrongType(f"{value} has more than 38 digits", hint="use a float, or text")


def _write_moment(value: dt.datetime) -> bytes:
    tag = _TIMESTAMP if value.tzinfo else _PLAIN_TIMESTAMP
    micros = ((value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - _EPOCH) // _MICROSECOND
    return _primitive(tag, micros.to_bytes(8, "little", signed=True))


def _write_time(value: dt.time) -> bytes:
    micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return _primitive(_TIME, micros.to_bytes(8, "little"))


# A bool is an int and a datetime is a date, to Python: the narrower comes first.
_WRITERS: Final[dict[Any, Callable[[Any], bytes]]] = {
    bool: lambda v: _primitive(_TRUE if v else _FALSE),
    str: _write_text,
    int: _write_integer,
    SingleFloat: lambda v: _primitive(_FLOAT, struct.pack("<f", v)),
    float: lambda v: _primitive(_DOUBLE, struct.pack("<d", v)),
    decimal.Decimal: _write_decimal,
    dt.datetime: _write_moment,
    dt.date: lambda v: _primitive(_DATE, (v.toordinal() - _DAY_ZERO).to_bytes(4, "little", signed=True)),
    dt.time: _write_time,
    (bytes, bytearray, memoryview): lambda v: _primitive(_BINARY, len(bytes(v)).to_bytes(4, "little") + bytes(v)),
    uuid.UUID: lambda v: _primitive(_UUID, v.bytes),
    Variant: lambda v: _single(v.value),
}


# -- reading


def _number(raw: bytes, start: int, size: int, signed: bool = False) -> int:
    if start + size > len(raw):
        raise _malformed()
    return int.from_bytes(raw[start : start + size], "little", signed=signed)


def _keys(raw: bytes) -> tuple[list[str], int]:
    """The keys of the metadata, and where the value begins."""
    if not raw or raw[0] & 15 != 1:
        raise _malformed()
    size = (raw[0] >> 6) + 1
    count = _number(raw, 1, size)
    texts = 1 + size * (count + 2)
    ends = [texts + _number(raw, 1 + size * (1 + place), size) for place in range(count + 1)]
    if ends[-1] > len(raw):
        raise _malformed()
    try:
        return [raw[a:b].decode() for a, b in pairwise(ends)], ends[-1]
    except UnicodeDecodeError:
        raise _malformed() from None


@dataclass(frozen=True, slots=True)
class _VariantReader:
    """The values in some bytes, whose objects name keys by their numbers."""

    raw: bytes
    keys: list[str]

    def value(self, start: int, depth: int) -> tuple[Any, int]:
        """The value that begins somewhere, and where it ends."""
        if depth > _DEPTH:
            raise _malformed()
        head = self.raw[start]
        kind, rest = head & 3, head >> 2
        if kind == _SHORT:
            return self._text(start + 1, rest)
        if kind == _OBJECT:
            return self._object(start + 1, rest, depth)
        if kind == _ARRAY:
            return self._array(start + 1, rest, depth)
        return self._primitive(start + 1, rest)

    def _text(self, start: int, size: int) -> tuple[str, int]:
        return self._octets(start, size).decode(), start + size

    def _octets(self, start: int, size: int) -> bytes:
        if start + size > len(self.raw):
            raise _malformed()
        return self.raw[start : start + size]

    def _array(self, start: int, head: int, depth: int) -> tuple[list[Any], int]:
        size, large = (head & 3) + 1, 4 if head >> 2 & 1 else 1
        count = _number(self.raw, start, large)
        ends = start + large
        first = ends + size * (count + 1)
        places = [first + _number(self.raw, ends + size * place, size) for place in range(count + 1)]
        return [self.value(place, depth + 1)[0] for place in places[:-1]], places[-1]

    def _object(self, start: int, head: int, depth: int) -> tuple[dict[str, Any], int]:
        size, width, large = (head & 3) + 1, (head >> 2 & 3) + 1, 4 if head >> 4 & 1 else 1
        count = _number(self.raw, start, large)
        ids = start + large
        ends = ids + width * count
        first = ends + size * (count + 1)
        names = [self.keys[_number(self.raw, ids + width * place, width)] for place in range(count)]
        places = [first + _number(self.raw, ends + size * place, size) for place in range(count + 1)]
        parts = {name: self.value(place, depth + 1)[0] for name, place in zip(names, places, strict=False)}
        return parts, places[-1]

    def _primitive(self, start: int, tag: int) -> tuple[Any, int]:
        if tag in (_BINARY, _STRING):
            octets = self._octets(start + 4, _number(self.raw, start, 4))
            return octets if tag == _BINARY else octets.decode(), start + 4 + len(octets)
        if tag not in _SIZES:
            raise _malformed()
        octets = self._octets(start, _SIZES[tag])
        return _read(tag, octets), start + len(octets)


def _read(tag: int, octets: bytes) -> Any:
    """A value of a fixed number of bytes."""
    if tag in _CONSTANTS:
        return _CONSTANTS[tag]
    if tag in (_DOUBLE, _FLOAT):
        return struct.unpack("<d", octets)[0] if tag == _DOUBLE else SingleFloat(struct.unpack("<f", octets)[0])
    if tag in (_DECIMAL4, _DECIMAL8, _DECIMAL16):
        unscaled = int.from_bytes(octets[1:], "little", signed=True)
        return decimal.Decimal(unscaled).scaleb(-octets[0], decimal.Context(prec=80))
    if tag == _UUID:
        return uuid.UUID(bytes=octets)
    number = int.from_bytes(octets, "little", signed=True)
    if tag == _DATE:
        return dt.date.fromordinal(number + _DAY_ZERO)
    if tag in (_TIMESTAMP, _PLAIN_TIMESTAMP):
        moment = _EPOCH + number * _MICROSECOND
        return moment if tag == _TIMESTAMP else moment.replace(tzinfo=None)
    return (_EPOCH + number * _MICROSECOND).time() if tag == _TIME else number
