"""The meaning of what only other dialects have: letters one by one, texts of floats, bytes by escapes, divisors."""

from __future__ import annotations

import decimal
import math
import struct
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue


def _upper(text: str, dialect: str) -> str:
    made = ""
    for letter in text:
        if letter == "ß":
            made += "\u1e9e" if dialect == "duckdb" else letter
            continue
        options = [o for o in (letter.upper(), letter.title(), letter) if len(o) == 1]
        made += options[0]
    return made


def _lower(text: str, dialect: str) -> str:
    return "".join(
        unicodedata.normalize("NFD", letter.lower())[0] if letter == "İ" else letter.lower() for letter in text
    )


def _capitalized(text: str) -> str:
    made, inside = "", False
    for letter in text:
        made += letter.lower() if inside else _upper(letter, "postgres")
        inside = letter.isalnum()
    return made


def _shortest(value: float, single: bool) -> tuple[str, int]:
    """The digits of the shortest number that means the value, and the power of ten of the first of them."""
    text = f"{value:.17e}"
    for count in range(17):
        text = f"{value:.{count}e}"
        if (struct.unpack("f", struct.pack("f", float(text)))[0] if single else float(text)) == value:
            break
    digits, _, power = text.partition("e")
    return digits.replace(".", ""), int(power)


def _float_text(type_: Any, types: list[Any], values: list[Any]) -> str:
    value, dialect = values
    single = types[0].name == "FLOAT"
    if math.isnan(value) or math.isinf(value):
        names = ("nan", "inf") if dialect == "duckdb" else ("NaN", "Infinity")
        return names[0] if math.isnan(value) else ("-" if value < 0 else "") + names[1]
    sign = "-" if math.copysign(1, value) < 0 else ""
    digits, power = _shortest(abs(value), single)
    digits = digits.rstrip("0") or "0"
    highest = 16 if dialect == "duckdb" else 6 if single else 15
    if not -4 <= power < highest:
        rest = f".{digits[1:]}" if digits[1:] else ""
        return f"{sign}{digits[0]}{rest}e{'-' if power < 0 else '+'}{abs(power):02d}"
    plain = format(decimal.Decimal(f"0.{digits}").scaleb(power + 1), "f")
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    return sign + (f"{plain}.0" if dialect == "duckdb" and "." not in plain else plain)


def _escaped(text: str, dialect: str) -> bytes:
    return _blob(text) if dialect == "duckdb" else _bytea(text)


def _blob(text: str) -> bytes:
    made, rest = b"", text
    while rest:
        if ord(rest[0]) > 127:
            raise NoValue("beyond ASCII")
        if rest[0] != "\\":
            made, rest = made + rest[0].encode(), rest[1:]
            continue
        if rest[1:2] != "x" or not _is_hex(rest[2:4], 2):
            raise NoValue("a backslash begins \\xAB")
        made, rest = made + bytes([int(rest[2:4], 16)]), rest[4:]
    return made


def _is_hex(text: str, size: int) -> bool:
    return len(text) == size and all(letter in "0123456789abcdefABCDEF" for letter in text)


def _bytea(text: str) -> bytes:
    if text[:2] == "\\x":
        parts = text[2:].split()
        digits = "".join(parts)
        if not _is_hex(digits, len(digits)) or any(len(part) % 2 for part in parts):
            raise NoValue("no bytes")
        return bytes(int(digits[place : place + 2], 16) for place in range(0, len(digits), 2))
    made, rest = b"", text
    while rest:
        if rest[0] != "\\":
            made, rest = made + rest[0].encode(), rest[1:]
        elif rest[1:2] == "\\":
            made, rest = made + b"\\", rest[2:]
        elif len(rest) >= 4 and rest[1] in "0123" and all(digit in "01234567" for digit in rest[2:4]):
            made, rest = made + bytes([int(rest[1:4], 8)]), rest[4:]
        else:
            raise NoValue("a backslash alone")
    return made


def _divisor(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return abs(a)


def _multiple(a: int, b: int) -> int:
    return abs(a * b) // _divisor(a, b) if a and b else 0


def _within(function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def run(a: int, b: int) -> int:
        if function(a, b) >= 2**63:
            raise NoValue("out of range")
        return function(a, b)

    return run


FOREIGN: Final[Mapping[str, Callable[..., Any]]] = {
    "upper_letters": _upper,
    "lower_letters": _lower,
    "capitalized": _capitalized,
    "escaped_bytes": _escaped,
    "gcd": _within(_divisor),
    "lcm": _within(_multiple),
}
TYPED: Final[Mapping[str, Callable[..., Any]]] = {"float_text": _float_text}
