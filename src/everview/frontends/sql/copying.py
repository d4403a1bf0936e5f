"""``COPY t FROM 'file' (options)`` and ``COPY t TO 'file' (options)``, or ``COPY (SELECT …) TO``."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from everview.frontends.sql import statements as st
from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.creating import relation_name
from everview.frontends.sql.file_functions import SPELLINGS, constant
from everview.frontends.sql.queries import complete

_HINT = "write COPY t FROM 'file.csv' (DELIMITER ';'), or COPY (SELECT …) TO 'file.parquet'"


def copy(node: exp.Copy, text: str, context: QueryContext) -> st.Statement:
    """COPY from a file, or to one."""
    context.only(node, "this", "kind", "files", "params", "credentials")
    files = node.args.get("files") or []
    if len(files) != 1:
        raise context.error("COPY reads or writes one path", node, _HINT)
    path = constant(files[0], "COPY", context)
    if not isinstance(path, str):
        raise context.error("COPY reads or writes a path, which is text", files[0], _HINT)
    options = dict(_option(parameter, context) for parameter in node.args.get("params") or [])
    target = node.this
    columns = tuple(column.name for column in target.expressions) if isinstance(target, exp.Schema) else ()
    table = target.this if isinstance(target, exp.Schema) else target
    if node.args.get("kind"):
        if not isinstance(table, exp.Table):
            raise context.error("COPY FROM fills a table", node, _HINT)
        name = _table(relation_name(table, context), context)
        return st.CopyFrom(text, name, path, columns, options)
    query = table.this if isinstance(table, exp.Subquery) else _everything(table, columns)
    bound = complete(query, context)
    return st.CopyTo(text, st.Select(text, bound.plan, bound.names, bound.order), path, options)


def _everything(table: exp.Expr, columns: tuple[str, ...]) -> exp.Expr:
    return exp.select(*(exp.column(name, quoted=True) for name in columns) if columns else "*").from_(table.copy())


def _table(name: str, context: QueryContext) -> str:
    known = list(context.catalog.names())
    return next((each for each in known if each.casefold() == name.casefold()), name)


def _option(parameter: exp.Expr, context: QueryContext) -> tuple[str, Any]:
    name, value = str(parameter.this.name).lower(), parameter.args.get("expression")
    several = parameter.args.get("expressions")
    name = SPELLINGS.get(name, name)
    if several:
        return name, [_constant(each, context) for each in several]
    if isinstance(value, (exp.Tuple, exp.Paren, exp.Array)):
        inside = value.expressions or [value.this]
        return name, [_constant(each, context) for each in inside]
    return name, True if value is None else _constant(value, context)


def _constant(node: exp.Expr, context: QueryContext) -> Any:
    if isinstance(node, (exp.Var, exp.Identifier)) or (isinstance(node, exp.Column) and not node.table):
        return node.name  # FORMAT csv
    return constant(node, "COPY", context)
