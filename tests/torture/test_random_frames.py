"""Random DataFrame programs, a little every day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torture.random_frames import FrameTrial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_views_of_random_programs_are_what_spark_collects(spark: SparkSession) -> None:
    trial = FrameTrial(spark)
    assert not trial.batch(7, 6)
    assert not trial.refused
