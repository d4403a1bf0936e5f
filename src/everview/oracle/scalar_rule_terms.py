"""Terms of rules as text, as the oracle reads them: a text is split into tokens, and these have a meaning."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue, cast_value
from everview.types import DOUBLE, STRING, parse_type

_WRITTEN: Final = {"n": "\n", "r": "\r", "t": "\t"}


def _quoted(symbol: str) -> str:
    text = symbol.replace("\\", "\\\\").replace('"', '\\"')
    for letter, character in _WRITTEN.items():
        text = text.replace(character, f"\\{letter}")
    return f'"{text}"'


def _tokens(text: str) -> Iterator[str]:
    """Marks, symbols in quotes, as they stand, and what is between them."""
    place = 0
    while place < len(text):
        end = place + 1
        if text[place] == '"':
            while end < len(text) and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            end += 1
        elif text[place] not in "[](),":
            while end < len(text) and text[end] not in '[](),"':
                end += 1
        if text[place:end].strip():
            yield text[place:end].strip()
        place = end


def _symbol(token: str) -> str:
    symbol, place = "", 1
    while place < len(token) - 1:
        if token[place] == "\\":
            place += 1
            symbol += _WRITTEN.get(token[place], token[place])
        else:
            symbol += token[place]
        place += 1
    return symbol


def _part(text: str, branch: str, place: int, otherwise: str) -> str:
    """One argument of a term: the tokens at depth 1 between commas, as they are written in the text."""
    begins = "[" if branch == "[]" else branch + "("
    if text[: len(begins)] != begins:
        return otherwise
    arguments: list[list[str]] = [[]]
    depth = 0
    for token in _tokens(text[len(begins) - 1 :]):
        depth += token in "[(" and token != ""
        if depth == 1 and token == ",":
            arguments.append([])
        elif depth > 1 or token not in ("[", "(", "]", ")"):
            arguments[-1].append(", " if token == "," else token)
        depth -= token in "])" and token != ""
    if place >= len(arguments):
        return otherwise
    part = "".join(arguments[place])
    return _symbol(part) if part[:1] == '"' else part


def _checked(text: str, said: str) -> str:
    """A term of a type, as terms are written; what is none is an error."""
    spec = json.loads(said)
    tokens = list(_tokens(text))[::-1]
    written: list[str] = []
    waiting: list[Any] = [f"@{spec['root']}"]  # kinds to read, and what is to be written between them, as ("text",)
    while waiting:
        wanted = waiting.pop()
        if isinstance(wanted, tuple):
            mark, shown = wanted
            _require(tokens and tokens.pop() == mark, text)
            written.append(shown)
        elif isinstance(wanted, list):
            waiting += _row("[", wanted, "]")
        elif wanted[0] == "@":
            _term(spec["types"][wanted[1:]], tokens, written, waiting, text)
        else:
            _require(bool(tokens), text)
            written.append(_scalar(tokens.pop(), wanted, text))
    _require(not tokens, text)
    return "".join(written)


def _row(opening: str, kinds: list[Any], closing: str) -> list[Any]:
    """A row of kinds with marks around and between them, the first one last."""
    parts: list[Any] = [(opening, opening)]
    for place, kind in enumerate(kinds):
        parts += [(",", ", ")] if place else []
        parts.append(kind)
    return [*parts, (closing, closing)][::-1]


def _term(
    branches: Mapping[str, list[Any]], tokens: list[str], written: list[str], waiting: list[Any], text: str
) -> None:
    _require(bool(tokens), text)
    if "[]" in branches:
        if tokens[-1] == "nil":
            written.append(tokens.pop())
        else:
            waiting += _row("[", branches["[]"], "]")
        return
    name = tokens.pop()
    _require(name in branches, text)
    written.append(name)
    if branches[name]:
        waiting += _row("(", branches[name], ")")
    elif tokens[-2:] == [")", "("]:
        del tokens[-2:]


def _scalar(token: str, type_: str, text: str) -> str:
    if type_ == "STRING":
        return _quoted(_symbol(token) if token[0] == '"' else token)
    _require(token not in ("[", "]", "(", ")", ","), text)
    value = cast_value(token, STRING, parse_type(type_))
    return cast_value(value + 0.0 if parse_type(type_) == DOUBLE else value, parse_type(type_), STRING)


def _require(holds: object, text: str) -> None:
    if not holds:
        raise NoValue(f"{text} is no term of its type")


RULE_TERMS: Final[Mapping[str, Callable[..., Any]]] = {
    "term_quoted": _quoted,
    "term_part": _part,
    "term_checked": _checked,
}
