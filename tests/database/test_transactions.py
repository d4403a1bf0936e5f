"""Transactions: atomic over tables and views, joined when nested, without a trace when they fail."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pyarrow as pa
import pytest

from everview import Database, connect
from everview.errors import DuplicateKey, EverviewError, FunctionError, TransactionError


@pytest.fixture
def db() -> Database:
    db = connect()
    db.create_table("a", "id BIGINT, n BIGINT NOT NULL", key="id")
    db.create_table("b", "id BIGINT, s STRING")
    db.create_view("both", lambda of: of["a"].join(of["b"], "id"))
    return db


def state(db: Database) -> Any:
    return (
        {name: sorted(db._core.holdings.contents_of(name), key=repr) for name in ("a", "b", "both")},
        db.epoch,
        len(db._core.run.dictionary),
    )


def test_all_tables_in_one_tick(db: Database) -> None:
    with db.transaction() as tx:
        tx.insert("a", [(1, 10)])
        tx.insert("b", [(1, "x")])
        assert db.table("a").rows() == db.view("both").rows() == [], "reads inside see the state before"
    assert db.view("both").rows() == [(1, 10, "x")]
    assert list(tx.changes["both"]) == [((1, 10, "x"), 1)]
    assert db.epoch == 4


def test_commands_see_those_before(db: Database) -> None:
    with db.transaction() as tx:
        tx.insert("a", [(1, 10)])
        with pytest.raises(DuplicateKey):
            tx.insert("a", [(1, 11), (2, 11)])
        tx.upsert("a", [(1, 12)])
        tx.delete("a", [1])
        tx.insert("a", [(1, 13)])
        tx.update("a", [{"id": 1, "n": 14}])
    assert db.table("a").rows() == [(1, 14)]


def test_what_cancels_out_is_no_tick(db: Database) -> None:
    epoch = db.epoch
    with db.transaction() as tx:
        tx.insert("a", [(1, 10)])
        tx.delete("a", [1])
    assert (db.epoch, db.table("a").rows()) == (epoch, [])
    with db.transaction():
        pass
    assert db.epoch == epoch
    db.apply({})
    assert db.epoch == epoch + 1


def test_an_exception_leaves_no_trace(db: Database) -> None:
    before = state(db)
    with pytest.raises(KeyError), db.transaction() as tx:  # noqa: PT012
        tx.insert("a", [(1, 10)])
        tx.insert("b", [(1, "a word that was never there")])
        raise KeyError
    assert state(db) == before
    with pytest.raises(TransactionError, match="ended"):
        tx.insert("a", [(1, 10)])


def test_nested_ones_join(db: Database) -> None:
    with db.transaction() as outer:
        outer.insert("a", [(1, 10)])
        with db.transaction() as inner:
            assert inner is outer
            inner.insert("b", [(1, "x")])
        with pytest.raises(KeyError), db.transaction() as inner:  # noqa: PT012
            inner.insert("b", [(1, "undone")])
            raise KeyError
        assert db.view("both").rows() == []
    assert db.view("both").rows() == [(1, 10, "x")]
    before = state(db)
    with pytest.raises(KeyError), db.transaction() as outer:  # noqa: PT012
        with db.transaction() as inner:
            inner.insert("a", [(2, 20)])
        raise KeyError
    assert state(db) == before


def test_a_view_that_fails_undoes_the_tick(db: Database) -> None:
    def reciprocal(n: pa.Array) -> pa.Array:
        return pa.array([1 // value for value in n.to_pylist()], pa.int64())

    db.create_view("r", lambda of: of["a"].map(reciprocal, "r BIGINT", columns="n"))
    db.apply({"a": [((1, 1), 1)]})
    before = state(db)
    with pytest.raises(FunctionError), db.transaction() as tx:  # noqa: PT012
        tx.insert("b", [(1, "new")])
        tx.insert("a", [(2, 0)])
    assert state(db) == before
    db.apply({"a": [((2, 2), 1)]})
    db.verify().raise_if_different()


def test_what_cannot_be_inside(db: Database) -> None:
    with db.transaction() as tx:
        tx.insert("a", [(1, 10)])
        with pytest.raises(TransactionError, match=r"tx\.apply"):
            db.apply({})
        with pytest.raises(TransactionError):
            db.create_table("c", "x BIGINT")
        with pytest.raises(TransactionError):
            db.drop("both")
        with pytest.raises(TransactionError):
            db.close()
        with pytest.raises(TransactionError):
            db.vacuum()
        tx.apply({"b": [((1, "x"), 1)]})
    assert db.view("both").rows() == [(1, 10, "x")]


def test_one_thread_at_a_time(db: Database) -> None:
    refused: list[EverviewError] = []
    entered, go_on = threading.Event(), threading.Event()

    def other(tx: Any) -> None:
        try:
            tx.insert("a", [(5, 5)])
        except EverviewError as error:
            refused.append(error)
        entered.set()
        db.apply({"a": [((2, 2), 1)]})  # waits for the transaction
        go_on.set()

    with db.transaction() as tx:
        thread = threading.Thread(target=other, args=(tx,))
        thread.start()
        assert entered.wait(30)
        tx.insert("a", [(1, 1)])
        assert not go_on.is_set()
    thread.join(30)
    assert isinstance(refused[0], TransactionError)
    assert sorted(db.table("a").rows()) == [(1, 1), (2, 2)]


def test_many_threads(db: Database) -> None:
    def work(first: int) -> None:
        for i in range(first, first + 25):
            db.apply({"a": [((i, i), 1)]})

    threads = [threading.Thread(target=work, args=(1000 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(db.table("a")) == 100


def test_a_tick_leaves_nothing_to_the_collector(db: Database) -> None:
    db.apply({"a": [((0, 0), 1)]})
    gc.collect()
    gc.disable()
    try:
        for n in range(1, 20):
            db.apply({"a": [((n, n), 1)]})
        assert gc.collect() == 0
    finally:
        gc.enable()
