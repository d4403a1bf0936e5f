"""Aggregates that are formulas of others: correlation and regression, skewness, histograms, unions of arrays.

Correlation and regression come from exact sums, as variances do, so they cost what the change does. Skewness, kurtosis,
histograms and sketches read all values of a group that changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.sketches import SKETCHED
from everview.frontends.sql.written import SqlCall
from everview.plan.aggregates import aggregate_call
from everview.plan.typing import call, cast, coerced, implicit, is_number, literal
from everview.scalars.expressions import AggregateCall, Expression, Literal
from everview.types import BIGINT, BINARY, DOUBLE, Array, Field, Struct, Type

Aggregating = Callable[..., Expression]
Formula = Callable[[Aggregating, list[Expression]], Expression]


def derived(
    written: SqlCall, kept: Expression | None, site: Site, placing: Callable[[AggregateCall], Expression]
) -> Expression:
    """The formula of a call, its aggregates over the rows that the filter keeps; ``placing`` says of what."""
    given = [expression(argument, site) for argument in written.arguments]
    if written.name == "approx_top_k" and site.context.dialect == "duckdb":  # which gives the values alone
        raise site.context.unsupported(written.name, written.node, "count by value, and take the first rows by LIMIT")
    if written.name in SKETCHED:
        more, formula = SKETCHED[written.name]
        least, most = 1, 1 + more
    else:
        least, formula = (site.context.dialect == "duckdb" and _OF_DUCKDB.get(written.name)) or FORMULAS[written.name]
        most = least
    if not least <= len(given) <= most:
        takes = f"{least}" if least == most else f"{least} to {most}"
        raise site.context.error(f"{written.name} takes {takes} arguments, and was given {len(given)}", written.node)
    if written.distinct or written.order:
        raise site.context.unsupported(f"DISTINCT or ORDER BY in {written.name}", written.node, "use a subquery")

    def aggregating(name: str, *arguments: Expression) -> Expression:
        return placing(aggregate_call(name, arguments, filter=kept))

    return formula(aggregating, given)


# -- of pairs


class PairedNumbers:
    """The aggregates of pairs of numbers, of which neither is NULL."""

    def __init__(self, aggregating: Aggregating, given: list[Expression]) -> None:
        self.y, self.x = (value if is_number(value.type) else implicit(value, DOUBLE, "avg") for value in given)
        self._aggregating = aggregating

    def of(self, name: str, value: Expression, other: Expression) -> Expression:
        """An aggregate of one value, without the pairs that lack the other."""
        there = call("if", call("is_null", other), Literal(None, value.type), value)
        return self._aggregating(name, there)

    def mean(self, value: Expression, other: Expression) -> Expression:
        return self.of("avg", implicit(value, DOUBLE, "avg"), other)

    def variance(self, value: Expression, other: Expression, name: str = "var_pop") -> Expression:
        return self.of(name, implicit(value, DOUBLE, name), other)

    @property
    def count(self) -> Expression:
        return call("coalesce", self.of("count", self.y, self.x), literal(0))

    @property
    def covariance(self) -> Expression:
        return self._aggregating("covar_pop", *(implicit(value, DOUBLE, "covar_pop") for value in (self.y, self.x)))

    @property
    def varies(self) -> tuple[Expression, Expression]:
        """Whether y varies, and whether x does."""
        zero = literal(0.0)
        sides = ((self.y, self.x), (self.x, self.y))
        y, x = (call("not_equal", self.variance(*side), zero) for side in sides)
        return y, x


def _corr(pair: PairedNumbers) -> Expression:
    deviations = [pair.variance(*side, "stddev_pop") for side in ((pair.y, pair.x), (pair.x, pair.y))]
    return _where(call("and", *pair.varies), call("divide", pair.covariance, call("multiply", *deviations)))


def _slope(pair: PairedNumbers) -> Expression:
    return _where(pair.varies[1], call("divide", pair.covariance, pair.variance(pair.x, pair.y)))


def _intercept(pair: PairedNumbers) -> Expression:
    rise = call("multiply", _slope(pair), pair.mean(pair.x, pair.y))
    return call("subtract", pair.mean(pair.y, pair.x), rise)


def _r2(pair: PairedNumbers) -> Expression:
    y, x = pair.varies
    both = call("multiply", pair.variance(pair.y, pair.x), pair.variance(pair.x, pair.y))
    share = call("divide", call("multiply", pair.covariance, pair.covariance), both)
    return _where(x, call("if", y, share, literal(1.0)))


def _times(pair: PairedNumbers, value: Expression) -> Expression:
    return call("multiply", coerced(pair.count, DOUBLE), value)


def _where(condition: Expression, value: Expression) -> Expression:
    """The value where a condition holds, else NULL."""
    return call("if", condition, value, Literal(None, value.type))


def _paired(formula: Callable[[PairedNumbers], Expression]) -> tuple[int, Formula]:
    return 2, lambda aggregating, given: formula(PairedNumbers(aggregating, given))


# -- of all values of a group


def _of_numbers(function: str) -> tuple[int, Formula]:
    def formula(aggregating: Aggregating, given: list[Expression]) -> Expression:
        return call(function, aggregating("collect_list", implicit(given[0], DOUBLE, function)))

    return 1, formula


def _of_sample(function: str, least: int) -> tuple[int, Formula]:
    """The skewness or the kurtosis that a sample lets expect of all; NULL of fewer values than it takes."""

    def formula(aggregating: Aggregating, given: list[Expression]) -> Expression:
        values = aggregating("collect_list", implicit(given[0], DOUBLE, function))
        n, moment = cast(call("size", values), DOUBLE), call(function, values)

        def less(by: int) -> Expression:
            return call("subtract", n, literal(float(by)))

        if function == "skewness_of":
            made = call("multiply", call("sqrt", call("multiply", n, less(1))), call("try_divide", moment, less(2)))
        else:
            inner = call("add", call("multiply", call("add", n, literal(1.0)), moment), literal(6.0))
            share = call("try_divide", less(1), call("multiply", less(2), less(3)))
            made = call("multiply", share, inner)
        return _where(call("greater_equal", n, literal(float(least))), made)

    return 1, formula


def _product(aggregating: Aggregating, given: list[Expression]) -> Expression:
    values = aggregating("collect_list", implicit(given[0], DOUBLE, "product"))
    return call("product_of", values)


def _counts(aggregating: Aggregating, given: list[Expression]) -> Expression:
    return call("counts_of", aggregating("collect_list", given[0]))


def _histogram(aggregating: Aggregating, given: list[Expression]) -> Expression:
    value, bins = given
    values = aggregating("collect_list", implicit(value, DOUBLE, "histogram_numeric"))
    made = call("histogram_of", values, bins)
    if not is_number(value.type) or value.type == DOUBLE:
        return made
    return cast(made, Array(Struct([Field("x", value.type), Field("y", DOUBLE)])))


def _union(aggregating: Aggregating, given: list[Expression]) -> Expression:
    return call("array_distinct", call("array_compact", call("flatten", aggregating("collect_list", given[0]))))


def _shape(aggregating: Aggregating, given: list[Expression]) -> Expression:
    return call("schema_of_variants", aggregating("collect_list", given[0]))


def _bitmap(function: str, type_: Type) -> tuple[int, Formula]:
    def formula(aggregating: Aggregating, given: list[Expression]) -> Expression:
        return call(function, aggregating("collect_list", implicit(given[0], type_, function)))

    return 1, formula


FORMULAS: Final[dict[str, tuple[int, Formula]]] = {
    "corr": _paired(_corr),
    "regr_count": _paired(lambda pair: pair.count),
    "regr_avgx": _paired(lambda pair: pair.of("avg", pair.x, pair.y)),
    "regr_avgy": _paired(lambda pair: pair.of("avg", pair.y, pair.x)),
    "regr_sxx": _paired(lambda pair: _times(pair, pair.variance(pair.x, pair.y))),
    "regr_syy": _paired(lambda pair: _times(pair, pair.variance(pair.y, pair.x))),
    "regr_sxy": _paired(lambda pair: _times(pair, pair.covariance)),
    "regr_slope": _paired(_slope),
    "regr_intercept": _paired(_intercept),
    "regr_r2": _paired(_r2),
    "skewness": _of_numbers("skewness_of"),
    "kurtosis": _of_numbers("kurtosis_of"),
    "kurtosis_pop": _of_numbers("kurtosis_of"),
    "product": (1, _product),
    "histogram": (1, _counts),
    "histogram_numeric": (2, _histogram),
    "collect_union": (1, _union),
    "schema_of_variant_agg": (1, _shape),
    "bitmap_construct_agg": _bitmap("bitmap_of", BIGINT),
    "bitmap_or_agg": _bitmap("bitmap_or_of", BINARY),
    "bitmap_and_agg": _bitmap("bitmap_and_of", BINARY),
}
_OF_DUCKDB: Final[dict[str, tuple[int, Formula]]] = {
    "skewness": _of_sample("skewness_of", 3),
    "kurtosis": _of_sample("kurtosis_of", 4),
}
