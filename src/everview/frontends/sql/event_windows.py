"""Windows of event time: spans of time that rows belong to, by a moment of their own.

Spark's ``window(ts, size [, slide [, start]])`` and ``session_window(ts, gap)`` stand in SELECT and GROUP BY, as
structs of ``start`` and ``end``; the table functions ``TUMBLE``, ``HOP`` and ``SESSION`` give every row of a table with
the columns ``window_start`` and ``window_end``.

A window that tumbles is a function of the row. One that hops is several rows, one for each window around the moment. A
session is made of the rows of its group that follow each other closely: it merges and falls apart as rows come and go,
so it is computed by window functions, which are kept up to date by partition. Under a watermark they hold open sessions
only (`everview.lowering.sessions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import exp

from everview.frontends.sql import types
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.expressions import Site, expression, handles
from everview.frontends.sql.names import Scope, fold
from everview.frontends.sql.rows import NamedRows
from everview.operators.window import SESSIONS
from everview.plan.node import Plan
from everview.plan.nodes import Explode, Filter, Project, Window
from everview.plan.typing import call, cast, literal
from everview.scalars.expressions import Call, Column, Expression, Literal, WindowCall
from everview.scalars.kinds import DAY, DAY_TIME
from everview.types import BIGINT, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ

WINDOW, SESSION = "window", "session_window"
MOST_WINDOWS: Final = 100_000  # around one moment
_CLAUSES: Final = ("expressions", "group", "having", "order", "qualify", "distinct")


class HeldValue(str):
    """The name under which a call is shown, with the expression of the call."""

    value: Expression


class BoundValue(exp.Expression, exp.Func):  # pyright: ignore[reportPrivateImportUsage]
    """A bound expression as a node of the tree, in place of the call that computes it: ``this`` is a `HeldValue`."""


@handles(BoundValue, args="*")
def _given(node: BoundValue, site: Site) -> Expression:
    return node.this.value


@dataclass(frozen=True)
class WindowedRows:
    """Rows, each in one of its windows: a plan, and the window's first moment and the one after its last."""

    plan: Plan
    start: Expression
    end: Expression

    @property
    def struct(self) -> Expression:
        return call("named_struct", literal("start"), self.start, literal("end"), self.end)


# -- plans


def tumbling(plan: Plan, moment: Expression, size: int, offset: int) -> WindowedRows:
    """Rows in windows that lie side by side; a row whose moment is NULL is in none."""
    start = _began(moment, size, offset)
    return WindowedRows(_known(plan, moment), start, _later(start, size))


def hopping(plan: Plan, moment: Expression, size: int, slide: int, offset: int) -> WindowedRows:
    """Rows in windows that begin every ``slide``, and overlap."""
    if size == slide:
        return tumbling(plan, moment, size, offset)
    last = _began(moment, slide, offset)
    first = _later(last, -slide * (-(-size // slide) - 1))
    rows = Explode(_known(plan, moment), call("sequence", first, last, _span(slide)), "window_start")
    start = rows.columns[-1]
    end = _later(start, size)
    within = Filter(rows, call("less", moment, end)) if size % slide else rows
    return WindowedRows(within, start, end)


def sessions(plan: Plan, moment: Expression, gap: int, keys: Sequence[Expression]) -> WindowedRows:
    """Rows in sessions: a session has the rows of one key whose moments follow each other by at most the gap."""
    width = len(plan.schema)
    timed = Project(_known(plan, moment), (*plan.columns, moment), (*plan.schema.names, "moment"))
    at = timed.columns[width]
    calls = (
        WindowCall(edge, (at, _span(gap)), tuple(keys), ((at, "asc"),), None, TIMESTAMP, True) for edge in SESSIONS
    )
    whole = Window(timed, tuple(calls), ("session start", "last moment"))
    return WindowedRows(whole, whole.columns[width + 1], _later(whole.columns[width + 2], gap))


def _known(plan: Plan, moment: Expression) -> Plan:
    return Filter(plan, call("is_not_null", moment)) if moment.nullable else plan


def _span(micros: int) -> Literal:
    return literal(micros, DAY_TIME)


def _later(moment: Expression, micros: int) -> Expression:
    """A moment so much elapsed time on: windows of a day have 24 hours, also where a zone's clock is set."""
    how = "subtract_time_to" if micros < 0 else "add_time_to"
    return Call(how, (moment, _span(abs(micros))), TIMESTAMP, moment.nullable)


def _began(moment: Expression, size: int, offset: int) -> Expression:
    """The first moment of the window that a moment is in."""
    micros = call("unix_micros", moment)
    within = call("pmod", call("subtract", micros, literal(offset, BIGINT)), literal(size, BIGINT))
    return call("timestamp_micros", call("subtract", micros, within))


# -- in SELECT and GROUP BY


def windowed(node: exp.Select, rows: NamedRows, context: QueryContext) -> tuple[exp.Select, NamedRows]:
    """A SELECT with the window that it asks for computed as a part of its rows, and a value in place of its calls."""
    node = _as_in_spark(node)
    calls = list(_calls(node))
    if not calls:
        return node, rows
    texts = {call_.sql() for call_ in calls}
    if len(texts) > 1:
        hint = "use one of them in a subquery, and the other around it"
        raise context.unsupported("several windows of time in one query", calls[-1], hint)
    made = _made(calls[0], node, rows, context)
    name = _name(calls[0]) or ""
    held = HeldValue(name)
    held.value = made.struct
    shown = BoundValue(this=held)
    return _replaced(node, name, shown, rows.scope), NamedRows(made.plan, rows.scope)


def _as_in_spark(node: exp.Select) -> exp.Select:
    """The SELECT with ``TUMBLE(ts, size)`` and ``TUMBLE_START(ts, size)`` of Flink as Spark's calls."""
    node = node.copy()
    for part in list(_own(node)):
        name, _, edge = fold(part.name).partition("_") if isinstance(part, exp.Anonymous) else ("", "", "")
        if name not in _USAGE or edge not in ("", "start", "end") or isinstance(part.parent, exp.Table):
            continue
        given = [argument.copy() for argument in part.expressions]
        if name == "hop" and len(given) > 2:
            given[1], given[2] = given[2], given[1]
        elif name == "tumble" and len(given) > 2:
            given.insert(2, given[1].copy())
        made: exp.Expr = exp.Anonymous(this=SESSION if name == "session" else WINDOW, expressions=given)
        part.replace(exp.Dot(this=made, expression=exp.to_identifier(edge)) if edge else made)
    return node


def _name(node: exp.Expr) -> str | None:
    name = fold(node.name) if isinstance(node, exp.Anonymous) else ""
    return name if name in (WINDOW, SESSION) else None


def _own(node: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of the clauses that come after FROM and WHERE, without those of subqueries."""

    def inside(value: Any) -> Iterator[exp.Expr]:
        if isinstance(value, list):
            for part in value:
                yield from inside(part)
        elif isinstance(value, exp.Expr) and not isinstance(value, exp.Query):
            yield value
            for part in value.args.values():
                yield from inside(part)

    for clause in _CLAUSES:
        yield from inside(node.args.get(clause))


def _calls(node: exp.Select) -> Iterator[exp.Expr]:
    return (part for part in _own(node) if _name(part) is not None)


def _replaced(node: exp.Select, name: str, shown: BoundValue, scope: Scope) -> exp.Select:
    """The SELECT with a value in place of the calls, and of the names ``window`` and ``window.start`` that mean it."""
    node = node.copy()
    taken = any(v.called(name) or v.of(name) for v in scope.visible)
    for part in list(_own(node)):
        if _name(part) is not None:
            _put(part, shown.copy(), name)
        elif isinstance(part, exp.Column) and not taken and part.parts[0].name.lower() == name:
            value: exp.Expr = shown.copy()
            for field in part.parts[1:]:
                value = exp.Dot(this=value, expression=field.copy())
            if isinstance(part.parts[-1], exp.Star):
                part.replace(value)
            else:
                _put(part, value, part.parts[-1].name)
    return node


def _put(part: exp.Expr, value: exp.Expr, name: str) -> None:
    """Replace a node; one that is a whole item of SELECT keeps the name of its column."""
    item = part.arg_key == "expressions" and isinstance(part.parent, exp.Select)
    part.replace(exp.alias_(value, name) if item else value)


def _made(node: exp.Expr, select: exp.Select, rows: NamedRows, context: QueryContext) -> WindowedRows:
    name, arguments = _name(node), node.expressions
    site = Site(context, rows.scope, f"the arguments of {name}")
    if not (len(arguments) == 2 if name == SESSION else 2 <= len(arguments) <= 4):
        hint = "write session_window(ts, '5 minutes')" if name == SESSION else "write window(ts, '10 minutes')"
        raise context.error(f"{name} of {len(arguments)} arguments", node, hint)
    moment = _moment(expression(arguments[0], site), node, context)
    spans = [_duration(part, site) for part in arguments[1:]]
    if name == SESSION:
        group = select.args.get("group")
        if group is None:
            hint = "a session is made of rows of a group: GROUP BY user, session_window(ts, '5 minutes')"
            raise context.error("session_window without GROUP BY", node, hint)
        keys = [expression(key, site) for key in _other_keys(group, select, rows.scope, context)]
        return sessions(rows.plan, moment, _positive(spans[0], node, context), keys)
    size = _positive(spans[0], node, context)
    slide = _positive(spans[1], node, context) if len(spans) > 1 else size
    return _hopping(rows.plan, moment, size, slide, spans[2] if len(spans) > 2 else 0, node, context)


def _other_keys(group: exp.Group, select: exp.Select, scope: Scope, context: QueryContext) -> Iterator[exp.Expr]:
    """The keys of GROUP BY other than the session: places and names of SELECT's items stand for these."""
    from everview.frontends.sql.queries import ordinal

    for key in group.expressions:
        value, place = key, ordinal(key, len(select.expressions), "GROUP BY", context)
        if place is not None:
            value = select.expressions[place].unalias()
        elif isinstance(key, exp.Column) and not any(v.called(key.name) for v in scope.visible):
            named = [item for item in select.expressions if fold(item.alias) == fold(key.name)]
            value = named[0].unalias() if named else key
        if _name(value) is None:
            yield value


def _hopping(
    plan: Plan, moment: Expression, size: int, slide: int, offset: int, node: exp.Expr, context: QueryContext
) -> WindowedRows:
    if slide > size:
        raise context.error("windows that begin later than the ones before end", node, "let them be as long at least")
    if size // slide > MOST_WINDOWS:
        raise context.error("too many windows around one moment", node, f"at most {MOST_WINDOWS:,} are possible")
    return hopping(plan, moment, size, slide, offset)


def _moment(value: Expression, node: exp.Expr, context: QueryContext) -> Expression:
    if value.type not in (TIMESTAMP, TIMESTAMP_NTZ, DATE, STRING):
        raise context.error(f"a window of {value.type}", node, "windows are of moments: TIMESTAMP or DATE")
    return cast(value, TIMESTAMP)


def _duration(node: exp.Expr, site: Site) -> int:
    """Microseconds of ``'10 minutes'`` or ``INTERVAL 10 MINUTES``."""
    written: exp.Expr = exp.Interval(this=node.copy()) if isinstance(node, exp.Literal) and node.is_string else node
    given = types.duration(written, site.context) if isinstance(written, exp.Interval) else expression(node, site)
    if not isinstance(given, Literal) or given.type not in (DAY, DAY_TIME):
        raise site.context.error("the length of a window is written down", node, "as in '10 minutes'; months vary")
    return given.value


def _positive(micros: int, node: exp.Expr, context: QueryContext) -> int:
    if micros <= 0:
        raise context.error("a window has a length", node, "give a positive one")
    return micros


# -- in FROM


def windowed_table(
    node: exp.Expr, context: QueryContext, relation: Callable[[exp.Expr, QueryContext], NamedRows]
) -> Bound:
    """The rows of ``TUMBLE(TABLE t, DESCRIPTOR(ts), size [, offset])`` and its kin, with the window of each."""
    name = node.name.lower()
    if len(node.expressions) < 3 or not isinstance(node.expressions[1], exp.Tuple):
        raise context.error(f"{name.upper()} of which table, by which time?", node, _USAGE[name])
    table, keys, column, *lengths = node.expressions
    rows = relation(table, context)
    site = Site(context, rows.scope, f"the arguments of {name.upper()}")
    moment = _moment(expression(column, site), node, context)
    spans = [_duration(part, site) for part in lengths]
    least, most = (1, 1) if name == "session" else (1, 2) if name == "tumble" else (2, 3)
    if not least <= len(spans) <= most:
        raise context.error(f"{name.upper()} with {len(spans)} intervals", node, _USAGE[name])
    if name == "session":
        by = [expression(key, site) for key in keys.expressions]
        made = sessions(rows.plan, moment, _positive(spans[0], node, context), by)
    else:
        *steps, size = spans[: 2 if name == "hop" else 1]
        offset = spans[least] if len(spans) > least else 0
        size = _positive(size, node, context)
        slide = _positive(steps[0], node, context) if steps else size
        made = _hopping(rows.plan, moment, size, slide, offset, node, context)
    star = rows.scope.star()
    columns = tuple(_reread(v.expression, made.plan) for v in star)
    names = (*(v.name for v in star), "window_start", "window_end")
    return Bound(Project(made.plan, (*columns, made.start, made.end), names), names)


def _reread(value: Expression, plan: Plan) -> Expression:
    return plan.column(value.index) if isinstance(value, Column) else value


_USAGE: Final = {
    "tumble": "write TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL 1 HOUR)",
    "hop": "write HOP(TABLE t, DESCRIPTOR(ts), INTERVAL 5 MINUTES, INTERVAL 1 HOUR): how often, then how long",
    "session": "write SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL 5 MINUTES)",
}
