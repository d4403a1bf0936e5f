"""Intervals, times of day and timestamps without a zone against Spark itself, over drawn rows: values and types."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import everview as ev
from everview.types import DAY_TIME, INTERVALS, TIME, YEAR_MONTH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "id": "INT", "d": "INTERVAL DAY TO SECOND", "e": "INTERVAL DAY TO SECOND", "m": "INTERVAL YEAR TO MONTH",
    "w": "INTERVAL DAY", "t": "TIME", "n": "TIMESTAMP_NTZ", "ts": "TIMESTAMP", "i": "INT", "q": "DECIMAL(9,2)",
    "x": "DOUBLE", "s": "STRING",
}  # fmt: skip
TEXTS = [
    "12:30", "1:2:3.456789", "T23:59:59", "24:00", "7:05 pm", "12.30", "-1-2", "1-12", "+0-11", "5", "-3", "1 02:03:04",
    "-9 9:9:9.5", "INTERVAL '1 02:03:04.000001' DAY TO SECOND", "interval -'3-4' year to month", "INTERVAL '2' DAY",
    "2024-02-29 10:11:12+05:00", "2024-02-30", "2024-3-1T4:5", "x", "",
]  # fmt: skip
AGGREGATES = ["sum", "avg", "min", "max", "count", "try_sum", "try_avg"]


def _row(number: int, chance: random.Random) -> tuple[Any, ...]:
    def span() -> dt.timedelta:
        days = chance.choice([0, 0, chance.randint(-400, 400)])
        return dt.timedelta(days, chance.randint(-86_400, 86_400), chance.choice([0, 500_000, 1, 999_999]))

    moment = dt.datetime(2024, 1, 31) + span()
    day = dt.timedelta(chance.randint(-5, 5))
    time = (dt.datetime(2024, 1, 1) + dt.timedelta(microseconds=chance.randrange(10**6, 86_400 * 10**6))).time()
    local = dt.datetime(2024, 3, 31, 2, 30) + span()
    numbers = (
        chance.randint(-50, 50),
        Decimal(chance.randint(-9999, 9999)) / 100 or Decimal(1),
        chance.uniform(0.1, 9),
    )
    drawn = (span(), span(), chance.randint(-40, 40), day, time, local, moment, *numbers, TEXTS[number % len(TEXTS)])
    kept = tuple(None if number > 1 and chance.random() < 0.05 and place != 9 else v for place, v in enumerate(drawn))
    return (number, *kept)


ROWS = [_row(number, random.Random(number)) for number in range(42)]


def _written(value: Any, type_: str) -> str | None:
    """A value as a text that Spark casts to the type."""
    if value is None or not isinstance(value, (int, dt.timedelta)) or type_ == "INT":
        return None if value is None else str(value)
    if isinstance(value, int):
        return f"{'-' if value < 0 else ''}{abs(value) // 12}-{abs(value) % 12}"
    size = abs(value)
    sign = "-" if value < dt.timedelta() else ""
    clock = (dt.datetime.min + dt.timedelta(seconds=size.seconds, microseconds=size.microseconds)).time()
    return f"{sign}{size.days}" if type_ == "INTERVAL DAY" else f"{sign}{size.days} {clock.isoformat()}"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    wanted = {"spark.sql.timeType.enabled": "true", "spark.sql.ansi.enabled": "true"}
    before = {name: spark.conf.get(name) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    texts = [tuple(_written(v, of) for v, of in zip(row, TYPES.values(), strict=True)) for row in ROWS]
    given = spark.createDataFrame(texts, ", ".join(f"`{name}` STRING" for name in TYPES))
    given.selectExpr(*(f"CAST(`{n}` AS {of}) AS `{n}`" for n, of in TYPES.items())).createOrReplaceTempView("times")
    yield spark
    spark.catalog.dropTempView("times")
    for name, value in before.items():
        spark.conf.set(name, str(value))


@pytest.fixture(scope="module")
def db() -> ev.Database:
    made = ev.connect()
    made.sql(f"CREATE TABLE times ({', '.join(f'{name} {of}' for name, of in TYPES.items())}, PRIMARY KEY (id))")
    with made.transaction() as tx:
        tx.insert("times", ROWS)
    return made


def _spark_type(type_: Any) -> str:
    """A type in Spark's words; intervals of other units than ours are ours."""
    text = type_ if isinstance(type_, str) else type_.sql.lower()
    if text == "interval":  # of months and days, which is text here
        return "string"
    text = text.replace("integer", "int").replace(" not null", "").replace("time(6)", "time").replace(": ", ":")
    for units in ("hour to second", "day to hour", "day to minute"):
        text = text.replace(f"interval {units}", DAY_TIME.sql.lower())
    for units in ("interval month", "interval year"):
        text = YEAR_MONTH.sql.lower() if text == units else text
    return text


def _compared(session: SparkSession, db: ev.Database, queries: list[str], rest: str) -> list[str]:
    """What differs, in words: types, and values as text."""
    listed = ", ".join(f"{query} AS c{at}" for at, query in enumerate(queries))
    theirs, ours = session.sql(f"SELECT {listed} {rest}"), db.sql(f"SELECT {listed} {rest}")
    wrong: list[str] = []
    for (_, of), field, query in zip(theirs.dtypes, ours.schema.fields, queries, strict=True):
        if _spark_type(of) != _spark_type(field.type):
            wrong.append(f"{query}: {field.type}, but Spark has {of}")
    spelled = ", ".join(f"CAST({query} AS STRING) AS c{at}" for at, query in enumerate(queries))
    theirs, ours = session.sql(f"SELECT {spelled} {rest}").collect(), db.sql(f"SELECT {spelled} {rest}").rows()
    for a, b in zip(theirs, ours, strict=True):
        pairs = zip(queries, a, b, strict=True)
        wrong += [f"{query}: {y}, but Spark has {x}" for query, x, y in pairs if not _same(x, y)]
    return wrong


def _same(theirs: str | None, ours: str | None) -> bool:
    """Whether two texts are one value; Spark leaves out units that an interval's own type does not have."""
    if theirs == ours or theirs is None or ours is None or "INTERVAL" not in theirs:
        return theirs == ours
    widest = next(units for units in ("DAY TO SECOND", "YEAR TO MONTH", "DAY") if ours.endswith(units))
    return widest != "DAY" and not theirs.endswith(widest)


def test_functions_of_time_are_those_of_spark(session: SparkSession, db: ev.Database) -> None:
    queries = (Path(__file__).parent / "times.txt").read_text().splitlines()
    assert not (wrong := _compared(session, db, queries, "FROM times ORDER BY id")), "\n".join(wrong)


def test_aggregates_of_intervals_are_those_of_spark(session: SparkSession, db: ev.Database) -> None:
    queries = [f"{name}({column})" for name in AGGREGATES for column in ("d", "m", "w")]
    queries += [f"{name}({column})" for name in ("min", "max", "count") for column in ("t", "n")]
    rest = "FROM times GROUP BY id % 5 ORDER BY id % 5"
    assert not (wrong := _compared(session, db, queries, rest)), "\n".join(wrong)


def test_what_spark_refuses_is_refused(session: SparkSession, db: ev.Database) -> None:
    from pyspark.errors import AnalysisException

    refused = ["d > m", "sum(t)", "d = s", "EXTRACT(MONTH FROM d)", "EXTRACT(DAY FROM t)", "CAST(t AS DOUBLE)", "t + m"]
    refused += [
        "CAST(i AS TIME)",
        "CAST(n AS BIGINT)",
        "DATE'2024-01-01' + t",
        "stddev(d)",
        "ceil(d)",
        "d * d",
        "3 / d",
    ]
    for query in refused:
        with pytest.raises(AnalysisException):
            session.sql(f"SELECT {query} FROM times")
        with pytest.raises(ev.EverviewError):
            db.sql(f"SELECT {query} FROM times")
    assert {TIME, *INTERVALS} <= {field.type for field in db.table("times").schema.fields}
