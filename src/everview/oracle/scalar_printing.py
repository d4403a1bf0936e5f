"""The meaning of formats: numbers by ``S$9,999.00``, and values by ``%`` in a text."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue, cast_value
from everview.types import BIGINT, DATE, INTEGER, SMALLINT, STRING, TIMESTAMP, TINYINT, Type

_BITS: Final[dict[Type, int]] = {TINYINT: 8, SMALLINT: 16, INTEGER: 32, BIGINT: 64, DATE: 32, TIMESTAMP: 64}


def _tokens(form: str) -> tuple[str, bool, list[str], str | None, list[str]]:
    """The sign in front, whether there is a ``$``, the groups before the point, the digits after it, and the signs."""
    form = form.upper().replace("G", ",").replace("D", ".")
    front = next((sign for sign in ("MI", "S") if form.startswith(sign)), "")
    form, behind = form.removeprefix(front), list[str]()
    while form[-1:] in ("S", "I", "R"):
        size = 1 if form[-1] == "S" else 2
        behind.insert(0, form[-size:])
        form = form[:-size]
    dollar = form.startswith("$")
    before, point, after = form.removeprefix("$").partition(".")
    return front, dollar, before.split(",") if before else [], after if point else None, behind


def _grouped(digits: str, groups: list[str]) -> str:
    """Digits in their places, from the right; those that are missing are zeros or spaces, as their group says."""
    letters, place = "", 0
    for number, group in reversed(list(enumerate(groups))):
        for _ in group:
            place += 1
            letters = (digits[-place] if place <= len(digits) else "0" if group[0] == "0" else " ") + letters
        if number:
            letters = "," + letters
    first = next((start for start, letter in enumerate(letters) if letter.isdigit()), len(letters))
    return letters[:first].replace(",", " ") + letters[first:]


def _to_char(number: decimal.Decimal, form: str) -> str:
    front, dollar, groups, after, behind = _tokens(form)
    scaled = abs(number) * 10 ** len(after or "")
    room = sum(map(len, groups))
    beyond = scaled != scaled.to_integral_value() or scaled >= decimal.Decimal(10) ** (room + len(after or ""))
    digits = str(int(scaled)).rjust(room + len(after or ""), "0")
    before, fraction = digits[:room], digits[room:]
    kept = before.lstrip("0")
    if after is not None and groups and not kept:
        kept = "0"
    if beyond:
        kept, fraction = "#" * room, "#" * len(after or "")
    letters = _grouped(kept, groups)
    if after is not None:
        letters += "." + fraction if after else " "
    letters = ("$" if dollar else "") + letters
    sign = {"S": "-" if number < 0 else "+", "MI": "-" if number < 0 else " ", "": ""}
    opening = "<" if "PR" in behind and number < 0 else sign[front]
    spaces = len(letters) - len(letters.lstrip(" "))
    ending = "".join((">" if number < 0 else "  ") if mark == "PR" else sign[mark] for mark in behind)
    return " " * spaces + opening + letters[spaces:] + ending


def _to_number(text: str, form: str) -> decimal.Decimal:
    front, dollar, groups, after, behind = _tokens(form)
    text = "".join(text.split())
    negative, bracket = False, False
    if front or "PR" in behind:
        allowed = {"S": "+-", "MI": "-", "": ""}[front] + ("<" if "PR" in behind else "")
        if text and text[0] in allowed:
            negative, bracket, text = text[0] in "-<", text[0] == "<", text[1:]
    for sign in reversed(behind):
        allowed = {"S": "+-", "MI": "-", "PR": ">"}[sign]
        if text and text[-1] in allowed:
            negative, bracket, text = negative or text[-1] == "-", bracket != (text[-1] == ">"), text[:-1]
    if bracket or (dollar and not text.startswith("$")):
        raise NoValue("another form")
    whole, point, fraction = text.removeprefix("$" if dollar else "").partition(".")
    given = whole.split(",")
    if (point and after is None) or len(fraction) > len(after or "") or len(given) > max(len(groups), 1):
        raise NoValue("another form")
    for group, part in zip(reversed(groups), [*reversed(given), *[""] * len(groups)], strict=False):
        if len(part) > len(group) or (group[0] == "0" and len(part) != len(group)):
            raise NoValue("another form")
    digits = whole.replace(",", "") + fraction
    if not digits or not digits.isdecimal() or (not groups and whole):
        raise NoValue("another form")
    number = decimal.Decimal(int(digits)).scaleb(-len(fraction), decimal.Context(prec=100))
    return -number if negative else number


# -- by ``%``


def _format_string(type_: Type, types: list[Type], values: list[Any]) -> str | None:
    form, *given = values
    if form is None:
        return None
    text, place, taken, last = "", 0, 0, -1
    while place < len(form):
        if form[place] != "%":
            text, place = text + form[place], place + 1
            continue
        spec = _Specifier(form, place + 1)
        place = spec.end
        if spec.kind in ("%", "n"):
            text += "\n" if spec.kind == "n" else spec.padded("%")
            continue
        if spec.index is not None:
            last = spec.index - 1
        elif "<" not in spec.flags:
            last, taken = taken, taken + 1
        if not 0 <= last < len(given):
            raise NoValue("no value")
        text += spec.written(given[last], types[1 + last])
    return text


class _Specifier:
    """One ``%`` with what follows."""

    def __init__(self, form: str, place: int) -> None:
        start = place
        digits, place = self._number(form, place)
        self.index, self.flags = None, ""
        if digits and form[place : place + 1] == "$":
            self.index, place = int(digits), place + 1
        else:
            place = start
        while form[place : place + 1] and form[place] in "-#+ 0,(<":
            self.flags, place = self.flags + form[place], place + 1
        width, place = self._number(form, place)
        if len(width) > 6:
            raise NoValue("too wide")
        self.width, self.precision = int(width or 0), None
        if form[place : place + 1] == ".":
            precision, place = self._number(form, place + 1)
            if not precision:
                raise NoValue("no precision")
            if len(precision) > 2:
                raise NoValue("too precise")
            self.precision = int(precision)
        self.kind, self.end = form[place : place + 1], place + 1

    @staticmethod
    def _number(form: str, place: int) -> tuple[str, int]:
        end = place
        while form[end : end + 1] and form[end] in "0123456789":
            end += 1
        return form[place:end], end

    def padded(self, text: str) -> str:
        missing = " " * (self.width - len(text))
        return text + missing if "-" in self.flags else missing + text

    def written(self, value: Any, type_: Type) -> str:
        kind = self.kind.lower()
        flags = {*self.flags} - {"<"}
        allowed = {"s": "-", "b": "-", "c": "-", "d": "-+ 0,(", "x": "-#0", "o": "-#0", "f": "-+ 0,(", "e": "-+ 0(",
                   "g": "-+ 0("}  # fmt: skip
        clash = {"-", "0"} <= flags or {"+", " "} <= flags or (flags & {"-", "0"} and not self.width)
        if (
            not kind
            or kind not in allowed
            or self.kind == "D"
            or clash
            or (value is not None and flags - {*allowed[kind]})
        ):
            raise NoValue("no such conversion")
        if value is None and kind in "bsc" and flags - {"-"}:
            raise NoValue("no such conversion")
        shown = self._shown(value, type_, kind)
        return self.padded(shown.upper() if self.kind.isupper() else shown)

    def _shown(self, value: Any, type_: Type, kind: str) -> str:
        if value is None or kind in "sb":
            whole = "false" if kind == "b" and value in (None, False) and type_.sql in ("BOOLEAN", "VOID") else ""
            whole = whole or ("false" if kind == "b" and value is None else "true" if kind == "b" else "")
            whole = whole or ("null" if value is None else self._text(value, type_))
            return whole if self.precision is None else whole[: self.precision]
        if kind in "fge":
            if not isinstance(value, float):
                raise NoValue("no float")
            return self._float(value, decimal.Decimal(self._text(value, type_)), kind)
        if type_ not in _BITS or self.precision is not None:
            raise NoValue("no integer")
        number = _count(value, type_)
        if kind == "c":
            if type_ in (BIGINT, TIMESTAMP) or not 0 <= number < 0x110000:
                raise NoValue("no letter")
            return chr(number)
        if kind == "d":
            return self._sign(f"{abs(number):{',' if ',' in self.flags else ''}d}", number < 0)
        digits = format(number % 2 ** _BITS[type_], kind)
        mark = {"x": "0x", "o": "0"}[kind] if "#" in self.flags else ""
        return mark + ("0" * (self.width - len(mark) - len(digits)) if "0" in self.flags else "") + digits

    def _text(self, value: Any, type_: Type) -> str:
        if type_ in (DATE, TIMESTAMP) or isinstance(value, decimal.Decimal):
            return str(_count(value, type_))
        return cast_value(value, type_, STRING)

    def _float(self, value: float, number: decimal.Decimal, kind: str) -> str:
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            sign = ("+" if "+" in self.flags else " " if " " in self.flags else "") if value > 0 else "-"
            return "(Infinity)" if value < 0 and "(" in self.flags else sign + "Infinity"
        digits, size = 6 if self.precision is None else self.precision, abs(number)
        if kind == "g":
            digits = max(digits, 1)
            small = size != 0 and _rounded(size, digits) < decimal.Decimal("0.0001")
            kind = "e" if small or _rounded(size, digits) >= 10**digits else "f"
            power = 0 if size == 0 else _rounded(size, digits).adjusted()
            digits = digits - 1 if kind == "e" or size == 0 else digits - 1 - power
        if kind == "f":
            with decimal.localcontext(decimal.Context(prec=800, rounding=decimal.ROUND_HALF_UP)):
                shown = f"{size.quantize(decimal.Decimal(1).scaleb(-digits)):{',' if ',' in self.flags else ''}f}"
        else:
            kept = _rounded(size, digits + 1)
            power = 0 if size == 0 else kept.adjusted()
            with decimal.localcontext(decimal.Context(prec=800)):
                shown = f"{kept.scaleb(-power):.{digits}f}e{power:+03d}"
        return self._sign(shown, math.copysign(1, value) < 0)

    def _sign(self, digits: str, negative: bool) -> str:
        start, end = ("+" if "+" in self.flags else " " if " " in self.flags else ""), ""
        if negative:
            start, end = ("(", ")") if "(" in self.flags else ("-", "")
        while "0" in self.flags and len(start + digits + end) < self.width:
            digits = "0" + digits
        return start + digits + end


def _rounded(number: decimal.Decimal, digits: int) -> decimal.Decimal:
    """The number to so many digits, halves upwards."""
    return decimal.Context(prec=digits, rounding=decimal.ROUND_HALF_UP).plus(number)


def _count(value: Any, type_: Type) -> int:
    if type_ == DATE:
        return (value - dt.date(1970, 1, 1)).days
    if type_ == TIMESTAMP:
        return (value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    return value


PRINTING: Final[Mapping[str, Callable[[Type, list[Type], list[Any]], Any]]] = {
    "to_char": lambda type_, types, values: _to_char(*values),
    "to_number": lambda type_, types, values: _to_number(*values),
    "format_string": _format_string,
}
