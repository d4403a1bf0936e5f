"""A SQLite database that another program changes, and views over it that follow, also after a restart."""

from __future__ import annotations

import sqlite3

import everview as ev
from everview.sources import SQLite

# Another program's database.
music = sqlite3.connect("music.db", isolation_level=None)
music.executescript("""
  CREATE TABLE artist (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
  CREATE TABLE track  (id INTEGER PRIMARY KEY, artist INT NOT NULL, title TEXT NOT NULL, plays INT NOT NULL);
  INSERT INTO artist VALUES (1, 'Nina'), (2, 'Bill');
  INSERT INTO track VALUES (1, 1, 'Sinnerman', 9), (2, 2, 'Waltz', 4), (3, 1, 'Feeling', 7);
""")

with ev.connect("music.ev") as db:
    db.attach("artist", SQLite("music.db", "artist"))
    db.attach("track", SQLite("music.db", "track"))
    db.sql("""
      CREATE MATERIALIZED VIEW played AS
        SELECT a.name, SUM(t.plays) AS plays FROM track t JOIN artist a ON a.id = t.artist GROUP BY a.name
    """)
    print("at first:", sorted(db.view("played").rows()))

    # It goes on changing; a poll takes in all that has happened, as one tick.
    music.execute("UPDATE track SET plays = plays + 1 WHERE id = 2")
    music.execute("INSERT OR REPLACE INTO track VALUES (3, 2, 'Peace Piece', 8)")
    print("changes:", sorted(db.poll()["played"]))

# While nobody looks, it changes too.
music.execute("DELETE FROM track WHERE artist = 1")

with ev.connect("music.ev") as db:
    tracks = SQLite("music.db", "track")
    db.attach("artist", SQLite("music.db", "artist"))
    db.attach("track", tracks)
    print("meanwhile:", sorted(db.poll()["played"]))
    print("rows copied again:", tracks.rows_read)
    assert db.verify()

music.close()
