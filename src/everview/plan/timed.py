"""The current time in plans. Time passes without a change of any table, so no view may depend on it."""

from __future__ import annotations

from collections.abc import Iterator

from everview.errors import DefinitionError
from everview.plan import node
from everview.plan.node import Plan
from everview.plan.outers import is_subquery
from everview.scalars.expressions import Now, walk


def times(plan: Plan) -> Iterator[Now]:
    """The places in a plan, and in the subqueries of its expressions, that read the current time."""
    for part in node.walk(plan):
        for expression in (e for whole in part.expressions for e in walk(whole)):
            if isinstance(expression, Now):
                yield expression
            elif is_subquery(expression):
                yield from times(expression.plan)


def check_timeless(view: str, plan: Plan) -> None:
    """Refuse a view that depends on the current time: time passes without a change of any table."""
    time = next(times(plan), None)
    if time is not None:
        raise DefinitionError(
            f"view {view} reads {time}, and no change tells that time has passed",
            hint="put the moment into a table, join it and update it; or ask by SELECT, where the time is now",
        )
