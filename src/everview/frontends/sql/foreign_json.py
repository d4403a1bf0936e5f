"""JSON of PostgreSQL's ``jsonb``, which is a variant here, and of DuckDB, which is text."""

from __future__ import annotations

import json

from sqlglot import exp

from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.postgresql_arrays import array_elements
from everview.plan.typing import call, cast, literal
from everview.scalars.expressions import Expression, Literal
from everview.types import STRING, VARIANT, MapType, Struct


def variant_of(value: Expression) -> Expression:
    """A value as a variant; NULL as the null of JSON."""
    if isinstance(value.type, (Struct, MapType)):
        value = call("to_variant_object", value)
    value = cast(value, VARIANT)
    return call("coalesce", value, call("parse_json", literal("null"))) if value.nullable else value


def built_object(node: exp.Expr, site: Site) -> Expression:
    """``jsonb_build_object('a', 1, 'b', x)``."""
    parts: list[Expression] = []
    for key, value in _pairs(node, node.expressions, site):
        parts += [literal(key), variant_of(expression(value, site))]
    return call("to_variant_object", call("named_struct", *parts))


def built_array(node: exp.Expr, site: Site) -> Expression:
    """``jsonb_build_array(1, 'a')``."""
    return cast(call("array", *(variant_of(expression(value, site)) for value in node.expressions)), VARIANT)


def to_variant(node: exp.Expr, site: Site) -> Expression:
    """``to_jsonb(x)``, NULL of NULL."""
    value = expression(node.expressions[0], site)
    if isinstance(value.type, (Struct, MapType)):
        return call("to_variant_object", value)
    return cast(value, VARIANT)


def _pairs(node: exp.Expr, given: list[exp.Expr], site: Site) -> list[tuple[str, exp.Expr]]:
    pairs = list(zip(given[::2], given[1::2], strict=False))
    if len(given) % 2 or not all(isinstance(key, exp.Literal) and key.is_string for key, _ in pairs):
        raise site.context.unsupported("keys that are not written down", node, "give literal keys, each with a value")
    return [(key.name, value) for key, value in pairs]


def at_path(node: exp.Expr, site: Site) -> Expression:
    """``j #> '{a,0}'`` and ``j #>> '{a,0}'``, the latter as text."""
    path = node.expression
    if not isinstance(path, exp.Literal):
        raise site.context.unsupported("a path that is not written down", node, "write it as in j #>> '{a,0}'")
    try:
        parts = [part or "" for part in array_elements(path.name)]
    except ValueError:
        raise site.context.error(f"{path.name[:40]!r} is no path", path, "write it as in j #>> '{a,0}'") from None
    return _part(expression(node.this, site), parts, isinstance(node, exp.JSONBExtractScalar))


def extracted_path(node: exp.Expr, site: Site) -> Expression:
    """``jsonb_extract_path(j, 'a', '0')``, and ``jsonb_extract_path_text``."""
    first, *path = node.expressions or [exp.Null()]
    if not path or not all(isinstance(part, exp.Literal) for part in path):
        raise site.context.unsupported("a path that is not written down", node, f"write {node.name}(j, 'a', '0')")
    return _part(expression(first, site), [part.name for part in path], node.name.lower().endswith("_text"))


def _part(value: Expression, parts: list[str], is_text: bool) -> Expression:
    value = call("parse_json", value) if value.type == STRING else value
    path = "$" + "".join(f"[{part}]" if part.isdigit() else f"[{json.dumps(part)}]" for part in parts)
    selected = call("variant_get", value, literal(path), literal("variant"))
    return _text_of(selected) if is_text else selected


def _text_of(value: Expression) -> Expression:
    """A variant as ``->>`` gives it: a text as it is, all else as JSON, and null as NULL."""
    plain = call("equal", call("schema_of_variant", value), literal("STRING"))
    text = call("if", plain, call("variant_get", value, literal("$"), literal("string")), call("to_json", value))
    return call("if", call("is_variant_null", value), Literal(None, STRING), text)


# -- DuckDB


def object_text(node: exp.Expr, site: Site) -> Expression:
    """``json_object('a', 1, 'b', x)``, as text."""
    site.context.only(node, "expressions")
    given = [side for pair in node.expressions for side in (pair.this, pair.expression)]
    return _joined("{}", [(f"{json.dumps(key)}:", value) for key, value in _pairs(node, given, site)], site)


def array_text(node: exp.Expr, site: Site) -> Expression:
    """``json_array(1, 'a')``, as text."""
    site.context.only(node, "expressions")
    return _joined("[]", [("", value) for value in node.expressions], site)


def _joined(ends: str, items: list[tuple[str, exp.Expr]], site: Site) -> Expression:
    parts: list[Expression] = [literal(ends[0])]
    for place, (before, item) in enumerate(items):
        parts.append(literal("," * (place > 0) + before))
        parts.append(call("to_json", variant_of(expression(item, site))))
    return call("concat", *parts, literal(ends[1]))
