"""PIVOT with the values written down: a group for the other columns, and a filtered aggregate for each value.

In Spark a cell for which there are no rows at all is NULL, also of a count, unless an aggregate gives something else
than a number or a BOOLEAN: then Spark aggregates ``if(column <=> value, x, NULL)``, and the count of nothing is 0. In
DuckDB it is always 0. NULL in the list of values is matched by NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.names import Scope, fold
from everview.frontends.sql.written import is_aggregate
from everview.plan.node import Plan
from everview.plan.typing import cast, is_number
from everview.scalars.evaluate import fold as computed
from everview.scalars.expressions import Literal
from everview.types import BOOLEAN, STRING

# How sqlglot says what a dialect would call the columns; here they are called as in Spark.
_OF_DIALECT = ("pivot_column_naming", "identify_pivot_strings", "prefixed_pivot_columns")


def of_clause(pivot: exp.Pivot, table: exp.Expr, columns: list[str], context: QueryContext) -> exp.Select:
    """``FROM t PIVOT (sum(x) FOR c IN ('a', 'b') GROUP BY g)``."""
    context.only(pivot, "expressions", "fields", "alias", "columns", "group", *_OF_DIALECT)
    groups = _groups(pivot)
    return _select(pivot, table, pivot.expressions, pivot.args.get("fields") or [], groups, columns, context)


def of_statement(pivot: exp.Pivot, context: QueryContext, columns: list[str]) -> exp.Select:
    """``PIVOT t ON c IN ('a', 'b') USING sum(x) GROUP BY g``."""
    context.only(pivot, "this", "expressions", "using", "group", *_OF_DIALECT)
    groups = _groups(pivot)
    return _select(pivot, pivot.this, pivot.args.get("using") or [], pivot.expressions, groups, columns, context)


def _groups(pivot: exp.Pivot) -> list[str] | None:
    group = pivot.args.get("group")
    return None if group is None else [g.name for g in group.expressions]


def _select(
    pivot: exp.Pivot,
    table: exp.Expr,
    aggregates: list[exp.Expr],
    fields: list[exp.Expr],
    groups: list[str] | None,
    columns: list[str],
    context: QueryContext,
) -> exp.Select:
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or not fields[0].expressions:
        hint = "list the values, as in ON kind IN ('a', 'b'): the columns of a view do not change with its rows"
        raise context.unsupported("PIVOT without a list of values of one column", pivot, hint)
    by = fields[0]
    used = {fold(c.name) for part in (*aggregates, by.this) for c in part.find_all(exp.Column)}
    groups = [c for c in columns if fold(c) not in used] if groups is None else groups
    cells = Cells(by.this, len(aggregates), _absent(aggregates, table, context), context)
    picked = [cells.of(value, aggregate) for value in by.expressions for aggregate in aggregates]
    keys = [exp.column(exp.to_identifier(g, quoted=True)) for g in groups]
    select = exp.select(*keys, *picked).from_(table.copy())
    return select.group_by(*(k.copy() for k in keys)) if keys else select


def _absent(aggregates: list[exp.Expr], table: exp.Expr, context: QueryContext) -> bool:
    """Whether a cell without rows is NULL, even if its aggregate of no rows is not."""
    from everview.frontends.sql.queries import query

    if context.dialect != "spark":
        return False
    whole = exp.select(*(_inner(a).copy() for a in aggregates)).from_(table.copy())
    return absent_cells(query(whole, context).plan)


def absent_cells(aggregates: Plan) -> bool:
    """Whether Spark has NULL in a cell without rows, by what the aggregates give: numbers and truths alone."""
    return all(is_number(type_) or type_ == BOOLEAN for type_ in aggregates.schema.types)


def _inner(aggregate: exp.Expr) -> exp.Expr:
    return aggregate.this if isinstance(aggregate, exp.Alias) else aggregate


@dataclass(frozen=True)
class Cells:
    """The cells of a pivot by a column, or by a tuple of columns."""

    column: exp.Expr
    aggregates: int
    absent: bool
    context: QueryContext

    def of(self, value: exp.Expr, aggregate: exp.Expr) -> exp.Expr:
        """The aggregate of the rows that have a value, under the name of both."""
        inner = _inner(aggregate)
        name = value.alias if isinstance(value, (exp.Alias, exp.PivotAlias)) else self._text(value)
        if self.aggregates > 1 or (aggregate is not inner and self.context.dialect != "spark"):
            name = f"{name}_{aggregate.alias if aggregate is not inner else inner.sql('spark').lower()}"
        test = self._test(value.this if isinstance(value, (exp.Alias, exp.PivotAlias)) else value)
        cell = self._filtered(inner, test)
        if self.absent:
            rows = exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=test.copy()))
            cell = exp.Case().when(exp.GT(this=rows, expression=exp.Literal.number(0)), cell)
        return exp.alias_(cell, exp.to_identifier(name, quoted=True), copy=False)

    def _test(self, value: exp.Expr) -> exp.Expr:
        """Whether a row has a value, NULL included."""
        columns, values = _parts(self.column), _parts(value)
        if len(columns) != len(values):
            counts = f"{len(columns)} columns and {len(values)} values"
            raise self.context.error(f"PIVOT by {counts}", value, "list as many values as columns")
        pairs = zip(columns, values, strict=True)
        return exp.and_(*(exp.NullSafeEQ(this=c.copy(), expression=v.copy()) for c, v in pairs))

    def _filtered(self, aggregate: exp.Expr, test: exp.Expr) -> exp.Expr:
        """An expression whose aggregates take only the rows that pass a test."""
        count = 0

        def kept(node: exp.Expr) -> exp.Expr:
            nonlocal count
            if isinstance(node.parent, exp.Filter) or not is_aggregate(node, self.context):
                return node
            count += 1
            if isinstance(node, exp.Filter):
                both = exp.and_(node.expression.this, test.copy())
                return exp.Filter(this=node.this, expression=exp.Where(this=both))
            return exp.Filter(this=node.copy(), expression=exp.Where(this=test.copy()))

        changed = _outermost(aggregate.copy(), kept)
        if not count:
            raise self.context.error("PIVOT of what is no aggregate", aggregate, "write sum(x) or any_value(x)")
        return changed

    def _text(self, value: exp.Expr) -> str:
        """The name of the column for a value."""
        if isinstance(value, exp.Tuple):
            return f"{{{', '.join(map(self._text, value.expressions))}}}"
        text = computed(cast(expression(value, Site(self.context, Scope(), "PIVOT")), STRING))
        if not isinstance(text, Literal):
            raise self.context.error("a value of PIVOT is no constant", value, "write it down, as in IN ('a', 'b')")
        return "null" if text.value is None else str(text.value)


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return node.expressions if isinstance(node, exp.Tuple) else [node]


def _outermost(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The tree with `change` applied from the top; nothing below a changed node is visited."""
    changed = change(node)
    if changed is not node:
        return changed
    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expr):
            node.set(key, _outermost(value, change))
        elif isinstance(value, list):
            node.set(key, [_outermost(v, change) if isinstance(v, exp.Expr) else v for v in value])
    return node
