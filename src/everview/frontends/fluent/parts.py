"""A query as a tree of parts: its own flat plan, and one for each related query and each array of records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from everview.frontends.fluent.agg import Agg
from everview.frontends.fluent.clauses import Clauses, Pairs, Related
from everview.frontends.fluent.flat import Flat, flat, limited
from everview.frontends.fluent.names import STAR, Entry, leaves
from everview.frontends.fluent.rows import equal
from everview.frontends.fluent.selection import name_of
from everview.frontends.fluent.shape import Direction, Part, Record
from everview.optimize import optimize
from everview.plan.catalog import NamedPlan, Readable
from everview.plan.node import Plan
from everview.plan.nodes import Filter, Join, Project, Scan
from everview.plan.typing import call
from everview.scalars.expressions import Expression


@dataclass(frozen=True, slots=True)
class Above:
    """The part above: its rows, and the columns of them that say which rows beneath are theirs."""

    plan: Plan
    columns: tuple[int, ...]
    pairs: Pairs


def parts(query: Clauses, relations: Readable, view: str | None = None) -> Part:
    """The parts of a query.

    Under the name of a ``view``, a part beneath reads the rows above it from their view, as `Part.walk` names it;
    without, it has their plan inside its own.
    """
    return _part("", query, relations, view, None)


def named_plans(part: Part, name: str, reads: tuple[str, ...] = ()) -> tuple[NamedPlan, ...]:
    """The views of a query's parts, each after the one above it; ``reads`` are the relations that the query names."""
    return tuple(_named(name, view, one, reads) for view, one in part.walk(name))


def _named(whole: str, view: str, part: Part, reads: tuple[str, ...]) -> NamedPlan:
    above = () if view == whole else (view[: -len(part.name) - 1],)
    order = tuple((part.plan.column(at), way) for at, way in part.order) if part.ordered else ()
    return NamedPlan(view, part.plan, optimize(part.plan), (*above, *reads), order, whole=whole)


def _part(name: str, query: Clauses, relations: Readable, view: str | None, above: Above | None) -> Part:
    theirs = () if above is None else tuple(right for _, right in above.pairs)
    mine = [left for related in query.related for left, _ in related.pairs]
    found = flat(query, relations, (*theirs, *mine))
    child, rest = found.places[: len(theirs)], iter(found.places[len(theirs) :])
    plan = found.plan if above is None else _belonging(found.plan, child, above)
    if not _alone(found, child, query):
        plan = limited(plan, found.order, query.most, child)
    here = plan if view is None else Scan(view, plan.schema)
    beneath = [_related(one, relations, view, Above(here, tuple(next(rest) for _ in one.pairs), one.pairs))
               for one in query.related]  # fmt: skip
    beneath += [_records(one, found, query, here) for one in found.records]
    return Part(
        name,
        plan,
        found.record,
        found.order,
        bool(query.order) or query.most is not None,
        query.most,
        query.one,
        above is None and not beneath and is_scalar(query, found.record),
        () if above is None else above.columns,
        child,
        tuple(beneath),
    )


def is_scalar(query: Clauses, record: Record) -> bool:
    """Whether it is always one row, with one value."""
    single = query.aggregates and not query.groups and not query.having and query.after is None
    return single and query.most is None and not query.distinct and len(record.fields) == 1


def _alone(found: Flat, child: tuple[int, ...], query: Clauses) -> bool:
    """Whether no two rows belong to one row above, so that a limit of one is kept by itself."""
    return query.most == 1 and bool(child) and found.key is not None and set(child) >= set(found.key)


def _belonging(plan: Plan, columns: tuple[int, ...], above: Above) -> Plan:
    """The rows that belong to a row above."""
    turned = tuple((right, left) for left, right in above.pairs)
    return Join(plan, above.plan, "semi", equal(plan, columns, above.plan, above.columns, turned))


def _related(one: Related, relations: Readable, view: str | None, above: Above) -> Part:
    return _part(one.name, one.query, relations, None if view is None else f"{view}.{one.name}", above)


def _records(one: Agg, found: Flat, query: Clauses, above: Plan) -> Part:
    """An array of records: the rows of each group, of one relation, in the order of its key."""
    rows = found.rows
    entry = rows.scope.own if one.column == STAR else rows.scope.entry(one.column.removesuffix(".*"))
    columns = [*found.groups, *dict.fromkeys(_columns(entry))]
    names = [name_of(rows.scope, at) for at in columns]
    there = rows.plan if entry.record.present is None else _filtered(rows.plan, entry.record.present)
    plan: Plan = Project(there, tuple(there.column(at) for at in columns), tuple(names))
    width = len(found.groups)
    places = {at: width + number for number, at in enumerate(columns[width:])}
    child = tuple(range(width))
    pairs = tuple((names[at], names[at]) for at in child)
    if child or query.having or query.most is not None or query.after is not None:
        same = equal(plan, child, above, found.group_places, pairs, nulls=True)
        plan = Join(plan, above, "semi", same)
    told = range(len(plan.schema)) if entry.key is None else (places[at] for at in entry.key)
    order: tuple[tuple[int, Direction], ...] = tuple((at, "asc") for at in told)
    return Part(one.name, plan, _moved(entry.record, places, top=True), order, parent=found.group_places, child=child)


def _columns(entry: Entry) -> Iterator[int]:
    yield from (at for _, at in leaves(entry.record))
    yield from _presents(entry.record)
    yield from entry.key or ()


def _presents(record: Record) -> Iterator[int]:
    for _, found in record.fields:
        if isinstance(found, Record):
            if found.present is not None:
                yield found.present
            yield from _presents(found)


def _moved(record: Record, places: dict[int, int], *, top: bool = False) -> Record:
    fields = tuple((name, places[at] if isinstance(at, int) else _moved(at, places)) for name, at in record.fields)
    return Record(fields, None if top or record.present is None else places[record.present])


def _filtered(plan: Plan, present: int) -> Plan:
    test: Expression = call("is_not_null", plan.column(present))
    return Filter(plan, test)
