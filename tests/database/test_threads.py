"""Many threads on one database: each sees one epoch, none waits for ever, and after the end all are told so."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.errors import StoreError

TIME = 60.0  # seconds after which something has waited for ever
ROUNDS = 40


def together(*acts: Callable[[], None]) -> list[BaseException]:
    """Acts in threads of their own, all at once; what they raised."""
    raised: list[BaseException] = []
    start = threading.Barrier(len(acts))

    def run(act: Callable[[], None]) -> None:
        start.wait(TIME)
        try:
            act()
        except BaseException as error:  # noqa: BLE001, that is the question
            raised.append(error)

    threads = [threading.Thread(target=run, args=(act,), daemon=True) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIME)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    return raised


def bank(path: Path | None) -> ev.Database:
    """Accounts whose sum never changes, whoever is paid."""
    db = ev.connect(path)
    db.sql("""
      CREATE TABLE account (id BIGINT PRIMARY KEY, owner STRING, n BIGINT);
      CREATE MATERIALIZED VIEW each_sum AS SELECT owner, SUM(n) AS n FROM account GROUP BY owner;
      CREATE MATERIALIZED VIEW total AS SELECT SUM(n) AS n FROM account;
    """)
    db.apply({"account": [((i, f"owner {i}", 100), 1) for i in range(10)]})
    return db


def pay(db: ev.Database, seed: int) -> Callable[[], None]:
    def act() -> None:
        rng = random.Random(seed)
        for _ in range(ROUNDS):
            a, b = rng.sample(range(10), 2)
            if rng.random() < 0.5:
                with db.transaction() as tx:
                    rows = {row["id"]: row for row in tx._tx.rows_with("account", [(a,), (b,)])}
                    tx.update("account", [{"id": a, "n": rows[a]["n"] - 1}, {"id": b, "n": rows[b]["n"] + 1}])
            else:
                db.sql(f"UPDATE account SET n = n + CASE id WHEN {a} THEN -1 ELSE 1 END WHERE id IN ({a}, {b})")

    return act


def read(db: ev.Database) -> Callable[[], None]:
    """Whatever is read is of one epoch: the sum is right."""

    def act() -> None:
        for _ in range(ROUNDS):
            assert sum(n for _, n in db.view("each_sum").rows()) == 1000
            assert sum(db.view("each_sum").to_arrow()["n"].to_pylist()) == 1000
            assert db.sql("SELECT SUM(n) FROM account").rows() == [(1000,)]
            assert db.sql("SELECT SUM(e.n) - MAX(t.n) FROM each_sum e CROSS JOIN total t").rows() == [(0,)]

    return act


def listen(db: ev.Database) -> Callable[[], None]:
    """From its snapshot on, a listener is told every change once."""

    def act() -> None:
        for _ in range(ROUNDS // 4):
            held: dict[Any, int] = {}

            def hear(changes: Any, epoch: int, held: dict[Any, int] = held) -> None:
                for row, weight in changes:
                    held[row] = held.get(row, 0) + weight
                assert sum(row[1] * weight for row, weight in held.items()) == 1000

            with db.view("each_sum").subscribe(hear, snapshot=True):
                assert len(db.view("each_sum")) == 10

    return act


@pytest.mark.parametrize("durable", [False, True])
def test_changes_reads_and_listeners_at_once(durable: bool, tmp_path: Path) -> None:
    db = bank(tmp_path / "bank" if durable else None)
    raised = together(pay(db, 1), pay(db, 2), read(db), read(db), listen(db))
    assert not raised
    assert db.view("total").rows() == [(1000,)]
    assert db.verify()
    db.close()


@pytest.mark.parametrize("durable", [False, True])
def test_the_end_comes_while_others_are_at_work(durable: bool, tmp_path: Path) -> None:
    path = tmp_path / "bank" if durable else None
    db = bank(path)
    waiting = threading.Event()

    def close() -> None:
        waiting.wait(0.2)
        db.close()

    raised = together(pay(db, 1), pay(db, 2), read(db), listen(db), close, close)
    assert all(isinstance(error, StoreError) and "closed" in str(error) for error in raised), raised
    if path is not None:
        with ev.connect(path) as again:
            assert again.view("total").rows() == [(1000,)]
            assert again.verify()


def test_a_transaction_of_another_thread_is_waited_for() -> None:
    db = bank(None)
    order: list[str] = []
    open_, go_on = threading.Event(), threading.Event()

    def first() -> None:
        with db.transaction() as tx:
            tx.upsert("account", [(0, "owner 0", 99), (1, "owner 1", 101)])
            open_.set()
            go_on.wait(TIME)
            order.append("first")

    def second() -> None:
        open_.wait(TIME)
        threading.Timer(0.05, go_on.set).start()
        db.sql("UPDATE account SET n = n - 1 WHERE id = 1")
        order.append("second")

    assert not together(first, second)
    assert order == ["first", "second"]
    assert db.sql("SELECT n FROM account WHERE id = 1").rows() == [(100,)]


def test_a_thread_that_ends_in_a_transaction_of_sql_leaves_nothing() -> None:
    db = bank(None)
    assert not together(lambda: db.sql("BEGIN; DELETE FROM account"))
    assert db.sql("SELECT SUM(n) FROM account").rows() == [(1000,)]
