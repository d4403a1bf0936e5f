"""Queues keep to their bounds as their policies say, whoever is slow."""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview import Database, connect
from everview.errors import EverviewError, ListenerError, SlowReader
from everview.views import Change, Changes, Missed, OrderedView
from everview.views.queue import Queue
from views.given import Given, bag


@pytest.fixture
def db() -> Database:
    db = connect()
    db.create_table("t", "id BIGINT, n BIGINT NOT NULL", key="id")
    db.create_view("all", lambda of: of["t"].select("id", "n"))
    return db


def put(db: Database, *rows: tuple[int, int]) -> None:
    with db.transaction() as tx:
        tx.upsert("t", rows)


class Followed(dict[Any, int]):
    """What a reader makes of what it is told: a snapshot in place of all, changes on top."""

    def take(self, change: Change | Missed) -> None:
        if change.snapshot:
            self.clear()
        for row, weight in change:
            total = self.get(row, 0) + weight
            assert total >= 0, "nothing goes that was not there"
            if total:
                self[row] = total
            else:
                del self[row]


changed = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, -1])), max_size=3)
steps = st.lists(st.one_of(changed, st.just("read")), max_size=20)


@given(steps, st.integers(1, 3), st.sampled_from(["merge", "drop"]), st.booleans())
def test_nothing_is_lost(stream: list[Any], maxsize: int, policy: Any, snapshot: bool) -> None:
    """Whenever a reader has read all, it has what the view holds; and never more waits than it may."""
    feed = Given("n BIGINT")
    changes = Changes(feed, "given", snapshot=snapshot, maxsize=maxsize, policy=policy)
    held: Counter[str] = Counter()
    for step in stream:
        if step == "read":
            for change, _ in changes.ready():
                held = Counter() if change.snapshot else held
                held.update(bag(change))
            assert Counter({r: w for r, w in held.items() if w}) == bag(feed.held)
        else:
            feed.change([((n,), weight) for n, weight in step])
            assert len(changes._queue) <= maxsize
    if policy == "merge":
        waiting = sum(len(change) for change in changes._queue._waiting)
        assert waiting <= maxsize * 4, "no more than the view can hold, each time"


def test_merge(db: Database) -> None:
    put(db, (1, 1))
    changes = db.view("all").changes(snapshot=True, maxsize=2)
    for n in range(2, 10):
        put(db, (1, n), (n, 0))
    put(db, (9, 1))
    (first, _), (rest, epoch) = changes.ready()
    assert first.snapshot
    assert not rest.snapshot
    assert (epoch, rest.since) == (db.epoch, first.epoch)
    assert (sorted(rest.removed), len(rest.added)) == ([(1, 1)], 9)
    put(db, (1, 100))
    put(db, (1, 9))
    again = changes.ready()
    assert len(again) == 2, "they fit"
    one = db.view("all").changes(maxsize=1)
    put(db, (1, 100))
    put(db, (1, 9))
    assert one.ready() == [], "there and back is nothing"


def test_drop(db: Database) -> None:
    changes = db.view("all").changes(snapshot=True, maxsize=2, policy="drop")
    for n in range(5):
        put(db, (n, n))
    found = [change for change, _ in changes.ready()]
    missed, whole = found
    assert isinstance(missed, Missed)
    assert missed.count == 6, "the snapshot and five changes"
    assert not missed
    assert list(missed) == []
    assert whole.snapshot
    assert len(whole) == 5
    put(db, (7, 7))
    ((change, _),) = changes.ready()
    assert list(change) == [((7, 7), 1)]


def test_drop_begins_again_without_a_gap(db: Database) -> None:
    """Changes between the word that some were missed and the snapshot are in the snapshot, and only there."""
    changes = db.view("all").changes(maxsize=1, policy="drop")
    followed = Followed()
    put(db, (1, 1))
    put(db, (2, 2))
    missed, _ = changes.next()
    assert isinstance(missed, Missed)
    put(db, (3, 3))
    followed.take(changes.next()[0])
    put(db, (1, 5))
    followed.take(changes.next()[0])
    assert followed == dict(db.view("all").contents())


def test_error(db: Database) -> None:
    changes = db.view("all").changes(maxsize=2, policy="error")
    for n in range(4):
        put(db, (n, n))
    assert [list(changes.next()[0]) for _ in range(2)] == [[((0, 0), 1)], [((1, 1), 1)]]
    for _ in range(2):
        with pytest.raises(SlowReader, match="fell behind by more than 2 changes"):
            changes.next()
    with pytest.raises(SlowReader):
        list(changes)
    assert changes.closed
    assert len(db.table("t")) == 4, "whoever writes does not suffer from it"


def test_block_waits_for_the_reader(db: Database) -> None:
    changes = db.view("all").changes(maxsize=2, policy="block")
    most, epochs, reads = [0], list[int](), list[int]()

    def read() -> None:
        for _, epoch in changes:
            most[0] = max(most[0], len(changes._queue) + 1)
            epochs.append(epoch)
            reads.append(len(db.view("all")))  # a reader may read, also while the writer waits for it
            time.sleep(0.002)

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(30):
        put(db, (n, n))
    changes.close()
    reader.join(10)
    assert not reader.is_alive()
    assert len(epochs) == 30, "every transaction by itself"
    assert epochs == sorted(epochs)
    assert most[0] <= 3


@pytest.mark.parametrize("write", ["transaction", "apply", "sql"])
def test_block_keeps_its_bound_with_many_writers(db: Database, write: str) -> None:
    changes = db.view("all").changes(maxsize=1, policy="block")
    ways = {
        "transaction": lambda n: put(db, (n, n)),
        "apply": lambda n: db.apply({"t": [((n, n), 1)]}),
        "sql": lambda n: db.sql(f"INSERT INTO t VALUES ({n}, {n})"),
    }
    threads = [threading.Thread(target=ways[write], args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    sizes: list[int] = []
    for _ in range(8):
        changes.next(timeout=10)
        sizes.append(len(changes._queue))
    for thread in threads:
        thread.join(10)
    assert max(sizes) <= 1
    assert changes.ready() == []


@pytest.mark.parametrize("write", ["transaction", "apply", "sql", "begin", "define"])
def test_block_in_the_thread_that_reads_is_an_error(db: Database, write: str) -> None:
    changes = db.view("all").changes(maxsize=1, policy="block")
    put(db, (1, 1))
    changes.next()
    put(db, (2, 2))
    before = db.epoch
    with pytest.raises(SlowReader, match="only this thread could read them"):  # noqa: PT012
        match write:
            case "transaction":
                put(db, (3, 3))
            case "apply":
                db.apply({"t": [((3, 3), 1)]})
            case "sql":
                db.sql("INSERT INTO t VALUES (3, 3)")
            case "begin":
                db.sql("BEGIN")
            case _:
                db.create_table("u", "n BIGINT")
    assert db.epoch == before, "nothing has been changed"
    assert len(db.sql("SELECT * FROM t")) == 2, "reading is no matter of queues"
    changes.next()
    put(db, (3, 3))


def test_block_that_nobody_reads_is_an_error_too(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.views.queue.PATIENCE", 0.05)
    changes = db.view("all").changes(maxsize=1, policy="block")
    put(db, (1, 1))
    with pytest.raises(SlowReader):
        put(db, (2, 2))
    del changes
    gc.collect()
    put(db, (2, 2))


def test_block_ends_with_the_queue(db: Database) -> None:
    changes = db.view("all").changes(maxsize=1, policy="block")
    reader = threading.Thread(target=changes.next)
    reader.start()
    put(db, (1, 1))
    reader.join(10)
    put(db, (2, 2))
    threading.Timer(0.05, changes.close).start()
    put(db, (3, 3))
    assert len(db.table("t")) == 3


def test_block_of_a_feed_without_turns() -> None:
    """Such a feed has been changed already when a queue is full: in the same thread that is an error, loses nothing."""
    feed = Given("n BIGINT")
    changes = Changes(feed, "given", maxsize=1, policy="block")
    feed.change([((1,), 1)])
    changes.next()
    feed.change([((2,), 1)])
    with pytest.raises(SlowReader):
        feed.change([((3,), 1)])
    assert [list(change) for change, _ in changes.ready()] == [[((2,), 1)], [((3,), 1)]]


def test_block_when_listeners_write(db: Database) -> None:
    """What a listener writes cannot wait: whoever could empty the queue may wait for the same lock."""
    changes = db.view("all").changes(maxsize=1, policy="block")

    def cascade(change: Any, epoch: int) -> None:
        if len(db.table("t")) < 3:
            put(db, (len(db.table("t")) + 1, 0))

    db.view("all").subscribe(cascade)
    put(db, (1, 0))
    assert len(changes.ready()) == 3


def test_what_is_no_queue() -> None:
    with pytest.raises(EverviewError, match="no policy"):
        Queue("v", policy="lose")  # type: ignore[arg-type]
    with pytest.raises(EverviewError, match="cannot hold 0"):
        Queue("v", maxsize=0)


def test_without_a_bound(db: Database) -> None:
    changes = db.view("all").changes(maxsize=None)
    for n in range(200):
        put(db, (n, n))
    assert len(changes.ready()) == 200


def test_breaking_off_ends_the_subscription(db: Database) -> None:
    for _ in range(3):
        for _ in db.view("all").changes(snapshot=True):
            break
    gc.collect()
    assert not db._core.telling.listeners.has("all")
    view = db.view("all").ordered("n")
    changes = view.changes()
    assert len(view._listeners) == 1
    del changes
    gc.collect()
    assert not view._listeners


def test_a_shape_that_nobody_has_follows_no_more(db: Database) -> None:
    told: list[int] = []
    shapes = [db.view("all").ordered("n"), db.view("all").tree(by="n")]
    subscriptions = [shape.subscribe(lambda changes, epoch: told.append(epoch)) for shape in shapes]
    del shapes
    gc.collect()
    put(db, (1, 1))
    assert told == [3, 3], "who listens keeps it"
    for subscription in subscriptions:
        subscription.close()
    del subscriptions, subscription
    gc.collect()
    assert not db._core.telling.listeners.has("all")


def test_a_dropped_view_ends_its_readers(db: Database) -> None:
    put(db, (1, 1))
    ordered = db.view("all").ordered("n")
    readers = [db.view("all").changes(), ordered.changes(), db.view("all").changes(policy="drop", maxsize=1)]
    put(db, (2, 2))
    put(db, (3, 3))
    counts: list[int] = []
    threads = [threading.Thread(target=lambda r=r: counts.append(sum(1 for _ in r))) for r in readers]
    for thread in threads:
        thread.start()
    db.drop("all")
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert len(counts) == 3
    assert ordered.closed
    with pytest.raises(EverviewError, match="are closed"):
        readers[0].next()


def test_a_closed_database_ends_its_readers(db: Database) -> None:
    view, changes = db.view("all").live(), db.view("all").changes()
    reader = threading.Thread(target=lambda: list(changes))
    reader.start()
    db.close()
    reader.join(10)
    assert not reader.is_alive()
    assert view.closed


def test_to_arrow(db: Database) -> None:
    changes = db.view("all").changes()
    put(db, (1, 5))
    change, _ = changes.next()
    assert change.to_arrow().to_pylist() == [{"id": 1, "n": 5, "_weight": 1}]
    assert repr(change) == "<change of 1 rows, epoch 3>"
    assert "1 rows" in repr(change)
    assert "0 waiting, policy merge" in repr(changes)


def test_a_listener_of_a_shape_that_raises_is_reported_once(db: Database) -> None:
    shape = OrderedView(db.view("all"), "n")
    told: list[int] = []

    def fails(changes: Any, epoch: int) -> None:
        raise ValueError("no")

    shape.subscribe(fails)
    shape.subscribe(lambda changes, epoch: told.append(epoch))
    db.view("all").subscribe(lambda changes, epoch: told.append(epoch))
    with pytest.raises(ListenerError, match="view all raised ValueError: no"):
        put(db, (1, 1))
    assert told == [3, 3]
    assert shape.rows() == [(1, 1)]
