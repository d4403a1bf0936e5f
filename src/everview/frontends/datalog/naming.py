"""Relations by their full names: a name is looked up from the inside of components out.

>>> naming = Naming({"a.p", "p", "q"})
>>> naming.full("p", "a."), naming.full("q", "a."), naming.full("r", "a.")
('a.p', 'q', 'r')
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Constraint,
    Either,
    Functor,
    Holds,
    Identified,
    Negation,
    Rule,
    RuleAtom,
    Term,
)


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
        return replace(rule, head=self.atom(rule.head, scope), body=self.body(rule.body, scope))

    def atom(self, atom: RuleAtom, scope: str) -> RuleAtom:
        terms = tuple(self._term(t, scope) for t in atom.terms)
        return replace(atom, relation=self.full(atom.relation, scope), terms=terms)

    def body(self, body: tuple[BodyLiteral, ...], scope: str) -> tuple[BodyLiteral, ...]:
        return tuple(self._literal(part, scope) for part in body)

    def _literal(self, part: BodyLiteral, scope: str) -> BodyLiteral:
        match part:
            case RuleAtom():
                found = self.atom(part, scope)
                return Holds(Functor(part.relation, found.terms)) if found.relation in self._functors else found
            case Negation((inner,)):
                found = self._literal(inner, scope)
                return Holds(Functor("lnot", (found.term,))) if isinstance(found, Holds) else Negation((found,))
            case Negation(inner):
                return Negation(self.body(inner, scope))
            case Either(branches):
                return Either(tuple(self.body(branch, scope) for branch in branches))
            case Constraint(operator, left, right):
                return Constraint(operator, self._term(left, scope), self._term(right, scope))
            case Holds(term):
                return Holds(self._term(term, scope))
            case Identified(variable, atom):
                return Identified(variable, self.atom(atom, scope))

    def _term(self, term: Term, scope: str) -> Term:
        match term:
            case Functor(name, arguments):
                return Functor(name, tuple(self._term(a, scope) for a in arguments))
            case AggregateTerm(function, arguments, body):
                inner = None if body is None else self.body(body, scope)
                return AggregateTerm(function, tuple(self._term(a, scope) for a in arguments), inner)
            case _:
                return term
