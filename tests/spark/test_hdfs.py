"""States in HDFS: whole objects, one writer, and pipelines that go on elsewhere; on a name node and a data node."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.errors import MissingRuntime, StoreError
from everview.traces.store import Store, hdfs_objects
from everview.traces.store.arrow_objects import objects_at
from everview.traces.store.hdfs_objects import WRITING, HdfsObjects
from everview.traces.store.objects import Refusal, Unanswered
from object_store import PLAN, try_killed_writers, try_objects, try_two_writers
from spark.test_object_store import elsewhere, try_dying

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hdfs_cluster import Hdfs

pytestmark = pytest.mark.spark  # one process has all of these, and one HDFS
_ = elsewhere


@pytest.fixture(autouse=True)
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERVIEW_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def objects(hdfs: Hdfs) -> HdfsObjects:
    found = objects_at(hdfs.state_url())
    assert isinstance(found, HdfsObjects)
    return found


def test_the_objects_of_a_store(objects: HdfsObjects, tmp_path: Path) -> None:
    try_objects(objects, tmp_path)
    objects.write("segments/large", memoryview(bytes(range(256)) * 100_000))
    assert objects.read("segments/large") == bytes(range(256)) * 100_000
    assert objects.names(WRITING) == []


def test_an_object_that_was_not_finished_is_not_seen(objects: HdfsObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a new one nor one in place of another; what is left of it goes a day later."""
    objects.write("segments/a", b"first")

    class Crash(BaseException):
        """The process ends here."""

    def dies(path: str, data: memoryview) -> None:
        objects._client.create(path).write(data[:3])
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(objects, "_write", dies)
        for act in (objects.create, objects.write):
            with pytest.raises(Crash):
                act("segments/a", b"second")
    assert (objects.read("segments/a"), objects.names("segments")) == (b"first", ["a"])
    assert len(objects.names(WRITING)) == 2
    again = HdfsObjects(objects.url)
    assert again.create("log/a", b"")
    assert len(again.names(WRITING)) == 2  # it may be another writer's, who is at it
    monkeypatch.setattr(hdfs_objects, "DAY", 0)
    again = HdfsObjects(objects.url)
    assert again.create("log/b", b"")
    assert again.names(WRITING) == []


def test_a_folder_that_somebody_has_removed(objects: HdfsObjects) -> None:
    """The object that was to go there is refused, once; the next one makes the folder again."""
    objects.write("segments/a", b"first")
    objects._client.delete(objects._at("segments"), recursive=True)
    with pytest.raises(OSError, match="segments"):
        objects.write("segments/b", b"second")
    objects.write("segments/b", b"second")
    assert objects.read("segments/b") == b"second"
    assert objects.names(WRITING) == []


def test_an_answer_that_is_lost(objects: HdfsObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renaming is told as unanswered: the name node may have done it."""
    plain = objects._client.rename

    def lost(*given: object) -> None:
        plain(*given)
        raise OSError("the connection broke off")

    monkeypatch.setattr(objects._client, "rename", lost)
    with pytest.raises(Unanswered, match=r"^hdfs://.*: the connection broke off"):
        objects.create("log/a", b"one")
    monkeypatch.undo()
    assert not objects.create("log/a", b"one")
    objects._client.delete(objects._at("log"), recursive=True)
    with pytest.raises(Unanswered, match="not found"):  # the folder is made again by the next try
        objects.create("log/b", b"")
    assert objects.create("log/b", b"")


def test_a_name_node_that_waits_for_its_blocks(
    objects: HdfsObjects, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer is no refusal: it takes writes again after a while."""
    monkeypatch.setattr("everview.traces.store.objects.AGAIN", (0,))
    node = hdfs.cluster.getNameNode().getNamesystem()
    node.enterSafeMode(False)
    with pytest.raises(OSError, match=r"^hdfs://.*Name node is in safe mode") as told:
        objects.create("log/a", b"")
    assert not isinstance(told.value, Refusal)
    node.leaveSafeMode(True)
    assert objects.create("log/a", b"")


def test_a_child_that_was_forked(objects: HdfsObjects) -> None:
    objects.write("segments/a", b"one")
    child = os.fork()
    if not child:
        os._exit(0 if objects.read("segments/a") == b"one" else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_killed_writers_lose_nothing(hdfs: Hdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try_killed_writers(hdfs.state_url(), tmp_path, monkeypatch)


def test_a_living_writer_elsewhere_is_fenced_off(hdfs: Hdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try_two_writers(hdfs.state_url(), tmp_path, monkeypatch)


def test_a_driver_that_dies_goes_on_on_another_machine(
    spark: SparkSession,
    hdfs: Hdfs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    elsewhere: Callable[[str], None],
) -> None:
    try_dying(spark, hdfs.state_url(), tmp_path, monkeypatch, elsewhere, "after the commit")


def test_what_cannot_be_reached_says_why(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    for url, said in (
        ("hdfs:///state", "give hdfs://host:port/path"),
        ("hdfs://nameservice/state", "No NameNode hosts found"),
        (f"{hdfs.address}/state?replication=2", "has no options"),
        (hdfs.address.replace("//", "//ada@") + "/state", "set HADOOP_USER_NAME"),
    ):
        with pytest.raises(StoreError, match=said):
            Store.exists(url)
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    with pytest.raises(Refusal, match=r"not let us in at hdfs://.*Permission denied: user=stranger.*; set HADOOP"):
        objects_at(hdfs.state_url()).write("segments/a", b"")
    with pytest.raises(StoreError, match="Permission denied: user=stranger"):
        Store.create(hdfs.state_url(), PLAN)
    monkeypatch.setattr("everview.traces.store.objects.AGAIN", ())
    monkeypatch.setitem(hdfs_objects.PATIENCE, "dfs.client.failover.max.attempts", "1")
    with pytest.raises(StoreError, match=r"the state at hdfs://127.0.0.1:1/state cannot be read.*refused"):
        Store.attach("hdfs://127.0.0.1:1/state")


def test_without_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr("everview.traces.store.objects.import_module", missing)
    with pytest.raises(MissingRuntime, match=r"needs hdfs_native, .*: pip install 'everview\[hdfs\]'"):
        Store.exists("hdfs://host:8020/state")
