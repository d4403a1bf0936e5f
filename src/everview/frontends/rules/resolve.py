"""Resolution of atoms: each names a relation that exists, and has a term for each of its columns, in order.

A column that an atom by names leaves out matches any value. An atom without terms, of a relation without columns, says
that the relation holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from everview.errors import DatalogError, UnknownRelation
from everview.frontends.rules.faults import fault
from everview.frontends.rules.program import (
    Constant,
    Identified,
    Rule,
    RuleAtom,
    RuleProgram,
    Wildcard,
)
from everview.frontends.rules.walk import RulePart, rebuilt, rebuilt_rule
from everview.plan.nullary import NULLARY
from everview.types import unknown_name

LIMIT: Final = ".limitsize"  # the directive that is part of a relation's meaning

Columns = Callable[[str], tuple[str, ...] | None]  # of a relation; None if there is none


class Resolving:
    """Resolves rules over relations whose columns are known by name."""

    def __init__(self, columns: Columns, names: Callable[[], Iterable[str]]) -> None:
        self._columns = columns
        self._names = names

    def rule(self, rule: Rule) -> Rule:
        """The rule with all its atoms by position; raises `UnknownRelation`, `DatalogError`."""

        def resolved(part: RulePart) -> RulePart:
            match part:
                case RuleAtom():
                    part = self._atom(part, rule, missing="any")
                case Identified(variable, atom):
                    part = Identified(variable, self._atom(atom, rule, missing="any"))
                case _:
                    pass
            return rebuilt(part, resolved)

        head = self._atom(rule.head, rule, missing="refused")
        return rebuilt_rule(replace(rule, head=head), resolved)

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
    declared = {d.name for d in program.declarations}
    names = {*known, *program.heads, *declared}
    for kind, name, place in program.directed:
        if name not in names:
            error = unknown_name("relation", name, names)
            hint = error.hint or f"declare it: .decl {name}(…)"
            raise fault(DatalogError, f"{kind} {name}: {error.message}", None, hint, place)
        if kind == LIMIT and name not in declared:
            hint = f"write it in the text that declares {name}: .decl {name}(…)"
            raise fault(DatalogError, f"{kind} {name}: {name} is not declared here", None, hint, place)
