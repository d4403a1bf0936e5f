"""What is not a state, or not ours to write, is refused with a hint that helps."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from everview.errors import CorruptState, ForeignState, LockedState, StoreError
from everview.traces.store import Fingerprints, Replace, SegmentWriter, Store
from everview.traces.store.layout import format_text
from traces.store.scenario import batch

PLAN = Fingerprints("plan")
OPENERS: list[Callable[[Path], object]] = [Store.open, Store.attach, Store.history]


def refusal(act: Callable[[], object], kind: type[StoreError] = StoreError) -> str:
    with pytest.raises(kind) as raised:
        act()
    assert raised.value.hint
    return raised.value.message


@pytest.mark.parametrize("opener", OPENERS)
def test_not_a_state(tmp_path: Path, opener: Callable[[Path], object]) -> None:
    assert "does not exist" in refusal(lambda: opener(tmp_path / "missing"))
    (tmp_path / "file").write_text("x")
    assert "is a file" in refusal(lambda: opener(tmp_path / "file"))
    assert "is not a state directory" in refusal(lambda: opener(tmp_path))


@pytest.mark.parametrize("opener", OPENERS)
def test_a_newer_format(tmp_path: Path, opener: Callable[[Path], object]) -> None:
    Store.create(tmp_path / "s", PLAN).close()
    (tmp_path / "s" / "FORMAT").write_bytes(format_text(12))
    assert "has format 12" in refusal(lambda: opener(tmp_path / "s"), ForeignState)
    (tmp_path / "s" / "FORMAT").write_bytes(format_text(1).replace(b"1", b"2", 1))
    assert "FORMAT is damaged" in refusal(lambda: opener(tmp_path / "s"), CorruptState)


def test_creating_over_something(tmp_path: Path) -> None:
    Store.create(tmp_path / "s", PLAN).close()
    assert "already holds a state" in refusal(lambda: Store.create(tmp_path / "s", PLAN))
    (tmp_path / "file").write_text("x")
    assert "is a file" in refusal(lambda: Store.create(tmp_path / "file", PLAN))
    assert "is not empty (it holds file)" in refusal(lambda: Store.create(tmp_path, PLAN))


def test_creating_in_an_empty_or_deep_directory(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    Store.create(tmp_path / "empty", PLAN).close()
    Store.create(tmp_path / "a" / "b" / "c", PLAN).close()
    assert Store.exists(tmp_path / "a" / "b" / "c")
    assert not Store.exists(tmp_path / "a")


def test_a_state_that_lost_its_format_is_not_created_anew(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        store.commit(1)
    (tmp_path / "s" / "FORMAT").unlink()
    assert "FORMAT is damaged" in refusal(lambda: Store.create(tmp_path / "s", PLAN), CorruptState)


def test_a_state_that_lost_its_logs(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN):
        pass
    next(tmp_path.glob("s/log/*")).unlink()
    assert "has no log" in refusal(lambda: Store.open(tmp_path / "s"), CorruptState)


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 300)
    assert "too long" in refusal(lambda: Store.create(target, PLAN))


def test_a_second_writer_in_the_same_process(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        message = refusal(lambda: Store.open(tmp_path / "s"), LockedState)
        assert f"process {os.getpid()}" in message
        refusal(lambda: Store.rewind(tmp_path / "s", 0), LockedState)
        store.commit(1)
    Store.open(tmp_path / "s").close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_second_writer_in_another_process(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    opened, done = context.Event(), context.Event()

    def hold() -> None:
        with Store.create(tmp_path / "s", PLAN):
            opened.set()
            done.wait(30)

    other = context.Process(target=hold)
    other.start()
    assert opened.wait(30)
    assert f"process {other.pid}" in refusal(lambda: Store.open(tmp_path / "s"), LockedState)
    with Store.attach(tmp_path / "s") as state:
        assert state.epoch == 0
    done.set()
    other.join(30)
    Store.open(tmp_path / "s").close()


def test_a_failed_open_lets_the_next_one_in(tmp_path: Path) -> None:
    Store.create(tmp_path / "s", PLAN).close()
    refusal(lambda: Store.open(tmp_path / "s", Fingerprints("other")), ForeignState)
    Store.open(tmp_path / "s", PLAN).close()


def test_a_closed_store_commits_no_more(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "s", PLAN)
    store.close()
    assert "it is closed" in refusal(lambda: store.commit(1))


def test_a_task_on_a_machine_without_the_directory(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path / "elsewhere", 1, 0)
    assert "does not exist on this machine" in refusal(lambda: writer.add("edges", 0, batch(1, 1)))


def test_a_closed_reader_reads_no_more(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        store.commit(1, [("edges", 0, batch(1, 1))])
    state = Store.attach(tmp_path / "s")
    state.close()
    state.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        state.slices("edges")


def test_our_own_mistakes_are_assertions_and_harmless(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        with SegmentWriter(store.path, 1, 0) as writer:
            ref = writer.add("edges", 0, batch(1, 1))
            assert "not a finished segment" in refusal(lambda: store.commit(1, segments=[ref]))
            with pytest.raises(AssertionError, match="0-dimensional"):
                writer.add("edges", 0, batch(1, 1)[0, 0].reshape(()))
        assert "not a finished segment" in refusal(lambda: store.commit(1, segments=[ref]))
        with pytest.raises(AssertionError, match="contiguous"):
            store.commit(1, [("edges", 0, batch(1, 4)[:, :2])])
        with pytest.raises(AssertionError, match="not all of"):
            store.commit(1, replaces=[Replace("edges", 0, (42,), None)])
        store.commit(1)
        store.verify()
