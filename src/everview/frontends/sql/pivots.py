"""PIVOT with the values written down: a group for the other columns, and a filtered aggregate for each value."""

from __future__ import annotations

from sqlglot import exp

from everview.frontends.sql.context import Context
from everview.frontends.sql.names import fold

# How sqlglot says what a dialect would call the columns; here they are called as in Spark.
_OF_DIALECT = ("pivot_column_naming", "identify_pivot_strings", "prefixed_pivot_columns")


def of_clause(pivot: exp.Pivot, table: exp.Expr, columns: list[str], context: Context) -> exp.Select:
    """``FROM t PIVOT (sum(x) FOR c IN ('a', 'b'))``."""
    context.only(pivot, "expressions", "fields", "alias", "columns", *_OF_DIALECT)
    return _select(pivot, table, pivot.expressions, pivot.args.get("fields") or [], None, columns, context)


def of_statement(pivot: exp.Pivot, context: Context, columns: list[str]) -> exp.Select:
    """``PIVOT t ON c IN ('a', 'b') USING sum(x) GROUP BY g``."""
    context.only(pivot, "this", "expressions", "using", "group", *_OF_DIALECT)
    group = pivot.args.get("group")
    groups = None if group is None else [g.name for g in group.expressions]
    return _select(pivot, pivot.this, pivot.args.get("using") or [], pivot.expressions, groups, columns, context)


def _select(
    pivot: exp.Pivot,
    table: exp.Expr,
    aggregates: list[exp.Expr],
    fields: list[exp.Expr],
    groups: list[str] | None,
    columns: list[str],
    context: Context,
) -> exp.Select:
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or not fields[0].expressions:
        hint = "list the values, as in ON kind IN ('a', 'b'): the columns of a view do not change with its rows"
        raise context.unsupported("PIVOT without a list of values of one column", pivot, hint)
    by = fields[0]
    used = {fold(c.name) for part in (*aggregates, by.this) for c in part.find_all(exp.Column)}
    groups = [c for c in columns if fold(c) not in used] if groups is None else groups
    picked = [_picked(a, by.this, value, len(aggregates)) for value in by.expressions for a in aggregates]
    keys = [exp.column(exp.to_identifier(g, quoted=True)) for g in groups]
    found = exp.select(*keys, *picked).from_(table.copy())
    return found.group_by(*(k.copy() for k in keys)) if keys else found


def _picked(aggregate: exp.Expr, column: exp.Expr, value: exp.Expr, count: int) -> exp.Expr:
    name = value.alias_or_name
    value = value.this if isinstance(value, (exp.Alias, exp.PivotAlias)) else value
    inner = aggregate.this if isinstance(aggregate, exp.Alias) else aggregate
    if count > 1 or (isinstance(aggregate, exp.Alias) and aggregate.alias):
        name = f"{name}_{aggregate.alias or inner.sql('spark').lower()}"
    test = exp.EQ(this=column.copy(), expression=value.copy())
    kept = exp.Filter(this=inner.copy(), expression=exp.Where(this=test))
    return exp.alias_(kept, exp.to_identifier(name, quoted=True), copy=False)
