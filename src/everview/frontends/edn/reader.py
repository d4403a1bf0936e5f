"""The reader of EDN: from texts to forms with their places.

Commas are white space, ``;`` comments to the end of the line, ``#_`` leaves the next form out. Of tags there are
``#inst`` (a timestamp) and ``#uuid`` (text), and two of ours for what EDN cannot say: ``#ev/date``, ``#ev/bytes``.

>>> read('{:find [?a] ; the question\\n :where [[?a :to 2] #_[?a :to 3]]}')
{:find [?a], :where [[?a :to 2]]}
>>> read("[1 2")
Traceback (most recent call last):
everview.errors.EdnError: 1:1: this [ is never closed
  hint: a ] is missing
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import uuid
from bisect import bisect_right
from typing import Any, Final

from everview.errors import EdnError
from everview.frontends.edn.faults import refuse, shown_place
from everview.frontends.edn.forms import (
    AnyForm,
    KeywordForm,
    ListForm,
    MapForm,
    ScalarForm,
    SetForm,
    SymbolForm,
    VectorForm,
)
from everview.frontends.rules.program import TextPlace

_BLANK: Final = re.compile(r"(?:[\s,]+|;[^\n]*)+")
_TOKEN: Final = re.compile(r'[^\s,;"(){}\[\]]+')
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_INTEGER: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]*)N?")
_FLOAT: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?M")
_RATIO: Final = re.compile(r"[+-]?[0-9]+/[0-9]+")
_NAME: Final = re.compile(r"[^\d#'@~^`:%+\-.][^#@~^`]*|[+\-.](?:[^\d#@~^`][^#@~^`]*)?|%")
_KEYWORD: Final = re.compile(r":[^\s:/#@~^`][^\s#@~^`]*")
_SIMPLE: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
_CHARACTERS: Final = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t", "formfeed": "\f", "backspace": "\b"}
_WORDS: Final = {"nil": None, "true": True, "false": False}
_CLOSING: Final = {"(": ")", "[": "]", "{": "}", "#{": "}"}


def read(text: str) -> AnyForm:
    """Read a text with one form."""
    forms = read_all(text)
    if len(forms) != 1:
        what = "nothing" if not forms else f"{len(forms)} forms"
        place = forms[1].place if forms else TextPlace(1, 1)
        raise refuse(place, f"the text has {what} where one form is wanted", "write one map or vector")
    return forms[0]


def read_all(text: str) -> list[AnyForm]:
    """Read all forms of a text."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise EdnError(f"{text!r} is no text of EDN", hint="give a str")
    reader, forms = _Reader(text), list[AnyForm]()
    while not reader.ended():
        forms.extend(reader.maybe())
    return forms


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._lines = [0, *(m.end() for m in re.finditer("\n", text))]

    def ended(self) -> bool:
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        return self._at >= len(self._text)

    def maybe(self) -> tuple[AnyForm, ...]:
        """The next form, or none where one is left out."""
        if self._text.startswith("#_", self._at):
            start = self._at
            self._at += 2
            while not self.maybe_after("#_", start):
                pass
            return ()
        return (self._form(),)

    def maybe_after(self, what: str, start: int) -> tuple[AnyForm, ...]:
        if self.ended():
            raise self._error(start, f"nothing follows this {what}", "write a form after it")
        return self.maybe()

    def _form(self) -> AnyForm:
        text, start = self._text, self._at
        opening = "#{" if text.startswith("#{", start) else text[start]
        if opening in _CLOSING:
            return self._compound(opening)
        if opening == '"':
            return self._string()
        if opening == "\\":
            return self._character()
        if opening in ")]}":
            raise self._error(start, f"this {opening} closes nothing", "take it away, or open what it is to close")
        if text.startswith("##", start):
            return self._symbolic()
        return self._tagged() if opening == "#" else self._atom()

    # -- compound forms

    def _compound(self, opening: str) -> AnyForm:
        start, items = self._at, list[AnyForm]()
        self._at += len(opening)
        closing = _CLOSING[opening]
        while True:
            if self.ended():
                raise self._error(start, f"this {opening} is never closed", f"a {closing} is missing")
            if self._text[self._at] in ")]}":
                break
            items.extend(self.maybe())
        if self._text[self._at] != closing:
            letter = self._text[self._at]
            raise self._error(
                self._at, f"{letter} closes a {opening}", f"write {closing}, or close what is open inside"
            )
        self._at += 1
        return self._made(opening, tuple(items), start)

    def _made(self, opening: str, items: tuple[AnyForm, ...], start: int) -> AnyForm:
        place = self._place(start)
        if opening == "(":
            return ListForm(items, place=place)
        if opening == "[":
            return VectorForm(items, place=place)
        if opening == "{" and len(items) % 2:
            raise self._error(start, "a map has a value for every key", f"{items[-1]!r} is alone")
        keys = items[::2] if opening == "{" else items
        # By their texts: 1, 1.0 and true are equal to Python, and not here.
        texts = [repr(key) for key in keys]
        for key_place, key in enumerate(keys):
            if texts[key_place] in texts[:key_place]:
                what = "the key" if opening == "{" else "the element"
                raise EdnError(
                    f"{shown_place(key.place)}{what} {key!r} stands here twice", hint="leave one of them out"
                )
        if opening == "#{":
            return SetForm(items, place=place)
        return MapForm(tuple(zip(items[::2], items[1::2], strict=True)), place=place)

    # -- text

    def _string(self) -> ScalarForm:
        start = self._at
        return ScalarForm(self._quoted(), place=self._place(start))

    def _quoted(self) -> str:
        start = self._at
        match = _STRING.match(self._text, start)
        if match is None:
            raise self._error(start, "this text is never closed", 'a " is missing')
        self._at = match.end()
        return _ESCAPE.sub(lambda escape: self._escaped(escape, start), match.group(1))

    def _escaped(self, escape: re.Match[str], start: int) -> str:
        code = escape.group(1)
        if code[0] == "u" and len(code) == 5:
            return chr(int(code[1:], 16))
        if code not in _SIMPLE:
            at = start + 1 + escape.start()
            raise self._error(at, f"there is no escape \\{code}", r"the escapes are \n \t \r \b \f \" \\ and \u0041")
        return _SIMPLE[code]

    def _character(self) -> ScalarForm:
        start = self._at
        # The first character counts whatever it is: \( and \; are characters.
        rest = _TOKEN.match(self._text, start + 2)
        name = self._text[start + 1 : start + 2] + (rest.group() if rest else "")
        self._at = start + 1 + len(name)
        if len(name) == 1 and not name.isspace():
            return ScalarForm(name, place=self._place(start))
        if name in _CHARACTERS:
            return ScalarForm(_CHARACTERS[name], place=self._place(start))
        if re.fullmatch(r"u[0-9a-fA-F]{4}", name):
            return ScalarForm(chr(int(name[1:], 16)), place=self._place(start))
        raise self._error(start, f"\\{name} is no character", r"write \a, \newline, \space, \tab or \u0041")

    # -- tags

    def _symbolic(self) -> ScalarForm:
        start, token = self._at, self._token()
        number = {"##Inf": float("inf"), "##-Inf": float("-inf"), "##NaN": float("nan")}.get(token)
        if number is None:
            raise self._error(start, f"{token} is no number", "there are ##Inf, ##-Inf and ##NaN")
        return ScalarForm(number, place=self._place(start))

    def _tagged(self) -> AnyForm:
        start, tag = self._at, self._token()
        if tag not in _TAGS:
            hint = f"there are {', '.join(_TAGS)}"
            raise self._error(start, f"the tag {tag} is not known", hint)
        (form,) = self.maybe_after(tag, start) or (ScalarForm(None),)
        if not isinstance(form, ScalarForm) or not isinstance(form.value, str):
            raise self._error(start, f"{tag} is followed by text, not {form!r}", f'write {tag} "…"')
        try:
            return ScalarForm(_TAGS[tag](form.value), place=self._place(start))
        except ValueError as error:
            raise self._error(start, f'{tag} "{form.value}" is none: {error}', "see its format") from None

    # -- numbers and names

    def _token(self) -> str:
        match = _TOKEN.match(self._text, self._at)
        assert match is not None, "a token begins where no other form does"
        self._at = match.end()
        return match.group()

    def _atom(self) -> AnyForm:
        start, token = self._at, self._token()
        place = self._place(start)
        if token in _WORDS:
            return ScalarForm(_WORDS[token], place=place)
        if _INTEGER.fullmatch(token):
            return ScalarForm(int(token.rstrip("N")), place=place)
        if _DECIMAL.fullmatch(token):
            return ScalarForm(decimal.Decimal(token[:-1]), place=place)
        if _FLOAT.fullmatch(token) and not token.lstrip("+-").isdigit():
            return ScalarForm(float(token), place=place)
        if _RATIO.fullmatch(token):
            raise self._error(start, f"{token} is a ratio", "write a float or a decimal: 0.5, 0.5M")
        if _KEYWORD.fullmatch(token) and not token.endswith("/"):
            return KeywordForm(token, place=place)
        if _NAME.fullmatch(token):
            return SymbolForm(token, place=place)
        hint = "a number has no zeros before it" if token.lstrip("+-").isdigit() else "is a quote or a bracket missing?"
        raise self._error(start, f"{token} is neither a number nor a name", hint)

    # -- places

    def _place(self, letter: int) -> TextPlace:
        line = bisect_right(self._lines, letter)
        return TextPlace(line, letter - self._lines[line - 1] + 1)

    def _error(self, letter: int, message: str, hint: str) -> EdnError:
        return EdnError(f"{shown_place(self._place(letter))}{message}", hint=hint)


def _inst(text: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(text)
    return moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


_TAGS: Final[dict[str, Any]] = {
    "#inst": _inst,
    "#uuid": lambda text: str(uuid.UUID(text)),
    "#ev/date": dt.date.fromisoformat,
    "#ev/bytes": bytes.fromhex,
}
