"""Full names of relations: a name is looked up in its component, then in those around it.

>>> naming = Naming({"a.p", "p", "q"})
>>> naming.full("p", "a."), naming.full("q", "a."), naming.full("r", "a.")
('a.p', 'q', 'r')
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial

from everview.frontends.rules.program import (
    Functor,
    Holds,
    Negation,
    Rule,
    RuleAtom,
)
from everview.frontends.rules.walk import RulePart, rebuilt_rule, rewritten


class Naming:
    """The relations of a text, and the functors that may stand where an atom does."""

    def __init__(self, relations: Iterable[str], functors: Collection[str] = ()) -> None:
        self._relations = frozenset(relations)
        self._functors = frozenset(functors)

    def full(self, name: str, scope: str) -> str:
        """The relation that a name means in a scope such as ``"a.b."``; one that is not known here keeps its name."""
        while scope and f"{scope}{name}" not in self._relations:
            scope = scope[: scope.rfind(".", 0, -1) + 1]
        return f"{scope}{name}"

    def rule(self, rule: Rule, scope: str) -> Rule:
        """The rule with the full names of its relations; atoms that are calls of functors become conditions."""

        def named(part: RulePart) -> RulePart:
            match part:
                case RuleAtom(relation, terms):
                    full = self.full(relation, scope)
                    is_functor = full in self._functors
                    return Holds(Functor(relation, terms)) if is_functor else replace(part, relation=full)
                case Negation((Holds(term),)):
                    return Holds(Functor("lnot", (term,)))
                case _:
                    return part

        head = replace(rule.head, relation=self.full(rule.head.relation, scope))
        return rebuilt_rule(replace(rule, head=head), partial(rewritten, change=named))
