"""Intervals, times of day and timestamps without a zone in a database: kept, joined, ordered, aggregated and stored."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.errors import EverviewError

TABLE = """
    CREATE TABLE t (
        id INT PRIMARY KEY, d INTERVAL DAY TO SECOND, m INTERVAL YEAR TO MONTH, w INTERVAL DAY NOT NULL, at TIME,
        n TIMESTAMP_NTZ, many ARRAY<INTERVAL DAY TO SECOND>
    )
"""
VIEWS = {
    "sums": "SELECT at, sum(d) AS d, avg(d) AS a, sum(m) AS m, avg(m) AS b, sum(w) AS w FROM t GROUP BY at",
    "ends": "SELECT w, min(d) AS d, max(m) AS m, min(at) AS at, max(n) AS n FROM t GROUP BY w",
    "joined": "SELECT a.id AS a, b.id AS b FROM t AS a JOIN t AS b ON a.d = b.d AND a.at <=> b.at",
    "months": "SELECT DISTINCT m, n FROM t",
    "last": "SELECT id, d, n FROM t ORDER BY n DESC, at DESC, d DESC, m DESC, id LIMIT 4",
    "moved": "SELECT id, n + d AS a, n + m AS b, try_add(at, d) AS c, d * 2 AS e, d > w AS f FROM t",
    "running": "SELECT id, sum(d) OVER (PARTITION BY w ORDER BY n, id) AS s, lag(at) OVER (ORDER BY id) AS l FROM t",
    "parts": "SELECT id, e, CAST(m AS STRING) AS s FROM t LATERAL VIEW explode(many) x AS e",
    "lists": "SELECT w, collect_list(d) AS ds, max(struct(at, d)) AS top FROM t GROUP BY w",
}


def row(number: int, chance: random.Random) -> tuple[Any, ...]:
    def some(values: list[Any]) -> Any:
        return chance.choice([None, *values])

    spans = [dt.timedelta(hours=1), dt.timedelta(days=-1, microseconds=1), dt.timedelta(days=2, seconds=5)]
    times = [dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999_999)]
    moments = [dt.datetime(2024, 2, 29), dt.datetime(1969, 12, 31, 23), dt.datetime(2024, 1, 31, 5, 6, 7, 8)]
    days = dt.timedelta(chance.randint(-1, 1))
    return number, some(spans), some([0, -13, 14]), days, some(times), some(moments), [some(spans) for _ in range(2)]


def test_views_of_types_of_time_follow_their_rows(tmp_path: Path) -> None:
    chance = random.Random(11)
    db = ev.connect(tmp_path / "state")
    db.sql(TABLE)
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for tick in range(6):
        with db.transaction() as tx:
            tx.delete("t", db.sql(f"SELECT * FROM t WHERE id % 4 = {tick % 4}").rows())
            tx.insert("t", [row(100 * tick + n, chance) for n in range(8)])
        db.verify()
        if tick == 3:
            before = {name: sorted(map(repr, db.view(name).rows())) for name in VIEWS}
            db.close()
            db = ev.connect(tmp_path / "state")
            assert {name: sorted(map(repr, db.view(name).rows())) for name in VIEWS} == before
    db.sql("UPDATE t SET d = d + INTERVAL 1 SECOND, at = TIME'01:02:03' WHERE d > INTERVAL '0' DAY")
    db.verify()
    db.close()


GIVEN = [
    ("d", "1 02:03:04.5", dt.timedelta(1, 7384, 500_000)),
    ("d", "INTERVAL '-0 00:00:01' DAY TO SECOND", dt.timedelta(seconds=-1)),
    ("m", "-1-6", -18),
    ("w", "3", dt.timedelta(3)),
    ("at", "12:30:00.25", dt.time(12, 30, 0, 250_000)),
    ("n", "2026-01-31 12:00:00", dt.datetime(2026, 1, 31, 12)),
    ("n", dt.date(2026, 1, 31), dt.datetime(2026, 1, 31)),
]


@pytest.mark.parametrize(("column", "given", "held"), GIVEN)
def test_values_that_are_taken(column: str, given: Any, held: Any) -> None:
    db = ev.connect()
    db.sql(TABLE)
    with db.transaction() as tx:
        tx.insert("t", [{"id": 1, "w": dt.timedelta(), column: given}])
    assert db.sql(f"SELECT {column} FROM t").rows() == [(held,)]


REFUSED = [
    ("d", 5, "is no INTERVAL DAY TO SECOND"),
    ("d", "1 day", "is no INTERVAL DAY TO SECOND"),
    ("d", dt.timedelta(days=110_000_000), "outside the range"),
    ("m", 1.5, "is no INTERVAL YEAR TO MONTH"),
    ("m", 2**31, "outside the range"),
    ("w", dt.timedelta(hours=1), "no whole number of days"),
    ("at", dt.time(1, tzinfo=dt.UTC), "is no TIME"),
    ("at", "25:00", "is no TIME"),
    ("n", dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "has a zone"),
]


@pytest.mark.parametrize(("column", "given", "said"), REFUSED)
def test_values_that_are_refused(column: str, given: Any, said: str) -> None:
    db = ev.connect()
    db.sql(TABLE)
    with pytest.raises(EverviewError, match=said), db.transaction() as tx:
        tx.insert("t", [{"id": 1, "w": dt.timedelta(), column: given}])
    assert db.sql("SELECT * FROM t").rows() == []
