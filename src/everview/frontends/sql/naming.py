"""What Spark calls a column that has no name: the expression, written its way."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

LONGEST = 200
_SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div",
    exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
    exp.And: "AND", exp.Or: "OR", exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>",
}  # fmt: skip
_NAMES: dict[type[exp.Expr], str] = {
    exp.ArgMax: "max_by", exp.ArgMin: "min_by", exp.GroupConcat: "listagg", exp.Quantile: "percentile",
    exp.LogicalAnd: "bool_and", exp.LogicalOr: "bool_or", exp.ApproxDistinct: "approx_count_distinct",
}  # fmt: skip
_RANKING = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")


def column_name(node: exp.Expr) -> str:
    """The name of a column without an alias.

    >>> from everview.frontends.sql.parse import parse_expression
    >>> column_name(parse_expression("t.a + SUM(DISTINCT b)")), column_name(parse_expression("count(*)"))
    ('(a + sum(DISTINCT b))', 'count(1)')
    """
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Dot):
        return node.expression.name
    try:
        name = _name(node, 0)
    except RecursionError:
        name = node.key
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"


def _name(node: exp.Expr, depth: int) -> str:
    if depth > 40:
        return "…"

    def of(part: exp.Expr | None) -> str:
        return "" if part is None else _name(part, depth + 1)

    def listed(parts: list[exp.Expr]) -> str:
        return ", ".join(map(of, parts))

    if type(node) in _SIGNS:
        return f"({of(node.this)} {_SIGNS[type(node)]} {of(node.expression)})"
    match node:
        case exp.Paren():
            return of(node.this)
        case exp.Column() | exp.Var():
            return node.name
        case exp.Literal():
            return node.name
        case exp.Null():
            return "NULL"
        case exp.Boolean():
            return "true" if node.this else "false"
        case exp.Star():
            return "1"
        case exp.NEQ():
            return f"(NOT ({of(node.this)} = {of(node.expression)}))"
        case exp.Not():
            inner = node.this
            if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
                return f"({of(inner.this)} IS NOT NULL)"
            return f"(NOT {of(inner)})"
        case exp.Is():
            return f"({of(node.this)} IS {of(node.expression)})"
        case exp.Neg():
            return f"-{of(node.this)}" if isinstance(node.this, exp.Literal) else f"(- {of(node.this)})"
        case exp.DPipe():
            return f"concat({of(node.this)}, {of(node.expression)})"
        case exp.Between():
            return f"between({of(node.this)}, {of(node.args['low'])}, {of(node.args['high'])})"
        case exp.In() if node.expressions:
            return f"({of(node.this)} IN ({listed(node.expressions)}))"
        case exp.Like():
            return f"{of(node.this)} LIKE {of(node.expression)}"
        case exp.Case():
            return _case(node, of)
        case exp.Cast():
            if node.args.get("safe"):
                return f"TRY_CAST({of(node.this)} AS {node.to.sql('spark')})"
            literal = isinstance(node.this, exp.Literal) and node.this.is_string
            if literal and node.to.this in (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMPTZ):
                return f"{node.to.sql('spark')} '{node.this.name}'"
            return f"CAST({of(node.this)} AS {node.to.sql('spark')})"
        case exp.Distinct():
            return f"DISTINCT {listed(node.expressions)}"
        case exp.Filter():
            return f"{of(node.this)} FILTER (WHERE {of(node.expression.this)})"
        case exp.Window():
            return _window(node, of)
        case exp.Subquery() | exp.Select():
            return "scalarsubquery()"
        case exp.Exists():
            return "exists()"
        case exp.Anonymous():
            return f"{node.name.lower()}({listed(node.expressions)})"
        case exp.Substring():
            parts = [node.this, node.args.get("start"), node.args.get("length")]
            return f"substring({', '.join(of(p) for p in parts if p is not None)})"
        case exp.Extract():
            return f"extract({node.this.name} FROM {of(node.expression)})"
        case exp.CurrentDate():
            return "current_date()"
        case exp.CurrentTimestamp():
            return "current_timestamp()"
        case exp.If():
            return f"(IF({of(node.this)}, {of(node.args['true'])}, {of(node.args.get('false'))}))"
        case exp.Trim():
            side = node.args.get("position") or "BOTH"
            return (
                f"TRIM({side} {of(node.expression)} FROM {of(node.this)})"
                if node.expression
                else f"trim({of(node.this)})"
            )
        case exp.StrPosition():
            return f"position({of(node.args['substr'])}, {of(node.this)})"
        case exp.Order():
            return of(node.this)
        case exp.WithinGroup():
            ways = ", ".join(
                f"{of(o.this)}{' DESC' if o.args.get('desc') else ''}" for o in node.expression.expressions
            )
            return f"{of(node.this)} WITHIN GROUP (ORDER BY {ways})"
        case exp.IgnoreNulls():
            return f"{of(node.this)} IGNORE NULLS"
        case exp.Func() if type(node) in _NAMES:
            return f"{_NAMES[type(node)]}({listed(_arguments(node))})"
        case exp.Func():
            return f"{node.sql_name().lower()}({listed(_arguments(node))})"
        case _:
            return node.sql("spark")


def _arguments(node: exp.Func) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for value in node.args.values():
        found += value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
    return found


def _case(node: exp.Case, of: Callable[[exp.Expr | None], str]) -> str:
    subject = f" {of(node.this)}" if node.this is not None else ""
    branches = "".join(f" WHEN {of(b.this)} THEN {of(b.args['true'])}" for b in node.args["ifs"])
    default = node.args.get("default")
    return f"CASE{subject}{branches}{'' if default is None else f' ELSE {of(default)}'} END"


def _window(node: exp.Window, of: Callable[[exp.Expr | None], str]) -> str:
    parts: list[str] = []
    if node.args.get("partition_by"):
        parts.append(f"PARTITION BY {', '.join(of(p) for p in node.args['partition_by'])}")
    order, spec = node.args.get("order"), node.args.get("spec")
    if order is not None:
        parts.append(f"ORDER BY {', '.join(f'{of(o.this)} {direction(o).upper()}' for o in order.expressions)}")
    if spec is not None:
        parts.append(spec.sql("spark").upper())
    elif order is not None or node.args.get("alias") is None:
        ranked = str(node.this.name).lower() in _RANKING
        unit = "RANGE" if order is not None and not ranked else "ROWS"
        end = "CURRENT ROW" if order is not None else "UNBOUNDED FOLLOWING"
        parts.append(f"{unit} BETWEEN UNBOUNDED PRECEDING AND {end}")
    return f"{of(node.this)} OVER ({' '.join(parts)})"


def direction(item: exp.Ordered) -> str:
    """``asc nulls first``; sqlglot has filled in where the dialect puts NULLs."""
    way = "desc" if item.args.get("desc") else "asc"
    return f"{way} nulls {'first' if item.args.get('nulls_first') else 'last'}"
