"""What a text says, part by part: clauses, declarations, types, directives, components; names are as written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everview.errors import DatalogError
from everview.frontends.rules.faults import placed
from everview.frontends.rules.program import NOWHERE, BodyLiteral, RuleAtom, TextPlace


@dataclass(frozen=True)
class Clause:
    """Heads that hold where one of the bodies does."""

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
    choices: tuple[str, ...] = ()  # the attributes that a choice-domain names


@dataclass(frozen=True)
class TypeDefined:
    """A name for other types, or for a record of attributes."""

    name: str
    alternatives: tuple[str, ...]
    fields: tuple[tuple[str, str], ...] | None
    place: TextPlace


@dataclass(frozen=True)
class Directive:
    """``.input`` or ``.output`` of some relations, each with its parameters."""

    kind: str
    targets: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    place: TextPlace


@dataclass(frozen=True)
class ComponentSignature:
    """A component with its parameters, or what stands for them."""

    name: str
    arguments: tuple[str, ...] = ()
    place: TextPlace = NOWHERE


@dataclass(frozen=True)
class Component:
    signature: ComponentSignature
    bases: tuple[ComponentSignature, ...]
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Init:
    name: str
    component: ComponentSignature
    place: TextPlace = NOWHERE


@dataclass(frozen=True)
class Override:
    name: str
    place: TextPlace = NOWHERE


@dataclass(frozen=True)
class FunctorDeclared:
    """``.functor name(types): type``; the last type is what it gives."""

    name: str
    types: tuple[str, ...]
    place: TextPlace


@dataclass(frozen=True)
class PlanDirective:
    """``.plan version: (order)``, of the rule before it."""

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
    return DatalogError(message + placed("", place), hint=hint)
