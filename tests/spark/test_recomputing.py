"""Views that Spark recomputes after every epoch: never unasked, and exactly once like any other view."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.errors import DataFrameError, PipelineError
from everview.spark import Pipeline, epochs
from spark.frames import interpreted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark]

COLUMNS = "id BIGINT NOT NULL, k STRING, x DOUBLE"
FIRST = [(1, "a", 1.0), (2, "a", 2.5), (3, "b", 1.0), (4, None, None)]


def unread(frame: DataFrame) -> DataFrame:
    """The same rows, by way of a node that no plan has; workers get the function by its code."""

    def as_they_come(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    return frame.mapInArrow(as_they_come, frame.schema)


def opened(spark: SparkSession, path: Path) -> Pipeline:
    from pyspark.sql import functions as F

    p = Pipeline(spark, path / "state", shards=2, place="driver")
    p.source("t", spark.createDataFrame(FIRST, COLUMNS), key="id", changes="upsert")
    t = p.frame("t")
    p.define("by_key", unread(t).groupBy("k").agg(F.sum("x").alias("total")), otherwise="recompute")
    p.define("large", p.frame("by_key").filter("total > 3").select("k"))
    p.define("again", unread(p.frame("large")), otherwise="recompute")
    p.define("read", t.select("k"), otherwise="recompute")
    p.sink("by_key", path=path / "out", format="parquet")
    return p


def delivered(spark: SparkSession, path: Path) -> Counter[tuple[Any, ...]]:
    """The sum of all changes that the sink was given."""
    rows = Counter[tuple[Any, ...]]()
    for row in spark.read.parquet(str(path / "out")).collect():
        rows[row["k"], row["total"]] += row["_weight"]
    return Counter({row: weight for row, weight in rows.items() if weight})


def rows(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, frame.collect()))


def test_a_view_that_spark_recomputes_is_a_view(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with interpreted(spark), opened(spark, tmp_path) as p:
        said = "by_key is computed in full by Spark after every epoch: the node MapInArrow cannot be read"
        assert said in caplog.text
        assert "read is computed" not in caplog.text
        p.refresh()
        assert rows(p.view("by_key")) == Counter([("a", 3.5), ("b", 1.0), (None, None)])
        assert rows(p.view("again")) == Counter([("a",)])
        assert said in p.explain()
        assert [done.recomputed for done in p.progress] == [(), ("by_key",), ("again",)]
        assert "Spark has recomputed by_key" in p.progress[1].reason
        p.refresh()
        assert [*p.progress][-1].recomputed == (), "where nothing differs, there is no epoch"
        # A crash between the epoch of the rows and that of the view that Spark computes of them.
        with monkeypatch.context() as patched:
            patched.setattr(epochs, "difference", _crash)
            with pytest.raises(OSError, match="out of power"):
                p.refresh(t=spark.createDataFrame([(3, "b", 9.0), (4, "c", 0.5)], COLUMNS))
    with interpreted(spark), opened(spark, tmp_path) as p:
        assert not p.plan_change().computed
        p.refresh()
        assert rows(p.view("by_key")) == Counter([("a", 3.5), ("b", 9.0), ("c", 0.5)]) == delivered(spark, tmp_path)
        assert rows(p.view("again")) == Counter([("a",), ("b",)])
        p.define("late", p.frame("by_key").select("k"))
        assert rows(p.view("late")) == Counter([("a",), ("b",), ("c",)])
        p.rename("again", "anew")
        p.refresh(t=spark.createDataFrame([(5, "c", 7.0)], COLUMNS))
        assert rows(p.view("anew")) == Counter([("a",), ("b",), ("c",)])
        assert p.verify().raise_if_different()


def _crash(*_: Any) -> DataFrame:
    raise OSError("out of power")


def test_what_is_not_recomputed(spark: SparkSession, tmp_path: Path) -> None:
    with Pipeline(spark, tmp_path, shards=2) as p:
        p.source("t", spark.createDataFrame(FIRST, COLUMNS), keep=False)
        frame = unread(p.frame("t"))
        wrong: Any = "guess"
        with pytest.raises(PipelineError, match="otherwise cannot be 'guess'"):
            p.define("v", frame, otherwise=wrong)
        with pytest.raises(DataFrameError, match="the node MapInArrow"):
            p.define("v", frame)
        with pytest.raises(PipelineError, match="the rows of t are not kept"):
            p.define("v", frame, otherwise="recompute")
        with pytest.raises(PipelineError, match="reads no source and no view"):
            p.define("v", spark.range(3).sample(0.5), otherwise="recompute")
