"""What other dialects mean by letters, floats and bytes: DuckDB's and PostgreSQL's own texts, as their casts need them.

Each function takes, last, the dialect as text: ``duckdb`` or ``postgres``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.functions.kernel import Failed, Kernel, Kind, Value, each

_OCTAL: Final = re.compile(rb"\\(?:([0-3][0-7]{2})|(\\))")
_WORD: Final = re.compile(r"[^\W_]+")
_HEX: Final = re.compile(r"\\x([0-9a-fA-F]{2})")
# From which power of ten on a number has an exponent, in a dialect and for a FLOAT or a DOUBLE.
_HIGHEST: Final = {
    ("duckdb", True): 16, ("duckdb", False): 16, ("postgres", True): 6, ("postgres", False): 15,
}  # fmt: skip
_GREATEST: Final = 2**63 - 1


def _upper(letter: str, dialect: str) -> str:
    """The capital of a letter where that is one letter."""
    if letter == "ß":
        return "ẞ" if dialect == "duckdb" else letter
    whole = letter.upper()
    title = letter.title()
    return whole if len(whole) == 1 else title if len(title) == 1 else letter


def _upper_letters(text: str, dialect: str) -> str:
    return "".join(_upper(letter, dialect) for letter in text)


def _lower_letters(text: str, dialect: str) -> str:
    return "".join("i" if letter == "İ" else letter.lower() for letter in text)


def _capitalized(text: str) -> str:
    """Every word with a capital, and the rest of it small; a word is letters and digits."""
    return _WORD.sub(lambda word: _upper(word[0][:1], "postgres") + word[0][1:].lower(), text)


def _float_texts(out: Kind, a: Value, dialect: Value) -> Any:
    single = np.float32 if pa.types.is_float32(a.type) else np.float64
    name = dialect.as_py()  # a row alone, as equal zeros of two signs are two texts
    return pa.array([None if value is None else _float_text(single(value), name) for value in a.to_pylist()], out)


def _float_text(value: Any, dialect: str) -> str:
    """The shortest text that means the number, with an exponent from 1e16 on, or below 0.0001."""
    if not np.isfinite(value):
        names = ("nan", "inf") if dialect == "duckdb" else ("NaN", "Infinity")
        return names[0] if value != value else ("-" if value < 0 else "") + names[1]
    digits, _, exponent = np.format_float_scientific(value, trim="-", exp_digits=2).partition("e")
    single = value.dtype == np.float32
    if -4 <= int(exponent) < _HIGHEST[dialect, single]:
        return np.format_float_positional(value, trim="0" if dialect == "duckdb" else "-")
    return f"{digits}e{exponent}"


def _escaped_bytes(text: str, dialect: str) -> bytes:
    """The bytes that a text means: ``\\xAB`` is one; to PostgreSQL ``\\x61ab`` and ``\\001`` are, too."""
    if dialect == "duckdb":
        if not text.isascii():
            raise Failed(f"{text[:40]!r} is no BLOB: beyond ASCII write bytes as \\xAB")
        if "\\" in _HEX.sub("", text):
            raise Failed(f"{text[:40]!r} is no BLOB: write bytes as \\xAB")
        return _HEX.sub(lambda byte: chr(int(byte[1], 16)), text).encode("latin-1")
    if text.startswith("\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise Failed(f"{text[:40]!r} is no bytea: two digits from 0 to f are a byte") from None
    given = text.encode()
    if b"\\" in _OCTAL.sub(b"", given):
        raise Failed(f"{text[:40]!r} is no bytea: a backslash is written as \\\\")
    return _OCTAL.sub(lambda byte: b"\\" if byte[1] is None else bytes([int(byte[1], 8)]), given)


def _within(function: Callable[[int, int], int]) -> Kernel:
    def run(a: int, b: int) -> int:
        value = function(a, b)
        if value > _GREATEST:
            raise Failed("the result is no BIGINT")
        return value

    return lambda out, a, b: each(out, run, a, b)


KERNELS: Final[dict[str, Kernel]] = {
    "upper_letters": lambda out, a, dialect: each(out, _upper_letters, a, dialect),
    "lower_letters": lambda out, a, dialect: each(out, _lower_letters, a, dialect),
    "capitalized": lambda out, a: each(out, _capitalized, a),
    "float_text": _float_texts,
    "escaped_bytes": lambda out, a, dialect: each(out, _escaped_bytes, a, dialect),
    "gcd": _within(math.gcd),
    "lcm": _within(math.lcm),
}
