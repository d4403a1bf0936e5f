"""Windows of event time: what each row is in, by a meaning of its own, as rows come late and go again."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.errors import SqlError

START = dt.datetime(2030, 1, 1)
MINUTE = dt.timedelta(minutes=1)
EPOCH = dt.datetime(1970, 1, 1)
Row = tuple[int, str, dt.datetime | None]

rows = st.tuples(
    st.integers(0, 9), st.sampled_from("ab"), st.none() | st.integers(-30, 30).map(lambda n: START + n * MINUTE)
)


def windows(moment: dt.datetime, size: int, slide: int, offset: int = 0) -> list[dt.datetime]:
    """The starts of all windows around a moment, in minutes."""
    minutes = int((moment - EPOCH) / MINUTE)
    starts = [m for m in range(minutes - size + 1, minutes + 1) if (m - offset) % slide == 0]
    return [EPOCH + m * MINUTE for m in starts]


def hopping(held: list[Row], size: int, slide: int, offset: int = 0) -> Counter[Any]:
    found = [(k, start, start + size * MINUTE) for _, k, at in held if at for start in windows(at, size, slide, offset)]
    return Counter(found)


def sessions(held: list[Row], gap: int) -> Counter[Any]:
    found: Counter[Any] = Counter()
    keyed = sorted((k, at) for _, k, at in held if at)
    for key, group in groupby(keyed, lambda one: one[0]):
        run: list[dt.datetime] = []
        for _, at in [*group, (key, dt.datetime.max)]:
            if run and at - run[-1] > gap * MINUTE:
                found[key, run[0], run[-1] + gap * MINUTE] = len(run)
                run = []
            run.append(at)
    return found


VIEWS = {
    "tumbling": (
        "SELECT k, window.start AS s, window.end AS e, count(*) AS n FROM t GROUP BY k, window(ts, '10 minutes')",
        lambda held: hopping(held, 10, 10),
    ),
    "offset": (
        "SELECT k, window.start AS s, window.end AS e, count(*) AS n "
        "FROM t GROUP BY window(ts, '10 minutes', '10 minutes', '3 minutes'), k",
        lambda held: hopping(held, 10, 10, 3),
    ),
    "overlapping": (
        "SELECT k, window(ts, '10 minutes', '4 minutes').start AS s, window(ts, '10 minutes', '4 minutes').end AS e, "
        "count(*) AS n FROM t GROUP BY k, window(ts, '10 minutes', '4 minutes')",
        lambda held: hopping(held, 10, 4),
    ),
    "together": (
        "SELECT k, session_window.start AS s, session_window.end AS e, count(*) AS n "
        "FROM t GROUP BY 1, session_window(ts, '5 minutes')",
        lambda held: sessions(held, 5),
    ),
    "tumbled": (
        "SELECT k, window_start, window_end, count(*) AS n "
        "FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL 10 MINUTES) GROUP BY k, window_start, window_end",
        lambda held: hopping(held, 10, 10),
    ),
    "hopped": (
        "SELECT w.k, w.window_start, w.window_end, count(*) AS n FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), "
        "INTERVAL 5 MINUTES, INTERVAL 10 MINUTES)) AS w GROUP BY w.k, w.window_start, w.window_end",
        lambda held: hopping(held, 10, 5),
    ),
    "in_sessions": (
        "SELECT k, window_start, window_end, count(*) AS n "
        "FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL 5 MINUTES) GROUP BY k, window_start, window_end",
        lambda held: sessions(held, 5),
    ),
}


@settings(max_examples=20)
@given(st.lists(st.lists(rows, min_size=1, max_size=6), min_size=1, max_size=4))
def test_views_have_the_windows_of_the_rows_that_are_there(ticks: list[list[Row]]) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, k STRING, ts TIMESTAMP)")
    for name, (query, _) in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for changed in ticks:
        with db.transaction() as tx:
            for row in changed:
                if row in db.table("t").rows():
                    tx.delete("t", [row[:1]])
                else:
                    tx.upsert("t", [row])
        held = db.table("t").rows()
        for name, (_, meaning) in VIEWS.items():
            shown = {row[:-1]: row[-1] for row in db.view(name).rows()}
            assert shown == meaning(held), name
    db.verify().raise_if_different()


SAME = {  # queries that mean the same
    "SELECT k, TUMBLE_START(ts, INTERVAL '10' MINUTE) AS s, TUMBLE_END(ts, INTERVAL '10' MINUTE) AS e, count(*) AS n "
    "FROM t GROUP BY k, TUMBLE(ts, INTERVAL '10' MINUTE)": VIEWS["tumbling"][0],
    "SELECT k, hop_start(ts, INTERVAL 4 MINUTES, INTERVAL 10 MINUTES) AS s, hop_end(ts, INTERVAL 4 MINUTES, INTERVAL "
    "10 MINUTES) AS e, count(*) AS n FROM t GROUP BY k, HOP(ts, INTERVAL 4 MINUTES, INTERVAL 10 MINUTES)":
        VIEWS["overlapping"][0],
    "SELECT k, SESSION_START(ts, INTERVAL 5 MINUTES) AS s, SESSION_END(ts, INTERVAL 5 MINUTES) AS e, count(*) AS n "
    "FROM t GROUP BY k, SESSION(ts, INTERVAL 5 MINUTES)": VIEWS["together"][0],
    "SELECT k, tumble_start(ts, INTERVAL 10 MINUTES, INTERVAL 3 MINUTES) AS s, count(*) AS n FROM t "
    "GROUP BY k, TUMBLE(ts, INTERVAL 10 MINUTES, INTERVAL 3 MINUTES) HAVING count(*) > 0":
        "SELECT k, window.start, count(*) FROM t GROUP BY window(ts, '10 minutes', '10 minutes', '3 minutes'), k",
    "SELECT * FROM TABLE(TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL 10 MINUTES))":
        "SELECT * FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL 10 MINUTES)",
    "SELECT * FROM HOP(SIZE => INTERVAL 10 MINUTES, SLIDE => INTERVAL 5 MINUTES, DATA => TABLE t, TIMECOL => "
    "DESCRIPTOR(ts), OFFSET => INTERVAL 1 MINUTE)":
        "SELECT * FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL 5 MINUTES, INTERVAL 10 MINUTES, INTERVAL 1 MINUTE)",
    "SELECT * FROM SESSION(DATA => TABLE t PARTITION BY k, id, TIMECOL => DESCRIPTOR(ts), GAP => INTERVAL 5 MINUTES)":
        "SELECT * FROM SESSION(TABLE t PARTITION BY k, id, DESCRIPTOR(ts), INTERVAL 5 MINUTES)",
}  # fmt: skip


@pytest.mark.parametrize("query", SAME)
def test_windows_in_the_words_of_flink(query: str) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT, k STRING, ts TIMESTAMP)")
    with db.transaction() as tx:
        tx.insert("t", [(n, "ab"[n % 2], START + n * n * MINUTE) for n in range(8)])
    assert sorted(db.sql(query).rows()) == sorted(db.sql(SAME[query]).rows())


def test_a_window_is_a_struct_of_plain_moments() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, ts TIMESTAMP)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT window, count(*) AS n FROM t GROUP BY window(ts, '1 hour')")
    change = db.apply({"t": [((1, START), 1), ((2, START + 59 * MINUTE), 1), ((3, None), 1)]})["v"]
    window = {"start": START, "end": START + 60 * MINUTE}
    assert list(change) == [((window, 2), 1)]
    assert db.view("v").rows() == [(window, 2)]
    assert db.sql("SELECT id, window(ts, '1 hour').end AS until FROM t WHERE id = 2") == [(2, window["end"])]


MISTAKES = {
    "SELECT window(ts, '1 hour', '2 hours') FROM t": "begin later than the ones before end",
    "SELECT window(ts, '1 month') FROM t": "the length of a window is written down",
    "SELECT window(ts, id) FROM t": "the length of a window is written down",
    "SELECT window(id, '1 hour') FROM t": "a window of BIGINT",
    "SELECT window(ts, '0 minutes') FROM t": "a window has a length",
    "SELECT id.*, window(ts, '1 hour').* FROM t": "of BIGINT",
    "SELECT count(window.*) FROM t GROUP BY window(ts, '1 hour')": "is not a value",
    "SELECT window(ts) FROM t": "window of 1 arguments",
    "SELECT window(ts, '1 hour'), window(ts, '2 hours') FROM t": "several windows of time",
    "SELECT session_window(ts, '1 hour') FROM t": "session_window without GROUP BY",
    "SELECT window(ts, '1 day', '1 microsecond') FROM t": "too many windows around one moment",
    "SELECT session_window(ts, '1 hour') FROM t GROUP BY 5, session_window(ts, '1 hour')": "there is no such column",
    "SELECT * FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL 1 HOUR)": "HOP with 1 intervals",
    "SELECT * FROM TUMBLE(t, ts, INTERVAL 1 HOUR)": "write TUMBLE",
    "SELECT * FROM TUMBLE(DATA => TABLE t, SIZE => DESCRIPTOR(ts))": "write TUMBLE",
    "SELECT TUMBLE_START(ts) FROM t GROUP BY TUMBLE(ts)": "window of 1 arguments",
    "SELECT CAST(ts AS TIMESTAMP(3)) FROM t": "but as the type of a column",
}


@pytest.mark.parametrize("query", MISTAKES)
def test_mistakes_say_what_to_write(query: str) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, ts TIMESTAMP)")
    with pytest.raises(SqlError, match=MISTAKES[query]) as failed:
        db.sql(query)
    assert failed.value.hint
