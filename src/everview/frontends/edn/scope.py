"""Scopes of clauses: a variable stands for itself, for a given constant, or for a new variable of a join."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from everview.frontends.rules.program import RuleVariable, Term


class ClauseScope:
    """Terms by the names of variables; one that is not there yet is a new variable.

    >>> scope = ClauseScope({"x": RuleVariable("x")}, count(1))
    >>> print(scope.term("x"), scope.term("y"), scope.inside(["x"]).term("y"))
    x y~1 y~2
    """

    def __init__(self, terms: Mapping[str, Term], numbers: Iterator[int], *, plain: bool = False) -> None:
        self._terms = dict(terms)
        self._numbers = numbers
        self._plain = plain

    @classmethod
    def whole(cls, terms: Mapping[str, Term]) -> ClauseScope:
        """The scope of a query or a rule, in which variables keep their names."""
        return cls(terms, count(1), plain=True)

    def term(self, name: str) -> Term:
        """The term that a variable stands for."""
        if name not in self._terms:
            self._terms[name] = RuleVariable(name) if self._plain else self.fresh(name)
        return self._terms[name]

    def fresh(self, name: str) -> RuleVariable:
        """A variable that stands nowhere else."""
        return RuleVariable(f"{name}~{next(self._numbers)}")

    def inside(self, shared: Iterable[str]) -> ClauseScope:
        """A scope that shares some variables with this one; the others are its own."""
        return ClauseScope({name: self.term(name) for name in shared}, self._numbers)

    def called(self, terms: Mapping[str, Term]) -> ClauseScope:
        """A scope with these terms for its variables, and others of its own."""
        return ClauseScope(terms, self._numbers)
