"""Parts of plans that Spark cannot compute: the views that have them are verified without Spark."""

from __future__ import annotations

from collections.abc import Iterator

from everview.plan.node import Plan
from everview.plan.nodes import Asof, Recursive
from everview.scalars.expressions import USER, AggregateCall, Expression, Now, UserCall
from everview.scalars.expressions import walk as parts
from everview.scalars.functions.user import registered
from everview.spark.user_functions import SparkFunction


def is_ours(node: Plan, functions: bool) -> bool:
    """Whether Spark has nothing like a node; ``functions`` says whether it is one of Spark's that calls UDFs."""
    return isinstance(node, Recursive | Asof) or any(
        isinstance(part, Now) or _is_users(part, functions) for part in expressions_of(node)
    )


def expressions_of(node: Plan) -> Iterator[Expression]:
    """The expressions of a node, and all inside them."""
    return (part for whole in node.expressions for part in parts(whole))


def _is_users(part: Expression, functions: bool) -> bool:
    if isinstance(part, UserCall):
        name = part.name
    elif isinstance(part, AggregateCall) and part.function.startswith(USER):
        name = part.function.removeprefix(USER)
    else:
        return False
    return not functions or not isinstance(registered(name).function.call, SparkFunction)
