"""Fluent queries in a pipeline: flat views for their parts, the same trees as in a database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import everview as ev
from everview import agg
from everview.errors import PipelineError, UnknownName
from everview.spark import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark]

ARTIST = "id BIGINT, name STRING, country STRING"
TRACK = "id BIGINT, artist_id BIGINT, name STRING, rating BIGINT"
ARTISTS = [(1, "Ada", "UK"), (2, "Bob", None), (3, "Cleo", "DE")]
TRACKS = [(1, 1, "a", 5), (2, 1, "b", 3), (3, 2, "c", None), (4, None, "d", 4), (5, 1, "e", 5)]
LATER = [(1, 2, "a", 1), (6, 3, "f", 9)]


def best(home: Any) -> Any:
    tracks = home.query("track").order_by("rating", "desc").limit(2).select("name", "rating")
    return home.query("artist").related_many("best", tracks, on=("id", "artist_id")).order_by("name", "desc")


def listed(home: Any) -> Any:
    artists = home.query("artist")
    return (
        home.query("track")
        .left_join(artists, on=("artist_id", "id"))
        .where("rating", ">", 2)
        .order_by("rating")
        .limit(3)
    )


def counted(home: Any) -> Any:
    joined = home.query("track").join(home.query("artist"), on=("artist_id", "id")).group_by("artist.id")
    return joined.select("artist.*", agg.count("*", "n"), agg.array("track.*", "tracks")).having("n", ">", 1)


QUERIES = {"best": best, "listed": listed, "counted": counted}


def frame(spark: SparkSession, rows: list[Any], schema: str) -> DataFrame:
    return spark.createDataFrame(rows, schema)


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_the_same_trees_as_in_a_database(spark: SparkSession, tmp_path: Path, place: str) -> None:
    db = ev.connect()
    db.create_table("artist", ARTIST, key="id")
    db.create_table("track", TRACK, key="id")
    with Pipeline(spark, tmp_path / "state", shards=2, place=place) as p:
        p.source("artist", frame(spark, ARTISTS, ARTIST), key="id", changes="upsert")
        p.source("track", frame(spark, TRACKS, TRACK), key="id", changes="upsert")
        assert best(p).materialize("best") == ("best", "best.best")
        assert listed(p).prepare().explain().startswith("track\nTop 3")
        listed(p).materialize("listed")
        counted(p).materialize("counted")
        for rows in (TRACKS, LATER):
            p.refresh(track=frame(spark, rows, TRACK))
            with db.transaction() as tx:
                tx.upsert("artist", ARTISTS)
                tx.upsert("track", rows)
            for name, query in QUERIES.items():
                assert p.trees(name) == query(db).run()
            assert p.verify().raise_if_different()
        assert "artist.name" in p.view("listed").columns


def test_refusals(spark: SparkSession, tmp_path: Path) -> None:
    with Pipeline(spark, tmp_path / "state") as p:
        p.source("track", frame(spark, TRACKS, TRACK), key="id", changes="upsert")
        with pytest.raises(UnknownName, match="artist"):
            p.query("artist")
        with pytest.raises(PipelineError, match="before the pipeline runs"):
            p.query("track").run()
        with pytest.raises(PipelineError, match="has a name"):
            p.query("track").materialize()
        with pytest.raises(PipelineError, match="already"):
            p.query("track").materialize("track")
        p.query("track").materialize("all")
        with pytest.raises(UnknownName, match="fluent query"):
            p.trees("track")
