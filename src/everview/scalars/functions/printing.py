"""Numbers to and from text by a format, and values put into a text by ``%`` as Java's formatter does."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import pyarrow as pa

from everview.scalars.functions.kernel import Failed, Kernel, Kind, Value, each, each_row, length, whole
from everview.scalars.number_formats import NumberFormat, number_format

_EXACT: Final = decimal.Context(prec=800, rounding=decimal.ROUND_HALF_UP)


# -- by a format of numbers


def _to_char(out: Kind, a: Value, form: Value) -> Any:
    wanted = number_format(form.as_py())
    return each(out, lambda number: _written(number, wanted), a)


def _written(number: decimal.Decimal, form: NumberFormat) -> str:
    """A number as a format writes it; ``#`` for every digit if it has too many."""
    whole_part, _, fraction = f"{abs(number):f}".partition(".")
    fraction = fraction.rstrip("0")
    whole_part = whole_part.lstrip("0") or ("0" if form.point and form.groups else "")
    room = sum(map(len, form.groups))
    if len(whole_part) > room or len(fraction) > len(form.after):
        whole_part, fraction = "#" * room, "#" * len(form.after)
    text = _grouped(whole_part, form.groups)
    if form.point:
        text += f".{fraction.ljust(len(form.after), '0')}" if form.after else " "
    return _signed(("$" if form.dollar else "") + text, number < 0, form)


def _grouped(digits: str, groups: tuple[str, ...]) -> str:
    """Digits in groups; one that begins with 0 is filled with zeros, and a comma needs a digit before it."""
    parts: list[str] = []
    for group in reversed(groups):
        part, digits = digits[-len(group) :], digits[: -len(group)]
        parts.append(part.rjust(len(group), group[0] if group[0] == "0" else " "))
    text = ""
    for part in reversed(parts):
        text += ("," if re.search("[0-9]", text) else " " if text else "") + part
    return text


def _signed(text: str, negative: bool, form: NumberFormat) -> str:
    """The text with its signs; one in front stands before the first character that is no space."""
    marks = {"S": "-" if negative else "+", "MI": "-" if negative else " ", "": ""}
    front = "<" if negative and "PR" in form.behind else marks[form.before]
    start = len(text) - len(text.lstrip(" "))
    text = text[:start] + front + text[start:]
    for sign in form.behind:
        text += (">" if negative else "  ") if sign == "PR" else marks[sign]
    return text


def _to_number(out: Kind, a: Value, form: Value) -> Any:
    reader = _reader(number_format(form.as_py()))
    return each(out, lambda text: _read(text, reader), a)


def _read(text: str, reader: re.Pattern[str]) -> decimal.Decimal:
    match = reader.fullmatch(re.sub(r"\s", "", text))
    parts = match.groupdict(default="") if match else {}
    digits = parts.get("whole", "").replace(",", "")
    if match is None or not digits + parts["after"] or ("<" in parts.values()) != (">" in parts.values()):
        raise Failed("the text has not the form of the format")
    number = decimal.Decimal(f"{digits or '0'}.{parts['after'] or '0'}")
    return -number if "-" in parts.values() or "<" in parts.values() else number


@cache
def _reader(form: NumberFormat) -> re.Pattern[str]:
    whole_part, needed = "", False
    for group in form.groups:
        part = rf"\d{{{'' if group[0] == '0' else '0,'}{len(group)}}}"
        whole_part = part if not whole_part else f"{whole_part},{part}" if needed else f"(?:{whole_part},)?{part}"
        needed = needed or group[0] == "0"
    after = rf"(?:\.(?P<after>\d{{0,{len(form.after)}}}))?" if form.point else "(?P<after>)"
    signs = {"S": "[+-]?", "MI": "-?", "PR": ">?", "": ""}
    front = "<?" if "PR" in form.behind else signs[form.before]
    behind = "".join(f"(?P<behind{place}>{signs[sign]})" for place, sign in enumerate(form.behind))
    dollar = "[$]" if form.dollar else ""
    return re.compile(f"(?P<front>{front}){dollar}(?P<whole>{whole_part}){after}{behind}")


# -- by ``%``

_SPECIFIER: Final = re.compile(
    r"%(?:(?P<index>[0-9]+)\$)?(?P<flags>[-#+ 0,(<]*)(?P<width>[1-9][0-9]*)?(?:\.(?P<precision>[0-9]+))?(?P<kind>.)?",
    re.DOTALL,
)
_NO_VALUE: Final = "a value is missing for a %"


def _format_string(out: Kind, form: Value, *values: Value) -> Any:
    rows = length((form, *values))
    bits = [v.type.bit_width if pa.types.is_integer(v.type) else 0 for v in values]
    columns: list[Value] = []
    for value in values:
        columns += [_plain(whole(value, rows)), _shown(whole(value, rows))]
    return each_row(out, lambda text, *row: _formatted(text, row, bits), whole(form, rows), *columns)


def _plain(column: Value) -> Value:
    """The column as the formatter sees it: dates and timestamps are counts of days and microseconds."""
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _shown(column: Value) -> Value:
    """The column as text."""
    from everview.scalars.casts import convert
    from everview.types import STRING, type_of_arrow

    column = _plain(column)
    if pa.types.is_decimal(column.type):
        return each(pa.string(), str, column)  # as Java's BigDecimal, with a power of ten for very small ones
    return column if pa.types.is_string(column.type) else convert(column, type_of_arrow(column.type), STRING)


def _formatted(form: str | None, row: tuple[Any, ...], bits: list[int]) -> str | None:
    if form is None:
        return None
    parts, start, ordinary, last = list[str](), 0, 0, -1
    for specifier in _SPECIFIER.finditer(form):
        parts.append(form[start : specifier.start()])
        start = specifier.end()
        if len(specifier["width"] or "") > 6 or len(specifier["precision"] or "") > 2:
            raise Failed(f"{specifier[0][:30]!r} is too wide")
        if specifier["kind"] in ("n", "%"):
            parts.append("\n" if specifier["kind"] == "n" else _padded("%", specifier))
            continue
        if specifier["index"]:
            last = int(specifier["index"]) - 1
        elif "<" not in specifier["flags"]:
            last, ordinary = ordinary, ordinary + 1
        if not 0 <= last < len(bits):
            raise Failed(_NO_VALUE)
        parts.append(_put(row[2 * last], row[2 * last + 1], bits[last], specifier))
    return "".join([*parts, form[start:]])


def _put(value: Any, text: str | None, bits: int, specifier: re.Match[str]) -> str:
    kind = specifier["kind"] or ""
    writer = _KINDS.get(kind.lower())
    flags = specifier["flags"].replace("<", "")
    wrong = (
        (("-" in flags or "0" in flags) and not specifier["width"]) or {"-", "0"} <= {*flags} or {"+", " "} <= {*flags}
    )
    if writer is None or kind == "D" or wrong or (kind in "bscBSC" and {*flags} - {"-"}):
        raise Failed(f"{specifier[0]!r} is not supported")
    if value is None:
        shown = _cut("false" if kind in "bB" else "null", specifier)
        return _padded(shown.upper() if kind.isupper() else shown, specifier)
    shown = writer(value, text, bits, specifier)
    return _padded(shown.upper() if kind.isupper() else shown, specifier)


def _padded(text: str, specifier: re.Match[str]) -> str:
    width = int(specifier["width"] or 0)
    return text.ljust(width) if "-" in specifier["flags"] else text.rjust(width)


def _cut(text: str, specifier: re.Match[str]) -> str:
    return text if specifier["precision"] is None else text[: int(specifier["precision"])]


def _as_text(value: Any, text: str, bits: int, specifier: re.Match[str]) -> str:
    return _cut(text, specifier)


def _as_truth(value: Any, text: str, bits: int, specifier: re.Match[str]) -> str:
    return _cut("false" if value is False else "true", specifier)


def _as_letter(value: Any, text: str, bits: int, specifier: re.Match[str]) -> str:
    if not 8 <= bits <= 32 or not 0 <= value <= 0x10FFFF or specifier["precision"]:
        raise Failed(f"{specifier[0]!r} of {text}")
    return chr(value)


def _as_whole(value: Any, text: str, bits: int, specifier: re.Match[str]) -> str:
    if not bits or specifier["precision"] or "#" in specifier["flags"]:
        raise Failed(f"{specifier[0]!r} of {text}")
    return _with_sign(f"{abs(value):,}" if "," in specifier["flags"] else str(abs(value)), value < 0, specifier)


def _as_bits(letter: str, mark: str) -> Callable[..., str]:
    def run(value: Any, text: str, bits: int, specifier: re.Match[str]) -> str:
        if not bits or specifier["precision"] or {*specifier["flags"]} & {*"+ ,("}:
            raise Failed(f"{specifier[0]!r} of {text}")
        shown = f"{value & (1 << bits) - 1:{letter}}"
        mark_ = mark if "#" in specifier["flags"] else ""
        return mark_ + (shown.rjust(int(specifier["width"]) - len(mark_), "0") if "0" in specifier["flags"] else shown)

    return run


def _as_float(form: str) -> Callable[..., str]:
    def run(value: Any, text: str, bits: int, specifier: re.Match[str]) -> str:
        if not isinstance(value, float) or "#" in specifier["flags"] or (form != "f" and "," in specifier["flags"]):
            raise Failed(f"{specifier[0]!r} of {text}")
        if value != value or value in (float("inf"), float("-inf")):
            return text if value != value else _endless(value > 0, specifier["flags"])
        number = decimal.Decimal(text)
        digits = int(specifier["precision"] or 6) if specifier["precision"] != "0" else 0
        shown = _fixed(abs(number), digits) if form == "f" else _scientific(abs(number), digits)
        if form == "g":
            shown = _general(abs(number), max(digits, 1))
        if "," in specifier["flags"]:
            before, point, after = shown.partition(".")
            shown = f"{int(before):,}{point}{after}"
        return _with_sign(shown, text.startswith("-"), specifier)

    return run


def _endless(positive: bool, flags: str) -> str:
    if positive:
        return ("+" if "+" in flags else " " if " " in flags else "") + "Infinity"
    return "(Infinity)" if "(" in flags else "-Infinity"


def _fixed(number: decimal.Decimal, digits: int) -> str:
    return f"{number.quantize(decimal.Decimal(1).scaleb(-digits), context=_EXACT):f}"


def _scientific(number: decimal.Decimal, digits: int) -> str:
    power = number.adjusted() if number else 0
    unit = number.scaleb(-power, _EXACT).quantize(decimal.Decimal(1).scaleb(-digits), context=_EXACT)
    if unit >= 10:
        unit, power = unit.scaleb(-1).quantize(decimal.Decimal(1).scaleb(-digits), context=_EXACT), power + 1
    return f"{unit:f}e{'-' if power < 0 else '+'}{abs(power):02}"


def _general(number: decimal.Decimal, digits: int) -> str:
    """Without a power of ten from 0.0001 up to as many digits as are asked for."""
    if number == 0:
        return _fixed(number, digits - 1)
    power = number.adjusted()
    rounded = number.quantize(decimal.Decimal(1).scaleb(power + 1 - digits), context=_EXACT)
    if not decimal.Decimal("0.0001") <= rounded < decimal.Decimal(10) ** digits:
        return _scientific(number, digits - 1)
    return _fixed(number, digits - 1 - rounded.adjusted())


def _with_sign(shown: str, negative: bool, specifier: re.Match[str]) -> str:
    flags = specifier["flags"]
    front = ("(" if "(" in flags else "-") if negative else "+" if "+" in flags else " " if " " in flags else ""
    back = ")" if front == "(" else ""
    if "0" in flags:
        shown = shown.rjust(int(specifier["width"]) - len(front) - len(back), "0")
    return front + shown + back


_KINDS: Final[dict[str, Callable[..., str]]] = {
    "s": _as_text,
    "b": _as_truth,
    "c": _as_letter,
    "d": _as_whole,
    "x": _as_bits("x", "0x"),
    "o": _as_bits("o", "0"),
    "f": _as_float("f"),
    "e": _as_float("e"),
    "g": _as_float("g"),
}

KERNELS: Final[dict[str, Kernel]] = {
    "to_char": _to_char,
    "to_number": _to_number,
    "format_string": _format_string,
}
