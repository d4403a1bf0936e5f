"""Subqueries of any other kind: computed for all different rows around them at once.

Let D be the distinct values of the columns that a subquery reads from outside. The dependent join of D with the
subquery, every row of D beside the rows that the subquery has for it, moves down through the operators of the
subquery until nothing below reads from outside; there it is a plain product. Works for every operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from everview.errors import SqlError
from everview.optimize.subqueries.binary import in_turn
from everview.optimize.subqueries.shifting import picked, shifted, unbound
from everview.plan.aggregates import of_nothing
from everview.plan.conditions import conjunction
from everview.plan.node import Plan, unique
from everview.plan.nodes import (
    Aggregate,
    Asof,
    Distinct,
    Except,
    Explode,
    Filter,
    Intersect,
    Join,
    Multiway,
    Project,
    Recursive,
    Reference,
    Top,
    Union,
    Window,
)
from everview.plan.references import free_references
from everview.plan.typing import call
from everview.scalars.expressions import AggregateCall, Column, Expression, Literal, WindowCall, rewritten
from everview.types import BOOLEAN, Field, Schema


@dataclass(frozen=True)
class Domain:
    """The distinct values of some columns of the row around."""

    plan: Plan
    outers: tuple[int, ...]
    recursive: frozenset[str] = frozenset()  # relations that have been widened by the domain

    @property
    def width(self) -> int:
        return len(self.outers)

    def depends(self, plan: Plan) -> bool:
        """Whether a plan reads the columns of the domain."""
        return bool(unbound(plan)) or bool(free_references(plan) & self.recursive)

    def moved(self, expressions: Sequence[Expression], by: int | None = None) -> tuple[Expression, ...]:
        """Expressions of the subquery over rows that begin with the domain's columns."""
        places = {outer: column for column, outer in enumerate(self.outers)}
        return tuple(shifted(e, self.width if by is None else by, places) for e in expressions)

    def pushed(self, plan: Plan) -> Plan:
        """Every row of the domain beside the rows of the plan for it."""
        if not self.depends(plan):
            return Join(self.plan, plan, "inner")
        match plan:
            case Filter(input_, predicate):
                return Filter(self.pushed(input_), *self.moved([predicate]))
            case Project(input_, expressions, names):
                return self._over(self.pushed(input_), self.moved(expressions), names)
            case Explode(input_, array):
                (moved_array,) = self.moved([array])
                return replace(plan, input=self.pushed(input_), array=moved_array)
            case Distinct() | Union() | Intersect() | Except():
                return plan.with_inputs(*map(self.pushed, plan.inputs))
            case Aggregate():
                return self._aggregated(plan)
            case Top():
                return self._top(plan)
            case Window():
                return self._window(plan)
            case Join():
                return self._joined(plan)
            case Asof():
                return self._asof(plan)
            case Multiway():
                return self.pushed(in_turn(plan))
            case Reference(name, schema):
                return Reference(name, Schema(self._named(schema)))
            case Recursive():
                return self._recursive(plan)
            case _:
                raise SqlError(
                    f"a {type(plan).__name__} reads columns of the query around it",
                    hint="write the subquery as a join",
                )

    def _top(self, plan: Top) -> Plan:
        order = zip(self.moved(plan.expressions), (how for _, how in plan.order), strict=True)
        partition = (*range(self.width), *(self.width + column for column in plan.partition))
        return Top(self.pushed(plan.input), tuple(order), plan.limit, plan.offset, partition)

    def _own(self, plan: Plan) -> tuple[Column, ...]:
        return plan.columns[: self.width]

    def _over(self, plan: Plan, expressions: Sequence[Expression], names: Sequence[str]) -> Project:
        own = self._own(plan)
        return Project(plan, (*own, *expressions), unique([*(c.name for c in own), *names]))

    def _named(self, schema: Schema) -> list[Field]:
        fields = [*self.plan.schema.fields, *schema.fields]
        return [Field(n, f.type, f.nullable) for n, f in zip(unique(f.name for f in fields), fields, strict=True)]

    def _same(self, both: Sequence[Column], second: int) -> list[Expression]:
        """The conditions that the domain's columns are equal on both sides."""
        return [call("null_safe_equal", both[column], both[second + column]) for column in range(self.width)]

    def _aggregated(self, plan: Aggregate) -> Plan:
        input_ = self.pushed(plan.input)
        moved, count = self.moved(plan.expressions), len(plan.groups)
        calls = tuple(e for e in moved[count:] if isinstance(e, AggregateCall))
        own = self._own(input_)
        names = unique([*(c.name for c in own), *plan.names])
        made = Aggregate(input_, (*own, *moved[:count]), calls, names)
        if plan.groups:
            return made
        # A row of the domain without a group has the results of nothing.
        marked = Project(made, (*made.columns, Literal(True, BOOLEAN)), unique([*made.schema.names, "there"]))
        joined = Join(self.plan, marked, "left")
        joined = replace(joined, condition=conjunction(self._same(_both(joined), self.width)))
        there, start = joined.column(len(joined.schema) - 1), 2 * self.width
        results = [_unless_missing(there, joined.column(start + column), c) for column, c in enumerate(plan.calls)]
        return self._over(joined, results, plan.names)

    def _window(self, plan: Window) -> Plan:
        input_ = self.pushed(plan.input)
        own = self._own(input_)
        moved = self.moved(plan.calls)
        calls = tuple(replace(c, partition=(*own, *c.partition)) for c in moved if isinstance(c, WindowCall))
        return Window(input_, calls, plan.names)

    def _joined(self, plan: Join) -> Plan:
        if plan.kind == "right":
            return self._turned(plan)
        width, own = len(plan.left.schema), self.width
        if not self.depends(plan.right) and plan.kind != "full":
            return Join(self.pushed(plan.left), plan.right, plan.kind, *self.moved(plan.expressions))
        if plan.kind == "inner" and not self.depends(plan.left):
            return self._right_alone(plan)
        left, right = self.pushed(plan.left), self.pushed(plan.right)
        joined = Join(left, right, plan.kind)
        # The right side's columns stand behind a second copy of the domain's.
        spread = {
            column: own + column + (own if column >= width else 0) for column in range(width + len(plan.right.schema))
        }
        condition = [self._spread(e, spread) for e in plan.expressions]
        joined = replace(joined, condition=conjunction([*self._same(_both(joined), own + width), *condition]))
        if plan.kind in ("semi", "anti"):
            return joined
        rest = [*range(own, own + width), *range(2 * own + width, len(joined.schema))]
        if plan.kind != "full":
            return picked(joined, [*range(own), *rest])
        keys = [call("coalesce", joined.column(column), joined.column(own + width + column)) for column in range(own)]
        columns = (*keys, *(joined.column(column) for column in rest))
        return Project(joined, columns, unique([*self.plan.schema.names, *plan.schema.names]))

    def _spread(self, expression: Expression, places: dict[int, int]) -> Expression:
        def place(e: Expression) -> Expression:
            return replace(e, index=places[e.index]) if isinstance(e, Column) else e

        moved = rewritten(expression, place)
        return shifted(moved, 0, {outer: column for column, outer in enumerate(self.outers)})

    def _right_alone(self, plan: Join) -> Plan:
        """A join of which only the right side depends: the domain joins that side, then columns are put in order."""
        width, own = len(plan.left.schema), self.width
        joined = Join(plan.left, self.pushed(plan.right), "inner")
        places = {
            column: column if column < width else column + own for column in range(width + len(plan.right.schema))
        }
        outers = {outer: width + column for column, outer in enumerate(self.outers)}

        def place(e: Expression) -> Expression:
            return replace(e, index=places[e.index]) if isinstance(e, Column) else e

        condition = [shifted(rewritten(e, place), 0, outers) for e in plan.expressions]
        joined = replace(joined, condition=conjunction(condition))
        return picked(joined, [*range(width, width + own), *range(width), *range(width + own, len(joined.schema))])

    def _turned(self, plan: Join) -> Plan:
        """A right join as a left join the other way round."""
        width, count = len(plan.left.schema), len(plan.right.schema)
        places = {column: column + count if column < width else column - width for column in range(width + count)}
        condition = [
            rewritten(e, lambda e: replace(e, index=places[e.index]) if isinstance(e, Column) else e)
            for e in plan.expressions
        ]
        turned = Join(plan.right, plan.left, "left", conjunction(condition))
        return self.pushed(picked(turned, [*range(count, count + width), *range(count)]))

    def _asof(self, plan: Asof) -> Plan:
        own = self.width
        left = self.pushed(plan.left)
        if not self.depends(plan.right):
            keys = tuple((own + a, b) for a, b in plan.keys)
            return replace(plan, left=left, keys=keys, at=(own + plan.at[0], plan.at[1]))
        keys = (*((column, column) for column in range(own)), *((own + a, own + b) for a, b in plan.keys))
        right = self.pushed(plan.right)
        made = replace(plan, left=left, right=right, keys=keys, at=(own + plan.at[0], own + plan.at[1]))
        width = len(left.schema)
        return picked(made, [*range(width), *range(width + own, len(made.schema))])

    def _recursive(self, plan: Recursive) -> Plan:
        names = frozenset(name for name, _ in plan.bindings)
        inside = replace(self, recursive=self.recursive | names)
        return plan.with_inputs(*map(inside.pushed, plan.inputs))


def _unless_missing(there: Column, result: Column, asked: AggregateCall) -> Expression:
    """The result of a call, or its value over no rows where the group is missing."""
    nothing = of_nothing(asked)
    if nothing is None:
        return result
    if not asked.nullable:
        return call("coalesce", result, Literal(nothing, asked.type))
    return call("if", call("is_not_null", there), result, Literal(nothing, asked.type))


def _both(join: Join) -> list[Column]:
    return [Column(column, f.name, f.type, f.nullable) for column, f in enumerate(join.both.fields)]
