"""EDN as data: forms are frozen values that know their places in a text.

A keyword is a value, too: the text that it is written as, colon and all. Forms are equal if they mean the same,
wherever they stand.

>>> VectorForm((ScalarForm(1), KeywordForm(":to"), SymbolForm("?b")))
[1 :to ?b]
>>> form_of([1, ":to", {"name": "Ada"}])
[1 ":to" {"name" "Ada"}]
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from everview.errors import EdnError, shown
from everview.frontends.rules.program import NOWHERE, TextPlace


@dataclass(frozen=True, slots=True, repr=False)
class Form:
    """A form: anything that EDN can write."""

    def __repr__(self) -> str:
        return written(self)


@dataclass(frozen=True, slots=True, repr=False)
class ScalarForm(Form):
    """nil, a truth value, a number, text, a character, a moment or a UUID, as Python has it."""

    value: Any
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class KeywordForm(Form):
    """``:name`` or ``:space/name``, with its colon."""

    name: str
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class SymbolForm(Form):
    """``name``, ``?x``, ``$``, ``%``."""

    name: str
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class ListForm(Form):
    """``(…)``."""

    items: tuple[AnyForm, ...]
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class VectorForm(Form):
    """``[…]``."""

    items: tuple[AnyForm, ...]
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class SetForm(Form):
    """``#{…}``."""

    items: tuple[AnyForm, ...]
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class MapForm(Form):
    """Keys with their values, in the order in which they are written."""

    entries: tuple[tuple[AnyForm, AnyForm], ...]
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)

    def get(self, key: str) -> AnyForm | None:
        """The value of a keyword, which may be text where the map is Python's."""
        return next((value for name, value in self.entries if name in (KeywordForm(key), ScalarForm(key))), None)


AnyForm = ScalarForm | KeywordForm | SymbolForm | ListForm | VectorForm | SetForm | MapForm


# -- Python values

_SCALARS = frozenset((int, str, float, bool, type(None)))  # most of them, which need no further look


def form_of(value: Any) -> AnyForm:
    """A Python value as a form; sequences are vectors."""
    if type(value) in _SCALARS:
        return ScalarForm(value)
    match value:
        case ScalarForm() | KeywordForm() | SymbolForm() | ListForm() | VectorForm() | SetForm() | MapForm():
            return value
        case Mapping():
            return MapForm(tuple((form_of(k), form_of(v)) for k, v in value.items()))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list() | tuple():
            return VectorForm(tuple(map(form_of, value)))  # pyright: ignore[reportUnknownArgumentType]
        case Set():
            return SetForm(tuple(map(form_of, value)))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return ScalarForm(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return _moment(value)
    if value is None or isinstance(value, bool | int | float | str | bytes | decimal.Decimal | dt.date):
        return value
    if isinstance(value, uuid.UUID):
        return str(value)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a number of NumPy's
        return _plain(value.item())
    raise EdnError(
        f"{shown(value)} of type {type(value).__name__} is no value of EDN",
        hint="give numbers, text, bytes, dates, UUIDs, or lists and dicts of them",
    )


def _moment(value: dt.datetime) -> dt.datetime:
    """Refuse a moment that UTC cannot express: NaT of pandas, or one that leaves the years 1 to 9999."""
    try:
        moment = value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        moment = None
    if moment is None or moment != moment:
        raise EdnError(f"{shown(value)} is no moment of the years 1 to 9999 in UTC", hint="give another")
    return value


def python(form: AnyForm) -> Any:
    """A form as Python has it: vectors, lists and sets as tuples, maps as dicts, keywords as text."""
    match form:
        case ScalarForm(value):
            return value
        case KeywordForm(name) | SymbolForm(name):
            return name
        case MapForm(entries):
            return {python(key): python(value) for key, value in entries}
        case _:
            return tuple(map(python, form.items))


# -- as text

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def written(form: Form) -> str:
    """Write a form as text, which reads as an equal form."""
    match form:
        case ScalarForm(value):
            return _scalar(value)
        case KeywordForm(name) | SymbolForm(name):
            return name
        case ListForm(items):
            return f"({_spaced(items)})"
        case VectorForm(items):
            return f"[{_spaced(items)}]"
        case SetForm(items):
            return f"#{{{_spaced(items)}}}"
        case MapForm(entries):
            return "{" + ", ".join(f"{written(key)} {written(value)}" for key, value in entries) + "}"
        case _:
            raise AssertionError(f"{type(form)} is no form")


def _spaced(items: tuple[AnyForm, ...]) -> str:
    return " ".join(map(written, items))


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "nil"
        case bool():
            return str(value).lower()
        case str():
            return '"' + "".join(_ESCAPES.get(c, c) for c in value) + '"'
        case float() if math.isnan(value):
            return "##NaN"
        case float() if math.isinf(value):
            return "##Inf" if value > 0 else "##-Inf"
        case decimal.Decimal():
            return f"{value:f}M"
        case dt.datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return f'#inst "{moment.astimezone(dt.UTC).isoformat()}"'
        case dt.date():
            return f'#ev/date "{value.isoformat()}"'
        case bytes():
            return f'#ev/bytes "{value.hex()}"'
        case _:
            return repr(value)
