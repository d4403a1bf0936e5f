"""Watermarks: traces drop what is never read again, late rows are set aside, and answers are what they were without."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.errors import DefinitionError, EverviewError, SqlError

START = dt.datetime(2030, 1, 1, 12)
MINUTE = dt.timedelta(minutes=1)
DELAYS = {"t": 5 * MINUTE, "u": 7 * MINUTE}
COLUMNS = "k BIGINT, ts TIMESTAMP, v BIGINT"

NEAR = "t.k = u.k AND t.ts BETWEEN u.ts - INTERVAL 5 MINUTES AND u.ts + INTERVAL 10 MINUTES"
TUMBLING = "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL 10 MINUTES)"
NEARER = "t.k = u.k AND t.ts BETWEEN u.ts - INTERVAL 5 MINUTES AND u.ts + INTERVAL 4 MINUTES"
VIEWS = {
    "tumbling": f"SELECT window_start, k, sum(v) AS s, min(v) AS m, count(DISTINCT v) AS d FROM {TUMBLING} "
    "GROUP BY window_start, k",
    "hopping": "SELECT k, window_start, max(v) AS m "
    "FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL 5 MINUTES, INTERVAL 20 MINUTES) GROUP BY k, window_start",
    "windows": "SELECT window.start AS s, k, sum(v) AS n FROM t GROUP BY window(ts, '10 minutes'), k HAVING sum(v) > 1",
    "within": f"SELECT t.k, t.ts, t.v, u.v AS w FROM t JOIN u ON {NEAR}",
    "nearer": f"SELECT t.k, t.ts, t.v, u.v AS w FROM t JOIN u ON {NEARER}",
    "paired": f"SELECT t.k, t.ts, t.v, u.v AS w, u.ts AS at FROM t FULL JOIN u ON {NEAR}",
    "absent": f"SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE {NEAR})",
    "same": "SELECT a.k, a.v, b.v AS w FROM t a JOIN u b ON a.ts = b.ts",
    "latest": "SELECT t.k, t.ts, t.v, u.v AS w FROM t ASOF JOIN u MATCH_CONDITION (t.ts >= u.ts) ON t.k = u.k",
    "minutes": "SELECT DISTINCT date_trunc('minute', ts) AS m, k FROM (SELECT * FROM t UNION ALL SELECT * FROM u)",
    "ranked": "SELECT k, v, row_number() OVER (PARTITION BY ts ORDER BY v DESC, k) AS r FROM t",
    "bucketed": "SELECT time_bucket(INTERVAL 10 MINUTES, ts) AS b, k, count(DISTINCT v) AS d FROM t GROUP BY 1, k",
    "numbered": "SELECT unix_timestamp(ts) DIV 600 AS b, count(DISTINCT v) AS d FROM t GROUP BY 1",
    "floored": "SELECT year(ts) AS y, floor(unix_timestamp(ts) / 600) AS b, min(v) AS d FROM t GROUP BY 1, 2",
    "rounded": "SELECT unix_timestamp(ts) - unix_timestamp(ts) % 600 AS b, min(v) AS d FROM t GROUP BY 1",
    "in_text": "SELECT date_format(ts, 'yyyy-MM-dd HH:mm') AS b, min(v) AS d FROM t GROUP BY 1",
    "apart": "SELECT t.k, t.ts, t.v, u.v AS w FROM t JOIN u ON t.k = u.k "
    "AND t.ts - u.ts BETWEEN INTERVAL -5 MINUTES AND INTERVAL 10 MINUTES",
    "seconds": "SELECT t.k, t.ts, t.v, u.v AS w FROM t JOIN u ON t.k = u.k "
    "AND unix_timestamp(t.ts) - unix_timestamp(u.ts) <= 240 AND 120 > unix_timestamp(u.ts) - unix_timestamp(t.ts)",
    "minutes_apart": "SELECT t.k, t.ts, t.v, u.v AS w FROM t JOIN u ON t.k = u.k "
    "AND timestampdiff(MINUTE, u.ts, t.ts) BETWEEN -3 AND 4",
    "recent": "SELECT k, ts, v, sum(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING "
    "AND CURRENT ROW) AS s FROM t",
    "around": "SELECT k, ts, v, min(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 3 MINUTES PRECEDING AND "
    "INTERVAL 2 MINUTES FOLLOWING) AS m, count(*) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN CURRENT ROW AND "
    "INTERVAL 4 MINUTES FOLLOWING) AS n FROM t",
    "ahead": "SELECT ts, v, first_value(v) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 7 MINUTES PRECEDING AND INTERVAL 2 "
    "MINUTES PRECEDING EXCLUDE GROUP) AS f FROM (SELECT * FROM t UNION ALL SELECT * FROM u)",
    "smoothed": "SELECT m, sum(s) AS s FROM (SELECT m, avg(v) OVER (PARTITION BY k ORDER BY m RANGE INTERVAL 2 MINUTES "
    "PRECEDING) AS s FROM (SELECT k, v, date_trunc('minute', ts) AS m FROM t)) GROUP BY m",
    "so_far": "SELECT k, ts, v, sum(v) OVER (PARTITION BY k ORDER BY ts) AS s FROM t",
    "before": "SELECT k, ts, v, lag(v) OVER (PARTITION BY k ORDER BY ts) AS p FROM t",
    "joined": "SELECT a.window_start, a.k, a.s, b.m FROM tumbling a JOIN hopping b "
    "ON a.window_start = b.window_start AND a.k = b.k",
    "three": "SELECT a.k, a.ts, a.v, b.v AS w, c.v AS x FROM t a JOIN u b ON a.k = b.k AND a.ts = b.ts "
    "JOIN t c ON c.k = b.k AND c.ts = b.ts",
    "triangle": "SELECT a.k, a.ts, b.v AS w FROM t a JOIN u b ON a.k = b.v AND a.ts = b.ts "
    "JOIN u c ON b.k = c.v AND c.ts = b.ts AND c.k = a.v",
    "sessions": "SELECT k, session_window.start AS s, session_window.end AS e, count(*) AS n, max(v) AS m FROM t "
    "GROUP BY k, session_window(ts, '2 minutes')",
    "visits": "SELECT k, ts, v, window_start FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL 1 MINUTE)",
    "both": "SELECT window_end, count(DISTINCT k) AS n, sum(v) AS s FROM SESSION(TABLE (SELECT * FROM t WHERE v % 4 > 0"
    " UNION ALL SELECT * FROM u WHERE v % 4 > 0), DESCRIPTOR(ts), INTERVAL 1 MINUTE) GROUP BY window_end",
    "all_time": "SELECT k, sum(v) AS s FROM t GROUP BY k",
}
UNBOUNDED = {"all_time", "in_text", "latest", "so_far", "before"}


def opened(
    path: Path | None = None,
    *,
    watermarks: bool,
    shards: int = 1,
    views: Sequence[str] = tuple(VIEWS),
    kind: str = "TIMESTAMP",
) -> ev.Database:
    db = ev.connect(path, shards=shards)
    for table, delay in DELAYS.items():
        promise = f", WATERMARK FOR ts AS ts - INTERVAL {delay // MINUTE} MINUTES" if watermarks else ""
        db.sql(f"CREATE TABLE {table} ({COLUMNS.replace('TIMESTAMP', kind)}{promise})")
    for name in views:
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
    return db


class Judge:
    """What is late, said in a few lines: a row before the latest one of earlier ticks, less the delay."""

    def __init__(self) -> None:
        self.latest: dict[str, dt.datetime] = {}
        self.held: dict[str, list[tuple[Any, ...]]] = {table: [] for table in DELAYS}

    def in_time(self, changes: dict[str, list[tuple[Any, int]]]) -> dict[str, list[tuple[Any, int]]]:
        found: dict[str, list[tuple[Any, int]]] = {}
        for table, rows in changes.items():
            first = self.latest[table] - DELAYS[table] if table in self.latest else dt.datetime.min
            found[table] = [(row, w) for row, w in rows if row[1] is not None and row[1] >= first]
            for row, w in found[table]:
                if w > 0:
                    self.held[table].append(row)
                    self.latest[table] = max(self.latest.get(table, row[1]), row[1])
                else:
                    self.held[table].remove(row)
        return found


steps = st.lists(
    st.tuples(
        st.integers(0, 12),  # minutes that pass
        st.lists(
            st.tuples(
                st.sampled_from(["t", "u"]),
                st.sampled_from([1, 2, None]),
                st.none() | st.integers(0, 9),
                st.integers(0, 2),
            ),
            max_size=4,
        ),
        st.sampled_from(["t", "u"]),
        st.integers(0, 30) | st.none(),  # which row is taken away, if there are so many
    ),
    min_size=3,
    max_size=12,
)


some_views = st.lists(st.sampled_from([*VIEWS]), min_size=1, max_size=3, unique=True).map(
    lambda names: [name for name in VIEWS if name in names or ("joined" in names and name in ("tumbling", "hopping"))]
)


@settings(max_examples=25)
@given(steps, some_views, st.sampled_from([1, 1, 2]), st.sampled_from(["TIMESTAMP", "TIMESTAMP_NTZ"]))
def test_answers_are_those_of_all_that_came_in_time(
    given_steps: list[tuple[int, list[tuple[str, Any, Any, int]], str, int | None]],
    views: list[str],
    shards: int,
    kind: str,
) -> None:
    bounded = opened(watermarks=True, shards=shards, views=views, kind=kind)
    whole, judge, now = opened(watermarks=False, views=views, kind=kind), Judge(), START
    for minutes, rows, table, gone in given_steps:
        now += minutes * MINUTE
        changes: dict[str, list[tuple[Any, int]]] = {"t": [], "u": []}
        for name, key, ago, value in rows:
            changes[name].append(((key, None if ago is None else now - ago * MINUTE, value), 1))
        if gone is not None and gone < len(judge.held[table]):
            changes[table].append((judge.held[table][gone], -1))
        told = bounded.apply(changes)
        expected = whole.apply(judge.in_time(changes))
        for view in views:
            assert sorted(bounded.view(view).rows(), key=repr) == sorted(whole.view(view).rows(), key=repr), view
            assert dict(told[view]) == dict(expected[view]), view
    for table in DELAYS:
        assert sorted(bounded.table(table).rows(), key=repr) == sorted(whole.table(table).rows(), key=repr)


def minute_by_minute(db: ev.Database, minutes: range) -> None:
    for minute in minutes:
        at = START + minute * MINUTE
        db.apply({"t": [((minute % 3, at, minute), 1)], "u": [((minute % 3, at, minute), 1)]})


def held(db: ev.Database, view: str) -> dict[str, list[int]]:
    """How many rows the traces behind a view hold, by whether they are said to be bounded."""
    found: dict[str, list[int]] = {}
    for line in db.explain(view).splitlines():
        if line.startswith("trace "):
            rows, _, said = line.partition(", ")
            found.setdefault(said.split(":")[0], []).append(int(rows.split()[-1].replace(",", "")))
    return found


def test_state_is_that_of_open_windows_and_stays_so_when_it_is_opened_again(tmp_path: Path) -> None:
    db = opened(tmp_path / "s", watermarks=True)
    minute_by_minute(db, range(60))
    db.vacuum()  # rows that came and went are counted until they are merged
    first = {view: held(db, view) for view in VIEWS}
    db.close()
    db = ev.connect(tmp_path / "s")
    minute_by_minute(db, range(60, 160))
    db.vacuum()
    for view in VIEWS:
        after = held(db, view)
        assert ("unbounded" in after) == (view in UNBOUNDED), view
        assert max(after.get("bounded", [0])) <= max(first[view].get("bounded", [0])) + 30
        assert max(after["the rows of the view"]) >= max(first[view]["the rows of the view"])
    assert db.verify()


def test_late_rows_are_set_aside_and_counted() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, ts TIMESTAMP, v STRING, WATERMARK FOR ts AS ts - INTERVAL 1 HOUR)")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t")
    hour = dt.timedelta(hours=1)
    db.sql("INSERT INTO t VALUES (1, TIMESTAMP '2030-01-01 12:00:00', 'a'), (2, TIMESTAMP '2030-01-01 00:00:00', 'b')")
    with db.transaction() as tx:
        assert tx.insert("t", [(3, START - 2 * hour, "late"), (4, START - hour, "c"), (5, None, "never")]) == 3
        tx.upsert("t", [(2, START + hour, "the old one is before the watermark")])
    assert sorted(db.table("t").rows()) == [
        (1, START, "a"), (2, dt.datetime(2030, 1, 1), "b"), (4, START - hour, "c"),
    ]  # fmt: skip
    late = [(row[0], row[-1]) for row in db.late("t").rows()]
    assert sorted(late) == [(2, -1), (2, 1), (3, 1), (5, 1)]
    assert len(db.sql("SELECT * FROM `late(t)` WHERE v = 'never'").rows()) == 1
    db.sql("DELETE FROM `late(t)`")
    assert (len(db.late("t")), db.tables()) == (0, ["t"])
    assert db.verify()


def test_a_view_may_emit_when_its_windows_close(tmp_path: Path) -> None:
    db = ev.connect(tmp_path / "s")
    db.sql("CREATE TABLE t (k BIGINT, ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES)")
    db.sql(
        "CREATE MATERIALIZED VIEW closed AS SELECT window.end AS e, sum(v) AS s FROM t "
        "GROUP BY window(ts, '10 minutes') EMIT ON WINDOW CLOSE"
    )
    told: list[Any] = []
    for minute in (0, 9, 3, 12, 8, 14, 15, 9, 29, 40):
        told += db.apply({"t": [((1, START + minute * MINUTE, 1), 1)]})["closed"]
        if minute == 14:
            db.close()
            db = ev.connect(tmp_path / "s")
    assert told == [((START + 10 * MINUTE, 3), 1), ((START + 20 * MINUTE, 3), 1), ((START + 30 * MINUTE, 1), 1)]
    assert len(db.late("t")) == 2
    assert db.verify()
    db.vacuum()
    assert max(held(db, "closed")["bounded"]) <= 6


def test_a_frame_is_told_once_no_row_comes_into_it() -> None:
    db = opened(watermarks=True, views=())
    frame = "RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND INTERVAL 2 MINUTES FOLLOWING"
    db.sql(
        f"CREATE MATERIALIZED VIEW v AS SELECT ts, sum(v) OVER (ORDER BY ts {frame}) AS s FROM t EMIT ON WINDOW CLOSE"
    )
    minute_by_minute(db, range(30))
    told = dict(db.view("v").rows())
    assert told == {START + m * MINUTE: sum(range(max(0, m - 5), m + 3)) for m in range(29 - 5 - 2)}
    assert db.verify()


def test_a_bucket_is_told_once_it_is_over() -> None:
    db = opened(watermarks=True, views=())
    bucket = "time_bucket(INTERVAL 10 MINUTES, ts)"
    db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {bucket} AS b, count(*) AS n FROM t GROUP BY 1 EMIT ON WINDOW CLOSE")
    minute_by_minute(db, range(40))
    assert sorted(db.view("v").rows()) == [(START + m * MINUTE, 10) for m in (0, 10, 20)]
    db.sql(f"CREATE MATERIALIZED VIEW in_text AS {VIEWS['in_text']}")
    assert "group by date_trunc" in db.explain("in_text")
    db.sql(
        "CREATE MATERIALIZED VIEW days AS SELECT to_date(date_format(ts, 'yyyy-MM-dd')) AS d, min(v) FROM t GROUP BY 1"
    )
    assert "unbounded" not in held(db, "days")
    assert db.verify()


def test_a_session_is_told_once_no_row_can_join_it_any_more(tmp_path: Path) -> None:
    db = ev.connect(tmp_path / "s")
    db.sql("CREATE TABLE t (k BIGINT, ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES)")
    db.sql(
        "CREATE MATERIALIZED VIEW closed AS SELECT session_window.end AS e, k, sum(v) AS s FROM t "
        "GROUP BY k, session_window(ts, '3 minutes') EMIT ON WINDOW CLOSE"
    )
    told: list[Any] = []
    for minute in (0, 6, 3, 11, 14, 13, 8, 15, 20, 9, 40, 42):
        told += [(minute, *row, w) for row, w in db.apply({"t": [((1, START + minute * MINUTE, 1), 1)]})["closed"]]
        if minute == 14:
            db.close()
            db = ev.connect(tmp_path / "s")
    # 3 joins what was apart; 8 and 9 are late, by one minute and by six.
    assert told == [
        (15, START + 9 * MINUTE, 1, 3, 1), (40, START + 18 * MINUTE, 1, 4, 1), (40, START + 23 * MINUTE, 1, 1, 1),
    ]  # fmt: skip
    assert len(db.late("t")) == 2
    assert db.verify()
    db.vacuum()
    assert max(held(db, "closed")["bounded"]) <= 6


def test_rows_that_have_passed_the_clock_are_not_kept() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT, ts TIMESTAMP NOT NULL)")
    db.advance(START)
    db.sql("CREATE MATERIALIZED VIEW soon AS SELECT id FROM t WHERE ts > now()")
    db.apply({"t": [((n, START + n * MINUTE), 1) for n in range(50)]})
    for minute in range(1, 46):
        db.advance(START + minute * MINUTE)
    db.apply({"t": [((3, START + 3 * MINUTE), -1), ((48, START + 48 * MINUTE), -1)]})
    db.advance(START + 46 * MINUTE)
    db.advance(START + 47 * MINUTE)
    assert sorted(db.view("soon").rows()) == [(49,)]
    assert "unbounded" not in held(db, "soon")
    assert db.verify()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE TABLE x (a BIGINT, WATERMARK FOR a AS a)", "a watermark for a, which is BIGINT"),
        ("CREATE TABLE x (a TIMESTAMP, WATERMARK FOR b AS b)", '"b" does not exist'),
        ("CREATE TABLE x (a TIMESTAMP, WATERMARK FOR a AS a + INTERVAL 1 DAY)", "a watermark is the column"),
        ("CREATE TABLE x (a TIMESTAMP, WATERMARK FOR a AS a - INTERVAL 1 MONTH)", "how late rows may be"),
        ("CREATE TABLE x (a DATE, WATERMARK FOR a AS a - INTERVAL 1 HOUR)", "whole days"),
        ("CREATE TABLE x (a TIMESTAMP, WATERMARK FOR a AS a, WATERMARK FOR a AS a)", "two watermarks"),
        ("CREATE TABLE x (a TIMESTAMP, _change INT, WATERMARK FOR a AS a)", "a column _change"),
        ("CREATE TABLE x (a TIMESTAMP, TTL INTERVAL 1 DAY)", "a TTL without a watermark"),
        ("CREATE TABLE `late(t)` (a BIGINT)", "a name that goes with a watermark"),
        ("ALTER TABLE t DROP COLUMN ts", "the time of the watermark"),
        ("ALTER TABLE t ALTER COLUMN ts TYPE DATE", "the time of the watermark"),
        ("ALTER TABLE t ADD COLUMN _change BIGINT", "a column _change"),
        ("INSERT INTO `watermark(t)` VALUES (TIMESTAMP '2030-01-01')", "moves by itself"),
        ("CREATE MATERIALIZED VIEW w AS SELECT k, count(*) n FROM t GROUP BY k EMIT ON WINDOW CLOSE", "are final"),
        ("CREATE VIEW w AS SELECT k, ts FROM t EMIT ON WINDOW CLOSE", "a plain view emits nothing"),
    ],
)
def test_refused(text: str, message: str) -> None:
    db = ev.connect()
    db.sql(f"CREATE TABLE t ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES)")
    with pytest.raises(EverviewError) as told:
        db.sql(text)
    assert message in str(told.value)
    assert isinstance(told.value, SqlError | DefinitionError) or told.value.hint


def test_a_table_that_goes_takes_its_watermark_along() -> None:
    db = ev.connect()
    for _ in range(2):
        db.sql(f"CREATE OR REPLACE TABLE t ({COLUMNS}, WATERMARK FOR ts AS ts)")
        db.apply({"t": [((1, START, 1), 1)]})
        db.apply({"t": [((1, START - MINUTE, 1), 1)]})
        assert (len(db.table("t")), len(db.late("t"))) == (1, 1)
    db.sql("DROP TABLE t")
    db.sql(f"CREATE TABLE t ({COLUMNS})")
    with pytest.raises(DefinitionError, match="has no watermark"):
        db.late("t")


def test_a_table_with_a_ttl_forgets_and_so_do_its_views(tmp_path: Path) -> None:
    db = ev.connect(tmp_path / "s")
    promise = "WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES, TTL INTERVAL 20 MINUTES"
    db.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, ts TIMESTAMP, {promise})")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, min(id) AS first FROM t")
    for minute in range(60):
        told = db.apply({"t": [((minute, START + minute * MINUTE), 1)]})
        if minute == 30:
            db.close()
            db = ev.connect(tmp_path / "s")
    assert (db.view("n").rows(), len(db.table("t")), [*told]) == ([(27, 33)], 27, ["n"])
    assert (db.views(), db.tables(), len(db.late("t"))) == (["n"], ["t"], 0)
    assert "unbounded" not in held(db, "n")
    assert db.verify()
    with pytest.raises(DefinitionError, match="are final"):  # rows go after their time has passed
        db.sql("CREATE MATERIALIZED VIEW w AS SELECT ts, count(*) AS n FROM t GROUP BY ts EMIT ON WINDOW CLOSE")


def test_a_view_that_comes_later_has_what_came_before(tmp_path: Path) -> None:
    """Traces that views share have dropped rows which a new view still has to show."""
    db = opened(tmp_path / "s", watermarks=True, views=["within", "tumbling", "sessions", "recent"])
    minute_by_minute(db, range(40))
    db.sql(f"CREATE MATERIALIZED VIEW pairs AS SELECT t.v, u.v AS w FROM t JOIN u ON {NEAR}")
    db.sql(f"CREATE MATERIALIZED VIEW by_v AS SELECT t.k, t.v, u.k AS uk FROM t JOIN u ON t.v = u.v AND {NEAR[14:]}")
    least = f"SELECT window_start, k, min(v) AS m FROM {TUMBLING} GROUP BY window_start, k"
    db.sql(f"CREATE MATERIALIZED VIEW least AS {least}")
    recent = VIEWS["recent"].replace("sum(v)", "max(v)").replace("5 MINUTES", "9 MINUTES")
    db.sql(f"CREATE MATERIALIZED VIEW longer AS {recent}")
    db.sql(f"CREATE MATERIALIZED VIEW most AS {VIEWS['recent'].replace('sum(v)', 'max(v)')}")
    assert len(db.view("longer")) == len(db.view("most")) == 40
    again = "SELECT session_window.end AS e, k, min(v) AS m FROM t GROUP BY k, session_window(ts, '2 minutes')"
    db.sql(f"CREATE MATERIALIZED VIEW again AS {again}")
    db.sql(f"CREATE MATERIALIZED VIEW visits AS {VIEWS['visits']}")
    assert len(db.view("pairs")) == len(db.view("within"))
    assert len(db.view("again")) == len(db.view("sessions")) == len(db.view("visits")) == 40
    minute_by_minute(db, range(40, 44))
    db.close()
    db = ev.connect(tmp_path / "s")
    minute_by_minute(db, range(44, 50))
    db.vacuum()
    for view in ("pairs", "by_v", "least", "again", "visits", "longer", "most"):
        assert max(held(db, view)["bounded"]) <= 30
    assert db.verify()


@pytest.mark.parametrize("views", [["within", "nearer"], ["nearer", "within"]])
def test_joins_of_different_distances_share_a_bounded_trace(views: list[str]) -> None:
    db = opened(watermarks=True, views=views[:1])
    minute_by_minute(db, range(30))
    db.sql(f"CREATE MATERIALIZED VIEW {views[1]} AS {VIEWS[views[1]]}")
    minute_by_minute(db, range(30, 60))
    for view in views:
        assert "unbounded" not in held(db, view)
        assert max(held(db, view)["bounded"]) <= 30
    assert db.verify()


def test_watermarks_of_moments_on_a_clock_in_no_zone() -> None:
    views = [name for name in VIEWS if name not in UNBOUNDED]
    db = opened(watermarks=True, views=views, kind="TIMESTAMP_NTZ")
    db.sql("CREATE TABLE f (ts TIMESTAMP_NTZ, WATERMARK FOR ts AS ts, TTL INTERVAL 10 MINUTES)")
    bucket = "SELECT ts, count(*) AS n FROM t GROUP BY ts EMIT ON WINDOW CLOSE"
    db.sql(f"CREATE MATERIALIZED VIEW closed AS {bucket}")
    minute_by_minute(db, range(30))
    for view in views:
        assert "unbounded" not in held(db, view), view
    assert len(db.view("closed")) == 24
    for minute in range(30):
        db.apply({"f": [((START + minute * MINUTE,), 1)]})
    assert len(db.table("f")) == 12
    assert db.verify()


def test_a_watermark_may_be_said_of_its_column() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (k BIGINT, ts TIMESTAMP(3) LATENESS INTERVAL 5 MINUTES, v BIGINT, u TIMESTAMP(6))")
    db.sql("CREATE TABLE u (k BIGINT, ts DATE NOT NULL LATENESS INTERVAL 1 DAY, TTL INTERVAL 3 DAYS)")
    db.sql("CREATE TABLE w (k BIGINT, ts TIMESTAMP NOT NULL LATENESS INTERVAL 0 SECONDS)")
    db.sql("INSERT INTO t (k, ts) VALUES (1, TIMESTAMP'2030-01-01 12:00:00')")
    db.sql("INSERT INTO t (k, ts) VALUES (2, TIMESTAMP'2030-01-01 11:54:59'), (3, TIMESTAMP'2030-01-01 11:55:00')")
    assert sorted(row[0] for row in db.table("t").rows()) == [1, 3]
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT ts, count(DISTINCT k) AS n FROM w GROUP BY ts")
    assert "unbounded" not in held(db, "n")
    with pytest.raises(SqlError, match="two watermarks"):
        db.sql("CREATE TABLE x (ts TIMESTAMP LATENESS INTERVAL 1 DAY, WATERMARK FOR ts AS ts)")


def test_dates_have_watermarks() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (d DATE, v BIGINT, WATERMARK FOR d AS d - INTERVAL 2 DAYS)")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT d, sum(v) AS s FROM t GROUP BY d")
    for day in range(40):
        db.apply({"t": [((START.date() + dt.timedelta(days=day - 4 * (day % 4 == 3)), 1), 1)]})
    assert (len(db.late("t")), len(db.view("n"))) == (10, 30)
    assert "bounded" in held(db, "n")
    assert db.verify()


@pytest.mark.parametrize("ttl", ["", ", TTL INTERVAL 1 HOUR"])
def test_a_table_with_a_watermark_is_altered(tmp_path: Path, ttl: str) -> None:
    def rows(name: str) -> list[Any]:
        return sorted(db.view(name).rows(), key=repr)

    with ev.connect(tmp_path) as db:
        db.sql(f"CREATE TABLE t ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES{ttl})")
        db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT window_start, sum(v) AS s FROM {TUMBLING} GROUP BY window_start")
        db.sql("CREATE MATERIALIZED VIEW missed AS SELECT k, ts FROM `late(t)`")
        db.apply({"t": [((1, START, 1), 1), ((2, START + 30 * MINUTE, 2), 1)]})
        db.apply({"t": [((3, START, 3), 1), ((4, START + 26 * MINUTE, 4), 1)]})
        before = {name: rows(name) for name in ("v", "missed")}
        assert before["missed"] == [(3, START)]
        db.sql("ALTER TABLE t ADD COLUMN b BIGINT DEFAULT 7; ALTER TABLE t ALTER COLUMN k TYPE DECIMAL(10, 0)")
        with pytest.raises(DefinitionError, match="v reads it"):
            db.sql("ALTER TABLE t RENAME COLUMN ts TO moment")
        assert {name: rows(name) for name in before} == before
        db.verify().raise_if_different()
        assert db.late("t").rows() == [(3, START, 3, 7, 1)]
        db.sql("ALTER TABLE t ALTER COLUMN b SET DEFAULT 9")
        db.sql("INSERT INTO t (k, ts, v) VALUES (5, TIMESTAMP '2030-01-01 12:27:00', 5)")
    with ev.connect(tmp_path) as db:
        db.sql("INSERT INTO t (k, ts, v) VALUES (6, TIMESTAMP '2030-01-01 12:01:00', 5)")
        assert sorted(row[0] for row in db.late("t").rows()) == [3, 6]
        for minutes in (90, 91):
            db.apply({"t": [((7, START + minutes * MINUTE, 7, 0), 1)]})
        db.verify().raise_if_different()
        assert (START, 1) not in rows("v") if ttl else (START, 1) in rows("v")
        db.sql("DROP VIEW v; DROP VIEW missed; ALTER TABLE t RENAME COLUMN ts TO moment; ALTER TABLE t RENAME TO u")
        db.sql("INSERT INTO u (k, moment, v) VALUES (8, TIMESTAMP '2030-01-01 12:01:00', 5)")
        assert sorted(row[0] for row in db.late("u").rows()) == [3, 6, 8]
        assert db.tables() == ["u"]
