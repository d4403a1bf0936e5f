"""Spark's checkpoint after a crash: what is cut short is mended, or refused, and no planned file is passed over."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.errors import CorruptState, SourceError
from everview.spark import streaming
from everview.spark.checkpoint import FILE_MANAGER, PLAIN_FILES, Planned, mend, plain_local_files, planned
from everview.spark.position import Position, query_of
from spark.test_exactly_once import build, check, feed, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE = None  # no batch was taken in

FILES = {
    "metadata": '{"id":"q"}',
    "offsets/0": 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"logOffset":0}',
    "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    "sources/0/0": 'v1\n{"path":"file:///in/0.json","timestamp":1,"batchId":0}',
    "offsets/1": 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"logOffset":2}',
    "sources/0/1": 'v1\n{"path":"file:///in/1.json","timestamp":1,"batchId":1}',
    "sources/0/2.compact": 'v1\n{"path":"file:///in/0.json","timestamp":1,"batchId":0}\n'
    '{"path":"file:///in/1.json","timestamp":1,"batchId":1}\n{"path":"file:///in/a%20b.json","timestamp":1,"batchId":2}',
}
AFTER = Position(
    "q", 0, hashlib.blake2b(FILES["offsets/0"].encode(), digest_size=16).hexdigest(), ("t",)
)  # batch 0 was
FIRST = ("metadata", "offsets/0", "sources/0/0")  # what there is while the first batch is run


def written(root: Path, names: object = FILES) -> Path:
    for name in [name for name in FILES if name in names]:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILES[name])
        path.with_name(f".{path.name}.crc").write_bytes(b"crc")
    return root


def there(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file() and path.suffix != ".crc"}


@pytest.mark.parametrize("kept", [0, 1, 3, 8, -3])
@pytest.mark.parametrize(
    ("names", "last", "cut", "gone"),
    [
        (("metadata", "sources/0/0"), BEFORE, "metadata", {"metadata"}),
        (FIRST, BEFORE, "metadata", set()),
        (FIRST, BEFORE, "offsets/0", {"offsets/0"}),
        (FIRST, BEFORE, "sources/0/0", {"sources/0/0", "offsets/0"}),
        ((*FIRST, "commits/0"), BEFORE, "commits/0", {"commits/0"}),
        ((*FIRST, "commits/0"), AFTER, "commits/0", {"commits/0"}),
        ((*FIRST, "commits/0"), AFTER, "metadata", set()),
        (FILES, AFTER, "offsets/1", {"offsets/1"}),
        (FILES, AFTER, "sources/0/1", {"sources/0/1", "offsets/1"}),
        (FILES, AFTER, "sources/0/2.compact", {"sources/0/2.compact", "offsets/1"}),
    ],
)
def test_what_a_crash_cut_short_is_planned_anew(
    tmp_path: Path, names: object, last: Position | None, cut: str, gone: set[str], kept: int
) -> None:
    root = written(tmp_path, names)
    before = there(root)
    (root / cut).write_text(FILES[cut][:kept])
    mend(root, last)
    if (root / cut).exists() and cut != "metadata":
        assert (cut, kept) == ("commits/0", 3)  # a version alone says all that Spark needs
        return
    assert before - there(root) == gone
    assert not any((root / name).with_name(f".{Path(name).name}.crc").exists() for name in gone)
    if gone == {"metadata"}:
        assert query_of(root) is None
    else:
        assert (query_of(root) == "q") == (cut != "metadata" or last == AFTER)


@pytest.mark.parametrize("cut", ["offsets/0", "sources/0/0"])
def test_what_says_what_was_read_cannot_be_mended(tmp_path: Path, cut: str) -> None:
    root = written(tmp_path, (*FIRST, "commits/0"))
    for text in ("", "v1", "v1\n"):
        (root / cut).write_text(text)
        with pytest.raises(CorruptState, match="it says what Spark has read already"):
            mend(root, AFTER)


@pytest.mark.parametrize("last", [BEFORE, AFTER])
def test_what_is_whole_stays(tmp_path: Path, last: Position | None) -> None:
    root = written(tmp_path)
    mend(root, last)
    assert there(root) == {*FILES}
    mend(tmp_path / "nothing", last)


@pytest.mark.parametrize("text", [None, "", "{}"])
def test_the_id_of_another_query_is_not_made_up(tmp_path: Path, text: str | None) -> None:
    root = written(tmp_path, (*FIRST, "commits/0"))
    (root / "metadata").unlink() if text is None else (root / "metadata").write_text(text)
    mend(root, Position("q", 0, "of other offsets", ("t",)))
    assert query_of(root) is None
    mend(root, AFTER)
    assert query_of(root) == "q"


def test_the_files_that_a_batch_reads(tmp_path: Path) -> None:
    root = written(tmp_path)
    assert list(planned(root, 0, ("t",))) == [Planned("t", "file:///in/0.json")]
    assert list(planned(root, 1, ("t",))) == [
        Planned("t", "file:///in/1.json"),
        Planned("t", "file:///in/a%20b.json"),
    ]
    assert list(planned(root, 7, ("t",))) == []


def test_killed_while_spark_writes_its_first_offsets(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path / "in", 0)
    with build(spark, tmp_path) as p:
        p.refresh()
    state = tmp_path / "state"
    shutil.copytree(state / "spark", tmp_path / "whole")
    shutil.rmtree(tmp_path / "whole" / "commits")
    for cut in ("metadata", "offsets/0", "sources/0/0"):
        for directory in ("state", "changes", "snapshot"):
            shutil.rmtree(tmp_path / directory)
        with build(spark, tmp_path) as p:
            assert p.epoch == 0
        shutil.copytree(tmp_path / "whole", state / "spark")
        (state / "spark" / cut).write_text("")
        with build(spark, tmp_path) as p:
            p.refresh()
            assert p.epoch == 1
        check(spark, tmp_path)


def test_a_planned_file_that_is_gone_is_told_of(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path / "in", 0)
    feed(tmp_path / "in", 1)
    with build(spark, tmp_path) as p:
        p.refresh()
    feed(tmp_path / "in", 2)
    state, there = tmp_path / "state", tmp_path / "in" / "002.json"
    shutil.copytree(state, tmp_path / "before")
    with build(spark, tmp_path) as p:
        p.refresh()
    planned = {name: (state / "spark" / name).read_text() for name in ("offsets/2", "sources/0/2")}
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "before", state)
    shutil.rmtree(tmp_path / "changes" / "epoch=0000000003")
    shutil.rmtree(tmp_path / "snapshot" / "epoch=0000000003")
    for name, text in planned.items():
        (state / "spark" / name).write_text(text)
    kept = there.read_text()
    there.unlink()
    with build(spark, tmp_path) as p:
        with pytest.raises(SourceError, match=r"source t: file file:\S*/in/002.json was deleted before it was read"):
            p.refresh()
        assert p.epoch == 2
        there.write_text(kept)
        p.refresh()
        assert p.epoch == 3
    check(spark, tmp_path)


def test_a_state_that_is_refused_says_so_once(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path / "in", 0)
    with build(spark, tmp_path) as p:
        run(p)
    (tmp_path / "state" / "spark" / "offsets" / "0").write_text("")
    feed(tmp_path / "in", 1)
    with build(spark, tmp_path) as p, pytest.raises(CorruptState, match="offsets/0 is damaged"):
        p.refresh()
    assert json.loads((tmp_path / "state" / "spark" / "metadata").read_text())["id"]


def test_the_checkpoint_is_written_by_plain_renames_and_settings_stay_as_they_were(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = spark.readStream.format("rate").load()
    with plain_local_files(spark):
        query = source.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    try:
        manager = query._jsq.streamingQuery().offsetLog().fileManager()
        assert manager.getClass().getName() == PLAIN_FILES
        assert spark.conf.get(FILE_MANAGER, None) is None
    finally:
        query.stop()
    spark.conf.set(FILE_MANAGER, "a.Class.of.the.User")
    try:
        with plain_local_files(spark):
            assert spark.conf.get(FILE_MANAGER) == "a.Class.of.the.User"
        assert spark.conf.get(FILE_MANAGER) == "a.Class.of.the.User"
    finally:
        spark.conf.unset(FILE_MANAGER)


def test_an_interrupt_while_sources_open_leaves_a_query_that_stop_ends(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(query: object) -> None:
        raise KeyboardInterrupt

    feed(tmp_path / "in", 0)
    with build(spark, tmp_path) as p:
        with monkeypatch.context() as patched:
            patched.setattr(streaming, "_await_sources", interrupted)
            with pytest.raises(KeyboardInterrupt):
                p.start()
        p.stop()
        assert not spark.streams.active
        assert spark.conf.get(FILE_MANAGER, None) is None
        run(p)
    check(spark, tmp_path)
