"""``async for changes in view``: any number of readers, in the loop's thread or another, from the snapshot on."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from everview import Database, connect
from everview.errors import SlowReader
from everview.views import Missed
from views.test_queues import Followed


@pytest.fixture
def db() -> Database:
    db = connect()
    db.create_table("t", "id BIGINT, n BIGINT NOT NULL", key="id")
    db.create_view("all", lambda of: of["t"].select("id", "n"))
    db.create_view("total", lambda of: of["t"].aggregate([], total=("sum", "n")))
    return db


def put(db: Database, *rows: tuple[int, int]) -> None:
    with db.transaction() as tx:
        tx.upsert("t", rows)


async def following(view: Any, until: int) -> Followed:
    """A reader that follows a view until it has been told of an epoch."""
    found = Followed()
    async for changes in view:
        found.take(changes)
        if changes.epoch >= until:
            return found
    return found


def test_in_one_loop(db: Database) -> None:
    async def run() -> list[Any]:
        put(db, (1, 1))
        seen: list[Any] = []

        async def read() -> None:
            async for changes in db.view("all"):
                seen.append((changes.snapshot, sorted(changes)))

        reader = asyncio.create_task(read())
        await asyncio.sleep(0)
        put(db, (2, 2))
        await asyncio.sleep(0.01)
        put(db, (1, 3))
        await asyncio.sleep(0.01)
        db.drop("all")
        await asyncio.wait_for(reader, 5)
        return seen

    assert asyncio.run(run()) == [
        (True, [((1, 1), 1)]),
        (False, [((2, 2), 1)]),
        (False, [((1, 1), -1), ((1, 3), 1)]),
    ]


def test_changes_are_closed_as_asynchronous_iterators_are(db: Database) -> None:
    async def run() -> list[Any]:
        changes = db.view("all").changes()
        await changes.aclose()
        put(db, (1, 1))
        return [each async for each in changes]

    assert asyncio.run(run()) == []


def test_many_readers_of_all_shapes_while_other_threads_write(db: Database) -> None:
    """Nothing lies between a snapshot and the changes after it, and nothing is told twice, whenever readers come."""
    shapes = [db.view("all"), db.view("all").live(), db.view("all").ordered("n desc"), db.view("all").tree(by="n")]
    writers = [threading.Thread(target=lambda w=w: [put(db, (n % 20, n * 7 + w)) for n in range(60)]) for w in range(3)]
    last = db.epoch + 3 * 60 + 1  # and one that changes all

    async def run() -> list[Followed]:
        readers: list[asyncio.Task[Followed]] = []
        for round_ in range(5):
            readers += [asyncio.create_task(following(shape, last)) for shape in shapes]
            if round_ == 0:
                for writer in writers:
                    writer.start()
            await asyncio.sleep(0.01)
        await asyncio.to_thread(lambda: [writer.join() for writer in writers])
        put(db, (100, -1))
        return await asyncio.wait_for(asyncio.gather(*readers), 30)

    found = asyncio.run(run())
    expected = dict(db.view("all").contents())
    for followed in found:
        assert {_row(row): weight for row, weight in followed.items()} == expected


def _row(row: Any) -> Any:
    return row if isinstance(row, tuple) else (row.id, row.n)


def test_a_loop_in_another_thread(db: Database) -> None:
    found: list[Any] = []
    ready = threading.Event()

    async def read() -> None:
        async for changes in db.view("total"):
            found.append(sorted(changes))
            ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(read()))
    thread.start()
    for n in range(1, 4):
        assert ready.wait(5)
        ready.clear()
        put(db, (1, n))
    assert ready.wait(5)
    db.close()
    thread.join(5)
    assert not thread.is_alive(), "it ends with the database"
    assert found[-1] == [((2,), -1), ((3,), 1)]


def test_cancelling_loses_nothing(db: Database) -> None:
    async def run() -> list[Any]:
        changes = db.view("all").changes(maxsize=1)
        for _ in range(3):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(changes), 0.005)
        assert not changes._queue._wakes, "nobody waits any more"
        put(db, (1, 1))
        reader = asyncio.create_task(anext(changes))
        reader.cancel()  # though something is there
        await asyncio.gather(reader, return_exceptions=True)
        assert reader.cancelled()
        put(db, (2, 2))
        return sorted(await anext(changes))

    assert asyncio.run(run()) == [((1, 1), 1), ((2, 2), 1)]


def test_breaking_off_ends_the_subscription(db: Database) -> None:
    async def run() -> None:
        async for _ in db.view("all"):
            break
        view = db.view("all").ordered("n")
        async for _ in view:
            break
        gc.collect()
        assert not view._listeners
        view.close()

    asyncio.run(run())
    gc.collect()
    assert not db._core.telling.listeners.has("all")


def test_policies_in_a_loop(db: Database) -> None:
    async def run() -> list[Any]:
        async with db.view("all").changes(maxsize=1, policy="drop") as changes:
            for n in range(3):
                put(db, (n, n))
            missed, whole = await anext(changes), await anext(changes)
            put(db, (9, 9))
            return [missed, len(whole), whole.snapshot, list(await anext(changes))]

    missed, *others = asyncio.run(run())
    assert isinstance(missed, Missed)
    assert others == [3, True, [((9, 9), 1)]]


def test_block_in_the_loop_that_reads_is_an_error(db: Database) -> None:
    async def run() -> None:
        changes = db.view("all").changes(maxsize=1, policy="block")
        reader = asyncio.create_task(anext(changes))
        await asyncio.sleep(0)
        put(db, (1, 1))
        await reader
        put(db, (2, 2))
        with pytest.raises(SlowReader):
            put(db, (3, 3))
        await asyncio.to_thread(_put_when_read, db, changes)

    asyncio.run(run())
    assert len(db.table("t")) == 3


def _put_when_read(db: Database, changes: Any) -> None:
    changes.next()
    put(db, (3, 3))


def test_block_between_threads(db: Database) -> None:
    async def run() -> list[int]:
        changes = db.view("all").changes(maxsize=2, policy="block")
        writer = asyncio.create_task(asyncio.to_thread(lambda: [put(db, (n, n)) for n in range(20)]))
        found: list[int] = []
        async for change in changes:
            found.append(change.epoch)
            await asyncio.sleep(0.001)
            if len(found) == 20:
                break
        await writer
        return found

    found = asyncio.run(run())
    assert found == list(range(found[0], found[0] + 20)), "each by itself, in order"


def test_a_loop_that_has_ended(db: Database) -> None:
    """A reader that was left behind with its loop harms nobody."""
    changes = db.view("all").changes()

    async def wait() -> None:
        await changes._ready_in(asyncio.get_running_loop())

    loop = asyncio.new_event_loop()
    task = loop.create_task(wait())
    loop.run_until_complete(asyncio.sleep(0))
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    put(db, (1, 1))
    assert len(changes.ready()) == 1


def test_the_error_of_a_slow_reader(db: Database) -> None:
    async def run() -> list[int]:
        found: list[int] = []
        with pytest.raises(SlowReader):  # noqa: PT012
            async for change in db.view("all").changes(maxsize=1, policy="error"):
                found.append(len(change))
        return found

    async def both() -> list[int]:
        reader = asyncio.create_task(run())
        await asyncio.sleep(0)
        for n in range(3):
            put(db, (n, n))
        return await reader

    assert asyncio.run(both()) == [1]
