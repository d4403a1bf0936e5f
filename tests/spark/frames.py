"""Views by DataFrames, compared with Spark collecting the same DataFrames over the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING

from everview.spark import Pipeline
from everview.spark.dataframes import substituted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Answers = Mapping[str, Counter[str]]


def by_pipeline(p: Pipeline, views: Iterable[str]) -> Answers:
    """The rows of views, as texts."""
    return _gathered({name: p.view(name) for name in views})


def by_spark(frames: Mapping[str, DataFrame], relations: Mapping[str, DataFrame]) -> Answers:
    """The rows of DataFrames that Spark computes, given those of the relations that frames stand for."""
    return _gathered({name: substituted(frame, relations.__getitem__) for name, frame in frames.items()})


def _gathered(frames: Mapping[str, DataFrame]) -> Answers:
    """The rows of several frames as texts, by one job of Spark for a few of them."""
    from pyspark.sql import functions as f

    answers: dict[str, Counter[str]] = {name: Counter() for name in frames}
    with interpreted(next(iter(frames.values())).sparkSession):
        rows = [_as_text(frame).select(f.lit(name).alias("view"), "row") for name, frame in frames.items()]
        for first in range(0, len(rows), TOGETHER):
            for view, row in reduce(lambda a, b: a.unionAll(b), rows[first : first + TOGETHER]).collect():
                answers[view][row] += 1
    return answers


TOGETHER = 6  # frames in one job: each takes memory of its own
# For a few rows, compiling a query takes far longer than running it.
FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Let Spark interpret queries in a block."""
    before = {name: spark.conf.get(name) for name in FEW_ROWS}
    for name, value in FEW_ROWS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def _as_text(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    named = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    columns = [_column(named, name) for name in named.columns]
    return named.select(f.to_json(f.struct(*columns)).alias("row"))


def _column(frame: DataFrame, name: str) -> Column:
    """A column whose text is the same for all numbers that agree to six digits."""
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    type_ = frame.schema[name].dataType
    if isinstance(type_, t.DoubleType | t.FloatType):
        return f.when(frame[name].isNotNull(), f.format_string("%.6g", frame[name] + 0.0)).alias(name)
    return frame[name]
