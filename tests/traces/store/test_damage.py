"""Altered bytes are found and named, wherever they are; only an unfinished last record is forgiven."""

from __future__ import annotations

import random
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from everview.errors import CorruptState
from everview.traces.store import NEVER, Fingerprints, Policy, SegmentWriter, Store
from everview.traces.store.record import BLANK, written_size
from traces.store.disk import UnsyncedFiles
from traces.store.scenario import POLICY, batch, check, contents, expected, live

PLAN = Fingerprints("plan", {"edges": "e"})


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state with several logs, segments, inline slices and a history."""
    path = tmp_path_factory.mktemp("sound") / "state"
    live(path, UnsyncedFiles(), lambda _: None, last=12)
    check(path)
    return path


def data_files(path: Path) -> list[Path]:
    """All but LOCK, which holds no data."""
    return sorted(file for file in path.rglob("*") if file.is_file() and file.name != "LOCK")


def alter(file: Path, at: int, mask: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= mask
    file.write_bytes(data)


def open_and_verify(path: Path) -> None:
    with Store.attach(path) as state:
        contents(state)
        state.verify()


@pytest.mark.slow
def test_every_altered_byte_is_found_and_its_file_named(tmp_path: Path, sound: Path) -> None:
    path, chance = tmp_path / "state", random.Random(0)
    shutil.copytree(sound, path)
    for file in data_files(path):
        size = file.stat().st_size
        for at in {*range(min(size, 48)), *range(max(0, size - 24), size), *range(0, size, 97)}:
            mask = chance.choice([1, 0x20, 0x80, 0xFF, chance.randrange(1, 256)])
            alter(file, at, mask)
            with pytest.raises(CorruptState) as raised:
                open_and_verify(path)
            assert str(file) in raised.value.message, (at, mask)
            alter(file, at, mask)
    open_and_verify(path)


def test_an_altered_slice_is_named_when_it_is_first_used(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        store.commit(1, [("edges", 5, batch(1, 100_000)), ("edges", 6, batch(2, 5000))])
        store.commit(2, [("edges", 7, batch(3, 2))])
        file = tmp_path / "s" / "segments" / store.manifest.slices["edges", 5][0].ref.file
    alter(file, 64 + 1000, 4)
    with Store.open(tmp_path / "s") as store:
        assert len(store.slices("edges", 6)) == len(store.slices("edges", 7)) == 1
        with pytest.raises(CorruptState, match=r'slice of "edges", shard 5, at byte 64'):
            store.slices("edges", 5)


@pytest.mark.parametrize("rows", [1, 5000])
def test_a_missing_segment_is_named(tmp_path: Path, rows: int) -> None:
    with Store.create(tmp_path / "s", PLAN, Policy(inline_bytes=0)) as store:
        store.commit(1, [("edges", 0, batch(1, rows))])
        file = next(store.path.glob("segments/*"))
        file.unlink()
        with pytest.raises(CorruptState, match=file.name):
            store.slices("edges", 0)
        with pytest.raises(CorruptState, match=file.name):
            store.verify()


def test_a_segment_cut_short_is_named(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN, Policy(inline_bytes=0)) as store:
        store.commit(1, [("edges", 0, batch(1, 5000)), ("edges", 1, batch(1, 1))])
        file = next(store.path.glob("segments/*"))
        file.write_bytes(file.read_bytes()[:1000])
        for shard in (0, 1):
            with pytest.raises(CorruptState, match=file.name):
                store.slices("edges", shard)


def three_commits(path: Path, policy: Policy = POLICY) -> tuple[Path, list[int]]:
    """A state with three small commits: its log, and where each record begins and the last one ends."""
    with Store.create(path, PLAN, policy) as store:
        log = next(path.glob("log/*.log"))
        ends = [written_size(log.read_bytes())]
        for epoch in (1, 2, 3):
            store.commit(epoch, [("edges", 0, batch(epoch, 1))])
            ends.append(written_size(log.read_bytes()))
    return log, ends


def test_an_unfinished_last_record_is_forgiven(tmp_path: Path) -> None:
    log, ends = three_commits(tmp_path / "s")
    data = log.read_bytes()
    for size in range(ends[2], ends[3]):
        log.write_bytes(data[:size])
        with Store.open(tmp_path / "s", files=UnsyncedFiles()) as store:
            assert store.epoch == 2
            assert log.stat().st_size == ends[2]


def test_sectors_never_written_count_as_unfinished(tmp_path: Path) -> None:
    log, ends = three_commits(tmp_path / "s", Policy(inline_bytes=1 << 20))
    with Store.open(tmp_path / "s", policy=Policy(inline_bytes=1 << 20)) as store:
        store.commit(4, [("edges", 0, batch(4, 1000))])
    data = log.read_bytes()
    for sector in range(ends[3] // 512 + 1, len(data) // 512):
        log.write_bytes(data[: sector * 512] + bytes(len(data) - sector * 512))
        with Store.attach(tmp_path / "s") as state:
            assert state.epoch == 3


def with_room(log: Path) -> bytes:
    """A log as a crash leaves it, with room for more records than it has."""
    data = log.read_bytes()
    return data + BLANK * (4096 - len(data) % 512)


def commit_rows(path: Path, rows: int) -> tuple[Path, int]:
    """A fourth commit of so many rows: the log, and where the last record begins."""
    policy = Policy(inline_bytes=1 << 20)
    log, ends = three_commits(path, policy)
    with Store.open(path, policy=policy, files=UnsyncedFiles()) as store:
        store.commit(4, [("edges", 0, np.zeros((rows, 3), np.int64))])
    return log, ends[3]


@pytest.mark.parametrize("rows", [1, 10, 200])
def test_any_sectors_of_the_last_record_may_be_unwritten(tmp_path: Path, rows: int) -> None:
    """Whichever of them: the disk may write sectors in any order, and of a torn record not all of them."""
    chance = random.Random(rows)
    log, start = commit_rows(tmp_path / "s", rows)
    whole = with_room(log)
    sectors = range(start - start % 512, written_size(whole), 512)
    for number in range(40):
        data = bytearray(whole)
        unwritten = chance.sample(sectors, chance.randint(1, len(sectors))) if number else sectors
        for sector in unwritten:
            data[max(sector, start) : sector + 512] = BLANK * (sector + 512 - max(sector, start))
        log.write_bytes(data)
        with Store.attach(tmp_path / "s") as state:
            assert state.epoch == 3


@pytest.mark.parametrize("rows", [1, 10, 200])
def test_a_last_record_before_its_room_is_damaged_or_whole(tmp_path: Path, rows: int) -> None:
    """Zeros in the data of a record are not sectors that were never written."""
    log, start = commit_rows(tmp_path / "s", rows)
    whole = with_room(log)
    log.write_bytes(whole)
    with Store.attach(tmp_path / "s") as state:
        assert state.epoch == 4
    for at in range(start, written_size(whole), 29):
        alter(log, at, 0x10)
        with pytest.raises(CorruptState, match=log.name):
            Store.attach(tmp_path / "s")
        alter(log, at, 0x10)


@pytest.mark.parametrize("rows", [1, 200])
def test_a_lost_sector_before_other_records_is_damage(tmp_path: Path, rows: int) -> None:
    """A disk that has forgotten to write what it acknowledged must not take later epochs with it."""
    log, start = commit_rows(tmp_path / "s", rows)
    with Store.open(tmp_path / "s", files=UnsyncedFiles()) as store:
        end = written_size(log.read_bytes())
        for epoch in range(5, 12):
            store.commit(epoch, [("edges", 0, batch(epoch, 3))])
    whole = with_room(log)
    for sector in range(start - start % 512, end, 512):
        data = bytearray(whole)
        data[max(sector, start) : sector + 512] = BLANK * (sector + 512 - max(sector, start))
        log.write_bytes(data)
        with pytest.raises(CorruptState, match=log.name):
            Store.attach(tmp_path / "s")


def test_room_after_the_last_record_is_not_a_record(tmp_path: Path) -> None:
    log, ends = three_commits(tmp_path / "s")
    whole = with_room(log)
    for room in (1, 39, 40, 500, 4000):
        log.write_bytes(whole[: ends[3] + room])
        with Store.open(tmp_path / "s", files=UnsyncedFiles()) as store:
            assert store.epoch == 3
            store.verify()
        assert log.stat().st_size == ends[3]


def test_a_bad_record_is_damage_even_when_it_is_the_last(tmp_path: Path) -> None:
    """A complete record may have been acknowledged; which ones were, no one can tell any more."""
    log, ends = three_commits(tmp_path / "s")
    for start, end in pairwise(ends):
        for at in (start, start + 20, end - 10, end - 1):
            alter(log, at, 0x10)
            with pytest.raises(CorruptState, match=log.name) as raised:
                Store.open(tmp_path / "s")
            assert "Store.rewind" in (raised.value.hint or "")
            alter(log, at, 0x10)


def test_rewind_leads_out_of_a_damaged_log(tmp_path: Path) -> None:
    path = tmp_path / "s"
    log, ends = three_commits(path)
    alter(log, ends[2] + 50, 1)
    assert Store.history(path) == (0, 1, 2)
    with Store.attach(path, 2) as state:
        before = contents(state)
    Store.rewind(path, 2)
    with Store.open(path, PLAN) as store:
        assert (store.epoch, contents(store)) == (2, before)
        store.commit(3, [("edges", 0, batch(7, 1))])
        store.vacuum()
        store.verify()
    assert Store.history(path) == (3,)


def test_rewind_drops_later_epochs_and_keeps_earlier_ones(tmp_path: Path) -> None:
    path = tmp_path / "s"
    live(path, UnsyncedFiles(), lambda _: None, last=6)
    Store.rewind(path, 4)
    assert Store.history(path) == (0, 1, 2, 3, 4)
    live(path, UnsyncedFiles(), lambda _: None, last=12)
    check(path)
    with Store.attach(path) as state:
        assert contents(state) == expected(12)


def test_unsynced_commits_survive_the_end_of_the_process(tmp_path: Path) -> None:
    three_commits(tmp_path / "s", Policy(sync=NEVER))
    with Store.attach(tmp_path / "s") as state:
        assert state.epoch == 3


def test_a_segment_is_readable_alone_to_its_last_byte(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        with SegmentWriter(store.path, 1, 0) as writer:
            ref = writer.add("edges", 0, batch(1, 3))
            writer.add("words", 0, np.arange(5, dtype=np.uint8))
            refs = writer.finish()
        store.commit(1, segments=refs[1:])
        assert store.verify().slices == 1
        alter(store.path / "segments" / writer.name, ref.offset, 1)
        with pytest.raises(CorruptState, match="edges"):
            store.verify()  # though no one refers to that slice
