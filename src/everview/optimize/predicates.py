"""Conditions move down, to where the fewest rows meet them.

Through projections, unions and distinct; to the side of a join that they read; through aggregates and windows where
they read what groups are made of. A condition that may fail stays where it is: further down it would meet rows that
something else keeps from it. A condition that NULL does not meet makes outer joins inner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from everview.optimize.simplify import simplified
from everview.plan import node
from everview.plan.conditions import conjunction, conjuncts, split
from everview.plan.node import Plan
from everview.plan.nodes import (
    Aggregate,
    Asof,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Project,
    Recursive,
    Top,
    Union,
    Window,
)
from everview.plan.typing import call
from everview.scalars.choosing import fallible
from everview.scalars.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    UserCall,
    columns_of,
    moved,
    rewritten,
    walk,
)

Parts = list[Expression]


def push_predicates(plan: Plan) -> Plan:
    """The plan with every condition as far down as it goes."""
    return _Pushing(plan).of(plan, [])


class _Pushing:
    def __init__(self, plan: Plan) -> None:
        self._known: dict[Plan, Plan] = {}
        self._readers: dict[Plan, int] = {}
        for part in node.walk(plan):
            for input_ in part.inputs:
                self._readers[input_] = self._readers.get(input_, 0) + 1

    def of(self, plan: Plan, parts: Parts) -> Plan:
        """The plan filtered by some conditions over its columns."""
        if parts and self._is_shared(plan):
            return _filtered(self.of(plan, []), parts)
        if parts:
            return self._pushed(plan, parts)
        if plan not in self._known:
            self._known[plan] = self._pushed(plan, [])
        return self._known[plan]

    def _is_shared(self, plan: Plan) -> bool:
        """Whether a plan has several readers: filtered for one, it would be computed again for the others."""
        return self._readers.get(plan, 0) > 1 and not isinstance(plan, Project | Filter)

    def _pushed(self, plan: Plan, parts: Parts) -> Plan:
        match plan:
            case Filter(input_, predicate):
                return self.of(input_, [*conjuncts(predicate), *parts])
            case Project(input_, expressions, _):
                return self._project(plan, input_, expressions, parts)
            case Join():
                return self._join(plan, parts)
            case Aggregate(input_, groups) if groups:
                low, high = _parted(parts, set(range(len(groups))))
                return _filtered(plan.with_inputs(self.of(input_, [_put_in(p, groups) for p in low])), high)
            case Distinct(input_):
                low, high = _safe(parts)
                return _filtered(Distinct(self.of(input_, low)), high)
            case Union() | Intersect() | Except():
                low, high = _safe(parts)
                return _filtered(plan.with_inputs(*(self.of(i, low) for i in plan.inputs)), high)
            case Window(input_):
                low, high = _parted(parts, _partitioning(plan))
                return _filtered(plan.with_inputs(self.of(input_, low)), high)
            case Top(input_, _, _, _, partition):
                low, high = _parted(parts, set(partition))
                return _filtered(plan.with_inputs(self.of(input_, low)), high)
            case Asof(left, right):
                low, high = _parted(parts, set(range(len(left.schema))))
                return _filtered(plan.with_inputs(self.of(left, low), self.of(right, [])), high)
            case Recursive(bindings, body):
                return plan.with_inputs(*(self.of(bound, []) for _, bound in bindings), self.of(body, parts))
            case _:
                return _filtered(plan.with_inputs(*(self.of(i, []) for i in plan.inputs)), parts)

    def _project(self, plan: Project, input_: Plan, expressions: Sequence[Expression], parts: Parts) -> Plan:
        low = [p for p in parts if all(_cheap(expressions[column]) for column in columns_of(p))]
        high = [p for p in parts if p not in low]
        if any(map(fallible, high)):
            # What fails stays behind what stood before it.
            first = next(column for column, p in enumerate(parts) if p in high)
            low = [p for p in low if parts.index(p) < first or not fallible(p)]
            high = [p for p in parts if p not in low]
        return _filtered(plan.with_inputs(self.of(input_, [_put_in(p, expressions) for p in low])), high)

    def _join(self, plan: Join, parts: Parts) -> Plan:
        width = len(plan.left.schema)
        plan = replace(plan, kind=_strengthened(plan, parts))
        condition = list(conjuncts(plan.condition))
        above: Parts = list(parts)
        if plan.kind == "inner":
            keys = [p for p in above if not fallible(p) or split(p, width).keys]
            condition, above = [*condition, *keys], [p for p in above if p not in keys]
        lefts: Parts = []
        rights: Parts = []
        if plan.kind == "inner":
            lefts += _implied(condition, lambda column: column < width)
            rights += _implied(condition, lambda column: column >= width)
        if plan.kind in ("inner", "semi"):
            lefts += _taken(condition, lambda column: column < width)
        if plan.kind in ("inner", "semi", "left", "anti"):
            rights += _taken(condition, lambda column: column >= width)
        if plan.kind == "right":
            lefts += _taken(condition, lambda column: column < width)
        if plan.kind in ("left", "semi", "anti"):
            lefts += _taken(above, lambda column: column < width)
        if plan.kind == "right":
            rights += _taken(above, lambda column: column >= width)
        right = self.of(plan.right, [moved(p, lambda column: column - width) for p in rights])
        made = replace(plan, left=self.of(plan.left, lefts), right=right, condition=conjunction(condition))
        return _filtered(made, above)


def _filtered(plan: Plan, parts: Sequence[Expression]) -> Plan:
    predicate = conjunction(parts)
    return plan if predicate is None else Filter(plan, predicate)


def _taken(parts: Parts, where: Callable[[int], bool]) -> Parts:
    """Take the conditions out of the list that read only certain columns and never fail."""
    taken = [p for p in parts if columns_of(p) and all(map(where, columns_of(p))) and not fallible(p)]
    parts[:] = [p for p in parts if p not in taken]
    return taken


def _implied(parts: Parts, where: Callable[[int], bool]) -> Parts:
    """Conditions on one side that alternatives imply: ``(a AND x) OR (b AND y)`` implies ``a OR b``."""
    implied: Parts = []
    for part in parts:
        if not (isinstance(part, Call) and part.function == "or") or fallible(part):
            continue
        sides = [conjunction(_taken(list(conjuncts(own)), where)) for own in part.arguments]
        known = [own for own in sides if own is not None]
        if len(known) == len(sides) and known != list(part.arguments):
            implied.append(simplified(call("or", *known)))
    return implied


def _safe(parts: Parts) -> tuple[Parts, Parts]:
    return [p for p in parts if not fallible(p)], [p for p in parts if fallible(p)]


def _parted(parts: Parts, columns: set[int]) -> tuple[Parts, Parts]:
    """The conditions that read only these columns, and the others."""
    low = [p for p in parts if columns_of(p) and columns_of(p) <= columns and not fallible(p)]
    return low, [p for p in parts if p not in low]


def _partitioning(plan: Window) -> set[int]:
    """The columns that tell the partitions of all windows apart."""
    partitions = [{e.index for e in c.partition if isinstance(e, Column)} for c in plan.calls]
    return set[int].intersection(*partitions) if partitions else set(range(len(plan.input.schema)))


def _cheap(expression: Expression) -> bool:
    """Whether an expression costs so little that it may be computed twice."""
    if isinstance(expression, Column | Literal):
        return True
    return not fallible(expression) and not any(isinstance(e, UserCall) for e in walk(expression))


def _put_in(expression: Expression, values: Sequence[Expression]) -> Expression:
    return rewritten(expression, lambda e: values[e.index] if isinstance(e, Column) else e)


# -- outer joins


def _strengthened(plan: Join, parts: Parts) -> JoinKind:
    """The kind of a join without the padded rows that the conditions above it reject."""
    if plan.kind not in ("left", "right", "full"):
        return plan.kind
    width = len(plan.left.schema)
    lefts, rights = set(range(width)), set(range(width, len(plan.schema)))
    keeps_left = plan.kind in ("left", "full") and not any(_rejects(p, rights) for p in parts)
    keeps_right = plan.kind in ("right", "full") and not any(_rejects(p, lefts) for p in parts)
    if keeps_left and keeps_right:
        return "full"
    return "left" if keeps_left else "right" if keeps_right else "inner"


def _rejects(condition: Expression, columns: set[int]) -> bool:
    """Whether a condition is never true where all these columns are NULL."""
    if not isinstance(condition, Call):
        return False
    match condition.function:
        case "and":
            return any(_rejects(part, columns) for part in condition.arguments)
        case "or":
            return all(_rejects(part, columns) for part in condition.arguments)
        case "is_not_null":
            return _is_null_with(condition.arguments[0], columns)
        case _:
            return _is_null_with(condition, columns)


# Functions that are NULL where any argument is.
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "like", "not")
ARITHMETIC = ("add", "subtract", "multiply", "divide", "integral_divide", "modulo", "negate")
STRICT = frozenset((*COMPARISONS, *ARITHMETIC))


def _is_null_with(expression: Expression, columns: set[int]) -> bool:
    """Whether an expression is NULL where all these columns are."""
    match expression:
        case Column(index):
            return index in columns
        case Cast(argument):
            return _is_null_with(argument, columns)
        case Call(function, arguments) if function in STRICT:
            return any(_is_null_with(a, columns) for a in arguments)
        case _:
            return False
