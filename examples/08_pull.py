"""A view over tables that stay in SQLite: the first rows are pulled, changes are pushed, and nothing is copied."""

import sqlite3

import everview as ev
from everview.sources import SQLite

shop = sqlite3.connect(":memory:")
shop.executescript(
    """
    CREATE TABLE artist (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE track (id INTEGER PRIMARY KEY, artist INTEGER NOT NULL, rating INTEGER NOT NULL);
    CREATE INDEX track_rating ON track (rating, id);
    """
)
shop.executemany("INSERT INTO artist VALUES (?, ?)", [(n, f"artist {n}") for n in range(100)])
shop.executemany("INSERT INTO track VALUES (?, ?, ?)", [(n, n % 100, n * 7919 % 50_000) for n in range(50_000)])
shop.commit()

db = ev.connect()
db.attach("artist", SQLite(shop, "artist"), keep=False)
db.attach("track", SQLite(shop, "track"), keep=False)

best = db.query("track").join(db.query("artist"), on=("artist", "id"), as_="by").order_by("rating", "desc").limit(3)
view = best.materialize()
for row in view:
    print(row["rating"], row["by"]["name"])
read = {name: source.rows_read for name, source in db.sources.items()}
print(f"rows read of 50,000 tracks: {read['track']}, of 100 artists: {read['artist']}")
assert read["track"] <= 10
assert read["artist"] <= 10

told = []
view.subscribe(lambda changes, epoch: told.append(epoch))
with db.transaction() as tx:  # two tables of another database, one notification
    tx.insert("artist", [(100, "Ada")])
    tx.insert("track", [(50_000, 100, 60_000)])
assert view[0]["by"]["name"] == "Ada"

shop.execute("DELETE FROM track WHERE id = 50000")  # someone else's change, of which a trigger tells
shop.commit()
db.poll()
print("after", len(told), "notifications:", [row["rating"] for row in view])
assert len(told) == 2
db.close()
