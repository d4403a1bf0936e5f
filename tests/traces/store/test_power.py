"""Power lost at any moment: what was synced is there, the rest perhaps, and it is always some whole epoch."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everview.traces.store import Policy, Store
from everview.traces.store.record import written_size
from traces.store.disk import Disk, Event, RecordedFiles, UnsyncedFiles
from traces.store.scenario import LAST, OLD, batch, check, contents, expected, live


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event]]:
    """The whole scenario, with the acknowledgements among the file operations."""
    root = tmp_path_factory.mktemp("recorded")
    files = RecordedFiles()
    live(root / "state", files, lambda epoch: files.journal.append(("acknowledged", epoch)))
    return root, files.journal


def moments(root: Path, journal: list[Event]) -> Iterator[tuple[int, int | None, Event, Disk]]:
    """Every moment: its number, the last acknowledged epoch, what just happened, and the disk."""
    disk, acknowledged = Disk(root), None
    for number, event in enumerate(journal):
        if event[0] == "acknowledged":
            acknowledged = event[1]
        else:
            disk.play(event)
        yield number, acknowledged, event, disk


def require(path: Path, acknowledged: int | None) -> None:
    """The state is at the acknowledged epoch, or at the one under way, and whole."""
    if not Store.exists(path):
        assert acknowledged is None
        return
    last = acknowledged or 0
    with Store.open(path, files=UnsyncedFiles()) as store:
        assert store.epoch in (last, last + 1)
        assert contents(store) == expected(store.epoch)


def whole(synced: bytes, data: bytes) -> bytes:
    return data


def test_only_what_was_synced_survives(tmp_path: Path, journal: tuple[Path, list[Event]]) -> None:
    for number, acknowledged, _, disk in moments(*journal):
        left = tmp_path / str(number)
        disk.lose_power(left, lambda versions: versions[0], whole)
        require(left / "state", acknowledged)
        shutil.rmtree(left)


def torn(chance: random.Random) -> Callable[[bytes, bytes], bytes]:
    """Any sectors of what is written over are there; what is appended is cut off anywhere, or ends in zeros."""

    def tear(synced: bytes, data: bytes) -> bytes:
        over = range(0, min(len(synced), len(data)), 512)
        data = (
            b"".join([chance.choice((synced, data))[at : at + 512] for at in over[:-1]]) + data[512 * len(over[:-1]) :]
        )
        size = chance.randint(min(len(synced), len(data)), len(data))
        if chance.random() < 0.5:
            return data[:size]
        sectors = min(size + -size % 512, len(data))
        return data[:sectors] + bytes(len(data) - sectors)

    return tear


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_anything_unsynced_may_survive_or_not(tmp_path: Path, journal: tuple[Path, list[Event]], seed: int) -> None:
    chance = random.Random(seed)

    def pick(versions: list[Any]) -> Any:
        return chance.choice(versions)

    for number, acknowledged, _, disk in moments(*journal):
        left = tmp_path / str(number)
        disk.lose_power(left, pick, torn(chance))
        require(left / "state", acknowledged)
        if number % 10 == seed:
            live(left / "state", UnsyncedFiles(), lambda _: None)
            check(left / "state")
            assert Store.history(left / "state")[-1] == LAST
        shutil.rmtree(left)


@pytest.mark.slow
def test_an_append_torn_at_every_length(tmp_path: Path, journal: tuple[Path, list[Event]]) -> None:
    """Most lengths are sampled, but some records are torn at every single byte."""
    torn_records = 0
    for number, acknowledged, event, disk in moments(*journal):
        in_log = event[0] == "append" and event[2].startswith(b"EVR1") and acknowledged is not None
        if not in_log:
            continue
        torn_records += 1
        step = 1 if torn_records == 9 else 41
        for cut in range(step - 1, written_size(event[2]), step):
            left = tmp_path / f"{number}-{cut}"
            disk.lose_power(left, lambda versions: versions[-1], _cut_last(*event[2:], cut))
            require(left / "state", acknowledged)
            shutil.rmtree(left)
    assert torn_records > LAST


def _cut_last(appended: bytes, at: int, cut: int) -> Callable[[bytes, bytes], bytes]:
    """Keep `cut` bytes of the append; other files are as they were."""

    def tear(synced: bytes, data: bytes) -> bytes:
        return data[: at + cut] + synced[at + cut :] if data[at : at + len(appended)] == appended else data

    return tear


def test_with_a_sync_now_and_then_power_loses_only_the_end(tmp_path: Path) -> None:
    """What was flushed is there; of what came after, the first so many epochs."""
    root, files = tmp_path / "recorded", RecordedFiles()
    root.mkdir()
    flushed = 0
    with Store.create(root / "state", OLD, Policy(sync=1e9), files) as store:
        for epoch in range(1, 10):
            store.commit(epoch, [("edges", 0, batch(epoch, 1))])
            files.journal.append(("acknowledged", epoch))
            if epoch % 4 == 0:
                store.flush()
                files.journal.append(("flushed", epoch))
    disk, acknowledged = Disk(root), None
    for number, event in enumerate(files.journal):
        match event:
            case ("acknowledged", epoch):
                acknowledged = epoch
            case ("flushed", epoch):
                flushed = epoch
            case _:
                disk.play(event)
        if acknowledged is None:
            continue
        for seed in range(3):
            left, chance = tmp_path / f"{number}-{seed}", random.Random(seed)
            disk.lose_power(left, chance.choice, lambda _, data: data)
            with Store.attach(left / "state") as state:
                assert flushed <= state.epoch <= acknowledged + 1
                found = [int(part.array[0, 0]) for part in state.slices("edges")]
                assert found == list(range(1, state.epoch + 1))
