"""Tables that a statement changes: their columns, defaults and generated columns, and what RETURNING gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from everview.errors import EverviewError, NullNotAllowed
from everview.frontends.sql import statements as st
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.expressions import POSTGRES, Site, expression
from everview.frontends.sql.names import Scope, Visible, fold
from everview.frontends.sql.parse import stored_expression
from everview.frontends.sql.postgresql_bytes import as_bytes
from everview.frontends.sql.queries import bind_items
from everview.frontends.sql.rows import NamedRows
from everview.frontends.sql.sources import named, relation
from everview.plan.node import Plan, unique
from everview.plan.nodes import Filter, Project, Scan, Union
from everview.plan.typing import call, cast, castable
from everview.scalars.expressions import AggregateCall, Column, Expression, Literal, WindowCall, walk
from everview.scalars.kinds import VOID
from everview.types import Schema, unknown_name


@dataclass(frozen=True)
class Target:
    """The rows of a table that a statement may change, under their names."""

    scan: Scan
    scope: Scope
    name: str

    @property
    def width(self) -> int:
        """The number of the table's columns."""
        return len(self.scan.schema)


def table_of(node: exp.Expr, context: QueryContext) -> Scan:
    """A table that can be changed."""
    if not isinstance(node, exp.Table):
        raise context.unsupported(f"a change of {node.sql('spark')[:60]}", node, "name a table")
    context.only(node, "this", "alias", "db", "catalog")
    try:
        plan = relation(node, context).plan
    except EverviewError as error:
        context.source.locate(error, node)
        raise
    if not isinstance(plan, Scan):
        raise context.error(f'"{node.name}" is no table', node, "only tables can be changed; views follow")
    return context.catalog.given(plan)


def target_of(node: exp.Expr, context: QueryContext) -> Target:
    """A table that can be changed, and its columns in scope."""
    scan = table_of(node, context)
    alias = node.args.get("alias")
    rows = named(Bound(scan, scan.schema.names), alias, context, node.name)
    return Target(scan, rows.scope, (alias.name if alias is not None else "") or node.name)


# -- values of columns


def default_of(scan: Scan, column: int, context: QueryContext) -> Expression:
    """The value of a column that is left out; that of a generated column is computed later, by `completed`."""
    field = scan.schema.fields[column]
    default = context.catalog.default(scan.relation, field.name)
    if default is not None:
        return default
    if not field.nullable and field.name not in context.catalog.generated(scan.relation):
        hint = f'give "{field.name}" a value: it has no default'
        raise NullNotAllowed(f'column "{field.name}" of {scan.relation} is NOT NULL', hint=hint)
    return Literal(None, field.type)


def assigned(value: Expression, schema: Schema, column: int, node: exp.Expr, context: QueryContext) -> Expression:
    """A value cast to the type of a column; a value that does not fit raises when the statement runs."""
    field = schema.fields[column]
    if value.type == VOID:
        return Literal(None, field.type)
    if not castable(value.type, field.type):
        hint = f"cast it to {field.type}"
        raise context.error(f'column "{field.name}" is {field.type}, and was given {value.type}', node, hint)
    return cast(value, field.type)


def is_default(node: exp.Expr) -> bool:
    """Whether DEFAULT stands in place of a value."""
    return (
        isinstance(node, exp.Column | exp.Var) and node.name.upper() == "DEFAULT" and not node.args.get("table")
    ) and not (isinstance(node, exp.Column) and bool(node.this.args.get("quoted")))


def column_of(node: exp.Expr, schema: Schema, context: QueryContext) -> int:
    """The position of a column by its name."""
    column = next((i for i, name in enumerate(schema.names) if fold(name) == fold(node.name)), None)
    if column is None:
        error = unknown_name("column", node.name, schema.names)
        context.source.locate(error, node)
        raise error
    return column


def assignments(parts: list[exp.Expr], scan: Scan, site: Site) -> dict[int, Expression]:
    """The new values of SET by column: ``a = 1``, ``(a, b) = (1, 2)``, ``a = DEFAULT``."""
    context, values = site.context, dict[int, Expression]()
    for part in parts:
        for name, value in _pairs(part, site):
            column = column_of(name, scan.schema, context)
            if column in values:
                raise context.error(f'column "{name.name}" is set twice', part)
            if is_default(value):
                values[column] = default_of(scan, column, context)
                continue
            refuse_generated(scan, column, name, context)
            given = expression(as_bytes(value, scan.schema.types[column], context.dialect), site)
            values[column] = assigned(given, scan.schema, column, part, context)
    return values


def _pairs(part: exp.Expr, site: Site) -> list[tuple[exp.Expr, exp.Expr]]:
    hint = "write SET a = 1, b = 2"
    if not isinstance(part, exp.EQ):
        raise site.context.unsupported(f"SET {part.sql('spark')[:40]}", part, hint)
    left, right = part.this, part.expression
    if isinstance(left, exp.Column):
        return [(left, right)]
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Subquery):
        return _of_one_row(left, right, site)
    if isinstance(right, exp.Anonymous) and right.name.upper() == "ROW":
        right = exp.Tuple(expressions=right.expressions)
    if not isinstance(left, exp.Tuple) or not isinstance(right, exp.Tuple):
        raise site.context.unsupported(f"SET {part.sql('spark')[:40]}", part, hint)
    if len(left.expressions) != len(right.expressions):
        counts = f"{len(left.expressions)} columns and {len(right.expressions)} values"
        raise site.context.error(f"SET of {counts}", part, "give as many values as columns")
    return list(zip(left.expressions, right.expressions, strict=True))


def _of_one_row(left: exp.Tuple, right: exp.Subquery, site: Site) -> list[tuple[exp.Expr, exp.Expr]]:
    """``(a, b) = (SELECT c, d …)``: the fields of one row, read as a struct; all are NULL where there is none."""
    columns = [f"_{place}" for place in range(len(left.expressions))]
    query: Any = right.unnest()
    if not query.is_star and len(query.selects) != len(columns):
        counts = f"{len(columns)} columns and {len(query.selects)} values"
        raise site.context.error(f"SET of {counts}", right, "select as many as there are columns")
    alias = exp.TableAlias(this=exp.to_identifier("_row"), columns=[exp.to_identifier(column) for column in columns])
    fields = [exp.alias_(exp.column(column, "_row"), column) for column in columns]
    row = exp.select(exp.Anonymous(this="struct", expressions=fields))
    row = exp.Subquery(this=row.from_(exp.Subquery(this=query.copy(), alias=alias)))
    parts = [exp.Dot(this=row.copy(), expression=exp.to_identifier(column)) for column in columns]
    return list(zip(left.expressions, parts, strict=True))


# -- generated columns


def refuse_generated(scan: Scan, column: int, node: exp.Expr, context: QueryContext) -> None:
    """Refuse a value for a column that is computed."""
    name = scan.schema.names[column]
    if name in context.catalog.generated(scan.relation):
        hint = f"leave it out, or write DEFAULT: it is {context.catalog.generated(scan.relation)[name]}"
        raise context.error(f'column "{name}" is generated, and takes no other value', node, hint)


def completed(plan: Plan, scan: Scan, context: QueryContext, start: int = 0) -> Plan:
    """The rows with generated columns computed; those of the table begin at ``start``."""
    generated = context.catalog.generated(scan.relation)
    if not generated:
        return plan
    columns: list[Expression] = list(plan.columns)
    names = scan.schema.names
    scope = Scope(tuple(Visible(None, name, columns[start + i]) for i, name in enumerate(names)))
    for i, name in enumerate(names):
        if name in generated:
            columns[start + i] = computed(generated[name], scan.schema, i, scope, context)
    return Project(plan, tuple(columns), plan.schema.names)


def computed(text: str, schema: Schema, column: int, scope: Scope, context: QueryContext) -> Expression:
    """The value of a generated column, over the other columns in scope."""
    inside = replace(context, dialect="spark")
    value = expression(stored_expression(text), Site(inside, scope, "GENERATED ALWAYS AS"))
    return cast(value, schema.fields[column].type)


# -- RETURNING


def returned(
    node: exp.Expr, rows: Plan, target: Target, context: QueryContext, start: int = 0, *, both: Scope | None = None
) -> st.Select | None:
    """The columns of RETURNING over the changed rows, which begin at ``start``; None without the clause.

    With the scope of ``both``, each changed row stands beside the row of FROM or USING that changes it; only to
    PostgreSQL is that one a part of ``*``.
    """
    clause = node.args.get("returning")
    if clause is None:
        return None
    context.only(clause, "expressions")
    columns = rows.columns[start : start + target.width]
    names = zip(target.scan.schema.names, columns, strict=True)
    visible = [Visible(target.name, name, column) for name, column in names]
    for other in () if both is None else both.visible[target.width :]:
        visible.append(replace(other, bare=other.bare and context.dialect in POSTGRES))
    scope = Scope(tuple(visible))
    unfinished, _ = bind_items(exp.Select(expressions=clause.expressions), NamedRows(rows, scope), context)
    for item in unfinished.items:
        if unfinished.generates or any(isinstance(e, AggregateCall | WindowCall) for e in walk(item)):
            raise context.unsupported("RETURNING of more than one row at a time", clause, "return columns of the rows")
    names = tuple(unfinished.names)
    return st.Select("", Project(rows, tuple(unfinished.items), unique(names)), names)


def reads_beside(given: st.Select, target: Target) -> bool:
    """Whether RETURNING reads the row beside the changed one."""
    parts = (part for item in given.plan.expressions for part in walk(item))
    return any(isinstance(part, Column) and part.index >= target.width for part in parts)


def united(parts: list[Plan], scan: Scan) -> Plan:
    """The rows of all plans; without any, no rows of the table."""
    if not parts:
        return Filter(scan, Literal(False, call("is_null", scan.column(0)).type))
    return parts[0] if len(parts) == 1 else Union(tuple(parts))
