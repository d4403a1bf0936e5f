"""Negations: the rows for which what is inside has no match.

What is inside is computed alone where it can be, and the rows that match it are taken away; constraints that need what
the rule binds join the condition. Where that is not enough, it is computed for the rule's different bindings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.frontends.datalog.bindings import Bindings, Context, seeded
from everview.frontends.datalog.bodies import attempted, has_aggregate, solved
from everview.frontends.datalog.matching import tested, tied
from everview.frontends.datalog.program import Compare, Literal_, Not, Rule, Test
from everview.frontends.datalog.terms import Values, body_variables, comparison, terms_of, variables
from everview.plan.conditions import conjunction
from everview.plan.expressions import Expression, moved
from everview.plan.nodes import Join


def negated(part: Not, found: Bindings, awaited: set[str], context: Context) -> Bindings | None:
    """The bindings without those for which a negation fails; None if it has to wait for a variable."""
    shared = set(body_variables(part.body))
    if shared & awaited:
        return None
    inner, left = attempted(part.body, context.inside(found))
    if not all(_covers(p, inner, found) for p in left):
        inner, left = _correlated(part.body, sorted(shared & found.values.keys()), found, context), []
    width = len(found.rows.schema)
    values = {name: moved(e, lambda at: at + width) for name, e in inner.values.items()}
    ties = [tied(n, found.values[n], e, context.rule) for n, e in values.items() if n in found.values]
    both = {**values, **found.values}
    ties += [_condition(p, both, context.rule) for p in left]
    return replace(found, plan=Join(found.rows, inner.rows, "anti", conjunction(ties)))


def _covers(part: Literal_, inner: Bindings, found: Bindings) -> bool:
    """Can a constraint be a condition over what is inside and what is around?"""
    if not isinstance(part, Compare | Test) or has_aggregate(part):
        return False
    return all(v in inner.values or v in found.values for t in terms_of(part) for v in variables(t))


def _condition(part: Literal_, values: Values, rule: Rule) -> Expression:
    if isinstance(part, Compare):
        return comparison(part, values, rule)
    assert isinstance(part, Test)
    return tested(part, values, rule)


def _correlated(body: Sequence[Literal_], shared: Sequence[str], found: Bindings, context: Context) -> Bindings:
    """What is inside, for each different binding of the variables that it shares with the rule."""
    return solved(body, context.inside(found), seeded(found, shared, str(Not(tuple(body))), context))
