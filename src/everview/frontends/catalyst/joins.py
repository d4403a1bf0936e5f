"""Nodes of Catalyst's plans with several inputs, and subqueries inside of expressions."""

from __future__ import annotations

from typing import Any, Final

from everview.frontends.catalyst.expressions import as_spark_has_it
from everview.frontends.catalyst.plan_reader import PlanReader, reads_plan
from everview.frontends.catalyst.reading import ExpressionReader, FrameRows, reads
from everview.frontends.catalyst.tree import CatalystNode
from everview.plan.node import Plan
from everview.plan.nodes import Except, Filter, Intersect, Join, JoinKind, Lateral, Project, Union
from everview.plan.typing import cast, castable
from everview.scalars.expressions import Column, Exists, Expression, InQuery, Outer, Scalar, moved, rewritten

# -- several inputs

JOINS: Final[dict[str, JoinKind]] = {
    "Inner": "inner",
    "Cross": "inner",
    "LeftOuter": "left",
    "RightOuter": "right",
    "FullOuter": "full",
    "LeftSemi": "semi",
    "LeftAnti": "anti",
}


@reads_plan("Join")
def _join(node: CatalystNode, reader: PlanReader) -> FrameRows:
    left, right = (reader.rows(child) for child in node.children)
    kind, said = JOINS.get(node.object_name("joinType")), node.maybe("condition")
    if kind is None:
        what = f"a join of the kind {node.object_name('joinType')} cannot be read"
        raise reader.reading.refused(node, what, f"one of {', '.join(JOINS)}")
    both = FrameRows(Join(left.plan, right.plan, "inner"), (*left.ids, *right.ids))
    condition = None if said is None else reader.over(both).read(said)
    ids = left.ids if kind in ("semi", "anti") else both.ids
    return FrameRows(Join(left.plan, right.plan, kind, condition), ids)


@reads_plan("LateralJoin")
def _lateral(node: CatalystNode, reader: PlanReader) -> FrameRows:
    left = reader.below(node)
    around = reader.over(left)
    right = PlanReader(reader.reading, around).rows(node.at("right").at("plan"))
    said, count = node.maybe("condition"), len(left.ids)
    plan = right.plan
    if said is not None:
        both = FrameRows(Join(left.plan, right.plan, "inner"), (*left.ids, *right.ids))
        plan = Filter(plan, _within(reader.over(both).read(said), count))
    kind: Any = "left" if node.object_name("joinType") == "LeftOuter" else "inner"
    return FrameRows(Lateral(left.plan, plan, kind), (*left.ids, *right.ids))


def _within(condition: Expression, count: int) -> Expression:
    """A condition on both sides of a lateral join, for the right one, to which the left is the row around."""

    def place(part: Expression) -> Expression:
        match part:
            case Column(index, name, type_, nullable) if index < count:
                return Outer(index, 1, name, type_, nullable)
            case Column():
                return moved(part, lambda index: index - count)
            case _:
                return part

    return rewritten(condition, place)


@reads_plan("Union")
def _union(node: CatalystNode, reader: PlanReader) -> FrameRows:
    sides = [reader.rows(child) for child in node.children]
    return FrameRows(Union(tuple(same_types([side.plan for side in sides]))), sides[0].ids)


@reads_plan("Intersect", "Except")
def _pair(node: CatalystNode, reader: PlanReader) -> FrameRows:
    left, right = (reader.rows(child) for child in node.children)
    first, second = same_types([left.plan, right.plan])
    made = Intersect if node.kind == "Intersect" else Except
    return FrameRows(made(first, second, bool(node.fields["isAll"])), left.ids)


def same_types(plans: list[Plan]) -> list[Plan]:
    """The plans with columns of the same types; Spark has cast them, but for which parts may be NULL."""
    wanted = plans[0].schema.types
    for plan in plans[1:]:
        wanted = tuple(_either(a, b) for a, b in zip(wanted, plan.schema.types, strict=True))
    return [
        plan
        if plan.schema.types == wanted
        else Project(plan, tuple(map(cast, plan.columns, wanted)), plan.schema.names)
        for plan in plans
    ]


def _either(a: Any, b: Any) -> Any:
    return a if a == b or castable(b, a) else b


# -- subqueries


@reads("Exists")
def _exists(node: CatalystNode, reader: ExpressionReader) -> Expression:
    return Exists(PlanReader(reader.reading, reader).rows(node.at("plan")).plan)


@reads("ScalarSubquery")
def _scalar(node: CatalystNode, reader: ExpressionReader) -> Expression:
    return Scalar(PlanReader(reader.reading, reader).rows(node.at("plan")).plan)


@reads("InSubquery")
def _in(node: CatalystNode, reader: ExpressionReader) -> Expression:
    values = reader.all(node.all("values"))
    plan = PlanReader(reader.reading, reader).rows(node.at("query").at("plan")).plan
    if plan.schema.types != tuple(value.type for value in values):
        columns = tuple(as_spark_has_it(c, v.type) for c, v in zip(plan.columns, values, strict=True))
        plan = Project(plan, columns, plan.schema.names)
    return InQuery(tuple(values), plan)
