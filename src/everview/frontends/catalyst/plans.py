"""Nodes of Catalyst's plans without inputs, or with one."""

from __future__ import annotations

from everview.frontends.catalyst.aggregates import GroupedReader, group_keys, ordered, over_columns
from everview.frontends.catalyst.expressions import as_spark_has_it
from everview.frontends.catalyst.generators import generated_rows
from everview.frontends.catalyst.joins import same_types
from everview.frontends.catalyst.plan_reader import INSTEAD, MARK, MOST_CONSTANTS, SOURCE, PlanReader, reads_plan
from everview.frontends.catalyst.reading import FrameRows
from everview.frontends.catalyst.tree import CatalystNode, parsed
from everview.frontends.catalyst.types import type_of_json
from everview.frontends.catalyst.windows import window_value
from everview.frontends.sql.rows import ONE_ROW
from everview.plan.node import Plan, unique
from everview.plan.nodes import Distinct, Filter, Project, Top, Union, Values, Window
from everview.plan.typing import coerced, literal
from everview.scalars.expressions import Column, Expression, Literal, WindowCall, rewritten, walk
from everview.types import BIGINT, Field, Schema

# -- leaves


@reads_plan("SubqueryAlias")
def _alias(node: CatalystNode, reader: PlanReader) -> FrameRows:
    name = str(node.fields["identifier"]["name"])
    if not name.startswith(MARK):
        return reader.read(node.children[0])
    leaf = node.children[0]
    catalog = reader.reading.catalog
    relation = catalog.scan(catalog.find(name.removeprefix(MARK)))
    ids = tuple(attribute.id() for attribute in leaf.all("output"))
    if len(ids) != len(relation.schema):
        hint = "make the frame again: p.frame gives it with the columns that there are now"
        raise reader.reading.refused(node, f"{name.removeprefix(MARK)} has other columns by now", hint)
    return FrameRows(relation, ids)


@reads_plan("LocalRelation", "LogicalRDD")
def _constants(node: CatalystNode, reader: PlanReader) -> FrameRows:
    rows = reader.reading.answer(node, "rows")
    attributes = node.all("output")
    if rows is None or len(rows) > MOST_CONSTANTS:
        what = f"a relation of more than {MOST_CONSTANTS:,} rows is no constant of a view"
        raise reader.reading.refused(node, what, SOURCE)
    fields = [
        Field(name, type_of_json(a.fields["dataType"]), bool(a.fields["nullable"]))
        for name, a in zip(unique(str(a.fields["name"]) for a in attributes), attributes, strict=True)
    ]
    values = tuple(tuple(literal(v, f.type) for v, f in zip(row, fields, strict=True)) for row in rows)
    return FrameRows(Values(values, Schema(fields)), tuple(a.id() for a in attributes))


@reads_plan("Range")
def _range(node: CatalystNode, reader: PlanReader) -> FrameRows:
    numbers = range(int(node.fields["start"]), int(node.fields["end"]), int(node.fields["step"]))
    if len(numbers) > MOST_CONSTANTS:
        what = f"a range of more than {MOST_CONSTANTS:,} numbers is no constant of a view"
        raise reader.reading.refused(node, what, SOURCE)
    rows = tuple((Literal(number, BIGINT),) for number in numbers)
    return FrameRows(Values(rows, Schema([Field("id", BIGINT, nullable=False)])), (node.all("output")[0].id(),))


@reads_plan("OneRowRelation")
def _one_row(node: CatalystNode, reader: PlanReader) -> FrameRows:
    return FrameRows(ONE_ROW, (-1,))


# -- rows as they are


@reads_plan(
    *("View", "ResolvedHint", "UnresolvedHint", "Repartition", "RepartitionByExpression", "RebalancePartitions"),
    *("CollectMetrics", "LocalLimit", "SubqueryAliasHint", "ResolvedIdentifier", "Subquery"),
)
def _transparent(node: CatalystNode, reader: PlanReader) -> FrameRows:
    return reader.read(node.children[-1])


@reads_plan("WithCTE")
def _with(node: CatalystNode, reader: PlanReader) -> FrameRows:
    for definition in node.all("cteDefs"):
        reader.reading.named[int(definition.fields["id"])] = reader.below(definition)
    return reader.read(node.at("plan"))


@reads_plan("CTERelationRef")
def _named(node: CatalystNode, reader: PlanReader) -> FrameRows:
    if node.fields.get("recursive"):
        raise reader.reading.refused(node, "a recursive query cannot be read", INSTEAD["UnionLoop"])
    rows = reader.reading.named[int(node.fields["cteId"])]
    return FrameRows(rows.plan, tuple(attribute.id() for attribute in node.all("output")))


# -- one input


@reads_plan("Project")
def _project(node: CatalystNode, reader: PlanReader) -> FrameRows:
    rows = reader.read(node.children[0])
    read = reader.over(rows)
    items = node.all("projectList")
    values = read.all(items)
    names, ids = [str(item.fields["name"]) for item in items], tuple(item.id() for item in items)
    if not rows.order:
        return FrameRows(Project(rows.settled().plan, tuple(values), tuple(names)), ids)
    by = [key for key, _ in rows.order]
    whole = Project(rows.plan, (*values, *by), (*names, *(f"by{place}" for place in range(len(by)))))
    keys = [whole.column(len(values) + place) for place in range(len(by))]
    return FrameRows(whole, ids, tuple((key, way) for key, (_, way) in zip(keys, rows.order, strict=True)))


@reads_plan("Filter")
def _filter(node: CatalystNode, reader: PlanReader) -> FrameRows:
    rows = reader.read(node.children[0])
    return FrameRows(Filter(rows.plan, reader.over(rows).read(node.at("condition"))), rows.ids, rows.order)


@reads_plan("Aggregate")
def _aggregate(node: CatalystNode, reader: PlanReader) -> FrameRows:
    rows = reader.below(node)
    read = reader.over(rows)
    items = node.all("aggregateExpressions")
    keys = group_keys(node.all("groupingExpressions"), read)
    if not keys and any(part.kind == "PythonUDAF" for item in items for part in item.walk()):
        keys = [literal(1)]  # of no rows, an aggregate of the user's has no result
    grouped = GroupedReader(read, keys)
    values = [grouped.read(item) for item in items]
    plan = over_columns(grouped.plan(rows.plan), values, [str(item.fields["name"]) for item in items])
    return FrameRows(plan, tuple(item.id() for item in items))


@reads_plan("Expand")
def _expand(node: CatalystNode, reader: PlanReader) -> FrameRows:
    """Every row once for each of several projections, as grouping sets, windows of time and unpivot have it."""
    rows = reader.below(node)
    read = reader.over(rows)
    attributes = node.all("output")
    names = tuple(str(a.fields["name"]) for a in attributes)
    types = [type_of_json(a.fields["dataType"]) for a in attributes]
    parts: list[Plan] = []
    for projection in _projections(node, reader):
        values = [coerced(v, t) if isinstance(v, Literal) else as_spark_has_it(v, t)
                  for v, t in zip(read.all(projection), types, strict=True)]  # fmt: skip
        parts.append(Project(rows.plan, tuple(values), names))
    plan = parts[0] if len(parts) == 1 else Union(tuple(same_types(parts)))
    return FrameRows(plan, tuple(a.id() for a in attributes))


def _projections(node: CatalystNode, reader: PlanReader) -> list[tuple[CatalystNode, ...]]:
    said = node.fields["projections"]
    if said is not None:
        return [tuple(row) for row in said]
    asked: list[list[str]] = reader.reading.answer(node, "projections") or []
    return [tuple(parsed(text, node.path) for text in row) for row in asked]


@reads_plan("Distinct")
def _distinct(node: CatalystNode, reader: PlanReader) -> FrameRows:
    rows = reader.below(node)
    return FrameRows(Distinct(rows.plan), rows.ids)


@reads_plan("Deduplicate")
def _deduplicate(node: CatalystNode, reader: PlanReader) -> FrameRows:
    rows = reader.below(node)
    places = {rows.place(key.id()) for key in node.all("keys")}
    known = tuple(sorted(place for place in places if place is not None))
    if len(known) == len(rows.ids):
        return FrameRows(Distinct(rows.plan), rows.ids)
    reader.reading.arbitrary = True
    return FrameRows(Top(rows.plan, (), 1, 0, known), rows.ids)


@reads_plan("Sort")
def _sort(node: CatalystNode, reader: PlanReader) -> FrameRows:
    rows = reader.below(node)
    if not node.fields.get("global"):
        return rows
    read = reader.over(rows)
    return FrameRows(rows.plan, rows.ids, tuple(ordered(item, read) for item in node.all("order")))


@reads_plan("GlobalLimit")
def _limit(node: CatalystNode, reader: PlanReader) -> FrameRows:
    below = node.children[0]
    while below.kind == "LocalLimit":
        below = below.children[0]
    limit, offset = _count(node, "limitExpr", reader), 0
    if below.kind == "Offset":
        offset, below = _count(below, "offsetExpr", reader), below.children[0]
    return _top(reader.read(below), limit, offset, reader)


@reads_plan("Offset")
def _offset(node: CatalystNode, reader: PlanReader) -> FrameRows:
    return _top(reader.read(node.children[0]), None, _count(node, "offsetExpr", reader), reader)


def _top(rows: FrameRows, limit: int | None, offset: int, reader: PlanReader) -> FrameRows:
    ordered_columns = {key.index for key, _ in rows.order if isinstance(key, Column)}
    reader.reading.arbitrary |= not ordered_columns.issuperset(range(len(rows.ids)))  # rows that tie may differ
    return FrameRows(Top(rows.plan, rows.order, limit, offset), rows.ids, rows.order)


def _count(node: CatalystNode, name: str, reader: PlanReader) -> int:
    value = reader.over(FrameRows(ONE_ROW, (-1,))).read(node.at(name))
    if not isinstance(value, Literal) or not isinstance(value.value, int):
        raise reader.reading.refused(node, "a limit that is no literal", "write the number down")
    return value.value


@reads_plan("Window")
def _window(node: CatalystNode, reader: PlanReader) -> FrameRows:
    rows = reader.below(node)
    read = reader.over(rows)
    items = node.all("windowExpressions")
    values = [window_value(item.children[0], read) for item in items]
    names = tuple(str(item.fields["name"]) for item in items)
    ids = (*rows.ids, *(item.id() for item in items))
    calls = tuple(dict.fromkeys(e for value in values for e in walk(value) if isinstance(e, WindowCall)))
    if list(calls) == values:
        return FrameRows(Window(rows.plan, calls, names), ids)
    width = len(rows.plan.schema)
    plan = Window(rows.plan, calls, tuple(f"w{place}" for place in range(len(calls))))

    def computed(part: Expression) -> Expression:
        return plan.column(width + calls.index(part)) if part in calls else part

    formulas = (rewritten(value, computed) for value in values)
    own = rows.plan.schema.names
    return FrameRows(Project(plan, (*plan.columns[:width], *formulas), unique((*own, *names))), ids)


@reads_plan("Generate")
def _generate(node: CatalystNode, reader: PlanReader) -> FrameRows:
    return generated_rows(node, reader.over(reader.below(node)))
