"""Simplify plans before any row comes: fold constants, decide conditions, drop needless nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.plan import node
from everview.plan.conditions import conjunction, conjuncts
from everview.plan.node import Plan
from everview.plan.nodes import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    Project,
    Top,
    Union,
    Values,
    Window,
)
from everview.plan.typing import call
from everview.scalars.choosing import fallible
from everview.scalars.evaluate import fold
from everview.scalars.expressions import (
    FALSE,
    TRUE,
    Call,
    Column,
    Expression,
    Literal,
    rewritten,
)
from everview.types import BOOLEAN


def fold_constants(plan: Plan) -> Plan:
    """The plan with constant expressions evaluated, and nodes decided whose conditions are always true or false."""
    return node.rewritten(plan, lambda part: _decided(_folded(part)))


def drop_needless(plan: Plan) -> Plan:
    """The plan without projections of projections, filters of filters, and nodes that change nothing."""
    return node.rewritten(plan, _needed)


# -- expressions


def _folded(plan: Plan) -> Plan:
    old = plan.expressions
    new = tuple(simplified(e) for e in old)
    return plan if new == old else plan.with_expressions(*new)


def simplified(expression: Expression) -> Expression:
    """The expression with its constants folded and its logic shortened."""
    return rewritten(fold(expression), _shorter)


def _shorter(e: Expression) -> Expression:
    if not isinstance(e, Call):
        return e
    match e.function:
        case "and":
            return _logic(e, keeps=TRUE, ends=FALSE)
        case "or":
            return _factored(_logic(e, keeps=FALSE, ends=TRUE))
        case "not" if isinstance(e.arguments[0], Literal):
            value = e.arguments[0].value
            return Literal(None if value is None else not value, BOOLEAN)
        case "is_null" | "is_not_null" if not e.arguments[0].nullable and not fallible(e.arguments[0]):
            return FALSE if e.function == "is_null" else TRUE
        case "if" if isinstance(e.arguments[0], Literal):
            return e.arguments[1] if e.arguments[0].value is True else e.arguments[2]
        case _:
            return e


def _logic(e: Call, keeps: Literal, ends: Literal) -> Expression:
    """AND or OR without operands that change nothing, ending at an operand that decides the result."""
    kept: dict[Expression, None] = {}  # in their order, each once
    for part in e.arguments:
        if part == keeps or part in kept:
            continue
        kept[part] = None
        if part == ends:
            # What stands before and may fail still does; else the end is known.
            return ends if not any(map(fallible, kept)) else replace(e, arguments=tuple(kept))
    parts = tuple(kept)
    if not parts:
        return keeps
    return parts[0] if len(parts) == 1 else replace(e, arguments=parts)


def _factored(e: Expression) -> Expression:
    """The expression with shared conditions in front: ``(a AND b) OR (a AND c)`` is ``a AND (b OR c)``.

    An equality in all alternatives can then be a key of a join.
    """
    if not (isinstance(e, Call) and e.function == "or") or fallible(e):
        return e
    alternatives = [list(conjuncts(part)) for part in e.arguments]
    common = [part for part in alternatives[0] if all(part in other for other in alternatives[1:])]
    if not common:
        return e
    rest = [conjunction(part for part in own if part not in common) for own in alternatives]
    others = [part for part in rest if part is not None]
    # An alternative that asks for no more is met whenever they are.
    either = [call("or", *others)] if len(others) == len(rest) else []
    return conjunction([*common, *either]) or e


# -- nodes that are decided


def _nothing(plan: Plan) -> Values:
    return Values((), plan.schema)


def _is_nothing(plan: Plan) -> bool:
    return isinstance(plan, Values) and not plan.rows


def _decided(plan: Plan) -> Plan:
    match plan:
        case Filter(input_, predicate):
            if predicate == TRUE:
                return input_
            never = isinstance(predicate, Literal) or any(p == FALSE for p in conjuncts(predicate))
            return _unless(never or _is_nothing(input_), plan)
        case Join():
            return _decided_join(plan)
        case Union():
            return _decided_union(plan)
        case Aggregate(input_, groups):
            return _unless(bool(groups) and _is_nothing(input_), plan)
        case Project(input_) | Distinct(input_) | Window(input_):
            return _unless(_is_nothing(input_), plan)
        case Top(input_, _, limit):
            return _unless(_is_nothing(input_) or limit == 0, plan)
        case Intersect(left, right):
            return _unless(_is_nothing(left) or _is_nothing(right), plan)
        case Except(left):
            return _unless(_is_nothing(left), plan)
        case _:
            return plan


def _unless(empty: bool, plan: Plan) -> Plan:
    """The plan, or a plan without rows if it is known to be empty."""
    return _nothing(plan) if empty else plan


def _decided_join(plan: Join) -> Plan:
    if plan.condition == TRUE:
        plan = replace(plan, condition=None)
    never = isinstance(plan.condition, Literal)
    left, right = _is_nothing(plan.left), _is_nothing(plan.right)
    match plan.kind:
        case "inner":
            return _nothing(plan) if never or left or right else plan
        case "semi":
            return _nothing(plan) if never or left or right else plan
        case "anti":
            return _nothing(plan) if left else plan.left if never or right else plan
        case "left":
            return _nothing(plan) if left else plan
        case "right":
            return _nothing(plan) if right else plan
        case "full":
            return _nothing(plan) if left and right else plan


def _decided_union(plan: Union) -> Plan:
    flat: list[Plan] = []
    for input_ in plan.inputs:
        flat += input_.inputs if isinstance(input_, Union) else (input_,)
    kept = [i for i in flat if not _is_nothing(i)]
    if not kept:
        return _nothing(plan)
    union = Union(tuple(kept))
    return union if union.schema == plan.schema else plan


# -- nodes that are needless


def _needed(plan: Plan) -> Plan:
    match plan:
        case Project(Project(input_, inner, _), outer, names) if _merge(inner, outer):
            return _needed(Project(input_, tuple(_put_in(e, inner) for e in outer), names))
        case Project(input_, expressions, _) if _same(input_, expressions, plan):
            return input_
        case Filter(Filter(input_, first), second):
            both = conjunction((*conjuncts(first), *conjuncts(second)))
            return input_ if both is None else Filter(input_, both)
        case Distinct(Distinct() as inner):
            return inner
        case Union(inputs) if len(inputs) == 1:
            return inputs[0]
        case _:
            return plan


def _same(input_: Plan, expressions: Sequence[Expression], plan: Plan) -> bool:
    places = tuple(e.index for e in expressions if isinstance(e, Column))
    return (
        places == tuple(range(len(input_.schema))) and len(expressions) == len(places) and plan.schema == input_.schema
    )


def _merge(inner: Sequence[Expression], outer: Sequence[Expression]) -> bool:
    """Whether two projections may become one: nothing is computed twice, and nothing that may fail is dropped."""
    uses = [0] * len(inner)

    def note(e: Expression) -> Expression:
        if isinstance(e, Column):
            uses[e.index] += 1
        return e

    for expression in outer:
        rewritten(expression, note)
    plain = [isinstance(e, Column | Literal) for e in inner]
    if not all(p or count <= 1 for p, count in zip(plain, uses, strict=True)):
        return False
    return all(p or not fallible(e) or count for p, e, count in zip(plain, inner, uses, strict=True))


def _put_in(expression: Expression, values: Sequence[Expression]) -> Expression:
    return rewritten(expression, lambda e: values[e.index] if isinstance(e, Column) else e)
