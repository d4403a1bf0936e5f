"""Fluent queries: a music library whose best tracks, artists and albums are kept as lists and trees."""

from __future__ import annotations

import everview as ev
from everview import agg, col

with ev.connect() as db:
    db.sql("""
      CREATE TABLE artist (id BIGINT PRIMARY KEY, name STRING NOT NULL, country STRING);
      CREATE TABLE album  (id BIGINT PRIMARY KEY, artist_id BIGINT, title STRING, year INT);
      CREATE TABLE track  (id BIGINT PRIMARY KEY, album_id BIGINT, artist_id BIGINT, name STRING, rating BIGINT);
    """)
    with db.transaction() as tx:
        tx.insert("artist", [(1, "Ada", "UK"), (2, "Bob", None)])
        tx.insert("album", [(1, 1, "First", 1999), (2, 1, "Second", 2001), (3, 2, "Third", 2020)])
        tx.insert("track", [(1, 1, 1, "One", 5), (2, 1, 1, "Two", 3), (3, 2, 1, "Three", None), (4, 3, 2, "Four", 4)])

    # A list: the best tracks, each with its artist.
    best = (
        db.query("track")
        .left_join(db.query("artist"), on=("artist_id", "id"), as_="artist")
        .where(col("rating") > 2)
        .order_by("rating", "desc")
        .limit(2)
        .select("name", "rating", "artist.name")
        .materialize("best")
    )
    best.subscribe(lambda changes, epoch: print(f"epoch {epoch}:", *(f"{w:+} {node['name']}" for node, w in changes)))
    print("best:", *best.to_list(), sep="\n  ")

    # A tree: every artist, the albums beneath, and beneath each of them its best track.
    top = db.query("track").order_by("rating", "desc").limit(1).select("name")
    albums = db.query("album").order_by("year", "desc").select("title").related_many("best", top, on=("id", "album_id"))
    tree = db.query("artist").select("name").related_many("albums", albums, on=("id", "artist_id")).materialize("tree")

    # One transaction, one notification, and only what has changed is made again.
    before = tree.data
    with db.transaction() as tx:
        tx.upsert("track", [(2, 1, 1, "Two", 9)])
        tx.insert("track", [(5, 1, 1, "Five", 1)])
    print("tree:", *tree.to_list(), sep="\n  ")
    assert before[1] is tree.data[1]

    # Groups, and a page after another.
    by_artist = db.query("track").group_by("artist_id").select("artist_id", n=agg.count(), stars=agg.sum("rating"))
    print("by artist:", *by_artist.order_by("n", "desc").run(), sep="\n  ")
    pages = db.query("track").order_by("name").select("id", "name").limit(2)
    page = pages.run()
    while page:
        print("page:", [row["name"] for row in page])
        page = pages.start_after(page[-1]).run()

    assert db.verify()
