"""Random SQL, kept as views by Everview and compared with DuckDB and Spark after ticks of random changes.

`trees` and `clauses` are queries that can be written for each engine, `queries` makes them from a seed, `engines` asks
them, `judge` tells faults from the engines' known differences, `reduce` makes a failing case small, and `trial` runs
batches for a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torture.outcome import Outcome
from torture.random_sql.engines import Spark
from torture.random_sql.features import FEATURES
from torture.random_sql.trial import Trial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FEATURES", "Trial", "compare", "run"]


def run(seconds: float, seed: int) -> Outcome:
    """Compare random queries with DuckDB and with a Spark session of this trial's own until the time is over."""
    from everview.spark import session

    spark = session("local[2]", memory="1g")
    spark.sparkContext.setLogLevel("OFF")
    try:
        return compare(seconds, seed, spark)
    finally:
        spark.stop()


def compare(
    seconds: float, seed: int, spark: SparkSession | None = None, features: frozenset[str] = FEATURES
) -> Outcome:
    """Compare random queries until the time is over; with Spark too where a session is given."""
    return Trial(None if spark is None else Spark(spark), features).run(seconds, seed)
