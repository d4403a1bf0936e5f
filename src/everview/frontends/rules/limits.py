"""Limits of size: a recursion that stops after the round in which a relation has reached a number of rows.

``.limitsize p(n=100)`` is Soufflé's. Its rounds are those of all rules of the recursive group at once, each over the
rows of the round before; after the first round that leaves ``p`` with 100 rows or more, no rule is applied any more,
to any relation of the group. So there may be more than 100 rows: all that the last round derived. What that is depends
on the rows that the rules read and on nothing else, so it can be kept under change. A relation that is not recursive
has one round, and no limit.

In rules, ``p(x + 1) :- p(x).`` with a limit is ``p(x) :- p(x).`` and ``p(x + 1) :- p(x), !(count : { p(_) } >= 100).``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Constant,
    Constraint,
    Negation,
    Rule,
    RuleAtom,
    RuleVariable,
    Wildcard,
)
from everview.frontends.rules.stratification import reads


def limited(group: Sequence[str], rules: Iterable[Rule], limits: Mapping[str, tuple[int, int]]) -> list[Rule]:
    """The rules of a recursive group that stop at its limits: a number of rows and of columns by relation."""
    rewritten = list(rules)
    guards = tuple(_below(name, *limits[name]) for name in group if name in limits)
    heads = {rule.head.relation: rule for rule in reversed(rewritten)}
    stopping = [_guarded(rule, guards) if any(r.relation in group for r in reads(rule)) else rule for rule in rewritten]
    return [*stopping, *(_kept(heads[name]) for name in group)]


def _below(name: str, most: int, width: int) -> BodyLiteral:
    """The condition that a relation has not reached its limit."""
    count = AggregateTerm("count", (), (RuleAtom(name, (Wildcard(),) * width),))
    return Negation((Constraint(">=", count, Constant(most)),))


def _guarded(rule: Rule, guards: tuple[BodyLiteral, ...]) -> Rule:
    return replace(rule, body=(*rule.body, *guards))


def _kept(rule: Rule) -> Rule:
    """The rule by which a relation keeps the rows of the round before."""
    terms = tuple(RuleVariable(f"?{place}") for place in range(len(rule.head.terms)))
    return replace(rule, head=replace(rule.head, terms=terms), body=(RuleAtom(rule.head.relation, terms),))
