"""Unsigned numbers: the unsigned terms of a rule, and a check around each one that may be negative.

``unsigned`` is kept in 64 bits with a sign, so it has the numbers from 0 to 2^63 - 1; these compare, divide, shift and
print as numbers without a sign do. What would lead out of them is an error, as any overflow is: a difference below
zero, ``bnot``, a conversion of a negative number, a row that is given. For that, the terms that may be negative and
are unsigned, by the columns that their variables come from, are put into a functor that refuses it.

A column that is not declared is unsigned if all that its rules give is.

>>> from everview.frontends.datalog.parse import parse
>>> text = ".decl u(x: unsigned)\\n.input u\\np(x - 1) :- u(x), y = x + 1, y < 5."
>>> [rule.head.terms[0].name for rule in with_signs(parse(text)).rules]
['unsigned']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from everview.errors import TypeConflict
from everview.frontends.rules.faults import fault
from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Constant,
    Constraint,
    Functor,
    Identified,
    Rule,
    RuleAtom,
    RuleProgram,
    RuleVariable,
    Term,
)
from everview.frontends.rules.walk import RulePart, is_literal, rebuilt_rule, rewritten, rule_parts, walk

CHECKED: Final = "unsigned"  # the functor that refuses what is negative
MOST: Final = (1 << 63) - 1

ARITHMETIC: Final = frozenset(
    ["+", "-", "*", "/", "%", "^", "band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", "min", "max"]
)
FALLING: Final = frozenset(["-", "bnot", "bshl"])  # of numbers that are not negative one that may be
UNSIGNING: Final = frozenset(["itou", "ftou", "to_unsigned"])

Sign = Literal["", "unsigned", "signed"]  # nothing is known of constants


def with_signs(program: RuleProgram) -> RuleProgram:
    """The program with a check around every term that is unsigned and may become negative."""
    declared = any(d.unsigned for d in program.declarations)
    if not declared and not any(map(_unsigns, program.rules)):
        return program
    signs = _Signs(program)
    return replace(program, rules=tuple(signs.rule(rule) for rule in program.rules))


class _Signs:
    """The signs of columns: as declared, else as all rules of a head agree."""

    def __init__(self, program: RuleProgram) -> None:
        self.names = {d.name: d.schema.names for d in program.declarations}
        self.unsigned = {d.name: d.unsigned for d in program.declarations}
        self.found: dict[str, dict[int, Sign]] = {}
        while sum(self._learn(rule) for rule in program.rules):  # all of them, until nothing is new
            pass

    def _learn(self, rule: Rule) -> bool:
        if rule.head.relation in self.names:
            return False
        known = self.found.setdefault(rule.head.relation, {})
        variables = self._variables(rule)
        before = dict(known)
        for place, term in enumerate(rule.head.terms):
            known[place] = _met(known.get(place, ""), _sign(term, variables))
        return known != before

    def _of(self, atom: RuleAtom) -> Iterator[tuple[Term, Sign]]:
        """The terms of an atom with the signs of their columns."""
        names = self.names.get(atom.relation)
        for place, term in atom.placed(names):
            if names is not None:
                yield term, "unsigned" if place in self.unsigned[atom.relation] else "signed"
            else:
                yield term, self.found.get(atom.relation, {}).get(place, "")

    def _variables(self, rule: Rule) -> dict[str, Sign]:
        """The signs of a rule's variables; one that is unsigned in any atom is unsigned."""
        signs: dict[str, Sign] = {}
        for part in _all_literals(rule):
            if isinstance(part, RuleAtom):
                for term, sign in self._of(part):
                    if isinstance(term, RuleVariable) and sign and signs.get(term.name) != "unsigned":
                        signs[term.name] = sign
        equal = [part for part in _all_literals(rule) if isinstance(part, Constraint) and part.operator == "="]
        for _ in equal:
            for part in equal:
                for target, source in ((part.left, part.right), (part.right, part.left)):
                    if isinstance(target, RuleVariable) and target.name not in signs and (sign := _sign(source, signs)):
                        signs[target.name] = sign
        return signs

    # -- rules with checks

    def rule(self, rule: Rule) -> Rule:
        """The rule with checks; raises `TypeConflict` for a negative constant in an unsigned column."""
        variables = self._variables(rule)
        for part in (rule.head, *_all_literals(rule)):
            if isinstance(part, RuleAtom):
                self._check_constants(part, rule)
        checked = rebuilt_rule(rule, partial(rewritten, change=partial(_checked, variables=variables)))
        columns = zip(self._of(rule.head), checked.head.terms, strict=True)
        terms = tuple(self._head_term(term, made, sign, variables) for (term, sign), made in columns)
        return replace(checked, head=replace(rule.head, terms=terms))

    def _head_term(self, term: Term, made: Term, sign: Sign, variables: Mapping[str, Sign]) -> Term:
        """The term of a column that was ``made`` of another, with a check around it if the column is unsigned."""
        if sign != "unsigned" or isinstance(term, Constant) or _sign(term, variables) == "unsigned":
            return made
        if isinstance(made, AggregateTerm):
            inner = tuple(a if isinstance(a, Constant) else _wrapped(a) for a in made.arguments)
            return replace(made, arguments=inner) if made.body is None else _wrapped(made)
        return _wrapped(made)

    def _check_constants(self, atom: RuleAtom, rule: Rule) -> None:
        for term, sign in self._of(atom):
            value = term.value if isinstance(term, Constant) else None
            if sign == "unsigned" and isinstance(value, int) and not 0 <= value <= MOST and atom.relation in self.names:
                message = f"{value} is no unsigned number in {atom}"
                raise fault(TypeConflict, message, rule, f"these are from 0 to {MOST}; others are numbers")


def _met(a: Sign, b: Sign) -> Sign:
    if not a or not b:
        return a or b
    return a if a == b else "signed"


def _sign(term: Term, variables: Mapping[str, Sign]) -> Sign:
    match term:
        case RuleVariable(name):
            return variables.get(name, "")
        case Functor(name, arguments) if name in ARITHMETIC:
            sign: Sign = ""
            for argument in arguments:
                sign = _met(sign, _sign(argument, variables))
            return sign
        case Functor(name):
            return "unsigned" if name == CHECKED or name in UNSIGNING else "signed"
        case AggregateTerm(function, arguments):
            return "" if function == "count" or not arguments else _sign(arguments[0], variables)
        case Constant(value):
            return "" if isinstance(value, int) and not isinstance(value, bool) else "signed"
        case _:
            return ""


def _wrapped(term: Term) -> Term:
    return term if isinstance(term, Functor) and term.name == CHECKED else Functor(CHECKED, (term,))


def _checked(part: RulePart, variables: Mapping[str, Sign]) -> RulePart:
    """The part, wrapped in a check if it is unsigned and may be negative; its own parts are wrapped already."""
    match part:
        case Functor(name, (Functor(inside) as term,)) if name == inside == CHECKED:
            return term
        case Functor(name, arguments):
            falls = name in FALLING or any(map(_is_negative, arguments))
            is_unsigned = name in ARITHMETIC and falls and _sign(part, variables) == "unsigned"
            return _wrapped(part) if is_unsigned or name in UNSIGNING else part
        case _:
            return part


def _is_negative(term: Term) -> bool:
    return isinstance(term, Constant) and isinstance(term.value, int) and term.value < 0


def _all_literals(rule: Rule) -> Iterator[BodyLiteral]:
    """The literals of a rule, also those inside of aggregates; an atom with a content id as the atom alone."""
    for part in walk(rule_parts(rule)):
        if is_literal(part):
            yield part.atom if isinstance(part, Identified) else part


def _unsigns(rule: Rule) -> bool:
    """Does a rule convert a number to an unsigned one?"""
    return any(isinstance(part, Functor) and part.name in UNSIGNING for part in walk(rule_parts(rule)))
