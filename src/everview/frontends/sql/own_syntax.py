"""Functions in syntax of their own: ``EXTRACT(YEAR FROM t)``, ``TRIM(LEADING 'x' FROM s)``, ``a[0]``, ``j ->> 'a'``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from everview.frontends.sql.expressions import POSTGRES, Site, expression, handles
from everview.frontends.sql.subqueries import array_of
from everview.later import Later
from everview.plan.typing import call, item, literal
from everview.scalars.expressions import Expression, Literal
from everview.types import INTEGER, VARIANT, MapType

if TYPE_CHECKING:
    from everview.frontends.sql.date_parts import part
    from everview.frontends.sql.foreign_functions import foreign_function
    from everview.frontends.sql.foreign_lists import comprehended, is_text, letter_at, sliced
else:
    comprehended = Later("everview.frontends.sql.foreign_lists", "comprehended")
    is_text = Later("everview.frontends.sql.foreign_lists", "is_text")
    letter_at = Later("everview.frontends.sql.foreign_lists", "letter_at")
    sliced = Later("everview.frontends.sql.foreign_lists", "sliced")
    foreign_function = Later("everview.frontends.sql.foreign_functions", "foreign_function")
    part = Later("everview.frontends.sql.date_parts", "part")


@handles(exp.Extract, args="this expression")
def _extract(node: exp.Extract, site: Site) -> Expression:
    return part(node.this.name, expression(node.expression, site), node, site)


@handles(exp.Substring, args="this start length")
def _substring(node: exp.Substring, site: Site) -> Expression:
    foreign = foreign_function(node, site)
    if foreign is not None:
        return foreign
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    return call("substring", *(expression(p, site) for p in parts if p is not None))


@handles(exp.Trim, args="this expression position")
def _trim(node: exp.Trim, site: Site) -> Expression:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "trim")
    parts = [p for p in (node.this, node.args.get("expression")) if p is not None]
    return call(name, *(expression(p, site) for p in parts))


@handles(exp.StrPosition, args="this substr position")
def _position(node: exp.StrPosition, site: Site) -> Expression:
    parts = [node.args["substr"], node.this, node.args.get("position")]
    return call("locate", *(expression(p, site) for p in parts if p is not None))


@handles(exp.Overlay, args="this expression from_ for_")
def _overlay(node: exp.Overlay, site: Site) -> Expression:
    parts = [node.this, node.expression, node.args.get("from_"), node.args.get("for_")]
    return call("overlay", *(expression(p, site) for p in parts if p is not None))


@handles(exp.Ceil, exp.Floor, args="this decimals")
def _rounded(node: exp.Expr, site: Site) -> Expression:
    parts = [p for p in (node.this, node.args.get("decimals")) if p is not None]
    name, values = "ceil" if isinstance(node, exp.Ceil) else "floor", [expression(part, site) for part in parts]
    if len(values) == 1 and site.context.dialect in ("duckdb", *POSTGRES):
        from everview.frontends.sql.foreign_functions import without_fraction

        return without_fraction(name, values[0])
    return call(name, *values)


@handles(exp.Coalesce, args="this expressions is_nvl is_null")
def _coalesce(node: exp.Coalesce, site: Site) -> Expression:
    return call("coalesce", *(expression(p, site) for p in (node.this, *node.expressions)))


@handles(exp.Chr, args="expressions")
def _character(node: exp.Chr, site: Site) -> Expression:
    return call("chr", *(expression(p, site) for p in node.expressions))


@handles(exp.Array, args="expressions bracket_notation value_constructor")
def _array(node: exp.Array, site: Site) -> Expression:
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Comprehension):
        return comprehended(node.expressions[0], site)
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Select | exp.SetOperation):
        return array_of(node.expressions[0], site)
    return call("array", *(expression(p, site) for p in node.expressions))


@handles(exp.Bracket, args="this expressions offset safe")
def _element(node: exp.Bracket, site: Site) -> Expression:
    """``a[0]`` is the first of Spark's dialect, ``a[1]`` of the others, where there is nothing at 0.

    In the others sqlglot has counted from 0 where it knew that the index is a number; see `_counts_from_one`.
    """
    inside = node.expressions[0] if len(node.expressions) == 1 else None
    if inside is None or (isinstance(inside, exp.Slice) and site.context.dialect == "spark"):
        raise site.context.unsupported("a slice of an array", node, "write slice(array, start, length)")
    value = expression(node.this, site)
    if isinstance(inside, exp.Slice):
        return _slice(value, inside, site)
    index = expression(inside, site)
    if isinstance(value.type, MapType):
        return call("element_at", value, _key(index, node))
    if isinstance(index, Literal) and isinstance(index.value, str):
        return call("get_field", value, index)
    if site.context.dialect == "spark":
        return item(value, index)
    from_the_end = site.context.dialect not in POSTGRES
    if is_text(value) and from_the_end:
        as_written = _counts_from_one(inside) or isinstance(node.this, exp.Literal)
        return letter_at(value, index if as_written else call("add", index, literal(1)))
    if isinstance(index, Literal) and isinstance(index.value, int):
        at = index.value + 1
        return call("try_element_at", value, literal(at) if at > 0 or (at and from_the_end) else Literal(None, INTEGER))
    place = index if _counts_from_one(node.expressions[0]) else call("add", index, literal(1))
    there = call("not_equal" if from_the_end else "greater", place, literal(0))
    return call("try_element_at", value, call("if", there, place, Literal(None, place.type)))


def _slice(value: Expression, node: exp.Slice, site: Site) -> Expression:
    """``l[2:3]``, whose ends sqlglot has left as they are written."""
    site.context.only(node, "this", "expression")
    ends = (node.this, node.expression)
    first, last = (expression(end, site) if isinstance(end, exp.Expr) else None for end in ends)
    return sliced(value, first, last, site)


def _counts_from_one(index: exp.Expr) -> bool:
    """Whether sqlglot has left an index as it is written, in a dialect whose first place is 1."""
    return index.type is not None and index.type.this == exp.DType.UNKNOWN


def _key(index: Expression, node: exp.Bracket) -> Expression:
    """The key as written: sqlglot shifts integers in brackets to count from 0, which is undone here."""
    offset = node.args.get("offset")
    if isinstance(index, Literal) and type(index.value) is int and offset:
        return literal(index.value + offset)
    return index


@handles(exp.ToMap)
def _written_map(node: exp.ToMap, site: Site) -> Expression:
    """``MAP {'a': 1}`` of DuckDB; in brackets behind it, which sqlglot takes into the map, is a key."""
    if isinstance(node.this, exp.Bracket):
        inside = node.this.copy()
        inside.set("this", exp.ToMap(this=inside.this.copy()))
        return expression(inside, site)
    if not isinstance(node.this, exp.Struct):
        raise site.context.unsupported(f"the map {node.sql('duckdb')[:60]}", node, "write MAP {'a': 1}")
    pairs = [(part.this, part.expression) for part in node.this.expressions]
    return call("map", *(expression(part, site) for pair in pairs for part in pair))


@handles(exp.Struct, args="expressions")
def _written_struct(node: exp.Struct, site: Site) -> Expression:
    """``{'a': 1}`` and ``struct_pack(a := 1)`` of DuckDB."""
    parts: list[Expression] = []
    for part in node.expressions:
        if not isinstance(part, exp.PropertyEQ):
            raise site.context.error("a field without a name", node, "write {'a': 1}, or named_struct('a', 1)")
        parts += [literal(part.name), expression(part.expression, site)]
    return call("named_struct", *parts)


@handles(exp.StructExtract, args="this expression")
def _field(node: exp.StructExtract, site: Site) -> Expression:
    return call("get_field", expression(node.this, site), literal(node.expression.name))


@handles(exp.JSONExtract, exp.JSONExtractScalar, args="*")
def _json_part(node: exp.Expr, site: Site) -> Expression:
    """``j -> 'a'``, which is JSON, and ``j ->> 'a'``, which is text."""
    if not isinstance(node.expression, (exp.JSONPath, exp.Literal)):
        raise site.context.unsupported("a path that is no literal", node, "write it as in j -> '$.a[0]'")
    path = (
        node.expression.sql("spark").strip("'") if isinstance(node.expression, exp.JSONPath) else node.expression.name
    )
    is_text, value = isinstance(node, exp.JSONExtractScalar), expression(node.this, site)
    if value.type == VARIANT:
        return call("variant_get", value, literal(path), literal("string" if is_text else "variant"))
    return call("get_json_object" if is_text else "json_part", value, literal(path))


@handles(exp.Greatest, exp.Least, args="this expressions ignore_nulls")
def _extreme(node: exp.Expr, site: Site) -> Expression:
    name = "greatest" if isinstance(node, exp.Greatest) else "least"
    return call(name, *(expression(p, site) for p in (node.this, *node.expressions)))
