"""The registry of aggregates: the ones circuits compute, and their names in every language.

Two tables, read by all that deals with aggregates, and printed in the reference pages:

- `COMPUTED` has a line for everything that the operators compute: its law, its result's type, how it treats NULL.
- `AGGREGATES` has a line for every aggregate of plans: what is computed for it, the form of a call, its names in SQL,
  EDN, Datalog, PomoLogic and fluent queries, and what it is of no rows.

A new aggregate is a line in each (or in the second alone, if the operators compute it already), its computation in
`added`, `ordered` or `collected`, and its meaning in `everview.oracle.aggregates`.

>>> aggregate_of("STDDEV_SAMP").computed, aggregate_of("arg_max").name, computed("stddev").law
('stddev', 'max_by', 'linear')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from everview.operators.aggregate.result_types import (
    TypeRule,
    always,
    double_of_number,
    double_only,
    double_or_own,
    list_type,
    mean_type,
    only,
    own_integer,
    own_type,
    sum_type,
)
from everview.types import BIGINT, BOOLEAN, STRING

# linear: added up, row by row. end: the row at one end of an order. ordered: all rows of the group in an order.
# collected: all values of the group as a list. user: a function that the user wrote, of such lists.
Law = Literal["linear", "end", "ordered", "collected", "user"]
# what a linear aggregate adds up, besides how many values there are; products are of its two arguments
Summed = Literal["trues", "values", "squares", "products", "bits"]


# -- What circuits compute


@dataclass(frozen=True, slots=True)
class ComputedAggregate:
    """An aggregate as operators compute it. Its name never changes: circuits and state directories hold it."""

    name: str
    law: Law
    gives: TypeRule
    nullable: bool | None = None  # None: where the argument is
    sums: tuple[Summed, ...] = ()  # of a linear one
    options: tuple[str, ...] = ()  # that `Stream.aggregate` takes for it
    fraction: bool = False  # whether it takes a number from 0 to 1
    keeps_nulls: bool = False  # whether NULLs are among its values unless the call says otherwise
    also: tuple[str, ...] = ()  # other names that `Stream.aggregate` takes
    pair: bool = False  # whether it is of two columns, both NULL in the same rows
    # for the reference: a call as it is written, and of which values it gives which type
    written: str = ""
    says: tuple[tuple[str, str], ...] = ()

    @property
    def needs_order(self) -> bool:
        """Whether it is an end of an order that the call must say."""
        return self.law == "end" and "order" in self.options


_TWO_VALUES = "numbers, as a sample: divided by n − 1; NULL for fewer than two"
_POPULATION = "numbers, as the whole population: divided by n"

COMPUTED: Final[tuple[ComputedAggregate, ...]] = (
    ComputedAggregate(
        "count", "linear", always(BIGINT), False,
        written='`("count", x)`; `"count"` of rows', says=(("values that are not NULL", "`BIGINT NOT NULL`"),),
    ),
    ComputedAggregate(
        "sum", "linear", sum_type, sums=("values",),
        says=(
            ("integers", "`BIGINT`"),
            ("`DECIMAL(p,s)`", "`DECIMAL(p+10,s)`, at most 38 digits"),
            ("`FLOAT`, `DOUBLE`", "`DOUBLE`"),
            ("`INTERVAL`", "the column's type"),
        ),
    ),
    ComputedAggregate(
        "avg", "linear", mean_type, sums=("values",),
        says=(
            ("integers, `FLOAT`, `DOUBLE`", "`DOUBLE`"),
            ("`DECIMAL(p,s)`", "`DECIMAL(p+4,s+4)`, at most 38 digits"),
            ("`INTERVAL`, rounded with halves away from zero", "`INTERVAL` of months, or of days to seconds"),
        ),
    ),
    ComputedAggregate(
        "avg double", "linear", double_of_number, sums=("values",),
        says=(("numbers, `DECIMAL` too; the nearest to the exact mean", "`DOUBLE`"),),
    ),
    ComputedAggregate(
        "variance", "linear", double_of_number, True, ("values", "squares"), also=("variance samp",),
        says=((_TWO_VALUES, "`DOUBLE`"),),
    ),
    ComputedAggregate(
        "variance pop", "linear", double_of_number, True, ("values", "squares"), says=((_POPULATION, "`DOUBLE`"),)
    ),
    ComputedAggregate(
        "stddev", "linear", double_of_number, True, ("values", "squares"), also=("stddev samp",),
        says=((_TWO_VALUES, "`DOUBLE`"),),
    ),
    ComputedAggregate(
        "stddev pop", "linear", double_of_number, True, ("values", "squares"), says=((_POPULATION, "`DOUBLE`"),)
    ),
    ComputedAggregate(
        "bool_and", "linear", only(BOOLEAN), sums=("trues",), also=("every",),
        says=(("`BOOLEAN`: whether all are true", "`BOOLEAN`"),),
    ),
    ComputedAggregate(
        "bool_or", "linear", only(BOOLEAN), sums=("trues",), also=("any",),
        says=(("`BOOLEAN`: whether any is true", "`BOOLEAN`"),),
    ),
    *(
        ComputedAggregate(
            f"try {name}", "linear", gives, True, ("values",),
            says=(("numbers, as without `try`; NULL beyond the range of the type", "the same type"),),
        )
        for name, gives in (("sum", sum_type), ("avg", mean_type))
    ),
    *(
        ComputedAggregate(
            name, "linear", own_integer, sums=("bits",), says=(("integers, bit by bit", "the column's type"),)
        )
        for name in ("bit_and", "bit_or", "bit_xor")
    ),
    *(
        ComputedAggregate(
            name, "linear", double_only, True, ("values", "products"), pair=True, written=f'`("{name}", [x, y])`',
            says=((f"pairs of `DOUBLE`, both NULL in the same rows, {how}", "`DOUBLE`"),),
        )
        for name, how in (
            ("covariance", "as a sample: divided by n − 1; NULL for fewer than two"),
            ("covariance pop", "as the whole population: divided by n"),
        )
    ),
    ComputedAggregate("min", "end", own_type, says=(("the least value, of text too", "the column's type"),)),
    ComputedAggregate("max", "end", own_type, says=(("the greatest value, of text too", "the column's type"),)),
    ComputedAggregate(
        "first", "end", own_type, options=("order", "nulls"), keeps_nulls=True,
        written='`("first", x, {"order": …})`', says=(("the value of the first row in an order", "the column's type"),),
    ),
    ComputedAggregate(
        "last", "end", own_type, options=("order", "nulls"), keeps_nulls=True,
        written='`("last", x, {"order": …})`', says=(("the value of the last row in an order", "the column's type"),),
    ),
    ComputedAggregate(
        "percentile", "ordered", double_of_number, options=("order",), fraction=True,
        written='`("percentile", x, 0.9)`; `("median", x)` at 0.5',
        says=(("of n values the one at place 0.9 · (n − 1), from 0; between two, in proportion", "`DOUBLE`"),),
    ),
    ComputedAggregate(
        "percentile discrete", "ordered", double_or_own, options=("order",), fraction=True,
        says=((
            "the first value at whose place, from 1, at least 0.9 · n are there",
            "`DOUBLE`; of what are no numbers, the column's type",
        ),),
    ),
    ComputedAggregate(
        "quantile", "ordered", own_type, options=("order",), fraction=True,
        says=(("the same value, as it is", "the column's type"),),
    ),
    ComputedAggregate(
        "mode", "ordered", own_type, options=("order",),
        says=(("the most frequent value; of several, the first in the order", "the column's type"),),
    ),
    ComputedAggregate(
        "array", "collected", list_type, False, options=("order", "nulls"),
        says=(("all values", "`ARRAY<…> NOT NULL`"),),
    ),
    ComputedAggregate(
        "string", "collected", only(STRING), options=("order", "separator"),
        written='`("string", x, {"separator": ", "})`',
        says=(("all texts, with a separator between them", "`STRING`"),),
    ),
    ComputedAggregate("user", "user", own_type, keeps_nulls=True),
)  # fmt: skip
_COMPUTED: Final = {line.name: line for line in COMPUTED}


def computed(name: str) -> ComputedAggregate:
    """The line of `COMPUTED` with this name."""
    return _COMPUTED[name]


def computed_under(law: Law) -> tuple[str, ...]:
    """The names of all aggregates that follow one law."""
    return tuple(line.name for line in COMPUTED if line.law == law)


# -- What languages call it

# How a call of a plan is made of its arguments, its order and its filter; SQL, lowering and the oracle each know all.
Form = Literal[
    "count",  # of rows, of values, of different combinations of values
    "count if",  # of rows where a condition holds
    "count different",  # of different values, which SQL calls approximate
    "values",  # of one value, in no order
    "different values",  # the same, and once each is as good as all of them
    "end",  # the first or last of an order
    "by",  # a value where another one is least or greatest
    "percentile",  # of a value at a share
    "median",  # of a value at the share of a half
    "mode",
    "array",  # of values without NULL
    "array with nulls",
    "set",  # of different values
    "text",  # of texts and a separator
    "grouping",  # which keys a grouping set leaves out: no aggregate of rows
    "pair",  # of two values, where neither is NULL
    "derived",  # a formula of other aggregates: no call of a plan
]
Takes = Literal["anything", "numbers", "truths", "texts", "integers"]


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate of plans under its name there, with the names that languages have for it (words apart)."""

    name: str
    computed: str
    form: Form
    takes: Takes = "anything"
    of_nothing: Any = None  # what it is of no rows; a list is ``()`` here
    sql: str = ""
    duckdb: str = ""  # the name in plans of what DuckDB's dialect means by it, where that differs
    edn: str = ""
    datalog: str = ""
    pomologic: str = ""  # and PomoRA's
    fluent: str = ""
    # for the reference: calls as SQL writes them, and what they give
    written: str = ""
    says: str = ""

    @property
    def over_windows(self) -> bool:
        """Whether there is one over windows: of all that are aggregates of rows."""
        return bool(self.sql) and self.form != "grouping"

    @property
    def by_spans(self) -> bool:
        """Whether windows compute it from running sums and ranks: linear aggregates and ends, of one value."""
        if self.form in ("by", "grouping", "count different", "pair", "derived"):
            return False
        return computed(self.computed).law in ("linear", "end")

    @property
    def nullable(self) -> bool:
        """Whether it may be NULL of some rows although no argument is."""
        return self.form == "by"


_LISTS = "all values without NULLs; in no promised order in Spark, here in that of the values or of the call"
_BETWEEN = "between two values in proportion, a `DOUBLE`"
_END = (
    "without an order any value will do: the least, and for `last` the greatest; with `first(x ORDER BY y)` the one "
    "that is asked for"
)
_BY = (
    "x where y is greatest or least; of several such rows the one with the greatest or least x, or the first in an "
    "order inside of the call; with a constant n an array of the n first such values, NULL if there are none"
)
_GROUPING = "which keys a row of `ROLLUP`, `CUBE` or `GROUPING SETS` leaves out"

_TRIED = "as without `try_`; NULL beyond the range of the type"
_MOMENTS = "of all values; in DuckDB's dialect what a sample lets expect, NULL of fewer than three or four"
_READ_WHOLE = "a group that changes is read as a whole"


# What aggregates of sketches give, and how they are called.
_SKETCHES: Final[tuple[tuple[str, tuple[tuple[str, str], ...]], ...]] = (
    (
        "an HLL [sketch](sketches.md) of the different integers, texts or bytes",
        (("hll_sketch_agg", "x[, lgConfigK]"), ("hll_union_agg", "sketch[, allowDifferentLgConfigK]")),
    ),
    (
        "a theta [sketch](sketches.md) of the different integers, floats, texts, bytes or arrays of integers",
        (
            *(("theta_sketch_agg", "x[, lgNomEntries]"), ("theta_union_agg", "sketch[, lgNomEntries]")),
            ("theta_intersection_agg", "sketch"),
        ),
    ),
    (
        "a KLL [sketch](sketches.md) of the numbers, for quantiles",
        (
            *((f"kll_sketch_agg_{kind}", "x[, k]") for kind in ("bigint", "double", "float")),
            *((f"kll_merge_agg_{kind}", "sketch[, k]") for kind in ("bigint", "double", "float")),
        ),
    ),
    (
        "an array of the most frequent values and how often they are there, exactly; those as frequent in their order, "
        "NULL last",
        (("approx_top_k", "x[, k[, maxItemsTracked]]"),),
    ),
)


def _paired(written: str) -> dict[str, str]:
    return {"written": f"`{written}`", "says": "of pairs without NULL, as `DOUBLE`; from exact sums"}


AGGREGATES: Final[tuple[AggregateFunction, ...]] = (
    AggregateFunction(
        "count", "count", "count", of_nothing=0, sql="count", edn="count", datalog="count", pomologic="count",
        fluent="count", written="`count(*)`, `count(x, …)`",
    ),
    AggregateFunction("count_if", "count", "count if", "truths", 0, sql="count_if", written="`count_if(c)`"),
    AggregateFunction(
        "approx_count_distinct", "count", "count different", of_nothing=0, sql="approx_count_distinct",
        edn="count-distinct", says="the exact number",
    ),
    AggregateFunction(
        "sum", "sum", "values", "numbers", sql="sum", edn="sum", datalog="sum", pomologic="sum", fluent="sum"
    ),
    AggregateFunction(
        "min", "min", "different values", sql="min", edn="min", datalog="min", pomologic="min", fluent="min"
    ),
    AggregateFunction(
        "max", "max", "different values", sql="max", edn="max", datalog="max", pomologic="max", fluent="max"
    ),
    AggregateFunction(
        "avg", "avg", "values", "numbers", sql="avg mean", duckdb="avg_double", edn="avg", datalog="mean average",
        fluent="avg", says="of a `DECIMAL` a `DECIMAL`, in DuckDB's dialect the `DOUBLE` nearest to the exact mean",
    ),
    AggregateFunction("avg_double", "avg double", "values", "numbers"),
    AggregateFunction("median", "percentile", "median", "numbers", sql="median", edn="median", says=_BETWEEN),
    AggregateFunction("variance", "variance", "values", "numbers", sql="variance var_samp"),
    AggregateFunction("var_pop", "variance pop", "values", "numbers", sql="var_pop", edn="variance"),
    AggregateFunction("stddev", "stddev", "values", "numbers", sql="stddev stddev_samp std"),
    AggregateFunction("stddev_pop", "stddev pop", "values", "numbers", sql="stddev_pop", edn="stddev"),
    AggregateFunction("try_sum", "try sum", "values", "numbers", sql="try_sum", says=_TRIED),
    AggregateFunction("try_avg", "try avg", "values", "numbers", sql="try_avg", says=_TRIED),
    AggregateFunction("bit_and", "bit_and", "values", "integers", sql="bit_and"),
    AggregateFunction("bit_or", "bit_or", "values", "integers", sql="bit_or"),
    AggregateFunction("bit_xor", "bit_xor", "values", "integers", sql="bit_xor"),
    AggregateFunction("covar_pop", "covariance pop", "pair", "numbers", sql="covar_pop", **_paired("covar_pop(x, y)")),
    AggregateFunction("covar_samp", "covariance", "pair", "numbers", sql="covar_samp", **_paired("covar_samp(x, y)")),
    *(
        AggregateFunction(name, "", "derived", "numbers", sql=name, **_paired(f"{name}({arguments})"))
        for name, arguments in {
            "corr": "x, y", "regr_count": "y, x", "regr_avgx": "y, x", "regr_avgy": "y, x", "regr_sxx": "y, x",
            "regr_sxy": "y, x", "regr_syy": "y, x", "regr_slope": "y, x", "regr_intercept": "y, x", "regr_r2": "y, x",
        }.items()
    ),
    *(
        AggregateFunction(name, "", "derived", "numbers", sql=name, says=f"{_MOMENTS}; {_READ_WHOLE}")
        for name in ("skewness", "kurtosis")
    ),
    AggregateFunction("kurtosis_pop", "", "derived", "numbers", sql="kurtosis_pop", says=f"of all; {_READ_WHOLE}"),
    AggregateFunction(
        "product", "", "derived", "numbers", sql="product",
        says=f"a `DOUBLE`, multiplied from the least value to the greatest; {_READ_WHOLE}",
    ),
    AggregateFunction(
        "histogram", "", "derived", sql="histogram",
        says=f"a map from each value to how often it is there, NULL of no values; {_READ_WHOLE}",
    ),
    AggregateFunction("schema_of_variant_agg", "", "derived", sql="schema_of_variant_agg", says=_READ_WHOLE),
    AggregateFunction(
        "histogram_numeric", "", "derived", "numbers", sql="histogram_numeric",
        written="`histogram_numeric(x, bins)`", says=f"values are put in from the least to the greatest; {_READ_WHOLE}",
    ),
    AggregateFunction(
        "collect_union", "", "derived", sql="collect_union",
        says="the different elements of all arrays, in the order of the arrays and of their elements",
    ),
    AggregateFunction(
        "bitmap_construct_agg", "", "derived", sql="bitmap_construct_agg",
        says=f"the bits at these places, from 0, of 4,096 bytes; {_READ_WHOLE}",
    ),
    *(
        AggregateFunction(name, "", "derived", sql=name, says=f"of 4,096 bytes; {_READ_WHOLE}")
        for name in ("bitmap_or_agg", "bitmap_and_agg")
    ),
    *(
        AggregateFunction(name, "", "derived", sql=name, written=f"`{name}({of})`", says=f"{says}; {_READ_WHOLE}")
        for says, calls in _SKETCHES
        for name, of in calls
    ),
    AggregateFunction("bool_and", "bool_and", "different values", "truths", sql="bool_and every"),
    AggregateFunction("bool_or", "bool_or", "different values", "truths", sql="bool_or some any"),
    AggregateFunction("first", "first", "end", sql="first first_value any_value arbitrary", says=_END),
    AggregateFunction("last", "last", "end", sql="last last_value", says=_END),
    AggregateFunction("max_by", "last", "by", sql="max_by arg_max argmax", written="`max_by(x, y[, n])`", says=_BY),
    AggregateFunction("min_by", "first", "by", sql="min_by arg_min argmin", written="`min_by(x, y[, n])`", says=_BY),
    AggregateFunction(
        "percentile_cont", "percentile", "percentile", "numbers", sql="percentile_cont percentile quantile_cont",
        written="`percentile(x, p)`, `percentile_cont(p) WITHIN GROUP (ORDER BY x)`", says=_BETWEEN,
    ),
    AggregateFunction(
        "percentile_disc", "percentile discrete", "percentile", sql="percentile_disc", duckdb="percentile_approx",
        written="`percentile_disc(p) WITHIN GROUP (ORDER BY x DESC)`",
        says="a value of the data, as a `DOUBLE`; in DuckDB's dialect in its own type",
    ),
    AggregateFunction(
        "percentile_approx", "quantile", "percentile",
        sql="percentile_approx approx_percentile approx_quantile quantile_disc quantile",
        written="`percentile_approx(x, p[, accuracy])`",
        says="a value of the data in its own type; exact, whatever the accuracy",
    ),
    AggregateFunction(
        "mode", "mode", "mode", sql="mode", written="`mode(x)`, `mode() WITHIN GROUP (ORDER BY x DESC)`",
        says="the most frequent value; of several, the first in the order, or the least",
    ),
    AggregateFunction(
        "collect_list", "array", "array", of_nothing=(), sql="collect_list array_agg list", fluent="array", says=_LISTS
    ),
    AggregateFunction("list", "array", "array with nulls", of_nothing=()),
    AggregateFunction("collect_set", "array", "set", of_nothing=(), sql="collect_set", edn="distinct", says=_LISTS),
    AggregateFunction(
        "listagg", "string", "text", "texts", sql="listagg string_agg group_concat",
        written="`listagg(x[, separator]) WITHIN GROUP (ORDER BY y)`",
        says="texts joined; without a separator by nothing, in DuckDB's dialect by a comma",
    ),
    AggregateFunction("grouping", "", "grouping", sql="grouping", says=_GROUPING),
    AggregateFunction("grouping_id", "", "grouping", sql="grouping_id", written="`grouping_id(…)`", says=_GROUPING),
)  # fmt: skip


def aggregates_of(language: Literal["sql", "edn", "datalog", "pomologic", "fluent"]) -> dict[str, AggregateFunction]:
    """The aggregates of a language by their names there, in the order of the registry."""
    return {name: line for line in AGGREGATES for name in str(getattr(line, language)).split()}


# A plan may say any name of SQL; where SQL means another aggregate by a name of plans, the plan's own counts.
IN_PLANS: Final[dict[str, AggregateFunction]] = {**aggregates_of("sql"), **{line.name: line for line in AGGREGATES}}


def aggregate_of(name: str) -> AggregateFunction:
    """The aggregate that a plan means by a name: one of its own names, or one of SQL's."""
    return IN_PLANS[name.lower()]


def plan_name(function: str) -> str:
    """The name in plans of the first aggregate that is computed by this function of circuits."""
    return next(line.name for line in AGGREGATES if line.computed == function)
