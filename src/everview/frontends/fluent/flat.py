"""A query as one flat plan: grouped, selected, made distinct, with hidden columns for order, keys and parts beneath."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from everview.errors import QueryError
from everview.frontends.fluent.agg import Agg
from everview.frontends.fluent.binding import bound
from everview.frontends.fluent.clauses import Clauses
from everview.frontends.fluent.conditions import columns
from everview.frontends.fluent.grouping import computed
from everview.frontends.fluent.keyset import after
from everview.frontends.fluent.names import Path
from everview.frontends.fluent.rows import FlatRows, rows_of
from everview.frontends.fluent.selection import Item, Partner, Selection, selection
from everview.frontends.fluent.shape import Direction, RecordShape
from everview.orders import with_ties
from everview.plan.catalog import Readable
from everview.plan.conditions import conjunction
from everview.plan.node import Plan
from everview.plan.nodes import Distinct, Filter, Project, Top
from everview.plan.typing import call
from everview.scalars.expressions import Expression, Literal
from everview.types import BOOLEAN

Order = tuple[tuple[int, Direction], ...]
HOW: Mapping[Direction, str] = {"asc": "asc nulls first", "desc": "desc nulls last"}
ROWS = Agg("count", "*", "rows")  # what a group has in any case


@dataclass(frozen=True, slots=True)
class Flat:
    """A flat plan without its limit: how a row looks, which columns tell rows apart, and where the wanted ones stand.

    ``order`` is what was asked for, completed by what tells rows apart. ``records`` are the arrays of records, each of
    the ``rows`` of a group; ``groups`` are the columns of GROUP BY there, and ``group_places`` in the plan.
    """

    plan: Plan
    record: RecordShape
    key: tuple[int, ...] | None
    order: Order
    places: tuple[int, ...]
    rows: FlatRows
    records: tuple[Agg, ...] = ()
    groups: tuple[int, ...] = ()
    group_places: tuple[int, ...] = ()

    def whole(self, query: Clauses) -> Flat:
        """The plan with the limit of the query."""
        return replace(self, plan=limited(self.plan, self.order, query.most))


def limited(plan: Plan, order: Order, limit: int | None, partition: tuple[int, ...] = ()) -> Plan:
    """The first rows of a plan, or of each part of it."""
    if limit is None:
        return plan
    return Top(plan, tuple((plan.column(column), HOW[way]) for column, way in order), limit, 0, partition)


def flat(query: Clauses, relations: Readable, wanted: tuple[str, ...] = ()) -> Flat:
    """The plan of a query, with columns for all names that are ``wanted``."""
    rows = rows_of(query, relations)
    chosen = selection(query, rows.scope)
    groups = tuple(rows.scope.column(name) for name in query.groups or ())
    present = _presence(query, chosen, rows, groups)
    order: list[tuple[Item, Direction]] = [(chosen.item(name), way) for name, way in query.order]
    needed = [chosen.item(name) for name in wanted]
    tested = {name: chosen.item(name) for test in query.having for name in columns(test)}
    key = _key(query, rows, groups)
    asked = [*(item for item, _ in order), *needed]
    hidden = _hidden(query, chosen, asked, key, groups)
    marks = _marks(present, (*chosen.shown.values(), *hidden))
    plan, places = computed(query, rows, [*chosen.shown.values(), *hidden, *marks, *tested.values()], groups)
    plan = _filtered(plan, [bound(test, lambda name: plan.column(places[tested[name]])) for test in query.having])
    plan, where = _projected(query, chosen, hidden, marks, plan, places)
    told = _told(query, key, plan, where)
    full = with_ties([(where[item], way) for item, way in order], range(len(plan.schema)) if told is None else told)
    if query.after is not None:
        records = {where[item]: path for path, item in present.items() if item in marks}
        plan = Filter(plan, after(plan, full, query.after, len(chosen.shown), records))
    shown = dict(zip(chosen.shown, count(), strict=False))
    record = _record(shown, {path: where[item] for path, item in present.items()})
    own = tuple(where[group] for group in groups) if chosen.records else ()
    return Flat(plan, record, told, full, tuple(where[item] for item in needed), rows, chosen.records, groups, own)


def _marks(present: Mapping[Path, Item], taken: Sequence[Item]) -> list[Item]:
    """The items that only tell whether a record is there, and are no column yet."""
    return [item for item in dict.fromkeys(present.values()) if item not in taken]


def _told(query: Clauses, key: tuple[int, ...] | None, plan: Plan, where: Mapping[Item, int]) -> tuple[int, ...] | None:
    """The columns of the plan that tell its rows apart; None if nothing does."""
    if query.distinct:
        return tuple(range(len(plan.schema)))
    return None if key is None else tuple(where[column] for column in key)


def _presence(query: Clauses, chosen: Selection, rows: FlatRows, groups: tuple[int, ...]) -> dict[Path, Item]:
    """The items that tell whether a record is there; in a group, whether any row has a partner."""
    if not query.aggregates:
        return dict(chosen.present)
    known = rows.determined(groups)
    return {path: column if column in known else Partner(column) for path, column in chosen.present.items()}


def _key(query: Clauses, rows: FlatRows, groups: tuple[int, ...]) -> tuple[int, ...] | None:
    """The columns of the rows, or of their groups, that tell outputs apart."""
    if query.distinct:
        return ()  # all that is shown does
    return groups if query.aggregates else rows.key()


def _hidden(
    query: Clauses, chosen: Selection, wanted: Sequence[Item], key: Iterable[int] | None, groups: tuple[int, ...]
) -> list[Item]:
    """The items that are needed but not shown, without the marks of records."""
    if query.distinct and chosen.records:
        raise QueryError("distinct of rows with arrays of records", hint="leave distinct() out, or the array")
    if query.distinct:
        for item in wanted:
            if item not in chosen.shown.values():
                raise QueryError(
                    f'"{chosen.name(item)}" is not among the columns that are distinct',
                    hint="select it, or leave distinct() out",
                )
    needed = dict.fromkeys([*wanted, *(key or ()), *(groups if chosen.records else ())])
    if not chosen.shown and not needed and query.aggregates:
        return [ROWS]
    return [item for item in needed if item not in chosen.shown.values()]


def _filtered(plan: Plan, tests: list[Expression]) -> Plan:
    test = conjunction(tests)
    return plan if test is None else Filter(plan, test)


def _projected(
    query: Clauses,
    chosen: Selection,
    hidden: list[Item],
    marks: list[Item],
    plan: Plan,
    places: Mapping[Item, int],
) -> tuple[Plan, dict[Item, int]]:
    """The plan with only the shown, the hidden and the mark columns, and the column of each item."""
    items = [*chosen.shown.values(), *hidden]
    if not items:
        raise QueryError("the query shows no columns", hint="select at least one")
    names = [*map(".".join, chosen.shown), *map(chosen.name, hidden), *map(chosen.name, marks)]
    columns = (*(plan.column(places[item]) for item in items), *(_mark(plan.column(places[item])) for item in marks))
    projected: Plan = Project(plan, columns, tuple(names))
    columns_of_items: dict[Item, int] = {}
    for place, item in enumerate([*items, *marks]):
        columns_of_items.setdefault(item, place)
    return Distinct(projected) if query.distinct else projected, columns_of_items


def _mark(column: Expression) -> Expression:
    """The mark of a record: true where a column has a value, else NULL."""
    return call("or", call("is_not_null", column), Literal(None, BOOLEAN))


def _record(fields: Mapping[Path, int], present: Mapping[Path, int], before: Path = ()) -> RecordShape:
    """The record of all columns whose paths begin with ``before``."""
    shown: dict[str, int | RecordShape] = {}
    depth = len(before)
    for path, column in fields.items():
        if path[:depth] != before or path[depth] in shown:
            continue
        inner = (*before, path[depth])
        shown[path[depth]] = column if path == inner else _record(fields, present, inner)
    return RecordShape(tuple(shown.items()), present.get(before) if before else None)
