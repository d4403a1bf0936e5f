"""The parts of a text: clauses, declarations, types, directives, components; names are as written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everview.errors import DatalogError
from everview.frontends.rules.faults import placed
from everview.frontends.rules.program import NOWHERE, BodyLiteral, RuleAtom, TextPlace


@dataclass(frozen=True)
class Clause:
    """Heads that hold wherever one of the bodies does."""

    heads: tuple[RuleAtom, ...]
    bodies: tuple[tuple[BodyLiteral, ...], ...]
    place: TextPlace


@dataclass(frozen=True)
class Subsumption:
    """``worse <= better :- body``: a row that gives way to another."""

    worse: RuleAtom
    better: RuleAtom
    body: tuple[BodyLiteral, ...]
    place: TextPlace


@dataclass(frozen=True)
class RelationDeclared:
    """``.decl names(attributes) qualifiers``."""

    names: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...]
    qualifiers: tuple[str, ...]
    place: TextPlace
    choices: tuple[tuple[str, ...], ...] = ()  # the attributes of each domain that a choice-domain names


@dataclass(frozen=True)
class TypeDefined:
    """A name for other types, for a record of attributes, or for values of several ``branches``, each with its own."""

    name: str
    alternatives: tuple[str, ...]
    fields: tuple[tuple[str, str], ...] | None
    place: TextPlace
    branches: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()


@dataclass(frozen=True)
class Directive:
    """``.input`` or ``.output`` of some relations, each with its parameters."""

    kind: str
    targets: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    place: TextPlace


@dataclass(frozen=True)
class ComponentSignature:
    """A component's name with its parameters or, in an instance, its arguments."""

    name: str
    arguments: tuple[str, ...] = ()
    place: TextPlace = NOWHERE


@dataclass(frozen=True)
class Component:
    """``.comp signature : bases { parts }``."""

    signature: ComponentSignature
    bases: tuple[ComponentSignature, ...]
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Init:
    """``.init name = component``: an instance of a component."""

    name: str
    component: ComponentSignature
    place: TextPlace = NOWHERE


@dataclass(frozen=True)
class Override:
    """``.override name``: the rules of a base for that relation are dropped."""

    name: str
    place: TextPlace = NOWHERE


@dataclass(frozen=True)
class FunctorDeclared:
    """``.functor name(types): type``; the last of ``types`` is that of the result."""

    name: str
    types: tuple[str, ...]
    place: TextPlace


@dataclass(frozen=True)
class PlanDirective:
    """``.plan version: (order)``, about the rule before it."""

    orders: tuple[tuple[int, tuple[int, ...]], ...]
    place: TextPlace


Part = (
    Clause
    | Subsumption
    | RelationDeclared
    | TypeDefined
    | Directive
    | Component
    | Init
    | Override
    | FunctorDeclared
    | PlanDirective
)


def refused(message: str, place: TextPlace, hint: str) -> DatalogError:
    """The error for a part of a text, with its place."""
    return DatalogError(message + placed("", place), hint=hint)
