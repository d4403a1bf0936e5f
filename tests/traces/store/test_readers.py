"""Readers beside a writer: they see one epoch, whole, and keep it while they are open."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from everview.errors import CorruptState
from everview.traces.store import EVERY_TICK, NEVER, FileSystem, Fingerprints, Policy, Replace, State, Store
from everview.traces.store import reader as reader_module
from everview.traces.store import replay as replay_module
from everview.traces.store.record import BLANK, written_size
from traces.store.disk import UnsyncedFiles
from traces.store.scenario import batch, contents, expected, live

PLAN = Fingerprints("plan", {"edges": "e"})


def overwrite(store: Store, epoch: int, rows: int = 10) -> None:
    """The whole trace replaced by one slice."""
    old = tuple(part.id for part in store.slices("edges"))
    store.commit(epoch, replaces=[Replace("edges", 0, old, batch(epoch, rows))])


def value(state: State) -> int:
    [part] = state.slices("edges")
    return int(part.array[0, 0])


@pytest.mark.parametrize("rows", [1, 10_000])
def test_a_reader_keeps_its_epoch(tmp_path: Path, rows: int) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        overwrite(store, 1, rows)
        with Store.attach(tmp_path / "s") as state:
            for epoch in (2, 3, 4):
                overwrite(store, epoch, rows)
                store.vacuum()
            assert (state.epoch, value(state)) == (1, 1)  # first loaded after the vacuums
            assert Store.history(tmp_path / "s")[0] <= 1
        store.vacuum()
        store.commit(5)
        store.vacuum()
        assert Store.history(tmp_path / "s") == (5,)
        assert len(list(store.path.glob("segments/*"))) == 1


def test_mapped_arrays_outlive_their_reader_and_their_file(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        overwrite(store, 1, 100_000)
        with Store.attach(tmp_path / "s") as state:
            array = state.slices("edges")[0].array
        overwrite(store, 2)
        store.vacuum()
        np.testing.assert_array_equal(array, batch(1, 100_000))


def test_an_attach_that_a_vacuum_outruns_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log that the reader chose is gone when it wants to open it."""
    with Store.create(tmp_path / "s", PLAN) as store:
        overwrite(store, 1)
        choose, chosen = reader_module.log_of, list[Path]()

        def choose_then_vacuum(*arguments: object) -> Path:
            path = choose(*arguments)  # pyright: ignore
            chosen.append(path)
            if len(chosen) < 4:
                overwrite(store, store.epoch + 1)
                store.vacuum()
            return path

        monkeypatch.setattr(reader_module, "log_of", choose_then_vacuum)
        with Store.attach(tmp_path / "s") as state:
            assert (state.epoch, value(state)) == (4, 4)
        assert len(chosen) == 4
        assert not chosen[0].exists()


@pytest.mark.parametrize("sync", [NEVER, EVERY_TICK])
def test_readers_beside_a_busy_writer(tmp_path: Path, sync: float) -> None:
    path = tmp_path / "s"
    with Store.create(path, PLAN, Policy(sync=sync, inline_bytes=300), UnsyncedFiles()) as store:
        stop, seen, failed = threading.Event(), list[int](), list[BaseException]()

        def write(epoch: int) -> None:
            overwrite(store, epoch, epoch % 40 + 1)

        def read() -> None:
            try:
                while not stop.is_set():
                    with Store.attach(path) as state:
                        assert value(state) == state.epoch
                        assert len(state.slices("edges")[0].array) == state.epoch % 40 + 1
                        seen.append(state.epoch)
            except BaseException as error:  # noqa: BLE001, whatever it is, the test tells
                failed.append(error)

        write(1)
        thread = threading.Thread(target=read)
        thread.start()
        epoch = 1
        while not failed and (epoch < 300 or len(set(seen)) < 6):  # whoever of the two is the faster
            epoch += 1
            write(epoch)
            if epoch % 3 == 0:
                store.vacuum()
        stop.set()
        thread.join()
    assert not failed
    assert seen == sorted(seen)


@pytest.mark.parametrize("read", ["attach", "verify"])
def test_a_reader_in_the_middle_of_a_write_looks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    """Of a record that is being written over room, it may see the end before the beginning."""
    with Store.create(tmp_path / "s", PLAN) as store:
        overwrite(store, 1, rows=12)  # so that the next record does not begin at the very end of a sector
        start = written_size(next(store.path.glob("log/*")).read_bytes())
        overwrite(store, 2)
        whole, times = replay_module.read_open, 0

        def torn(descriptor: int) -> bytes:
            nonlocal times
            times += 1
            data = whole(descriptor)
            return data[:start] + BLANK * 11 + data[start + 11 :] if times < 3 else data

        with Store.attach(tmp_path / "s") as state:
            monkeypatch.setattr(replay_module, "read_open", torn)
            if read == "verify":
                with pytest.raises(CorruptState):
                    state.verify()  # twice the same: so it is
                assert times == 2
                assert state.verify().logs == 1
                return
        with pytest.raises(CorruptState):
            Store.attach(tmp_path / "s")
        times = 1
        with Store.attach(tmp_path / "s") as state:
            assert (state.epoch, value(state)) == (2, 2)


def test_a_reader_verifies_while_a_writer_goes_on(tmp_path: Path) -> None:
    live(tmp_path / "s", UnsyncedFiles(), lambda _: None, last=9)
    with Store.attach(tmp_path / "s") as state:
        live(tmp_path / "s", FileSystem(), lambda _: None, last=11)
        verified = state.verify()
        assert verified.logs > 1
        assert verified.slices > 10
        assert contents(state) == expected(9)
