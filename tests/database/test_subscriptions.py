"""Who listens is told everything once, in order, from the snapshot on."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from everview import Batch, Database, connect
from everview.errors import EverviewError, ListenerError


@pytest.fixture
def db() -> Database:
    db = connect()
    db.create_table("t", "id BIGINT, n BIGINT NOT NULL", key="id")
    db.create_view("all", lambda of: of["t"].select("n"))
    db.create_view("total", lambda of: of["t"].aggregate([], total=("sum", "n")))
    return db


class Told(list[tuple[dict[Any, int], int]]):
    def __call__(self, changes: Batch, epoch: int) -> None:
        self.append((dict(changes), epoch))


def put(db: Database, *rows: tuple[int, int]) -> None:
    with db.transaction() as tx:
        tx.upsert("t", rows)


def test_snapshot_then_changes(db: Database) -> None:
    put(db, (1, 10))
    with_snapshot, without = Told(), Told()
    db.view("all").subscribe(with_snapshot, snapshot=True)
    db.view("all").subscribe(without)
    put(db, (1, 20), (2, 20))
    put(db, (2, 20))
    put(db, (2, 21))
    assert without == [({(10,): -1, (20,): 2}, 5), ({(20,): -1, (21,): 1}, 6)]
    assert with_snapshot == [({(10,): 1}, 4), *without]


def test_an_empty_snapshot_is_told(db: Database) -> None:
    told = Told()
    db.view("all").subscribe(told, snapshot=True)
    assert told == [({}, 3)]


def test_ending(db: Database) -> None:
    told = Told()
    subscription = db.view("all").subscribe(told)
    put(db, (1, 1))
    subscription.close()
    subscription()
    put(db, (1, 2))
    with db.view("all").subscribe(told):
        put(db, (1, 3))
    put(db, (1, 4))
    assert [epoch for _, epoch in told] == [4, 6]
    assert not subscription.active


def test_a_failed_tick_is_not_told(db: Database) -> None:
    told = Told()
    db.view("all").subscribe(told)
    with pytest.raises(KeyError), db.transaction() as tx:  # noqa: PT012
        tx.insert("t", [(1, 1)])
        raise KeyError
    assert told == []


def test_a_listener_that_raises(db: Database) -> None:
    told = Told()

    def fails(changes: Batch, epoch: int) -> None:
        raise ValueError("no")

    db.view("all").subscribe(fails)
    db.view("all").subscribe(told)
    db.view("total").subscribe(told)
    with pytest.raises(ListenerError, match="view all raised ValueError"):
        put(db, (1, 1))
    assert len(told) == 2
    assert db.table("t").rows() == [(1, 1)], "the tick counts"
    with pytest.raises(ValueError, match="no"):
        db.view("all").subscribe(fails, snapshot=True)


def test_a_listener_may_change_the_database(db: Database) -> None:
    first, last = Told(), Told()
    db.view("all").subscribe(first)

    def cascade(changes: Batch, epoch: int) -> None:
        n = len(db.table("t"))
        if n < 4:
            put(db, (n + 1, 0))

    db.view("all").subscribe(cascade)
    db.view("all").subscribe(last)
    put(db, (1, 0))
    assert len(db.table("t")) == 4
    assert first == last
    assert [epoch for _, epoch in first] == [4, 5, 6, 7], "in the order of the ticks, for all"


def test_a_listener_may_define_and_end_itself(db: Database) -> None:
    subscriptions: list[Any] = []

    def once(changes: Batch, epoch: int) -> None:
        subscriptions[0].close()
        db.create_view("late", lambda of: of["all"].distinct())

    subscriptions.append(db.view("all").subscribe(once))
    put(db, (1, 5))
    put(db, (2, 6))
    assert sorted(db.view("late").rows()) == [(5,), (6,)]


def test_who_comes_while_others_are_told(db: Database) -> None:
    """A snapshot holds what has happened, also what others have not been told of yet."""
    told = Told()

    def late(changes: Batch, epoch: int) -> None:
        if not told:
            put(db, (2, 2))
            db.view("all").subscribe(told, snapshot=True)

    db.view("all").subscribe(late)
    put(db, (1, 1))
    put(db, (3, 3))
    assert told == [({(1,): 1, (2,): 1}, 5), ({(3,): 1}, 6)]


def test_other_definitions_do_not_disturb(db: Database) -> None:
    told = Told()
    db.view("all").subscribe(told)
    db.create_view("more", lambda of: of["t"].distinct())
    put(db, (1, 1))
    db.drop("total")
    put(db, (2, 1))
    assert [changes for changes, _ in told] == [{(1,): 1}, {(1,): 1}]


def test_a_replaced_view_tells_the_difference(db: Database) -> None:
    told = Told()
    put(db, (1, 5), (2, 6))
    subscription = db.view("all").subscribe(told, snapshot=True)
    db.create_view("all", lambda of: of["t"].select("n").distinct() + of["t"].select("n"), replace=True)
    put(db, (3, 5))
    assert [changes for changes, _ in told] == [{(5,): 1, (6,): 1}, {(5,): 1, (6,): 1}, {(5,): 1}]
    db.create_view("all", lambda of: of["t"], replace=True)
    assert not subscription.active, "its columns are others"
    put(db, (4, 5))
    assert len(told) == 3


def test_a_view_that_becomes_plain_ends(db: Database) -> None:
    put(db, (1, 10))
    told = Told()
    db.view("all").subscribe(told, snapshot=True)
    db.sql("CREATE OR REPLACE VIEW all AS SELECT n + 1 AS n FROM t")
    put(db, (2, 20))
    assert [changes for changes, _ in told] == [{(10,): 1}]
    assert sorted(db.sql("SELECT * FROM all")) == [(11,), (21,)]


def test_a_dropped_view_ends(db: Database) -> None:
    told = Told()
    subscription = db.view("all").subscribe(told)
    db.drop("all")
    assert not subscription.active
    db.create_view("all", lambda of: of["t"].select("n"))
    put(db, (1, 1))
    assert told == []


def test_changes_as_an_iterator(db: Database) -> None:
    put(db, (1, 1))
    with db.view("all").changes(snapshot=True) as changes:
        threads = [threading.Thread(target=put, args=(db, (i, i))) for i in range(2, 5)]
        found: dict[Any, int] = {}
        for thread in threads:
            thread.start()
        for batch, _ in changes:
            for row, weight in batch:
                found[row] = found.get(row, 0) + weight
            if len(found) == 4:
                break
        for thread in threads:
            thread.join()
        assert changes.ready() == []
        put(db, (5, 5))
        assert dict(changes.next(timeout=5)[0]) == {(5,): 1}
        with pytest.raises(EverviewError, match="did not change"):
            changes.next(timeout=0.01)
    assert list(changes) == []


def test_nothing_lies_between_snapshot_and_changes(db: Database) -> None:
    """However other threads change the database, the sum of what a listener is told is what the view holds."""
    stop = threading.Event()

    def change() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            put(db, (n % 50, n))

    thread = threading.Thread(target=change)
    thread.start()
    sums: list[dict[Any, int]] = []
    for _ in range(20):
        held: dict[Any, int] = {}
        sums.append(held)

        def add(changes: Batch, epoch: int, held: dict[Any, int] = held) -> None:
            for row, weight in changes:
                held[row] = held.get(row, 0) + weight

        db.view("all").subscribe(add, snapshot=True)
    stop.set()
    thread.join()
    expected = dict(db.view("all").contents())
    assert all({row: w for row, w in held.items() if w} == expected for held in sums)
