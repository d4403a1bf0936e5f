"""Checks of a text's declarations of relations, types and functors, before any rule is compiled.

Qualifiers, parameters of directives and plans only say how Soufflé should compute, and have no effect here. They are
checked all the same, so that a text which Soufflé would refuse is refused here, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from everview.errors import DatalogError
from everview.frontends.datalog.components import ScopedPart
from everview.frontends.datalog.syntax import (
    Clause,
    Component,
    Directive,
    FunctorDeclared,
    Part,
    PlanDirective,
    RelationDeclared,
    TypeDefined,
    refused,
)
from everview.frontends.datalog.types import BUILT_IN, Types
from everview.frontends.rules.faults import fault
from everview.frontends.rules.program import Declaration, Functor, Negation, Rule, RuleAtom, TextPlace
from everview.frontends.rules.resolve import LIMIT
from everview.frontends.rules.stratification import groups, is_recursive
from everview.frontends.rules.walk import all_variables, literals, rule_parts, walk
from everview.types import unknown_name

REPRESENTATIONS: Final = ("brie", "btree", "btree_delete", "eqrel")
OPPOSITES: Final = (("inline", "no_inline"), ("magic", "no_magic"))

# What .input, .output and .printsize may be told; nothing of it matters here, where rows come and go by the database.
FILES: Final = frozenset(
    (
        *("IO", "attributeNames", "auxArity", "columns", "compress", "dbname", "delimiter", "directory", "fact-dir"),
        *("fast", "filename", "format", "headers", "name", "operation", "output-dir", "params", "records", "relation"),
        *("rfc4180", "separator", "types", "order_by", "limit"),  # the last two as FlowLog has them
    )
)
WAYS: Final = ("file", "stdin", "stdout", "stdoutprintsize", "sqlite", "command")  # of IO, the last as FlowLog has it


# -- names


def check_type_names(parts: Sequence[ScopedPart]) -> None:
    """Refuse a type with the name of another type, of a built-in one or of a relation."""
    known: dict[str, str] = {f"{p.scope}{name}": "relation" for p in parts for name in _relations(p)}
    for placed in parts:
        part = placed.part
        if not isinstance(part, TypeDefined):
            continue
        full = f"{placed.scope}{part.name}"
        if full in known or part.name in BUILT_IN:
            what = f"a {known[full]}" if full in known else "a type that is built in"
            raise refused(f"{full} is {what} already, and cannot be a type", part.place, "give the type another name")
        known[full] = "type"


def check_casts(parts: Sequence[Part], named: Sequence[tuple[str, TextPlace]]) -> None:
    """Refuse ``as(x, T)`` of a type that no part of the text defines."""
    defined = {part.name for part in _all_parts(parts) if isinstance(part, TypeDefined)}
    parameters = {
        name for part in _all_parts(parts) if isinstance(part, Component) for name in part.signature.arguments
    }
    known = {*BUILT_IN, *defined, *parameters}
    for name, place in named:
        if name.rpartition(".")[2] not in known:
            raise refused(f"type {name} does not exist", place, f"there are {', '.join(sorted(known))}")


def _all_parts(parts: Sequence[Part]) -> Iterator[Part]:
    for part in parts:
        yield part
        if isinstance(part, Component):
            yield from _all_parts(part.parts)


def _relations(placed: ScopedPart) -> tuple[str, ...]:
    return placed.part.names if isinstance(placed.part, RelationDeclared) else ()


def check_functors(parts: Sequence[ScopedPart], types: Types) -> None:
    """Refuse a functor that is declared twice, or with a type that does not exist."""
    declared = set[str]()
    for placed in parts:
        part = placed.part
        if not isinstance(part, FunctorDeclared):
            continue
        if part.name in declared:
            raise refused(f"functor {part.name} is declared twice", part.place, "declare it once")
        for name in part.types:
            types.of(placed.given.get(name, name), placed.scope, part.place)
        declared.add(part.name)


def check_calls(rules: Iterable[Rule], counts: Mapping[str, int]) -> None:
    """Refuse calls of declared functors with another number of arguments."""
    for rule in rules:
        for term in walk(rule_parts(rule)):
            if isinstance(term, Functor) and counts.get(term.name, len(term.arguments)) != len(term.arguments):
                message = f"{term.name} is declared with {counts[term.name]} arguments, and was given "
                raise fault(DatalogError, message + str(len(term.arguments)), rule, "give it as many as are declared")


# -- qualifiers


def check_qualifiers(part: RelationDeclared) -> None:
    """Refuse qualifiers that are repeated, contradict each other, or do not suit the relation."""
    name = part.names[0]
    for qualifier, count in Counter(part.qualifiers).items():
        if count > 1:
            raise refused(f"relation {name} is {qualifier} twice", part.place, "say it once")
    said = [q for q in REPRESENTATIONS if q in part.qualifiers]
    for pair in (said[:2] if len(said) > 1 else (), *OPPOSITES):
        if pair and all(q in part.qualifiers for q in pair):
            raise refused(f"relation {name} cannot be {pair[0]} and {pair[1]}", part.place, "leave one of them out")
    if "eqrel" in part.qualifiers:
        _check_equivalence(name, part)
    if "btree_delete" in part.qualifiers and not part.attributes:
        raise refused(
            f"relation {name} has no columns, and no rows that give way", part.place, "leave btree_delete out"
        )
    _check_choice(name, part)


def _check_equivalence(name: str, part: RelationDeclared) -> None:
    if len(part.attributes) != 2:
        message = f"equivalence {name} has {len(part.attributes)} columns, and not 2"
        raise refused(message, part.place, "an equivalence is of pairs: .decl p(a: number, b: number) eqrel")
    (_, left), (_, right) = part.attributes
    if left != right:
        raise refused(f"equivalence {name} is of {left} and {right}", part.place, "both columns are of one type")


def _check_choice(name: str, part: RelationDeclared) -> None:
    if "choice-domain" not in part.qualifiers:
        return
    named = [attribute for attribute, _ in part.attributes]
    wrong = next((c for domain in part.choices for c in domain if c not in named), None)
    if wrong is not None:
        hint = f"its columns are {', '.join(named)}"
        raise refused(f"choice-domain names {wrong}, which {name} does not have", part.place, hint)
    for qualifier in ("eqrel", "input"):
        if qualifier in part.qualifiers:
            raise refused(f"{name} is {qualifier}, and cannot choose among its rows", part.place, CHOOSE_APART)


CHOOSE_APART: Final = "let another relation choose: .decl one(…) choice-domain …, with the rule one(…) :- all(…)."


def smallest(domains: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The domains of which none is a part of another: where one row has a value of a part, it has one of the whole."""
    different = list(dict.fromkeys(tuple(sorted(set(domain))) for domain in domains))
    return [one for one in different if not any(set(other) < set(one) for other in different)]


def check_chosen(declared: Iterable[Declaration], heads: Collection[str]) -> None:
    """Refuse a choice among rows that are given, or of a relation that has no rules in this text."""
    for one in declared:
        if not one.choices:
            continue
        if one.input:
            raise refused(f"{one.name} is .input, and cannot choose among its rows", one.place, CHOOSE_APART)
        if one.name not in heads:
            hint = "write the choice-domain in the text of the rules that it is about"
            raise refused(f"{one.name} has a choice-domain, and no rules here", one.place, hint)


# -- directives


def check_directive(part: Directive) -> None:
    """Refuse unknown and repeated parameters, and a ``.limitsize`` without its number."""
    for target, given in part.targets:
        names = [name for name, _ in given]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise refused(f"{part.kind} {target} has {twice} twice", part.place, "give each parameter once")
        if part.kind == LIMIT:
            _check_limit(part, target, dict(given))
            continue
        wrong = next((name for name in names if name not in FILES), None)
        if wrong is not None:
            error = unknown_name(f"parameter of {part.kind}", wrong, sorted(FILES))
            raise refused(error.message, part.place, error.hint or "")
        way = dict(given).get("IO", WAYS[0]).strip('"')
        if way not in WAYS:
            raise refused(f"{part.kind} {target}: there is no IO={way}", part.place, f"one of {', '.join(WAYS)}")


def _check_limit(part: Directive, target: str, given: Mapping[str, str]) -> None:
    if set(given) != {"n"} or not given["n"].isdigit():
        raise refused(f".limitsize {target} has no number", part.place, f"write .limitsize {target}(n=10)")


# -- inlined relations


def check_inlined(inlined: Collection[str], given: Collection[str], rules: Sequence[Rule]) -> None:
    """Refuse ``inline`` for a relation that is given, shown or recursive.

    A negated one is refused, too, if its rules have variables that its head does not have.
    """
    inlined = {*inlined}
    both = next((name for name in sorted(inlined) if name in given), None)
    if both is not None:
        raise DatalogError(f"{both} is inline, and cannot be given or shown", hint="leave inline out")
    own = [rule for rule in rules if rule.head.relation in inlined]
    for group in groups(own):
        if is_recursive(group, [rule for rule in own if rule.head.relation in group]):
            hint = "leave inline out of one of them"
            raise DatalogError(f"{', '.join(group)} cannot be inline: read by itself", hint=hint)
    _check_negated(own, rules)


def _check_negated(own: Iterable[Rule], rules: Iterable[Rule]) -> None:
    wider = {rule.head.relation for rule in own if {*all_variables(*rule.body)} - {*all_variables(*rule.head.terms)}}
    for rule in rules:
        for part in literals(rule.body):
            inner = part.body if isinstance(part, Negation) else ()
            for atom in (p for p in inner if isinstance(p, RuleAtom) and p.relation in wider):
                hint = f"leave inline out of {atom.relation}"
                raise refused(f"{atom.relation} is inline, has variables of its own, and is negated", rule.place, hint)


# -- plans


def check_plans(parts: Sequence[ScopedPart], rules: Sequence[Rule]) -> None:
    """Refuse a ``.plan`` that follows no rule, leaves out an atom, or has a version that the rule does not have."""
    together = {name: set(group) for group in groups(rules) for name in group}
    before: Clause | None = None
    for placed in parts:
        if isinstance(placed.part, PlanDirective):
            if before is None or not before.bodies:
                raise refused(".plan is of no rule", placed.part.place, "write it after the rule that it is about")
            if len(before.bodies) == 1:
                own = [rule for rule in rules if rule.place == before.place]
                _check_plan(placed.part, own, together)
        before = placed.part if isinstance(placed.part, Clause) else None


def _check_plan(part: PlanDirective, rules: Sequence[Rule], together: Mapping[str, Collection[str]]) -> None:
    twice = next((v for v, count in Counter(v for v, _ in part.orders).items() if count > 1), None)
    if twice is not None:
        raise refused(f".plan has version {twice} twice", part.place, "give each version one order")
    for rule in rules:
        atoms = [p for p in rule.body if isinstance(p, RuleAtom)]
        for version, order in part.orders:
            if sorted(order) != list(range(1, len(atoms) + 1)):
                message = f".plan {version}: {order} is no order of {len(atoms)} atom{'s' * (len(atoms) != 1)}"
                raise refused(message, part.place, "number each atom of the body once, from 1")
        versions = sum(atom.relation in together[rule.head.relation] for atom in atoms)
        wrong = next((v for v, _ in part.orders if versions and v >= versions), None)
        if wrong is not None:
            message = f".plan has version {wrong}, and the rule versions 0 to {versions - 1}"
            raise refused(message, part.place, "there is one for each atom of the recursion")
