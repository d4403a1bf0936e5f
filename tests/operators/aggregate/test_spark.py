"""Aggregates have the values, types and NULLs that Spark gives them."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import everview as ev
from everview.circuit import Circuit, incrementalize
from everview.runtimes.embedded import Embedded
from everview.types import type_of_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "g INT, x BIGINT, y DOUBLE, z STRING, b BOOLEAN, at INT"

# what is written, and the same in SQL
CALLS: dict[str, tuple[Any, str]] = {
    "n": ("count", "count(*)"),
    "dx": (("count distinct", "x"), "count(DISTINCT x)"),
    "dxz": (("count distinct", ["x", "z"]), "count(DISTINCT x, z)"),
    "sd": (("sum distinct", "x"), "sum(DISTINCT x)"),
    "ad": (("avg distinct", "x"), "avg(DISTINCT x)"),
    "v": (("variance", "y"), "variance(y)"),
    "vp": (("variance pop", "y"), "var_pop(y)"),
    "s": (("stddev", "x"), "stddev(x)"),
    "sp": (("stddev pop", "x"), "stddev_pop(x)"),
    "every": (("bool_and", "b"), "bool_and(b)"),
    "some": (("bool_or", "b"), "bool_or(b)"),
    "xs": (("array", "x"), "sort_array(array_agg(x))"),
    "zs": (("array distinct", "z"), "sort_array(collect_set(z))"),
    "text": (("string", "z", {"order": "z desc"}), "listagg(z) WITHIN GROUP (ORDER BY z DESC)"),
    "text_d": (
        ("string distinct", "z", {"separator": ", "}),
        "if(count(z) = 0, NULL, array_join(sort_array(collect_set(z)), ', '))",
    ),
    "med": (("median", "y"), "median(y)"),
    "p": (("percentile", "x", 0.31), "percentile(x, 0.31D)"),
    "pd": (("percentile discrete", "x", 0.07), "percentile_disc(0.07D) WITHIN GROUP (ORDER BY x)"),
    "pdd": (
        ("percentile discrete", "y", 0.7, {"order": "y desc"}),
        "percentile_disc(0.7D) WITHIN GROUP (ORDER BY y DESC)",
    ),
    "q": (("quantile", "x", 0.31), "percentile_approx(x, 0.31D)"),
    "qd": (("quantile", "y", 0.5), "percentile_approx(y, 0.5D)"),
    "often": (("mode", "x"), "mode(x, true)"),
    "often_z": (("mode", "z", {"order": "z desc"}), "mode() WITHIN GROUP (ORDER BY z DESC)"),
    "f": (("first", "x", {"order": ["at"]}), "min_by(x, struct(at, x))"),
    "l": (("last", "z", {"order": ["at"]}), "max_by(z, struct(at, z))"),
}


# aggregates of SQL that are formulas of others, or of pairs
WRITTEN = (
    "covar_pop(x, y)", "covar_samp(x, y)", "corr(x, y)", "regr_count(x, y)", "regr_avgx(x, y)", "regr_avgy(x, y)",
    "regr_sxx(x, y)", "regr_sxy(x, y)", "regr_syy(x, y)", "regr_slope(x, y)", "regr_intercept(x, y)", "regr_r2(x, y)",
    "skewness(x)", "kurtosis(x)", "bit_and(x)", "bit_or(at)", "bit_xor(x)", "try_sum(x)", "try_avg(y)",
    "try_sum(x + 9223372036854775000)", "covar_pop(x, y) FILTER (WHERE b)", "sort_array(collect_union(array(x, at)))",
)  # fmt: skip


def rows_of(chance: random.Random) -> list[tuple[Any, ...]]:
    domains: list[list[Any]] = [
        [1, 2, 3, None],
        [*range(-3, 9), None],
        [0.5, 1.25, -3.0, 1e10, None],
        ["", "a", "ab", "ä", None],
        [True, False, None],
        [0, 1, 2],
    ]
    some = [tuple(map(chance.choice, domains)) for _ in range(150)]
    alone = [(4, 1, 2.0, "a", True, 0), (5, None, None, None, None, 0), (6, 1, math.inf, "b", False, 1)]
    return [*some, *alone]


def test_aggregates_are_those_of_spark(spark: SparkSession) -> None:
    rows = rows_of(random.Random(5))
    spark.createDataFrame(rows, SCHEMA).createOrReplaceTempView("rows")
    # Spark cannot plan distinct and ordered aggregates together.
    distinct = [name for name, (_, sql) in CALLS.items() if "DISTINCT" in sql]
    for names in (distinct, [name for name in CALLS if name not in distinct]):
        view = run_of(rows, names).view("found")
        columns = ", ".join(f"{CALLS[name][1]} AS {name}" for name in names)
        wanted = spark.sql(f"SELECT g, {columns} FROM rows GROUP BY g")
        types = [spelled(f.dataType.simpleString()) for f in wanted.schema.fields]
        assert [f.type.sql for f in view.schema.fields] == types
        found = {row[0]: row[1:] for row in view.rows()}
        assert len(found) == 7
        for g, *values in wanted.collect():
            for name, a, b in zip(names, found[g], values, strict=True):
                assert same(a, b), f"{name} in group {g}: {a} here, {b} in Spark"


def run_of(rows: list[tuple[Any, ...]], names: list[str]) -> Embedded:
    circuit = Circuit()
    source = circuit.source("rows", SCHEMA)
    source.aggregate(["g"], **{name: CALLS[name][0] for name in names}).sink("found")
    run = Embedded(incrementalize(circuit))
    run.tick({"rows": [(row, 1) for row in rows[::2]]})
    run.tick({"rows": [(row, 1) for row in rows[1::2]]})
    return run


def spelled(spark_type: str) -> str:
    return "INTEGER" if spark_type == "int" else spark_type.upper()


def same(a: Any, b: Any) -> bool:
    """Spark's variances are not exact."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) or (math.isnan(a) and math.isnan(b))
    return a == b


def test_formulas_are_those_of_spark(spark: SparkSession) -> None:
    """Of rows that came and of which some went, in a kept view."""
    chance = random.Random(7)
    # Spark's own sums lose small numbers beside large ones.
    rows, gone = ([row for row in rows_of(chance) if row[2] not in (math.inf, 1e10)] for _ in range(2))
    spark.createDataFrame(rows, SCHEMA).createOrReplaceTempView("rows")
    query = f"SELECT g, {', '.join(f'{text} AS c{at}' for at, text in enumerate(WRITTEN))} FROM rows GROUP BY g"
    db = ev.connect()
    db.sql(f"CREATE TABLE rows ({SCHEMA})")
    db.sql(f"CREATE MATERIALIZED VIEW found AS {query}")
    with db.transaction() as change:
        change.insert("rows", rows + gone)
    with db.transaction() as change:
        change.delete("rows", gone)
    wanted = spark.sql(query)
    view = db.view("found").to_arrow()
    assert [str(type_of_arrow(field.type)) for field in view.schema] == [
        spelled(f.dataType.simpleString()) for f in wanted.schema.fields
    ]
    found = {row["g"]: list(row.values())[1:] for row in view.to_pylist()}
    for g, *values in wanted.collect():
        for text, a, b in zip(WRITTEN, found[g], values, strict=True):
            assert same(a, b), f"{text} in group {g}: {a} here, {b} in Spark"
    assert db.verify()
