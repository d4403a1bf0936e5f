"""UNION, INTERSECT and EXCEPT: columns by place, as the types that all sides have in common."""

from __future__ import annotations

from sqlglot import exp

from everview.frontends.sql.casts import as_types, untyped
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.names import fold
from everview.frontends.sql.unordered import refuse_unordered
from everview.plan.node import Plan, unique
from everview.plan.nodes import Distinct, Except, Intersect, Project, Union, Values
from everview.plan.typing import common
from everview.scalars.expressions import NULL, Literal
from everview.types import Field, Schema, Type

SetOperation = (exp.Union, exp.Intersect, exp.Except)
MOST_OPERATIONS = 200  # intersections and differences in a row; unions may be more


def first_columns(plan: Plan, count: int) -> Plan:
    """The first columns of a plan."""
    return Project(plan, plan.columns[:count], plan.schema.names[:count])


def set_operation(node: exp.Expr, context: QueryContext) -> Bound:
    """Bind a chain of set operations from the left, in a loop instead of a recursion."""
    from everview.frontends.sql.queries import untyped_query

    chain: list[exp.Expr] = []
    first: exp.Expr = node
    while isinstance(first, SetOperation):
        if first is not node and any(first.args.get(k) for k in ("order", "limit", "offset", "with_")):
            break
        context.only(first, "this", "expression", "distinct", "with_", "order", "limit", "offset", "by_name")
        chain.append(first)
        first = first.this
    chain.reverse()
    bounds = [untyped_query(first, context), *(untyped_query(step.expression, context) for step in chain)]
    names, plans = bounds[0].names, [trimmed(b) for b in bounds]
    if any(step.args.get("by_name") for step in chain):
        names, plans = _by_name([b.names for b in bounds], plans, chain, context)
    plans = _alike(plans, [first, *(step.expression for step in chain)], context)
    return Bound(_folded(plans, chain, context), names)


def _by_name(
    names: list[tuple[str, ...]], plans: list[Plan], chain: list[exp.Expr], context: QueryContext
) -> tuple[tuple[str, ...], list[Plan]]:
    """The names of UNION BY NAME, those of the first side first, and the plans with NULL in columns that they lack."""
    every, sides = list(names[0]), [[fold(name) for name in names[0]]]
    for step, side in zip(chain, names[1:], strict=True):
        folded = [fold(name) for name in side]
        if not step.args.get("by_name"):
            sides.append([fold(name) for name in every[: len(side)]])
            continue
        if not isinstance(step, exp.Union):
            raise context.unsupported(f"{step.key.upper()} BY NAME", step, "there is UNION [ALL] BY NAME")
        known = [fold(name) for name in every]
        every += [name for name, lower in zip(side, folded, strict=True) if lower not in known]
        sides.append(folded)
    if any(len(set(side)) < len(side) for side in sides):
        raise context.error("BY NAME of a query with two columns of one name", chain[0], "rename one of them")
    return tuple(every), [_aligned(plan, side, every) for side, plan in zip(sides, plans, strict=True)]


def _aligned(plan: Plan, side: list[str], every: list[str]) -> Plan:
    """A side with all columns, in the order of all sides; its own are given by their folded names."""
    wanted = [fold(name) for name in every]
    if side == wanted or len(side) != len(plan.schema):  # by place, with too few: refused where types are met
        return plan
    columns = tuple(plan.column(side.index(name)) if name in side else NULL for name in wanted)
    return Project(plan, columns, unique(every))


def trimmed(bound: Bound) -> Plan:
    return bound.plan if len(bound.plan.schema) == len(bound.names) else first_columns(bound.plan, len(bound.names))


def _alike(plans: list[Plan], where: list[exp.Expr], context: QueryContext) -> list[Plan]:
    """The plans with the types that their columns have in common."""
    width = len(plans[0].schema)
    for plan, node in zip(plans, where, strict=True):
        if len(plan.schema) != width:
            counts = f"{width} and {len(plan.schema)}"
            raise context.error(f"a set operation of {counts} columns", node, "select as many on both sides")
    columns = zip(*(plan.schema.fields for plan in plans), strict=True)
    kinds = [untyped(Literal(None, _met([f.type for f in fields], where, context))).type for fields in columns]
    return [as_types(plan, kinds) for plan in plans]


def _met(kinds: list[Type], where: list[exp.Expr], context: QueryContext) -> Type:
    common_type = kinds[0]
    for kind, node in zip(kinds, where, strict=True):
        both = common(common_type, kind)
        if both is None:
            raise context.error(f"a set operation of {common_type} and {kind} in one column", node, "cast one of them")
        common_type = both
    return common_type


def _folded(plans: list[Plan], chain: list[exp.Expr], context: QueryContext) -> Plan:
    folded = plans[0]
    others = sum(not isinstance(step, exp.Union) for step in chain)
    if others > MOST_OPERATIONS:
        raise context.too_deep(chain[-1])
    united: list[Plan] = []  # inputs of the union that is being gathered
    for step_number, (plan, step) in enumerate(zip(plans[1:], chain, strict=True)):
        every = not step.args.get("distinct", True)
        if not every or not isinstance(step, exp.Union):
            refuse_unordered(plan.schema.types, f"{step.key.upper()} of", step, context)
        if isinstance(step, exp.Union):
            united = united or [folded]
            united.append(plan)
            if step_number + 1 < len(chain) and _same(step, chain[step_number + 1]):
                continue
            whole = _united(united)
            folded = whole if every else Distinct(whole)
            united = []
        elif isinstance(step, exp.Intersect):
            folded = Intersect(folded, plan, every)
        else:
            folded = Except(folded, plan, every)
    return folded


def _united(plans: list[Plan]) -> Plan:
    """The union of all plans; those of literal rows become one."""
    written = [plan for plan in plans if isinstance(plan, Values)]
    if len(written) < 2:
        return Union(tuple(plans))
    columns = zip(*(plan.schema.fields for plan in written), strict=True)
    fields = [Field(f.name, f.type, any(o.nullable for o in (f, *others))) for f, *others in columns]
    rows = Values(tuple(row for plan in written for row in plan.rows), Schema(fields))
    first = plans.index(written[0])
    parts = [
        rows if number == first else plan
        for number, plan in enumerate(plans)
        if number == first or not isinstance(plan, Values)
    ]
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def _same(a: exp.Expr, b: exp.Expr) -> bool:
    return isinstance(b, exp.Union) and bool(a.args.get("distinct", True)) == bool(b.args.get("distinct", True))
