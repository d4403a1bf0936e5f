"""The aggregates and window functions of random queries, as tables like those of the operators."""

from __future__ import annotations

import random

from torture.random_sql.expressions import Expressions, Scope
from torture.random_sql.trees import ARRAY, BOOL, DATE, DEC, DOUBLE, INT, STR, TIME, TYPES, Call, Expr, Form

# (result, operand, Spark's words, DuckDB's or None, feature). %F is where FILTER goes, %A where its condition joins one
# that is there already.
Line = tuple[str, str | None, str, str | None, str | None]

_LISTED = "coalesce(list_sort(list({0}) FILTER (WHERE {0} IS NOT NULL%A), 'ASC', 'NULLS FIRST'), [])"
_LISTED_ONCE = "coalesce(list_sort(list(DISTINCT {0}) FILTER (WHERE {0} IS NOT NULL%A), 'ASC', 'NULLS FIRST'), [])"

AGGREGATES: list[Line] = [
    (INT, None, "count(*)%F", "count(*)%F", None),
    (INT, None, "count(*)%F", "count(*)%F", None),
    *((INT, kind, "count({0})%F", "count({0})%F", None) for kind in TYPES),
    *((INT, kind, "count(DISTINCT {0})%F", "count(DISTINCT {0})%F", "distinct_aggregates") for kind in TYPES),
    *(
        (kind, kind, f"{name}({{0}})%F", f"{name}({{0}})%F", None)
        for kind in TYPES
        if kind != ARRAY
        for name in ("min", "max")
    ),
    (INT, INT, "sum({0})%F", "sum({0})%F", None),
    (INT, INT, "sum(DISTINCT {0})%F", "sum(DISTINCT {0})%F", "distinct_aggregates"),
    (INT, BOOL, "count_if({0})%F", "coalesce(count_if({0})%F, 0)", None),
    (INT, INT, "bit_or({0})%F", "bit_or({0})%F", None),
    (DOUBLE, DOUBLE, "sum({0})%F", "sum({0})%F", None),
    (DOUBLE, INT, "avg({0})%F", "avg({0})%F", None),
    (DOUBLE, DOUBLE, "avg({0})%F", "avg({0})%F", None),
    (DOUBLE, INT, "avg(DISTINCT {0})%F", "avg(DISTINCT {0})%F", "distinct_aggregates"),
    (DOUBLE, INT, "stddev_samp({0})%F", "stddev_samp({0})%F", None),
    (DOUBLE, INT, "var_pop({0})%F", "var_pop({0})%F", None),
    (DEC, DEC, "sum({0})%F", "sum({0})%F", None),
    (DEC, DEC, "avg({0})%F", None, None),
    (BOOL, BOOL, "bool_and({0})%F", "bool_and({0})%F", None),
    (BOOL, BOOL, "some({0})%F", "bool_or({0})%F", None),
    (ARRAY, INT, "sort_array(collect_list({0})%F)", _LISTED, "aggregates_ordered"),
    (ARRAY, INT, "sort_array(collect_set({0})%F)", _LISTED_ONCE, "aggregates_ordered"),
    (
        STR,
        STR,
        "listagg({0}, ',') WITHIN GROUP (ORDER BY {0})%F",
        "string_agg({0}, ',' ORDER BY {0})%F",
        "aggregates_ordered",
    ),
    (DOUBLE, INT, "median({0})%F", "median({0})%F", "percentiles"),
    (DOUBLE, INT, "percentile({0}, 0.25)%F", "quantile_cont({0}, 0.25)%F", "percentiles"),
    (INT, INT, "percentile_approx({0}, 0.5)%F", "quantile_disc({0}, 0.5)%F", "percentiles"),
    (DOUBLE, INT, "percentile_disc(0.4) WITHIN GROUP (ORDER BY {0})%F", "quantile_disc({0}, 0.4)%F", "percentiles"),
    (
        DOUBLE,
        INT,
        "percentile_disc(0.4) WITHIN GROUP (ORDER BY {0} DESC)%F",
        "- quantile_disc(- {0}, 0.4)%F",
        "percentiles",
    ),
    (
        DOUBLE,
        INT,
        "percentile_cont(0.3) WITHIN GROUP (ORDER BY {0} DESC)%F",
        "quantile_cont({0}, 0.7)%F",
        "percentiles",
    ),
]

_ROWS = ("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
         "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING")  # fmt: skip
_RANGES = ("", "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING")

# (result, operand, words, whether the order must be total, whether a frame may follow)
WINDOWS: list[tuple[str, str | None, str, bool, bool]] = [
    (INT, None, "row_number()", True, False),
    (INT, None, "rank()", False, False),
    (INT, None, "dense_rank()", False, False),
    (INT, None, "ntile(3)", True, False),
    (DOUBLE, None, "percent_rank()", False, False),
    (DOUBLE, None, "cume_dist()", False, False),
    (INT, None, "count(*)", False, True),
    (INT, INT, "sum({0})", False, True),
    (DOUBLE, INT, "avg({0})", False, True),
    (DEC, DEC, "sum({0})", False, True),
    *((INT, kind, "count({0})", False, True) for kind in (STR, DATE)),
    *(
        (kind, kind, f"{name}({{0}})", False, True)
        for kind in (INT, STR, DATE, TIME, DEC, DOUBLE)
        for name in ("min", "max")
    ),
    *((kind, kind, f"{name}({{0}})", True, False) for kind in TYPES for name in ("lag", "lead")),
    *((kind, kind, "lag({0}, 2)", True, False) for kind in (INT, STR)),
    *(
        (kind, kind, f"{name}({{0}})", True, True)
        for kind in (INT, STR, BOOL)
        for name in ("first_value", "last_value")
    ),
    (INT, INT, "nth_value({0}, 2)", True, True),
    (BOOL, BOOL, "bool_or({0})", False, True),
]


class Aggregates:
    """Makes aggregates and window functions over the columns in scope."""

    def __init__(self, chance: random.Random, features: frozenset[str], expressions: Expressions) -> None:
        self.chance, self.features, self.expressions = chance, features, expressions

    def aggregate(self, kind: str | None, scope: Scope, depth: int) -> Expr | None:
        """An aggregate, of a type if one is wanted and has any."""
        lines = [
            line
            for line in AGGREGATES
            if (kind is None or line[0] == kind) and (line[4] is None or line[4] in self.features)
        ]
        if not lines:
            return None
        result, operand, spark, duckdb, _ = self.chance.choice(lines)
        plain = scope.without_subqueries()
        args = () if operand is None else (self.expressions.expr(operand, plain, depth),)
        if "filters" in self.features and self.chance.random() < 0.2:
            args += (self.expressions.condition(plain, 1),)
            condition = f"{{{len(args) - 1}}}"
            spark, duckdb = (_filtered(text, condition) for text in (spark, duckdb))
        spark, duckdb = (text and text.replace("%F", "").replace("%A", "") for text in (spark, duckdb))
        assert spark is not None
        return Call(result, Form(spark, duckdb), args)

    def windows(self, types: tuple[str, ...], scope: Scope) -> list[Expr]:
        """Window functions or columns of these types.

        Only one of them may tell equal rows apart: two would, each in an order of its own.
        """
        telling = self.chance.randrange(len(types))
        made = [self._window(kind, scope, at == telling) for at, kind in enumerate(types)]
        return [each or self.expressions.leaf(kind, scope) for each, kind in zip(made, types, strict=True)]

    def _window(self, kind: str, scope: Scope, telling: bool) -> Expr | None:
        """A window function; if it may be `telling` equal rows apart, by an order of all columns."""
        lines = [line for line in WINDOWS if line[0] == kind and (telling or not line[3])]
        if not lines or not scope.columns:
            return None
        result, operand, words, total, framed = self.chance.choice(lines)
        args = [] if operand is None else [self.expressions.expr(operand, scope.without_subqueries(), 1)]
        partition = self.chance.sample(scope.columns, min(len(scope.columns), self.chance.choice([0, 1, 1, 2])))
        columns = list(scope.columns)
        self.chance.shuffle(columns)
        order = columns if total else columns[: self.chance.randint(0 if framed else 1, 2)]
        frame = self._frame(telling, total, order) if framed and "frames" in self.features else ""
        if frame.startswith("ROWS"):
            order = columns
        spark, duckdb = [], []
        for each in order:
            descending = self.chance.random() < 0.4
            place = f"{{{len(args) + len(partition) + len(spark)}}}"
            spark.append(f"{place} DESC" if descending else place)
            duckdb.append(f"{place} DESC NULLS LAST" if descending else f"{place} ASC NULLS FIRST")
            assert each is not None
        by = ", ".join(f"{{{len(args) + at}}}" for at in range(len(partition)))
        forms = [f"{words} OVER ({_window(by, ', '.join(terms), frame)})" for terms in (spark, duckdb)]
        return Call(result, Form(forms[0], forms[1]), (*args, *partition, *order))

    def _frame(self, telling: bool, total: bool, order: list[Expr]) -> str:
        if telling and (total or self.chance.random() < 0.5):
            return self.chance.choice(_ROWS)
        return self.chance.choice(_RANGES) if order else ""


def _filtered(text: str | None, condition: str) -> str | None:
    if text is None:
        return None
    return text.replace("%F", f" FILTER (WHERE {condition})").replace("%A", f" AND {condition}")


def _window(partition: str, order: str, frame: str) -> str:
    parts = [f"PARTITION BY {partition}" * bool(partition), f"ORDER BY {order}" * bool(order), frame]
    return " ".join(part for part in parts if part)
