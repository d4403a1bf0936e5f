"""Components: each instance copies the parts of a component, with relations and types under the instance's name.

A component has parameters, which stand for types and for other components, and may extend others: it has all that
they have, without the rules of relations that it overrides. ``.init a = Analysis<Config>`` makes relations ``a.R``; a
name inside is one of the instance's own, or else of what is around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from everview.frontends.datalog.syntax import (
    Clause,
    Component,
    ComponentSignature,
    Directive,
    FunctorDeclared,
    Init,
    Override,
    Part,
    PlanDirective,
    RelationDeclared,
    Subsumption,
    TypeDefined,
    refused,
)
from everview.frontends.rules.program import TextPlace
from everview.types import unknown_name

DEEPEST = 64  # instances inside each other

Substitution = Mapping[str, str]


@dataclass(frozen=True)
class ScopedPart:
    """A part of a text, its scope, such as ``"a.b."``, and the arguments of the parameters there."""

    part: Clause | Subsumption | RelationDeclared | TypeDefined | Directive | FunctorDeclared | PlanDirective
    scope: str
    given: Substitution


@dataclass(frozen=True)
class _Known:
    """A component with the scope of its definition, in which its bases and its instances are looked up."""

    component: Component
    scope: Mapping[str, _Known]
    given: Substitution


def expanded(parts: Sequence[Part]) -> list[ScopedPart]:
    """Write out all components: the parts of a text, with those of every instance."""
    written: list[ScopedPart] = []
    _expand(parts, "", {}, {}, frozenset(), written, 0)
    return written


def _expand(
    parts: Sequence[Part],
    scope: str,
    given: Substitution,
    around: Mapping[str, _Known],
    overridden: frozenset[str],
    written: list[ScopedPart],
    depth: int,
) -> Mapping[str, _Known]:
    defined = dict(around)
    _check_scope(parts)
    own = [part for part in parts if isinstance(part, Component)]
    for part in own:
        defined[part.signature.name] = _Known(part, defined, given)
    for part in own:
        _check_component(part, defined, given)
    for part in parts:
        match part:
            case Override(name, place) if not scope:
                raise refused(f".override {name} is in no component", place, "it drops the rules of a base's relation")
            case Component() | Override():
                pass
            case Init(name, signature):
                _instance(signature, f"{scope}{name}.", given, defined, frozenset(), written, depth + 1)
            case Clause(heads) if overridden and all(h.relation in overridden for h in heads):
                pass
            case _:
                written.append(ScopedPart(part, scope, given))
    return defined


def _check_scope(parts: Sequence[Part]) -> None:
    """Refuse components and instances of one scope that share a name with another, a relation or a type."""
    known: dict[str, str] = {}
    for part in parts:
        match part:
            case RelationDeclared(names):
                known.update(dict.fromkeys(names, "relation"))
            case TypeDefined(name):
                known.setdefault(name, "type")
            case _:
                pass
    for part in (*_of(parts, Component), *_of(parts, Init)):
        kind, name, place = ("instance", part.name, part.place) if isinstance(part, Init) else _named(part)
        if known.get(name) == kind:
            raise refused(f"{kind} {name} is defined twice", place, "give each a name of its own")
        if name in known:
            raise refused(
                f"{name} is a {known[name]}, and cannot be {'an' if kind == 'instance' else 'a'} {kind}",
                place,
                "give it another name",
            )
        known[name] = kind


P = TypeVar("P", Component, Init)


def _of(parts: Sequence[Part], kind: type[P]) -> list[P]:
    return [part for part in parts if isinstance(part, kind)]


def _named(component: Component) -> tuple[str, str, TextPlace]:
    return "component", component.signature.name, component.signature.place


def _check_component(component: Component, defined: Mapping[str, _Known], given: Substitution) -> None:
    """Refuse a component that is wrong by itself, whether or not it has an instance."""
    signature = component.signature
    if len(set(signature.arguments)) < len(signature.arguments):
        raise refused(f"component {signature.name} has a parameter twice", signature.place, "name each once")
    bases = _bases(component, defined, given)
    if any(base is component for base in bases):
        raise refused(f"component {signature.name} is made of itself", signature.place, "extend another")
    parts = [part for base in bases for part in base.parts if isinstance(part, RelationDeclared)]
    declared = {name: part for part in parts for name in part.names}
    is_known = all(base.name in defined for base in component.bases)
    for part in component.parts:
        if not isinstance(part, Override) or not is_known:
            continue
        if part.name not in declared:
            hint = "override a relation that a component which it extends declares"
            raise refused(f"component {signature.name} inherits no relation {part.name}", part.place, hint)
        if "overridable" not in declared[part.name].qualifiers:
            hint = f"declare it so: .decl {part.name}(…) overridable"
            raise refused(f"relation {part.name} is not overridable", part.place, hint)


def _bases(component: Component, defined: Mapping[str, _Known], given: Substitution) -> list[Component]:
    """The components extended by a component, directly or through others, except bases given as parameters."""
    bases: list[Component] = []
    waiting = [component]
    while waiting:
        extending = waiting.pop()
        for base in extending.bases:
            if base.name in extending.signature.arguments or base.name in given:
                continue
            if base.name not in defined:
                if extending is component:
                    error = unknown_name("component", base.name, defined)
                    raise refused(error.message, base.place, error.hint or "")
                continue
            other = defined[base.name].component
            if not any(other is known for known in bases):
                bases.append(other)
                waiting.append(other)
    return bases


def _instance(
    signature: ComponentSignature,
    scope: str,
    given: Substitution,
    around: Mapping[str, _Known],
    overridden: frozenset[str],
    written: list[ScopedPart],
    depth: int,
) -> None:
    """Write out one instance: the parts of the component's bases, then its own."""
    name = given.get(signature.name, signature.name)
    if name not in around:
        error = unknown_name("component", name, around)
        raise refused(error.message, signature.place, error.hint or "")
    if depth > DEEPEST:
        raise refused(f"component {name} is made of itself", signature.place, "end the recursion")
    known = around[name]
    component = known.component
    inner = _substitution(signature, component.signature, given)
    mine = overridden | {part.name for part in component.parts if isinstance(part, Override)}
    scoped = dict(known.scope)
    for base in component.bases:
        _instance(base, scope, inner, scoped, mine, written, depth + 1)
        scoped |= _components_of(base, inner, scoped)
    _expand(component.parts, scope, {**known.given, **inner}, {**around, **scoped}, overridden, written, depth)


def _components_of(base: ComponentSignature, given: Substitution, around: Mapping[str, _Known]) -> Mapping[str, _Known]:
    """The components defined inside a base, by name; a component extending the base can instantiate them."""
    known = around[given.get(base.name, base.name)]
    own = [part for part in known.component.parts if isinstance(part, Component)]
    return {part.signature.name: _Known(part, around, given) for part in own}


def _substitution(signature: ComponentSignature, formal: ComponentSignature, given: Substitution) -> Substitution:
    if len(signature.arguments) != len(formal.arguments):
        message = f"component {formal.name} takes {len(formal.arguments)} parameters, and was given "
        message += str(len(signature.arguments))
        raise refused(message, signature.place, f"write {formal.name}<{', '.join(formal.arguments)}>")
    actual = (given.get(a, a) for a in signature.arguments)
    return dict(zip(formal.arguments, actual, strict=True))
