"""From a query to rules: patterns become atoms of attributes, `or` a disjunction, `not` a negation.

The goal is called ``?``: it has a row for every binding of the variables that are found, or named by :with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from everview.frontends.edn.applied import Functions
from everview.frontends.edn.arguments import Given
from everview.frontends.edn.attributes import Attributes
from everview.frontends.edn.bindings import around, check_bindings
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.patterns import Patterns, Reads
from everview.frontends.edn.query import (
    Absent,
    Applied,
    Clause,
    Clauses,
    DataPattern,
    EdnQuery,
    OneOf,
    RuleCall,
    RuleClause,
    bound,
)
from everview.frontends.edn.rules import RuleBook
from everview.frontends.edn.scope import ClauseScope
from everview.frontends.rules.bodies import MOST_WAYS, bodies, ways
from everview.frontends.rules.program import (
    BodyLiteral,
    Either,
    Negation,
    Rule,
    RuleAtom,
    RuleProgram,
    RuleVariable,
    TextPlace,
    Wildcard,
)

GOAL: Final = "?"


@dataclass(frozen=True)
class Translated:
    """The program of a query, and what its atoms read."""

    program: RuleProgram
    reads: dict[str, Reads]
    places: dict[str, TextPlace]  # of literals by their texts, and of variables by theirs: the last of each


def translate(query: EdnQuery, given: Given, attributes: Attributes, *, lenient: bool = False) -> Translated:
    """Translate a query; a ``lenient`` one may name attributes that have no facts yet."""
    return _Translating(query, given, attributes, lenient).whole()


class _Translating:
    def __init__(self, query: EdnQuery, given: Given, attributes: Attributes, lenient: bool) -> None:
        self._query, self._given = query, given
        self._book = RuleBook.of((*query.rules, *given.rules))
        self._patterns = Patterns(given, attributes, lenient=lenient)
        self._functions = Functions(self._patterns)
        self._places: dict[str, TextPlace] = {}

    def whole(self) -> Translated:
        query, given = self._query, self._given
        there = frozenset((*given.terms, *(name for one in query.inputs for name in bound(one))))
        check_bindings(query.where, there, self._book.clauses)
        scope = ClauseScope.whole(given.terms)
        body = _countable((*given.atoms, *self._body(query.where, scope, there)), query.place)
        names = [f if isinstance(f, RuleVariable) else f.variable for f in query.find]
        head = tuple(scope.term(name) for name in dict.fromkeys(v.name for v in (*names, *query.with_)))
        goal = Rule(RuleAtom(GOAL, head, place=query.place), body, place=query.place)
        return Translated(RuleProgram((*self._rules(), goal)), self._patterns.reads, self._places)

    def _rules(self) -> list[Rule]:
        """The rules that are not written out where they are called."""
        rules = list[Rule]()
        for name, clauses in self._book.clauses.items():
            if not self._book.is_inlined(name):
                rules += [rule for clause in clauses for rule in self._rule(clause)]
        return rules

    def _rule(self, clause: RuleClause) -> list[Rule]:
        """A rule for each choice of branches, so that a choice which calls itself takes its types from the others."""
        there = check_bindings(clause.body, frozenset(), self._book.clauses)
        for name in clause.parameters:
            if name not in there:
                hint = "a rule that calls itself binds its own variables; only others can leave it to their callers"
                raise refuse(clause.place, f"rule {clause.name} does not bind ?{name}", hint)
        scope = ClauseScope.whole({})
        body = _countable(self._body(clause.body, scope, frozenset()), clause.place)
        head = RuleAtom(clause.name, tuple(scope.term(name) for name in clause.parameters), place=clause.place)
        return [Rule(head, choice, place=clause.place) for choice in bodies(body)]

    # -- clauses

    def _body(self, clauses: Clauses, scope: ClauseScope, outside: frozenset[str]) -> tuple[BodyLiteral, ...]:
        literals = list[BodyLiteral]()
        for place, clause in enumerate(clauses):
            made = self._clause(clause, scope, around(clauses, place, outside))
            if isinstance(clause, DataPattern | Applied):
                self._note(made, clause.place)
            literals += made
        return tuple(literals)

    def _note(self, made: tuple[BodyLiteral, ...], place: TextPlace) -> None:
        """Note the places of literals and variables, for errors about them."""
        for literal in made:
            self._places[str(literal)] = place
            if isinstance(literal, RuleAtom):
                self._places.update((f"?{term}", place) for term in literal.terms if isinstance(term, RuleVariable))

    def _clause(self, clause: Clause, scope: ClauseScope, outside: frozenset[str]) -> tuple[BodyLiteral, ...]:
        match clause:
            case DataPattern():
                return self._patterns.pattern(clause, scope)
            case Applied():
                return self._functions.literals(clause, scope)
            case RuleCall():
                return self._called(clause, scope)
            case OneOf():
                return (Either(tuple(self._branch(clause, branch, scope, outside) for branch in clause.branches)),)
            case Absent():
                return self._absent(clause, scope, outside)

    def _branch(
        self, clause: OneOf, branch: Clauses, scope: ClauseScope, outside: frozenset[str]
    ) -> tuple[BodyLiteral, ...]:
        if clause.joined is None:
            return self._body(branch, scope, outside)
        shared = (*clause.required, *clause.joined)
        return self._body(branch, scope.inside(shared), frozenset(shared))

    def _absent(self, clause: Absent, scope: ClauseScope, outside: frozenset[str]) -> tuple[BodyLiteral, ...]:
        shared = outside if clause.joined is None else frozenset(clause.joined)
        inner = _countable(self._body(clause.clauses, scope.inside(sorted(shared)), shared), clause.place)
        # No binding of this or that: none of this, and none of that.
        return tuple(Negation(choice) for choice in bodies(inner))

    def _called(self, clause: RuleCall, scope: ClauseScope) -> tuple[BodyLiteral, ...]:
        clauses = self._book.called(clause)
        terms = tuple(self._patterns.plain(term, scope) for term in clause.terms)
        if not self._book.is_inlined(clause.rule):
            return (RuleAtom(clause.rule, terms, place=clause.place),)
        named = tuple(scope.fresh("_") if isinstance(term, Wildcard) else term for term in terms)
        branches = list[tuple[BodyLiteral, ...]]()
        for rule in clauses:
            given = dict(zip(rule.parameters, named, strict=True))
            branches.append(self._body(rule.body, scope.called(given), frozenset(given)))
        return (Either(tuple(branches)),)


def _countable(body: tuple[BodyLiteral, ...], place: TextPlace) -> tuple[BodyLiteral, ...]:
    """The body; refused if it has more combinations of alternatives than can be joined one by one."""
    if ways(body) > MOST_WAYS:
        hint = "make some of the alternatives a view of their own, and ask that"
        raise refuse(place, f"there are more than {MOST_WAYS:,} combinations of alternatives", hint)
    return body
