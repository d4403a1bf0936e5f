"""Living views: an ordered list, a tree and a value that stay right, followed in an event loop."""

from __future__ import annotations

import asyncio

import everview as ev
from everview.database import Database
from everview.views import Node, Related

SCHEMA = """
CREATE TABLE artist (id BIGINT PRIMARY KEY, name STRING);
CREATE TABLE track  (id BIGINT PRIMARY KEY, artist BIGINT, title STRING, rating BIGINT NOT NULL);
CREATE MATERIALIZED VIEW artists AS SELECT * FROM artist;
CREATE MATERIALIZED VIEW tracks  AS SELECT * FROM track;
CREATE MATERIALIZED VIEW total   AS SELECT sum(rating) AS total FROM track;
"""


def play(db: Database) -> None:
    """Somebody else, in another thread, one transaction after the other."""
    with db.transaction() as tx:
        tx.insert("artist", [(1, "Ada"), (2, "Bob")])
        tx.insert("track", [(1, 1, "Aria", 5), (2, 1, "Ballad", 3), (3, 2, "Canon", 4)])
    db.sql("UPDATE track SET rating = 9 WHERE title = 'Ballad'")
    try:
        with db.transaction() as tx:
            tx.delete("track", [1, 2, 3])
            raise KeyError("changed my mind")
    except KeyError:
        pass  # nobody was told
    db.sql("DELETE FROM track WHERE title = 'Aria'")
    db.close()  # ends all loops


async def follow(db: Database) -> None:
    """Every loop has a queue of its own; a slow one gets several transactions as one change, and loses nothing."""
    held = 0
    async for changes in db.view("total"):
        held = sum(weight for _, weight in changes) if changes.snapshot else held + sum(w for _, w in changes)
        assert held == 1, "a sum has one row, whenever one looks"


async def main() -> None:
    db = ev.connect()
    db.sql(SCHEMA)
    best = db.view("tracks").ordered("rating desc", limit=2)
    total = db.view("total").scalar()
    tree = db.view("artists").tree(
        Related("tracks", "tracks", on=("id", "artist"), by="title", show=["title", "rating"]), by="name"
    )
    best.subscribe(lambda changes, epoch: print("best:", [title for _, _, title, _ in best], "total:", total.value))
    versions: list[tuple[Node, ...]] = []
    tree.subscribe(lambda changes, epoch: versions.append(tree.data))

    readers = [asyncio.create_task(follow(db)) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.to_thread(play, db)
    await asyncio.gather(*readers)

    print(tree.to_list())
    first, second, _ = versions
    assert second[1] is first[1], "Bob did not change"
    assert [track.rating for track in first[0].tracks] == [5, 3], "an older version stays as it was"


asyncio.run(main())
