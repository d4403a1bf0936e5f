"""Comparisons: of values, of tuples, with lists and patterns.

Spark and DuckDB compare tuples as structs: NULL is equal to NULL, and comes before all values in Spark and after them
in DuckDB. SQL's standard, which other dialects keep to, compares part by part, and what NULL decides is unknown.
"""

from __future__ import annotations

from sqlglot import exp

from everview.frontends.sql.expressions import Site, all_of, as_moment, bare, compared, expression, handles
from everview.frontends.sql.subqueries import quantified, within
from everview.plan.typing import call, literal
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import INTERVALS
from everview.types import Array

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.NullSafeEQ: "null_safe_equal",
    exp.NullSafeNEQ: "null_safe_not_equal",
}


@handles(*COMPARISONS, args="this expression")
def _comparison(node: exp.Binary, site: Site) -> Expression:
    name, left, right = COMPARISONS[type(node)], bare(node.this), bare(node.expression)
    if isinstance(right, exp.Anonymous) and right.name.upper() == "ALL" and len(right.expressions) == 1:
        right = exp.All(this=right.expressions[0])
    if isinstance(right, (exp.Any, exp.All)):
        return quantified(name, node, left, right, site)
    if isinstance(left, exp.Tuple) and isinstance(other := _row_as_tuple(right), exp.Tuple):
        return _tuples(name, node, left, other, site)
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Query):
        return _with_row(name, node, left, right, site)
    return compared(name, expression(left, site), expression(right, site))


def _tuples(
    name: str, node: exp.Expr, left: exp.Tuple, right: exp.Tuple, site: Site, *, as_structs: bool = True
) -> Expression:
    if len(left.expressions) != len(right.expressions):
        counts = f"{len(left.expressions)} and {len(right.expressions)}"
        raise site.context.error(f"tuples of {counts} values are compared", node, "give both as many")
    sides = ([expression(part, site) for part in side.expressions] for side in (left, right))
    pairs = list(zip(*sides, strict=True))
    if as_structs and site.context.dialect in _OF_STRUCTS:
        return _as_structs(name, pairs, site)
    return _pairwise(name, pairs)


def _row_as_tuple(node: exp.Expr) -> exp.Expr:
    """``struct(a, b)`` and ``ROW(a, b)`` beside a tuple, as a tuple."""
    called = isinstance(node, exp.Anonymous) and node.name.lower() in ("struct", "row")
    return exp.Tuple(expressions=[part.unalias() for part in node.expressions]) if called else node


_OF_STRUCTS = {"spark": "first", "duckdb": "last"}  # where NULL is in the order of a part
_ORDERED = ("less", "less_equal", "greater", "greater_equal")


def _as_structs(name: str, pairs: list[tuple[Expression, Expression]], site: Site) -> Expression:
    """A comparison that is never unknown."""
    if name in _ORDERED:
        ends = pairs if name in ("less", "greater_equal") else [(b, a) for a, b in pairs]
        before = _struct_before(ends, _OF_STRUCTS[site.context.dialect])
        return before if name in ("less", "greater") else call("not", before)
    same = all_of("and", [_alike(a, b) for a, b in pairs])
    return call("not", same) if "not" in name else same


def _alike(a: Expression, b: Expression) -> Expression:
    return compared("null_safe_equal" if a.nullable or b.nullable else "equal", a, b)


def _struct_before(pairs: list[tuple[Expression, Expression]], nulls: str) -> Expression:
    """Whether the left parts come before the right ones, by the first that differ."""
    (a, b), *rest = pairs
    less, least, greatest = compared("less", a, b), *((a, b) if nulls == "first" else (b, a))
    if least.nullable:
        less = call("or", call("is_null", least), less)
    if greatest.nullable:
        less = call("and", call("is_not_null", greatest), less)
    return call("or", less, call("and", _alike(a, b), _struct_before(rest, nulls))) if rest else less


def _pairwise(name: str, pairs: list[tuple[Expression, Expression]]) -> Expression:
    if name in _ORDERED:
        return _in_sequence(name, pairs)
    verdict = all_of("and", [compared(name.replace("not_", ""), a, b) for a, b in pairs])
    return call("not", verdict) if "not" in name else verdict


def _with_row(name: str, node: exp.Expr, left: exp.Tuple, right: exp.Query, site: Site) -> Expression:
    """``(a, b) = (SELECT c, d …)``: the one row of a query is read as one struct."""
    columns = [f"_{place}" for place in range(len(left.expressions))]
    alias = exp.TableAlias(this=exp.to_identifier("_row"), columns=[exp.to_identifier(column) for column in columns])
    plain = right.this if isinstance(right, exp.Subquery) else right
    if not plain.is_star and len(plain.selects) != len(columns):
        counts = f"{len(columns)} and {len(plain.selects)}"
        raise site.context.error(f"tuples of {counts} values are compared", node, "select as many")
    fields = [exp.alias_(exp.column(column, "_row"), column) for column in columns]
    read = exp.select(exp.Anonymous(this="struct", expressions=fields))
    row = expression(exp.Subquery(this=read.from_(exp.Subquery(this=plain.copy(), alias=alias))), site)
    parts = [
        (expression(a, site), call("get_field", row, literal(column)))
        for a, column in zip(left.expressions, columns, strict=True)
    ]
    return _pairwise(name, parts)


def _in_sequence(name: str, pairs: list[tuple[Expression, Expression]]) -> Expression:
    """Whether one tuple comes before another: by the first parts that differ."""
    (a, b), *rest = pairs
    if not rest:
        return compared(name, a, b)
    decided = compared(name.removesuffix("_equal"), a, b)
    return call("or", decided, call("and", compared("equal", a, b), _in_sequence(name, rest)))


@handles(exp.Between, args="this low high symmetric")
def _between(node: exp.Between, site: Site) -> Expression:
    sides = [bare(node.args[part]) for part in ("this", "low", "high")]
    if all(isinstance(side, exp.Tuple) for side in sides) and not node.args.get("symmetric"):
        whole, first, last = (_tuple(side, site) for side in sides)
        above = _tuples("greater_equal", node, whole, first, site)
        return call("and", above, _tuples("less_equal", node, whole, last, site))
    value, low, high = (expression(node.args[part], site) for part in ("this", "low", "high"))
    if node.args.get("symmetric"):
        low, high = call("least", low, high), call("greatest", low, high)
    return call("and", compared("greater_equal", value, low), compared("less_equal", value, high))


@handles(exp.Overlaps, args="this expression")
def _overlaps(node: exp.Overlaps, site: Site) -> Expression:
    """``(a, b) OVERLAPS (c, d)``: whether two spans of time share a moment; an end is a moment or a length.

    The ends of a span may be in any order, and the later one is not in it, unless both are the same moment.
    """
    (s, t), (u, v) = (_span(bare(side), site) for side in (node.this, node.expression))
    known = call("or", compared("equal", t, v), compared("not_equal", t, v))
    together = call("and", compared("equal", s, u), known)
    return all_of("or", [_reaches(s, t, u, v), _reaches(u, v, s, t), together])


def _span(node: exp.Expr, site: Site) -> tuple[Expression, Expression]:
    """The beginning and the end of a span; where one is NULL, the other is the beginning."""
    if not isinstance(node, exp.Tuple) or len(node.expressions) != 2:
        raise site.context.error("OVERLAPS of what is no span", node, "write (a, b) OVERLAPS (c, d)")
    start, end = (expression(part, site) for part in node.expressions)
    if end.type in INTERVALS:
        end = call("add", start, end)
    known = call("and", call("is_not_null", start), call("is_not_null", end))
    last = call("greatest", start, end)
    return call("least", start, end), call("if", known, last, Literal(None, last.type))


def _reaches(s: Expression, t: Expression, u: Expression, v: Expression) -> Expression:
    """Whether the span from s to t begins within that from u to v, which begins earlier."""
    beyond = call("and", compared("greater_equal", s, v), compared("greater_equal", t, v))
    return call("and", compared("greater", s, u), call("not", beyond))


@handles(exp.In, args="this expressions query unnest field")
def _in(node: exp.In, site: Site) -> Expression:
    left = bare(node.this)
    values = left.expressions if isinstance(left, exp.Tuple) else [left]
    query = node.args.get("query")
    options, listed = node.expressions, True
    if len(options) == 1 and isinstance(bare(options[0]), exp.Values):
        listed = False  # a query, which compares part by part
        options = [
            row if isinstance(left, exp.Tuple) else _one_value(row, site) for row in bare(options[0]).expressions
        ]
    if query is None and len(options) == 1 and isinstance(bare(options[0]), exp.Query):
        query = bare(options[0])
    if query is not None:
        return within([expression(v, site) for v in values], node, query, site)
    if node.args.get("unnest") is not None:
        raise site.context.unsupported("IN UNNEST", node, "write array_contains(array, value)")
    if isinstance(left, exp.Tuple):
        rows = [_tuple(option, site) for option in options]
        return all_of("or", [_tuples("equal", node, left, row, site, as_structs=listed) for row in rows])
    value = expression(left, site)
    if node.args.get("field") is not None:  # ``x IN ?`` and ``x IN xs``, of a list that is a value
        return _in_list(node, value, expression(node.args["field"], site), site)
    values = [as_moment(expression(option, site), value.type) for option in options]
    if not values:
        raise site.context.error("IN of an empty list", node, "list at least one value")
    return call("in", value, *dict.fromkeys(values))


def _in_list(node: exp.In, value: Expression, listed: Expression, site: Site) -> Expression:
    """Whether a list has a value; as in IN, NULL if it may be the one that is NULL."""
    if not isinstance(listed.type, Array):
        raise site.context.error(f"IN of a {listed.type}, which is no list", node, "write = for one value")
    return call("array_contains", listed, value)


def _one_value(row: exp.Expr, site: Site) -> exp.Expr:
    """The value of a row of VALUES that has one."""
    if isinstance(row, exp.Tuple) and len(row.expressions) != 1:
        raise site.context.error(f"one value IN rows of {len(row.expressions)}", row, "give both as many")
    return row.expressions[0] if isinstance(row, exp.Tuple) else row


def _tuple(node: exp.Expr, site: Site) -> exp.Tuple:
    node = bare(node)
    if not isinstance(node, exp.Tuple):
        raise site.context.error("a tuple is compared with a value", node, "write ((1, 2), (3, 4))")
    return node


@handles(exp.Like, exp.ILike, args="this expression negate")
def _like(node: exp.Expr, site: Site) -> Expression:
    return _liked(node, None, site)


@handles(exp.Escape, args="this expression")
def _escaped(node: exp.Escape, site: Site) -> Expression:
    if isinstance(node.this, exp.SimilarTo) and isinstance(node.expression, exp.Literal):
        return _similar_to(node.this, node.expression.name, site)
    if not isinstance(node.this, (exp.Like, exp.ILike)):
        raise site.context.unsupported("ESCAPE here", node, "it follows LIKE")
    site.context.only(node.this, "this", "expression", "negate")
    return _liked(node.this, expression(node.expression, site), site)


def _liked(node: exp.Expr, escape: Expression | None, site: Site) -> Expression:
    """LIKE, of one pattern or of several; ``NOT LIKE ANY`` holds if the text is unlike any one of them."""
    name = "like" if isinstance(node, exp.Like) else "ilike"
    value, pattern = expression(node.this, site), bare(node.expression)

    def liked(option: exp.Expr) -> Expression:
        test = call(name, value, expression(option, site), *(() if escape is None else (escape,)))
        return call("not", test) if node.args.get("negate") else test

    if not isinstance(pattern, (exp.Any, exp.All)):
        return liked(pattern)
    options = _options(pattern.this)
    if not options:
        raise site.context.error("LIKE of an empty list", node, "list at least one pattern")
    return all_of("or" if isinstance(pattern, exp.Any) else "and", [liked(option) for option in options])


def _options(node: exp.Expr) -> list[exp.Expr]:
    inner = bare(node)
    return inner.expressions if isinstance(inner, exp.Tuple) else [inner]


@handles(exp.RegexpLike, args="this expression negate")
def _matches(node: exp.RegexpLike, site: Site) -> Expression:
    test = call("rlike", expression(node.this, site), expression(node.expression, site))
    return call("not", test) if node.args.get("negate") else test


@handles(exp.SimilarTo, args="this expression")
def _similar(node: exp.SimilarTo, site: Site) -> Expression:
    return _similar_to(node, "\\", site)


def _similar_to(node: exp.SimilarTo, escape: str, site: Site) -> Expression:
    """``s SIMILAR TO '(a|b)%'``: a regular expression in which % and _ mean what they mean to LIKE."""
    from everview.frontends.sql.foreign_texts import similar_pattern

    pattern = bare(node.expression)
    if not isinstance(pattern, exp.Literal):
        raise site.context.unsupported("SIMILAR TO what is not written down", node, "write the pattern, or use RLIKE")
    if site.context.dialect == "duckdb":  # to which the pattern is a regular expression, of the whole text
        return call("rlike", expression(node.this, site), literal(f"^(?:{pattern.name})\\z"))
    return call("rlike", expression(node.this, site), literal(similar_pattern(pattern.name, escape)))
