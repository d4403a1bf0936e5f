"""Comparing a view with what Spark computes: counts and examples of both sides, in any case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.spark.verifying import compared
from everview.verify import Rest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_are_counted_on_both_sides_and_differences_named(spark: SparkSession) -> None:
    schema = "`a.b` BIGINT, `a b` STRING, x DOUBLE, m MAP<STRING, INT>"
    held = spark.createDataFrame([(1, None, 0.1, {"k": 1}), (1, None, 0.1, {"k": 1}), (2, "x", 5.0, None)], schema)
    wanted = spark.createDataFrame([(1, None, 0.1 + 1e-12, {"k": 1}), (2, "x", 5.0, None), (3, "y", None, {})], schema)
    found = compared("v", held, wanted)
    assert (found.rows, found.expected, found.missing.count, found.extra.count) == (3, 3, 1, 1)
    assert [row[:2] for row, _ in found.missing.examples] == [(3, "y")]
    assert [row[:2] for row, _ in found.extra.examples] == [(1, None)]
    same = compared("v", held, held)
    assert (same.rows, same.expected, same.missing, same.extra) == (3, 3, Rest(), Rest())
    nothing = compared("v", held.limit(0), held.limit(0))
    assert (nothing.rows, nothing.expected, nothing.missing.count) == (0, 0, 0)
