"""Percentiles as SQL writes them: the function, its argument, its shares and its direction.

- ``percentile(x, p)``, ``percentile_cont(p) WITHIN GROUP (ORDER BY x)``, and DuckDB's ``quantile_cont(x, p)`` lie
  between two values in proportion, and are a DOUBLE, or an interval if the values are.
- ``percentile_disc(p) WITHIN GROUP (ORDER BY x)`` is a value of the data; in Spark as a DOUBLE.
- ``percentile_approx(x, p[, accuracy])``, and DuckDB's ``quantile(x, p)`` and ``quantile_disc(x, p)``, are a value of
  the data in its own type.

``p`` is a number from 0 to 1, or an array of such, which gives an array. An approximation is exact here, so its
accuracy is checked and then of no consequence.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.frontends.sql.casts import untyped
from everview.frontends.sql.expressions import Site
from everview.frontends.sql.written import NAMES, SqlCall
from everview.operators.aggregate.registry import AggregateFunction
from everview.plan.typing import coerced, implicit, is_number
from everview.scalars.expressions import Call, Cast, Expression, Literal, Order
from everview.scalars.kinds import VOID
from everview.types import BOOLEAN, DOUBLE, INTERVALS, STRING, Type

WITHIN = ("percentile_cont", "percentile_disc")
APPROXIMATE = ("percentile_approx", "approx_percentile", "approx_quantile")
MOST_ACCURATE = 2**31 - 1


@dataclass(frozen=True)
class Percentiles:
    """A percentile that a call asks for: the plan's function, the value and one share, or ``several`` shares."""

    function: str
    value: Expression
    shares: tuple[float, ...]
    several: bool
    order: Order = ()
    counted: Type | None = None  # the interval whose smallest units are counted in the values


def read(written: SqlCall, bound: list[Expression], order: Order, site: Site) -> Percentiles:
    """Read a call; `bound` are its arguments, `order` that of WITHIN GROUP."""
    name, line, descends = written.name, NAMES[written.name], ()
    if written.within:
        _check_within(written, bound, site)
        value, way = one_order(order, written, site)
        share, rest = bound[0], []
        descends = ((value, way),) if way.startswith("desc") else ()
    else:
        value, share, *rest = _plain(written, bound, site)
    _check_rest(name, rest, written, site)
    counted = value.type if value.type in INTERVALS and line.takes != "anything" else None
    value = _value(line, value, written, site) if counted is None else counted_units(value)
    shares, several = _shares(share, written, site)
    function = line.duckdb if line.duckdb and site.context.dialect != "spark" else line.name
    return Percentiles(function, value, shares, several, tuple((value, way) for _, way in descends), counted)


def counted_units(value: Expression) -> Expression:
    """An interval as the number of its smallest units."""
    from everview.frontends.sql.interval_casts import in_smallest_units

    return in_smallest_units(value)


def one_order(order: Order, written: SqlCall, site: Site) -> tuple[Expression, str]:
    """The one item of WITHIN GROUP."""
    if len(order) != 1:
        raise site.context.error(f"{written.name} in the order of {len(order)} values", written.node, "order by one")
    return order[0]


def _check_within(written: SqlCall, bound: list[Expression], site: Site) -> None:
    if len(bound) != 1 or written.distinct:
        hint = f"write {written.name}(0.5) WITHIN GROUP (ORDER BY x)"
        raise site.context.error(f"{written.name} takes one share, and its values by ORDER BY", written.node, hint)


def _plain(written: SqlCall, bound: list[Expression], site: Site) -> list[Expression]:
    """The value, the share and what follows."""
    name, duckdb = written.name, site.context.dialect != "spark"
    if name in WITHIN and not (duckdb and len(bound) == 2):
        hint = f"write {name}(0.5) WITHIN GROUP (ORDER BY x)"
        raise site.context.error(f"{name} of which values?", written.node, hint)
    if len(bound) == 1 and duckdb and name.startswith("quantile"):
        return [bound[0], Literal(0.5, DOUBLE)]
    if len(bound) < 2:
        raise site.context.error(f"{name} at which share?", written.node, f"write {name}(x, 0.5)")
    return bound


def _check_rest(name: str, rest: list[Expression], written: SqlCall, site: Site) -> None:
    if not rest:
        return
    (written_accuracy,) = rest
    if name not in APPROXIMATE:
        if not isinstance(written_accuracy, Literal) or written_accuracy.value != 1:
            hint = "repeat the rows: join them with the numbers from 1 to the frequency"
            raise site.context.unsupported(f"the frequency of {name}", written.node, hint)
        return
    accuracy = _number(written_accuracy)
    if accuracy is None or accuracy != int(accuracy) or not 0 < accuracy <= MOST_ACCURATE:
        hint = f"a whole number from 1 to {MOST_ACCURATE} that is written down"
        raise site.context.error(f"{name} of such an accuracy", written.node, hint)


def _value(line: AggregateFunction, value: Expression, written: SqlCall, site: Site) -> Expression:
    """The value to rank: Spark reads text as numbers, DuckDB ranks texts as they are."""
    picks = line.takes == "anything"
    if picks and site.context.dialect != "spark":
        return untyped(value)
    if value.type in (STRING, VOID):
        return coerced(value, DOUBLE)
    if picks and value.type != BOOLEAN:
        return value
    return value if is_number(value.type) else implicit(value, DOUBLE, written.name)


def _shares(share: Expression, written: SqlCall, site: Site) -> tuple[tuple[float, ...], bool]:
    several = isinstance(share, Call) and share.function == "array"
    numbers = [_number(part) for part in (share.children if several else (share,))]
    if not numbers or any(n is None or not 0 <= n <= 1 for n in numbers):
        hint = "write it down, as in 0.9 or array(0.1, 0.9)"
        raise site.context.error(f"{written.name} at a share that is no number from 0 to 1", written.node, hint)
    return tuple(n for n in numbers if n is not None), several


def _number(expression: Expression) -> float | None:
    """The value of a literal number, also one written as text; None for anything else."""
    while isinstance(expression, Cast):
        expression = expression.argument
    value = expression.value if isinstance(expression, Literal) else None
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
