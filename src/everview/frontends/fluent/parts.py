"""A query as a tree of parts: its own flat plan, and one for each related query and each array of records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from everview.frontends.fluent.agg import Agg
from everview.frontends.fluent.clauses import Clauses, Pairs, RelatedQuery
from everview.frontends.fluent.flat import Flat, flat, limited
from everview.frontends.fluent.names import STAR, ReadRelation, leaves
from everview.frontends.fluent.rows import equal
from everview.frontends.fluent.selection import name_of
from everview.frontends.fluent.shape import Direction, QueryPart, RecordShape
from everview.optimize import optimize
from everview.plan.catalog import NamedPlan, Readable
from everview.plan.node import Plan
from everview.plan.nodes import Filter, Join, Project, Scan
from everview.plan.typing import call
from everview.scalars.expressions import Expression


@dataclass(frozen=True, slots=True)
class Above:
    """The part above: its rows, and the columns by which rows beneath belong to them."""

    plan: Plan
    columns: tuple[int, ...]
    pairs: Pairs


def parts(query: Clauses, relations: Readable, view: str | None = None) -> QueryPart:
    """The parts of a query.

    Under the name of a ``view``, a part beneath reads the rows above it from their view, as `QueryPart.walk` names it;
    without, it has their plan inside its own.
    """
    return _part("", query, relations, view, None)


def named_plans(part: QueryPart, name: str, reads: tuple[str, ...] = ()) -> tuple[NamedPlan, ...]:
    """The views of a query's parts, each after the one above it; ``reads`` are the relations that the query names."""
    return tuple(_named(name, view, one, reads) for view, one in part.walk(name))


def _named(whole: str, view: str, part: QueryPart, reads: tuple[str, ...]) -> NamedPlan:
    above = () if view == whole else (view[: -len(part.name) - 1],)
    order = tuple((part.plan.column(column), way) for column, way in part.order) if part.ordered else ()
    return NamedPlan(view, part.plan, optimize(part.plan), (*above, *reads), order, whole=whole)


def _part(name: str, query: Clauses, relations: Readable, view: str | None, above: Above | None) -> QueryPart:
    theirs = () if above is None else tuple(right for _, right in above.pairs)
    mine = [left for related in query.related for left, _ in related.pairs]
    made = flat(query, relations, (*theirs, *mine))
    child, rest = made.places[: len(theirs)], iter(made.places[len(theirs) :])
    plan = made.plan if above is None else _belonging(made.plan, child, above)
    if not _alone(made, child, query):
        plan = limited(plan, made.order, query.most, child)
    rows = plan if view is None else Scan(view, plan.schema)
    beneath = [_related(one, relations, view, Above(rows, tuple(next(rest) for _ in one.pairs), one.pairs))
               for one in query.related]  # fmt: skip
    beneath += [_records(one, made, query, rows) for one in made.records]
    return QueryPart(
        name,
        plan,
        made.record,
        made.order,
        bool(query.order) or query.most is not None,
        query.most,
        query.one,
        above is None and not beneath and is_scalar(query, made.record),
        () if above is None else above.columns,
        child,
        tuple(beneath),
    )


def is_scalar(query: Clauses, record: RecordShape) -> bool:
    """Whether a query always gives one row with one value."""
    single = query.aggregates and not query.groups and not query.having and query.after is None
    return single and query.most is None and not query.distinct and len(record.fields) == 1


def _alone(made: Flat, child: tuple[int, ...], query: Clauses) -> bool:
    """Whether no two rows belong to one row above, so that a limit of one is kept by itself."""
    return query.most == 1 and bool(child) and made.key is not None and set(child) >= set(made.key)


def _belonging(plan: Plan, columns: tuple[int, ...], above: Above) -> Plan:
    """The rows that belong to a row above."""
    turned = tuple((right, left) for left, right in above.pairs)
    return Join(plan, above.plan, "semi", equal(plan, columns, above.plan, above.columns, turned))


def _related(one: RelatedQuery, relations: Readable, view: str | None, above: Above) -> QueryPart:
    return _part(one.name, one.query, relations, None if view is None else f"{view}.{one.name}", above)


def _records(one: Agg, groups: Flat, query: Clauses, above: Plan) -> QueryPart:
    """An array of records: the rows of each group, of one relation, in the order of its key."""
    rows = groups.rows
    entry = rows.scope.own if one.column == STAR else rows.scope.entry(one.column.removesuffix(".*"))
    columns = [*groups.groups, *dict.fromkeys(_columns(entry))]
    names = [name_of(rows.scope, column) for column in columns]
    there = rows.plan if entry.record.present is None else _filtered(rows.plan, entry.record.present)
    plan: Plan = Project(there, tuple(there.column(column) for column in columns), tuple(names))
    width = len(groups.groups)
    places = {column: width + number for number, column in enumerate(columns[width:])}
    child = tuple(range(width))
    pairs = tuple((names[column], names[column]) for column in child)
    if child or query.having or query.most is not None or query.after is not None:
        same = equal(plan, child, above, groups.group_places, pairs, nulls=True)
        plan = Join(plan, above, "semi", same)
    told = range(len(plan.schema)) if entry.key is None else (places[column] for column in entry.key)
    order: tuple[tuple[int, Direction], ...] = tuple((column, "asc") for column in told)
    return QueryPart(
        one.name, plan, _moved(entry.record, places, top=True), order, parent=groups.group_places, child=child
    )


def _columns(entry: ReadRelation) -> Iterator[int]:
    yield from (column for _, column in leaves(entry.record))
    yield from _presents(entry.record)
    yield from entry.key or ()


def _presents(record: RecordShape) -> Iterator[int]:
    for _, shown in record.fields:
        if isinstance(shown, RecordShape):
            if shown.present is not None:
                yield shown.present
            yield from _presents(shown)


def _moved(record: RecordShape, places: dict[int, int], *, top: bool = False) -> RecordShape:
    fields = tuple(
        (name, places[shown] if isinstance(shown, int) else _moved(shown, places)) for name, shown in record.fields
    )
    return RecordShape(fields, None if top or record.present is None else places[record.present])


def _filtered(plan: Plan, present: int) -> Plan:
    test: Expression = call("is_not_null", plan.column(present))
    return Filter(plan, test)
