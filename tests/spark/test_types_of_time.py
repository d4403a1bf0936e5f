"""Intervals, times of day and timestamps without a zone on Spark: in, through views, and out again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.spark import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIME_TYPE = "spark.sql.timeType.enabled"
ROWS = """
    (1, 'a', INTERVAL '1 02:03:04.5' DAY TO SECOND, INTERVAL '1-2' YEAR TO MONTH, INTERVAL '3' DAY, TIME'12:30:00.25',
     TIMESTAMP_NTZ'2024-03-10 02:30:00'),
    (2, 'a', INTERVAL '-0 00:00:00.000001' DAY TO SECOND, INTERVAL '-0-5' YEAR TO MONTH, INTERVAL '-1' DAY,
     TIME'00:00:00', TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'),
    (3, 'b', NULL, NULL, NULL, NULL, NULL)
"""
QUERY = """
    SELECT k, sum(d) AS s, avg(d) AS a, sum(m) AS sm, avg(m) AS am, sum(w) AS sw, max(d + w) AS most, min(at) AS first,
        max(at + INTERVAL '1' HOUR) AS later, max(n) AS last, max(n - TIMESTAMP_NTZ'2024-01-01 00:00:00') AS since,
        count(CASE WHEN d > INTERVAL '0' SECOND THEN 1 END) AS positive, max(CAST(d AS STRING)) AS text
    FROM t GROUP BY k
"""


@pytest.fixture
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    before = spark.conf.get(TIME_TYPE)
    spark.conf.set(TIME_TYPE, "true")
    made = spark.sql(f"SELECT * FROM VALUES {ROWS} AS t(id, k, d, m, w, at, n)")
    made.createOrReplaceTempView("t")
    yield made
    spark.catalog.dropTempView("t")
    spark.conf.set(TIME_TYPE, str(before))


def texts(frame: DataFrame) -> list[tuple[str | None, ...]]:
    """The rows as Spark writes them, whatever Python makes of their types."""
    return sorted(tuple(row) for row in frame.selectExpr(*(f"CAST(`{c}` AS STRING)" for c in frame.columns)).collect())


def test_types_of_time_are_those_of_spark(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    p = Pipeline(spark, tmp_path / "state", place="cluster", shards=2)
    p.source("t", frame, key="id", changes="upsert")
    p.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    p.sql("CREATE MATERIALIZED VIEW whole AS SELECT id, d, m, w, at FROM t")
    p.refresh()
    theirs = spark.sql(QUERY)
    ours = p.view("v")
    # As there is no type of a source for it, a timestamp without a zone is one in UTC.
    for name, type_ in theirs.dtypes:
        assert dict(ours.dtypes)[name] == {"timestamp_ntz": "timestamp"}.get(type_, type_), name
    assert texts(ours) == texts(theirs)
    whole = p.view("whole")
    assert whole.dtypes == frame.select("id", "d", "m", "w", "at").dtypes
    assert texts(whole) == texts(frame.select("id", "d", "m", "w", "at"))
    p.verify().raise_if_different()
    p.close()


def test_a_schema_that_says_so_keeps_timestamps_without_a_zone(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    p = Pipeline(spark, tmp_path / "state", place="driver")
    p.source("t", frame.select("id", "n", "at"), key="id", changes="upsert", schema="id INT, n TIMESTAMP_NTZ, at TIME")
    p.sql("CREATE MATERIALIZED VIEW v AS SELECT id, n + INTERVAL '1' MONTH AS next, at FROM t")
    p.refresh()
    theirs = spark.sql("SELECT id, n + INTERVAL '1' MONTH AS next, at FROM t")
    stored = spark.read.format("everview").option("view", "v").load(str(tmp_path / "state"))
    for ours in (p.view("v"), stored):
        assert ours.dtypes == theirs.dtypes
        assert texts(ours) == texts(theirs)
    p.close()
