"""Groups that a join never asks for are not added up: an aggregate over the rows of wanted groups alone.

A correlated subquery becomes an aggregate of all groups of its table, joined by the group with the rows around it.
Where these come from few rows of another table, such as the parts of one brand, hardly a group is ever looked at, and
all of them would be kept. Law: ``L ⋈ γ(X) = L ⋈ γ(X ⋈ S)``, also where the join keeps all of L, if both joins are by a
column that γ groups by, and S has every value of L's column exactly once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from everview.optimize.keyed import Keys, key_of, share_left
from everview.plan.conditions import Key, split
from everview.plan.node import Plan, rewritten, walk
from everview.plan.nodes import Aggregate, Filter, Join, Project
from everview.plan.typing import call
from everview.scalars.expressions import Column

FEW = 0.2  # of a table's rows: the share that conditions may leave


def reduce_groups(plan: Plan, keys: Keys) -> Plan:
    """The plan with aggregates over fewer rows, where keys of tables tell that a join asks for few groups."""
    readers = Counter(input_ for part in walk(plan) for input_ in part.inputs)
    return rewritten(plan, lambda part: _reduced(part, keys, readers))


def _reduced(plan: Plan, keys: Keys, readers: Mapping[Plan, int]) -> Plan:
    match plan:
        case Join(left, right, "inner" | "left", condition):
            for key in split(condition, len(left.schema)).keys:
                match key:
                    case Key(Column(a), Column(b), False):
                        few = _few_values(left, a, keys)
                        less = None if few is None else _over(right, b, few, readers)
                        if less is not None:
                            return plan.with_inputs(left, less)
                    case _:
                        pass
        case _:
            pass
    return plan


def _few_values(plan: Plan, column: int, keys: Keys) -> Plan | None:
    """Few rows of one column that have all values of a plan's column but NULL, each once; None if nobody knows."""
    if key_of(plan, keys) == (column,) and share_left(plan) <= FEW:
        return Project(plan, (plan.column(column),), (plan.schema.names[column],))
    match plan:
        case Filter(input_):
            return _few_values(input_, column, keys)
        case Project(input_, expressions):
            expression = expressions[column]
            return _few_values(input_, expression.index, keys) if isinstance(expression, Column) else None
        case Join(left, right, kind, condition):
            width = len(left.schema)
            if column >= width:
                values = _few_values(right, column - width, keys) if kind == "inner" else None
            else:
                values = _few_values(left, column, keys) if kind in ("inner", "left", "semi", "anti") else None
            if values is not None or kind not in ("inner", "semi"):
                return values
            for key in split(condition, width).keys:
                match key:
                    case Key(Column(a), Column(b), False) if a == column:
                        values = _few_values(right, b, keys)
                    case Key(Column(a), Column(b), False) if b + width == column:
                        values = _few_values(left, a, keys)
                    case _:
                        continue
                if values is not None:
                    return values
            return None
        case _:
            return None


def _over(plan: Plan, column: int, few: Plan, readers: Mapping[Plan, int]) -> Plan | None:
    """The plan whose groups are those with one of few values in a column; None if it does not group by the column.

    What others read stays as it is: two aggregates would keep more than one.
    """
    if readers.get(plan, 0) > 1:
        return None
    match plan:
        case Filter(input_):
            less = _over(input_, column, few, readers)
            return None if less is None else plan.with_inputs(less)
        case Project(input_, expressions):
            expression = expressions[column]
            less = _over(input_, expression.index, few, readers) if isinstance(expression, Column) else None
            return None if less is None else plan.with_inputs(less)
        case Aggregate(input_, groups) if column < len(groups):
            group = groups[column]
            if not isinstance(group, Column) or group.type != few.schema.fields[0].type:
                return None
            pairs, width = Join(input_, few, "inner"), len(input_.schema)
            same = call("equal", pairs.column(group.index), pairs.column(width))
            joined = Join(input_, few, "inner", same)
            columns = tuple(joined.column(place) for place in range(width))
            return plan.with_inputs(Project(joined, columns, input_.schema.names))
        case _:
            return None
