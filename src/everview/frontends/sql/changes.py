"""INSERT, UPDATE, DELETE and TRUNCATE: the rows that come and go, as plans over what is there."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.frontends.sql import statements as st
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.expressions import Site, condition
from everview.frontends.sql.merging import deleted_using, merge, updated_from, upserted
from everview.frontends.sql.names import fold
from everview.frontends.sql.queries import untyped_query, with_clause
from everview.frontends.sql.rows import ONE_ROW
from everview.frontends.sql.sets import trimmed
from everview.frontends.sql.targets import (
    Target,
    assigned,
    assignments,
    completed,
    default_of,
    is_default,
    refuse_generated,
    returned,
    table_of,
    target_of,
)
from everview.plan.node import Plan
from everview.plan.nodes import Filter, Project, Scan
from everview.scalars.expressions import Expression
from everview.types import BINARY, INTERVALS, Type, unknown_name

DEFAULT_OF = "default of column "  # no parameter is called so


def change(node: exp.Expr, text: str, context: QueryContext) -> st.Statement:
    """A statement that changes a table."""
    context = with_clause(node, context)
    match node:
        case exp.Insert():
            return _insert(node, text, context)
        case exp.Update():
            return _update(node, text, context)
        case exp.Delete():
            return _delete(node, text, context)
        case exp.TruncateTable():
            context.only(node, "expressions")
            (table,) = node.expressions
            scan = table_of(table, context)
            return st.DeleteRows(text, scan.relation, scan)
        case _:
            assert isinstance(node, exp.Merge)
            return merge(node, text, context)


# -- INSERT


def _insert(node: exp.Insert, text: str, context: QueryContext) -> st.InsertRows | st.Merge:
    context.only(
        node, "this", "expression", "with_", "by_name", "default", "overwrite", "conflict", "alternative", "returning"
    )
    named = node.this.this if isinstance(node.this, exp.Schema) else node.this
    scan = table_of(named, context)
    target = Target(scan, target_of(named, context).scope, named.alias or named.name)
    plan = completed(_inserted(node, scan, context), scan, context)
    upserting = node.args.get("conflict") is not None or node.args.get("alternative")
    overwrite = bool(node.args.get("overwrite"))
    if upserting and overwrite:
        raise context.error("INSERT OVERWRITE replaces all rows, so none is in conflict", node, "leave ON CONFLICT out")
    if upserting:
        return upserted(node, text, target, plan, context)
    given = returned(node, plan, target, context)
    return st.InsertRows(text, scan.relation, plan, overwrite=overwrite, returning=given)


def _inserted(node: exp.Insert, scan: Scan, context: QueryContext) -> Plan:
    """The rows to insert, with all columns of the table; generated ones are NULL."""
    names = scan.schema.names
    listed = [c.name for c in node.this.expressions] if isinstance(node.this, exp.Schema) else None
    if node.args.get("default"):
        return Project(ONE_ROW, tuple(default_of(scan, i, context) for i in range(len(names))), names)
    if node.expression is None:
        raise context.error("INSERT of what?", node, "write INSERT INTO t VALUES (…)")
    generated = context.catalog.generated(scan.relation)
    if listed is None and generated and _width(node.expression) == len(names) - len(generated):
        listed = [name for name in names if name not in generated]
    written, context, left = _with_defaults(node.expression, listed or list(names), scan, context)
    written = _with_types(written, listed or list(names), scan, context)
    bound = untyped_query(written, context)
    bound = Bound(trimmed(bound), bound.names)
    if node.args.get("by_name"):
        listed = list(bound.names)
    columns = list[Expression]()
    for i, place in enumerate(_places(listed, bound, scan, node, context)):
        if place is None:
            columns.append(default_of(scan, i, context))
            continue
        if i not in left:
            refuse_generated(scan, i, node, context)
        columns.append(assigned(bound.plan.column(place), scan.schema, i, node, context))
    return Project(bound.plan, tuple(columns), names)


def _width(node: exp.Expr) -> int:
    """The number of values in the first written row of a query."""
    if isinstance(node, exp.Values) and node.expressions:
        first = node.expressions[0]
        return len(first.expressions) if isinstance(first, exp.Tuple) else 1
    return len(node.expressions) if isinstance(node, exp.Select) and not node.is_star else -1


def _with_defaults(
    node: exp.Expr, listed: list[str], scan: Scan, context: QueryContext
) -> tuple[exp.Expr, QueryContext, set[int]]:
    """The rows with parameters in place of DEFAULT, a context with their values, and the columns always left so."""
    if not isinstance(node, exp.Values):
        return node, context, set()
    places = {fold(name): i for i, name in enumerate(scan.schema.names)}
    node, values, given = node.copy(), dict(context.parameters), set[int]()
    for row in node.expressions:
        for place, value in enumerate(row.expressions if isinstance(row, exp.Tuple) else [row]):
            column = places.get(fold(listed[place])) if place < len(listed) else None
            if column is None or not is_default(value):
                given.add(-1 if column is None else column)
                continue
            values[f"{DEFAULT_OF}{column}"] = default_of(scan, column, context)
            value.replace(exp.Placeholder(this=f"{DEFAULT_OF}{column}"))
    return node, replace(context, parameters=values), {*places.values()} - given


def _with_types(node: exp.Expr, listed: list[str], scan: Scan, context: QueryContext) -> exp.Expr:
    """The rows with texts for intervals and bytes cast as their dialect reads them, which Spark reads otherwise."""
    if context.dialect == "spark" or not isinstance(node, exp.Values):
        return node
    kinds = {fold(f.name): "INTERVAL" if f.type in INTERVALS else "VARBINARY" for f in scan.schema if _is_told(f.type)}
    if not kinds:
        return node
    node = node.copy()
    for row in node.expressions:
        for name, value in zip(listed, row.expressions if isinstance(row, exp.Tuple) else [row], strict=False):
            kind = kinds.get(fold(name))
            if kind is not None and isinstance(value, exp.Literal) and value.is_string:
                value.replace(exp.cast(value.copy(), kind))
    return node


def _is_told(type_: Type) -> bool:
    return type_ in INTERVALS or type_ == BINARY


def _places(
    listed: list[str] | None, bound: Bound, scan: Scan, node: exp.Expr, context: QueryContext
) -> list[int | None]:
    """For each column of the table, the position of the inserted column that fills it; None for its default."""
    names = scan.schema.names
    if listed is None:
        if len(bound.names) != len(names):
            hint = f"the columns are {', '.join(names)}; name those that are given"
            raise context.error(f"{len(bound.names)} values for {len(names)} columns", node, hint)
        return list(range(len(names)))
    if len(listed) != len(bound.names):
        raise context.error(f"{len(bound.names)} values for {len(listed)} columns", node, "give as many")
    folded = [fold(name) for name in listed]
    for name in listed:
        if fold(name) not in map(fold, names):
            raise unknown_name("column", name, names)
        if folded.count(fold(name)) > 1:
            raise context.error(f'column "{name}" is given twice', node)
    return [folded.index(fold(name)) if fold(name) in folded else None for name in names]


# -- UPDATE and DELETE


def _where(node: exp.Expr, target: Target, context: QueryContext) -> Plan:
    if node.args.get("where") is None:
        return target.scan
    return Filter(target.scan, condition(node.args["where"].this, Site(context, target.scope, "WHERE")))


def _update(node: exp.Update, text: str, context: QueryContext) -> st.UpdateRows | st.Merge:
    context.only(node, "this", "expressions", "where", "with_", "from_", "returning")
    if not node.expressions:
        raise context.error("UPDATE of what?", node, "write UPDATE t SET n = 1 WHERE …")
    target = target_of(node.this, context)
    if node.args.get("from_") is not None:
        return updated_from(node, text, target, context)
    scan = target.scan
    new = assignments(node.expressions, scan, Site(context, target.scope, "SET"))
    changed = [new.get(i, column) for i, column in enumerate(scan.columns)]
    names = (*scan.schema.names, *(f"new {name}" for name in scan.schema.names))
    plan = Project(_where(node, target, context), (*scan.columns, *changed), names)
    done = completed(plan, scan, context, target.width)
    return st.UpdateRows(text, scan.relation, done, returned(node, done, target, context, target.width))


def _delete(node: exp.Delete, text: str, context: QueryContext) -> st.DeleteRows | st.Merge:
    if node.args.get("tables"):
        raise context.error("DELETE removes whole rows FROM a table", node, "write DELETE FROM t WHERE …")
    context.only(node, "this", "where", "with_", "using", "returning")
    target = target_of(node.this, context)
    if node.args.get("using"):
        return deleted_using(node, text, target, context)
    plan = _where(node, target, context)
    return st.DeleteRows(text, target.scan.relation, plan, returned(node, plan, target, context))
