"""Atoms by position: every atom has a term for each column of its relation, in order, and the relation is there.

An atom by names says nothing of the columns that it leaves out; one of a relation without columns says that it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from difflib import get_close_matches

from everview.errors import DatalogError, UnknownRelation
from everview.frontends.rules.faults import fault
from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Constant,
    Constraint,
    Either,
    Functor,
    Holds,
    Identified,
    Negation,
    Rule,
    RuleAtom,
    RuleProgram,
    Term,
    Wildcard,
)
from everview.frontends.rules.relations import NULLARY
from everview.types import unknown_name

Columns = Callable[[str], tuple[str, ...] | None]  # of a relation; None if there is none


class Resolving:
    """Rules over relations whose columns are known by name."""

    def __init__(self, columns: Columns, names: Callable[[], Iterable[str]]) -> None:
        self._columns = columns
        self._names = names

    def rule(self, rule: Rule) -> Rule:
        head = self._atom(rule.head, rule, missing="refused")
        head = replace(head, terms=tuple(self._term(t, rule) for t in head.terms))
        return replace(rule, head=head, body=self._body(rule.body, rule))

    def _body(self, body: tuple[BodyLiteral, ...], rule: Rule) -> tuple[BodyLiteral, ...]:
        return tuple(self._literal(part, rule) for part in body)

    def _literal(self, part: BodyLiteral, rule: Rule) -> BodyLiteral:
        match part:
            case RuleAtom():
                atom = self._atom(part, rule, missing="any")
                return replace(atom, terms=tuple(self._term(t, rule) for t in atom.terms))
            case Identified(variable, atom):
                found = self._literal(atom, rule)
                assert isinstance(found, RuleAtom)
                return Identified(variable, found)
            case Negation(inner):
                return Negation(self._body(inner, rule))
            case Either(branches):
                return Either(tuple(self._body(branch, rule) for branch in branches))
            case Constraint(operator, left, right):
                return Constraint(operator, self._term(left, rule), self._term(right, rule))
            case Holds(term):
                return Holds(self._term(term, rule))

    def _term(self, term: Term, rule: Rule) -> Term:
        match term:
            case Functor(name, arguments):
                return Functor(name, tuple(self._term(a, rule) for a in arguments))
            case AggregateTerm(function, arguments, body):
                inner = None if body is None else self._body(body, rule)
                return AggregateTerm(function, tuple(self._term(a, rule) for a in arguments), inner)
            case _:
                return term

    def _atom(self, atom: RuleAtom, rule: Rule, *, missing: str) -> RuleAtom:
        columns = self._columns(atom.relation)
        if columns is None:
            raise self._unknown(atom, rule)
        if atom.names is not None:
            return self._by_position(atom, columns, rule, missing)
        if not atom.terms and columns == NULLARY.names:
            return replace(atom, terms=(Constant(True),))
        if len(atom.terms) != len(columns):
            count = 0 if columns == NULLARY.names else len(columns)
            message = f"{atom.relation} has {count} columns, and {atom} {len(atom.terms)} terms"
            hint = f"{atom.relation}({', '.join(columns) if count else ''}); write _ for what does not matter"
            raise fault(DatalogError, message, rule, hint, atom.place)
        return atom

    def _by_position(self, atom: RuleAtom, columns: tuple[str, ...], rule: Rule, missing: str) -> RuleAtom:
        assert atom.names is not None
        given = dict(zip(atom.names, atom.terms, strict=True))
        wrong = next((name for name in atom.names if name not in columns), None)
        if wrong is not None:
            message = f"{atom.relation} has no column {wrong}"
            raise fault(DatalogError, message, rule, f"its columns are {', '.join(columns)}", atom.place)
        left_out = [name for name in columns if name not in given]
        if left_out and missing == "refused":
            message = f"{atom} leaves out {', '.join(left_out)}"
            raise fault(DatalogError, message, rule, "a head gives all columns of its relation", atom.place)
        return RuleAtom(atom.relation, tuple(given.get(name, Wildcard()) for name in columns), None, atom.place)

    def _unknown(self, atom: RuleAtom, rule: Rule) -> UnknownRelation:
        names = sorted(self._names())
        folded = {name.lower(): name for name in names}
        near = get_close_matches(atom.relation.lower(), folded, n=1)
        guess = f'did you mean "{folded[near[0]]}"? ' if near else ""
        hint = f"{guess}available: {', '.join(names)}" if names else "declare it: .decl name(column: type)"
        return fault(UnknownRelation, f'relation "{atom.relation}" does not exist', rule, hint, atom.place)


def check_directed(program: RuleProgram, known: Collection[str]) -> None:
    """Refuse directives of relations that are neither declared, nor defined by rules, nor known otherwise."""
    names = {*known, *program.heads, *(d.name for d in program.declarations)}
    for kind, name, place in program.directed:
        if name not in names:
            error = unknown_name("relation", name, names)
            hint = error.hint or f"declare it: .decl {name}(…)"
            raise fault(DatalogError, f"{kind} {name}: {error.message}", None, hint, place)
