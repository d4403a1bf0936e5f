"""From a text of PomoLogic to a program of rules.

A name inside an atom or a constraint is a variable, whatever its case, but for ``true`` and ``false``; ``_`` is any
value. An aggregate is a constraint on its result: ``N := count : p(x: X)`` reads ``N = count : { p(x: X) }``.

>>> print(parse("popular(id: X) :- profile(id: X), c := count : follower(follows: X), c >= 1000.").rules[0])
popular(id: X) :- profile(id: X), c = count : { follower(follows: X) }, c >= 1000.
"""

from __future__ import annotations

from typing import Any

from lark import Token, Transformer
from lark.tree import Meta
from lark.visitors import v_args

from everview.errors import DatalogError
from everview.frontends.pomologic.grammar import GRAMMAR, LITERALS
from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Comparison,
    Constant,
    Constraint,
    Identified,
    Negation,
    Rule,
    RuleAtom,
    RuleProgram,
    RuleVariable,
    Term,
    Wildcard,
)
from everview.frontends.rules.texts import name_of, number_of, parser_of, place_of, read, text_of


def parse(text: str) -> RuleProgram:
    """Read a text into a program, unchecked; raises `DatalogError` if the grammar refuses it."""
    return read(text, parser_of(GRAMMAR), _Rules())


class _Rules(Transformer[Token, Any]):
    """Turns trees of the grammar into rules."""

    def program(self, rules: list[Rule]) -> RuleProgram:
        return RuleProgram(tuple(rules))

    @v_args(meta=True)
    def rule(self, meta: Meta, parts: list[Any]) -> Rule:
        head, *rest = parts
        later = rest[:1] == ["next"]
        (body,) = rest[later:] or [()]
        return Rule(head, body, next=later, place=place_of(meta))

    def next(self, _: list[Token]) -> str:
        return "next"

    def body(self, literals: list[BodyLiteral]) -> tuple[BodyLiteral, ...]:
        return tuple(literals)

    # -- literals

    def selection(self, parts: list[RuleAtom]) -> RuleAtom:
        return parts[0]

    def negation(self, parts: list[RuleAtom]) -> Negation:
        return Negation((parts[0],))

    def identified(self, parts: list[Any]) -> Identified:
        name, atom = parts
        return Identified(RuleVariable(name), atom)

    def aggregation(self, parts: list[Any]) -> Constraint:
        result, function, *arguments, atom = parts
        return Constraint(
            "=", RuleVariable(result), AggregateTerm(function, tuple(map(RuleVariable, arguments)), (atom,))
        )

    def constraint(self, parts: list[Any]) -> Constraint:
        left, operator, right = parts
        compared: Comparison = "=" if operator == "==" else str(operator)  # pyright: ignore[reportAssignmentType]
        return Constraint(compared, left, right)

    # -- atoms and terms

    @v_args(meta=True)
    def atom(self, meta: Meta, parts: list[Any]) -> RuleAtom:
        relation, *attributes = parts
        names = tuple(name for name, _ in attributes)
        for name in names:
            if names.count(name) > 1:
                raise DatalogError(
                    f"{meta.line}:{meta.column}: {relation} has attribute {name} twice", hint="name it once"
                )
        return RuleAtom(relation, tuple(term for _, term in attributes), names, place_of(meta))

    def attribute(self, parts: list[Any]) -> tuple[str, Term]:
        return parts[0], parts[1]

    def name(self, tokens: list[Token]) -> str:
        return name_of(*tokens)

    def named(self, names: list[str]) -> Term:
        (name,) = names
        if name in LITERALS:
            return Constant(LITERALS[name])
        return Wildcard() if name == "_" else RuleVariable(name)

    def number(self, tokens: list[Token]) -> Constant:
        return Constant(number_of(tokens[0]))

    def text(self, tokens: list[Token]) -> Constant:
        return Constant(text_of(tokens[0]))
