"""Terms of rules as text: ``[1, [2, nil]]`` and ``$Add($Num(1), $Zero)``, taken apart and checked.

Symbols inside stand in quotes, with a backslash before a quote and a backslash, and ``\\n``, ``\\r`` and ``\\t``.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NoReturn

from everview.scalars.functions.kernel import Failed, Kernel, each
from everview.scalars.text_casts import float_text

_MARK: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\](),]', re.DOTALL)
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE: Final = re.compile(r"[^,\[\]()]*")
_NAME: Final = re.compile(r"\$[\w?.]+")
_SPACE: Final = re.compile(r"\s*")
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}
_LONGEST: Final = 60  # characters of a text in an error


def quoted(text: str) -> str:
    """A symbol as it stands inside of a term."""
    return '"' + "".join(_ESCAPES.get(c, c) for c in text) + '"'


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), text, flags=re.DOTALL)


def _part(text: str, branch: str, place: int, otherwise: str) -> str:
    """The text of one argument of a term, a symbol without its quotes; ``otherwise`` if another branch made it."""
    opening = "[" if branch == "[]" else f"{branch}("
    if not text.startswith(opening):
        return otherwise
    begin, depth, left = len(opening), 0, place
    for mark in _MARK.finditer(text, begin):
        if mark[0] in "[(":
            depth += 1
        elif mark[0] in "])" and depth:
            depth -= 1
        elif not depth and mark[0] in ",])":
            if not left:
                part = text[begin : mark.start()].strip()
                return _unquoted(part[1:-1]) if part.startswith('"') else part
            if mark[0] != ",":
                return otherwise
            left, begin = left - 1, mark.end()
    return otherwise


# -- what is given


def _checked(text: str, said: str) -> str:
    """The term of a text, written as terms are; fails if it is none of the type."""
    return _Reading(text, _spec(said)).term()


@lru_cache(maxsize=64)
def _spec(said: str) -> dict[str, Any]:
    """A specification of types, as rules write them."""
    try:
        spec: dict[str, Any] = json.loads(said)
        branches = [kinds for type_ in spec["types"].values() for kinds in type_.values()]
        assert spec["root"] in spec["types"] and all(isinstance(kinds, list) for kinds in branches)
    except (ValueError, TypeError, KeyError, AttributeError, AssertionError):
        raise Failed("term_checked is for rules: its second argument is no specification of types") from None
    return spec


class _Frame:
    """A term whose arguments are being read."""

    def __init__(self, opening: str, kinds: list[Any], closing: str) -> None:
        self.opening, self.kinds, self.closing = opening, kinds, closing
        self.parts: list[str] = []


class _Reading:
    """The reading of one text, with a stack of its own, as terms may be deep."""

    def __init__(self, text: str, spec: dict[str, Any]) -> None:
        self._text, self._types, self._root = text, spec["types"], spec["root"]
        self._at = 0

    def term(self) -> str:
        frames: list[_Frame] = []
        kind: Any = f"@{self._root}"
        while True:
            self._skip()
            begun = self._begun(kind)
            if isinstance(begun, _Frame):
                frames.append(begun)
                kind = begun.kinds[0]
                continue
            done: str | None = begun
            while done is not None and frames:
                frame = frames[-1]
                frame.parts.append(done)
                self._skip()
                if len(frame.parts) < len(frame.kinds):
                    self._take(",")
                    kind, done = frame.kinds[len(frame.parts)], None
                else:
                    self._take(frame.closing)
                    done = f"{frame.opening}{', '.join(frame.parts)}{frame.closing}"
                    frames.pop()
            if done is not None:
                self._skip()
                if self._at < len(self._text):
                    self._fail("the end")
                return done

    def _begun(self, kind: Any) -> _Frame | str:
        """A value without arguments, or the beginning of one with them."""
        if isinstance(kind, list):
            self._take("[")
            return _Frame("[", kind, "]")
        if not kind.startswith("@"):
            return self._scalar(kind)
        branches = self._types[kind[1:]]
        if "[]" in branches:
            if self._text.startswith("nil", self._at):
                self._at += 3
                return "nil"
            self._take("[")
            return _Frame("[", branches["[]"], "]")
        name = _NAME.match(self._text, self._at)
        if name is None or name[0] not in branches:
            self._fail(f"one of {', '.join(branches)}")
        self._at = name.end()
        kinds = branches[name[0]]
        if kinds:
            self._take("(")
            return _Frame(f"{name[0]}(", kinds, ")")
        if self._text.startswith("()", self._at):
            self._at += 2
        return name[0]

    def _scalar(self, kind: str) -> str:
        text = _QUOTED.match(self._text, self._at) if kind == "STRING" else None
        if text is not None:
            self._at = text.end()
            return quoted(_unquoted(text[1]))
        bare = _BARE.match(self._text, self._at)
        assert bare is not None, "a text may be empty"
        try:
            value = _SCALARS[kind](bare[0].strip())
        except (ValueError, OverflowError):
            self._fail(f"a value of type {kind}")
        self._at = bare.end()
        return value

    def _skip(self) -> None:
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space else self._at

    def _take(self, mark: str) -> None:
        if not self._text.startswith(mark, self._at):
            self._fail(f'"{mark}"')
        self._at += len(mark)

    def _fail(self, wanted: str) -> NoReturn:
        shown = self._text if len(self._text) <= _LONGEST else f"{self._text[:_LONGEST]}…"
        raise Failed(f"{shown} is no {self._root}: {wanted} should stand at character {self._at + 1}")


def _whole(bits: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        number = int(text)
        if not -(1 << bits) <= number < 1 << bits:
            raise ValueError(text)
        return str(number)

    return read


def _truth(text: str) -> str:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text


_SCALARS: Final[dict[str, Callable[[str], str]]] = {
    "TINYINT": _whole(7),
    "SMALLINT": _whole(15),
    "INTEGER": _whole(31),
    "BIGINT": _whole(63),
    "DOUBLE": lambda text: float_text(float(text) + 0.0),  # -0.0 is 0.0
    "BOOLEAN": _truth,
    "DATE": lambda text: dt.date.fromisoformat(text).isoformat(),
    "STRING": quoted,
}

KERNELS: Final[dict[str, Kernel]] = {
    "term_quoted": lambda out, a: each(out, quoted, a),
    "term_part": lambda out, *given: each(out, _part, *given),
    "term_checked": lambda out, *given: each(out, _checked, *given),
}
