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


def test_numbers_on_either_side_of_a_half_are_the_same(spark: SparkSession) -> None:
    apart = [(1, 0.1234565 - 1e-14), (2, -0.0), (3, 7.0)], [(1, 0.1234565 + 1e-14), (2, 0.0), (3, 7.0)]
    held, wanted = (spark.createDataFrame(rows, "k BIGINT, x DOUBLE") for rows in apart)
    assert compared("v", held, wanted)
    other = spark.createDataFrame([(1, 0.12346), (2, 0.0), (3, 7.0)], "k BIGINT, x DOUBLE")
    assert (compared("v", held, other).missing.count, compared("v", held, other).extra.count) == (1, 1)
