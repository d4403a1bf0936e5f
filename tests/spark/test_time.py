"""Time on Spark: a clock that the pipeline reads at every refresh, and windows of event time as Spark has them."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.errors import EverviewError, PipelineError
from everview.spark import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = dt.datetime(2030, 1, 1, 12)
HOUR = dt.timedelta(hours=1)
SCHEMA = "id BIGINT, k STRING, ts TIMESTAMP"
RECENT = "CREATE MATERIALIZED VIEW recent AS SELECT id FROM t WHERE ts > now() - INTERVAL 1 HOUR AND ts <= now()"


def rows(spark: SparkSession, *minutes: int | None) -> DataFrame:
    given = [(n, "ab"[n % 2], None if m is None else START + m * HOUR / 60) for n, m in enumerate(minutes)]
    return spark.createDataFrame(given, SCHEMA)


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_rows_come_and_go_as_the_clock_is_told(spark: SparkSession, tmp_path: Path, place: str) -> None:
    def pipeline() -> Pipeline:
        p = Pipeline(spark, tmp_path / "state", place=place, shards=3)
        p.source("t", rows(spark, -50, 10, 20, 70, None), key="id", changes="upsert")
        p.sql(RECENT)
        p.sql("CREATE MATERIALIZED VIEW busy AS SELECT k, count(*) AS n FROM t WHERE ts > now() GROUP BY k")
        return p

    held: list[list[int]] = []
    p = pipeline()
    for hours in (0, 1):
        p.advance(START + hours * HOUR)
        p.refresh()
        held.append(sorted(row.id for row in p.view("recent").collect()))
        p.verify().raise_if_different()
    p.close()
    p = pipeline()  # the time is part of the state
    assert sorted(row.id for row in p.view("recent").collect()) == held[-1]
    p.advance(START + 2 * HOUR)
    held.append(sorted(row.id for row in p.view("recent").collect()))
    assert [tuple(row) for row in p.view("busy").collect()] == []
    p.verify().raise_if_different()
    p.close()
    assert held == [[0], [1, 2], [3]]


def test_a_stream_reads_the_time_at_every_trigger(spark: SparkSession, tmp_path: Path) -> None:
    def feed(number: int, moment: dt.datetime) -> None:
        (tmp_path / "in" / f"{number}.json").write_text(json.dumps({"id": number, "ts": moment.isoformat()}))

    (tmp_path / "in").mkdir()
    p = Pipeline(spark, tmp_path / "state", place="driver")
    p.source(
        "t", spark.readStream.schema("id BIGINT, ts TIMESTAMP").json(str(tmp_path / "in")), key="id", changes="upsert"
    )
    p.sql("CREATE MATERIALIZED VIEW past AS SELECT id FROM t WHERE ts <= now()")
    p.sql("CREATE MATERIALIZED VIEW future AS SELECT id FROM t WHERE ts > now()")
    feed(1, dt.datetime(2000, 1, 1))
    feed(2, dt.datetime(2200, 1, 1))
    p.refresh()
    assert [row.id for row in p.view("past").collect()] == [1]
    assert [row.id for row in p.view("future").collect()] == [2]
    feed(3, dt.datetime(2000, 1, 1))
    p.refresh()
    assert sorted(row.id for row in p.view("past").collect()) == [1, 3]
    p.verify().raise_if_different()
    p.close()


def test_windows_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    p = Pipeline(spark, tmp_path / "state", place="driver")
    p.source("t", rows(spark, 0, 4, 9, 10, 25, None, -7, 60), key="id", changes="upsert")
    p.sql("CREATE MATERIALIZED VIEW tumbling AS SELECT window, count(*) AS n FROM t GROUP BY window(ts, '10 minutes')")
    p.sql(
        "CREATE MATERIALIZED VIEW hopping AS SELECT k, window.start, window.end, max(id) AS m "
        "FROM t GROUP BY k, window(ts, '10 minutes', '4 minutes', '1 minute')"
    )
    p.sql(
        "CREATE MATERIALIZED VIEW sessions AS SELECT k, session_window.start, session_window.end, count(*) AS n "
        "FROM t GROUP BY k, session_window(ts, '10 minutes')"
    )
    p.sql(
        "CREATE MATERIALIZED VIEW hours AS SELECT window_start, count(*) AS n "
        "FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL 1 HOUR) GROUP BY window_start"
    )
    p.refresh()
    p.verify().raise_if_different()
    p.refresh(t=rows(spark, None, 14, 9, 19, 25, 3))
    p.verify().raise_if_different()
    p.close()


def test_a_clock_that_nobody_reads_is_not_told(spark: SparkSession, tmp_path: Path) -> None:
    p = Pipeline(spark, tmp_path / "state")
    with pytest.raises(PipelineError, match="no view asks the time"):
        p.advance(START)


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_a_source_with_a_lateness_keeps_what_can_still_change(spark: SparkSession, tmp_path: Path, place: str) -> None:
    def pipeline() -> Pipeline:
        p = Pipeline(spark, tmp_path / "state", place=place, shards=2, bad_rows="fail")
        p.source("t", rows(spark, 0, 4, 9), lateness=("ts", "5 minutes"))
        windows = "FROM t GROUP BY window(ts, '10 minutes')"
        p.sql(f"CREATE MATERIALIZED VIEW n AS SELECT window.start AS s, count(*) AS n {windows}")
        p.sql(
            f"CREATE MATERIALIZED VIEW closed AS SELECT window.end AS e, count(DISTINCT id) AS n {windows} "
            "EMIT ON WINDOW CLOSE"
        )
        p.sql(
            "CREATE MATERIALIZED VIEW visits AS SELECT id % 2 AS k, session_window.end AS e, count(*) AS n FROM t "
            "GROUP BY id % 2, session_window(ts, '1 minute') EMIT ON WINDOW CLOSE"
        )
        return p

    p = pipeline()
    p.refresh()
    p.refresh(t=rows(spark, 3, 5, 14, None))  # the watermark is minute 4: the first and the last one are late
    p.close()
    p = pipeline()
    assert p.view("closed").collect() == []
    progress = p.refresh(t=rows(spark, 8, 9, 16))  # and now it is minute 9
    assert progress is not None
    assert progress.bad_rows == 1
    p.refresh(t=rows(spark, 9, 40))  # and now minute 11
    late = [json.loads(row.raw).get("ts", "")[14:16] for row in p.quarantined().collect()]
    assert sorted(late) == ["", "03", "08", "09"]
    assert {row.reason for row in p.quarantined().collect()} == {"it came after the watermark had passed it"}
    counted = sorted((row.s, row.n) for row in p.view("n").collect())
    assert [n for _, n in counted] == [5, 2, 1]
    assert sorted(row.n for row in p.view("closed").collect()) == [1, 3]
    visits = sorted((row.k, row.e.minute, row.n) for row in p.view("visits").collect())
    assert visits == [(0, 1, 1), (0, 10, 1), (0, 15, 1), (0, 17, 1), (1, 6, 2), (1, 10, 1)]
    assert "unbounded" not in p.explain()
    p.verify().raise_if_different()
    before = p.view("n", version=2)
    assert sorted(row.n for row in before.collect()) == [1, 4]
    with pytest.raises(EverviewError, match="epoch 99 has not come yet"):
        p.view("n", version=99)
    p.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lateness": ("id", "5 minutes")}, "id is BIGINT"),
        ({"lateness": ("ts", "5 moons")}, "no lateness"),
        ({"lateness": ("ts", "1 minute"), "key": "id", "changes": "upsert"}, "rows that are new"),
    ],
)
def test_a_lateness_is_checked(spark: SparkSession, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    p = Pipeline(spark, tmp_path / "state")
    with pytest.raises(EverviewError, match=message):
        p.source("t", rows(spark, 1), **options)
    p.close()


def test_times_without_a_zone_pass_a_watermark_by_their_own_clock(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever the zone of the session is: else a window would close hours before its rows have come."""

    def at(*hours: int) -> DataFrame:
        return spark.createDataFrame([(h, dt.datetime(2024, 1, 1, h)) for h in hours], "k BIGINT, ts TIMESTAMP_NTZ")

    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        with Pipeline(spark, tmp_path / "state", place="driver", shards=2) as p:
            p.source("t", at(1, 5), lateness=("ts", "1 hour"))
            p.sql("""CREATE MATERIALIZED VIEW n AS SELECT window.start AS w, count(*) AS n FROM t
                     GROUP BY window(ts, '1 hour') EMIT ON WINDOW CLOSE""")
            p.refresh()
            p.refresh(t=at(5, 6))
            assert [(row.w.hour, row.n) for row in p.view("n").collect()] == [(1, 1)]
            p.refresh(t=at(3, 8))
            assert sorted((row.w.hour, row.n) for row in p.view("n").collect()) == [(1, 1), (5, 2), (6, 1)]
            assert p.quarantined().count() == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
