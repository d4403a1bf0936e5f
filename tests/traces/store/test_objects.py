"""A state in an object store: what is acknowledged stays, what is refused never was, and there is one writer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.errors import CorruptState, LockedState, StoreError
from everview.traces.store import Fingerprints, SegmentWriter, Store
from everview.traces.store import mirrored as mirrored_module
from everview.traces.store import objects as objects_module
from everview.traces.store.journal import JournalPlace
from everview.traces.store.objects import Unanswered, claimed
from traces.store.object_doubles import MemoryObjects, WildObjects

PLAN = Fingerprints("plan", {"edges": "e1"})
_numbers = count()

Elsewhere = Callable[[], None]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Elsewhere:
    """Go to another machine: one with a cache of its own, and without the locks of this one."""

    def go() -> None:
        monkeypatch.setenv("EVERVIEW_CACHE", str(tmp_path / f"machine-{next(_numbers)}"))

    go()
    return go


def _url() -> str:
    return f"s3://double/state-{next(_numbers)}"


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, elsewhere: Elsewhere) -> MemoryObjects:
    objects = MemoryObjects(_url())
    monkeypatch.setattr(mirrored_module, "objects_at", lambda _: objects)
    return objects


def _rows(value: int, rows: int = 1) -> np.ndarray:
    return np.full((rows, 2), value, np.int64)


def _values(state: Store) -> dict[int, int]:
    return {int(part.array[0, 0]): len(part.array) for part in state.slices("edges")}


def _read(url: str, epoch: int | None = None) -> dict[int, int]:
    with Store.attach(url, epoch) as state:
        return {int(part.array[0, 0]): len(part.array) for part in state.slices("edges")}


def test_a_state_is_written_read_and_opened_elsewhere(memory: MemoryObjects, elsewhere: Elsewhere) -> None:
    url = memory.url
    assert not Store.exists(url)
    with Store.create(url, PLAN) as store:
        store.commit(1, [("edges", 0, _rows(1))], offsets={"log": 1})
        store.commit(2, [("edges", 0, _rows(2, 50_000))])
        with SegmentWriter(url, 3, "task") as writer:
            writer.add("edges", 0, _rows(3, 10))
            segments = writer.finish()
        store.commit(3, segments=segments)
        assert _read(url) == {1: 1, 2: 50_000, 3: 10}
    elsewhere()
    with Store.open(url, PLAN) as store:
        assert (store.epoch, store.offsets, _values(store)) == (3, {"log": 1}, {1: 1, 2: 50_000, 3: 10})
        assert str(store.place) == url
        store.commit(4, [("edges", 0, _rows(4))])
    assert Store.history(url) == (0, 1, 2, 3, 4)
    assert _read(url, 1) == {1: 1}
    Store.rewind(url, 2)
    assert _read(url) == {1: 1, 2: 50_000}
    with Store.open(url, PLAN) as store:
        store.commit(9, [("edges", 0, _rows(9))])
        store.vacuum()
        assert store.verify().logs == 1
    assert Store.history(url) == (9,)
    assert _read(url) == {1: 1, 2: 50_000, 9: 1}
    elsewhere()
    assert _read(url) == {1: 1, 2: 50_000, 9: 1}


def test_a_second_writer_fences_the_first_off(memory: MemoryObjects, elsewhere: Elsewhere) -> None:
    first = Store.create(memory.url, PLAN)
    first.commit(1, [("edges", 0, _rows(1))])
    with pytest.raises(LockedState, match=rf"another writer has {memory.url} open \(process \d+\)"):
        Store.open(memory.url)
    elsewhere()
    second = Store.open(memory.url)
    for act in (lambda: first.commit(2, [("edges", 0, _rows(2))]), first.vacuum, first.checkpoint):
        with pytest.raises(LockedState, match="another writer has taken over the state at s3://double/"):
            act()
    first.close()
    second.commit(2, [("edges", 0, _rows(22))])
    second.close()
    assert _read(memory.url) == {1: 1, 22: 1}


def test_a_writer_that_slept_through_a_vacuum_commits_nothing(memory: MemoryObjects, elsewhere: Elsewhere) -> None:
    """Its place in the journal would be free again, were the seal of its term ever removed."""
    first = Store.create(memory.url, PLAN)
    first.commit(1, [("edges", 0, _rows(1))])
    elsewhere()
    with Store.open(memory.url) as second:
        for epoch in range(2, 5):
            second.commit(epoch, [("edges", 0, _rows(epoch))])
            second.vacuum()
    with pytest.raises(LockedState):
        first.commit(2, [("edges", 0, _rows(99))])
    first.close()
    assert 99 not in _read(memory.url)


def test_a_slow_vacuum_leaves_the_segments_of_the_next_writer(
    memory: MemoryObjects, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Store.create(memory.url, PLAN)
    first.commit(1, [("edges", 0, _rows(1))])
    listed = memory.names

    def slowly(under: str) -> list[str]:
        """Another writer takes over, and writes a segment for the same epoch, before the listing arrives."""
        if under != "segments" or taken_over:
            return listed(under)
        taken_over.append(True)
        elsewhere()
        with Store.open(memory.url) as second:
            second.replace("edges", 0, [1], _rows(1, 50_000))
            second.checkpoint()
        return listed(under)

    taken_over: list[bool] = []
    monkeypatch.setattr(memory, "names", slowly)
    with pytest.raises(LockedState):
        first.vacuum()
    first.close()
    assert taken_over
    assert _read(memory.url) == {1: 50_000}


def test_a_seal_where_an_act_was_removed_does_not_count(
    memory: MemoryObjects, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first writer goes on, and removes what it wrote, between the second one's look at a place and its seal."""
    first = Store.create(memory.url, PLAN)
    first.commit(1, [("edges", 0, _rows(1))])
    create, sealing = memory.create, [True]

    def slowly(name: str, data: bytes) -> bool:
        if b'"act":"seal"' in data and sealing.pop():
            sealing.append(False)
            for epoch in (2, 3):
                first.commit(epoch, [("edges", 0, _rows(epoch))])
                first.vacuum()
            assert memory.read(name) is None
        return create(name, data)

    monkeypatch.setattr(memory, "create", slowly)
    elsewhere()
    with Store.open(memory.url) as second:
        assert _values(second) == {1: 1, 2: 1, 3: 1}
        with pytest.raises(LockedState):
            first.commit(4, [("edges", 0, _rows(4))])
        second.commit(4, [("edges", 0, _rows(44))])
    first.close()
    assert _read(memory.url) == {1: 1, 2: 1, 3: 1, 44: 1}


def test_a_lost_answer_is_asked_for_again(memory: MemoryObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects_module, "PAUSE", 0.0)
    create, answers = memory.create, iter([False, True, True])

    def answering(name: str, data: bytes) -> bool:
        made = create(name, data)
        if not next(answers, True):
            raise Unanswered("no answer")
        return made

    monkeypatch.setattr(memory, "create", answering)
    assert claimed(memory, "log/a", b"mine")
    assert not claimed(memory, "log/a", b"another's")


def test_a_store_that_never_answers_leaves_the_state_to_be_opened_again(
    memory: MemoryObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects_module, "PAUSE", 0.0)
    store = Store.create(memory.url, PLAN)

    def silent(name: str, data: bytes) -> bool:
        raise Unanswered("no answer")

    with monkeypatch.context() as silence:
        silence.setattr(memory, "create", silent)
        with pytest.raises(StoreError, match="does not say whether") as raised:
            store.commit(1, [("edges", 0, _rows(1))])
    assert raised.value.hint == "open the state again"
    assert store.uncertain
    store.close()
    with Store.open(memory.url) as store:
        store.commit(1, [("edges", 0, _rows(11))])
    assert _read(memory.url) == {11: 1}


def test_a_refused_commit_leaves_the_state_as_it_was(memory: MemoryObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.create(memory.url, PLAN) as store:

        def refusing(name: str, data: bytes) -> bool:
            raise OSError("the store does not let us in")

        with monkeypatch.context() as refusal:
            refusal.setattr(memory, "create", refusing)
            with pytest.raises(StoreError, match="does not let us in"):
                store.commit(1, [("edges", 0, _rows(1))])
        assert not store.uncertain
        store.commit(1, [("edges", 0, _rows(11))])
    assert _read(memory.url) == {11: 1}


@pytest.mark.parametrize("after", range(8))
def test_an_interrupted_commit_is_undone_in_the_journal_too(
    memory: MemoryObjects, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    store = Store.create(memory.url, PLAN)
    store.commit(1, [("edges", 0, _rows(1))])
    acts = count()

    def interrupting(act: Callable[..., object]) -> Callable[..., object]:
        def acting(*given: object) -> object:
            done = act(*given)
            if next(acts) == after:
                raise KeyboardInterrupt
            return done

        return acting

    with monkeypatch.context() as interrupts:
        for name in ("create", "write", "size"):
            interrupts.setattr(memory, name, interrupting(getattr(memory, name)))
        with pytest.raises(KeyboardInterrupt):
            _work(store)
    epoch, kept = store.epoch, _values(store)
    assert (_read(memory.url), Store.history(memory.url)[-1]) == (kept, epoch)
    store.commit(epoch + 1, [("edges", 0, _rows(99))])
    store.close()
    assert _read(memory.url) == {**kept, 99: 1}


def _work(store: Store) -> None:
    for epoch in range(2, 8):
        store.commit(epoch, [("edges", 0, _rows(epoch, 10_000 if epoch % 3 == 0 else 1))])
        if epoch % 2:
            store.checkpoint()


def test_damage_and_loss_are_told(memory: MemoryObjects, elsewhere: Elsewhere) -> None:
    with Store.create(memory.url, PLAN) as store:
        store.commit(1, [("edges", 0, _rows(1))])
        store.commit(2, [("edges", 0, _rows(2, 50_000))])
        store.commit(3, [("edges", 0, _rows(3))])
    [segment] = [name for name in memory.objects if name.startswith("segments/")]
    kept = dict(memory.objects)
    elsewhere()
    memory.objects[segment] = b"\0" * len(kept[segment])
    with Store.attach(memory.url) as state, pytest.raises(CorruptState, match="wrong checksum"):
        state.slices("edges")
    elsewhere()
    del memory.objects[segment]
    with Store.attach(memory.url) as state, pytest.raises(CorruptState, match="it is missing"):
        state.slices("edges")
    memory.objects |= kept
    first = JournalPlace(0, 1).name
    for damage in (b"", kept[first][:-1]):
        elsewhere()
        memory.objects[first] = damage
        with pytest.raises(CorruptState, match=rf"{first} is damaged"):
            Store.attach(memory.url)
    elsewhere()
    del memory.objects[first]
    with pytest.raises(CorruptState, match="what comes before it in its log is missing"):
        Store.attach(memory.url)


# -- writers on many machines, and a store that answers late, twice or not at all


class Machines:
    """Writers that come and go, and what they were told of their commits."""

    def __init__(self, objects: WildObjects, chance: random.Random, go: Callable[[], None]) -> None:
        self.objects, self.chance, self.go = objects, chance, go
        self.writers: list[Store] = []
        self.values = count(1)
        self.acknowledged: set[int] = set()
        self.refused: set[int] = set()

    def opened(self) -> None:
        self.go()
        with suppress(StoreError):
            known = Store.exists(self.objects.url)
            self.writers.append((Store.open if known else Store.create)(self.objects.url, PLAN))

    def committed(self) -> None:
        for store in self._some():
            value, rows = next(self.values), self.chance.choice([1, 1, 9000])
            try:
                store.commit(store.epoch + 1, [("edges", 0, _rows(value, rows))])
                self.acknowledged.add(value)
            except LockedState:
                self.refused.add(value)
            except StoreError:
                if not store.uncertain:  # else nobody knows
                    self.refused.add(value)

    def tidied(self) -> None:
        for store in self._some():
            with suppress(StoreError):
                self.chance.choice([store.checkpoint, store.vacuum])()

    def read(self) -> None:
        self.go()
        with suppress(StoreError):  # there may be no state yet
            assert not self.refused & _read(self.objects.url).keys()

    def _some(self) -> Iterator[Store]:
        if self.writers:
            yield self.chance.choice(self.writers[-3:])

    def end(self) -> None:
        self.objects.settle()
        for store in self.writers:
            store.close()


@given(seed=st.integers(0, 1 << 32), acts=st.lists(st.sampled_from("ocCtr"), min_size=5, max_size=40))
@settings(max_examples=60, deadline=None)
def test_acknowledged_commits_stay_and_refused_ones_never_were(seed: int, acts: list[str]) -> None:
    chance = random.Random(seed)
    with TemporaryDirectory() as caches, pytest.MonkeyPatch.context() as patch:
        objects = WildObjects(_url(), chance)
        patch.setattr(mirrored_module, "objects_at", lambda _: objects)
        patch.setattr(objects_module, "PAUSE", 0.0)
        machines = Machines(
            objects, chance, lambda: patch.setenv("EVERVIEW_CACHE", f"{caches}/machine-{next(_numbers)}")
        )
        does = {
            "o": machines.opened,
            "c": machines.committed,
            "C": machines.committed,
            "t": machines.tidied,
            "r": machines.read,
        }
        machines.opened()
        for act in acts:
            does[act]()
        machines.end()
        if not Store.exists(objects.url):
            assert not machines.acknowledged
            return
        machines.go()
        with Store.open(objects.url, PLAN) as store:
            values = _values(store)
            assert machines.acknowledged <= values.keys()
            assert not machines.refused & values.keys()
            store.verify()
