"""Relations by their full names: a name is looked up from the inside of components out.

>>> naming = Naming({"a.p", "p", "q"})
>>> naming.full("p", "a."), naming.full("q", "a."), naming.full("r", "a.")
('a.p', 'q', 'r')
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from everview.frontends.rules.program import (
    Aggregate,
    Atom,
    Compare,
    Either,
    Functor,
    Identified,
    Literal_,
    Not,
    Rule,
    Term,
    Test,
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

    def atom(self, atom: Atom, scope: str) -> Atom:
        terms = tuple(self._term(t, scope) for t in atom.terms)
        return replace(atom, relation=self.full(atom.relation, scope), terms=terms)

    def body(self, body: tuple[Literal_, ...], scope: str) -> tuple[Literal_, ...]:
        return tuple(self._literal(part, scope) for part in body)

    def _literal(self, part: Literal_, scope: str) -> Literal_:
        match part:
            case Atom():
                found = self.atom(part, scope)
                return Test(Functor(part.relation, found.terms)) if found.relation in self._functors else found
            case Not((inner,)):
                found = self._literal(inner, scope)
                return Test(Functor("lnot", (found.term,))) if isinstance(found, Test) else Not((found,))
            case Not(inner):
                return Not(self.body(inner, scope))
            case Either(branches):
                return Either(tuple(self.body(branch, scope) for branch in branches))
            case Compare(operator, left, right):
                return Compare(operator, self._term(left, scope), self._term(right, scope))
            case Test(term):
                return Test(self._term(term, scope))
            case Identified(variable, atom):
                return Identified(variable, self.atom(atom, scope))

    def _term(self, term: Term, scope: str) -> Term:
        match term:
            case Functor(name, arguments):
                return Functor(name, tuple(self._term(a, scope) for a in arguments))
            case Aggregate(function, arguments, body):
                inner = None if body is None else self.body(body, scope)
                return Aggregate(function, tuple(self._term(a, scope) for a in arguments), inner)
            case _:
                return term
