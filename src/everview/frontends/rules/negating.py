"""Negations: the rows of a rule for which the negated body has no match.

The negated body is computed alone where it can be, and an antijoin takes away the rows that match; constraints that
need variables of the rule join its condition. Where that is not enough, the body starts from the rule's distinct
bindings.

A negation inside of another waits until all is bound that it shares with what is around it. So one that holds nothing
but negations and constraints has no rows of its own: ``!!b(x)`` keeps the rows with a match, and ``!(!b(x), !d(x))``
those for which one of its parts fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Literal

from everview.frontends.rules.bindings import Bindings, BodyContext, seeded
from everview.frontends.rules.bodies import attempted, has_aggregate, solved
from everview.frontends.rules.matching import is_pattern, tested, tied
from everview.frontends.rules.program import BodyLiteral, Constraint, Holds, Negation, Rule
from everview.frontends.rules.terms import Values, comparison
from everview.frontends.rules.walk import all_variables, variables
from everview.plan.conditions import conjunction
from everview.plan.nodes import Join, Union
from everview.plan.references import free_references
from everview.plan.typing import call
from everview.scalars.expressions import FALSE, Expression, moved

Kind = Literal["semi", "anti"]  # the rows that have a match, or those that have none


def negated(part: Negation, bindings: Bindings, awaited: set[str], context: BodyContext) -> Bindings | None:
    """The bindings for which a negation holds; None if the negation has to wait for a variable."""
    shared = set(all_variables(part))
    if shared & (awaited | context.around) - bindings.values.keys():
        return None
    return _kept("anti", part.body, bindings, context)


def _kept(kind: Kind, body: Sequence[BodyLiteral], bindings: Bindings, context: BodyContext) -> Bindings:
    """The bindings for which a body without disjunctions has a match, or has none."""
    if _is_closed(body, bindings) and (len(body) == 1 or kind == "semi" or free_references(bindings.rows)):
        if kind == "semi":
            return reduce(lambda rows, part: _holding(part, rows, context), body, bindings)
        return _failing(body, bindings, context)
    inner, left, is_seeded = _matches(body, bindings, context)
    width = len(bindings.rows.schema)
    values = {name: moved(e, lambda place: place + width) for name, e in inner.values.items()}
    shared = [name for name in values if name in bindings.values]
    ties = [tied(n, bindings.values[n], values[n], context.rule, seeded=is_seeded) for n in shared]
    both = {**values, **bindings.values}
    ties += [_condition(p, both, context.rule) for p in left]
    return replace(bindings, plan=Join(bindings.rows, inner.rows, kind, conjunction(ties)))


# -- what has rows of its own


def _matches(
    body: Sequence[BodyLiteral], bindings: Bindings, context: BodyContext
) -> tuple[Bindings, list[BodyLiteral], bool]:
    """The rows of a negated body, the constraints that need the rule, too, and whether they start from its bindings."""
    inner, left = attempted(body, context.inside(bindings))
    if all(_covers(p, inner, bindings) for p in left):
        return inner, left, False
    shared = sorted(set(all_variables(*body)) & bindings.values.keys())
    start = seeded(bindings, shared, Negation(tuple(body)), context)
    return solved(body, context.inside(bindings), start), [], True


def _covers(part: BodyLiteral, inner: Bindings, bindings: Bindings) -> bool:
    """Is a constraint bound by the variables of the negated body and of the rule together?"""
    if not isinstance(part, Constraint | Holds) or has_aggregate(part) or is_pattern(part):
        return False
    return all(v in inner.values or v in bindings.values for v in variables(part))


def _condition(part: BodyLiteral, values: Values, rule: Rule) -> Expression:
    if isinstance(part, Constraint):
        return comparison(part, values, rule)
    assert isinstance(part, Holds)
    return tested(part, values, rule)


# -- what has none: negations and constraints of what is around


def _is_closed(body: Sequence[BodyLiteral], bindings: Bindings) -> bool:
    """Has a body only negations and constraints of the rule's variables, so that each holds or fails for a row?"""
    return any(isinstance(p, Negation) for p in body) and all(
        isinstance(part, Negation) or _covers(part, Bindings(), bindings) for part in body
    )


def _holding(part: BodyLiteral, bindings: Bindings, context: BodyContext) -> Bindings:
    if isinstance(part, Negation):
        return _kept("anti", part.body, bindings, context)
    return bindings.where([_condition(part, bindings.values, context.rule)])


def _failing(body: Sequence[BodyLiteral], bindings: Bindings, context: BodyContext) -> Bindings:
    """The rows for which some part fails, each once: the first part fails, or it holds and a later part fails."""
    first, *rest = body
    if isinstance(first, Negation):
        failed = _kept("semi", first.body, bindings, context)
    else:
        holds = call("coalesce", _condition(first, bindings.values, context.rule), FALSE)
        failed = bindings.where([call("not", holds)])
    if not rest:
        return failed
    others = _failing(rest, _holding(first, bindings, context), context)
    return replace(bindings, plan=Union((failed.rows, others.rows)))
