"""Errors of the disk: a failed commit leaves the state as it was, or the store says that it cannot tell."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from everview.errors import StoreError
from everview.traces.store import Fingerprints, Policy, Store
from everview.traces.store.files import File
from traces.store.disk import UnsyncedFiles
from traces.store.scenario import LAST, POLICY, batch, check, contents, expected, live

PLAN = Fingerprints("plan", {"edges": "e"})


class FailingFiles(UnsyncedFiles):
    """Fails the operations that are listed, each once; an append fails with half of it written."""

    def __init__(self, *failing: str, code: int = errno.ENOSPC) -> None:
        super().__init__(self._before)
        self.failing = list(failing)
        self._code = code

    def _before(self, operation: str, path: Path) -> None:
        if operation != "append" and operation in self.failing:
            self._fail(operation)

    def append(self, file: File, data: bytes | memoryview, at: int) -> None:
        if "append" not in self.failing:
            super().append(file, data, at)
            return
        super().append(file, memoryview(data)[: len(data) // 2], at)
        self._fail("append")

    def _fail(self, operation: str) -> None:
        self.failing.remove(operation)
        raise OSError(self._code, os.strerror(self._code))


def opened(path: Path, files: FailingFiles, policy: Policy = POLICY) -> Store:
    store = Store.create(path, PLAN, policy, files)
    store.commit(1, [("edges", 0, batch(1, 1))])
    return store


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("rows", [1, 1000])
@pytest.mark.parametrize("operation", ["create", "append", "sync", "sync_dir"])
def test_a_failed_commit_changes_nothing(tmp_path: Path, operation: str, rows: int, code: int) -> None:
    files = FailingFiles(code=code)
    with opened(tmp_path / "s", files) as store:
        before = contents(store)
        files.failing = [operation]
        if rows == 1 and operation in ("create", "sync_dir"):
            return  # a small commit has neither
        with pytest.raises(StoreError, match="commit of epoch 2 failed") as raised:
            store.commit(2, [("edges", 0, batch(2, rows))])
        assert isinstance(raised.value.__cause__, OSError)
        assert raised.value.__cause__.errno == code
        assert (store.epoch, contents(store)) == (1, before)
        assert not any(store.path.glob("segments/*"))
        store.commit(2, [("edges", 0, batch(3, rows))])
        after = contents(store)
    with Store.open(tmp_path / "s") as store:
        assert (store.epoch, contents(store)) == (2, after)
        store.verify()


@pytest.mark.parametrize("failing", [("append", "truncate"), ("sync", "sync")])
def test_a_commit_that_cannot_be_undone_ends_the_writer(tmp_path: Path, failing: tuple[str, ...]) -> None:
    files = FailingFiles()
    store = opened(tmp_path / "s", files)
    before = contents(store)
    files.failing = list(failing)
    with pytest.raises(StoreError, match="could not be undone"):
        store.commit(2, [("edges", 0, batch(2, 1))])
    assert contents(store) == before
    for act in (lambda: store.commit(2), store.checkpoint, store.vacuum, store.flush):
        with pytest.raises(StoreError, match="refused: an earlier commit of epoch 2 failed"):
            act()
    store.close()
    with Store.open(tmp_path / "s") as store:
        assert (store.epoch, contents(store)) == (1, before)
        store.commit(2, [("edges", 0, batch(2, 1))])


def test_a_failed_sync_that_others_waited_for_ends_the_writer(tmp_path: Path) -> None:
    files = FailingFiles()
    store = opened(tmp_path / "s", files, Policy(sync=1e9))
    files.failing = ["sync"]
    with pytest.raises(StoreError, match="commits were waiting for a sync that failed"):
        store.flush()
    with pytest.raises(StoreError, match="refused"):
        store.commit(2)
    store.close()


@pytest.mark.parametrize("operation", ["create", "append", "sync", "rename"])
def test_a_failed_checkpoint_changes_nothing(tmp_path: Path, operation: str) -> None:
    files = FailingFiles()
    with opened(tmp_path / "s", files) as store:
        before, [log] = contents(store), list(store.path.glob("log/*"))
        files.failing = [operation]
        with pytest.raises(StoreError, match="checkpoint failed"):
            store.checkpoint()
        assert contents(store) == before
        assert list(store.path.glob("log/*")) == [log]
        assert not any(store.path.glob("segments/*"))
        store.commit(2, [("edges", 0, batch(2, 1))])
        store.checkpoint()
        store.verify()


def test_a_checkpoint_of_which_no_one_knows_ends_the_writer(tmp_path: Path) -> None:
    """The new log may be there after a power failure: commits to the old one could be lost."""
    files = FailingFiles()
    with opened(tmp_path / "s", files) as store:
        store.checkpoint()
        store.commit(2)
        before = contents(store)
        files.failing = ["sync_dir"]
        with pytest.raises(StoreError, match="may or may not be there"):
            store.checkpoint()
        with pytest.raises(StoreError, match="refused"):
            store.commit(3)
    with Store.open(tmp_path / "s") as store:
        assert (store.epoch, contents(store)) == (2, before)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_interrupted_commit_is_undone(tmp_path: Path, times: int) -> None:
    """Ctrl-C may come between the disk and the memory of it; and again, while that is seen to."""

    class Interrupting(FailingFiles):
        left = times

        def _fail(self, operation: str) -> None:
            if self.left:
                self.left -= 1
                raise KeyboardInterrupt

    files = Interrupting()
    with opened(tmp_path / "s", files) as store:
        before = contents(store)
        files.failing = ["sync"]
        while files.left:
            with pytest.raises(KeyboardInterrupt):
                store.commit(2)
        assert (store.epoch, contents(store)) == (1, before)
        store.commit(2)
    with Store.open(tmp_path / "s") as store:
        assert (store.epoch, contents(store)) == (2, before)


@pytest.mark.slow
def test_every_operation_of_a_life_may_fail_once(tmp_path: Path) -> None:
    """Whatever fails, whoever tries again gets to the same end."""
    total = 0

    def count(operation: str, path: Path) -> None:
        nonlocal total
        total += 1

    live(tmp_path / "whole", UnsyncedFiles(count), lambda _: None)
    for at in range(1, total + 1):
        path = tmp_path / str(at)
        acknowledged = _live_with_one_failure(path, at)
        found: list[int] = []
        live(path, UnsyncedFiles(), found.append)
        assert not acknowledged or found[0] in (acknowledged[-1], acknowledged[-1] + 1), at
        check(path)
        with Store.attach(path) as state:
            assert contents(state) == expected(LAST)
        shutil.rmtree(path)


def _live_with_one_failure(path: Path, at: int) -> list[int]:
    operations = 0
    acknowledged: list[int] = []

    def before(operation: str, path: Path) -> None:
        nonlocal operations
        operations += 1
        if operations == at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    try:
        live(path, UnsyncedFiles(before), acknowledged.append)
    except (StoreError, OSError):  # the latter in a task, which writes its segment without a store
        return acknowledged
    return acknowledged
