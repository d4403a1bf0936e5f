"""Streams of files that the state follows itself: each file once, over restarts, other definitions and odd names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.errors import PipelineError, SinkError
from everview.spark import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "k BIGINT NOT NULL, v BIGINT NOT NULL"
SUMS = "CREATE MATERIALIZED VIEW sums AS SELECT k % 3 AS g, sum(v) AS total FROM t GROUP BY k % 3"


def arrive(folder: Path, name: str, *rows: tuple[int, int]) -> None:
    """A file that appears whole."""
    folder.mkdir(parents=True, exist_ok=True)
    written = folder.parent / "writing"
    written.write_text("".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in rows))
    written.replace(folder / name)


def build(spark: SparkSession, root: Path, **how: Any) -> Pipeline:
    p = Pipeline(spark, root / "state", shards=2, place="driver", positions="state", **how)
    (root / "in").mkdir(exist_ok=True)
    p.source("t", path=root / "in", format="json", schema=SCHEMA, changes="append")
    p.sql(SUMS)
    return p


def rows(p: Pipeline, view: str = "sums") -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in p.view(view).collect())


def test_a_life_of_files(spark: SparkSession, tmp_path: Path) -> None:
    """A loop at work, a view that comes meanwhile, a restart, a vacuum and more shards: every file counts once."""
    folder = tmp_path / "in"
    with build(spark, tmp_path) as p:
        arrive(folder, "a.json", (1, 10), (2, 20))
        query = p.start(trigger={"processingTime": "50 milliseconds"}, name="files")
        query.processAllAvailable()
        assert rows(p) == [(1, 10), (2, 20)]
        p.sql("CREATE MATERIALIZED VIEW many AS SELECT count(*) AS n FROM t")
        for number, name in enumerate(["b c.json", "b%20c.json", "[d]*.json", "ü?{1}.json"]):
            arrive(folder, name, (3, 100 + number))
        p.stop(drain=True)
        assert not query.isActive
        assert rows(p) == [(0, 406), (1, 10), (2, 20)]
        assert rows(p, "many") == [(6,)]
        done = p.epoch
        assert p.refresh() is not None
        assert p.epoch == done  # nothing was new
        p.vacuum(1)
        p.reshard(4)
    arrive(folder, "_hidden.json", (9, 9))
    arrive(folder, "e.json", (4, 1))
    with build(spark, tmp_path) as p:
        p.sql("CREATE MATERIALIZED VIEW many AS SELECT count(*) AS n FROM t")
        p.start(trigger={"availableNow": True}).awaitTermination()
        assert rows(p) == [(0, 406), (1, 11), (2, 20)]
        assert p.verify()
        assert not (tmp_path / "state" / "spark").exists()
        names = [name for name, _ in p._state.engine().store.manifest.slices if name.startswith("files ")]
        assert names == ["files t"]


def test_folders_that_are_columns(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path / "in" / "day=3", "a.json", (1, 10))
    with Pipeline(spark, tmp_path / "state", shards=2, place="driver", positions="state") as p:
        p.source("t", path=tmp_path / "in", format="json", schema=f"{SCHEMA}, day INT")
        p.sql("CREATE MATERIALIZED VIEW days AS SELECT day, sum(v) AS total FROM t GROUP BY day")
        p.refresh()
        arrive(tmp_path / "in" / "day=4", "a.json", (1, 20))
        p.refresh()
        assert rows(p, "days") == [(3, 10), (4, 20)]


def test_what_ends_the_loop_is_raised_to_who_waits(spark: SparkSession, tmp_path: Path) -> None:
    """The epoch is committed, and its sink gets it when the pipeline starts again."""
    arrive(tmp_path / "in", "a.json", (1, 10))
    given: list[int] = []

    def sink(changes: Any, epoch: int) -> None:
        given.append(epoch)
        if len(given) == 1:
            raise OSError("the sink is away")

    with build(spark, tmp_path) as p:
        p.sink("sums", callback=sink)
        query = p.start()
        with pytest.raises(SinkError, match="the sink is away"):
            query.awaitTermination()
        assert isinstance(query.exception(), SinkError)
        assert not query.isActive
        assert p.epoch == 1
        p.refresh()
        assert (given, rows(p)) == ([1, 1], [(1, 10)])


def test_what_the_loop_cannot_follow(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path / "in", "a.json", (1, 10))
    with build(spark, tmp_path) as p, pytest.raises(PipelineError, match="is no trigger"):
        p.start(trigger={"continuous": "1 second"})
    for name, options in (("frame", None), ("options", {"cleanSource": "delete"})):
        with Pipeline(spark, tmp_path / name, shards=2, positions="state") as p:
            if options is None:
                p.source("t", spark.readStream.schema(SCHEMA).json(str(tmp_path / "in")))
            else:
                p.source("t", path=tmp_path / "in", format="json", schema=SCHEMA, options=options)
            p.sql(SUMS)
            with pytest.raises(PipelineError, match=r"cannot be followed without Spark|option cleansource"):
                p.refresh()
    with pytest.raises(PipelineError, match="positions cannot be 'mine'"):
        Pipeline(spark, tmp_path / "none", positions="mine")


@pytest.mark.parametrize(("first", "then"), [("spark", "state"), ("state", "spark")])
def test_a_state_goes_on_as_it_was_begun(spark: SparkSession, tmp_path: Path, first: str, then: str) -> None:
    arrive(tmp_path / "in", "a.json", (1, 10))
    for positions in (first, then):
        with Pipeline(spark, tmp_path / "state", shards=2, place="driver", positions=positions) as p:
            p.source("t", path=tmp_path / "in", format="json", schema=SCHEMA)
            p.sql(SUMS)
            if positions == first:
                p.refresh()
                continue
            with pytest.raises(PipelineError, match="position"):
                p.refresh()
            assert rows(p) == [(1, 10)]


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_every_style_of_change_in_epoch_after_epoch_of_one_loop(
    spark: SparkSession, tmp_path: Path, place: str
) -> None:
    """Alone and together: what is made once for a source's files holds for all of them."""

    def put(source: str, epoch: int, *lines: str) -> None:
        (tmp_path / source).mkdir(exist_ok=True)
        (tmp_path / "writing").write_text("\n".join(lines) + "\n")
        (tmp_path / "writing").replace(tmp_path / source / f"{epoch}.json")

    event = "op STRING, before STRUCT<k: BIGINT, v: BIGINT>, after STRUCT<k: BIGINT, v: BIGINT>"
    with Pipeline(spark, tmp_path / "state", shards=2, place=place, positions="state") as p:
        for name in ("latest", "cdc", "events"):
            put(name, 0)
        files = {"format": "json", "key": "k"}
        p.source("latest", path=tmp_path / "latest", schema=SCHEMA, changes="upsert", **files).sink("all_latest")
        p.source("cdc", path=tmp_path / "cdc", schema=f"{SCHEMA}, op STRING", changes="cdc", **files).sink("all_cdc")
        p.source("events", path=tmp_path / "events", schema=event, changes="cdc", **files).sink("all_events")
        query = p.start(trigger={"processingTime": "1 hour"})
        for epoch in (1, 2, 3):
            put("latest", epoch, f'{{"k": 1, "v": {epoch}}}', f'{{"k": {epoch + 1}, "v": 0}}', "no json")
            query.processAllAvailable()
            put("cdc", epoch, f'{{"k": {epoch}, "v": 5, "op": "c"}}', f'{{"k": {epoch - 1}, "v": 5, "op": "d"}}')
            query.processAllAvailable()
            put("latest", epoch + 10, f'{{"k": 9, "v": {epoch}}}')
            put("events", epoch, json.dumps({"op": "c", "after": {"k": epoch, "v": 7}}), "{")
            query.processAllAvailable()
        assert rows(p, "all_latest") == [(1, 3), (2, 0), (3, 0), (4, 0), (9, 3)]
        assert rows(p, "all_cdc") == [(3, 5)]
        assert rows(p, "all_events") == [(1, 7), (2, 7), (3, 7)]
        assert sorted(row.raw for row in p.quarantined().collect()) == ["no json"] * 3 + ["{"] * 3
        p.stop()
        assert p.verify()
