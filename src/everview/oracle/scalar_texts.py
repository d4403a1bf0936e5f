"""The meaning of functions of text and bytes, one value at a time; regular expressions are Python's own."""

from __future__ import annotations

import base64
import decimal
import hashlib
import math
import re
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from everview.errors import BadPattern
from everview.oracle.scalar_casts import NoValue


def _initcap(text: str) -> str:
    title, start = "", True
    for letter in text:
        title += letter.title() if start else letter.lower()
        start = letter == " "
    return title


def _trim(left: bool, right: bool) -> Callable[..., str]:
    def run(text: str, letters: str = " ") -> str:
        while left and text and text[0] in letters:
            text = text[1:]
        while right and text and text[-1] in letters:
            text = text[:-1]
        return text

    return run


def _replace(text: str, old: str, new: str = "") -> str:
    return new.join(text.split(old)) if old else text


def _translate(text: str, old: str, new: str) -> str:
    translated = ""
    for letter in text:
        place = old.find(letter)
        translated += letter if place < 0 else new[place : place + 1]
    return translated


def _substring(text: Any, start: int, size: int | None = None) -> Any:
    places = range(1, len(text) + 1)
    begin = start if start > 0 else len(text) + start + 1 if start < 0 else 1
    end = len(text) if size is None else begin + size - 1
    kept = [place for place in places if begin <= place <= end]
    return text[kept[0] - 1 : kept[-1]] if kept else text[:0]


_LONGEST: Final = 1 << 28  # bytes of a text


def _require_room(size: int) -> None:
    if size > _LONGEST:
        raise NoValue("the text is too long")


def _repeat(text: str, times: int) -> str:
    _require_room(len(text.encode()) * times)
    return "".join(text for _ in range(times))


def _pad(left: bool) -> Callable[..., Any]:
    def run(text: Any, size: int, pad: Any = None) -> Any:
        pad = (b"\0" if isinstance(text, bytes) else " ") if pad is None else pad
        if size <= len(text):
            return text[: max(size, 0)]
        _require_room(size if pad else 0)
        filling = text[:0]
        while pad and len(filling) < size - len(text):
            filling += pad
        filling = filling[: size - len(text)]
        return filling + text if left else text + filling

    return run


def _concat(*parts: Any) -> Any:
    if not parts:
        return ""
    joined = parts[0]
    for part in parts[1:]:
        joined = joined + part
    return joined


def _concat_ws(separator: str | None, *words: Any) -> str | None:
    if separator is None:
        return None
    flat: list[str] = []
    for word in words:
        flat += [w for w in word if w is not None] if isinstance(word, list) else [] if word is None else [word]
    return separator.join(flat)


def _locate(part: str | None, text: str | None, start: int | None = 1) -> int | None:
    if start is None:
        return 0
    if part is None or text is None:
        return None
    if start < 1:
        return 0
    if part == "":
        return 1
    return next((place + 1 for place in range(start - 1, len(text) + 1) if text[place : place + len(part)] == part), 0)


def _like(text: str, pattern: str, escape: str = "\\") -> bool:
    """Whether a text is like a pattern, followed letter by letter."""
    tokens: list[tuple[str, bool]] = []
    letters = list(pattern)
    while letters:
        letter = letters.pop(0)
        if letter == escape:
            if not letters or letters[0] not in ("%", "_", escape):
                raise BadPattern(f"{pattern!r}", hint="the escape stands before %, _ or itself")
            tokens.append((letters.pop(0), True))
        else:
            tokens.append((letter, False))
    reached = {0}
    for letter, plain in tokens:
        if letter == "%" and not plain:
            reached = set(range(min(reached), len(text) + 1)) if reached else reached
        else:
            any_letter = letter == "_" and not plain
            reached = {place + 1 for place in reached if place < len(text) and (any_letter or text[place] == letter)}
    return len(text) in reached


_RE2: Final = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)|(?P<end>\\z)|\\x\{(?P<code>[0-9a-fA-F]+)\}|(?P<named>\(\?<(?![=!]))"
    r"|\[:(?P<posix>\w+):\]|\\.",
    re.DOTALL,
)
_POSIX: Final = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "word": "a-zA-Z0-9_",
    "space": r"\t\n\v\f\r ", "blank": r"\t ", "xdigit": "0-9a-fA-F", "punct": "!-/:-@\\[-`{-~",
}  # fmt: skip


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of RE2 as Python reads it; one that has no such form is refused."""

    def python(match: re.Match[str]) -> str:
        if match["quoted"] is not None:
            return re.escape(match["quoted"])
        if match["code"] is not None:
            return re.escape(chr(int(match["code"], 16)))
        if match["posix"] in _POSIX:
            return _POSIX[match["posix"]]
        return r"\Z" if match["end"] else "(?P<" if match["named"] else match.group()

    try:
        return re.compile(_RE2.sub(python, pattern), re.ASCII)
    except re.error as error:
        hint = "Python, which judges, does not read all that RE2 does: write it without Unicode classes and inner flags"
        raise BadPattern(f"the regular expression {pattern!r} cannot be judged: {error}", hint=hint) from None


def _rlike(text: str, pattern: str) -> bool:
    return _compiled(pattern).search(text) is not None


def _regexp_replace(text: str, pattern: str, by: str) -> str:
    def expanded(match: re.Match[str]) -> str:
        return re.sub(r"\\(.)|\$(\d)", lambda m: m.group(1) or match.group(int(m.group(2))) or "", by)

    return _compiled(pattern).sub(expanded, text)


def _regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    match = _compiled(pattern).search(text)
    return "" if match is None else match.group(group) or ""


def _regexp_extract_all(text: str, pattern: str, group: int) -> list[str]:
    return [match.group(group) or "" for match in _compiled(pattern).finditer(text)]


def _split(text: str, pattern: str, limit: int = -1) -> list[str]:
    parts: list[str] = []
    begin = 0
    for match in _compiled(pattern).finditer(text):
        if limit > 0 and len(parts) == limit - 1:
            break
        if match.end() == 0 or (pattern == "" and match.end() == len(text)):
            continue
        parts.append(text[begin : match.start()])
        begin = match.end()
    return [*parts, text[begin:]]


def _array_join(items: list[Any], separator: str, instead: str | None = None) -> str:
    kept = [instead if item is None else item for item in items]
    return separator.join(item for item in kept if item is not None)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _sha2(value: str | bytes, bits: int) -> str | None:
    kinds = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}
    return kinds[bits](_bytes(value)).hexdigest() if bits in kinds else None


def _hex(value: Any) -> str:
    if isinstance(value, int):
        return format(value % 2**64, "X")
    return "".join(format(byte, "02X") for byte in _bytes(value))


def _unhex(text: str) -> bytes | None:
    if any(c not in "0123456789abcdefABCDEF" for c in text):
        return None
    text = "0" * (len(text) % 2) + text
    return bytes(int(text[place : place + 2], 16) for place in range(0, len(text), 2))


def _unbase64(text: str) -> bytes | None:
    kept = re.sub(r"[^A-Za-z0-9+/]", "", text)
    if len(kept) % 4 == 1:
        return None
    return base64.b64decode(kept + "=" * (-len(kept) % 4))


def _format_number(value: Any, digits: int) -> str | None:
    if digits < 0:
        return None
    if digits > 340:
        raise NoValue("too many digits")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "∞" if value > 0 else "-∞"
    with decimal.localcontext(decimal.Context(prec=800)):
        return f"{round(decimal.Decimal(value), digits):,.{digits}f}"


TEXTS: Final[Mapping[str, Callable[..., Any]]] = {
    "upper": str.upper,
    "lower": str.lower,
    "initcap": _initcap,
    "trim": _trim(left=True, right=True),
    "ltrim": _trim(left=True, right=False),
    "rtrim": _trim(left=False, right=True),
    "replace": _replace,
    "translate": _translate,
    "length": len,
    "octet_length": lambda value: len(_bytes(value)),
    "bit_length": lambda value: 8 * len(_bytes(value)),
    "substring": _substring,
    "left": lambda text, n: text[:n] if n > 0 else text[:0],
    "right": lambda text, n: text[max(len(text) - n, 0) :] if n > 0 else text[:0],
    "lpad": _pad(left=True),
    "rpad": _pad(left=False),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "instr": lambda text, part: _locate(part, text),
    "locate": _locate,
    "reverse": lambda items: items[::-1],
    "repeat": _repeat,
    "space": lambda n: _repeat(" ", n),
    "starts_with": lambda text, part: text[: len(part)] == part,
    "ends_with": lambda text, part: not part or text[-len(part) :] == part,
    "contains": lambda text, part: part in text,
    "like": _like,
    "ilike": lambda text, pattern, escape="\\": _like(text.lower(), pattern.lower(), escape),
    "rlike": _rlike,
    "regexp_replace": _regexp_replace,
    "regexp_extract": _regexp_extract,
    "regexp_count": lambda text, pattern: len(_compiled(pattern).findall(text)),
    "regexp_instr": lambda text, pattern: m.start() + 1 if (m := _compiled(pattern).search(text)) else 0,
    "regexp_extract_all": _regexp_extract_all,
    "split": _split,
    "array_join": _array_join,
    "ascii": lambda text: ord(text[0]) if text else 0,
    "chr": lambda n: "" if n < 0 else chr(n % 256),
    "md5": lambda value: hashlib.md5(_bytes(value)).hexdigest(),
    "sha1": lambda value: hashlib.sha1(_bytes(value)).hexdigest(),
    "sha2": _sha2,
    "crc32": lambda value: zlib.crc32(_bytes(value)),
    "hex": _hex,
    "unhex": _unhex,
    "base64": lambda value: base64.b64encode(_bytes(value)).decode(),
    "unbase64": _unbase64,
    "format_number": _format_number,
}
