"""The 22 queries of TPC-H in the DataFrame API as views of a pipeline, against Spark after epochs that change them.

The contents after the first epoch are not compared: views add changes up, so what is wrong then is wrong afterwards.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.spark import Pipeline
from everview.spark.frames import frame_of
from spark.frames import by_pipeline, by_spark
from tpch.frames import PROGRAMS
from tpch.refreshing import Refreshing, Tick, generated, with_answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

SCALE = 0.002
SHARES = (0.05,)  # of the orders, an epoch


def test_all_programs_are_what_spark_collects(spark: SparkSession, tmp_path: Path) -> None:
    refreshing = Refreshing(with_answers(generated(SCALE, tmp_path)), seed=22)
    with Pipeline(spark, tmp_path / "state", shards=2, place="driver") as p:
        for name, rows in refreshing.tables.items():
            p.source(name, frame_of(spark, rows.append_column("_weight", [[1] * rows.num_rows])), changes="weights")
        tables = {name: p.frame(name) for name in refreshing.tables}
        frames = {name: program(tables) for name, program in PROGRAMS.items()}
        for name, frame in frames.items():
            p.define(name, frame)
        p.refresh()
        for name, rows in by_pipeline(p, frames).items():
            assert rows, name
            assert "{}" not in rows, f"{name} is NULL"
        *changing, nothing, ending = refreshing.ticks(SHARES)
        for tick in changing:
            _take(p, tick)
        kept = by_pipeline(p, frames)
        assert kept == by_spark(frames, {name: p.table(name) for name in tables})
        _take(p, nothing)
        assert by_pipeline(p, frames) == kept
        _take(p, ending)
        relations = {name: frame_of(spark, rows) for name, rows in refreshing.tables.items()}
        assert by_pipeline(p, frames) == by_spark(frames, relations)


def _take(p: Pipeline, tick: Tick) -> None:
    p.refresh(**{name: frame_of(p.spark, change.weighted) for name, change in tick.items()})
