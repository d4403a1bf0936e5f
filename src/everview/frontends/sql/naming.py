"""What Spark calls a column that has no name: the expression, written its way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from sqlglot import exp

from everview.operators.window import RANKS

LONGEST = 200
DEEPEST = 40

Of = Callable[[exp.Expr | None], str]  # the name of a part
Namer = Callable[[Any, Of], str]  # the name of a node, by those of its parts

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
    if depth > DEEPEST:
        return "…"
    return _namer(type(node))(node, lambda part: "" if part is None else _name(part, depth + 1))


@cache
def _namer(kind: type[exp.Expr]) -> Namer:
    """How nodes of a class are named: as the table says of it, or of the nearest class that it extends."""
    return next((_NAMERS[base] for base in kind.__mro__ if base in _NAMERS), _in_spark)


def _in_spark(node: exp.Expr, of: Of) -> str:
    return node.sql("spark")


def _listed(parts: Iterable[exp.Expr], of: Of) -> str:
    return ", ".join(map(of, parts))


def _inside(node: exp.Expr, of: Of) -> str:
    return of(node.this)


def _own_name(node: exp.Expr, of: Of) -> str:
    return node.name


def _sign(sign: str) -> Namer:
    return lambda node, of: f"({of(node.this)} {sign} {of(node.expression)})"


def _word(word: str) -> Namer:
    return lambda node, of: word


def _not(node: exp.Not, of: Of) -> str:
    inner = node.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return f"({of(inner.this)} IS NOT NULL)"
    return f"(NOT {of(inner)})"


def _negative(node: exp.Neg, of: Of) -> str:
    return f"-{of(node.this)}" if isinstance(node.this, exp.Literal) else f"(- {of(node.this)})"


def _between(node: exp.Between, of: Of) -> str:
    return f"between({of(node.this)}, {of(node.args['low'])}, {of(node.args['high'])})"


def _in(node: exp.In, of: Of) -> str:
    return f"({of(node.this)} IN ({_listed(node.expressions, of)}))" if node.expressions else _in_spark(node, of)


def _cast(node: exp.Cast, of: Of) -> str:
    if node.args.get("safe"):
        return f"TRY_CAST({of(node.this)} AS {node.to.sql('spark')})"
    literal = isinstance(node.this, exp.Literal) and node.this.is_string
    if literal and node.to.this in (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMPTZ):
        return f"{node.to.sql('spark')} '{node.this.name}'"
    return f"CAST({of(node.this)} AS {node.to.sql('spark')})"


def _substring(node: exp.Substring, of: Of) -> str:
    parts = (node.this, node.args.get("start"), node.args.get("length"))
    return f"substring({_listed((p for p in parts if p is not None), of)})"


def _if(node: exp.If, of: Of) -> str:
    return f"(IF({of(node.this)}, {of(node.args['true'])}, {of(node.args.get('false'))}))"


def _trim(node: exp.Trim, of: Of) -> str:
    if not node.expression:
        return f"trim({of(node.this)})"
    return f"TRIM({node.args.get('position') or 'BOTH'} {of(node.expression)} FROM {of(node.this)})"


def _within_group(node: exp.WithinGroup, of: Of) -> str:
    ways = (f"{of(o.this)}{' DESC' if o.args.get('desc') else ''}" for o in node.expression.expressions)
    return f"{of(node.this)} WITHIN GROUP (ORDER BY {', '.join(ways)})"


def _function(node: exp.Func, of: Of) -> str:
    name = _NAMES.get(type(node)) or node.sql_name().lower()
    return f"{name}({_listed(_arguments(node), of)})"


def _arguments(node: exp.Func) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for value in node.args.values():
        found += value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
    return found


def _case(node: exp.Case, of: Of) -> str:
    subject = f" {of(node.this)}" if node.this is not None else ""
    branches = "".join(f" WHEN {of(b.this)} THEN {of(b.args['true'])}" for b in node.args["ifs"])
    default = node.args.get("default")
    return f"CASE{subject}{branches}{'' if default is None else f' ELSE {of(default)}'} END"


def _window(node: exp.Window, of: Of) -> str:
    parts: list[str] = []
    if node.args.get("partition_by"):
        parts.append(f"PARTITION BY {', '.join(of(p) for p in node.args['partition_by'])}")
    order, spec = node.args.get("order"), node.args.get("spec")
    if order is not None:
        parts.append(f"ORDER BY {', '.join(f'{of(o.this)} {direction(o).upper()}' for o in order.expressions)}")
    if spec is not None:
        parts.append(spec.sql("spark").upper())
    elif order is not None or node.args.get("alias") is None:
        ranked = str(node.this.name).lower() in RANKS
        unit = "RANGE" if order is not None and not ranked else "ROWS"
        end = "CURRENT ROW" if order is not None else "UNBOUNDED FOLLOWING"
        parts.append(f"{unit} BETWEEN UNBOUNDED PRECEDING AND {end}")
    return f"{of(node.this)} OVER ({' '.join(parts)})"


_NAMERS: Final[dict[type[exp.Expr], Namer]] = {
    **{kind: _sign(sign) for kind, sign in _SIGNS.items()},
    exp.Paren: _inside,
    exp.Order: _inside,
    exp.Column: _own_name,
    exp.Var: _own_name,
    exp.Literal: _own_name,
    exp.Null: _word("NULL"),
    exp.Boolean: lambda node, of: "true" if node.this else "false",
    exp.Star: _word("1"),
    exp.NEQ: lambda node, of: f"(NOT ({of(node.this)} = {of(node.expression)}))",
    exp.Not: _not,
    exp.Is: _sign("IS"),
    exp.Neg: _negative,
    exp.DPipe: lambda node, of: f"concat({of(node.this)}, {of(node.expression)})",
    exp.Between: _between,
    exp.In: _in,
    exp.Like: lambda node, of: f"{of(node.this)} LIKE {of(node.expression)}",
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Distinct: lambda node, of: f"DISTINCT {_listed(node.expressions, of)}",
    exp.Filter: lambda node, of: f"{of(node.this)} FILTER (WHERE {of(node.expression.this)})",
    exp.Window: _window,
    exp.Subquery: _word("scalarsubquery()"),
    exp.Select: _word("scalarsubquery()"),
    exp.Exists: _word("exists()"),
    exp.Anonymous: lambda node, of: f"{node.name.lower()}({_listed(node.expressions, of)})",
    exp.Substring: _substring,
    exp.Extract: lambda node, of: f"extract({node.this.name} FROM {of(node.expression)})",
    exp.CurrentDate: _word("current_date()"),
    exp.CurrentTimestamp: _word("current_timestamp()"),
    exp.If: _if,
    exp.Trim: _trim,
    exp.StrPosition: lambda node, of: f"position({of(node.args['substr'])}, {of(node.this)})",
    exp.WithinGroup: _within_group,
    exp.IgnoreNulls: lambda node, of: f"{of(node.this)} IGNORE NULLS",
    exp.Func: _function,
}


def direction(item: exp.Ordered) -> str:
    """``asc nulls first``; sqlglot has filled in where the dialect puts NULLs."""
    way = "desc" if item.args.get("desc") else "asc"
    return f"{way} nulls {'first' if item.args.get('nulls_first') else 'last'}"
