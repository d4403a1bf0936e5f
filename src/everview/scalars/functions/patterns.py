"""LIKE and regular expressions. Spark's are Java's, ours RE2's: a pattern that the two read differently is refused.

RE2 has no look-around and no back references, and so never takes exponential time. What remains different is in the
reference of the functions: ``$`` is the very end of the text, and ``.`` is everything but the newline.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import BadPattern
from everview.scalars.functions.kernel import Kernel, Kind, Value, constant, each, numbers
from everview.scalars.functions.strings import LONGEST, ascii_only, lower, within


def _like(out: Kind, a: Value, pattern: Value, escape: Value | None = None) -> Any:
    mark = "\\" if escape is None else escape.as_py()
    return pc.match_substring_regex(a, pattern=like_regex(pattern.as_py(), mark))


def _ilike(out: Kind, a: Value, pattern: Value, escape: Value | None = None) -> Any:
    lowered = lower(pa.string(), pa.array([pattern.as_py()]))[0]
    return _like(out, lower(pa.string(), a), lowered, escape)


@cache
def like_regex(pattern: str, escape: str) -> str:
    """A LIKE pattern as a regular expression; raises `BadPattern`.

    >>> like_regex("a%.b", "!")
    '^(?s:a.*\\\\.b)$'
    """
    if len(escape) != 1:
        raise BadPattern(f"the escape of LIKE is {escape!r}", hint="it is one character")
    parts: list[str] = []
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            following = next(letters, None)
            if following is None or following not in ("_", "%", escape):
                hint = f"{escape} may stand before %, _ and itself"
                raise BadPattern(f"{pattern!r} is no pattern of LIKE with the escape {escape!r}", hint=hint)
            parts.append(_quoted(following))
        else:
            parts.append({"%": ".*", "_": "."}.get(letter) or _quoted(letter))
    return f"^(?s:{''.join(parts)})$"


def _quoted(letter: str) -> str:
    return letter if letter.isalnum() or not letter.isascii() or letter in " _\n\t\r" else "\\" + letter


_JAVA_ONLY: Final = re.compile(
    r"""(?<!\\)(?:\\\\)*(?:
        (?P<around>\(\?<?[=!]) | (?P<atomic>\(\?>) | (?P<back>\\[1-9]|\\k<) | (?P<possessive>[*+?}]\+)
        | (?P<both>&&) | (?P<escape>\\[hHRXZGcCe0]) | (?P<flag>\(\?[a-zA-Z]*U)
    )""",
    re.VERBOSE,
)
_WHY: Final = {
    "around": "look-around is not supported",
    "atomic": "atomic groups are not supported",
    "back": "back references are not supported",
    "possessive": "possessive quantifiers are not supported",
    "both": "intersections of character classes are not supported",
    "escape": "this escape is not supported",
    "flag": "the flag U is not supported",
}


@cache
def regex(pattern: str) -> str:
    """A regular expression that means the same here as in Spark; raises `BadPattern`."""
    match = _JAVA_ONLY.search(pattern)
    if match is not None:
        raise BadPattern(f"the regular expression {pattern!r}: {_WHY[match.lastgroup or '']}", hint=_HINT)
    if re.search(r"(?<!\\)\[[^\]]*(?<!\\)\[(?!:)", pattern):
        raise BadPattern(f"the regular expression {pattern!r}: a class inside a class is not supported", hint=_HINT)
    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)
    except pa.ArrowInvalid as error:
        raise BadPattern(f"the regular expression {pattern!r}: {error}", hint=_HINT) from None
    return pattern


_HINT: Final = "regular expressions are RE2's"


def _rlike(out: Kind, a: Value, pattern: Value) -> Any:
    return pc.match_substring_regex(a, pattern=regex(pattern.as_py()))


def _regexp_replace(out: Kind, a: Value, pattern: Value, by: Value) -> Any:
    expression = regex(pattern.as_py())
    replacement = _replacement(by.as_py(), group_count(expression))
    if _matches_nothing(expression):
        # After a match RE2 does not look for an empty one at the same place; Java and Python do.
        return each(out, lambda text: _compiled(expression).sub(_python(replacement), text), a)
    sizes = numbers(pc.binary_length(a)).astype(np.int64)
    added = len(replacement.encode())
    if ((sizes + 1) * added).sum() > LONGEST:  # groups give at most the text itself again
        matches = numbers(pc.count_substring_regex(a, pattern=expression)).astype(np.int64)
        sizes = sizes * (1 + replacement.count("\\")) + matches * added
    return within(sizes, lambda: pc.replace_substring_regex(a, pattern=expression, replacement=replacement), out)


def _matches_nothing(pattern: str) -> bool:
    return pc.match_substring_regex(pa.array([""]), pattern=f"^(?:{pattern})$")[0].as_py()


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.ASCII)
    except re.error as error:
        raise BadPattern(f"the regular expression {pattern!r} is not read here: {error}", hint=_HINT) from None


def _python(replacement: str) -> str:
    return re.sub(r"\\(\d)", r"\\g<\1>", replacement)


@cache
def _replacement(text: str, groups: int) -> str:
    """Java's ``$1`` and ``\\$`` as RE2 writes them."""
    parts: list[str] = []
    place = 0
    while place < len(text):
        letter = text[place]
        place += 1
        if letter == "\\":
            if place == len(text):
                raise BadPattern(f"the replacement {text!r} ends in a backslash", hint="write two")
            parts.append(_literal(text[place]))
            place += 1
        elif letter == "$":
            group, place = _group(text, place, groups)
            parts.append(f"\\{group}")
        else:
            parts.append(letter)
    return "".join(parts)


def _literal(letter: str) -> str:
    return "\\\\" if letter == "\\" else letter


def _group(text: str, place: int, groups: int) -> tuple[int, int]:
    """The number of a group, of as many digits as make an existing group, and the place after it."""
    if place == len(text) or not text[place].isdigit():
        raise BadPattern(f"the replacement {text!r}", hint="$ stands before a group's number; write \\$ for itself")
    number = int(text[place])
    place += 1
    while place < len(text) and text[place].isdigit() and number * 10 + int(text[place]) <= groups:
        number, place = number * 10 + int(text[place]), place + 1
    if number > min(groups, 9):
        raise BadPattern(f"the replacement {text!r} names group {number}", hint=f"there are {groups}, and 9 at most")
    return number, place


_OPENING: Final = re.compile(r"\\.|\[(?:\\.|\[:\w+:\]|[^\]\\])*\]|\((?!\?)|\(\?P?<(?![=!])", re.DOTALL)


def group_count(pattern: str) -> int:
    """The number of groups of a regular expression."""
    return sum(m.group().startswith("(") for m in _OPENING.finditer(pattern))


@cache
def _named(pattern: str) -> str:
    """The pattern with every group named by its number, and the whole as group 0."""
    count = 0

    def name(match: re.Match[str]) -> str:
        nonlocal count
        if not match.group().startswith("("):
            return match.group()
        count += 1
        return f"(?P<g{count}>" if match.group() == "(" else match.group()

    named = _OPENING.sub(name, pattern)
    if re.search(r"\(\?P?<(?!g\d)", named):
        raise BadPattern(f"the regular expression {pattern!r}: named groups are not supported", hint="count them")
    return f"(?P<g0>{named})"


def _regexp_extract(out: Kind, a: Value, pattern: Value, group: Value | None = None) -> Any:
    number = 1 if group is None else group.as_py()
    if number is None:
        return pa.nulls(len(a), out)
    expression = regex(pattern.as_py())
    if not 0 <= number <= group_count(expression):
        raise BadPattern(f"{expression!r} has no group {number}", hint=f"it has {group_count(expression)}")
    parts = pc.extract_regex(a, pattern=_named(expression))
    part = pc.struct_field(parts, f"g{number}").fill_null("")
    return pc.if_else(pc.is_valid(a), part, pa.scalar(None, out))


def _split(out: Kind, a: Value, pattern: Value, limit: Value | None = None) -> Any:
    text = pattern.as_py()
    most = -1 if limit is None else limit.as_py()
    if most is None:
        return pa.nulls(len(a), out)
    splits = most - 1 if most > 0 else -1
    if text and not re.search(r"[\\.\[\]{}()*+?^$|]", text):
        return pc.split_pattern(a, pattern=text, max_splits=splits if splits else 0) if splits != 0 else _single(out, a)
    expression = regex(text)
    if splits == 0:
        return _single(out, a)
    if _matches_nothing(expression):
        return each(out, lambda value: _split_empty(value, text, splits), a)
    return pc.split_pattern_regex(a, pattern=expression, max_splits=splits)


def _single(out: Kind, a: Value) -> Value:
    return each(out, lambda value: [value], a)


def _split_empty(value: str, pattern: str, splits: int) -> list[str]:
    """Split by a pattern that may match the empty text: between characters, but not before the first."""
    parts: list[str] = []
    begin = 0
    for match in _compiled(pattern).finditer(value):
        if splits >= 0 and len(parts) == splits:
            break
        if match.end() == 0 or (not pattern and match.start() == len(value)):
            continue
        parts.append(value[begin : match.start()])
        begin = match.end()
    return [*parts, value[begin:]]


def _regexp_count(out: Kind, a: Value, pattern: Value) -> Any:
    expression = regex(pattern.as_py())
    if _matches_nothing(expression):
        return each(out, lambda text: sum(1 for _ in _compiled(expression).finditer(text)), a)
    return pc.count_substring_regex(a, pattern=expression)


def _regexp_instr(out: Kind, a: Value, pattern: Value) -> Any:
    """The place of the first match, from 1; 0 if there is none."""
    expression = regex(pattern.as_py())
    if ascii_only(a):
        return pc.add(pc.find_substring_regex(a, pattern=expression), pa.scalar(1, pa.int32()))
    begun = pc.struct_field(pc.extract_regex(a, pattern=f"^(?P<before>(?s:.*?)){_named(expression)}"), "before")
    place = pc.add(pc.utf8_length(begun), pa.scalar(1, pa.int32())).fill_null(0)
    return pc.if_else(pc.is_valid(a), place, pa.scalar(None, out))


def _regexp_extract_all(out: Kind, a: Value, pattern: Value, group: Value) -> Any:
    number, expression = group.as_py(), regex(pattern.as_py())
    if number is None:
        return pa.nulls(len(a), out)
    if not 0 <= number <= group_count(expression):
        raise BadPattern(f"{expression!r} has no group {number}", hint=f"it has {group_count(expression)}")
    return each(out, lambda text: [match[number] or "" for match in _compiled(expression).finditer(text)], a)


def _patterned(kernel: Kernel, *positions: int) -> Kernel:
    """The kernel with these arguments allowed to be columns, of which few values are different."""
    for position in positions:
        kernel = _optional(position, kernel)
    return kernel


def _optional(position: int, kernel: Kernel) -> Kernel:
    chosen = constant(position, kernel)
    return lambda out, *arguments: (chosen if len(arguments) > position else kernel)(out, *arguments)


KERNELS: Final[dict[str, Kernel]] = {
    "like": _patterned(_like, 1, 2),
    "ilike": _patterned(_ilike, 1, 2),
    "rlike": _patterned(_rlike, 1),
    "regexp_replace": _patterned(_regexp_replace, 1, 2),
    "regexp_extract": _patterned(_regexp_extract, 1, 2),
    "regexp_count": _patterned(_regexp_count, 1),
    "regexp_instr": _patterned(_regexp_instr, 1),
    "regexp_extract_all": _patterned(_regexp_extract_all, 1, 2),
    "split": _patterned(_split, 1, 2),
}
# A bad pattern raises.
FAILING: Final = frozenset(KERNELS)
