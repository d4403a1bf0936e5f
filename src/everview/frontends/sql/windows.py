"""Window functions: the call before OVER, and the window inside it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql.aggregates import BoundAggregate, any_value, formula, made_of, typed
from everview.frontends.sql.casts import untyped
from everview.frontends.sql.expressions import Site, expression, handles
from everview.frontends.sql.unordered import ordered, refuse_unordered
from everview.frontends.sql.written import NAMES, PICKED, RANKS, SqlCall, ordering, read
from everview.later import Later
from everview.operators.aggregate.registry import IN_PLANS, computed
from everview.plan.aggregates import WindowOfRows
from everview.plan.typing import call, coerced, is_number, literal
from everview.scalars.expressions import ExcludingFrame, Expression, Frame, Literal, Order, WindowCall
from everview.scalars.kinds import INTERVALS
from everview.types import INTEGER, Type

if TYPE_CHECKING:
    from everview.plan.reaches import reaches
else:
    reaches = Later("everview.plan.reaches", "reaches")


@handles(exp.Window, args="this partition_by order spec alias over")
def _window(node: exp.Window, site: Site) -> Expression:
    if not site.windows:
        hint = "a window function stands in SELECT, QUALIFY and ORDER BY, and not in another one"
        raise site.context.error(f"a window function in {site.clause}", node, hint)
    written = read(node.this, site)
    if written is None:
        expression(node.this, site)  # an unknown function is refused as such
        raise site.context.error("OVER follows an aggregate or a window function", node)
    inside = replace(site, windows=False, clause=f"the window function {written.name}")
    base = _base(node, site)
    partition = tuple(
        ordered(untyped(expression(p, inside)), "PARTITION BY", p, site.context)
        for p in base.args.get("partition_by") or ()
    )
    order = base.args.get("order")
    by = () if order is None else ordering(order.expressions, inside)
    refuse_unordered((key.type for key, _ in by), "ORDER BY", node, site.context)
    frame = None if base.args.get("spec") is None else _frame(base.args["spec"], by, inside)
    return _over(written, WindowOfRows(partition, by, frame), inside)


def _base(node: exp.Window, site: Site) -> exp.Window:
    """The window with the clauses of the named window that it refers to."""
    name = node.args.get("alias")
    if name is None:
        return node
    named = site.named.get(name.name.casefold())
    if named is None:
        from everview.types import unknown_name

        raise unknown_name("window", name.name, site.named)
    named = _base(named, replace(site, named={k: v for k, v in site.named.items() if v is not named}))
    parts = {key: node.args.get(key) or named.args.get(key) for key in ("partition_by", "order", "spec")}
    return exp.Window(this=node.this, **parts)


def _over(written: SqlCall, window: WindowOfRows, site: Site) -> Expression:
    name = written.name
    if name in RANKS or (name in PICKED and not _is_aggregate_there(written)):
        return _ranked(written, window, site)
    form = NAMES[name].form if name in NAMES else ""
    if form == "grouping":
        raise site.context.error(f"{name} over a window", written.node, "it tells the groups of a query apart")
    if form == "derived":
        return formula(written, site, window.over)
    made = made_of(written, site)
    if name in PICKED and not written.order and window.order and name != "any_value":
        made = _picked_of_kept(written, made, window, site)
    if made.distinct and (line := IN_PLANS.get(made.function)) is not None:
        if line.form == "different values":
            made = replace(made, distinct=False)
        elif computed(line.computed).law == "linear" and _begins_with_partition(window.frame):
            made = _of_firsts(made, window)
    return typed(made, window.over)


def _is_aggregate_there(written: SqlCall) -> bool:
    """Whether a function that picks a value of its frame has a filter, or an ORDER BY of its own."""
    return written.name in NAMES and (bool(written.order) or written.filter is not None)


def _picked_of_kept(written: SqlCall, made: BoundAggregate, window: WindowOfRows, site: Site) -> BoundAggregate:
    """The first or the last value, in the order of the window, of the rows that a filter keeps."""
    skips = written.skips_nulls or any(expression(a, site) == literal(True) for a in written.arguments[1:])
    rest = (literal(True),) if skips else ()
    return replace(made, function=NAMES[written.name].name, arguments=(*made.arguments[:1], *rest), order=window.order)


def _begins_with_partition(frame: Frame | None) -> bool:
    return frame is None or (frame.start is None and not isinstance(frame, ExcludingFrame))


def _of_firsts(made: BoundAggregate, window: WindowOfRows) -> BoundAggregate:
    """An aggregate of DISTINCT values as one of some rows: of those with equal arguments the first in the order.

    A frame that begins with the partition holds a value if, and only if, it holds the first row with that value.
    """
    kept = () if made.filter is None else (made.filter,)
    order = window.order or tuple((argument, "asc") for argument in made.arguments[:1])
    parts = (*window.partition, *made.arguments, *kept)
    place = WindowCall("row_number", (), parts, order, None, RANKS["row_number"], False)
    tests = [*kept, call("equal", place, literal(1))]
    if len(made.arguments) == 1:
        return replace(made, distinct=False, filter=tests[0] if len(tests) == 1 else call("and", *tests))
    tests += [call("is_not_null", argument) for argument in made.arguments if argument.nullable]
    return replace(made, arguments=(), distinct=False, filter=call("and", *tests))


def _ranked(written: SqlCall, window: WindowOfRows, site: Site) -> WindowCall:
    name, by = written.name, window.order
    if written.distinct or written.order or written.filter is not None:
        raise site.context.unsupported(f"DISTINCT, ORDER BY or FILTER in {name}", written.node)
    bound = [expression(argument, site) for argument in written.arguments]
    if not by and name != "any_value" and name not in PICKED:
        hint = f"write {name}(…) OVER (PARTITION BY … ORDER BY …)"
        raise site.context.error(f"{name} in which order?", written.node, hint)
    arguments, type_, nullable = _rank_arguments(written, bound, site)
    kept = None
    if written.skips_nulls:
        if name not in (*PICKED, "lag", "lead"):
            raise site.context.unsupported(f"IGNORE NULLS in {name}", written.node)
        kept = call("is_not_null", arguments[0])
    function = {"first": "first_value", "last": "last_value", "any_value": "first_value"}.get(name, name)
    return WindowCall(function, arguments, window.partition, by, window.frame, type_, nullable, kept)


def _rank_arguments(written: SqlCall, bound: list[Expression], site: Site) -> tuple[tuple[Expression, ...], Type, bool]:
    name = written.name
    if name in RANKING and site.context.dialect == "spark":
        bound = []  # what Spark's ranks are given besides, which is not looked at
    least, most = _COUNTS.get(name, (0, 0))
    if not least <= len(bound) <= most:
        raise site.context.error(
            f"{name} was given {len(bound)} arguments", written.node, f"it takes {least} to {most}"
        )
    if name in ("lag", "lead"):
        value = untyped(any_value(name, bound[0]))
        offset = bound[1] if len(bound) > 1 else literal(1)
        default = coerced(bound[2], value.type) if len(bound) > 2 else Literal(None, value.type)
        return (value, _whole(offset, written, site), default), value.type, value.nullable or default.nullable
    if name in PICKED:
        value = untyped(any_value(name, bound[0]))
        rest = [_whole(bound[1], written, site)] if name == "nth_value" else []
        return (value, *rest), value.type, True
    if name == "ntile":
        return (_whole(bound[0], written, site),), INTEGER, False
    return (), RANKS[name], False


RANKING = ("rank", "dense_rank", "percent_rank")
_COUNTS = {
    "lag": (1, 3), "lead": (1, 3), "ntile": (1, 1), "nth_value": (2, 2),
    **dict.fromkeys(("rank", "dense_rank", "percent_rank"), (0, 9)),  # in Spark arguments say nothing
    **dict.fromkeys(("first_value", "last_value", "first", "last", "any_value"), (1, 2)),
}  # fmt: skip


def _whole(number: Expression, written: SqlCall, site: Site) -> Literal:
    if isinstance(number, Literal) and isinstance(number.value, int):
        return number
    raise site.context.error(f"{written.name} takes a whole number that is written down", written.node)


EXCLUSIONS = ("current row", "group", "ties")


def _frame(spec: exp.WindowSpec, by: Order, site: Site) -> Frame:
    site.context.only(spec, "kind", "start", "start_side", "end", "end_side", "exclude")
    unit: Any = str(spec.args.get("kind") or "rows").lower()
    if unit not in ("rows", "range", "groups"):
        raise site.context.unsupported(f"a frame of {unit.upper()}", spec, "write ROWS, RANGE or GROUPS")
    start = _edge(spec.args.get("start"), spec.args.get("start_side"), site, spec)
    end = _edge(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"), site, spec)
    if start == "after" or end == "before":
        raise site.context.error("a frame that is always empty", spec, "it starts before it ends")
    low, high = None if start == "before" else start, None if end == "after" else end
    _check_distances(unit, low, high, by, spec, site)
    left_out: Any = str(spec.args.get("exclude") or "NO OTHERS").lower()
    if left_out == "no others":
        return Frame(unit, low, high)
    if left_out not in EXCLUSIONS:
        raise site.context.unsupported(f"EXCLUDE {left_out.upper()}", spec, "CURRENT ROW, GROUP, TIES or NO OTHERS")
    return ExcludingFrame(unit, low, high, left_out)


def _check_distances(unit: str, start: Any, end: Any, by: Order, spec: exp.Expr, site: Site) -> None:
    """Refuse distances that the unit of a frame does not have, or the sort key."""
    distances = [edge for edge in (start, end) if edge is not None and edge != 0]
    if unit == "groups" and not by:
        raise site.context.error("GROUPS in which order?", spec, "write ORDER BY in the window")
    if unit != "range":
        if any(not isinstance(edge, int) for edge in distances):
            raise site.context.error(f"{unit.upper()} are counted in whole numbers", spec, "as in 3 PRECEDING")
        return
    if not distances:
        return
    if len(by) != 1:
        raise site.context.error("RANGE by a distance takes one sort key", spec, "write ORDER BY with one column")
    try:
        reaches(by[0][0], start, end)
    except EverviewError as error:
        raise site.context.error(f"RANGE over {by[0][0].type}: {error.message}", spec, error.hint) from None


def _edge(bound: Any, side: str | None, site: Site, spec: exp.Expr) -> Any:
    """The bound of a frame: an offset, negative before the current row, or unbounded "before" or "after"."""
    before = str(side).upper() == "PRECEDING"
    if isinstance(bound, str) and bound.upper() == "CURRENT ROW":
        return 0
    if isinstance(bound, str):
        return "before" if before else "after"
    distance = expression(bound, site)
    if distance.type in INTERVALS and isinstance(distance, Literal):
        return Literal(-distance.value if before else distance.value, distance.type)
    if not isinstance(distance, Literal) or not is_number(distance.type) or distance.value < 0:
        raise site.context.error("a frame reaches as far as a number or an interval says", spec, "as in 3 PRECEDING")
    return -distance.value if before else distance.value
