"""The scope of a rule: the variables bound by the rule, and the variables local to an aggregate.

Selections bind all their variables. An aggregate binds its result, once the variables that its atom shares with the
rest of the rule are bound; its other variables are seen nowhere else. Nothing else binds: negations and constraints
test what is bound.

>>> from everview.frontends.pomologic.parse import parse
>>> (rule,) = parse("t(c: C, n: N) :- p(c: C), N := sum Q : q(c: C, q: Q, r: R).").rules
>>> scope = RuleScope.of(rule)
>>> sorted(scope.selected), sorted(scope.results), sorted(scope.local(scope.aggregates[0]))
(['C'], ['N'], ['Q', 'R'])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from everview.frontends.rules.program import (
    AggregateTerm,
    Constraint,
    Identified,
    Negation,
    Rule,
    RuleAtom,
    RuleVariable,
    Term,
)
from everview.frontends.rules.walk import variables

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """``result := function parameters : atom``."""

    result: str
    function: str
    parameters: tuple[str, ...]
    atom: RuleAtom

    def __str__(self) -> str:
        return f"{self.result} := {' '.join((self.function, *self.parameters))} : {self.atom}"


@dataclass(frozen=True, slots=True)
class RuleScope:
    """The parts of a rule's body, each by its kind."""

    selections: tuple[RuleAtom | Identified, ...]
    negations: tuple[RuleAtom, ...]
    constraints: tuple[Constraint, ...]
    aggregates: tuple[Aggregation, ...]

    @classmethod
    def of(cls, rule: Rule) -> RuleScope:
        """The scope of a rule that `parse` has made."""
        compared = [part for part in rule.body if isinstance(part, Constraint)]
        return cls(
            tuple(part for part in rule.body if isinstance(part, RuleAtom | Identified)),
            tuple(
                atom
                for part in rule.body
                if isinstance(part, Negation)
                for atom in part.body
                if isinstance(atom, RuleAtom)
            ),
            tuple(part for part in compared if not isinstance(part.right, AggregateTerm)),
            tuple(found for part in compared if (found := aggregation(part)) is not None),
        )

    @property
    def selected(self) -> Names:
        """The variables that selections bind, with those of content ids."""
        return frozenset[str]().union(*map(_selected, self.selections))

    @property
    def results(self) -> Names:
        """The variables that aggregates bind."""
        return frozenset(aggregate.result for aggregate in self.aggregates)

    @property
    def bound(self) -> Names:
        """The variables that the rule binds."""
        return self.selected | self.results

    def shared(self, aggregate: Aggregation) -> Names:
        """The variables of an aggregate's atom that tell its groups apart."""
        return names_in(aggregate.atom.terms) & self.bound

    def local(self, aggregate: Aggregation) -> Names:
        """The variables of an aggregate's atom that are seen nowhere else."""
        return names_in(aggregate.atom.terms) - self.bound

    def waiting(self) -> list[Aggregation]:
        """The aggregates impossible to compute: each needs a variable bound only by one of these aggregates."""
        bound, waiting = self.selected, list(self.aggregates)
        while ready := [aggregate for aggregate in waiting if self.shared(aggregate) <= bound]:
            bound |= {aggregate.result for aggregate in ready}
            waiting = [aggregate for aggregate in waiting if aggregate not in ready]
        return waiting


def aggregation(part: Constraint) -> Aggregation | None:
    """An aggregate as a constraint on its result; None for other constraints."""
    match part:
        case Constraint("=", RuleVariable(result), AggregateTerm(function, arguments, (RuleAtom() as atom,))):
            return Aggregation(result, function, tuple(str(a) for a in arguments), atom)
        case _:
            return None


def names_in(terms: Iterable[Term]) -> Names:
    """The variables among some terms."""
    return frozenset(variables(*terms))


def _selected(part: RuleAtom | Identified) -> Names:
    match part:
        case RuleAtom():
            return names_in(part.terms)
        case Identified(variable, atom):
            return names_in(atom.terms) | {variable.name}
