"""How much is read: near to what is asked for, however large the tables are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from everview.frontends.fluent import agg
from everview.pull import Pipeline
from everview.runtimes.pull.fluent import AtPipeline
from everview.sources.memory import Memory
from everview.sources.sqlite import SQLite

MANY = 1_000_000
ARTISTS = 1000


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:")
    made.execute("CREATE TABLE track (id INTEGER PRIMARY KEY, artist INTEGER NOT NULL, rating INTEGER NOT NULL)")
    made.execute("CREATE TABLE artist (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY - 1})"
    made.execute(f"INSERT INTO track {numbers} SELECT i, i % {ARTISTS}, i * 7919 % {MANY} FROM n")
    made.executemany("INSERT INTO artist VALUES (?, ?)", ((n, f"artist {n}") for n in range(ARTISTS)))
    made.execute("CREATE INDEX track_rating ON track (rating, id)")
    made.execute("CREATE INDEX track_artist ON track (artist, rating, id)")
    made.commit()
    yield made
    made.close()


@pytest.fixture
def home(connection: sqlite3.Connection) -> Iterator[AtPipeline]:
    sources = {name: SQLite(connection, name) for name in ("track", "artist")}
    yield AtPipeline(Pipeline(sources))
    for source in sources.values():
        source.close()


def read(home: AtPipeline) -> dict[str, int]:
    """Rows read since this was asked last."""
    found = {name: source.rows_read for name, source in home.pipeline.sources.items()}
    for source in home.pipeline.sources.values():
        source.rows_read = 0
    return found


def test_one_row_by_its_key(home: AtPipeline) -> None:
    assert home.query("track").where("id", "=", 7).materialize().value() == [{"id": 7, "artist": 7, "rating": 55433}]
    assert read(home) == {"track": 1, "artist": 0}


def test_the_first_ten(home: AtPipeline) -> None:
    view = home.query("track").order_by("rating", "desc").limit(10).materialize()
    assert [row["rating"] for row in view.value()] == list(range(MANY - 1, MANY - 11, -1))
    assert read(home)["track"] <= 12
    asked = view.explain()
    assert "limit 10" in asked
    assert "keeps 10" in asked


def test_the_first_ten_of_a_join(home: AtPipeline) -> None:
    query = home.query("track").join(home.query("artist"), on=("artist", "id"), as_="by").order_by("rating").limit(10)
    assert len(query.materialize().value()) == 10
    found = read(home)
    assert found["track"] <= 20
    assert found["artist"] <= 20


def test_the_first_ten_that_have_a_partner(home: AtPipeline) -> None:
    query = home.query("track").exists(home.query("artist").where("name", "like", "%7"), on=("artist", "id"))
    assert len(query.order_by("rating").limit(10).run()) == 10
    assert read(home)["track"] <= 400  # one in ten has one


def test_the_eleventh_is_fetched(home: AtPipeline) -> None:
    view = home.query("track").order_by("rating", "desc").limit(10).materialize()
    best = view.value()[3]
    read(home)
    with home.pipeline.transaction() as tx:
        tx.delete("track", [best["id"]])
    assert [row["rating"] for row in view.value()][-1] == MANY - 11
    assert read(home)["track"] <= 4
    with home.pipeline.transaction() as tx:
        tx.insert("track", [tuple(best.values())])
    assert view.value()[3] == best
    assert read(home)["track"] <= 1


def test_nothing_is_read_for_rows_beyond_the_bound(home: AtPipeline) -> None:
    view = home.query("track").order_by("rating", "desc").limit(10).materialize()
    before = view.value()
    read(home)
    home.pipeline.apply({"track": [((MANY, 1, 5), 1)]})
    home.pipeline.apply({"track": [((MANY, 1, 5), -1)]})
    assert view.value() == before
    assert read(home) == {"track": 0, "artist": 0}


def test_related_rows_of_one(home: AtPipeline) -> None:
    best = home.query("track").order_by("rating", "desc").limit(3)
    view = home.query("artist").where("id", 7).related_many("best", best, on=("id", "artist")).materialize()
    assert len(view.value()[0]["best"]) == 3
    found = read(home)
    assert found["track"] <= 4
    assert found["artist"] <= 3


def test_a_change_of_a_join_reads_its_partners(home: AtPipeline) -> None:
    few = home.query("track").where("rating", "<", 1000)
    view = few.join(home.query("artist"), on=("artist", "id"), as_="by").materialize()
    assert len(view.value()) == 1000
    read(home)
    home.pipeline.apply({"track": [((MANY + 1, 3, 5), 1)]})
    assert len(view.value()) == 1001
    assert read(home) == {"track": 0, "artist": 1}
    home.pipeline.apply({"track": [((MANY + 1, 3, 5), -1)]})


def test_the_next_greatest_is_one_row(home: AtPipeline) -> None:
    few = home.query("track").where("id", "<", 1000)
    total = few.select(agg.max("id", "last"), agg.count("*", "n")).materialize()
    assert total.value() == [{"last": 999, "n": 1000}]
    (row,) = home.query("track").where("id", 999).run()
    read(home)
    home.pipeline.apply({"track": [(tuple(row.values()), -1)]})
    assert total.value() == [{"last": 998, "n": 999}]
    assert read(home)["track"] == 1
    home.pipeline.apply({"track": [(tuple(row.values()), 1)]})


def test_a_second_view_pulls_history_and_leaves_the_first_alone() -> None:
    rows = [(n, "ab"[n % 2], n) for n in range(10)]
    orders = Memory("id BIGINT, who STRING NOT NULL, amount BIGINT NOT NULL", "id", rows)
    home = AtPipeline(Pipeline({"orders": orders}))
    query = home.query("orders").group_by("who").select("who", agg.sum("amount", "total"))
    told: list[Any] = []
    first = query.materialize()
    first.feeds.subscribe(lambda changes, epoch: told.append(changes))
    home.pipeline.apply({"orders": [((10, "a", 100), 1)]})
    orders.rows_read = 0
    second = query.materialize()
    assert second.value() == first.value() == [{"who": "a", "total": 120}, {"who": "b", "total": 25}]
    assert orders.rows_read == 0  # the sums are there, and are not added up again
    assert len(told) == 1
    home.pipeline.apply({"orders": [((11, "b", 1), 1)]})
    assert second.value() == first.value() == [{"who": "a", "total": 120}, {"who": "b", "total": 26}]
    first.close()
    home.pipeline.apply({"orders": [((11, "b", 1), -1)]})
    assert second.value() == [{"who": "a", "total": 120}, {"who": "b", "total": 25}]
    assert first.value() != second.value()


def test_what_is_closed_is_let_go(home: AtPipeline) -> None:
    view = home.query("track").order_by("rating").limit(10).materialize()
    assert home.pipeline.read == ("track",)
    view.close()
    assert home.pipeline.read == ()
    assert not home.pipeline._nodes  # pyright: ignore[reportPrivateUsage]
