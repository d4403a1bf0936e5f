"""Files that a text includes: ``.include "file"`` stands for the text of the file.

A path is relative to the file in which it is written; in a text that comes from no file, to the current directory. A
file with ``.once`` in it counts only where it is first included. A file that includes itself, alone or through others,
is refused, with the whole way around.

The included text is part of the text from then on: a database keeps it, and does not read the file again. Comments
mark where a file begins and where it goes on, so that errors name the file and the line in it.

>>> _lines = lines_of('p(1).\\n//@ 1 "q.dl"\\nq(1).\\nq(2).\\n//@ 2 ""\\nr(1).')
>>> [_lines.place(line, 1) for line in (1, 4, 6)]
[TextPlace(line=1, column=1, file=''), TextPlace(line=2, column=1, file='q.dl'), TextPlace(line=2, column=1, file='')]
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from everview.frontends.datalog.syntax import refused
from everview.frontends.rules.program import TextPlace
from everview.frontends.rules.texts import unescaped

_TEXT = r'"(?:[^"\\\n]|\\.)*"'
_WORD = re.compile(
    rf"//[^\n]*|/\*.*?\*/|{_TEXT}|(?<![\w?.])\.(?:include\s*(?P<file>{_TEXT})|(?P<once>once)\b)", re.DOTALL
)
_MARK = re.compile(r'^//@ (\d+) "(.*)"$', re.MULTILINE)
DEEPEST: Final = 64  # files inside each other


# -- texts with their files


def with_includes(text: str, folder: Path | None = None) -> str:
    """The text with all included files in place of their `.include` lines."""
    if ".include" not in text and ".once" not in text:
        return text
    return _Including().text(text, "", folder or Path(), ())


class _Including:
    """The files included so far."""

    def __init__(self) -> None:
        self._seen: set[Path] = set()

    def text(self, text: str, name: str, folder: Path, way: tuple[tuple[Path, str], ...]) -> str:
        parts: list[str] = []
        done = 0
        for word in _WORD.finditer(text):
            parts.append(text[done : word.start()])
            done = word.end()
            if word["once"]:
                parts.append(" " * len(word[0]))
            elif word["file"] is None:
                parts.append(word[0])
            else:
                place = lines_of(text).place(*_position(text, word.start()), name)
                inner = self._file(word["file"], folder, way, place)
                line, column = _position(text, done)
                parts.append(f'{inner}\n//@ {line} "{name}"\n{" " * (column - 1)}')
        return "".join([*parts, text[done:]])

    def _file(self, said: str, folder: Path, way: tuple[tuple[Path, str], ...], place: TextPlace) -> str:
        name = _name(said, place)
        path = folder / name
        try:
            whole = path.resolve()
            text = path.read_text(encoding="utf-8") if path.is_file() else None
        except (OSError, ValueError, RuntimeError) as error:
            raise refused(f'"{name}" cannot be included: {error}', place, "give a file of text in UTF-8") from None
        if text is None:
            hint = f"a path is relative to {folder.resolve()}, where this text is"
            raise refused(f'there is no file "{name}" to include', place, hint)
        is_again, self._seen = whole in self._seen, self._seen | {whole}
        if is_again and any(word["once"] for word in _WORD.finditer(text)):
            return ""
        _check_way(name, whole, way, place)
        inner = self.text(text, name, path.parent, (*way, (whole, name)))
        return f'\n//@ 1 "{name}"\n{inner}'


def _check_way(name: str, whole: Path, way: Sequence[tuple[Path, str]], place: TextPlace) -> None:
    paths = [path for path, _ in way]
    if whole in paths:
        around = " → ".join([*(shown for _, shown in way[paths.index(whole) :]), name])
        raise refused(
            f'"{name}" includes itself: {around}', place, "leave one of them out, or begin the file with .once"
        )
    if len(way) >= DEEPEST:
        raise refused(f"more than {DEEPEST} files include each other", place, "include them side by side")


def _name(said: str, place: TextPlace) -> str:
    try:
        name = unescaped(said)
    except (SyntaxError, ValueError):
        name = ""
    if not name or any(c in name for c in '"\n\r\0'):
        raise refused(f"{said} names no file", place, 'write .include "path/to/file.dl"')
    return name


def _position(text: str, letter: int) -> tuple[int, int]:
    """The line and the column of a character, from 1."""
    return text.count("\n", 0, letter) + 1, letter - text.rfind("\n", 0, letter)


# -- places in them


@dataclass(frozen=True)
class IncludedLines:
    """The lines of a text after which a file begins or goes on, with the file and the number of its next line."""

    after: tuple[int, ...] = ()
    files: tuple[tuple[str, int], ...] = ()

    def place(self, line: int, column: int, file: str = "") -> TextPlace:
        """The place of a line and column, by the file in which it stands."""
        number = bisect_right(self.after, line - 1) - 1
        if number < 0:
            return TextPlace(line, column, file)
        name, first = self.files[number]
        return TextPlace(line - self.after[number] + first - 1, column, name)


def lines_of(text: str) -> IncludedLines:
    """The marks of a text, which `with_includes` has left there."""
    if "\n//@ " not in f"\n{text}":
        return IncludedLines()
    marks = [(_position(text, mark.start())[0], mark[2], int(mark[1])) for mark in _MARK.finditer(text)]
    return IncludedLines(tuple(line for line, _, _ in marks), tuple((name, first) for _, name, first in marks))
