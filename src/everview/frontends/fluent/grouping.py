"""Items over rows as the columns of a plan: the rows themselves, or one row for each group of them.

Where rows are grouped, a column must follow from those of GROUP BY, by the keys of relations and the equalities of
joins. Then the rows are grouped by it, too, which makes no more groups than there were.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everview.errors import TypeMismatch, Ungrouped
from everview.frontends.fluent.agg import Agg
from everview.frontends.fluent.clauses import Clauses
from everview.frontends.fluent.names import STAR
from everview.frontends.fluent.rows import FlatRows
from everview.frontends.fluent.selection import Item, Partner, name_of
from everview.operators.aggregate.registry import aggregates_of
from everview.plan.aggregates import aggregate_call
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate
from everview.scalars.coercion import is_number
from everview.scalars.expressions import AggregateCall

FUNCTIONS = aggregates_of("fluent")


def computed(
    query: Clauses, rows: FlatRows, items: Iterable[Item], groups: Sequence[int]
) -> tuple[Plan, dict[Item, int]]:
    """A plan that has all items as columns, and the column of each."""
    if not query.aggregates:
        return rows.plan, {column: column for column in range(len(rows.plan.schema))}
    known = rows.determined(groups)
    columns, calls = dict.fromkeys(groups), dict[Agg | Partner, AggregateCall]()
    for item in items:
        if not isinstance(item, int):
            calls[item] = called(rows, item)
        elif item in known:
            columns[item] = None
        else:
            raise _ungrouped(name_of(rows.scope, item), query)
    if not calls and groups and rows.key() is not None and known.issuperset(rows.key() or ()):
        return rows.plan, {column: column for column in columns}  # every group is a single row
    names = [*(name_of(rows.scope, column) for column in columns), *(f"a{number}" for number in range(len(calls)))]
    plan = Aggregate(
        rows.plan, tuple(rows.plan.column(column) for column in columns), tuple(calls.values()), tuple(names)
    )
    return plan, {item: place for place, item in enumerate([*columns, *calls])}


def _ungrouped(name: str, query: Clauses) -> Ungrouped:
    by = ", ".join(query.groups or ()) or "nothing"
    return Ungrouped(
        f'"{name}" has many values in a group: the query is grouped by {by}',
        hint=f'group by it, too, or aggregate it: agg.min("{name}"), agg.array("{name}")',
    )


def called(rows: FlatRows, one: Agg | Partner) -> AggregateCall:
    """The aggregate in the plan, with the type that it gives."""
    if isinstance(one, Partner):
        return aggregate_call("max", (rows.plan.column(one.column),))
    line = FUNCTIONS[one.function]
    if one.column == STAR:
        return aggregate_call(line.name, (), distinct=one.distinct)
    column = rows.plan.column(rows.scope.column(one.column))
    if line.takes == "numbers" and not is_number(column.type):
        raise TypeMismatch(
            f"{one.function} of {one.column}, of type {column.type}", hint=f"{one.function} takes numbers"
        )
    return aggregate_call(line.name, (column,), distinct=one.distinct)
