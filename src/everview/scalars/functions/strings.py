"""Functions of text. Positions count code points from 1; text without letters beyond ASCII takes Arrow's kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.scalars.functions.kernel import (
    Checked,
    Failed,
    Kernel,
    Kind,
    Value,
    constant,
    each,
    each_row,
    from_numbers,
    is_scalar,
    length,
    nulls,
    numbers,
    whole,
)

LONGEST: Final = 1 << 28  # bytes of a text that a function makes
TOO_LONG: Final = f"the text would be longer than {LONGEST:,} bytes"


def within(sizes: Any, made: Callable[[], Value], out: Kind) -> Any:
    """Texts of at most so many bytes each, which are made only if none of them is too long."""
    beyond = sizes > LONGEST
    return Checked(pa.nulls(len(sizes), out), beyond, TOO_LONG) if beyond.any() else made()


def ascii_only(*values: Value) -> bool:
    """Whether all texts are ASCII."""
    for value in values:
        if is_scalar(value):
            text = value.as_py()
            if text is not None and not text.isascii():
                return False
        elif not pc.all(pc.string_is_ascii(value), skip_nulls=True, min_count=0).as_py():
            return False
    return True


def _cased(plain: Kernel, full: Callable[[str], str]) -> Kernel:
    """The kernel of a change of case; beyond ASCII by Python, as Arrow maps code points one to one, but ß is SS."""

    def run(out: Kind, a: Value) -> Any:
        return plain(a) if ascii_only(a) else each(out, full, a)

    return run


lower: Final = _cased(pc.ascii_lower, str.lower)


def _initcap(out: Kind, a: Value) -> Any:
    return each(out, lambda text: " ".join(w[:1].title() + w[1:].lower() for w in text.split(" ")), a)


def _trimming(function: Kernel) -> Kernel:
    def run(out: Kind, a: Value, characters: Value | None = None) -> Any:
        chosen = " " if characters is None else characters.as_py()
        return function(a, characters=chosen) if chosen else a

    return run


def _trim(function: Kernel) -> Kernel:
    inner = _trimming(function)
    chosen = constant(1, inner)
    return lambda out, *arguments: (inner if len(arguments) == 1 else chosen)(out, *arguments)


def _replace(out: Kind, a: Value, *given: Value) -> Any:
    search = given[0].as_py() if is_scalar(given[0]) else None
    by = pa.scalar("") if len(given) == 1 else given[1]
    if search is None or not is_scalar(by) or not by.is_valid:
        return each(out, _replaced, a, given[0], by)
    if not search:
        return a
    old, new = search.encode(), by.as_py().encode()
    sizes = numbers(pc.binary_length(a)).astype(np.int64)
    if len(new) > len(old) and (sizes // len(old) * len(new)).sum() > LONGEST:
        sizes = sizes + numbers(pc.count_substring(a, pattern=search)).astype(np.int64) * (len(new) - len(old))
    return within(sizes, lambda: pc.replace_substring(a, pattern=search, replacement=by.as_py()), out)


def _replaced(text: str, old: str, new: str) -> str:
    if not old:
        return text
    require_room(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def require_room(letters: int) -> None:
    """Refuse a row whose text would be longer than a function makes any."""
    if letters > LONGEST:
        raise Failed(TOO_LONG)


def _translate(out: Kind, a: Value, old: Value, new: Value) -> Any:
    return each(out, _translated, a, old, new)


def _translated(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for number, letter in enumerate(old):
        table.setdefault(ord(letter), new[number] if number < len(new) else None)
    return text.translate(table)


def _length(out: Kind, a: Value) -> Any:
    return pc.utf8_length(a) if pa.types.is_string(a.type) else pc.binary_length(a)


def _octets(times: int) -> Kernel:
    return lambda out, a: pc.multiply(pc.binary_length(a), pa.scalar(times, pa.int32()))


def _substring(out: Kind, a: Value, position: Value, count: Value | None = None) -> Any:
    fixed = is_scalar(position) and (count is None or is_scalar(count))
    if not fixed or not pa.types.is_string(a.type):
        return each(out, _part, a, position, *(() if count is None else (count,)))
    start, size = position.as_py(), None if count is None else count.as_py()
    if start is None or (count is not None and size is None):
        return pa.nulls(len(a), out)
    begin, end = _bounds(start, size)
    return pc.utf8_slice_codeunits(a, begin, end) if end is None or begin != end else _emptied(a)


def _emptied(a: Value) -> Value:
    return pc.if_else(pc.is_valid(a), pa.scalar("", a.type), pa.scalar(None, a.type))


def _bounds(start: int, size: int | None) -> tuple[int, int | None]:
    """The bounds of a Python slice; a negative position counts from the end, and the part may begin before the text."""
    begin = start - 1 if start > 0 else start
    if size is None:
        return begin, None
    end = begin + max(size, 0)
    if begin < 0 and end >= 0:
        return begin, None
    return begin, min(end, 2**31)


def _part(text: Any, start: int, size: int | None = None) -> Any:
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if size is None else min(begin + max(size, 0), len(text))
    return text[max(begin, 0) : max(end, 0)]


def _left(out: Kind, a: Value, count: Value) -> Any:
    if is_scalar(count) and count.is_valid and pa.types.is_string(a.type):
        return pc.utf8_slice_codeunits(a, 0, max(count.as_py(), 0))
    return each(out, lambda text, n: text[: max(n, 0)], a, count)


def _right(out: Kind, a: Value, count: Value) -> Any:
    return each(out, lambda text, n: text[-n:] if n > 0 else text[:0], a, count)


def _padding(plain: Kernel, general: Callable[[Any, int, Any], Any]) -> Kernel:
    def run(out: Kind, a: Value, size: Value, pad: Value = None) -> Any:
        if pa.types.is_binary(a.type):
            return each(out, general, a, size, pa.scalar(b"\0") if pad is None else pad)
        pad = pa.scalar(" ") if pad is None else pad
        if is_scalar(size) and is_scalar(pad) and size.is_valid and pad.is_valid and len(pad.as_py()) == 1:
            width = max(size.as_py(), 0)
            if width * len(a) > LONGEST // 4:
                return each(out, general, a, size, pad)
            return pc.utf8_slice_codeunits(plain(a, width=width, padding=pad.as_py()), 0, width)
        return each(out, general, a, size, pad)

    return run


def _left_padded(text: Any, size: int, pad: Any) -> Any:
    return _filling(text, size, pad) + text if len(text) < size else text[: max(size, 0)]


def _right_padded(text: Any, size: int, pad: Any) -> Any:
    return text + _filling(text, size, pad) if len(text) < size else text[: max(size, 0)]


def _filling(text: Any, size: int, pad: Any) -> Any:
    require_room(size if pad else 0)
    missing = size - len(text)
    return (pad * (missing // len(pad) + 1))[:missing] if pad else pad


def _concat(out: Kind, *arguments: Value) -> Any:
    if not arguments:
        return pa.array([""], out)
    if pa.types.is_list(out):
        return each(out, lambda *lists: [v for one in lists for v in one], *arguments)
    return pc.binary_join_element_wise(*arguments, pa.scalar("", out), null_handling="emit_null")


def _concat_ws(out: Kind, separator: Value, *words: Value) -> Any:
    rows = length((separator, *words))
    if not words:
        return _emptied(whole(separator, rows))
    if rows == 1 and all(map(is_scalar, words)):
        separator, words = separator[0] if not is_scalar(separator) else separator, tuple(whole(w, 1) for w in words)
    if not is_scalar(separator) or not separator.is_valid or any(pa.types.is_list(w.type) for w in words):
        return each_row(out, _joined, separator, *words)
    # Each word behind a separator, without the first separator.
    pieces = [_behind(separator, word) for word in words]
    joined = pc.binary_join_element_wise(*pieces, pa.scalar(""))
    return pc.utf8_slice_codeunits(joined, len(separator.as_py()))


def _behind(separator: Value, word: Value) -> Value:
    joined = pc.binary_join_element_wise(separator, word, pa.scalar(""), null_handling="emit_null")
    return pc.coalesce(joined, pa.scalar(""))


def _joined(separator: str | None, *words: Any) -> str | None:
    if separator is None:
        return None
    flat = [w for word in words for w in (word if isinstance(word, list) else [word]) if w is not None]
    return separator.join(flat)


def _instr(out: Kind, a: Value, part: Value) -> Any:
    if is_scalar(part) and part.is_valid and ascii_only(a, part):
        return pc.add(pc.find_substring(a, pattern=part.as_py()), pa.scalar(1, pa.int32()))
    return each(out, lambda text, sought: text.find(sought) + 1, a, part)


def _locate(out: Kind, part: Value, a: Value, start: Value | None = None) -> Any:
    if start is None and not is_scalar(a):
        return _instr(out, a, part)
    start = pa.scalar(1, pa.int32()) if start is None else start
    return each_row(out, _located, part, a, start)


def _located(part: str | None, text: str | None, start: int | None) -> int | None:
    if start is None:
        return 0
    if part is None or text is None:
        return None
    if start < 1:
        return 0
    return text.find(part, start - 1) + 1 if part else 1


def _reverse(out: Kind, a: Value) -> Any:
    return pc.utf8_reverse(a) if pa.types.is_string(out) else each(out, lambda items: items[::-1], a)


def _repeat(out: Kind, a: Value, times: Value) -> Any:
    rows = length((a, times))
    if is_scalar(times) and not times.is_valid:
        return pa.nulls(rows, out)
    sizes = numbers(pc.binary_length(whole(a, rows))).astype(np.int64) * numbers(times).astype(np.int64)
    if is_scalar(times):
        return within(sizes, lambda: pc.binary_repeat(a, max(times.as_py(), 0)), out)
    counts = pc.max_element_wise(times, pa.scalar(0, times.type), skip_nulls=False)
    return within(sizes, lambda: pc.binary_repeat(whole(a, rows), counts), out)


def _space(out: Kind, times: Value) -> Any:
    return _repeat(out, pa.repeat(pa.scalar(" "), len(times)), times)


def _testing(plain: Kernel, general: Callable[[str, str], bool]) -> Kernel:
    def run(out: Kind, a: Value, part: Value) -> Any:
        if is_scalar(part) and part.is_valid:
            return plain(a, pattern=part.as_py())
        return each(out, general, a, part)

    return run


def _ascii(out: Kind, a: Value) -> Any:
    first = pc.utf8_slice_codeunits(a, 0, 1)
    return each(out, lambda letter: ord(letter) if letter else 0, first)


@cache
def _latin() -> Any:
    return pa.array([chr(i) for i in range(256)])


def _chr(out: Kind, a: Value) -> Any:
    codes = numbers(a)
    letters = _latin().take(from_numbers(codes & 255, pa.int64(), nulls(a)))
    return pc.if_else(pa.array(codes < 0), pa.scalar(""), letters) if (codes < 0).any() else letters


KERNELS: Final[dict[str, Kernel]] = {
    "upper": _cased(pc.ascii_upper, str.upper),
    "lower": lower,
    "initcap": _initcap,
    "trim": _trim(pc.utf8_trim),
    "ltrim": _trim(pc.utf8_ltrim),
    "rtrim": _trim(pc.utf8_rtrim),
    "replace": _replace,
    "translate": _translate,
    "length": _length,
    "octet_length": _octets(1),
    "bit_length": _octets(8),
    "substring": _substring,
    "left": _left,
    "right": _right,
    "lpad": _padding(pc.utf8_lpad, _left_padded),
    "rpad": _padding(pc.utf8_rpad, _right_padded),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "instr": _instr,
    "locate": _locate,
    "reverse": _reverse,
    "repeat": _repeat,
    "space": _space,
    "starts_with": _testing(pc.starts_with, lambda text, part: text.startswith(part)),
    "ends_with": _testing(pc.ends_with, lambda text, part: text.endswith(part)),
    "contains": _testing(pc.match_substring, lambda text, part: part in text),
    "ascii": _ascii,
    "chr": _chr,
}
