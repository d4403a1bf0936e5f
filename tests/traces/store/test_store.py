"""What a state holds: slices in order, replaced by merges, at every epoch since the last vacuum."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import ForeignState, StoreError
from everview.traces.store import (
    NEVER,
    FileSystem,
    Fingerprints,
    Policy,
    Replace,
    SegmentWriter,
    SliceRef,
    Store,
)
from everview.traces.store.manifest import Manifest, StateChange
from everview.traces.store.record import written_size
from traces.store.disk import UnsyncedFiles
from traces.store.scenario import batch, check, contents, expected, live

PLAN = Fingerprints("plan", {"edges": "e"})
ARRAYS = [
    batch(1, 1),
    batch(1, 50_000),
    np.empty((0, 4), np.int64),
    np.array([[-(2**63)], [2**63 - 1]]),
    np.arange(9),
    np.empty(0, np.int64),
    np.arange(200, dtype=np.uint8),
    np.empty(0, np.uint8),
]


def ids(store: Store, name: str = "edges", shard: int = 0) -> list[int]:
    return [part.id for part in store.slices(name, shard)]


def firsts(store: Store) -> list[int]:
    """The first value of each slice, which tells them apart."""
    return [int(part.array[0, 0]) for part in store.slices("edges")]


@pytest.mark.parametrize("inline_bytes", [0, 1 << 30])
@pytest.mark.parametrize("end", ["commit", "checkpoint", "vacuum"])
def test_arrays_come_back_as_they_were(tmp_path: Path, inline_bytes: int, end: str) -> None:
    with Store.create(tmp_path / "s", PLAN, Policy(inline_bytes=inline_bytes)) as store:
        store.commit(1, [("edges", shard, array) for shard, array in enumerate(ARRAYS)])
        getattr(store, end)(*([2] if end == "commit" else []))
        store.verify()
        _require_arrays(store)
    with Store.open(tmp_path / "s", PLAN) as store:
        _require_arrays(store)


def _require_arrays(store: Store) -> None:
    for shard, array in enumerate(ARRAYS):
        [part] = store.slices("edges", shard)
        assert part.array.dtype == array.dtype
        assert not part.array.flags.writeable
        assert part.array.flags.c_contiguous
        np.testing.assert_array_equal(part.array, array)


def test_mapped_slices_are_aligned(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        store.commit(1, [("edges", shard, batch(1, 5001 + shard)) for shard in range(5)])
        for shard in range(5):
            assert store.slices("edges", shard)[0].array.ctypes.data % 64 == 0


def test_a_merge_stands_where_its_inputs_stood(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        for epoch in (1, 2, 3, 4):
            store.commit(epoch, [("edges", 0, batch(epoch, 1))])
        one, two, three, four = ids(store)
        [merged] = store.commit(5, replaces=[Replace("edges", 0, (two, three), batch(23, 2))])
        assert ids(store) == [one, merged, four]
        assert firsts(store) == [1, 23, 4]
        added = store.commit(6, [("edges", 0, batch(6, 1))], replaces=[Replace("edges", 0, (one,), None)])
        assert (*ids(store),) == (merged, four, *added)
    with Store.open(tmp_path / "s") as store:
        assert firsts(store) == [23, 4, 6]


def test_a_queued_merge_waits_for_the_next_commit_or_checkpoint(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        store.commit(1, [("edges", 0, batch(1, 1)), ("edges", 0, batch(2, 1))])
        store.replace("edges", 0, ids(store), batch(12, 1))
        assert firsts(store) == [1, 2]
        store.checkpoint()
        assert firsts(store) == [12]
        with SegmentWriter(store.path, store.epoch, "merge") as writer:
            ref = writer.add("edges", 0, batch(77, 1))
            writer.finish()
        store.replace("edges", 0, ids(store), ref)
        store.vacuum()
        assert firsts(store) == [12], "a vacuum neither commits what is queued nor removes its segment"
        assert store.checkpoint() == (*ids(store),)
        assert firsts(store) == [77]
        store.replace("edges", 0, ids(store), None)
        store.commit(2)
        assert (store.slices("edges"), store.manifest.slices) == ((), {})
    with Store.attach(tmp_path / "s", 1) as state:
        assert int(state.slices("edges")[0].array[0, 0]) == 77


def test_ids_of_queued_merges_come_back_even_when_the_log_is_full(tmp_path: Path) -> None:
    """A commit that begins with a checkpoint of its own leaves what is queued to itself."""
    with Store.create(tmp_path / "s", PLAN, Policy(sync=NEVER, checkpoint_bytes=300)) as store:
        for epoch in range(1, 40):
            store.replace("edges", 0, ids(store), batch(epoch, 1))
            merged, added = store.commit(epoch, [("edges", 1, batch(epoch, 1))])
            assert ids(store) == [merged]
            assert ids(store, shard=1)[-1] == added
        assert len(list(store.path.glob("log/*"))) > 5


def test_ids_stay_when_a_checkpoint_moves_the_bytes(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        given_ids = store.commit(1, [("edges", 0, batch(1, 1)), ("edges", 0, batch(2, 1))])
        store.checkpoint()
        assert (*ids(store),) == given_ids
        store.commit(2, replaces=[Replace("edges", 0, given_ids, batch(12, 1))])
        assert firsts(store) == [12]


def test_references_are_plain_data(tmp_path: Path) -> None:
    """A task sends them as JSON or as a row; the driver commits them."""
    with Store.create(tmp_path / "s", PLAN) as store:
        with SegmentWriter(store.path, 1, "3.0") as writer:
            writer.add("edges", 0, batch(1, 1))
            writer.add("edges", 1, batch(2, 1))
            sent = json.dumps(writer.finish())
        store.commit(1, segments=[SliceRef(*row) for row in json.loads(sent)])
        assert firsts(store) == [1]


def test_attempts_never_overwrite_each_other(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        refs = []
        for value in (1, 2):
            with SegmentWriter(store.path, 1, "0") as writer:
                writer.add("edges", 0, batch(value, 1))
                refs.append(writer.finish())
        store.commit(1, segments=refs[0])
        assert firsts(store) == [1]
        assert store.vacuum().segments == 1  # the other attempt
        assert firsts(store) == [1]


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        with pytest.raises(AssertionError), SegmentWriter(store.path, 1, 0) as writer:
            assert not writer.add("edges", 0, batch(1, 1))
        with SegmentWriter(store.path, 1, 0) as writer:
            assert writer.finish() == ()
        assert not any(store.path.glob("segments/*"))


def test_offsets_and_metadata_are_merged_by_key(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        store.commit(1, offsets={"a": {"partition": [1, 2]}, "b": 1}, meta={"id": "x"})
        store.commit(2, offsets={"b": 2}, meta={"n": None})
        seen = store.manifest
    with Store.open(tmp_path / "s") as store:
        assert store.manifest == seen
        assert store.manifest.offsets == {"a": {"partition": [1, 2]}, "b": 2}
        assert store.manifest.meta == {"id": "x", "n": None}


def test_the_manifest_in_memory_is_the_one_on_disk(tmp_path: Path) -> None:
    """Whatever JSON makes of a tuple or a number as key, it does so at once."""
    with Store.create(tmp_path / "s", PLAN) as store:
        store.commit(1, offsets={"a": (1, {2: 3})})
        assert store.manifest.offsets == {"a": [1, {"2": 3}]}


@pytest.mark.parametrize("value", [{1}, math.nan, b"x"])
def test_what_json_cannot_say_is_refused(tmp_path: Path, value: object) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        with pytest.raises(StoreError, match="the source offsets cannot be stored"):
            store.commit(1, [("edges", 0, batch(1, 1))], offsets={"a": value})
        store.commit(1)


def test_epochs_only_increase(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        store.commit(3)
        for epoch in (3, 2, 0):
            with pytest.raises(StoreError, match=f"epoch {epoch} cannot be committed after epoch 3"):
                store.commit(epoch)
        store.commit(7)
    assert Store.history(tmp_path / "s") == (0, 3, 7)


def test_time_travel_until_vacuumed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    live(path, UnsyncedFiles(), lambda _: None, last=6)
    assert Store.history(path) == (0, 1, 2, 3, 4, 5, 6)
    check(path)
    with Store.open(path) as store:
        store.vacuum(keep_epochs=3)
        assert contents(store) == expected(6)
        assert Store.history(path)[-3:] == (4, 5, 6)
        check(path)
        store.vacuum(keep_epochs=1)
    check(path)
    assert Store.history(path) == (6,)
    with pytest.raises(StoreError, match="epoch 1 is not in") as raised:
        Store.attach(path, 1)
    assert "Store.history" in (raised.value.hint or "")
    with pytest.raises(StoreError, match="epoch 7 is not in"):
        Store.attach(path, 7)


def test_vacuum_leaves_what_the_last_epoch_needs_and_nothing_else(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN, Policy(inline_bytes=0)) as store:
        for epoch in range(1, 9):
            old = tuple(ids(store))
            store.commit(epoch, replaces=[Replace("edges", 0, old, batch(epoch, 1000))])
        orphan = SegmentWriter(store.path, 8, "failed")
        orphan.add("edges", 0, batch(1, 1))
        orphan.finish()
        with SegmentWriter(store.path, 9, "running") as running:
            running.add("edges", 0, batch(1, 1))
            refs = running.finish()
        (store.path / "log" / "0000000099.log.new").write_bytes(b"left by a crash")
        removed = store.vacuum()
        assert (removed.logs, removed.segments) == (1, 8)
        assert removed.bytes > 7 * 1000 * 24
        assert len(list(store.path.glob("segments/*"))) == 2
        assert len(list(store.path.glob("log/*"))) == 1
        store.commit(9, segments=refs)
        store.verify()


def test_vacuum_rewrites_what_little_lives_in_a_large_segment(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        store.commit(1, [("edges", 0, batch(1, 100_000)), ("edges", 1, batch(2, 5000))])
        store.commit(2, replaces=[Replace("edges", 0, tuple(ids(store)), batch(3, 1))])
        store.vacuum()
        assert sum(file.stat().st_size for file in store.path.glob("segments/*")) < 200_000
        assert (firsts(store), store.slices("edges", 1)[0].array.shape) == ([3], (5000, 3))
        before = list(store.path.rglob("*"))
        store.vacuum()
        assert list(store.path.rglob("*")) == before


def test_a_long_log_is_replaced_by_a_snapshot(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN, Policy(sync=NEVER, checkpoint_bytes=10_000)) as store:
        for epoch in range(1, 501):
            store.commit(epoch, [("edges", 0, batch(epoch, 1))])
        logs = sorted(store.path.glob("log/*"))
        assert 4 < len(logs) < 20
        assert firsts(store) == list(range(1, 501))
        store.verify()
    assert len(Store.history(tmp_path / "s")) == 501


def test_a_checkpoint_without_change_does_nothing(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        store.commit(1)
        store.checkpoint()
        before = list(store.path.rglob("*"))
        store.checkpoint()
        assert list(store.path.rglob("*")) == before


def test_how_often_a_policy_syncs(tmp_path: Path) -> None:
    for name, sync, expected_syncs in (("every", 0.0, 10), ("periodic", 1e9, 0), ("never", NEVER, 0)):
        operations: list[str] = []
        files = FileSystem(lambda operation, _, seen=operations: seen.append(operation))
        with Store.create(tmp_path / name, PLAN, Policy(sync=sync), files) as store:
            operations.clear()
            for epoch in range(1, 11):
                store.commit(epoch, [("edges", 0, batch(epoch, 1))])
            assert operations.count("sync") == expected_syncs
            assert operations.count("append") == len(operations) - expected_syncs == 10
            store.flush()
            assert operations.count("sync") == max(expected_syncs, 1)


def test_commits_are_written_over_room_that_is_there(tmp_path: Path) -> None:
    """Most of them change neither the length of the log nor where its blocks are: a sync has only theirs to write."""
    with Store.create(tmp_path / "s", PLAN) as store:
        (log,) = store.path.glob("log/*")
        lengths: list[int] = []
        for epoch in range(1, 201):
            store.commit(epoch, [("edges", 0, batch(epoch, 1))])
            lengths.append(log.stat().st_size)
        assert len(set(lengths)) < 8
        assert lengths[0] < 1 << 13, "a state with one commit is small"
        written = written_size(log.read_bytes())
    assert log.stat().st_size == written
    with Store.open(tmp_path / "s") as store:
        assert firsts(store) == list(range(1, 201))


def test_without_a_sync_for_every_commit_there_is_no_room(tmp_path: Path) -> None:
    """Several records may be unsynced there, and a hole before others would count as damage."""
    with Store.create(tmp_path / "s", PLAN, Policy(sync=1e9)) as store:
        (log,) = store.path.glob("log/*")
        store.commit(1, [("edges", 0, batch(1, 1))])
        assert log.stat().st_size == written_size(log.read_bytes())


def test_a_commit_does_not_go_through_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it costs is set by what it adds, not by what is there."""
    folded: list[int] = []
    plain = Manifest.after

    def after(self: Manifest, changes: Iterable[StateChange]) -> Manifest:
        folded.append(len(changes := list(changes)))
        return plain(self, changes)

    with Store.create(tmp_path / "s", PLAN) as store:
        monkeypatch.setattr(Manifest, "after", after)
        for epoch in range(1, 51):
            added = store.commit(epoch, [("edges", 0, batch(epoch, 1))], offsets={"a": epoch}, meta={"b": epoch})
            assert (store.added, added, store.offsets, store.meta) == (added, (epoch,), {"a": epoch}, {"b": epoch})
        assert not folded
        assert (ids(store), store.manifest.offsets, folded) == (list(range(1, 51)), {"a": 50}, [50])
        seen = store.manifest
    with Store.open(tmp_path / "s") as store:
        assert store.manifest == seen


def test_closing_syncs_what_waits(tmp_path: Path) -> None:
    for name, sync, expected_syncs in (("periodic", 1e9, 1), ("never", NEVER, 0)):
        operations: list[str] = []
        files = FileSystem(lambda operation, _, seen=operations: seen.append(operation))
        store = Store.create(tmp_path / name, PLAN, Policy(sync=sync), files)
        store.commit(1)
        operations.clear()
        store.close()
        store.close()
        assert operations.count("sync") == expected_syncs


def test_another_plan_is_refused_or_adopted(tmp_path: Path) -> None:
    old = Fingerprints("a", {"edges": "1", "paths": "1", "gone": "1"})
    new = Fingerprints("b", {"edges": "1", "paths": "2", "pairs": "1"})
    path = tmp_path / "s"
    with Store.create(path, old) as store:
        store.commit(1, [(name, 0, batch(1, 1)) for name in ("edges", "paths", "gone", "words")])
        assert store.kept == {"edges", "paths", "gone"}
    with pytest.raises(ForeignState, match="another plan") as raised:
        Store.open(path, new)
    assert "adopt=True" in (raised.value.hint or "")
    with Store.open(path, new, adopt=True) as store:
        assert store.kept == {"edges"}
        assert {name for name, _ in store.manifest.slices} == {"edges", "words"}
        with pytest.raises(StoreError, match="no commit yet"):
            store.checkpoint()
    with Store.open(path, old) as store:
        assert store.kept == {"edges", "paths", "gone"}, "without a commit, nothing was adopted"
    with Store.open(path, new, adopt=True) as store:
        store.commit(2, [("paths", 0, batch(2, 1)), ("pairs", 0, batch(2, 1))])
    with Store.open(path, new, adopt=True) as store:
        assert store.kept == {"edges", "paths", "pairs"}
        assert {name for name, _ in store.manifest.slices} == {"edges", "paths", "pairs", "words"}
    with Store.attach(path, 1) as state:
        assert state.manifest.plan == old


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 2), st.integers(0, 30)),
            st.tuples(st.just("merge"), st.integers(0, 2), st.integers(0, 5)),
            st.tuples(st.sampled_from(["checkpoint", "vacuum", "reopen"]), st.just(0), st.just(0)),
        ),
        max_size=25,
    )
)
def test_like_lists_of_lists(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]) -> None:
    """Against a model: per shard, a list of slices, each a list of numbers."""
    path = tmp_path_factory.mktemp("model") / "s"
    policy = Policy(sync=NEVER, inline_bytes=200, checkpoint_bytes=800)
    model: dict[int, list[list[int]]] = {shard: [] for shard in range(3)}
    store = Store.create(path, PLAN, policy, UnsyncedFiles())
    for step, shard, number in steps:
        parts, epoch = model[shard], store.epoch + 1
        match step:
            case "append":
                parts.append([epoch] * number)
                store.commit(epoch, [("edges", shard, np.array(parts[-1], np.int64))])
            case "merge":
                at = slice(number, number + 2)
                merged = [value for part in parts[at] for value in part]
                old = tuple(part.id for part in store.slices("edges", shard)[at])
                parts[at] = [merged]
                replaced = Replace("edges", shard, old, np.array(merged, np.int64))
                store.commit(epoch, replaces=[replaced])
            case "reopen":
                store.close()
                store = Store.open(path, PLAN, policy, UnsyncedFiles())
            case _:
                getattr(store, step)()
        found = {shard: [part.array.tolist() for part in store.slices("edges", shard)] for shard in model}
        assert found == model
    store.verify()
    store.close()
