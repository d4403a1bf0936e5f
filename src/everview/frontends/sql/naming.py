"""Names of columns without an alias: the expression as Spark writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from sqlglot import ErrorLevel, exp

from everview.operators.window import RANKS

LONGEST = 200
DEEPEST = 40

NameOf = Callable[[exp.Expr | None], str]  # the name of a part
Namer = Callable[[Any, NameOf], str]  # the name of a node, by those of its parts

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
    inner = node.this if isinstance(node, exp.Cast) else node
    if isinstance(inner, exp.Anonymous) and "column name" in inner.meta:
        return inner.meta["column name"]  # of a path into a variant
    try:
        name = _name(node, 0)
    except (RecursionError, ValueError):  # sqlglot writes no map with keys that are no text
        name = node.key
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"


def _name(node: exp.Expr, depth: int) -> str:
    if depth > DEEPEST:
        return "…"
    return _namer(type(node))(node, lambda part: "" if part is None else _name(part, depth + 1))


@cache
def _namer(kind: type[exp.Expr]) -> Namer:
    """The naming function of a class of nodes: its own in the table, or that of the nearest base class."""
    return next((_NAMERS[base] for base in kind.__mro__ if base in _NAMERS), _in_spark)


def _in_spark(node: exp.Expr, name: NameOf) -> str:
    return node.sql("spark", unsupported_level=ErrorLevel.IGNORE)


def _listed(parts: Iterable[exp.Expr], name: NameOf) -> str:
    return ", ".join(map(name, parts))


def _inside(node: exp.Expr, name: NameOf) -> str:
    return name(node.this)


def _own_name(node: exp.Expr, name: NameOf) -> str:
    return node.name


def _sign(sign: str) -> Namer:
    return lambda node, name: f"({name(node.this)} {sign} {name(node.expression)})"


def _word(word: str) -> Namer:
    return lambda node, name: word


def _not(node: exp.Not, name: NameOf) -> str:
    inner = node.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return f"({name(inner.this)} IS NOT NULL)"
    return f"(NOT {name(inner)})"


def _negative(node: exp.Neg, name: NameOf) -> str:
    return f"-{name(node.this)}" if isinstance(node.this, exp.Literal) else f"(- {name(node.this)})"


def _between(node: exp.Between, name: NameOf) -> str:
    return f"between({name(node.this)}, {name(node.args['low'])}, {name(node.args['high'])})"


def _in(node: exp.In, name: NameOf) -> str:
    return f"({name(node.this)} IN ({_listed(node.expressions, name)}))" if node.expressions else _in_spark(node, name)


def _cast(node: exp.Cast, name: NameOf) -> str:
    if node.args.get("safe"):
        return f"TRY_CAST({name(node.this)} AS {node.to.sql('spark')})"
    literal = isinstance(node.this, exp.Literal) and node.this.is_string
    if literal and node.to.this in (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMPTZ):
        return f"{node.to.sql('spark')} '{node.this.name}'"
    return f"CAST({name(node.this)} AS {node.to.sql('spark')})"


def _substring(node: exp.Substring, name: NameOf) -> str:
    parts = (node.this, node.args.get("start"), node.args.get("length"))
    return f"substring({_listed((p for p in parts if p is not None), name)})"


def _if(node: exp.If, name: NameOf) -> str:
    return f"(IF({name(node.this)}, {name(node.args['true'])}, {name(node.args.get('false'))}))"


def _trim(node: exp.Trim, name: NameOf) -> str:
    if not node.expression:
        return f"trim({name(node.this)})"
    return f"TRIM({node.args.get('position') or 'BOTH'} {name(node.expression)} FROM {name(node.this)})"


def _within_group(node: exp.WithinGroup, name: NameOf) -> str:
    ways = (f"{name(o.this)}{' DESC' if o.args.get('desc') else ''}" for o in node.expression.expressions)
    return f"{name(node.this)} WITHIN GROUP (ORDER BY {', '.join(ways)})"


def _function(node: exp.Func, name_of: NameOf) -> str:
    name = _NAMES.get(type(node)) or node.sql_name().lower()
    return f"{name}({_listed(_arguments(node), name_of)})"


def _arguments(node: exp.Func) -> list[exp.Expr]:
    arguments: list[exp.Expr] = []
    for value in node.args.values():
        arguments += value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
    return arguments


def _case(node: exp.Case, name: NameOf) -> str:
    subject = f" {name(node.this)}" if node.this is not None else ""
    branches = "".join(f" WHEN {name(b.this)} THEN {name(b.args['true'])}" for b in node.args["ifs"])
    default = node.args.get("default")
    return f"CASE{subject}{branches}{'' if default is None else f' ELSE {name(default)}'} END"


def _window(node: exp.Window, name: NameOf) -> str:
    parts: list[str] = []
    if node.args.get("partition_by"):
        parts.append(f"PARTITION BY {', '.join(name(p) for p in node.args['partition_by'])}")
    order, spec = node.args.get("order"), node.args.get("spec")
    if order is not None:
        parts.append(f"ORDER BY {', '.join(f'{name(o.this)} {direction(o).upper()}' for o in order.expressions)}")
    if spec is not None:
        parts.append(spec.sql("spark", unsupported_level=ErrorLevel.IGNORE).upper())
    elif order is not None or node.args.get("alias") is None:
        ranked = str(node.this.name).lower() in RANKS
        unit = "RANGE" if order is not None and not ranked else "ROWS"
        end = "CURRENT ROW" if order is not None else "UNBOUNDED FOLLOWING"
        parts.append(f"{unit} BETWEEN UNBOUNDED PRECEDING AND {end}")
    return f"{name(node.this)} OVER ({' '.join(parts)})"


_NAMERS: Final[dict[type[exp.Expr], Namer]] = {
    **{kind: _sign(sign) for kind, sign in _SIGNS.items()},
    exp.Paren: _inside,
    exp.Order: _inside,
    exp.Column: _own_name,
    exp.Var: _own_name,
    exp.Literal: _own_name,
    exp.Null: _word("NULL"),
    exp.Boolean: lambda node, name: "true" if node.this else "false",
    exp.Star: _word("1"),
    exp.NEQ: lambda node, name: f"(NOT ({name(node.this)} = {name(node.expression)}))",
    exp.Not: _not,
    exp.Is: _sign("IS"),
    exp.Neg: _negative,
    exp.DPipe: lambda node, name: f"concat({name(node.this)}, {name(node.expression)})",
    exp.Between: _between,
    exp.In: _in,
    exp.Bracket: lambda node, name: f"{name(node.this)}[{_listed(node.expressions, name)}]",
    exp.Like: lambda node, name: f"{name(node.this)} LIKE {name(node.expression)}",
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Distinct: lambda node, name: f"DISTINCT {_listed(node.expressions, name)}",
    exp.Filter: lambda node, name: f"{name(node.this)} FILTER (WHERE {name(node.expression.this)})",
    exp.Window: _window,
    exp.Subquery: _word("scalarsubquery()"),
    exp.Select: _word("scalarsubquery()"),
    exp.Exists: _word("exists()"),
    exp.Anonymous: lambda node, name: f"{node.name.lower()}({_listed(node.expressions, name)})",
    exp.Substring: _substring,
    exp.Extract: lambda node, name: f"extract({node.this.name} FROM {name(node.expression)})",
    exp.CurrentDate: _word("current_date()"),
    exp.CurrentTimestamp: _word("current_timestamp()"),
    exp.If: _if,
    exp.Trim: _trim,
    exp.StrPosition: lambda node, name: f"position({name(node.args['substr'])}, {name(node.this)})",
    exp.WithinGroup: _within_group,
    exp.IgnoreNulls: lambda node, name: f"{name(node.this)} IGNORE NULLS",
    exp.Func: _function,
}


def direction(item: exp.Ordered) -> str:
    """``asc nulls first``; sqlglot has filled in where the dialect puts NULLs."""
    way = "desc" if item.args.get("desc") else "asc"
    return f"{way} nulls {'first' if item.args.get('nulls_first') else 'last'}"
