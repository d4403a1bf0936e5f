"""A sink's path is one state's and one view's, and what others put there stays."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.errors import SinkError
from everview.spark import Pipeline
from everview.spark.claims import MARKER, Claims, require_apart
from everview.spark.folders import Folder, Local, Remote
from everview.spark.sinks import sink_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Build = Callable[..., Pipeline]


@pytest.fixture
def build(spark: SparkSession, tmp_path: Path) -> Build:
    def build(state: str = "state", out: str = "out", view: str = "all", **options: Any) -> Pipeline:
        p = Pipeline(spark, tmp_path / state, shards=2, place="driver")
        rows = p.source("t", spark.createDataFrame([(1, "a"), (2, "b")], "k BIGINT, v STRING"))
        rows.sink("all")
        rows.select("k").sink("keys")
        p.sink(view, path=tmp_path / out, **options)
        return p

    return build


def more(spark: SparkSession, k: int) -> Any:
    return spark.createDataFrame([(k, "x")], "k BIGINT, v STRING")


OPTIONS: dict[str, dict[str, Any]] = {
    "parquet": {},
    "parquet snapshots": {"mode": "snapshot"},
    "json": {"format": "json"},
    "json snapshots": {"format": "json", "mode": "snapshot"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_a_path_is_one_state_s(spark: SparkSession, build: Build, tmp_path: Path, options: dict[str, Any]) -> None:
    with build(**options) as p:
        p.refresh()
        p.refresh(t=more(spark, 3))
    with build(**options) as p:  # the same state goes on
        p.refresh(t=more(spark, 4))
    held = {path.relative_to(tmp_path): path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    with build("other", **options) as p, pytest.raises(SinkError, match="is written by another state, with"):
        p.refresh()
    with build(view="keys", **options) as p, pytest.raises(SinkError, match=r"is written by this state.*not by .*keys"):
        p.refresh()
    (tmp_path / "out" / MARKER).unlink()
    with build("third", **options) as p:
        with pytest.raises(SinkError, match="holds epochs already, and this state has not written them"):
            p.refresh()
        assert p.epoch == 0  # nothing was taken in
    with build(**options) as p:  # a crash may come before the marker is put back
        p.refresh(t=more(spark, 5))
    assert (tmp_path / "out" / MARKER).read_bytes() == held[Path("out") / MARKER]


def test_a_state_that_is_an_older_copy(spark: SparkSession, build: Build, tmp_path: Path) -> None:
    with build() as p:
        p.refresh()
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    with build() as p:
        p.refresh(t=more(spark, 3))
    shutil.rmtree(tmp_path / "state")
    shutil.copytree(tmp_path / "copy", tmp_path / "state")
    with build() as p, pytest.raises(SinkError, match="holds epoch 2, and the state is at epoch 1"):
        p.refresh(t=more(spark, 3))


@pytest.mark.parametrize(
    ("one", "other", "match"),
    [
        ({"path": "/out/a"}, {"path": "file:///out/a/"}, "two sinks write to"),
        ({"path": "/out/a"}, {"path": "/out/a/b", "mode": "snapshot"}, "two sinks write to"),
        ({"path": "/out/a/b"}, {"path": "/out/a"}, "two sinks write to"),
        ({"path": "s3://x/a"}, {"path": "s3://x/a/"}, "two sinks write to"),
        ({"table": "db.t"}, {"table": "DB.`t`"}, "two sinks write to table"),
        ({"table": "t"}, {"path": "/state"}, "the state is in"),
        ({"table": "t"}, {"path": "/state/out"}, "the state is in"),
    ],
)
def test_two_sinks_on_one_path(one: dict[str, Any], other: dict[str, Any], match: str) -> None:
    first, second = sink_of("v", **one), sink_of("w", **other)
    with pytest.raises(SinkError, match=match):
        require_apart(second, [first], Path("/state"))


@pytest.mark.parametrize(
    ("one", "other"), [("/out/a", "/out/ab"), ("/out/a", "/out/b"), ("s3://x/a", "s3://y/a"), ("/x/a", "s3://x/a")]
)
def test_paths_side_by_side(one: str, other: str) -> None:
    require_apart(sink_of("v", path=one), [sink_of("v", path=other)], Path("/state"))


def test_a_second_sink_is_refused_where_it_is_defined(build: Build, tmp_path: Path) -> None:
    p = build()
    with pytest.raises(SinkError, match="two sinks write to"):
        p.sink("keys", path=tmp_path / "out")


@pytest.mark.parametrize("options", [OPTIONS["parquet"], OPTIONS["parquet snapshots"]], ids=["changes", "snapshots"])
def test_a_foreign_file_in_an_epoch_stays(
    spark: SparkSession, build: Build, tmp_path: Path, options: dict[str, Any]
) -> None:
    with build(**options) as p:
        p.refresh()
    foreign = tmp_path / "out" / "epoch=0000000001" / "notes.txt"
    foreign.write_text("mine")
    (tmp_path / "state" / "delivered").unlink()  # as if it were unclear whether the sink has the epoch
    with build(**options) as p:
        p.refresh(t=more(spark, 3))
    assert foreign.read_text() == "mine"


def test_spark_is_not_let_near_a_foreign_file(spark: SparkSession, build: Build, tmp_path: Path) -> None:
    with build(**OPTIONS["json snapshots"]) as p:
        p.refresh()
    foreign = tmp_path / "out" / "notes.txt"
    foreign.write_text("mine")
    with build(**OPTIONS["json snapshots"]) as p:
        with pytest.raises(SinkError, match=r"a file that is not the sink's, notes.txt"):
            p.refresh(t=more(spark, 3))
        assert foreign.read_text() == "mine"
        foreign.unlink()
        p.refresh()
    assert spark.read.json(str(tmp_path / "out")).count() == 3


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_folders(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """What Hadoop says of a folder is what the disk says."""
    root = tmp_path / "a b"
    there: Folder = Local(root) if kind == "local" else Remote(spark, root.as_uri().replace("%20", " "))
    assert (there.names(), list(there.files()), there.read("x")) == ([], [], None)
    there.write("x", b"\x00one")
    there.write("x", b"\x00\xfftwo")
    (root / "in" / "deep").mkdir(parents=True)
    (root / "in" / "deep" / "y").write_text("")
    assert there.read("x") == b"\x00\xfftwo"
    assert sorted(name for name in there.names() if not name.endswith(".crc")) == ["in", "x"]
    assert sorted(name for name in there.files() if not name.endswith(".crc")) == ["in/deep/y", "x"]
    assert list(there.files("in")) == ["in/deep/y"]
    claims = Claims(spark, Local(tmp_path))
    claims.take(sink_of("v", path=tmp_path / "c"), 0)
    assert (tmp_path / "c" / MARKER).exists()
