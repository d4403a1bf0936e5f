"""Parts of texts: those between separators, those at an occurrence, and texts with their letters hidden."""

from __future__ import annotations

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
    each,
    each_row,
    is_scalar,
    length,
    nulls,
    numbers,
    whole,
)


def _split_part(out: Kind, a: Value, separator: Value, place: Value) -> Any:
    """A part from 1, or from the end if negative; no text beyond either end, and none at all at 0."""
    if not (is_scalar(separator) and separator.is_valid and separator.as_py()):
        return each(out, _part, a, separator, place)
    parts = pc.split_pattern(a, pattern=separator.as_py())
    rows = len(a)
    wanted = numbers(whole(place, rows), 1).astype(np.int64)
    sizes = numbers(pc.list_value_length(parts)).astype(np.int64)
    at = np.where(wanted > 0, wanted - 1, sizes + wanted)
    begins = np.cumsum(sizes) - sizes
    inside = (wanted != 0) & (at >= 0) & (at < sizes)
    texts = pc.list_flatten(parts).take(pa.array(np.where(inside, begins + at, 0), mask=~inside)).fill_null("")
    missing = nulls(a, place)
    texts = texts if missing is None else pc.if_else(pa.array(missing), pa.scalar(None, out), texts)
    failed = wanted == 0
    return Checked(texts, failed, _NO_PART) if failed.any() else texts


_NO_PART: Final = "0 is no part: the first is 1"


def _part(text: str, separator: str, place: int) -> str:
    if place == 0:
        raise Failed(_NO_PART)
    parts = text.split(separator) if separator else [text]
    index = place - 1 if place > 0 else len(parts) + place
    return parts[index] if 0 <= index < len(parts) else ""


def _substring_index(out: Kind, a: Value, separator: Value, count: Value) -> Any:
    return each(out, _until, a, separator, count)


def _until(text: str, separator: str, count: int) -> str:
    """The text before so many separators, or behind so many from its end; they may overlap."""
    if not separator or not count:
        return ""
    if count > 0:
        place = -1
        for _ in range(count):
            place = text.find(separator, place + 1)
            if place < 0:
                return text
        return text[:place]
    place = len(text) - len(separator) + 1
    for _ in range(-count):
        place = text.rfind(separator, 0, place + len(separator) - 1) if place >= 0 else -1
        if place < 0:
            return text
    return text[place + len(separator) :]


def _instr(out: Kind, a: Value, part: Value, start: Value, occurrence: Value) -> Any:
    return each(out, _occurrence, a, part, start, occurrence)


def _occurrence(text: str, part: str, start: int, occurrence: int) -> int:
    """The place of an occurrence, from a start on, or backwards from one that is counted from the end."""
    if occurrence < 1:
        raise Failed("occurrences are counted from 1")
    if not part:
        return 1 if start else 0
    if start == 0:
        return 0
    place = start - 2 if start > 0 else len(text) + start + 1
    for _ in range(occurrence):
        place = text.find(part, place + 1) if start > 0 else text.rfind(part, 0, max(place - 1 + len(part), 0))
        if place < 0:
            return 0
    return place + 1


def _elt(out: Kind, place: Value, *texts: Value) -> Any:
    rows = length((place, *texts))
    wanted = numbers(whole(place, rows), 1).astype(np.int64)
    inside = (wanted >= 1) & (wanted <= len(texts))
    columns = [whole(text, rows) for text in texts]
    chosen = pc.choose(pa.array(np.where(inside, wanted - 1, 0)), *columns)
    missing = nulls(place)
    if missing is not None:
        chosen = pc.if_else(pa.array(missing), pa.scalar(None, out), chosen)
    failed = ~inside
    return Checked(chosen, failed, f"there are {len(texts)} values") if failed.any() else chosen


def _find_in_set(out: Kind, text: Value, listed: Value) -> Any:
    return each(out, _found_in_set, text, listed)


def _found_in_set(text: str, listed: str) -> int:
    words = listed.split(",")
    return words.index(text) + 1 if text in words else 0


def _mask(out: Kind, a: Value, upper: Value, lower: Value, digit: Value, other: Value) -> Any:
    return each_row(out, _masked, a, upper, lower, digit, other)


def _masked(text: str | None, *marks: str | None) -> str | None:
    """A text with its letters, digits and other characters replaced; a mark that is NULL keeps them."""
    if text is None:
        return None
    return "".join(letter if (mark := marks[_class(letter)]) is None else mark for letter in text)


def _class(letter: str) -> int:
    return 0 if letter.isupper() else 1 if letter.islower() else 2 if letter.isdecimal() else 3


def _quote(out: Kind, a: Value) -> Any:
    return pc.binary_join_element_wise("'", pc.replace_substring(a, "'", "\\'"), "'", "")


KERNELS: Final[dict[str, Kernel]] = {
    "split_part": _split_part,
    "substring_index": _substring_index,
    "instr_from": _instr,
    "elt": _elt,
    "find_in_set": _find_in_set,
    "mask": _mask,
    "quote": _quote,
}
