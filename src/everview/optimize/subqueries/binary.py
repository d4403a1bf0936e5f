"""Multiway joins split into joins of two, for passes that cannot look into a multiway join."""

from __future__ import annotations

from everview.plan.conditions import conjunction
from everview.plan.node import Plan
from everview.plan.nodes import Filter, Join, Multiway, Project
from everview.plan.typing import call
from everview.scalars.expressions import Expression


def in_turn(plan: Multiway) -> Plan:
    """The same rows, by joining one input after the other."""
    joined: Plan | None = None
    places: dict[int, int] = {}
    equal = "null_safe_equal" if plan.null_safe else "equal"
    for input_, terms in zip(plan.inputs, plan.variables, strict=True):
        start = 0 if joined is None else len(joined.schema)
        made = Project(input_, input_.columns, input_.schema.names) if joined is None else Join(joined, input_, "inner")
        parts: list[Expression] = []
        for column, variable in enumerate(terms, start):
            if variable is None:
                continue
            known = places.setdefault(variable, column)
            if known != column:
                parts.append(call(equal, made.column(known), made.column(column)))
        joined = _filtered(made, parts)
    assert joined is not None, "a join of something"
    return Project(joined, tuple(joined.column(places[v]) for v in plan.select), plan.names)


def _filtered(plan: Plan, parts: list[Expression]) -> Plan:
    predicate = conjunction(parts)
    return plan if predicate is None else Filter(plan, predicate)
