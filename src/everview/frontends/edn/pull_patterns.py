"""Patterns of pull: the wanted attributes of an entity, and of the entities to which they refer.

A pattern is a vector of attributes, ``*`` for all of them, and maps from attributes to patterns of what they refer to,
or to a number, the depth to which the whole pattern is repeated there. ``:_friend`` goes the other way.

>>> from everview.frontends.edn.reader import read
>>> pattern = parse_pattern(read("[:name {:_friend [*]} (:age :default 0 :as :years)]"))
>>> [(one.attribute, one.reverse, one.key) for one in pattern.attributes], pattern.attributes[1].inner.wildcard
([(':name', False, ':name'), (':friend', True, ':_friend'), (':age', False, ':years')], True)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import (
    AnyForm,
    KeywordForm,
    ListForm,
    MapForm,
    ScalarForm,
    SymbolForm,
    VectorForm,
    python,
)
from everview.frontends.rules.program import NOWHERE, TextPlace

ID: Final = ":db/id"
MOST: Final = 1000  # values of an attribute, unless a limit is given
DEEPEST: Final = 32  # levels of entities inside of each other
ENDLESS: Final = 0  # as a number of levels: as many as there are


@dataclass(frozen=True, slots=True)
class PulledAttribute:
    """One attribute of a pull pattern, the key of its value, and the ``inner`` pattern for referenced entities.

    A number as ``inner`` repeats the pattern in which the attribute stands, so many levels deep; `ENDLESS` is ``...``.
    """

    attribute: str
    key: str
    reverse: bool = False
    limit: int | None = MOST
    default: Any = None
    inner: PullPattern | int | None = None
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PullPattern:
    """The attributes that are wanted of an entity: some by name, or all; ``entity`` has the key of its number."""

    attributes: tuple[PulledAttribute, ...] = ()
    wildcard: bool = False
    entity: str | None = None
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)


def parse_pattern(form: AnyForm, depth: int = 0) -> PullPattern:
    """Read a pattern; raises `EdnError`."""
    if not isinstance(form, VectorForm) or not form.items:
        raise refuse(form.place, f"{form!r} is no pattern of pull", "write the attributes: [:name {:friend [:name]}]")
    if depth > DEEPEST:
        raise refuse(form.place, f"a pattern of more than {DEEPEST} levels", "pull inner entities on their own")
    pattern = PullPattern(place=form.place)
    for item in form.items:
        match item:
            case SymbolForm("*") | ScalarForm("*"):
                pattern = replace(pattern, wildcard=True, entity=pattern.entity or ID)
            case MapForm(entries):
                for key, value in entries:
                    one = replace(_attribute(key), inner=_inner(value, depth))
                    pattern = _with(pattern, one)
            case _:
                pattern = _with(pattern, _attribute(item))
    return pattern


def _with(pattern: PullPattern, one: PulledAttribute) -> PullPattern:
    if one.attribute == ID:
        if one.inner is not None or one.reverse:
            raise refuse(one.place, f"{ID} is a number, and no attribute", f"write {ID} alone")
        return replace(pattern, entity=one.key)
    known = [other.key.casefold() for other in pattern.attributes]
    if one.key.casefold() in known:
        raise refuse(one.place, f"{one.key} stands in this pattern twice", f"write ({one.attribute} :as :other)")
    return replace(pattern, attributes=(*pattern.attributes, one))


def _inner(form: AnyForm, depth: int) -> PullPattern | int:
    if isinstance(form, SymbolForm) and form.name == "...":
        return ENDLESS
    if isinstance(form, ScalarForm):
        if type(form.value) is int and 0 < form.value <= DEEPEST:
            return form.value
        raise refuse(form.place, f"{form!r} is no number of levels", f"write one from 1 to {DEEPEST}, or a pattern")
    return parse_pattern(form, depth + 1)


def endless(pattern: PullPattern) -> PulledAttribute | None:
    """An attribute whose recursion is unbounded, or None."""
    for one in pattern.attributes:
        without_end = (
            one if one.inner == ENDLESS else endless(one.inner) if isinstance(one.inner, PullPattern) else None
        )
        if without_end is not None:
            return without_end
    return None


def levelled(pattern: PullPattern, levels: int) -> PullPattern:
    """The pattern with a number of levels wherever it has none."""
    made = list[PulledAttribute]()
    for one in pattern.attributes:
        inner = levels if one.inner == ENDLESS else one.inner
        made.append(replace(one, inner=levelled(inner, levels) if isinstance(inner, PullPattern) else inner))
    return replace(pattern, attributes=tuple(made))


def with_entities(pattern: PullPattern) -> PullPattern:
    """The pattern with the number of every entity that it reaches."""
    made = [
        replace(one, inner=with_entities(one.inner)) if isinstance(one.inner, PullPattern) else one
        for one in pattern.attributes
    ]
    return replace(pattern, attributes=tuple(made), entity=pattern.entity or ID)


# -- one attribute


def _attribute(form: AnyForm) -> PulledAttribute:
    match form:
        case KeywordForm(name):
            return _named(name, form.place)
        case ListForm(items) | VectorForm(items) if items:
            return _with_options(form, items)
        case _:
            hint = "write attributes, *, maps of attributes to patterns, and (:attribute :limit 10)"
            raise refuse(form.place, f"{form!r} is no part of a pattern", hint)


def _named(name: str, place: TextPlace) -> PulledAttribute:
    space, slash, last = name[1:].rpartition("/")
    if last.startswith("_") and last != "_":
        return PulledAttribute(f":{space}{slash}{last[1:]}", name, True, place=place)
    return PulledAttribute(name, name, place=place)


def _with_options(form: ListForm | VectorForm, items: tuple[AnyForm, ...]) -> PulledAttribute:
    match items:
        case (SymbolForm("limit" | "default") | ScalarForm("limit" | "default") as word, KeywordForm() as of, value):
            said = python(word)
            return _with_option(_named(of.name, of.place), f":{said}", value, form.place)
        case (KeywordForm() as of, *options) if options and len(options) % 2 == 0:
            attribute = _named(of.name, of.place)
            for option, value in zip(options[::2], options[1::2], strict=True):
                attribute = _with_option(attribute, repr(option), value, option.place)
            return attribute
        case _:
            hint = "write (:attribute :as :name :limit 10 :default 0)"
            raise refuse(form.place, f"{form!r} is no attribute with options", hint)


def _with_option(attribute: PulledAttribute, option: str, value: AnyForm, place: TextPlace) -> PulledAttribute:
    given = python(value)
    match option:
        case ":as" if isinstance(given, str) and given:
            return replace(attribute, key=given)
        case ":limit" if given is None or (type(given) is int and given > 0):
            return replace(attribute, limit=given)
        case ":default" if given is not None and not isinstance(given, tuple | dict):
            return replace(attribute, default=given)
        case ":as" | ":limit" | ":default":
            hint = "a name as a keyword or text, a number above 0 or nil, a single value"
            raise refuse(place, f"{option} {value!r} is no such option", hint)
        case ":xform":
            raise refuse(place, ":xform calls a function of Clojure", "apply functions in :where, or to the answer")
        case _:
            raise refuse(place, f"there is no option {option}", "there are :as, :limit and :default")
