"""Aggregates: of the bindings of a body, or, in a head, of its groups.

``c = count : { edge(x, _) }`` counts, for each x that the rule binds elsewhere, the ways in which the body holds: the
body is computed once, grouped by the variables that it shares with the rule, and joined. Of nothing there are 0 and
the sum is 0, so these keep every row of the rule; of nothing there is no ``min``, ``max`` or ``mean``, so these do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from everview.errors import DatalogError, TypeConflict
from everview.frontends.rules.bindings import Bindings, BodyContext, seeded
from everview.frontends.rules.bodies import attempted, bodies, solved
from everview.frontends.rules.faults import fault
from everview.frontends.rules.matching import HIDDEN, tied
from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Rule,
    RuleVariable,
)
from everview.frontends.rules.relations import aggregate_type
from everview.frontends.rules.terms import expression
from everview.frontends.rules.walk import RulePart, aggregates, all_variables, is_literal, rebuilt
from everview.operators.aggregate.registry import aggregates_of
from everview.plan import nodes
from everview.plan.aggregates import aggregate_call
from everview.plan.conditions import conjunction
from everview.plan.node import Plan, unique
from everview.plan.nodes import Distinct, Filter, Join, Project, Union
from everview.plan.typing import call, cast, is_integer, is_number
from everview.scalars.expressions import TRUE, USER, AggregateCall, Expression, Literal, moved
from everview.types import DOUBLE, Type

FUNCTIONS = aggregates_of("datalog")
OF_NOTHING = ("count", "sum")  # those that have a value, 0, where there is nothing

Finish = Callable[[Sequence[Expression]], Expression]


@dataclass(frozen=True)
class AggregateCalls:
    """The calls in the plan for one aggregate, and ``finish``, which makes its value from their results."""

    calls: tuple[AggregateCall, ...]
    finish: Finish


def made(function: str, arguments: Sequence[Expression], rule: Rule) -> AggregateCalls:
    """An aggregate of bound arguments."""
    type_ = aggregate_type(function)
    if function not in FUNCTIONS and type_ is None:
        hint = f"there are {', '.join(FUNCTIONS)}, and those registered with @ev.aggregate"
        raise fault(DatalogError, f"there is no aggregate {function}", rule, hint)
    if function == "count":
        return AggregateCalls((aggregate_call("count", ()),), _first)
    if type_ is not None and function not in FUNCTIONS:
        made_of = AggregateCall(f"{USER}{function.lower()}", tuple(arguments), False, None, (), type_, True)
        return AggregateCalls((made_of,), _first)
    if len(arguments) != 1:
        raise fault(DatalogError, f"{function} takes one argument", rule, f"write {function} x : {{ … }}")
    (argument,), line = arguments, FUNCTIONS[function]
    if line.takes == "numbers" and not is_number(argument.type):
        raise fault(TypeConflict, f"{function} of {argument.type}", rule, "give it numbers")
    if function == "average" and is_integer(argument.type):
        return AggregateCalls(
            (aggregate_call("sum", (argument,)), aggregate_call("count", ())), partial(_whole, argument.type)
        )
    if line.name == "avg":
        argument = cast(argument, DOUBLE)
    return AggregateCalls((aggregate_call(line.name, (argument,)),), _first)


def _first(results: Sequence[Expression]) -> Expression:
    return results[0]


def _whole(type_: Type, results: Sequence[Expression]) -> Expression:
    """The average of integers, truncated."""
    return cast(call("integral_divide", *results), type_)


# -- in bodies


def aggregated(
    part: BodyLiteral, bindings: Bindings, elsewhere: set[str], context: BodyContext
) -> tuple[Bindings, BodyLiteral] | None:
    """The bindings with an aggregate's value, and the literal with a variable in its place; None if it has to wait."""
    term = next(aggregates(part))
    if term.body is None:
        hint = f"write {term.function} … : {{ … }}, or use it in the head"
        raise fault(DatalogError, f"{term.function} of which rows?", context.rule, hint)
    shared = sorted(elsewhere & set(all_variables(term)))
    if any(name not in bindings.values for name in shared):
        return None
    fresh = context.fresh()
    made_of = _joined(term, fresh, shared, bindings, context)
    return made_of, _replaced(part, term, RuleVariable(fresh))


def _joined(
    term: AggregateTerm, fresh: str, shared: Sequence[str], bindings: Bindings, context: BodyContext
) -> Bindings:
    inner, is_seeded = _inner(term, shared, bindings, context)
    arguments = tuple(expression(a, inner.values, context.rule) for a in term.arguments)
    calls = made(term.function, arguments, context.rule)
    keeps = term.function in OF_NOTHING
    groups = tuple(inner.values[name] for name in shared)
    groups = groups if groups or keeps else (TRUE,)  # one group, but of nothing there is none
    names = unique([*shared, *("all" for _ in groups[len(shared) :]), *(f"a{i}" for i in range(len(calls.calls)))])
    plan: Plan = nodes.Aggregate(inner.rows, groups, calls.calls, names)
    result = plan.column(len(groups))
    if not keeps and result.nullable:  # NULL is no result
        plan = Filter(plan, call("is_not_null", result))
    width = len(bindings.rows.schema) if bindings.plan is not None or shared else 0
    columns = [moved(c, lambda place: place + width) for c in plan.columns]
    ties = [
        tied(n, bindings.values[n], c, context.rule, seeded=is_seeded)
        for n, c in zip(shared, columns[: len(shared)], strict=True)
    ]
    if width:
        plan = Join(bindings.rows, plan, "left" if keeps and shared else "inner", conjunction(ties))
        columns = list(plan.columns[width:])
    value = calls.finish(columns[len(groups) :])
    if keeps:
        value = call("coalesce", value, Literal(0, value.type)) if is_integer(value.type) else _or_zero(value)
    return Bindings(plan, {**bindings.values, fresh: value})


def _or_zero(value: Expression) -> Expression:
    return call("coalesce", value, cast(Literal(0, aggregate_call("count", ()).type), value.type))


def _inner(
    term: AggregateTerm, shared: Sequence[str], bindings: Bindings, context: BodyContext
) -> tuple[Bindings, bool]:
    """The bindings of an aggregate's body, and whether they had to start from the rule's values of ``shared``."""
    inside = context.inside(bindings)
    alone = [attempted(body, inside) for body in bodies(term.body or ())]
    if all(not left and all(name in inner.values for name in shared) for inner, left in alone):
        return _as_one([inner for inner, _ in alone]), False
    start = seeded(bindings, shared, term, inside)
    return _as_one([solved(body, inside, start) for body in bodies(term.body or ())]), True


def _as_one(branches: Sequence[Bindings]) -> Bindings:
    return branches[0] if len(branches) == 1 else together(branches)


def together(branches: Sequence[Bindings]) -> Bindings:
    """The different bindings of several bodies, of the variables that all of them have."""
    shown = (n for n in branches[0].values if not n.startswith(HIDDEN))
    names = [n for n in shown if all(n in b.values for b in branches)]
    if not names:  # they hold, or not
        return Bindings(Distinct(Union(tuple(Project(b.rows, (TRUE,), ("all",)) for b in branches))))
    rows = [Project(b.rows, tuple(b.values[n] for n in names), tuple(names)) for b in branches]
    plan = Distinct(Union(tuple(rows)))
    return Bindings(plan, dict(zip(names, plan.columns, strict=True)))


def _replaced(part: BodyLiteral, old: AggregateTerm, new: RuleVariable) -> BodyLiteral:
    """The literal with a variable in the place of one of its aggregates."""

    def change(inside: RulePart) -> RulePart:
        return new if inside is old else rebuilt(inside, change)

    made = change(part)
    assert is_literal(made), "a literal stays one"
    return made
