"""ASOF JOIN: equal keys, and one time that is not after the other, in the syntax of DuckDB and of Snowflake."""

from __future__ import annotations

from functools import reduce
from typing import Any

from sqlglot import exp

from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.expressions import Site, condition
from everview.frontends.sql.names import Scope, Visible, reread
from everview.frontends.sql.rows import NamedRows
from everview.plan.node import Plan
from everview.plan.nodes import Asof, Filter, Join, Project
from everview.plan.typing import call
from everview.scalars.expressions import Call, Cast, Column, Expression, columns_of, moved

# By which comparison of left and right: the direction, and whether equal times do not match.
DIRECTIONS = {
    "greater_equal": ("backward", False),
    "greater": ("backward", True),
    "less_equal": ("forward", False),
    "less": ("forward", True),
}
FLIPPED = {"greater_equal": "less_equal", "greater": "less", "less_equal": "greater_equal", "less": "greater"}


def joined(left: NamedRows, right: NamedRows, node: exp.Join, context: QueryContext) -> tuple[Plan, Scope]:
    """Each row of the left with the row of the right that is in force at its time."""
    side = str(node.args.get("side") or "").upper()
    if side not in ("", "LEFT") or str(node.args.get("kind") or "").upper() not in ("", "INNER", "OUTER"):
        raise context.unsupported(f"a {side} ASOF JOIN", node, "there are ASOF JOIN and ASOF LEFT JOIN")
    width = len(left.plan.schema)
    both = left.scope.beside(right.scope, Join(left.plan, right.plan, "inner"), width)
    tests = _tests(node, both, context)
    keys, times = _sorted(tests, width, node, context)
    (time,) = times
    direction, strict = DIRECTIONS[time[0]]
    lefts, places = _extended(left.plan, [a for a, _ in keys] + [time[1]])
    rights, others = _extended(right.plan, [b for _, b in keys] + [time[2]])
    how: Any = "left" if side == "LEFT" or node.args.get("match_condition") is not None else "inner"
    pairs = tuple(zip(places[:-1], others[:-1], strict=True))
    rights = _without_nulls(rights, others[:-1])
    plan: Plan = Asof(lefts, rights, pairs, (places[-1], others[-1]), direction, None, strict, how)  # pyright: ignore
    if len(lefts.schema) != width or len(rights.schema) != len(right.plan.schema):
        start = len(lefts.schema)
        kept = [*range(width), *range(start, start + len(right.plan.schema))]
        plan = Project(plan, tuple(plan.column(i) for i in kept), tuple(plan.schema.names[i] for i in kept))
    scope = left.scope.beside(right.scope, plan, width)
    return plan, _merged(scope, [part.name for part in node.args.get("using") or []], plan)


def _tests(node: exp.Join, both: Scope, context: QueryContext) -> list[Expression]:
    site = Site(context, both, "ON")
    tests: list[Expression] = []
    for part in ("on", "match_condition"):
        if node.args.get(part) is not None:
            test = condition(node.args[part], site)
            tests += test.children if isinstance(test, Call) and test.function == "and" else [test]
    using = [part.name for part in node.args.get("using") or []]
    if node.args.get("match_condition") is not None:
        return tests + [call("equal", *_two(name, both, node, context)) for name in using]
    *names, last = using or [None]
    if last is not None:
        tests += [call("equal", *_two(name, both, node, context)) for name in names if name is not None]
        tests.append(call("greater_equal", *_two(last, both, node, context)))
    return tests


def _two(name: str, both: Scope, node: exp.Join, context: QueryContext) -> tuple[Expression, Expression]:
    matched = [v for v in both.visible if v.bare and v.called(name)]
    if len(matched) != 2:
        raise context.error(f"USING ({name}): the column is not once on each side", node, "write ON")
    return matched[0].expression, matched[1].expression


def _sorted(
    tests: list[Expression], width: int, node: exp.Join, context: QueryContext
) -> tuple[list[tuple[Expression, Expression]], list[tuple[str, Expression, Expression]]]:
    """The pairs of equal keys and the pair of times, each expression over the rows of its own side."""
    keys: list[tuple[Expression, Expression]] = []
    times: list[tuple[str, Expression, Expression]] = []
    for test in tests:
        name = test.function if isinstance(test, Call) else ""
        if not isinstance(test, Call) or (name != "equal" and name not in DIRECTIONS):
            raise _unclear(node, context)
        a, b = test.arguments
        if _side(a, width) == "right" and _side(b, width) == "left":
            a, b, name = b, a, FLIPPED.get(name, name)
        if (_side(a, width), _side(b, width)) != ("left", "right"):
            raise _unclear(node, context)
        b = moved(b, lambda i: i - width)
        if name == "equal":
            keys.append((a, b))
        else:
            times.append((name, a, b))
    if len(times) != 1:
        raise _unclear(node, context)
    return keys, times


def _unclear(node: exp.Join, context: QueryContext) -> Exception:
    hint = "write ON a.key = b.key AND a.time >= b.time"
    return context.error("an ASOF JOIN is by equal columns and one time that is not after the other", node, hint)


def _side(expression: Expression, width: int) -> str:
    places = columns_of(expression)
    if places and all(i < width for i in places):
        return "left"
    return "right" if places and all(i >= width for i in places) else "both"


def _extended(plan: Plan, expressions: list[Expression]) -> tuple[Plan, list[int]]:
    """The plan with a column for every expression, and the positions of these columns."""
    new = [e for e in dict.fromkeys(expressions) if not isinstance(e, Column)]
    columns = [*plan.columns, *(_as_read(e) for e in new)]
    names = (*plan.schema.names, *(f"key {i}" for i in range(len(new))))
    places = [e.index if isinstance(e, Column) else len(plan.schema) + new.index(e) for e in expressions]
    return (Project(plan, tuple(columns), names) if new else plan), places


def _without_nulls(plan: Plan, keys: list[int]) -> Plan:
    """The rows whose keys are all there: NULL equals nothing, while the operator pairs NULL with NULL."""
    tests = [call("is_not_null", plan.column(key)) for key in keys if plan.schema.fields[key].nullable]
    return Filter(plan, reduce(lambda a, b: call("and", a, b), tests)) if tests else plan


def _as_read(expression: Expression) -> Expression:
    return Cast(expression.argument, expression.type) if isinstance(expression, Cast) else expression


def _merged(scope: Scope, using: list[str], plan: Plan) -> Scope:
    """The scope in which a column of USING means the left one."""
    seen: set[str] = set()
    visible: list[Visible] = []
    for v in scope.visible:
        twice = v.name.casefold() in seen and any(v.called(name) for name in using)
        seen.add(v.name.casefold())
        visible.append(Visible(v.relation, v.name, reread(v.expression, plan), v.bare and not twice))
    return Scope(tuple(visible), scope.outer)
