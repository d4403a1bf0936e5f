"""A pipeline in the time zone of its session: views mean what Spark SQL means, and the state keeps the zone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from everview.errors import EverviewError, ForeignState, PipelineError
from everview.spark import Pipeline
from everview.spark.zones import SETTING, zone_of_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW = """
    CREATE MATERIALIZED VIEW v AS
    SELECT CAST(at AS DATE) AS day, max(hour(at)) AS h, min(date_trunc('DAY', at)) AS begins,
        max(at + INTERVAL 1 DAY) AS later, count_if(at >= TIMESTAMP'2024-03-31 00:00:00') AS n,
        max(date_format(at, 'yyyy-MM-dd HH:mm')) AS shown
    FROM t GROUP BY CAST(at AS DATE)
"""


@pytest.fixture
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    before = str(spark.conf.get(SETTING))
    spark.conf.set(SETTING, "Europe/Berlin")
    moments = ("2024-03-30T23:30:00Z", "2024-03-31T00:30:00Z", "2024-03-31T01:30:00Z", "2024-10-27T00:30:00Z")
    rows = ", ".join(f"({n}, TIMESTAMP'{moment}')" for n, moment in enumerate(moments))
    yield spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, at)")
    spark.conf.set(SETTING, before)


@pytest.mark.spark
def test_views_are_in_the_zone_of_the_session(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    with Pipeline(spark, tmp_path, shards=2, place="driver") as p:
        p.source("t", frame, key="id", changes="upsert")
        p.sql(VIEW)
        p.refresh()
        p.verify().raise_if_different()
        days = sorted((str(row.day), row.h, row.n, row.shown) for row in p.view("v").collect())
        assert days == [("2024-03-31", 3, 3, "2024-03-31 03:30"), ("2024-10-27", 2, 1, "2024-10-27 02:30")]
        spark.conf.set(SETTING, "Asia/Tokyo")
        for act in (p.verify, p.refresh, p.start):
            with pytest.raises(PipelineError, match="is Asia/Tokyo by now"):
                act()
    q = Pipeline(spark, tmp_path, place="driver")
    q.source("t", frame, key="id", changes="upsert")
    q.sql(VIEW)
    with pytest.raises(ForeignState, match="made in the time zone Europe/Berlin"):
        q.refresh()
    spark.conf.set(SETTING, "Europe/Berlin")
    with Pipeline(spark, tmp_path, place="driver") as p:
        p.source("t", frame, key="id", changes="upsert")
        p.sql(VIEW)
        assert sorted(str(row.day) for row in p.view("v").collect()) == ["2024-03-31", "2024-10-27"]


@pytest.mark.spark
def test_days_and_months_before_now_are_those_of_the_zone(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    """After each move of the clock a view has what Spark SQL has at that moment."""
    conditions = {"days": "at > {} - INTERVAL 1 DAY", "months": "at <= {} - INTERVAL 1 MONTH"}
    with Pipeline(spark, tmp_path, shards=2, place="driver") as p:
        p.source("t", frame, key="id", changes="upsert")
        for name, condition in conditions.items():
            p.sql(f"CREATE MATERIALIZED VIEW {name} AS SELECT id FROM t WHERE {condition.format('now()')}")
        p.advance(dt.datetime(2024, 3, 30))
        p.refresh()
        frame.createOrReplaceTempView("moments_of_clocks")
        for now in ("2024-04-01 00:00:00", "2024-04-01 00:45:00", "2024-04-30 00:45:00", "2024-11-27 01:30:00"):
            p.advance(dt.datetime.fromisoformat(now))
            p.refresh()
            for name, condition in conditions.items():
                asked = condition.format(f"TIMESTAMP'{now}Z'")
                wanted = spark.sql(f"SELECT id FROM moments_of_clocks WHERE {asked}").collect()
                assert sorted(p.view(name).collect()) == sorted(wanted), (name, now)


def test_an_unknown_zone_is_named() -> None:
    def session(zone: str) -> Any:
        return SimpleNamespace(conf=SimpleNamespace(get=lambda _: zone))

    assert [zone_of_session(session(zone)) for zone in ("Etc/UTC", "+00:00", "Asia/Tokyo")] == [
        "UTC",
        "UTC",
        "Asia/Tokyo",
    ]
    with pytest.raises(EverviewError, match="Mars/Base"):
        zone_of_session(session("Mars/Base"))
