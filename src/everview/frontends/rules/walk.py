"""The one walk over terms and literals, and the one way to change them.

`inner` lists the parts that a part of a rule is directly made of; `rebuilt` makes the same part of changed ones. `walk`
reads all parts by the former, in the order in which a rule is written; `rewritten` changes all by the latter, from the
inside out.

>>> x, y = RuleVariable("x"), RuleVariable("y")
>>> body = (RuleAtom("p", (x,)), Negation((RuleAtom("q", (Functor("+", (x, y)),)),)))
>>> [str(part) for part in walk(body)]
['p(x)', 'x', '!q(x + y)', 'q(x + y)', 'x + y', 'x', 'y']
>>> list(variables(*body)), list(all_variables(*body))
(['x'], ['x', 'x', 'y'])
>>> print(rewritten(body[1], lambda part: Constant(1) if part == y else part))
!q(x + 1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeGuard, assert_never

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
    RuleVariable,
    Term,
    Wildcard,
)

RulePart: TypeAlias = Term | BodyLiteral
Enters = Callable[[RulePart], bool]  # does a walk go into a part?
Change = Callable[[RulePart], RulePart]


# -- one step


def inner(part: RulePart) -> tuple[RulePart, ...]:
    """The parts that a term or a literal is directly made of, in the order in which they are written."""
    match part:
        case RuleVariable() | Constant() | Wildcard():
            return ()
        case Functor(_, arguments):
            return arguments
        case AggregateTerm(_, arguments, body):
            return (*arguments, *(body or ()))
        case RuleAtom():
            return part.terms
        case Identified(variable, atom):
            return (variable, *atom.terms)
        case Negation(body):
            return body
        case Constraint(_, left, right):
            return left, right
        case Holds(term):
            return (term,)
        case Either(branches):
            return tuple(literal for branch in branches for literal in branch)
        case _:
            assert_never(part)


def rebuilt(part: RulePart, change: Change) -> RulePart:
    """Change the parts that a part is directly made of; the variable of an `Identified` always stays."""
    match part:
        case RuleVariable() | Constant() | Wildcard():
            return part
        case Functor(_, arguments):
            return replace(part, arguments=_terms(map(change, arguments)))
        case AggregateTerm(function, arguments, body):
            inside = None if body is None else _literals(map(change, body))
            return AggregateTerm(function, _terms(map(change, arguments)), inside)
        case RuleAtom():
            return replace(part, terms=_terms(map(change, part.terms)))
        case Identified(variable, atom):
            return Identified(variable, replace(atom, terms=_terms(map(change, atom.terms))))
        case Negation(body):
            return Negation(_literals(map(change, body)))
        case Constraint(operator, left, right):
            return Constraint(operator, *_terms(map(change, (left, right))))
        case Holds(term):
            return Holds(*_terms(map(change, (term,))))
        case Either(branches):
            return Either(tuple(_literals(map(change, branch)) for branch in branches))
        case _:
            assert_never(part)


def rebuilt_rule(rule: Rule, change: Change) -> Rule:
    """The rule with the terms of its head and the literals of its body changed."""
    head = replace(rule.head, terms=_terms(map(change, rule.head.terms)))
    return replace(rule, head=head, body=_literals(map(change, rule.body)))


def _terms(parts: Iterable[RulePart]) -> tuple[Term, ...]:
    made = tuple(parts)
    assert all(map(is_term, made)), "a term stays a term"
    return made  # pyright: ignore[reportReturnType]


def _literals(parts: Iterable[RulePart]) -> tuple[BodyLiteral, ...]:
    made = tuple(parts)
    assert all(map(is_literal, made)), "a literal stays a literal"
    return made  # pyright: ignore[reportReturnType]


def is_term(part: RulePart) -> TypeGuard[Term]:
    """Is a part a term, and no literal?"""
    return isinstance(part, RuleVariable | Constant | Wildcard | Functor | AggregateTerm)


def is_literal(part: RulePart) -> TypeGuard[BodyLiteral]:
    """Is a part a literal, and no term?"""
    return not is_term(part)


# -- the whole way


def anything(_: RulePart) -> bool:
    """Go into every part."""
    return True


def outside(part: RulePart) -> bool:
    """Go into all but negations and aggregates, which have variables of their own."""
    return not isinstance(part, Negation | AggregateTerm)


def walk(parts: Iterable[RulePart], enters: Enters = anything) -> Iterator[RulePart]:
    """Each part, followed by the parts inside of it if the walk enters it."""
    waiting = [*parts][::-1]
    while waiting:
        part = waiting.pop()
        yield part
        if enters(part):
            waiting += inner(part)[::-1]


def rewritten(part: RulePart, change: Change) -> RulePart:
    """Apply ``change`` to all parts inside of a part, then to the part itself."""
    return change(rebuilt(part, partial(rewritten, change=change)))


# -- what is looked for


def rule_parts(rule: Rule) -> tuple[RulePart, ...]:
    """The terms of a rule's head and the literals of its body."""
    return (*rule.head.terms, *rule.body)


def variables(*parts: RulePart, enters: Enters = outside) -> Iterator[str]:
    """The variables of parts, without those inside of negations and aggregates."""
    for part in walk(parts, enters):
        if isinstance(part, RuleVariable):
            yield part.name


def all_variables(*parts: RulePart) -> Iterator[str]:
    """The variables of parts, also those inside of negations and aggregates."""
    return variables(*parts, enters=anything)


def aggregates(*parts: RulePart) -> Iterator[AggregateTerm]:
    """The aggregates of parts, without those inside of others and of negations."""
    return (part for part in walk(parts, outside) if isinstance(part, AggregateTerm))


def literals(body: Iterable[BodyLiteral]) -> Iterator[BodyLiteral]:
    """The literals of a body, also those inside of others, but not those of aggregates."""
    return (part for part in walk(body, is_literal) if is_literal(part))
