"""Tables: puts and deletes by key, late ones, snapshots; in one process and in tasks, against a dictionary."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.circuit import Circuit, incrementalize
from everview.codes import Dictionary
from everview.errors import UnknownName
from everview.operators.exchange import Exchange
from everview.operators.index import Index
from everview.operators.operator import Layout
from everview.runtimes import tables
from everview.runtimes.embedded import Embedded
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.placement import Decision
from everview.runtimes.spark.wire import ARROW, RowKind, matrix_rows, to_batches
from everview.runtimes.tables import Commands, Table
from everview.types import Schema
from spark.in_process import Session, engine

COLUMNS = "name STRING, v STRING, k BIGINT NOT NULL, at BIGINT"  # the key is neither first nor whole
Row = tuple[str | None, str | None, int, int | None]
Command = tuple[Row, int, int]  # a row, its order, and 1 to put it or -1 to delete its key


def circuit() -> Circuit:
    found = Circuit()
    t = found.source("t", COLUMNS)
    t.sink("all")
    t.aggregate(["name"], n="count", last=("max", "v")).sink("by name")
    return found


def commands(rows: list[Command], *, whole: bool = False) -> Commands:
    columns = [pa.array([row[at] for row, _, _ in rows]) for at in range(4)]
    types = (pa.string(), pa.string(), pa.int64(), pa.int64())
    arrays: list[Any] = [column.cast(of) for column, of in zip(columns, types, strict=True)]
    arrays += [pa.array([order for _, order, _ in rows], pa.int64()), pa.array(range(len(rows)), pa.int64())]
    arrays.append(pa.array([weight for _, _, weight in rows], pa.int64()))
    names = ["name", "v", "k", "at", "_order", "_arrival", "_weight"]
    return Commands(pa.Table.from_arrays(arrays, names=names), whole)


class Model:
    """A table as a dictionary of rows by key."""

    def __init__(self, ordered: bool, remembering: bool = False) -> None:
        self.rows: dict[tuple[str | None, int], Row] = {}
        self.deletes: dict[tuple[str | None, int], int] = {}  # the order of the last, where it was the last command
        self.ordered, self.remembering = ordered, remembering

    def apply(self, given: list[Command], *, whole: bool = False) -> None:
        last: dict[tuple[str | None, int], Command] = {}
        if self.remembering and not whole:
            given = [c for c in given if c[1] >= self.deletes.get((c[0][0], c[0][2]), c[1])]
        for row, order, weight in sorted(given, key=lambda c: c[1]):  # stable, so by arrival among equals
            last[row[0], row[2]] = row, order, weight
        if whole:
            self.rows = {key: row for key, (row, _, weight) in last.items() if weight > 0}
            return
        for key, (row, order, weight) in last.items():
            self.deletes.pop(key, None)
            if weight < 0:
                self.deletes[key] = order
            old = self.rows.get(key)
            if self.ordered and old is not None and old[3] is not None and order < old[3]:
                continue
            self.rows.pop(key, None)
            if weight > 0:
                self.rows[key] = row


keys = st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 2))


@st.composite
def batches(draw: st.DrawFn) -> list[Command]:
    found: list[Command] = []
    for _ in range(draw(st.integers(0, 6))):
        (name, k), order = draw(keys), draw(st.integers(0, 5))
        found.append(
            ((name, draw(st.sampled_from([None, "x", "y"])), k, order), order, draw(st.sampled_from([1, 1, -1])))
        )
    return found


ticks = st.lists(st.tuples(batches(), st.sampled_from([False, False, False, True])), max_size=6)


class Tasks:
    """The same through tasks, which are given commands and resolve them."""

    def __init__(self, run: Engine) -> None:
        self.run, self.session = run, Session()

    def tick(self, changes: dict[str, Commands]) -> None:
        program = self.run.program
        at = program.circuit.sources["t"]
        schema = Schema.parse(COLUMNS)

        def frame(_: Any) -> Any:
            words = changes["t"].encode(schema, self.run.run.dictionary)
            parts = Exchange(Layout(schema), program.arrival("t")).spread(words, program.shards)
            rows = [row for shard, part in enumerate(parts) for row in matrix_rows(RowKind.CELL, at, shard, part)]
            return self.session.createDataFrame(pa.Table.from_batches(list(to_batches(rows)), ARROW))

        whole = frozenset([at]) if changes["t"].whole else frozenset[int]()
        decision = Decision("cluster", "test")
        self.run.tick_on_cluster(frame, whole, {}, decision, lambda _: None, lambda _: None)

    def view(self, name: str) -> Any:
        return self.run.run.view(name)

    def table(self, name: str) -> Any:
        return self.run.run.table(name)


@contextmanager
def runs(table: Table) -> Iterator[list[Any]]:
    with TemporaryDirectory() as directory, engine(circuit(), Path(directory) / "s", tables={"t": table}) as run:
        one = Embedded(incrementalize(circuit()), tables={"t": table})
        three = Embedded(incrementalize(circuit()), shards=3, tables={"t": table})
        yield [one, three, Tasks(run)]


@pytest.mark.parametrize("how", ["as they come", "ordered", "remembering"])
@given(ticks=ticks)
def test_puts_deletes_and_snapshots(how: str, ticks: list[tuple[list[Command], bool]]) -> None:
    ordered, remembering = how != "as they come", how == "remembering"
    model = Model(ordered, remembering)
    with runs(Table(("name", "k"), "at" if ordered else None, remembering)) as ways:
        for given_, whole in ticks:
            model.apply(given_, whole=whole)
            for run in ways:
                run.tick({"t": commands(given_, whole=whole)})
                assert sorted(run.view("all").rows(), key=repr) == sorted(model.rows.values(), key=repr)
                assert sum(n for _, n, _ in run.view("by name").rows()) == len(model.rows)
                assert len(run.table("t")) == len(model.rows)


@given(st.permutations([(order, order % 4 != 3) for order in range(8)]), st.lists(st.integers(1, 3), min_size=8))
def test_with_tombstones_the_order_of_arrival_does_not_matter(
    changes: list[tuple[int, bool]], sizes: list[int]
) -> None:
    run = Embedded(incrementalize(circuit()), tables={"t": Table(("name", "k"), "at", tombstones=True)})
    for size in sizes:
        batch, changes = changes[:size], changes[size:]
        run.tick({"t": commands([(("a", str(at), 1, at), at, 1 if puts else -1) for at, puts in batch])})
    assert run.view("all").rows() == []  # the last change, of order 7, was a delete


def test_the_oldest_deletes_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_DELETES", 6)
    run = Embedded(incrementalize(circuit()), tables={"t": Table(("name", "k"), "at", tombstones=True)})
    for at in range(20):
        run.tick({"t": commands([((str(at), "", 1, at), at, -1)])})
        remembered = run.program.table("t" + tables.TOMBSTONES)
        assert remembered is not None
        assert sum(len(trace.before.consolidated()) for trace in run.state.of(remembered)) <= 6
    for at in (2, 19):  # a put that comes after its delete, and lies before
        run.tick({"t": commands([((str(at), "", 1, at - 1), at - 1, 1)])})
    assert [row[0] for row in run.view("all").rows()] == ["2"]


@given(ticks=st.lists(st.lists(st.tuples(keys, st.integers(-2, 2)), max_size=5), max_size=5), shards=st.integers(1, 3))
def test_a_table_without_a_key_adds_up(ticks: Any, shards: int) -> None:
    query = Circuit()
    query.source("t", "a STRING, b BIGINT").sink("all")
    run = Embedded(incrementalize(query), shards=shards, tables={"t": Table()})
    for rows in ticks:
        run.tick({"t": rows})
        assert run.table("t").contents().to_zset() == run.view("all").contents().to_zset()


def test_a_key_spares_the_exchange_to_its_table() -> None:
    kept = Embedded(incrementalize(circuit()), shards=3, tables={"t": Table(("name", "k"))})
    stage = kept.program.stages[0]
    assert kept.program.table("t") in stage.nodes


def test_a_table_of_no_source() -> None:
    with pytest.raises(UnknownName, match="u"):
        Embedded(incrementalize(circuit()), tables={"u": Table()})
    with pytest.raises(UnknownName, match="t"):
        Embedded(incrementalize(circuit())).tick({"t": commands([])})


def test_commands_need_no_order() -> None:
    rows = pa.table({"name": ["a", "a"], "k": [1, 1], "at": [None, 2], "v": ["x", "y"]})
    found = Commands(rows).encode(Schema.parse(COLUMNS), Dictionary())
    assert found[:, -3:].tolist() == [[0, 0, 1], [0, 1, 1]]


def test_rows_keep_the_order_in_which_their_table_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def sorts_again(*_: Any) -> Any:
        raise AssertionError("the rows of a table are in the order of its index")

    monkeypatch.setattr(Index, "step", sorts_again)
    found = Circuit()
    found.source("t", COLUMNS)
    run = Embedded(found, tables={"t": Table(("name", "k"))})
    run.tick({"t": commands([(("b", "x", 1, 0), 0, 1), (("a", "y", 2, 0), 0, 1), (("b", "z", 1, 0), 1, 1)])})
    run.tick({"t": commands([(("b", "x", 1, 0), 0, -1)])})
    assert run.table("t").rows() == [("a", 2, "y", 0)]
