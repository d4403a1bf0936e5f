"""Stars in SELECT: all columns, those of a relation, or the fields of a struct; some left out, replaced or renamed."""

from __future__ import annotations

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.names import fold
from everview.plan.typing import call, literal
from everview.scalars.expressions import Expression
from everview.types import Struct, unknown_name

Named = list[tuple[str, Expression]]


def star_of(node: exp.Expr) -> exp.Star | None:
    """The star that an item of SELECT ends with: ``*``, ``t.*``, ``struct(1, 2).*``."""
    last = node.expression if isinstance(node, exp.Dot) else node.this if isinstance(node, exp.Column) else node
    return last if isinstance(last, exp.Star) else None


def starred(star: exp.Star, node: exp.Expr, site: Site) -> Named:
    """The columns that an item with a star stands for."""
    site.context.only(star, "except_", "replace", "rename")
    try:
        columns = _columns(node, site)
    except EverviewError as error:
        site.context.source.locate(error, node)
        raise
    known = [name for name, _ in columns]
    left_out = {_named(part, known, site) for part in star.args.get("except_") or []}
    other = {_named(exp.column(part.alias), known, site): part.this for part in star.args.get("replace") or []}
    new = {_named(part.this, known, site): part.alias for part in star.args.get("rename") or []}
    shown: Named = []
    for name, value in columns:
        if fold(name) not in left_out:
            changed = expression(other[fold(name)], site) if fold(name) in other else value
            shown.append((new.get(fold(name), name), changed))
    if not shown:
        raise site.context.error("* stands for no columns", node, "is there a FROM clause?")
    return shown


def _columns(node: exp.Expr, site: Site) -> Named:
    """All columns, with the names that they have."""
    if isinstance(node, exp.Dot):
        return _fields(expression(node.this, site), node, site)
    parts = tuple(part.name for part in node.parts[:-1]) if isinstance(node, exp.Column) else ()
    visible = site.scope.visible
    of_relation = len(parts) > 1 and any(v.of(parts[0]) for v in visible)
    if not parts or (not of_relation and any(v.of(parts[-1]) for v in visible)):
        return [(v.name, v.expression) for v in site.scope.star(parts[-1] if parts else None)]
    try:
        value = site.scope.find(parts)
    except EverviewError:
        site.scope.star(parts[-1])  # which says what relations there are
        raise
    return _fields(value, node, site)


def _fields(value: Expression, node: exp.Expr, site: Site) -> Named:
    if not isinstance(value.type, Struct):
        raise site.context.error(f".* of {value.type}", node, "a relation has columns, and a struct has fields")
    return [(field.name, call("get_field", value, literal(field.name))) for field in value.type.fields]


def _named(part: exp.Expr, known: list[str], site: Site) -> str:
    if fold(part.name) not in {fold(k) for k in known}:
        error = unknown_name("column", part.name, known)
        site.context.source.locate(error, part)
        raise error
    return fold(part.name)
