"""Expressions as they are written: brackets hold a value, a tuple or a disjunction, depending on where they stand.

A call in a body is read as an atom; `naming` turns it into a condition if it is a functor. Operators in a row are put
in order of their precedence.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from everview.frontends.datalog.syntax import refused
from everview.frontends.rules.program import (
    NOWHERE,
    AggregateTerm,
    BodyLiteral,
    Constant,
    Constraint,
    Either,
    Functor,
    Holds,
    Negation,
    RuleAtom,
    RuleVariable,
    Term,
    TextPlace,
    Wildcard,
)
from everview.frontends.rules.terms import RECORD
from everview.frontends.rules.walk import inner

# Operators from the loosest to the tightest; the last is taken from the right.
PRECEDENCE: Final[tuple[tuple[str, ...], ...]] = (
    ("lor",),
    ("lxor",),
    ("land",),
    ("bor",),
    ("bxor",),
    ("band",),
    ("bshl", "bshr", "bshru"),
    ("+", "-"),
    ("*", "/", "%"),
    ("^",),
)
_LEVEL: Final = {operator: level for level, names in enumerate(PRECEDENCE) for operator in names}
_RIGHT: Final = len(PRECEDENCE) - 1

# -- expressions as they are written


@dataclass(frozen=True)
class WrittenCall:
    """A call; an atom that names its columns has their ``names``."""

    name: str
    arguments: tuple[Any, ...]
    place: TextPlace
    names: tuple[str, ...] | None = None

    @property
    def atom(self) -> RuleAtom:
        return RuleAtom(self.name, tuple(map(term, self.arguments)), self.names, self.place)


@dataclass(frozen=True)
class NamedArgument:
    """``column: term``."""

    name: str
    value: Any


@dataclass(frozen=True)
class Grouped:
    """Brackets with conjunctions in them; one conjunction alone may be a tuple."""

    branches: tuple[tuple[Any, ...], ...]
    trailing: bool
    place: TextPlace = NOWHERE


@dataclass(frozen=True)
class Negated:
    """``!item``."""

    item: Any


@dataclass(frozen=True)
class Conjunction:
    """Items between commas; one with a ``trailing`` comma is a tuple."""

    items: tuple[Any, ...]
    trailing: bool = False


def term(read: Any) -> Term:
    """Read something written as a term; refuses a condition."""
    match read:
        case WrittenCall("as", (value, RuleVariable(type_)), place, None):
            return _reinterpreted(term(value), type_, place)
        case WrittenCall(name, arguments, _, None):
            return _call(name, tuple(map(term, arguments)))
        case Grouped(((item,),), False):
            return term(item)
        case Grouped((items,)):
            return Functor(RECORD, tuple(map(term, items)))
        case RuleVariable() | Constant() | Wildcard() | Functor() | AggregateTerm():
            return read
        case Constraint() | Negated() | Grouped() | WrittenCall():
            raise refused("a condition stands where a value should", somewhere(read), "write a term there")
        case _:
            raise AssertionError(f"{read!r} is no term")


def _call(name: str, arguments: tuple[Term, ...]) -> Term:
    if name in AGGREGATES and (len(arguments) < 2 or name not in ("min", "max")):
        return AggregateTerm(name, arguments)
    return Functor(name, arguments)


CASTS: Final = ContextVar[list[tuple[str, TextPlace]] | None]("CASTS", default=None)  # the types that ``as`` names
_READ_OTHERWISE: Final = {"float": "itof(x) or utof(x)", "unsigned": "itou(x) or ftou(x)"}


def _reinterpreted(value: Term, type_: str, place: TextPlace) -> Term:
    """``as(x, T)``: the same value, taken for one of the type T; a type that would read its bits anew is refused."""
    if type_ in _READ_OTHERWISE:
        hint = f"a value is converted by {_READ_OTHERWISE[type_]}"
        raise refused(f"as(…, {type_}) reads the bits of another type", place, hint)
    named = CASTS.get()
    if named is not None:
        named.append((type_, place))
    return value


AGGREGATES: Final = ("count", "sum", "min", "max", "mean", "average")


def literal(read: Any) -> BodyLiteral:
    """Read something written as a literal; refuses a value."""
    match read:
        case WrittenCall():
            return read.atom
        case Constraint():
            return read
        case Negated(Grouped((items,), False)):
            return Negation(body(items))
        case Negated(item):
            return Negation((literal(item),))
        case Grouped(((item,),), False):
            return literal(item)
        case Grouped(branches):
            made = tuple(body(branch) for branch in branches)
            return Either(made)
        case Constant(bool()):
            return Holds(read)
        case _:
            raise refused(f"{read} is no condition", somewhere(read), "write an atom or a comparison")


def body(items: tuple[Any, ...]) -> tuple[BodyLiteral, ...]:
    """Read the items of a conjunction as literals."""
    return tuple(map(literal, items))


# -- places

NOTED: Final = ContextVar[dict[int, tuple[Any, TextPlace]] | None]("NOTED", default=None)  # of terms, by identity

T = TypeVar("T")


def noted(read: T, place: TextPlace) -> T:
    """Note the place of a term, for errors: equal terms stand in many places, and so have none of their own."""
    known = NOTED.get()
    if known is not None:
        known[id(read)] = (read, place)
    return read


def somewhere(read: Any) -> TextPlace:
    """The place of a piece of syntax in the text: its own, or that of its first placed part."""
    known, waiting = NOTED.get() or {}, [read]
    while waiting:
        part = waiting.pop()
        place = getattr(part, "place", NOWHERE)
        if place != NOWHERE:
            return place
        if id(part) in known:
            return known[id(part)][1]
        match part:
            case Negated(item):
                waiting.append(item)
            case Grouped(branches):
                waiting += [item for branch in reversed(branches) for item in reversed(branch)]
            case RuleVariable() | Constant() | Wildcard() | Functor() | AggregateTerm() | Constraint() | RuleAtom():
                waiting += inner(part)[::-1]
            case _:
                pass
    return NOWHERE


def chained(parts: list[Any]) -> Term:
    """The term of operands and operators in a row, by their precedence."""
    operands: list[Term] = [term(part) for part in parts[::2]]
    operators = [str(part) for part in parts[1::2]]
    waiting: list[str] = []
    values = [operands[0]]

    def apply() -> None:
        right, left = values.pop(), values.pop()
        values.append(Functor(waiting.pop(), (left, right)))

    for operator, operand in zip(operators, operands[1:], strict=True):
        level = _LEVEL[operator]
        while waiting and (_LEVEL[waiting[-1]] > level or (_LEVEL[waiting[-1]] == level and level != _RIGHT)):
            apply()
        waiting.append(operator)
        values.append(operand)
    while waiting:
        apply()
    return values[0]
