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


def test_intervals_in_other_units_in_percentiles_and_in_frames() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE span (id INT, d INTERVAL DAY TO SECOND, m INTERVAL YEAR TO MONTH, at TIME)")
    db.sql(
        """
        CREATE MATERIALIZED VIEW units AS SELECT id, CAST(d AS INTERVAL HOUR) AS h,
            CAST(-d AS INTERVAL HOUR TO MINUTE) AS hm, CAST(m AS INTERVAL YEAR) AS y,
            CAST(CAST(d AS INTERVAL HOUR) AS INT) AS hours, CAST(id AS INTERVAL MINUTE) AS im,
            CAST(at AS TIME(1)) AS short, CAST('7' AS INTERVAL HOUR) AS seven FROM span;
        CREATE MATERIALIZED VIEW middle AS SELECT median(d) AS d, percentile(m, 0.5) AS m,
            percentile(d, array(0.0, 1.0)) AS ends,
            percentile_disc(0.5) WITHIN GROUP (ORDER BY m DESC) AS disc FROM span;
        CREATE MATERIALIZED VIEW near AS SELECT id,
            count(*) OVER (ORDER BY d RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS by_days,
            count(*) OVER (ORDER BY m RANGE BETWEEN CURRENT ROW AND INTERVAL 11 MONTHS FOLLOWING) AS by_months,
            count(*) OVER (ORDER BY at RANGE BETWEEN INTERVAL 14 HOURS PRECEDING AND CURRENT ROW) AS by_time FROM span
        """
    )
    db.sql(
        """
        INSERT INTO span VALUES
            (1, INTERVAL '1 02:03:04.5' DAY TO SECOND, INTERVAL '1-2' YEAR TO MONTH, TIME'10:20:30.987654'),
            (2, INTERVAL '2' DAY, INTERVAL '3' MONTH, TIME'23:59:59'), (3, NULL, NULL, NULL)
        """
    )
    hour, minute = dt.timedelta(hours=1), dt.timedelta(minutes=1)
    one, two = dt.timedelta(days=1, hours=2, minutes=3, seconds=4.5), dt.timedelta(days=2)
    assert sorted(db.view("units").rows())[:2] == [
        (1, 26 * hour, -26 * hour - 3 * minute, 12, 26, minute, dt.time(10, 20, 30, 900_000), 7 * hour),
        (2, two, -two, 0, 48, 2 * minute, dt.time(23, 59, 59), 7 * hour),
    ]
    assert db.view("middle").rows() == [((one + two) / 2, 8, [one, two], 14)]
    assert sorted(db.view("near").rows()) == [(1, 1, 1, 1), (2, 2, 2, 2), (3, 1, 1, 1)]
    db.verify().raise_if_different()
    db.sql("DELETE FROM span WHERE id = 1")
    assert db.view("middle").rows() == [(two, 3, [two, two], 3)]
    db.verify().raise_if_different()
