"""Inductive rules: what they derive in one tick holds in the next one, and no longer unless it is derived again.

A head with inductive rules is three relations: what they derive now, `next_name`; what they derived a tick ago,
`before_name`, which the runtime moves on with every tick; and the head itself, which holds what its deductive rules
say and what was derived a tick ago. None of them depends on itself within one tick, so negation may go through time.

>>> from everview.frontends.pomologic.parse import parse
>>> for rule in unfolded(parse("on(id: I)@next :- on(id: I), !off(id: I). on(id: I) :- new(id: I).")).rules:
...     print(rule)
on@next(id: I) :- on(id: I), !off(id: I).
on(id: I) :- new(id: I).
on(id: id) :- on@before(id: id).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from everview.errors import EndlessInduction
from everview.frontends.rules.faults import fault
from everview.frontends.rules.program import (
    Declaration,
    Identified,
    Negation,
    Rule,
    RuleAtom,
    RuleProgram,
    RuleVariable,
)
from everview.types import Schema

NEXT, BEFORE = "@next", "@before"


def next_name(head: str) -> str:
    """The relation that holds what inductive rules derive in this tick."""
    return head + NEXT


def before_name(head: str) -> str:
    """The relation that holds what inductive rules derived in the tick before."""
    return head + BEFORE


def inductive(program: RuleProgram) -> tuple[str, ...]:
    """The heads that have inductive rules, in order."""
    return tuple(dict.fromkeys(rule.head.relation for rule in program.rules if rule.next))


def unfolded(program: RuleProgram) -> RuleProgram:
    """The program of one tick, with deductive rules only; what the tick before derived is a relation to it."""
    rules = [_now(rule) if rule.next else rule for rule in program.rules]
    first = {rule.head.relation: rule for rule in reversed(program.rules) if rule.next}
    return replace(program, rules=(*rules, *(_carried(first[head]) for head in inductive(program))))


def _now(rule: Rule) -> Rule:
    return replace(rule, head=replace(rule.head, relation=next_name(rule.head.relation)), next=False)


def _carried(rule: Rule) -> Rule:
    names = rule.head.names or ()
    head = replace(rule.head, terms=tuple(map(RuleVariable, names)))
    return Rule(head, (replace(head, relation=before_name(head.relation)),), place=rule.place)


def timeless(program: RuleProgram) -> RuleProgram:
    """The program with its inductive rules as deductive ones: only the columns of its relations mean anything."""
    rules = (
        replace(rule, body=tuple(part for part in rule.body if not isinstance(part, Negation)), next=False)
        for rule in program.rules
    )
    return replace(program, rules=tuple(rules))


def with_next(program: RuleProgram, known: Mapping[str, Schema]) -> RuleProgram:
    """Declare the relations of the next tick with the columns that ``known`` has for them."""
    own = [head for head in program.heads if before_name(head.removesuffix(NEXT)) in known and head.endswith(NEXT)]
    declared = (Declaration(head, known[before_name(head.removesuffix(NEXT))]) for head in own)
    return replace(program, declarations=(*program.declarations, *declared)) if own else program


def check_induction(program: RuleProgram) -> None:
    """Refuse inductive rules that might change something in every tick for ever.

    Such a rule must either carry its head on, with the same values, or have a positive atom in its body that is
    instantaneous, so that it holds only while something from outside does.
    """
    fleeting = instantaneous(program)
    for rule in program.rules:
        if rule.next and not _persists(rule) and not _selects(rule, fleeting):
            head = rule.head
            raise fault(
                *(EndlessInduction, f"the inductive rule of {head.relation} could go on without any change", rule),
                f"add {head} to its body, or a positive atom of a relation that does not depend on time",
            )


def instantaneous(program: RuleProgram) -> frozenset[str]:
    """The relations that hold only while something from outside does.

    A relation does if it is given from outside, or if all its rules are deductive and select such a relation.
    """
    defined = frozenset(program.heads)
    read = {atom.relation for rule in program.rules for atom in _selected(rule)}
    instant = frozenset(read - defined)
    while True:
        more = {head for head in defined if all(_holds_now(rule, instant) for rule in _rules(program, head))}
        if more <= instant:
            return instant
        instant |= more


def _holds_now(rule: Rule, fleeting: frozenset[str]) -> bool:
    return not rule.next and _selects(rule, fleeting)


def _rules(program: RuleProgram, head: str) -> list[Rule]:
    return [rule for rule in program.rules if rule.head.relation == head]


def _selects(rule: Rule, among: frozenset[str]) -> bool:
    return any(atom.relation in among for atom in _selected(rule))


def _persists(rule: Rule) -> bool:
    """Does the head stand in the body with the same terms?"""
    wanted = dict(zip(rule.head.names or (), rule.head.terms, strict=True))
    return any(
        atom.relation == rule.head.relation and dict(zip(atom.names or (), atom.terms, strict=True)) == wanted
        for atom in _selected(rule)
    )


def _selected(rule: Rule) -> Iterable[RuleAtom]:
    """The positive atoms of a rule's body."""
    for part in rule.body:
        if isinstance(part, RuleAtom | Identified):
            yield part.atom if isinstance(part, Identified) else part
