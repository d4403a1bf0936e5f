"""What a text says, part by part: clauses, declarations, types, directives, components; names are as written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everview.errors import DatalogError
from everview.frontends.rules.faults import placed
from everview.frontends.rules.program import NOWHERE, Atom, Literal_, Place


@dataclass(frozen=True)
class Clause:
    """Heads that hold where one of the bodies does."""

    heads: tuple[Atom, ...]
    bodies: tuple[tuple[Literal_, ...], ...]
    place: Place


@dataclass(frozen=True)
class Subsumption:
    """``worse <= better :- body``: a row that gives way to another."""

    worse: Atom
    better: Atom
    body: tuple[Literal_, ...]
    place: Place


@dataclass(frozen=True)
class Declared:
    """``.decl names(attributes) qualifiers``."""

    names: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...]
    qualifiers: tuple[str, ...]
    place: Place
    choices: tuple[str, ...] = ()  # the attributes that a choice-domain names


@dataclass(frozen=True)
class TypeDefined:
    """A name for other types, or for a record of attributes."""

    name: str
    alternatives: tuple[str, ...]
    fields: tuple[tuple[str, str], ...] | None
    place: Place


@dataclass(frozen=True)
class Directive:
    """``.input`` or ``.output`` of some relations, each with its parameters."""

    kind: str
    targets: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    place: Place


@dataclass(frozen=True)
class Signature:
    """A component with its parameters, or what stands for them."""

    name: str
    arguments: tuple[str, ...] = ()
    place: Place = NOWHERE


@dataclass(frozen=True)
class Component:
    signature: Signature
    bases: tuple[Signature, ...]
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Init:
    name: str
    component: Signature
    place: Place = NOWHERE


@dataclass(frozen=True)
class Override:
    name: str
    place: Place = NOWHERE


@dataclass(frozen=True)
class FunctorDeclared:
    """``.functor name(types): type``; the last type is what it gives."""

    name: str
    types: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class Planned:
    """``.plan version: (order)``, of the rule before it."""

    orders: tuple[tuple[int, tuple[int, ...]], ...]
    place: Place


Part = (
    Clause | Subsumption | Declared | TypeDefined | Directive | Component | Init | Override | FunctorDeclared | Planned
)


def refused(message: str, place: Place, hint: str) -> DatalogError:
    return DatalogError(message + placed("", place), hint=hint)
