"""Narrow slices: what is written comes back, whatever the words; damage is noticed; states move them as they are."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import CorruptState
from everview.traces.store import Fingerprints, SegmentWriter, SliceRef, Store, arrays, narrow, segment
from everview.traces.store.narrow import narrowed, widened
from everview.traces.store.wide_files import sweep_wide, wide_map
from everview.types.words import Matrix
from traces.store.disk import UnsyncedFiles

PLAN = Fingerprints("plan", {"edges": "e"})
LEAST, MOST = -(2**63), 2**63 - 1


@st.composite
def columns(draw: st.DrawFn, rows: int) -> list[int]:
    """Words of one kind: near each other, in steps, of a few, or any."""
    base, step = draw(st.integers(LEAST, MOST)), draw(st.sampled_from([1, 1, 7, 1000, 10**6, 2**40]))
    spread = draw(st.sampled_from([0, 1, 255, 256, 65_535, 65_536, 2**32]))
    few = draw(st.lists(st.integers(LEAST, MOST), min_size=1, max_size=4))
    near = st.integers(0, spread).map(lambda n: (base + step * n - LEAST) % 2**64 + LEAST)
    words = draw(st.sampled_from([near, st.sampled_from(few), st.integers(LEAST, MOST)]))
    return draw(st.lists(words, min_size=rows, max_size=rows))


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    rows, width = draw(st.integers(0, 12)), draw(st.integers(1, 4))
    return np.array([draw(columns(rows)) for _ in range(width)], np.int64).reshape(width, rows).T.copy()


@given(matrices(), st.sampled_from([1, 3, 8, 100]))
def test_a_matrix_comes_back(matrix: Matrix, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrow, "BLOCK", block)
        assert np.array_equal(widened(narrowed(matrix), *matrix.shape), matrix)


def test_columns_take_what_their_values_need() -> None:
    n = narrow.BLOCK
    draw = np.random.default_rng(0)
    hashes = draw.integers(LEAST, MOST, 50)
    for column, bytes_ in (
        (np.ones(n, np.int64), 0),
        (draw.integers(0, 200, n) + 10**15, 1),
        (draw.integers(0, 60_000, n) * 10**6, 2),
        (draw.integers(0, 10**6, n), 4),
        (hashes[draw.integers(0, 50, n)], 1),
        (draw.integers(LEAST, MOST, n), 8),
    ):
        matrix = column.reshape(-1, 1)
        octets = narrowed(matrix)
        assert bytes_ * n <= len(octets) <= bytes_ * n + 2_100
        assert np.array_equal(widened(octets, n, 1), matrix)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Matrix:
    """A matrix that is large enough for a narrow slice."""
    monkeypatch.setattr(segment, "NARROW_FROM", 1_000)
    return np.stack([np.arange(5_000) * 3, np.arange(5_000) % 7, np.ones(5_000, np.int64)], axis=1)


def written(store: Store, epoch: int, *matrices: Matrix) -> tuple[SliceRef, ...]:
    with SegmentWriter(store.path, epoch, "0.0", UnsyncedFiles()) as writer:
        for shard, matrix in enumerate(matrices):
            writer.add_trace("edges", shard, matrix)
        refs = writer.finish()
    store.commit(epoch, segments=refs)
    return refs


def test_a_state_holds_narrow_slices(tmp_path: Path, large: Matrix) -> None:
    wide = np.random.default_rng(1).integers(LEAST, MOST, (2_000, 2))
    with Store.create(tmp_path / "s", PLAN) as store:
        refs = written(store, 1, large, large[:3], wide)
        assert [ref.is_narrow for ref in refs] == [True, False, False]
        assert refs[0].nbytes == large.nbytes
        assert refs[0].stored < large.nbytes / 4
        store.verify()
    with Store.attach(tmp_path / "s") as state:
        for shard, matrix in enumerate((large, large[:3], wide)):
            (found,) = state.slices("edges", shard)
            assert np.array_equal(found.array, matrix)
            assert not found.array.flags.writeable
        state.let_go(0)
        assert np.array_equal(state.slices("edges", 0)[0].array, large)


def test_a_vacuum_moves_narrow_slices_as_they_are(tmp_path: Path, large: Matrix) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        written(store, 1, large, *[np.random.default_rng(2).integers(LEAST, MOST, (20_000, 2))] * 2)
        for shard in (1, 2):
            (part,) = store.slices("edges", shard)
            store.replace("edges", shard, [part.id], None)
        store.commit(2)
        store.vacuum()
        (entry,) = store.manifest.entries()
        assert entry.ref.is_narrow
        assert "store" in entry.ref.file
        store.verify()
        assert np.array_equal(store.slices("edges")[0].array, large)


def test_damage_is_noticed(tmp_path: Path, large: Matrix) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        (ref,) = written(store, 1, large)
    path = tmp_path / "s" / "segments" / ref.file
    octets = bytearray(path.read_bytes())
    octets[ref.end - 5] ^= 1
    path.write_bytes(octets)
    with Store.attach(tmp_path / "s") as state:
        with pytest.raises(CorruptState, match="wrong checksum"):
            state.slices("edges")
        with pytest.raises(CorruptState, match="wrong checksum"):
            state.verify()


def test_a_slice_is_widened_once_for_all_processes(
    tmp_path: Path, large: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERVIEW_CACHE", str(tmp_path / "cache"))
    with Store.create(tmp_path / "s", PLAN) as store:
        written(store, 1, large)
        first = store.slices("edges")[0].array
        (folder,) = (tmp_path / "cache").iterdir()
        (file,) = folder.iterdir()
        monkeypatch.setattr(arrays, "widened_blocks", lambda *_: (pytest.fail("it is there") for _ in "1"))
        with Store.attach(tmp_path / "s") as state:
            again = state.slices("edges")[0].array
        assert np.array_equal(again, first)
        sweep_wide(folder)  # both are in use
        assert list(folder.iterdir()) == [file]
    del first, again, store, state
    gc.collect()
    sweep_wide(folder)
    assert list(folder.iterdir()) == []


def test_files_that_are_not_whole_or_of_before_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERVIEW_CACHE", str(tmp_path))
    (tmp_path / "wide-of-before").mkdir()
    matrix = np.arange(8).reshape(4, 2)
    assert bytes(wide_map("one", matrix.nbytes, [matrix])) == matrix.tobytes()
    (folder,) = tmp_path.iterdir()
    (folder / "one").write_bytes(b"1")
    assert bytes(wide_map("one", matrix.nbytes, [matrix[:2], matrix[2:]])) == matrix.tobytes()
    with pytest.raises(ZeroDivisionError):
        wide_map("two", matrix.nbytes, (np.arange(1 // n) for n in (1, 0)))
    assert [path.name for path in folder.iterdir()] == ["one"]
