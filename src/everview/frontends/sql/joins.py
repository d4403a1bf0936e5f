"""Joins: of all kinds, by conditions and by names, with rows of subqueries and elements that read the left."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.expressions import Site, condition
from everview.frontends.sql.names import Scope, Visible, fold, outward
from everview.frontends.sql.rewrite import reads_outside, replaced
from everview.frontends.sql.rows import ONE_ROW, Elements, NamedRows
from everview.later import Later
from everview.plan.node import unique
from everview.plan.nodes import Filter, Join, Lateral, Project
from everview.plan.typing import call
from everview.scalars.expressions import TRUE, Column, Expression

if TYPE_CHECKING:
    from everview.frontends.sql import asof
else:
    asof = Later("everview.frontends.sql.asof")

MOST_JOINS = 100
NUMBERED = "rows have no places: number both sides by row_number() OVER (ORDER BY …), and join by the number"


def joined_all(rows: NamedRows, joins: list[exp.Join], context: QueryContext) -> NamedRows:
    if len(joins) > MOST_JOINS:
        raise context.error(
            f"a join of {len(joins) + 1} relations", joins[-1], f"at most {MOST_JOINS + 1} are possible"
        )
    crossed = False
    for join in joins:
        side = str(join.args.get("side") or "").upper()
        if crossed and side in ("RIGHT", "FULL"):
            hint = "a comma binds less than JOIN: put what the join is of into a subquery"
            raise context.unsupported(f"a {side} JOIN after a comma or CROSS JOIN", join, hint)
        crossed = crossed or not (join.args.get("on") or join.args.get("using") or join.args.get("method"))
        rows = _join(rows, join, context)
    return rows


def _join(left: NamedRows, node: exp.Join, context: QueryContext) -> NamedRows:
    context.only(node, "this", "side", "kind", "method", "on", "using", "match_condition")
    try:
        from everview.frontends.sql.sources import relation_of

        right = relation_of(node.this, context, left)
        if str(node.args.get("method") or "").upper() == "POSITIONAL":
            raise context.unsupported("POSITIONAL JOIN", node, NUMBERED)
        if str(node.args.get("method") or "").upper() == "ASOF":
            return NamedRows(*asof.joined(left, right, node, context))
        return _joined(left, right, node, context)
    except EverviewError as error:
        context.source.locate(error, node)
        raise


def _joined(left: NamedRows, right: NamedRows, node: exp.Join, context: QueryContext) -> NamedRows:
    kind, using = _kind(node, context), _using(left, right, node)
    lateral = isinstance(node.this, exp.Lateral) and reads_outside(right.plan)
    if isinstance(right, Elements) and right.left is left.plan:
        return _joined_elements(left, right, kind, node, context)
    pairs = Join(left.plan, right.plan, "inner")
    width = len(left.plan.schema)
    both = left.scope.beside(right.scope, pairs, width)
    test = _condition(node, using, both, context)
    if lateral and kind in ("inner", "left"):
        return _beside_lateral(left, right, kind, test)
    if lateral:
        raise context.unsupported(f"a {kind} join of LATERAL", node, "there are inner and left ones")
    plan = Join(left.plan, right.plan, kind, test)
    if kind in ("semi", "anti"):
        hidden = tuple(fold(r) for r in right.scope.relations)
        return NamedRows(plan, replace(left.scope, hidden=(*left.scope.hidden, *hidden)))
    scope = both if kind == "inner" else left.scope.beside(right.scope, plan, width)
    return _merged(NamedRows(plan, scope), using, kind, in_place=context.dialect in IN_PLACE)


def _joined_elements(left: NamedRows, right: Elements, kind: str, node: exp.Join, context: QueryContext) -> NamedRows:
    on = node.args.get("on")
    if kind == "left":
        if on is None or (isinstance(on, exp.Boolean) and on.this):
            return beside_elements(left, outer_elements(right))
        return _left_of_elements(left, right, node, context)
    if kind != "inner":
        raise context.unsupported(f"a {kind} join of elements", node)
    rows = beside_elements(left, right)
    if on is None:
        return rows
    return NamedRows(Filter(rows.plan, condition(on, Site(context, rows.scope, "ON"))), rows.scope)


def _left_of_elements(left: NamedRows, right: Elements, node: exp.Join, context: QueryContext) -> NamedRows:
    """A left join with elements: the elements become a subquery of each row, so that rows without a match stay."""
    generator = right.generator.moved(lambda e: outward(e, 1))
    apart = Elements.of(ONE_ROW, generator, right.relation, right.names, left.scope)
    both = left.scope.beside(apart.scope, Join(left.plan, apart.plan, "inner"), len(left.plan.schema))
    test = condition(node.args["on"], Site(context, both, "ON"))
    return _beside_lateral(left, apart, "left", test)


def outer_elements(right: Elements) -> Elements:
    """The elements, where a row that has none stays beside NULLs."""
    generator = replace(right.generator, outer=True)
    return Elements.of(right.left, generator, right.relation, right.names, right.scope.outer)


def _beside_lateral(left: NamedRows, right: NamedRows, kind: Any, test: Expression | None) -> NamedRows:
    """A join with a right side that reads the left row; the condition becomes a filter of the right side."""
    width, inner = len(left.plan.schema), right.plan
    if test is not None and test != TRUE:

        def moved(e: Expression) -> Expression | None:
            if not isinstance(e, Column):
                return None
            return outward(e, 1) if e.index < width else inner.column(e.index - width)

        inner = Filter(inner, replaced(test, moved))
    plan = Lateral(left.plan, inner, kind)
    return NamedRows(plan, left.scope.beside(right.scope, plan, width))


def _kind(node: exp.Join, context: QueryContext) -> Any:
    side, kind = (str(node.args.get(k) or "").upper() for k in ("side", "kind"))
    method = str(node.args.get("method") or "").upper()
    if method not in ("", "NATURAL") or side not in SIDES or kind not in KINDS or (side == "RIGHT" and kind in HALVES):
        raise context.unsupported(f"a {' '.join(filter(None, (method, side, kind)))} JOIN", node)
    if kind == "CROSS" and node.args.get("on") is not None and context.dialect == "spark":
        raise context.error("a CROSS JOIN has no condition", node, "write JOIN … ON")
    return KINDS[kind] or SIDES[side]


SIDES = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}
HALVES = ("SEMI", "ANTI")
KINDS = {"": None, "INNER": None, "OUTER": None, "CROSS": "inner", "SEMI": "semi", "ANTI": "anti"}


def _using(left: NamedRows, right: NamedRows, node: exp.Join) -> list[str]:
    if node.args.get("using"):
        return [part.name for part in node.args["using"]]
    if str(node.args.get("method") or "").upper() == "NATURAL":
        there = {fold(v.name) for v in right.scope.star()}
        return [v.name for v in left.scope.star() if fold(v.name) in there]
    return []


def _condition(node: exp.Join, using: list[str], both: Scope, context: QueryContext) -> Expression | None:
    if node.args.get("on") is not None:
        return condition(node.args["on"], Site(context, both, "ON"))
    tests = [_equal(name, both, node, context) for name in using]
    if not tests:
        return None
    return tests[0] if len(tests) == 1 else call("and", *tests)


def _equal(name: str, both: Scope, node: exp.Join, context: QueryContext) -> Expression:
    """The two columns of a name that USING compares: the last of them is of the right."""
    matched = [v for v in both.visible if v.bare and v.called(name)]
    if len(matched) != 2:
        which = "both sides" if not matched else "one side only" if len(matched) == 1 else "several relations"
        message = f"USING ({name}): the column is missing on {which}" if len(matched) < 2 else f'"{name}" is in {which}'
        raise context.error(message, node, f"columns are {', '.join(v.name for v in both.star())}")
    return call("equal", matched[0].expression, matched[1].expression)


IN_PLACE = ("duckdb", "sqlite")  # where a column of USING stays where the left side has it; elsewhere it comes first


def _merged(rows: NamedRows, using: list[str], kind: str, *, in_place: bool) -> NamedRows:
    """The rows under a scope in which columns that are compared by name are one, and come first or stay in place."""
    if not using:
        return rows
    values: list[tuple[str, Expression]] = []
    rest, places = list(rows.scope.visible), list[int]()
    for name in using:
        a, b = (place for place, v in enumerate(rest) if v.bare and v.called(name))
        both = rest[a].expression, rest[b].expression
        value = call("coalesce", *both) if kind == "full" else both[kind == "right"]
        values.append((rest[a].name, value))
        places.append(a if in_place else -1)
        rest[a], rest[b] = replace(rest[a], bare=False), replace(rest[b], bare=False)
    plan = rows.plan
    if any(not isinstance(part, Column) for _, value in values for part in value.children):
        # What a merged column was merged of becomes a column: else every join would hold the expressions of all before.
        plan = Project(plan, (*plan.columns, *(v for _, v in values)), unique([*plan.schema.names, *using]))
        columns = plan.columns[-len(using) :]
        values = [(name, replace(column, name=name)) for (name, _), column in zip(values, columns, strict=True)]
    known = [(place, v) for place, v in enumerate(rest) if v.bare or v.relation is not None]  # others nobody can name
    merged = [(place, Visible(None, n, e)) for place, (n, e) in zip(places, values, strict=True)]
    visible = tuple(v for _, v in sorted((*merged, *known), key=itemgetter(0)))
    return NamedRows(plan, replace(rows.scope, visible=visible))


def beside_elements(left: NamedRows, right: NamedRows) -> NamedRows:
    """The left beside its own elements."""
    assert isinstance(right, Elements)
    return NamedRows(right.plan, Scope((*left.scope.visible, *right.scope.visible), left.scope.outer))
