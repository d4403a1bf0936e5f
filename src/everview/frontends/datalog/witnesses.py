"""Witnesses: variables of a ``min`` or ``max`` that the rule reads, though only the aggregate binds them.

``oldest(n, a) :- a = max b : { person(n, b) }.`` asks whose age the greatest one is. Such a rule says the same as one
that looks for the rows of the body which have the aggregate's value: ``a = max b : { person(_, b) }, person(n, a)``.
All of them are witnesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count

from everview.frontends.rules.ground import bound_by
from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Constraint,
    Either,
    Rule,
    RuleVariable,
)
from everview.frontends.rules.walk import (
    RulePart,
    aggregates,
    all_variables,
    is_literal,
    is_term,
    rewritten,
    variables,
)

OF_ONE_ROW = ("min", "max")  # aggregates that are the value of a row


def with_witnesses(rule: Rule) -> Rule:
    """The rule with the rows that its witnesses stand for among its literals."""
    names = (f"?{number}" for number in count())  # no variable of a text is called so
    return replace(rule, body=_body(rule.body, set(variables(*rule.head.terms)), names))


def _body(body: tuple[BodyLiteral, ...], elsewhere: set[str], names: Iterator[str]) -> tuple[BodyLiteral, ...]:
    known = _known(body)
    made: list[BodyLiteral] = []
    for literal in body:
        if not isinstance(literal, Either) and next(aggregates(literal), None) is None:
            made.append(literal)
            continue
        read = elsewhere | set(variables(*(other for other in body if other is not literal)))
        if isinstance(literal, Either):
            made.append(Either(tuple(_body(branch, read, names) for branch in literal.branches)))
            continue
        made.append(literal)
        for term in list(aggregates(literal)):
            witnesses = (read & _known(term.body or ())) - known
            if term.function in OF_ONE_ROW and len(term.arguments) == 1 and term.body and witnesses:
                made[-1:] = _looked_up(made[-1], term, witnesses, read | known, names)
    return tuple(made)


def _known(body: tuple[BodyLiteral, ...]) -> frozenset[str]:
    """The variables bound in a body, including those bound in every branch of a disjunction."""
    branches = [map(_known, literal.branches) for literal in body if isinstance(literal, Either)]
    return bound_by(body, frozenset(name for each in branches for name in frozenset.intersection(*each)))


def _looked_up(
    literal: BodyLiteral, term: AggregateTerm, witnesses: set[str], read: set[str], names: Iterator[str]
) -> list[BodyLiteral]:
    """The literal with a variable for its aggregate, the aggregate apart from it, and the rows that have its value."""
    inside = set(all_variables(term))
    aside = {name: RuleVariable(next(names)) for name in sorted(inside & witnesses)}
    alone = {name: RuleVariable(next(names)) for name in sorted(inside - read)}
    given = _set_to(literal, term)
    value = given or RuleVariable(next(names))
    (argument,) = term.arguments
    others = [] if given else [rewritten(literal, lambda part: value if part == term else part)]
    aggregate, same = (rewritten(part, partial(_named, names)) for part, names in ((term, aside), (argument, alone)))
    rows = [rewritten(part, partial(_named, alone)) for part in term.body or ()]
    assert is_term(aggregate) and is_term(same)
    made = [Constraint("=", value, aggregate), *rows, Constraint("=", value, same), *others]
    return [part for part in made if is_literal(part)]


def _set_to(literal: BodyLiteral, term: AggregateTerm) -> RuleVariable | None:
    """The variable of a literal of the form `x = aggregate`; None for every other literal."""
    if isinstance(literal, Constraint) and literal.operator == "=" and literal.right == term:
        return literal.left if isinstance(literal.left, RuleVariable) else None
    return None


def _named(names: dict[str, RuleVariable], part: RulePart) -> RulePart:
    return names.get(part.name, part) if isinstance(part, RuleVariable) else part
