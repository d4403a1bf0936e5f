"""What it means for one Python value to fit a type: the obvious lossless conversions, and nothing else.

`coerce` is the definition; whole columns go through Arrow where that means the same, and come here to find
the value that does not fit. Text is read for DECIMAL, INTERVAL, and dates and times, which have no literal in JSON;
numbers may change type when the value stays the same; times without zone are UTC.

>>> from everview.types import DATE, Decimal
>>> coerce(Decimal(12, 2), "9.50"), coerce(DATE, "2026-01-01")
(Decimal('9.50'), datetime.date(2026, 1, 1))
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from everview.codes.atoms import pack
from everview.errors import EverviewError, NullNotAllowed, shown
from everview.types import Array, Atom, Decimal, Id, MapType, ScalarType, Struct, Symbol, Type, Variant, atom_of_class

INTEGER_BITS: Final = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
_LONGEST: Final = dt.timedelta(days=106_751_991)  # 64 bits of microseconds
_DAY: Final = dt.timedelta(days=1)
WIDE: Final = decimal.Context(prec=80)
ROUND_TO_MICROS: Final = 'round it first, as in .astype("datetime64[us]") of NumPy and pandas'


class Unfit(Exception):
    """A value that does not fit, to be reported with its column and row."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def coerce(type_: Type, value: Any) -> Any:
    """The value as Arrow takes it for this type; raises `Unfit`."""
    kind = type(value)
    if value is None or kind.__name__ == "NaTType":  # what pandas has for a moment that is missing
        return None
    if hasattr(kind, "dtype") and hasattr(kind, "ndim"):
        value = _of_numpy(value)
        if value is None:
            return None
    match type_:
        case ScalarType(name):
            return _SCALARS[name](name, value)
        case Decimal():
            return _decimal(type_, value)
        case Array(element):
            return _array(element, value)
        case Struct():
            return _struct(type_, value)
        case MapType():
            return _map(type_, value)
        case Atom():
            return _atom(type_, value)
        case _:
            raise AssertionError(type_)


def _of_numpy(value: Any) -> Any:
    """The Python value of a NumPy scalar, the list of an array; NaT is None."""
    if value.dtype.kind not in "Mm":
        return value.item() if getattr(value, "ndim", 0) == 0 else value.tolist()
    micros = value.astype("datetime64[us]" if value.dtype.kind == "M" else "timedelta64[us]")
    if (micros.astype(value.dtype).view("i8") != value.view("i8")).any():
        raise Unfit(f"{value} is finer than a microsecond", ROUND_TO_MICROS)
    return micros.tolist()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    if isinstance(value, int):
        return True
    return value.is_finite() if isinstance(value, decimal.Decimal) else math.isfinite(value)


def _said(value: Any) -> str:
    """A number in digits, shortened to fit an error's line."""
    try:
        said = str(value)
    except ValueError:  # Python writes no more than some thousand digits
        return "a number of thousands of digits"
    return said if len(said) <= 80 else said[:77] + "..."


def _wrong(value: Any, name: str, hint: str) -> Unfit:
    return Unfit(f"{shown(value)} is no {name}", hint)


def _boolean(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(value, name, "give True or False")


def _integer(name: str, value: Any) -> int:
    if not _is_number(value):
        raise _wrong(value, name, "give an int")
    limit = 1 << (INTEGER_BITS[name] - 1)
    inside = _is_finite(value) and -limit <= value < limit  # before it is written out: 1e99999999 is gigabytes
    if not _is_finite(value) or (inside and value != int(value)):
        raise Unfit(f"{_said(value)} is not a whole number", "round it first, or declare the column DOUBLE or DECIMAL")
    if not inside:
        wider = "declare the column BIGINT or DECIMAL(38,0)" if name != "BIGINT" else "use DECIMAL(38,0)"
        raise Unfit(f"{_said(value)} is outside the range of {name}", f"{name} holds {-limit} to {limit - 1}; {wider}")
    return int(value)


def _double(name: str, value: Any) -> float:
    if not _is_number(value):
        raise _wrong(value, name, "give a float")
    try:
        number = float(value)
    except (OverflowError, ValueError):  # too large, or a signalling NaN
        raise Unfit(f"{_said(value)} is outside the range of {name}", "declare the column DECIMAL") from None
    if isinstance(value, int) and int(number) != value:
        raise Unfit(f"{value} has no exact {name}", "declare the column BIGINT or DECIMAL, or round it first")
    if isinstance(value, decimal.Decimal) and value.is_finite() and decimal.Decimal(repr(number)) != value:
        raise Unfit(f"{value} has more digits than a {name}", "declare the column DECIMAL, or round it first")
    if name == "FLOAT" and math.isfinite(number):
        return _single(number)
    return number


def _single(value: float) -> float:
    """Round a number to FLOAT; one that would become infinite does not fit."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise Unfit(f"{value} is outside the range of FLOAT", "declare the column DOUBLE") from None


def _decimal(type_: Decimal, value: Any) -> decimal.Decimal:
    hint = 'give a number, or text such as "12.34"'
    if not _is_number(value) and not isinstance(value, str):
        raise _wrong(value, type_.sql, hint)
    if isinstance(value, int) and value.bit_length() > 128:  # its digits would take very long to find
        raise Unfit(f"{_said(value)} is outside the range of {type_}", f"{type_} has at most 38 digits")
    try:
        # A float means the shortest decimal that reads back as it.
        number = decimal.Decimal(repr(value) if isinstance(value, float) else value)
    except decimal.InvalidOperation:
        raise _wrong(value, type_.sql, hint) from None
    if not number.is_finite():
        raise _wrong(value, type_.sql, "use DOUBLE for NaN and infinity")
    if number and number.adjusted() >= type_.precision - type_.scale:
        whole = type_.precision - type_.scale
        raise Unfit(f"{_said(value)} is outside the range of {type_}", f"{type_} has {whole} digits before the point")
    scaled = number.quantize(decimal.Decimal(1).scaleb(-type_.scale), context=WIDE)
    if scaled != number:
        finer = "round it first, or declare a column with a larger scale"
        raise Unfit(f"{_said(value)} has more than {type_.scale} digits after the point", finer)
    return scaled


def _date(name: str, value: Any) -> dt.date:
    if isinstance(value, str):
        value = _read_time(name, value)
    if isinstance(value, dt.datetime):
        _require_micros(value)
        if value.time() != dt.time():
            raise Unfit(f"{value.isoformat(' ')} has a time of day", "declare the column TIMESTAMP, or cut it off")
        return value.date()
    if isinstance(value, dt.date):
        return value
    raise _wrong(value, name, 'give a datetime.date, or text such as "2026-01-31"')


def _timestamp(name: str, value: Any) -> dt.datetime:
    if isinstance(value, str):
        value = _read_time(name, value)
    if isinstance(value, dt.datetime):
        _require_micros(value)
        return value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    hint = 'give a datetime.datetime, or text such as "2026-01-31 12:00:00"'
    if _is_number(value):
        hint += "; for a number, say which unit by making it a datetime"
    raise _wrong(value, name, hint)


def _local_timestamp(name: str, value: Any) -> dt.datetime:
    if isinstance(value, str):
        value = _read_time(name, value)
    if isinstance(value, dt.datetime):
        _require_micros(value)
        if value.tzinfo:
            raise Unfit(f"{value.isoformat(' ')} has a zone", "declare the column TIMESTAMP, or take its zone off")
        return value
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    raise _wrong(value, name, 'give a datetime.datetime without a zone, or text such as "2026-01-31 12:00:00"')


def _time(name: str, value: Any) -> dt.time:
    hint = 'give a datetime.time without a zone, or text such as "12:30:00"'
    if isinstance(value, str):
        if re.search(r"\.\d{6}0*[1-9]", value):
            raise Unfit(f"{value!r} is finer than a microsecond", "cut it off after six digits")
        try:
            value = dt.time.fromisoformat(value.strip())
        except ValueError:
            raise _wrong(value, name, hint) from None
    if isinstance(value, dt.time) and value.tzinfo is None:
        return value
    raise _wrong(value, name, hint)


_SPANS: Final = {
    "INTERVAL DAY": re.compile(r"([+-]?)(\d+)()()()()", re.ASCII),
    "INTERVAL DAY TO SECOND": re.compile(r"([+-]?)(\d+) (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,6}))?", re.ASCII),
    "INTERVAL YEAR TO MONTH": re.compile(r"([+-]?)(\d+)-(\d{1,2})", re.ASCII),
}
_WRITTEN: Final = {"INTERVAL DAY": "3", "INTERVAL DAY TO SECOND": "1 02:03:04.5", "INTERVAL YEAR TO MONTH": "1-6"}


def _read_span(name: str, text: str) -> list[int]:
    """The sign of an interval, and its parts, from text as it stands in an SQL literal, or the whole literal."""
    units = name.removeprefix("INTERVAL ")
    literal = re.fullmatch(rf"INTERVAL\s+'(.*)'\s+{units}", text.strip(), re.IGNORECASE)
    match = _SPANS[name].fullmatch(literal[1] if literal else text.strip())
    if match is None:
        raise _wrong(text, name, f'write it as in "{_WRITTEN[name]}"')
    sign, *parts = match.groups()
    if len(parts) > 2:
        parts[-1] = (parts[-1] or "").ljust(6, "0")
    return [-1 if sign == "-" else 1, *(int(part or 0) for part in parts)]


def _span(name: str, value: Any) -> dt.timedelta:
    if isinstance(value, str):
        sign, days, hours, minutes, seconds, micros = _read_span(name, value)
        try:
            value = sign * dt.timedelta(days, seconds, micros, minutes=minutes, hours=hours)
        except OverflowError:
            raise Unfit(f"{value!r} is outside the range of {name}", f"an interval has {_LONGEST.days} days") from None
    if not isinstance(value, dt.timedelta):
        raise _wrong(value, name, "give a datetime.timedelta")
    _require_micros(value)
    if abs(value) > _LONGEST:
        raise Unfit(f"{value} is outside the range of {name}", f"an interval has {_LONGEST.days} days at most")
    if name == "INTERVAL DAY" and value % _DAY:
        raise Unfit(f"{value} is no whole number of days", "declare the column INTERVAL DAY TO SECOND")
    return value


def _months(name: str, value: Any) -> int:
    if isinstance(value, str):
        sign, years, months = _read_span(name, value)
        value = sign * (12 * years + months)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(value, name, "give a number of months as an int")
    if not -(1 << 31) <= value < 1 << 31:
        raise Unfit(f"{_said(value)} months are outside the range of {name}", "a number of months has 32 bits")
    return value


def _require_micros(value: dt.datetime | dt.timedelta) -> None:
    """pandas' Timestamp is a datetime, and its Timedelta a timedelta, that may have nanoseconds besides."""
    if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):
        raise Unfit(f"{value} is finer than a microsecond", ROUND_TO_MICROS)


def _read_time(name: str, text: str) -> dt.datetime:
    example = "2026-01-31" if name == "DATE" else "2026-01-31 12:00:00+01:00"
    if re.search(r"\.\d{6}0*[1-9]", text):
        raise Unfit(f"{text!r} is finer than a microsecond", "cut it off after six digits")
    try:
        return dt.datetime.fromisoformat(text.strip())
    except ValueError:
        raise _wrong(text, name, f'write it as in "{example}"') from None


def _text(name: str, value: Any) -> str:
    if name == "SYMBOL" and isinstance(value, Symbol):
        value = value.name
    if not isinstance(value, str):
        hint = "decode it first" if isinstance(value, bytes) else "give a str"
        raise _wrong(value, name, f"{hint}, or a Symbol" if name == "SYMBOL" else hint)
    try:
        value.encode()
    except UnicodeEncodeError:
        hint = "half of a surrogate pair is no text: repair it, or declare the column BINARY"
        raise Unfit(f"{value!r} is not valid Unicode", hint) from None
    return value


def _binary(name: str, value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise _wrong(value, name, "encode it first" if isinstance(value, str) else "give bytes")


def _id(name: str, value: Any) -> bytes:
    if isinstance(value, Id):
        return value.raw
    return _text(name, value).encode() if isinstance(value, str) else _id_bytes(name, value)


def _id_bytes(name: str, value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise _wrong(value, name, "give an Id, text or bytes")


def _any(name: str, value: Any) -> bytes:
    try:
        return pack(value)
    except EverviewError as error:
        raise Unfit(error.message, error.hint or "") from None


def _variant(name: str, value: Any) -> bytes:
    try:
        return value.raw if isinstance(value, Variant) else Variant.of(value).raw
    except EverviewError as error:
        raise Unfit(error.message, error.hint or "") from None


_SCALARS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "BOOLEAN": _boolean,
    **dict.fromkeys(INTEGER_BITS, _integer),
    "FLOAT": _double,
    "DOUBLE": _double,
    "DATE": _date,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_NTZ": _local_timestamp,
    "TIME": _time,
    "INTERVAL DAY": _span,
    "INTERVAL DAY TO SECOND": _span,
    "INTERVAL YEAR TO MONTH": _months,
    "STRING": _text,
    "SYMBOL": _text,
    "BINARY": _binary,
    "ID": _id,
    "ANY": _any,
    "VARIANT": _variant,
}


def _array(element: Type, value: Any) -> list[Any]:
    if isinstance(value, str):
        value = _listed(value)
    if isinstance(value, (list, tuple)):
        return [coerce(element, v) for v in value]
    raise _wrong(value, f"ARRAY<{element}>", "give a list, or one as JSON")


def _listed(text: str) -> Any:
    """The list that JSON text spells; other values as they are."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _struct(type_: Struct, value: Any) -> dict[str, Any]:
    parts = parts_of(type_, value)
    for f, part in zip(type_.fields, parts, strict=True):
        if part is None and not f.nullable:
            raise NullInside(f.name)
    return {f.name: coerce(f.type, part) for f, part in zip(type_.fields, parts, strict=True)}


class NullInside(Exception):
    """NULL in a field of a struct that is declared NOT NULL."""


def parts_of(type_: Struct, value: Any) -> list[Any]:
    """The fields of a struct that is given as a dict, or as a tuple in order."""
    names = [f.name for f in type_.fields]
    if isinstance(value, Mapping):
        unknown = [key for key in value if key not in names]
        if unknown:
            raise Unfit(f"{type_} has no field {unknown[0]!r}", f"its fields are {', '.join(names)}")
        return [value.get(name) for name in names]
    if isinstance(value, (list, tuple)) and len(value) == len(names):
        return list(value)
    raise _wrong(value, type_.sql, f"give a dict with {', '.join(names)}")


def _map(type_: MapType, value: Any) -> list[tuple[Any, Any]]:
    """The entries of a map that is given as a dict, or as a list of pairs."""
    if isinstance(value, str):
        value = _listed(value)
    pairs: Any = list(value.items()) if isinstance(value, Mapping) else value
    if isinstance(pairs, list) and pairs and all(map(_is_entry, pairs)):
        listed: list[Any] = pairs
        pairs = [(entry["key"], entry["value"]) for entry in listed]  # as Polars has maps
    if not isinstance(pairs, (list, tuple)) or not all(isinstance(p, (list, tuple)) and len(p) == 2 for p in pairs):
        raise _wrong(value, type_.sql, "give a dict, or a list of pairs")
    entries = [(coerce(type_.key, k), coerce(type_.value, v)) for k, v in pairs]
    keys = [k for k, _ in entries]
    if None in keys:
        raise Unfit("a map with the key NULL", "give every entry a key")
    twice = _twice(keys)
    if twice is not None:
        raise Unfit(f"a map with the key {shown(twice)} twice", "give every key once")
    return entries


def _is_entry(value: Any) -> bool:
    return isinstance(value, Mapping) and {*value} == {"key", "value"}


def _twice(keys: list[Any]) -> Any:
    """A key that comes twice; None if there is none."""
    seen: set[bytes] = set()
    for key in keys:
        packed = pack(key)
        if packed in seen:
            return key
        seen.add(packed)
    return None


def _atom(type_: Atom, value: Any) -> bytes:
    host = type_.host
    if isinstance(value, host.python) or atom_of_class(type(value)) is host:
        return host.to_bytes(value)
    raise _wrong(value, type_.sql, f"give a {host.python.__qualname__}")


def null_not_allowed(column: str, row: int) -> NullNotAllowed:
    """The error for NULL in a NOT NULL column."""
    hint = "give it a value, or declare the column without NOT NULL"
    return NullNotAllowed(f'column "{column}" is NOT NULL, and rows[{row}] has NULL there', hint=hint)
