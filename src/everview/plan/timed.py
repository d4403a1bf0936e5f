"""The current time in plans. A kept view may ask it when a row is there, and only that.

Time passes without a change of any table, so a view that reads it does so through a relation, the **clock**: one row,
which is the current time. `kept_in_time` turns every condition on the current time into a `During`, which knows of each
row from when until when it is there; so a tick of the clock costs what it changes. Whatever else reads the current time
would change with every row at every moment, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from everview.errors import DefinitionError
from everview.later import Later
from everview.plan import node
from everview.plan.conditions import conjunction, conjuncts
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, During, Filter, Join, Scan, Union
from everview.plan.outers import is_subquery
from everview.plan.references import free_references
from everview.plan.typing import call, literal
from everview.scalars.expressions import FALSE, Call, Expression, Now, columns_of, moved, walk
from everview.scalars.kinds import DAY_TIME, YEAR_MONTH
from everview.types import Schema

if TYPE_CHECKING:
    from everview.plan.alternatives import alternatives, joined
    from everview.plan.spans import Span, common, opposite, reads_now, span_of, spans_of
else:
    alternatives = Later("everview.plan.alternatives", "alternatives")
    joined = Later("everview.plan.alternatives", "joined")
    Span = Later("everview.plan.spans", "Span")
    common = Later("everview.plan.spans", "common")
    opposite = Later("everview.plan.spans", "opposite")
    reads_now = Later("everview.plan.spans", "reads_now")
    spans_of = Later("everview.plan.spans", "spans_of")
    span_of = Later("everview.plan.spans", "span_of")

CLOCK: Final = "now()"  # the name of the relation
CLOCK_SCHEMA: Final = Schema.parse("now TIMESTAMP NOT NULL")


@dataclass(frozen=True, slots=True)
class Watermark:
    """A promise about a table: no row comes or goes whose ``column`` is more than ``delay`` before the latest one."""

    column: str
    delay: int  # microseconds
    ttl: int | None = None  # by how much more a row may be before the watermark until the table forgets the row

    def __str__(self) -> str:
        return f"{self.column} - {literal(self.delay, DAY_TIME)}" if self.delay else self.column


def watermark_of(table: str) -> str:
    """The name of the relation of a table's watermark: one row, of one column that is named as the table's time."""
    return f"watermark({table})"


def late_of(table: str) -> str:
    """The name of the table of the rows that came to a table too late."""
    return f"late({table})"


def expired_of(table: str) -> str:
    """The name of what a table is about to forget."""
    return f"expired({table})"


def is_watermark(name: str) -> bool:
    """Whether a relation is the watermark of a table."""
    return name.endswith(")") and name.startswith(watermark_of("")[:-1])


def tells_time(name: str) -> bool:
    """Whether a relation is a clock, which never goes back: that of views, or a watermark."""
    return name == CLOCK or is_watermark(name)


def is_companion(name: str) -> bool:
    """Whether a relation belongs to a table with a watermark, and is named after it."""
    return is_watermark(name) or (name.endswith(")") and name.startswith((late_of("")[:-1], expired_of("")[:-1])))


_MONTHS = "add months to the moment of the row: WHERE ts + INTERVAL 1 MONTH > now()"
_BY_CLOCK: Final = ("from_utc_timestamp", "to_utc_timestamp")
_IN_ZONES = (
    "days of a time zone may have 23 hours: count from now() itself, as in WHERE ts > now() - INTERVAL 1 MONTH, or "
    "compare days, as in WHERE date(ts) >= current_date - 7"
)
_PARTS: Final = (
    *("month", "quarter", "day", "dayofweek", "weekday", "dayofyear", "weekofyear", "hour", "minute", "second"),
    "date_format",
)
_WHOLE = "compare whole spans of time: WHERE date_trunc('month', ts) = date_trunc('month', now())"
_COUNTED = (
    "aggregate the rows that are there now, in a query of their own, and join it with the rest: "
    "SELECT k, count(*) FROM t WHERE ts > now() - INTERVAL 1 HOUR GROUP BY k"
)
_WRITE = "compare it with a moment of the row: WHERE ts > now() - INTERVAL 1 HOUR"


def times(plan: Plan) -> Iterator[Now]:
    """The places in a plan, and in the subqueries of its expressions, that read the current time."""
    for part in node.walk(plan):
        for expression in (e for whole in part.expressions for e in walk(whole)):
            if isinstance(expression, Now):
                yield expression
            elif is_subquery(expression):
                yield from times(expression.plan)


def check_timeless(view: str, plan: Plan) -> None:
    """Refuse a view that depends on the current time, where there is no clock."""
    time = next(times(plan), None)
    if time is not None:
        raise DefinitionError(
            f"view {view} reads {time}, and no change tells that time has passed",
            hint="put the moment into a table, join it and update it; or ask by SELECT, where the time is now",
        )


def kept_in_time(view: str, plan: Plan) -> Plan:
    """The plan with its conditions on the current time as `During`; raises where the time is read in another way."""
    return node.rewritten(plan, lambda part: _kept(view, part)) if next(times(plan), None) is not None else plan


def _kept(view: str, part: Plan) -> Plan:
    if not any(map(reads_now, part.expressions)):
        return part
    if free_references(part):
        raise _refused(view, part, "inside of a recursion", "filter what goes into it, or what comes out of it")
    if isinstance(part, Filter):
        return _filtered(view, part.input, part.predicate)
    if isinstance(part, Join):
        return _joined(view, part)
    if isinstance(part, Aggregate):
        raise _refused(view, part, "in an aggregate", _COUNTED)
    raise _refused(view, part, "in a value", f"{_WRITE}; or ask by SELECT, where the time is now")


def _refused(view: str, part: Plan, where: str, hint: str) -> DefinitionError:
    time = next(e for whole in part.expressions for e in walk(whole) if isinstance(e, Now))
    return DefinitionError(f"view {view} reads {time} {where}, which cannot be kept up as time passes", hint=hint)


# -- conditions


def _filtered(view: str, input_: Plan, predicate: Expression) -> Plan:
    """The rows that meet a predicate now."""
    parts = list(conjuncts(predicate))
    plain = conjunction(part for part in parts if not reads_now(part))
    rows = input_ if plain is None else Filter(input_, plain)
    spans: list[Span] = []
    for part in filter(reads_now, parts):
        several = spans_of(part)
        if several is None:
            rows = _either(view, rows, part)
        elif len(several) == 1:
            spans.append(several[0])
        else:
            rows = Union(tuple(_during(rows, [span]) for span in several))
    return _during(rows, spans) if spans else rows


def _during(rows: Plan, spans: list[Span]) -> Plan:
    bounds = [bound for span in spans for bound in (span.since, span.until) if bound is not None]
    known = conjunction(call("is_not_null", bound) for bound in bounds if bound.nullable)
    span = common(spans)
    return During(rows if known is None else Filter(rows, known), Scan(CLOCK, CLOCK_SCHEMA), span.since, span.until)


def _either(view: str, rows: Plan, condition: Expression) -> Plan:
    """The rows that meet an OR of conditions, of which some ask the time and the others are kept apart."""
    opened = alternatives(condition)
    if opened is not None:
        whole = joined(opened)
        if len(opened) == 1 and whole != condition:
            return _filtered(view, rows, whole)
        condition = whole
        if not reads_now(condition):
            return Filter(rows, condition)
    several = condition.arguments if isinstance(condition, Call) and condition.function == "or" else ()
    timed = [part for part in several if reads_now(part)]
    if not timed:
        raise _refused(view, Filter(rows, condition), f"in {condition}", _rewrite(condition))
    others = [part for part in several if not reads_now(part)]
    if not others:
        return Union(tuple(_one_of(view, rows, timed)))
    plain = others[0] if len(others) == 1 else call("or", *others)
    rest = Filter(rows, _is_not(plain))
    return Union((Filter(rows, plain), *_one_of(view, rest, timed)))


def _rewrite(condition: Expression) -> str:
    """How to write a condition so that it can be kept."""
    if any(isinstance(part, Call) and part.function in _BY_CLOCK for part in walk(condition)):
        return _IN_ZONES
    if any(isinstance(part, Call) and part.function in _PARTS and reads_now(part) for part in walk(condition)):
        return _WHOLE
    by_months = any(isinstance(part, Call) and part.function == "months_between" for part in walk(condition))
    return _MONTHS if by_months or any(part.type == YEAR_MONTH for part in walk(condition)) else _WRITE


def _one_of(view: str, rows: Plan, timed: Sequence[Expression]) -> Iterator[Plan]:
    """The rows that meet one of several conditions on the time, each once: by the condition that is true first."""
    first, *others = timed
    yield _filtered(view, rows, first)
    if not others:
        return
    parts = list(conjuncts(first))
    spans = [span_of(part) for part in parts if reads_now(part)]
    if spans == [None] and len(parts) == 1 and spans_of(first) is not None:
        yield from _one_of_after_months(view, rows, first, others)
        return
    span = common(known for known in spans if known is not None)
    if None in spans:
        hint = "make a query of each of these conditions, and UNION of the queries"
        raise _refused(view, Filter(rows, first), f"in {first}", hint)
    bounds = [
        bound for known in spans if known is not None for bound in (known.since, known.until) if bound is not None
    ]
    given = [part for part in parts if not reads_now(part)]
    needed = conjunction([*given, *(call("is_not_null", bound) for bound in bounds if bound.nullable)])
    if needed is not None:  # where this fails, the first condition is never true
        yield from _one_of(view, Filter(rows, _is_not(needed)), others)
        rows = Filter(rows, needed)
    # Before the first condition becomes true, and after it has been.
    if span.since is not None:
        yield from _one_of(view, _during(rows, [Span(until=span.since)]), others)
    if span.until is not None:
        end = span.until if span.since is None else call("greatest", span.since, span.until)
        yield from _one_of(view, _during(rows, [Span(since=end)]), others)


def _one_of_after_months(view: str, rows: Plan, first: Expression, others: Sequence[Expression]) -> Iterator[Plan]:
    """Rows that meet one of several conditions, of which the first compares with a moment moved by months."""
    contrary = opposite(first)
    assert contrary is not None, "spans are those of a comparison"
    bounds = [bound for span in (spans_of(first) or ())[:1] for bound in (span.since, span.until) if bound is not None]
    needed = conjunction(call("is_not_null", bound) for bound in bounds if bound.nullable)
    if needed is not None:  # where a side is NULL, the first condition is never true
        yield from _one_of(view, Filter(rows, _is_not(needed)), others)
        rows = Filter(rows, needed)
    yield from _one_of(view, _filtered(view, rows, contrary), others)


def _is_not(condition: Expression) -> Expression:
    """A condition's opposite, which holds where the condition is unknown, too."""
    return call("not", call("coalesce", condition, FALSE))


def _joined(view: str, join: Join) -> Plan:
    """A join on conditions of which some ask the time: they go to the side that they read, or above the join."""
    parts = [part for part in conjuncts(join.condition) if reads_now(part)]
    plain = replace(join, condition=conjunction(p for p in conjuncts(join.condition) if not reads_now(p)))
    width = len(join.left.schema)
    left = conjunction(part for part in parts if all(column < width for column in columns_of(part)))
    right = conjunction(part for part in parts if all(column >= width for column in columns_of(part)))
    both = conjunction(part for part in parts if part not in (*conjuncts(left), *conjuncts(right)))
    if join.kind == "inner" and both is not None:
        return _filtered(view, plain, conjunction(parts) or both)
    if (
        both is not None
        or (left is not None and join.kind not in ("inner", "semi", "right"))
        or (right is not None and join.kind not in ("inner", "semi", "anti", "left"))
    ):
        raise _refused(view, join, f"in the condition of a {join.kind} join", "filter one side of it in a subquery")
    if left is not None:
        plain = replace(plain, left=_filtered(view, plain.left, left))
    if right is not None:
        plain = replace(plain, right=_filtered(view, plain.right, moved(right, lambda column: column - width)))
    return plain
