"""Pipelines whose checkpoint is in an object store, over HTTP: they go on elsewhere as if nothing had happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.errors import LockedState, PipelineError, StoreError
from everview.spark import Pipeline, delivery
from everview.traces.store import Store
from object_store import state_url
from spark.test_exactly_once import SCHEMA, after, before, die, feed, recomputed, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Go to another machine: a driver there has nothing of what this one has cached, nor its locks."""

    def go(name: str) -> None:
        monkeypatch.setenv("EVERVIEW_CACHE", str(tmp_path / name))

    go("machine")
    return go


def build(spark: SparkSession, url: str, root: Path, place: Any = "driver", **options: Any) -> Pipeline:
    p = Pipeline(spark, url, place=place, shards=2, **options)
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(root / "in"))
    p.source("t", stream, key="k", changes="cdc", op="op")
    p.sql("CREATE MATERIALIZED VIEW sums AS SELECT k % 3 AS g, sum(v) AS total FROM t GROUP BY k % 3")
    p.sink("sums", path=root / "changes")
    return p


def check(spark: SparkSession, p: Pipeline, root: Path) -> None:
    """The view and the sum of the delivered changes are what recomputing gives."""
    expected = recomputed(root / "in")
    assert sorted(tuple(row) for row in p.view("sums").collect()) == expected
    sums: Counter[tuple[Any, ...]] = Counter()
    for g, total, weight, _ in spark.read.parquet(str(root / "changes")).collect():
        sums[g, total] += weight
    assert sorted(row for row, weight in sums.items() if weight) == expected


CRASHES = {
    "after the commit": ("cluster", after(Store, "commit")),
    "before the delivery is noted": ("driver", before(delivery.Delivery, "mark")),
}


@pytest.mark.parametrize("step", CRASHES)
def test_a_driver_that_dies_goes_on_on_another_machine(
    spark: SparkSession,
    s3: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    elsewhere: Callable[[str], None],
    step: str,
) -> None:
    try_dying(spark, state_url(s3), tmp_path, monkeypatch, elsewhere, step)


def try_dying(
    spark: SparkSession,
    url: str,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    elsewhere: Callable[[str], None],
    step: str,
) -> None:
    """A driver dies at a step, and goes on on other machines: nothing is lost, and nothing counts twice."""
    place, crash = CRASHES[step]
    for number in range(3):
        feed(root / "in", number)
    p = build(spark, url, root, place)
    with monkeypatch.context() as patched:
        crash(patched)
        with pytest.raises(Exception, match=r"Crash|crash|before|after"):
            run(p)
    die(p)
    elsewhere("another machine")
    with build(spark, url, root, place) as p:
        run(p)
        assert p.epoch == 3
        check(spark, p, root)
    elsewhere("a third one")
    feed(root / "in", 3)
    with build(spark, url, root) as p:
        run(p)
        assert p.epoch == 4
        check(spark, p, root)
        assert p.verify()
        p.vacuum(keep_epochs=2)
        then = spark.read.format("everview").option("view", "sums").option("epoch", "3").load(url)
        now = spark.read.format("everview").option("view", "sums").load(url)
        assert then.count() <= 3
        assert sorted(tuple(row) for row in now.collect()) == recomputed(root / "in")


def test_a_batch_pipeline_on_the_cluster_with_bad_rows(
    spark: SparkSession, s3: str, elsewhere: Callable[[str], None]
) -> None:
    url = state_url(s3)
    rows = spark.createDataFrame([(k, k % 7, float(k)) for k in range(5000)], "id BIGINT, g BIGINT, v DOUBLE")
    with Pipeline(spark, url, place="cluster", bad_rows="quarantine") as p:
        p.source("t", rows.union(spark.createDataFrame([(None, 1, 1.0)], rows.schema)), key="id")
        p.sql("CREATE MATERIALIZED VIEW sums AS SELECT g, sum(v) AS total, count(*) AS n FROM t GROUP BY g")
        p.refresh()
        assert {row.g: (row.total, row.n) for row in p.view("sums").collect()} == {
            g: (sum(map(float, range(g, 5000, 7))), len(range(g, 5000, 7))) for g in range(7)
        }
        assert [(row.source, row.epoch) for row in p.quarantined().collect()] == [("t", 1)]
    elsewhere("another machine")
    with Pipeline(spark, url, place="driver", bad_rows="quarantine") as p:
        p.source("t", rows.limit(10), key="id")
        p.sql("CREATE MATERIALIZED VIEW sums AS SELECT g, sum(v) AS total, count(*) AS n FROM t GROUP BY g")
        assert p.view("sums").count() == 7
        p.refresh()
        assert p.verify()


def test_two_pipelines_on_one_state(
    spark: SparkSession, s3: str, tmp_path: Path, elsewhere: Callable[[str], None]
) -> None:
    url = state_url(s3)
    feed(tmp_path / "in", 0)
    first = build(spark, url, tmp_path)
    run(first)
    with pytest.raises(LockedState, match="another writer has s3://bank"):
        build(spark, url, tmp_path).epoch  # noqa: B018
    elsewhere("another machine")
    feed(tmp_path / "in", 1)
    with build(spark, url, tmp_path) as second:
        run(second)
        with pytest.raises(Exception, match="another writer has taken over the state at s3://bank"):
            run(first)
        first.close()
        check(spark, second, tmp_path)


def test_places_that_are_none(spark: SparkSession) -> None:
    with pytest.raises(StoreError, match="Everview knows no store ftp://"):
        Pipeline(spark, "ftp://host/state")
    with pytest.raises(PipelineError, match="a state directory cannot be at x:y"):
        Pipeline(spark, "x:y")
