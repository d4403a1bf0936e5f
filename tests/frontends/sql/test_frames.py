"""Frames of windows, drawn at random, are as DuckDB has them after every tick; and the oracle agrees."""

from __future__ import annotations

import datetime as dt
import random
import re
from typing import Any

import duckdb
import pytest

import everview as ev
from everview.errors import SqlError

KEYS = ("k", "k", "f", "d", "ts", "p")
FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "RANGE BETWEEN 2 PRECEDING AND CURRENT ROW", "RANGE BETWEEN 1 PRECEDING AND 3 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", "RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
)  # fmt: skip
EXCLUDED = ("", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES")
ADDED = ("sum(x)", "count(x)", "min(x)", "max(x)", "avg(x)")
PICKED = ("first_value(x{})", "last_value(x{})", "nth_value(x, 2{})")
SHIFTED = ("lag(x{})", "lead(x, 2, 77{})")


def drawn(chance: random.Random) -> tuple[str, str]:
    """A query in DuckDB's spelling, and in Spark's."""
    key, frame = chance.choice(KEYS), chance.choice(FRAMES)
    order = f"{key} {chance.choice(('ASC', 'DESC'))} NULLS {chance.choice(('FIRST', 'LAST'))}"
    if frame.startswith("RANGE") and key in ("d", "ts"):
        unit = "DAY" if key == "d" else "HOUR"
        frame = re.sub(r"(\d)", rf"INTERVAL \1 {unit}", frame)
    excluded, call = chance.choice(EXCLUDED), chance.choice(ADDED)
    if not frame.startswith("RANGE"):
        kind = chance.choice(("added", "picked", "shifted"))
        call = chance.choice(ADDED if kind == "added" else PICKED if kind == "picked" else SHIFTED)
        frame = "" if kind == "shifted" else f"{frame}{excluded}"
        order += ", x NULLS FIRST, f, d, ts, p, k"
    else:
        frame += excluded
    skips = chance.random() < 0.5
    duck = call.format(" IGNORE NULLS" if skips else "")
    spark = call.format("") + (" IGNORE NULLS" if skips and "{" in call else "")
    window = f"OVER (PARTITION BY g ORDER BY {order} {frame})"
    return tuple(f"SELECT g, k, x, {said} {window} AS r FROM t" for said in (duck, spark))  # pyright: ignore


def row(chance: random.Random) -> tuple[Any, ...]:
    def some(value: Any) -> Any:
        return value if chance.random() > 0.2 else None

    day, hour = dt.date(2020, 1, chance.randint(1, 9)), dt.datetime(2020, 1, 1, chance.randint(0, 9))
    f, numbers = some(chance.choice((0.0, 1.0, 2.5, 4.0))), [some(chance.randint(-1, 6)) for _ in range(3)]
    return chance.randint(0, 1), numbers[0], numbers[1], f, some(day), some(hour), numbers[2]


@pytest.mark.parametrize("seed", range(3))
def test_as_in_duckdb(seed: int) -> None:
    chance = random.Random(seed)
    db, duck = ev.connect(), duckdb.connect()
    duck.execute("SET default_null_order='nulls_first_on_asc_last_on_desc'")
    for run in (db.sql, duck.execute):
        run("CREATE TABLE t (g INT, k INT, x INT, f DOUBLE, d DATE, ts TIMESTAMP, p DECIMAL(8, 2))")
    queries = [drawn(chance) for _ in range(12)]
    for number, (_, text) in enumerate(queries):
        db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {text}")
    held: list[tuple[Any, ...]] = []
    for _ in range(4):
        changes = list[tuple[tuple[Any, ...], int]]()
        for _ in range(chance.randint(1, 12)):
            if held and chance.random() < 0.4:
                changes.append((held.pop(chance.randrange(len(held))), -1))
            else:
                held.append(row(chance))
                changes.append((held[-1], 1))
        db.apply({"t": changes})
        duck.execute("DELETE FROM t")
        duck.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", held)
        for number, (text, _) in enumerate(queries):
            assert _sorted(db.view(f"v{number}").rows()) == _sorted(duck.execute(text).fetchall()), text
    assert db.verify()


# (in DuckDB, in Spark), of a value x, another one f and a text s
OF_WHOLE_FRAMES = (
    ("median(x)", "median(x)"),
    ("quantile_cont(x, 0.3)", "percentile(x, 0.3)"),
    ("quantile_disc(x, 0.7)", "percentile_approx(x, 0.7)"),
    ("-quantile_disc(-x, 0.4)", "percentile_disc(0.4) WITHIN GROUP (ORDER BY x DESC)"),
    ("covar_pop(x, f)", "covar_pop(x, f)"),
    ("covar_samp(x, f)", "covar_samp(x, f)"),
    ("regr_count(x, f)", "regr_count(x, f)"),
    ("regr_avgx(x, f)", "regr_avgx(x, f)"),
    ("regr_sxy(x, f)", "regr_sxy(x, f)"),
    ("regr_intercept(x, f)", "regr_intercept(x, f)"),
    ("coalesce(list(x ORDER BY x) FILTER (WHERE x IS NOT NULL), [])", "array_agg(x ORDER BY x)"),
    ("coalesce(list(x ORDER BY f DESC NULLS LAST, x) FILTER (WHERE x IS NOT NULL), [])",
     "array_agg(x ORDER BY f DESC NULLS LAST)"),
    ("coalesce(list_sort(list(DISTINCT x) FILTER (WHERE x IS NOT NULL)), [])", "collect_set(x)"),
    ("string_agg(s, '-' ORDER BY s DESC)", "listagg(s, '-') WITHIN GROUP (ORDER BY s DESC)"),
    ("bool_and(x > 2)", "bool_and(x > 2)"),
    ("bit_xor(x)", "bit_xor(x)"),
    ("count(DISTINCT x)", "approx_count_distinct(x)"),
    ("count(DISTINCT (x, f)) FILTER (WHERE x IS NOT NULL AND f IS NOT NULL)", "count(DISTINCT x, f)"),
    ("sum(DISTINCT x) FILTER (WHERE f > 0)", "sum(DISTINCT x) FILTER (WHERE f > 0)"),
    ("avg(DISTINCT x)", "avg(DISTINCT x)"),
    ("max(x * 10 + k) FILTER (WHERE x IS NOT NULL AND k IS NOT NULL)", "max_by(x * 10 + k, x * 10 + k)"),
    ("first(x ORDER BY f, x NULLS FIRST)", "first_value(x ORDER BY f)"),
    ("last(x ORDER BY f, x NULLS FIRST)", "last_value(x ORDER BY f)"),
    ("median(x) FILTER (WHERE f > 0)", "median(x) FILTER (WHERE f > 0)"),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_aggregates_of_whole_frames_are_as_in_duckdb(seed: int) -> None:
    chance = random.Random(seed)
    db, duck = ev.connect(), duckdb.connect()
    duck.execute("SET default_null_order='nulls_first_on_asc_last_on_desc'")
    for run in (db.sql, duck.execute):
        run("CREATE TABLE t (g INT, k INT, x INT, f DOUBLE, s STRING)")
    queries = list[str]()
    for place, (_, spark) in enumerate(chance.sample(OF_WHOLE_FRAMES, 8)):
        frame = chance.choice(("", *FRAMES)) if place else ""
        frame += chance.choice(EXCLUDED) if frame else ""
        tie = "" if "RANGE" in frame or "GROUPS" in frame or not frame else ", x NULLS FIRST, f, s"
        window = f"OVER (PARTITION BY g ORDER BY k{tie} {frame})"
        said = next(duck for duck, other in OF_WHOLE_FRAMES if other == spark)
        queries.append(f"SELECT g, k, x, {_windowed(said, window)} AS r FROM t")
        db.sql(f"CREATE MATERIALIZED VIEW v{place} AS SELECT g, k, x, {spark} {window} AS r FROM t")

    def some(value: Any) -> Any:
        return value if chance.random() > 0.2 else None

    held: list[tuple[Any, ...]] = []
    for _ in range(3):
        gone, held = held[:3], held[3:]
        new = [
            (chance.randint(0, 1), some(chance.randint(0, 5)), some(chance.randint(0, 6)),
             some(chance.choice((0.0, 1.5, 4.0))), some(chance.choice("abc")))
            for _ in range(8)
        ]  # fmt: skip
        held += new
        db.apply({"t": [*((row, -1) for row in gone), *((row, 1) for row in new)]})
        duck.execute("DELETE FROM t")
        duck.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", held)
        for place, text in enumerate(queries):
            ours, theirs = (_rounded(rows) for rows in (db.view(f"v{place}").rows(), duck.execute(text).fetchall()))
            assert ours == theirs, text
    assert db.verify()


def _windowed(said: str, window: str) -> str:
    """A call of DuckDB over a window, which stands behind the aggregate itself and its filter."""
    for outer in ("coalesce(list_sort(", "coalesce("):
        if said.startswith(outer):
            inner, rest = said.removeprefix(outer).split("), [])" if outer == "coalesce(list_sort(" else ", [])")
            return f"{outer}{inner} {window}{')' * (outer.count('(') - 1)}, []){rest}"
    return f"{said} {window}"


def _rounded(rows: list[tuple[Any, ...]]) -> list[Any]:
    def plain(value: Any) -> Any:
        return round(float(value), 9) + 0.0 if isinstance(value, int | float) else value

    return sorted((tuple(map(plain, row)) for row in rows), key=repr)


def test_lists_are_in_the_order_of_the_window() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (k INT, s STRING); INSERT INTO t VALUES (1, 'z'), (2, 'b'), (2, 'a'), (3, NULL), (4, 'c')")
    window = "OVER (ORDER BY k DESC ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
    rows = db.sql(
        f"SELECT k, collect_list(s) {window}, listagg(s, '+') OVER (ORDER BY k), mode(s) OVER (ORDER BY k), "
        "first(s) FILTER (WHERE s < 'c') OVER (ORDER BY k), min_by(s, s) OVER (ORDER BY k) FROM t WHERE k <> 2"
    ).rows()
    assert sorted(rows) == [
        (1, ["z"], "z", "z", None, "z"),
        (3, ["c", "z"], "z", "z", None, "z"),
        (4, ["c"], "z+c", "c", None, "c"),
    ]
    (row,) = db.sql("SELECT collect_list(s) OVER (ORDER BY k) AS l FROM t QUALIFY k = 4").rows()
    assert row == (["z", "a", "b", "c"],)


def test_an_aggregate_in_python_over_a_window() -> None:
    @ev.aggregate("INT", by_group=True)
    def widest(values: list[int]) -> int:
        return max(values) - min(values)

    db = ev.connect()
    db.sql("CREATE TABLE t (k INT, x INT); INSERT INTO t VALUES (1, 5), (2, 9), (3, NULL), (4, 1)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, widest(x) OVER (ORDER BY k ROWS 1 PRECEDING) AS w FROM t")
    assert sorted(db.view("v").rows()) == [(1, 0), (2, 4), (3, 0), (4, 0)]
    db.sql("DELETE FROM t WHERE k = 3")
    assert sorted(db.view("v").rows()) == [(1, 0), (2, 4), (4, 8)]
    assert db.verify()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT grouping(k) OVER (ORDER BY k) FROM t", "grouping over a window"),
        ("SELECT corr(DISTINCT k, k) OVER (ORDER BY k) FROM t", "DISTINCT or ORDER BY in corr"),
    ],
)
def test_what_no_window_has_is_told(query: str, said: str) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (k INT)")
    with pytest.raises(SqlError, match=said):
        db.sql(query)


def _sorted(rows: list[tuple[Any, ...]]) -> list[Any]:
    return sorted(((*r[:3], None if r[3] is None else float(r[3])) for r in rows), key=repr)


def test_at_the_ends_of_a_type() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (9223372036854775807), (9223372036854775800), (NULL), (0)")
    text = "SELECT k, count(*) OVER (ORDER BY k RANGE BETWEEN {} PRECEDING AND {} FOLLOWING) AS n FROM t"
    db.sql(f"CREATE MATERIALIZED VIEW v AS {text.format(10, 10)}")
    db.sql(f"CREATE MATERIALIZED VIEW w AS {text.replace('PRECEDING', 'FOLLOWING').format(1, 10)}")
    assert [n for _, n in sorted(db.view("v").rows(), key=repr)] == [1, 2, 2, 1]
    assert [n for _, n in sorted(db.view("w").rows(), key=repr)] == [0, 1, 0, 1]
    assert db.verify()


@pytest.mark.parametrize(
    ("window", "said"),
    [
        ("ORDER BY s RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", "no distance of STRING"),
        ("ORDER BY k RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW", "no interval of INTEGER"),
        ("ORDER BY k, s RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", "one sort key"),
        ("ORDER BY k ROWS BETWEEN 1.5 PRECEDING AND CURRENT ROW", "whole numbers"),
        ("PARTITION BY k GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW", "GROUPS"),
        ("ORDER BY k ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW", "always empty"),
    ],
)
def test_mistakes_are_told(window: str, said: str) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (k INT, s STRING)")
    with pytest.raises(SqlError, match=said):
        db.sql(f"SELECT sum(k) OVER ({window}) FROM t")
