"""Dates and timestamps to and from text by a pattern, such as ``yyyy-MM-dd HH:mm:ss``.

The letters are those of Spark: G y M L d D F E Q q a H h K k m s S V z O X x Z, text in quotes, marks as themselves,
and brackets around what may be left out; names are English. The zone is UTC, unless one is named beside the pattern.
Another letter is refused. Texts are not read by E, F, G, Q, V, z and O.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import BadPattern
from everview.scalars.functions.kernel import Checked, Kernel, Kind, Value, constant, from_numbers, nulls, numbers
from everview.scalars.functions.moments import DAY, days_of, in_years

_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TOKEN: Final = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']", re.DOTALL)
_LETTERS: Final = "GyMLdDFEQqaHhKkmsSVzOXxZ"
_OF_ZONES: Final = frozenset("VzOXxZ")
_ALIKE: Final = {"L": "M", "q": "Q"}
_UNREAD: Final = "EFGQVzO"  # letters that texts are not read by


@dataclass(frozen=True, slots=True)
class Piece:
    """A letter of the pattern and how often it stands there; or text as it is, with no letter."""

    letter: str
    count: int
    text: str = ""


@cache
def pieces(pattern: str) -> tuple[Piece, ...]:
    """A pattern taken apart; raises `BadPattern`."""
    parts: list[Piece] = []
    start = 0
    while start < len(pattern):
        match = _TOKEN.match(pattern, start)
        if match is None:
            raise BadPattern(f"the pattern {pattern!r}: a quote is not closed", hint="close it")
        token, start = match.group(), match.end()
        if token.startswith("'"):
            parts.append(Piece("", 0, "'" if token == "''" else token[1:-1].replace("''", "'")))
        elif not token[0].isalpha():
            if token in "{}#":
                raise unknown_letters(pattern, token)
            parts.append(Piece(token, 1) if token in "[]" else Piece("", 0, token))
        elif token[0] not in _LETTERS:
            raise unknown_letters(pattern, token)
        else:
            parts.append(Piece(_ALIKE.get(token[0], token[0]), len(token)))
    _check_brackets(pattern, "".join(part.letter for part in parts if part.letter in "[]"))
    return tuple(parts)


def _check_brackets(pattern: str, brackets: str) -> None:
    while "[]" in brackets:
        brackets = brackets.replace("[]", "")
    if brackets:
        raise BadPattern(f"the pattern {pattern!r}: a bracket is not closed", hint="close it")


def unknown_letters(pattern: str, token: str) -> BadPattern:
    return BadPattern(
        f"the pattern {pattern!r}: {token} is not supported", hint=f"its letters are {', '.join(_LETTERS)}"
    )


# -- writing

Zoned = Callable[[Piece, str], Value]  # a letter of a zone in a pattern, written


def written(micros: Any, pattern: str, zone: Zoned | None = None) -> Value:
    """Moments as text by a pattern, in UTC, or as a clock shows them whose zone is written by a function of its own."""
    days = micros // DAY
    time = micros - days * DAY
    parts = [
        _piece(p, days, time, pattern) if zone is None or p.letter not in _OF_ZONES else zone(p, pattern)
        for p in pieces(pattern)
    ]
    if not parts:
        return pa.repeat(pa.scalar(""), len(micros))
    if len(parts) == 1 and not isinstance(parts[0], pa.Scalar):
        return parts[0]
    if all(isinstance(p, pa.Scalar) for p in parts):
        return pa.repeat(pa.scalar("".join(p.as_py() for p in parts)), len(micros))
    return pc.binary_join_element_wise(*parts, pa.scalar(""))


# Letters for plain numbers: how often one may stand there, and the number by the day and the time of day.
_NUMBERS: Final[dict[str, tuple[int, Callable[[Any, Any], Any]]]] = {
    "d": (2, lambda days, time: days - _month_start(days) + 1),
    "D": (3, lambda days, time: days - _year_start(days) + 1),
    "F": (1, lambda days, time: (days - _month_start(days)) % 7 + 1),
    "Q": (2, lambda days, time: _months(days) % 12 // 3 + 1),
    "K": (2, lambda days, time: time // 3_600_000_000 % 12),
    "k": (2, lambda days, time: (time // 3_600_000_000 + 23) % 24 + 1),
    "H": (2, lambda days, time: time // 3_600_000_000),
    "h": (2, lambda days, time: (time // 3_600_000_000 + 11) % 12 + 1),
    "m": (2, lambda days, time: time // 60_000_000 % 60),
    "s": (2, lambda days, time: time // 1_000_000 % 60),
}


# What is the same at all moments, as all are after year 0 and in UTC: by the letter and how often it stands there.
CONSTANT: Final[dict[str, tuple[str, ...]]] = {
    "[": ("",),
    "]": ("",),
    "G": ("AD", "AD", "AD", "Anno Domini"),
    "V": ("", "UTC"),
    "z": ("UTC", "UTC", "UTC", "Coordinated Universal Time"),
    "O": ("GMT", "", "", "GMT"),
    "X": ("Z", "Z", "Z", "Z", "Z"),
    "x": ("+00", "+0000", "+00:00", "+0000", "+00:00"),
    "Z": ("+0000", "+0000", "+0000", "GMT", "Z"),
}
_QUARTERS: Final = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")


def _constant(piece: Piece, pattern: str) -> Value:
    texts = CONSTANT[piece.letter]
    if piece.count > len(texts) or (not texts[piece.count - 1] and piece.letter not in "[]"):
        raise unknown_letters(pattern, piece.letter * piece.count)
    return pa.scalar(texts[piece.count - 1])


def _piece(piece: Piece, days: Any, time: Any, pattern: str) -> Value:
    count = piece.count
    match piece.letter:
        case "":
            return pa.scalar(piece.text)
        case "y":
            year = _months(days) // 12 + 1970
            return _padded(year % 100, 2) if count == 2 else _padded(year, count)
        case "M":
            month = _months(days) % 12
            return _padded(month + 1, count) if count <= 2 else _one_of(_MONTHS, month, count, pattern)
        case "Q" if count in (3, 4):
            names = _QUARTERS if count == 4 else ("Q1", "Q2", "Q3", "Q4")
            return pa.array(names).take(pa.array(_months(days) % 12 // 3))
        case letter if letter in CONSTANT:
            return _constant(piece, pattern)
        case "E":
            return _one_of(_DAYS, (days + 3) % 7, max(count, 3), pattern)
        case "a" if count == 1:
            return pa.array(["AM", "PM"]).take(pa.array(time // (DAY // 2)))
        case "S" if count <= 9:
            digits = _padded(time % 1_000_000 * 1_000, 9)
            return pc.utf8_slice_codeunits(digits, 0, count)
        case letter if letter in _NUMBERS and count <= _NUMBERS[letter][0]:
            return _padded(_NUMBERS[letter][1](days, time), count)
        case _:
            raise unknown_letters(pattern, piece.letter * count)


def _padded(numbers_: Any, count: int) -> Value:
    return pc.utf8_lpad(pa.array(numbers_).cast(pa.string()), count, "0")


def _one_of(names: tuple[str, ...], which: Any, count: int, pattern: str) -> Value:
    if count > 4:
        raise unknown_letters(pattern, "five letters")
    shown = [name if count == 4 else name[:3] for name in names]
    return pa.array(shown).take(pa.array(which))


def _months(days: Any) -> Any:
    return days.astype("M8[D]").astype("M8[M]").astype(np.int64)


def _month_start(days: Any) -> Any:
    return days.astype("M8[D]").astype("M8[M]").astype("M8[D]").astype(np.int64)


def _year_start(days: Any) -> Any:
    return days.astype("M8[D]").astype("M8[Y]").astype("M8[D]").astype(np.int64)


def _date_format(out: Kind, a: Value, pattern: Value) -> Any:
    text = written(numbers(a).astype(np.int64), pattern.as_py())
    return text if nulls(a) is None else pc.if_else(pc.is_valid(a), text, pa.scalar(None, out))


def _from_unixtime(out: Kind, a: Value, pattern: Value) -> Any:
    seconds = numbers(a)
    good = (seconds >= -62_135_596_800) & (seconds < 253_402_300_800)
    text = _date_format(out, from_numbers(np.where(good, seconds, 0) * 1_000_000, pa.int64(), nulls(a)), pattern)
    return text if good.all() else Checked(text, ~good, "the result is outside the years 1 to 9999")


# -- reading


@cache
def _reader(pattern: str) -> str:
    """The regular expression of what a pattern reads, with a group for each letter."""
    seen: set[str] = set()
    groups: list[str] = []
    parts = pieces(pattern)
    for number, piece in enumerate(parts):
        if not piece.letter:
            groups.append(re.sub(r"([^\w\s])", r"\\\1", piece.text, flags=re.ASCII))
            continue
        if piece.letter in "[]":
            groups.append("(?:" if piece.letter == "[" else ")?")
            continue
        if piece.letter in seen or piece.letter in _UNREAD:
            raise unknown_letters(pattern, piece.letter * piece.count)
        seen.add(piece.letter)
        adjacent = any(
            0 <= beside < len(parts) and parts[beside].letter not in ("", "[", "]", "X", "x", "Z")
            for beside in (number - 1, number + 1)
        )
        groups.append(f"(?P<{piece.letter}>{_reads(piece, adjacent, pattern)})")
    return f"^{''.join(groups)}$"


def _reads(piece: Piece, adjacent: bool, pattern: str) -> str:
    count = piece.count
    match piece.letter:
        case "y":
            return f"[0-9]{{{count}}}" if count == 2 or count >= 4 or adjacent else "[0-9]{1,6}"
        case "M" if count >= 3:
            if count > 4:
                raise unknown_letters(pattern, piece.letter * count)
            return "|".join(name if count == 4 else name[:3] for name in _MONTHS)
        case "a":
            return "AM|PM|am|pm"
        case "D":
            return f"[0-9]{{{count if count <= 3 else 1},3}}"
        case "X" | "x" | "Z":
            return _offset(piece, pattern)
        case "S":
            return f"[0-9]{{{count}}}" if adjacent else f"[0-9]{{1,{count}}}"
        case _ if count > 2:
            raise unknown_letters(pattern, piece.letter * count)
        case _:
            return "[0-9]{2}" if count == 2 else "[0-9]{1,2}"


def _offset(piece: Piece, pattern: str) -> str:
    """How far ahead of UTC a text may be said to be: in hours, with minutes, and with a colon between."""
    zero = "Z|" if piece.letter == "X" or (piece.letter == "Z" and piece.count == 5) else ""
    if piece.count > 5 or (piece.letter == "Z" and piece.count == 4):
        raise unknown_letters(pattern, piece.letter * piece.count)
    if piece.letter == "Z":
        return "[+-][0-9]{4}" if piece.count < 4 else zero + "[+-][0-9]{2}:[0-9]{2}"
    if piece.count == 1:
        return zero + "[+-][0-9]{2}(?:[0-9]{2})?"
    return zero + ("[+-][0-9]{2}:[0-9]{2}" if piece.count in (3, 5) else "[+-][0-9]{4}")


def _ahead(parts: Value, letters: dict[str, int], rows: int) -> tuple[Any, Any]:
    """Microseconds ahead of UTC, and which of them are said rightly."""
    letter = next((letter for letter in "XxZ" if letter in letters), None)
    if letter is None:
        return np.zeros(rows, np.int64), np.ones(rows, bool)
    text = pc.replace_substring(pc.struct_field(parts, letter).fill_null(""), ":", "")
    text = pc.utf8_rpad(pc.if_else(pc.is_in(text, value_set=pa.array(["", "Z"])), "+0000", text), 5, "0")
    hours, minutes = (
        pc.utf8_slice_codeunits(text, start, start + 2).cast(pa.int64()).to_numpy(zero_copy_only=False)
        for start in (1, 3)
    )
    sign = np.where(pc.starts_with(text, "-").to_numpy(zero_copy_only=False), -1, 1)
    return sign * (hours * 60 + minutes) * 60_000_000, (hours <= 18) & (minutes < 60)


def _read(a: Value, pattern: str) -> tuple[Any, Any]:
    """Microseconds since 1970, and which texts fit the pattern."""
    parts = pc.extract_regex(a, pattern=_reader(pattern))
    letters = {p.letter: p.count for p in pieces(pattern) if p.letter}

    def number(letter: str, missing: int) -> Any:
        if letter not in letters:
            return np.full(len(a), missing, np.int64)
        text = pc.struct_field(parts, letter).fill_null("")
        text = pc.if_else(pc.equal(text, pa.scalar("")), str(missing), text)  # in brackets, and left out
        if letter == "M" and letters["M"] >= 3:
            names = pa.array([n if letters["M"] == 4 else n[:3] for n in _MONTHS])
            return pc.add(pc.index_in(text, value_set=names), 1).fill_null(0).to_numpy(zero_copy_only=False)
        if letter == "S":
            text = pc.utf8_slice_codeunits(pc.utf8_rpad(text, 6, "0"), 0, 6)
        return text.cast(pa.int64()).to_numpy(zero_copy_only=False)

    year = number("y", 1970) + (2000 if letters.get("y") == 2 else 0)
    days, good = days_of(year, number("M", 1), number("d", 1))
    if "D" in letters:
        of_year = number("D", 1)
        good &= (of_year >= 1) & (of_year <= days_of(year, np.full(len(a), 12), np.full(len(a), 31))[0] - days + 1)
        days = days + of_year - 1
    hour, in_range = _hour(parts, letters, number)
    good &= in_range
    minute, second = number("m", 0), number("s", 0)
    good &= (hour < 24) & (minute < 60) & (second < 60)
    good &= pc.is_valid(parts).to_numpy(zero_copy_only=False)
    ahead, in_range = _ahead(parts, letters, len(a))
    micros = days * DAY + (hour * 3600 + minute * 60 + second) * 1_000_000 + number("S", 0) - ahead
    return micros, good & in_range & in_years(micros // DAY)


def _hour(parts: Value, letters: dict[str, int], number: Callable[[str, int], Any]) -> tuple[Any, Any]:
    """The hour that a text says, of 24 or of 12 and its half of the day; and whether such an hour exists."""
    if "h" in letters or "K" in letters:
        letter, least = ("h", 1) if "h" in letters else ("K", 0)
        twelve = number(letter, 12 * least)
        good = (twelve >= least) & (twelve < least + 12)
        return twelve % 12 + 12 * _half(parts, letters), good
    if "k" in letters:
        hour = number("k", 24)
        return hour % 24, (hour >= 1) & (hour <= 24)
    hour = number("H", 0)
    return hour, hour < 24


def _half(parts: Value, letters: dict[str, int]) -> Any:
    if "a" not in letters:
        return 0
    text = pc.struct_field(parts, "a")
    return pc.is_in(text, value_set=pa.array(["PM", "pm"])).to_numpy(zero_copy_only=False).astype(np.int64)


def _reading(unit: int) -> Kernel:
    """The kernel that reads text by a pattern, in units of so many microseconds."""

    def run(out: Kind, a: Value, pattern: Value) -> Any:
        micros, good = _read(a, pattern.as_py())
        missing = nulls(a)
        failed = ~good if missing is None else ~good & ~missing
        micros = np.where(good, micros, 0)
        value = from_numbers(_seconds(micros) if unit == 1_000_000 else micros // unit, out, missing)
        return Checked(value, failed, f"the text is not of the form {pattern.as_py()!r}") if failed.any() else value

    return constant(1, run)


def _seconds(micros: Any) -> Any:
    """Microseconds as whole seconds, cut off towards 1970, as in Spark."""
    return np.where(micros < 0, -(-micros // 1_000_000), micros // 1_000_000)


def _unix_timestamp(out: Kind, a: Value, *pattern: Value) -> Any:
    if not pattern:
        return from_numbers(_seconds(numbers(a)), out, nulls(a))
    return _reading(1_000_000)(out, a, *pattern)


def _to_timestamp(out: Kind, a: Value, *pattern: Value) -> Any:
    if pattern:
        return _reading(1)(out, a, *pattern)
    from everview.scalars.casts import convert
    from everview.types import STRING, TIMESTAMP

    return convert(a, STRING, TIMESTAMP)


KERNELS: Final[dict[str, Kernel]] = {
    "date_format": constant(1, _date_format),
    "from_unixtime": constant(1, _from_unixtime),
    "to_date": _reading(DAY),
    "to_timestamp": _to_timestamp,
    "unix_timestamp": _unix_timestamp,
}
FAILING: Final = frozenset(KERNELS)
