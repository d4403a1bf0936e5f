"""The core of the server: one writer, readers on snapshots, sessions with transactions, subscribers."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
import threading
import time

import pytest

import everview as ev
from everview.errors import (
    ConflictingChange,
    NotPermitted,
    SlowReader,
    StatementCancelled,
    StatementTimeout,
    TransactionError,
)
from everview.serve import ClientSession, Owner, Role, ServeLimits

SCHEMA = """
CREATE TABLE t (k BIGINT PRIMARY KEY, v STRING);
CREATE MATERIALIZED VIEW totals AS SELECT v, count(*) AS n FROM t GROUP BY v;
"""


@pytest.fixture
def owner():
    db = ev.connect()
    db.sql(SCHEMA)
    with Owner(db, ServeLimits(subscriber_changes=5, statement_seconds=600)) as owned:
        yield owned


def run(session, text, params=None):
    return session.run(text, params).result(600)


def test_reads_are_consistent_while_the_writer_goes_on(owner):
    session = ClientSession(owner)
    assert run(session, "INSERT INTO t VALUES (1, 'a'), (2, 'b')") == 2
    held = owner.snapshot
    assert run(session, "INSERT INTO t VALUES (3, 'a'), (4, 'new')") == 2
    assert sorted(run(session, "SELECT v, n FROM totals")) == [("a", 2), ("b", 1), ("new", 1)]
    old = held.reader()
    assert sorted(old.sql("SELECT v, n FROM totals")) == [("a", 1), ("b", 1)]
    assert old.sql("SELECT k FROM t WHERE v || '!' = 'new!'") == []
    assert sorted(old.view("totals").rows()) == [("a", 1), ("b", 1)]
    assert old.table("t").find(k=2) == [(2, "b")]
    with pytest.raises(ev.EverviewError, match="read only"):
        old.sql("INSERT INTO t VALUES (9, 'x')")


class DropsTheStop:
    """An object in whose finaliser the interpreter raises a stop, and drops it as it does with all errors of those."""

    def __init__(self, entered, dropped):
        self.entered, self.dropped = entered, dropped

    def __del__(self):
        self.entered.set()
        try:
            while True:
                time.sleep(0.001)
        finally:
            self.dropped.set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_stop_that_a_finaliser_swallows_is_repeated(owner):
    entered, dropped = threading.Event(), threading.Event()

    def stubborn(db):
        DropsTheStop(entered, dropped)
        while True:
            time.sleep(0.001)

    task = owner.submit(stubborn)
    assert entered.wait(120)
    assert task.stop()
    with pytest.raises(StatementCancelled):
        task.result(120)
    assert dropped.is_set()
    assert owner.submit(lambda db: 6 * 7).result(120) == 42


TRACED = """
import sys
from everview.serve.tasks import ServerTask

def stopping_itself():
    task.stop()  # to be raised when this has returned, or in the end
    return 42

for work in (lambda: 42, stopping_itself):
    task = ServerTask(work)
    task.run()
    sys.settrace(lambda frame, event, arg: None)
    (lambda: None)()
    sys.settrace(None)
"""


def test_a_task_leaves_nothing_behind_that_the_interpreter_looks_for():
    """It would trace a function without end, as debuggers do, that is called with such a mark."""
    subprocess.run([sys.executable, "-c", TRACED], check=True, timeout=120)


def test_a_stop_waits_for_the_end_of_an_import(owner, tmp_path, monkeypatch):
    module, entered, go = tmp_path / "taking_its_time.py", threading.Event(), threading.Event()
    module.write_text("import builtins\nbuiltins.taking_its_time()\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def wait():
        entered.set()
        while not go.wait(0.001):
            pass

    monkeypatch.setattr("builtins.taking_its_time", wait, raising=False)

    def importing(db):
        importlib.import_module("taking_its_time")
        while True:
            time.sleep(0.001)

    task = owner.submit(importing)
    assert entered.wait(120)
    assert task.stop()
    time.sleep(0.1)
    assert not task.done()
    go.set()
    with pytest.raises(StatementCancelled):
        task.result(120)
    importlib.import_module("taking_its_time")  # which waits for nobody


def test_a_reader_does_not_wait_for_the_writer(owner):
    begun, go = threading.Event(), threading.Event()

    def slow(db):
        begun.set()
        assert go.wait(120)

    task = owner.submit(slow)
    assert begun.wait(120)
    assert run(ClientSession(owner), "SELECT count(*) FROM t") == [(0,)]
    assert not task.done()
    go.set()
    task.result(600)


def test_transactions_are_one_tick_and_wait_for_nobody(owner):
    one, two = ClientSession(owner), ClientSession(owner)
    before = owner.snapshot.epoch
    run(one, "BEGIN")
    assert run(one, "INSERT INTO t VALUES (1, 'a')") == 1
    assert run(two, "INSERT INTO t VALUES (2, 'b')") == 1  # the first one is parked
    assert run(one, "UPDATE t SET v = 'z' WHERE k = 1") == 1
    assert sorted(run(one, "SELECT k, v FROM t")) == [(1, "z"), (2, "b")]
    assert run(two, "SELECT k FROM t") == [(2,)]
    run(one, "COMMIT")
    assert owner.snapshot.epoch == before + 2
    assert sorted(run(two, "SELECT k, v FROM t")) == [(1, "z"), (2, "b")]


def test_conflicting_transactions_are_told_so(owner):
    one, two = ClientSession(owner), ClientSession(owner)
    run(one, "INSERT INTO t VALUES (1, 'a')")
    run(one, "BEGIN")
    run(one, "UPDATE t SET v = 'one' WHERE k = 1")
    run(two, "UPDATE t SET v = 'two' WHERE k = 1")
    with pytest.raises(ConflictingChange):
        run(one, "COMMIT")
    assert not one.in_transaction
    assert run(two, "SELECT v FROM t") == [("two",)]
    run(one, "BEGIN")
    run(one, "DELETE FROM t")
    run(one, "ROLLBACK")
    assert run(two, "SELECT v FROM t") == [("two",)]
    with pytest.raises(TransactionError, match="no transaction"):
        run(one, "COMMIT")


def test_definitions_in_a_transaction_that_has_changed_nothing(owner):
    session = ClientSession(owner)
    run(session, "BEGIN")
    run(session, "CREATE TABLE u (a BIGINT)")
    run(session, "INSERT INTO u VALUES (1)")
    with pytest.raises(TransactionError):
        run(session, "CREATE TABLE w (a BIGINT)")
    run(session, "COMMIT")
    assert run(session, "SELECT a FROM u") == [(1,)]


def test_a_closed_session_rolls_back(owner):
    session = ClientSession(owner)
    run(session, "BEGIN")
    run(session, "INSERT INTO t VALUES (1, 'a')")
    session.close()
    assert run(ClientSession(owner), "INSERT INTO t VALUES (1, 'b')") == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "EXPLAIN SELECT * FROM read_csv('/etc/passwd')",
        "INSERT INTO t SELECT 1, line FROM read_csv('/etc/passwd')",
        "CREATE TABLE x AS SELECT * FROM read_parquet('/etc/passwd')",
        "COPY t FROM '/etc/passwd'",
        "COPY t TO '/tmp/out.csv'",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "PREPARE p AS SELECT * FROM read_json('/etc/passwd'); EXECUTE p",
        "MERGE INTO t USING read_csv('/etc/passwd') AS s ON t.v = s.line WHEN NOT MATCHED THEN INSERT VALUES (1, 'x')",
        "DELETE FROM t WHERE v IN (SELECT * FROM read_csv('/etc/passwd'))",
    ],
)
def test_no_statement_reaches_a_file(owner, text):
    with pytest.raises(ev.EverviewError) as raised:
        run(ClientSession(owner), text)
    assert isinstance(raised.value, NotPermitted), raised.value


@pytest.mark.parametrize(
    ("role", "text", "allowed"),
    [
        (Role.READ, "SELECT 1", True),
        (Role.READ, "WITH a AS (SELECT 1 AS k) SELECT * FROM a", True),
        (Role.READ, "EXPLAIN DELETE FROM t", True),
        (Role.READ, "INSERT INTO t VALUES (1, 'a')", False),
        (Role.READ, "SELECT 1; INSERT INTO t VALUES (1, 'a')", False),
        (Role.READ, "PREPARE p AS DELETE FROM t; EXECUTE p", False),
        (Role.WRITE, "INSERT INTO t VALUES (1, 'a')", True),
        (Role.WRITE, "DROP TABLE t CASCADE", False),
        (Role.WRITE, "CREATE FUNCTION f(x BIGINT) RETURNS BIGINT RETURN x + 1", False),
        (Role.ADMIN, "DROP TABLE t CASCADE", True),
    ],
)
def test_roles(owner, role, text, allowed):
    session = ClientSession(owner, role)
    if allowed:
        run(session, text)
    else:
        with pytest.raises(NotPermitted):
            run(session, text)
        assert run(session, "SELECT count(*) FROM t") == [(0,)]


def test_a_statement_is_cancelled_or_times_out_and_nothing_of_it_counts(owner):
    begun = threading.Event()

    def endless(db):
        with db.transaction() as tx:
            tx.insert("t", [(1, "a")])
            begun.set()
            while True:
                time.sleep(0.001)

    task = owner.submit(endless)
    assert begun.wait(120)
    waiting = owner.submit(lambda db: None)
    assert waiting.stop()
    assert task.stop()
    with pytest.raises(StatementCancelled):
        task.result(600)
    begun.clear()
    with pytest.raises(StatementTimeout, match=r"longer than 0\.05 s"):
        owner.submit(endless, seconds=0.05).result(600)
    with pytest.raises(StatementTimeout):
        owner.read(lambda db: [time.sleep(0.001) for _ in iter(int, 1)], seconds=0.05).result(600)
    assert run(ClientSession(owner), "INSERT INTO t VALUES (1, 'b')") == 1


def test_subscribers_get_every_change_once_and_go_on_from_an_epoch(owner):
    session = ClientSession(owner)
    run(session, "INSERT INTO t VALUES (1, 'a')")

    async def follow():
        first = await asyncio.wrap_future(owner.subscribe("totals"))
        start = await asyncio.wrap_future(owner.read(lambda _: first.begin()))
        assert start.snapshot
        assert start.pairs() == [(("a", 1), 1)]
        await asyncio.wrap_future(session.run("INSERT INTO t VALUES (2, 'a')"))
        change = await anext(first)
        assert sorted(change.pairs()) == [(("a", 1), -1), (("a", 2), 1)]
        await asyncio.wrap_future(session.run("INSERT INTO t VALUES (3, 'b')"))
        again = await asyncio.wrap_future(owner.subscribe("totals", since=start.epoch))
        assert again.begin() is None
        assert [each.epoch for each in again.take()] == [change.epoch, change.epoch + 1]
        first.close()
        assert len(owner.hub) == 1
        await asyncio.wrap_future(session.run("DROP TABLE t CASCADE"))
        assert [each async for each in again] == []

    asyncio.run(follow())


def test_a_slow_subscriber_is_cut_off_with_the_reason(owner):
    session = ClientSession(owner)
    slow = owner.subscribe("totals").result(600)
    for key in range(7):
        run(session, f"INSERT INTO t VALUES ({key}, 'a')")
    with pytest.raises(SlowReader, match="fell behind by 5 changes"):
        slow.take()


class Between:
    """A change of two rows, between whose counting and noting another thread gets its turn."""

    epoch = 1

    def __init__(self, turn):
        self.turn = turn

    def __len__(self):
        turn, self.turn = self.turn, lambda: None
        turn()
        return 2


def test_rows_that_wait_are_counted_while_others_are_taken(owner):
    subscriber = owner.subscribe("totals").result(600)
    for _ in range(60_000):  # more rows than may wait, all of which are taken in time
        subscriber.put(Between(lambda: None))
        subscriber.put(Between(subscriber.take))
        subscriber.take()
    subscriber.close()


def test_a_subscriber_goes_on_from_an_epoch_of_before_a_restart(tmp_path):
    db = ev.connect(tmp_path / "state")
    db.sql(SCHEMA)
    with Owner(db) as owner:
        session = ClientSession(owner)
        run(session, "INSERT INTO t VALUES (1, 'a')")
        seen = owner.snapshot.epoch
        run(session, "INSERT INTO t VALUES (2, 'b'), (3, 'a')")
    with Owner(ev.connect(tmp_path / "state")) as owner:
        again = owner.subscribe("totals", since=seen).result(600)
        change = again.begin()
        assert not change.snapshot
        assert change.epoch == seen + 1
        assert sorted(change.pairs()) == [(("a", 1), -1), (("a", 2), 1), (("b", 1), 1)]
        lost = owner.subscribe("totals", since=seen + 100, snapshot=False).result(600)
        with pytest.raises(ev.EverviewError, match="are not kept"):
            lost.begin()


def test_the_schema_in_use_is_that_of_one_session(owner: Owner) -> None:
    one, two = ClientSession(owner), ClientSession(owner)
    run(one, "CREATE SCHEMA sales; CREATE TABLE sales.t (id INT); INSERT INTO sales.t VALUES (7)")
    run(one, "USE sales")
    assert run(one, "SELECT id FROM t") == [(7,)]
    assert run(one, "INSERT INTO t VALUES (8)") == 1
    assert run(two, "SELECT current_schema()") == [("default",)]
    assert run(one, "SELECT current_schema()") == [("sales",)]
    run(ClientSession(owner, Role.READ), "USE sales")


def test_what_a_session_uses_is_its_own(owner):
    first, second = ClientSession(owner), ClientSession(owner)
    run(first, "CREATE SCHEMA b; CREATE TABLE b.t (k BIGINT PRIMARY KEY, v STRING); INSERT INTO b.t VALUES (7, 'b')")
    run(first, "INSERT INTO t VALUES (1, 'a')")
    run(first, "USE b")
    for _ in range(3):  # from the second time on by the plan that is kept
        assert list(run(first, "SELECT k FROM t")) == [(7,)]
        assert list(run(second, "SELECT k FROM t")) == [(1,)]
        assert first.answered_now("SELECT k FROM t") in (None, [(7,)])
        assert second.answered_now("SELECT k FROM t") in (None, [(1,)])
    assert list(owner.read(lambda db: db.sql("SELECT k FROM t")).result(120)) == [(1,)]
