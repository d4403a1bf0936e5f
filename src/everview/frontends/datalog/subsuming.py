"""Subsumption: rows that give way to better ones, where "better" is less or more in one column.

``sp(x, d1) <= sp(x, d2) :- d2 <= d1.`` keeps, for each x, the least d: the rules of ``sp`` become those of a minimum.

>>> from everview.frontends.datalog.parse import parse
>>> print(parse("sp(x, 0) :- s(x). sp(x, a) <= sp(x, b) :- b < a.").rules[0])
sp(x, min(0)) :- s(x).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.errors import DatalogError
from everview.frontends.datalog.components import ScopedPart
from everview.frontends.datalog.naming import Naming
from everview.frontends.datalog.syntax import Subsumption, refused
from everview.frontends.rules.program import AggregateTerm, Constraint, Rule, RuleAtom, RuleVariable


def subsumed(rules: tuple[Rule, ...], subsumptions: Sequence[tuple[Naming, ScopedPart]]) -> tuple[Rule, ...]:
    """The rules, with a min or max in the heads whose rows give way to others."""
    columns: dict[str, tuple[int, str]] = {}
    for naming, placed in subsumptions:
        part = placed.part
        assert isinstance(part, Subsumption)
        name = naming.full(part.worse.relation, placed.scope)
        columns[name] = _extreme(part)
        if all(rule.head.relation != name for rule in rules):
            hint = "write a subsumption in the text of the rules that it is about"
            raise refused(f"{part.worse} <= {part.better}: {name} has no rules here", part.place, hint)
    return tuple(
        _aggregated(rule, columns[rule.head.relation]) if rule.head.relation in columns else rule for rule in rules
    )


def _extreme(part: Subsumption) -> tuple[int, str]:
    """The column that a subsumption keeps at its least or greatest, and the function that does so."""
    worse, better = part.worse, part.better
    if worse.relation == better.relation and len(worse.terms) == len(better.terms):
        apart = [column for column, (a, b) in enumerate(zip(worse.terms, better.terms, strict=True)) if a != b]
        if len(apart) == 1 and len(part.body) == 1:
            function = _function(part.body[0], worse.terms[apart[0]], better.terms[apart[0]])
            if function is not None and _is_general(worse):
                return apart[0], function
    raise _refused(part)


def _is_general(atom: RuleAtom) -> bool:
    return all(isinstance(t, RuleVariable) for t in atom.terms) and len(set(atom.terms)) == len(atom.terms)


def _function(condition: object, worse: object, better: object) -> str | None:
    match condition:
        case Constraint("<" | "<=", left, right) if (left, right) == (better, worse):
            return "min"
        case Constraint(">" | ">=", left, right) if (left, right) == (worse, better):
            return "min"
        case Constraint("<" | "<=", left, right) if (left, right) == (worse, better):
            return "max"
        case Constraint(">" | ">=", left, right) if (left, right) == (better, worse):
            return "max"
        case _:
            return None


def _aggregated(rule: Rule, column: tuple[int, str]) -> Rule:
    place, function = column
    terms = list(rule.head.terms)
    terms[place] = AggregateTerm(function, (terms[place],))
    return replace(rule, head=replace(rule.head, terms=tuple(terms)))


def _refused(part: Subsumption) -> DatalogError:
    hint = "write p(x, a) <= p(x, b) :- b <= a. (the least) or :- b >= a. (the greatest)"
    return refused(f"{part.worse} <= {part.better} is no subsumption that can be maintained", part.place, hint)
