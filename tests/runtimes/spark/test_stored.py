"""A state read without its circuit: contents at every kept epoch, and changes between any two, as a model has them."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everview.circuit import Circuit
from everview.codes import Dictionary, decode_rows, encode_pairs
from everview.codes.dictionary import Entries
from everview.errors import EverviewError, SchemaError, StoreError, UnknownName, WeightOverflow
from everview.runtimes.embedded import Embedded
from everview.runtimes.embedded.interned import PARTS, chunks_of, unflagged
from everview.runtimes.spark import stored
from everview.runtimes.spark.worker import Replica
from everview.traces.store import NEVER, Fingerprints, Policy, State, Store
from everview.types import Schema

SCHEMA = "name STRING, n BIGINT NOT NULL, tags ARRAY<STRING>"
POLICY = Policy(sync=NEVER, inline_bytes=600, checkpoint_bytes=1500)
PLAN = Fingerprints("plan", {"t": "rows"})

Rows = Counter[tuple[Any, ...]]


# -- states that a runtime writes


def circuit() -> Circuit:
    """The rows themselves, all on one shard, and their number by name, on many."""
    built = Circuit()
    rows = built.source("rows", SCHEMA)
    rows.sink("rows")
    rows.aggregate(["name"], n="count").sink("by name")
    return built


def meanings(rows: Rows) -> dict[str, Rows]:
    """What the views of `circuit` hold."""
    counts: Counter[str | None] = Counter()
    for (name, _, _), weight in rows.items():
        counts[name] += weight
    by_name = Counter({(name, n): 1 for name, n in counts.items() if n})
    return {"rows": Counter({row: weight for row, weight in rows.items() if weight}), "by name": by_name}


def embedded(path: Path, shards: int, built: Circuit | None = None) -> Embedded:
    return Embedded(built or circuit(), path, shards=shards, policy=POLICY)


def decoded(schema: Schema, matrices: Iterable[np.ndarray], states: Iterable[State]) -> Rows:
    """The rows of all shards with their weights."""
    whole = np.concatenate(list(matrices))
    dictionary = stored.dictionary_for(schema, whole, states)
    found: Rows = Counter()
    for row, weight in zip(decode_rows(schema, whole[:, :-1], dictionary), whole[:, -1].tolist(), strict=True):
        found[tuple(tuple(v) if isinstance(v, list) else v for v in row)] += weight
    return found


def contents(state: State, name: str) -> Rows:
    relation = stored.view(state, name)
    return decoded(relation.schema, (stored.contents(state, relation, s) for s in range(stored.shards(state))), [state])


def changes(before: State | None, after: State, name: str) -> Rows:
    states = [after] if before is None else [before, after]
    parts = (stored.changes(before, after, name, shard) for shard in range(stored.shards(after)))
    return decoded(stored.view(after, name).schema, parts, states)


def minus(a: Rows, b: Rows) -> Rows:
    return Counter({row: a[row] - b[row] for row in a.keys() | b.keys() if a[row] != b[row]})


# -- the property

names = st.sampled_from([None, "", "Ada", "Bob", "Çelik", "a name that is longer than the others"])
tags = st.sampled_from([None, (), ("x",), ("x", None, "y")])
rows = st.tuples(names, st.integers(0, 3), tags)
ticks = st.tuples(st.just("tick"), st.lists(st.tuples(rows, st.sampled_from([1, 1, 2, -1, -2])), max_size=8))
steps = st.lists(
    ticks
    | ticks
    | st.tuples(st.just("tidy"), st.none())
    | st.tuples(st.just("vacuum"), st.integers(1, 4))
    | st.tuples(st.just("reopen"), st.none()),
    max_size=12,
)


def live(path: Path, shards: int, script: Iterable[tuple[str, Any]]) -> dict[int, Rows]:
    """Run a script; the rows of every epoch."""
    run = embedded(path, shards)
    now: Rows = Counter()
    history = {0: now}
    for what, given_ in script:
        if what == "tick":
            applied: Rows = Counter()
            for row, weight in given_:
                applied[row] += max(weight, -now[row] - applied[row])
            run.tick({"rows": list(applied.items())})
            now = Counter(now)
            now.update(applied)
            history[run.epoch] = now
        elif what == "tidy":
            assert run.durable is not None
            run.durable.tidy(run.state)
        elif what == "vacuum":
            run.vacuum(given_)
        else:
            run.close()
            run = embedded(path, shards)
    run.close()
    return history


@given(script=steps, shards=st.integers(1, 3))
@example(
    script=[
        ("tick", [(("Ada", 1, ("x",)), 1)]),
        ("tick", [(("Ada", 1, ("x",)), -1)]),
        ("vacuum", 3),  # nothing refers to "Ada" any more, but epoch 1 does
        ("tick", [(("Bob", 1, None), 1)]),
    ],
    shards=2,
)
def test_contents_and_changes_are_those_of_a_model(script: list[tuple[str, Any]], shards: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "s"
        history = live(path, shards, script)
        kept = [epoch for epoch in Store.history(path) if epoch]
        states = {epoch: Store.attach(path, epoch) for epoch in kept}
        for epoch, state in states.items():
            assert {name: contents(state, name) for name in stored.views(state)} == meanings(history[epoch])
            assert {name: changes(None, state, name) for name in stored.views(state)} == meanings(history[epoch])
        for since, until in product(kept, kept):
            then, now = meanings(history[since]), meanings(history[until])
            for name in now:
                assert changes(states[since], states[until], name) == minus(now[name], then[name])
        for state in states.values():
            state.close()
        if kept:
            check_by_epoch(path, shards, history, kept)


def check_by_epoch(path: Path, shards: int, history: dict[int, Rows], kept: list[int]) -> None:
    """From the beginning, and from the first epoch that is kept."""
    for since in (0, kept[0]):
        epochs = stored.epochs_between(path, since, kept[-1])
        schema = Schema.parse(SCHEMA)
        found: dict[int, Rows] = {epoch: Counter() for epoch in epochs}
        for run in stored.by_epoch(path, "rows", schema, range(shards), since, epochs):
            for epoch, matrix in run.changes:
                found[epoch].update(decoded(schema, [matrix], run.states))
        before = [since, *epochs]
        for earlier, epoch in zip(before, epochs, strict=False):
            assert found[epoch] == minus(history[epoch], history[earlier])


@given(script=steps)
def test_a_replica_sees_what_a_fresh_reader_sees(script: list[tuple[str, Any]]) -> None:
    """Whatever way it goes through the epochs: reading on in a log, or starting over in another."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "s"
        live(path, 2, script)
        kept = Store.history(path)
        replica = Replica(str(path))
        for epoch in (*kept, *reversed(kept), *kept[::2]):
            replica.at(epoch)
            with Store.attach(path, epoch) as state:
                for name, shard in state.manifest.slices:
                    ours, theirs = replica.slices(name, shard), state.slices(name, shard)
                    assert [part.id for part in ours] == [part.id for part in theirs]
                    assert all(np.array_equal(a.array, b.array) for a, b in zip(ours, theirs, strict=True))
                known = stored_dictionary(state).export()
                require_same_values(replica, known)


def stored_dictionary(state: State) -> Dictionary:
    whole = Dictionary()
    for chunks in chunks_of(state.manifest).values():
        for chunk in chunks:
            whole.load(unflagged(Entries(*map(state.array, chunk))))
    return whole


def values_of(found: Entries, kind: int) -> Any:
    bounds = zip(found.offsets[:-1].tolist(), found.offsets[1:].tolist(), found.kinds.tolist(), strict=True)
    return np.concatenate([found.data[start:end] for start, end, of in bounds if of == kind])


def require_same_values(replica: Replica, known: Entries) -> None:
    """A replica finds every value by its code, and takes none for its own."""
    here = replica.dictionary()
    for kind in np.unique(known.kinds).tolist():
        found, _ = here.lookup_bytes(kind, known.codes[known.kinds == kind])
        assert np.array_equal(found.data, values_of(known, kind))
    assert not len(here.export())


# -- states made by hand


def made(path: Path, deltas: Iterable[Any], meta: dict[str, Any] | None = None) -> Store:
    """A state of one view, an epoch for every delta."""
    store = Store.create(path, PLAN, POLICY)
    said = {"views": {"v": {"trace": "t", "schema": "n BIGINT NOT NULL"}}} if meta is None else meta
    for epoch, delta in enumerate(deltas, 1):
        store.commit(epoch, [("t", 0, np.array(delta, np.int64).reshape(-1, 2))], meta=said)
    return store


def test_slices_in_common_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even when a checkpoint has moved them."""
    with made(tmp_path / "s", [[(n, 1)] for n in range(9)]) as store:
        before = Store.attach(tmp_path / "s", 5)
        store.checkpoint()
    read: list[int] = []
    whole = State.array

    def array(self: State, entry: Any) -> np.ndarray:
        read.append(entry.id)
        return whole(self, entry)

    monkeypatch.setattr(State, "array", array)
    with before, Store.attach(tmp_path / "s", 9) as after:
        assert stored.changes(before, after, "v", 0).tolist() == [[5, 1], [6, 1], [7, 1], [8, 1]]
        assert read == [6, 7, 8, 9]
        assert stored.sizes(before, after, "v") == [4 * 16]


def test_ids_that_a_rewind_gives_out_again_are_not_taken_for_the_same(tmp_path: Path) -> None:
    made(tmp_path / "s", [[(1, 1)], [(2, 1)]]).close()
    undone = Store.attach(tmp_path / "s", 2)
    Store.rewind(tmp_path / "s", 1)
    with Store.open(tmp_path / "s") as store:
        store.commit(2, [("t", 0, np.array([[3, 1]]))])
    with undone, Store.attach(tmp_path / "s", 2) as state:
        assert stored.changes(undone, state, "v", 0).tolist() == [[2, -1], [3, 1]]


def test_slices_that_follow_values_are_put_in_order(tmp_path: Path) -> None:
    rows = [(n, 1) for n in range(stored.SMALL, 0, -1)]
    with made(tmp_path / "s", [rows, [(9, -1), (1, -1)], [(1, 1)]]) as store:
        found = stored.contents(store, stored.view(store, "v"), 0)
        assert found[:, 0].tolist() == [n for n in range(1, stored.SMALL + 1) if n != 9]


def test_sums_at_the_edge_of_the_range(tmp_path: Path) -> None:
    """The small slices together are out of range, but no epoch ever was."""
    most = 2**63 - 1
    large = [(n, -10) for n in range(stored.SMALL)]
    deltas = [large, [(1, most)], [(1, 10)], [(1, -most)], [(1, -most)]]
    with made(tmp_path / "s", deltas) as store, Store.attach(tmp_path / "s", 3) as third:
        assert dict(stored.contents(third, stored.view(third, "v"), 0).tolist())[1] == most
        assert dict(stored.contents(store, stored.view(store, "v"), 0).tolist())[1] == -most
        with pytest.raises(WeightOverflow):
            stored.changes(third, store, "v", 0)


def test_large_views_and_many_slices(tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    deltas = [generator.integers(0, 50_000, (size, 1)) for size in (60_000, 20_000, 5000, *[40] * 200)]
    batches = [[(int(n), int(w)) for n, w in Counter(delta[:, 0].tolist()).items()] for delta in deltas]
    with made(tmp_path / "s", [sorted(batch) for batch in batches]) as store:
        expected = Counter(np.concatenate(deltas)[:, 0].tolist())
        found = stored.contents(store, stored.view(store, "v"), 0)
        assert dict(found.tolist()) == expected
        assert (np.diff(found[:, 0]) > 0).all()


# -- dictionaries


def dictionary_state(path: Path, values: list[str], shards: int, hash_: Callable[..., Any] | None = None) -> np.ndarray:
    """A state whose dictionary is spread over shards, in several chunks; the view's rows."""
    schema = Schema.parse("s STRING")
    dictionary = Dictionary(hash_) if hash_ else Dictionary()
    with Store.create(path, PLAN, POLICY) as store:
        for epoch, start in enumerate(range(0, len(values), 100), 1):
            mark = dictionary.mark()
            words = encode_pairs(schema, [((v,), 1) for v in values[start : start + 100]], dictionary)
            new = dictionary.export(mark)
            chunk = [(f"dictionary {part}", epoch % shards, getattr(new, part)) for part in PARTS]
            rows = words[np.argsort(words[:, 0])]
            meta = {"views": {"v": {"trace": "t", "schema": "s STRING"}}}
            store.commit(epoch, [*chunk, ("t", 0, np.ascontiguousarray(rows))], meta=meta)
        return stored.contents(store, stored.view(store, "v"), 0)


@pytest.mark.parametrize("shards", [1, 4])
def test_only_the_values_that_occur_are_looked_up(tmp_path: Path, shards: int) -> None:
    values = [f"value {n}" for n in range(1000)]
    rows = dictionary_state(tmp_path / "s", values, shards)
    schema = Schema.parse("s STRING")
    with Store.attach(tmp_path / "s") as state:
        for some in (rows[:0], rows[17:20], rows):
            dictionary = stored.dictionary_for(schema, some, [state])
            assert len(dictionary) == len(some)
            found = {v for (v,) in decode_rows(schema, some[:, :-1], dictionary)}
            assert found <= set(values)
            assert len(found) == len(some)
        replica = Replica(str(tmp_path / "s")).at(state.epoch)
        require_same_values(replica, stored_dictionary(state).export())


def test_exceptions_are_found_without_what_stood_in_their_way(tmp_path: Path) -> None:
    def few(offsets: Any, data: Any, seed: int) -> np.ndarray:
        from everview.kernels.xxh64 import hash_bytes

        return hash_bytes(offsets, data, seed) % 40 if seed < 50 else hash_bytes(offsets, data, seed)

    values = [f"value {n}" for n in range(100)]
    rows = dictionary_state(tmp_path / "s", values, 1, few)
    schema = Schema.parse("s STRING")
    with Store.attach(tmp_path / "s") as state:
        found: set[str] = set()
        for at in range(len(rows)):
            dictionary = stored.dictionary_for(schema, rows[at : at + 1], [state])
            assert len(dictionary) == 1
            found.update(v for (v,) in decode_rows(schema, rows[at : at + 1, :-1], dictionary))
        assert found == set(values)


def test_values_of_every_interned_type(tmp_path: Path) -> None:
    schema = "b BINARY, y SYMBOL, i ID, a ARRAY<STRUCT<x BIGINT, y STRING>>, z ANY"
    row = (b"\0\1", "sym", "id", [{"x": 1, "y": "é"}, None], "anything")
    built = Circuit()
    built.source("rows", schema).sink("rows")
    with embedded(tmp_path / "s", 2, built) as run:
        run.tick({"rows": [(row, 1), ((None,) * 5, 1)]})
        expected = sorted(map(str, run.view("rows").rows()))
    with Store.attach(tmp_path / "s") as state:
        relation = stored.view(state, "rows")
        whole = np.concatenate([stored.contents(state, relation, shard) for shard in range(2)])
        dictionary = stored.dictionary_for(relation.schema, whole, [state])
        assert sorted(map(str, decode_rows(relation.schema, whole[:, :-1], dictionary))) == expected


# -- mistakes


def test_a_state_that_does_not_say_its_views(tmp_path: Path) -> None:
    with made(tmp_path / "s", [[(1, 1)]], meta={}) as store, pytest.raises(StoreError, match="which views"):
        stored.views(store)


def test_an_unknown_view(tmp_path: Path) -> None:
    with made(tmp_path / "s", [[(1, 1)]]) as store, pytest.raises(UnknownName, match="available: v"):
        stored.view(store, "w")


def test_a_view_that_keeps_no_contents(tmp_path: Path) -> None:
    built = Circuit()
    built.source("rows", SCHEMA).sink("rows", keep=False)
    with embedded(tmp_path / "s", 1, built) as run:
        run.tick()
    with Store.attach(tmp_path / "s") as state, pytest.raises(StoreError, match="keeps no contents"):
        stored.view(state, "rows")


def test_tables_are_named_apart(tmp_path: Path) -> None:
    meta = {"views": {}, "tables": {"orders": {"trace": "t", "schema": "n BIGINT NOT NULL"}}}
    with made(tmp_path / "s", [[(1, 2)]], meta) as store:
        assert stored.views(store) == {}
        assert stored.contents(store, stored.tables(store)["orders"], 0).tolist() == [[1, 2]]


def test_epochs_that_are_gone(tmp_path: Path) -> None:
    with made(tmp_path / "s", [[(n, 1)] for n in range(5)]) as store:
        store.vacuum()
    with pytest.raises(StoreError, match=r"epoch 2 is not in .*\n.*epochs 5 to 5"):
        stored.opened(tmp_path / "s", 2)
    with pytest.raises(StoreError, match="does not exist"):
        stored.opened(tmp_path / "other")


def test_a_view_that_had_other_columns(tmp_path: Path) -> None:
    with made(tmp_path / "s", [[(1, 1)]]) as store:
        meta = {"views": {"v": {"trace": "t", "schema": "s STRING"}}}
        store.commit(2, [("t", 0, np.array([[3, 1]]))], meta=meta)
        with Store.attach(tmp_path / "s", 1) as before, pytest.raises(SchemaError, match="other columns at epoch 1"):
            stored.changes(before, store, "v", 0)
        with pytest.raises(SchemaError, match="other columns at epoch 1"):
            list(stored.by_epoch(tmp_path / "s", "v", Schema.parse("s STRING"), [0], 0, [1, 2]))


@pytest.mark.parametrize("path", ["ftp://host/state", "file://elsewhere/state"])
def test_states_are_in_directories_or_object_stores(path: str) -> None:
    with pytest.raises(EverviewError, match=r"not a directory|knows no store ftp://"):
        stored.directory(path)


# -- reading on


def test_a_reader_reads_on_in_its_log_and_starts_over_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made(tmp_path / "s", [[(1, 1)]]) as store:
        first = Store.attach(tmp_path / "s", 1)
        store.commit(2, [("t", 0, np.array([[2, 1]]))])
        with monkeypatch.context() as patch:
            patch.setattr("everview.traces.store.reader.replay", None)  # not needed
            second = first.at(2)
            assert second.manifest == store.manifest
            assert first.at().manifest == store.manifest
        store.vacuum(1)  # the log has two readers
        first.close()
        assert [part.array.tolist() for part in second.slices("t")] == [[[1, 1]], [[2, 1]]]
        store.commit(3)
        third = second.at(3)
        assert third.log != second.log
        assert third.manifest == store.manifest
        with pytest.raises(StoreError, match="epoch 7 is not in"):
            third.at(7)
        second.close()
        third.close()


def test_a_long_tail_is_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.traces.store.replay.READ_ON", 64)
    with made(tmp_path / "s", [[(1, 1)]]) as store:
        start = Store.attach(tmp_path / "s", 0)
        for epoch in range(2, 7):
            store.commit(epoch, [("t", 0, np.array([[epoch, 1]]))])
        for epoch in range(1, 7):
            with start.at(epoch) as reader, Store.attach(tmp_path / "s", epoch) as fresh:
                assert reader.manifest == fresh.manifest
        start.close()


def test_a_state_made_anew_in_the_same_place(tmp_path: Path) -> None:
    made(tmp_path / "s", [[(1, 1)], [(2, 1)]]).close()
    replica = Replica(str(tmp_path / "s")).at(1)
    assert [part.array.tolist() for part in replica.slices("t", 0)] == [[[1, 1]]]
    shutil.rmtree(tmp_path / "s")
    made(tmp_path / "s", [[(7, 1)], [(8, 1)]]).close()
    assert [part.array.tolist() for part in replica.at(2).slices("t", 0)] == [[[7, 1]], [[8, 1]]]
