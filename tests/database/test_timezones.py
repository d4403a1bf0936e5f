"""A database in a time zone: what text means, which day and hour an instant is in, and that its directory keeps it."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import everview as ev
from everview.errors import EverviewError
from everview.plan.typing import call, literal
from everview.scalars.expressions import Column
from everview.types import DAY_TIME, TIMESTAMP, YEAR_MONTH
from scalars.drawn_columns import agrees

BERLIN = ZoneInfo("Europe/Berlin")
VIEW = """
    CREATE MATERIALIZED VIEW v AS SELECT id, CAST(at AS DATE) AS day, hour(at) AS hour, CAST(at AS STRING) AS text,
        date_trunc('DAY', at) AS begins, at + INTERVAL 1 DAY AS tomorrow, at + INTERVAL 36 HOURS AS later,
        at + INTERVAL 1 MONTH AS month, CAST(at AS TIMESTAMP_NTZ) AS local, CAST(at AS TIME) AS clock,
        date_format(at, 'yyyy HH') AS form, CAST(CAST(at AS STRING) AS TIMESTAMP) AS again
    FROM t
"""


def expected(at: dt.datetime) -> tuple[object, ...]:
    """What the view has for a moment, by Python's clock of the zone."""
    local = at.replace(tzinfo=dt.UTC).astimezone(BERLIN)

    def instant(shown: dt.datetime) -> dt.datetime:
        return shown.replace(tzinfo=BERLIN, fold=0).astimezone(dt.UTC).replace(tzinfo=None)

    plain = local.replace(tzinfo=None, fold=0)
    midnight = dt.datetime.combine(local.date(), dt.time())
    tomorrow = instant(plain + dt.timedelta(1))
    year, month = divmod(local.year * 12 + local.month, 12)
    days = (dt.date(year + month // 11, (month + 1) % 12 + 1, 1) - dt.timedelta(1)).day
    next_month = plain.replace(year=year, month=month + 1, day=min(local.day, days))
    return (
        *(local.date(), local.hour, str(plain), instant(midnight), tomorrow, tomorrow + dt.timedelta(hours=12)),
        *(instant(next_month), plain, plain.time(), f"{plain:%Y %H}", instant(plain)),
    )


def test_days_and_hours_are_those_of_the_zone(tmp_path: Path) -> None:
    chance = random.Random(5)
    moments = [dt.datetime(2024, 1, 1) + dt.timedelta(minutes=chance.randrange(2 * 366 * 1440)) for _ in range(60)]
    moments += [dt.datetime(2024, 3, 31, hour, 30) for hour in range(4)]
    moments += [dt.datetime(2024, 10, 27, hour, 30) for hour in range(4)]
    db = ev.connect(tmp_path / "state", timezone="Europe/Berlin")
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP)")
    db.sql(VIEW)
    with db.transaction() as tx:
        tx.insert("t", list(enumerate(moments)))
    db.verify()
    assert sorted(db.view("v").rows()) == [(number, *expected(at)) for number, at in enumerate(moments)]
    db.close()
    with ev.connect(tmp_path / "state") as again:
        again.sql("DELETE FROM t WHERE id > 0")
        again.sql("INSERT INTO t VALUES (1, TIMESTAMP'2024-07-01 00:30:00'), (2, '2024-07-01 00:30:00Z')")
        assert again.sql("SELECT at FROM t WHERE id > 0 ORDER BY id").rows() == [
            (dt.datetime(2024, 6, 30, 22, 30),),
            (dt.datetime(2024, 7, 1, 0, 30),),
        ]
        assert [row[1] for row in sorted(again.view("v").rows())][1:] == [dt.date(2024, 7, 1)] * 2
        again.verify()
        with pytest.raises(EverviewError, match="one time zone"):
            again.sql("SET TIME ZONE 'UTC'")
    with pytest.raises(EverviewError, match="is Europe/Berlin, not UTC"):
        ev.connect(tmp_path / "state", timezone="UTC")


def test_moments_that_are_made_and_read_are_in_the_zone() -> None:
    db = ev.connect(timezone="America/New_York")
    query = """
        SELECT unix_timestamp('2024-07-01 00:00:00'), from_unixtime(0), make_timestamp(2024, 1, 1, 0, 0, 0),
            to_timestamp('2024-07-01', 'yyyy-MM-dd'),
            TIMESTAMP_NTZ'2024-07-01 00:00:00' = TIMESTAMP'2024-07-01 00:00:00',
            year(TIMESTAMP'2024-01-01 04:59:00Z'), current_timezone(),
            convert_timezone('UTC', TIMESTAMP_NTZ'2024-07-01 00:00:00'),
            TIMESTAMP'2024-03-11 00:00:00' - TIMESTAMP'2024-03-10 00:00:00',
            current_date() = CAST(now() AS DATE), TRY_CAST('2024-13-01' AS TIMESTAMP)
    """
    assert db.sql(query).rows() == [
        (
            *(1719806400, "1969-12-31 19:00:00", dt.datetime(2024, 1, 1, 5), dt.datetime(2024, 7, 1, 4), True, 2023),
            *("America/New_York", dt.datetime(2024, 7, 1, 4), dt.timedelta(1), True, None),
        )
    ]


def test_an_hour_that_comes_twice_is_two_hours() -> None:
    """Whole units are counted by the clock; what begins or stays is an instant. So Spark answers, too."""
    db = ev.connect(timezone="America/New_York")
    db.sql("CREATE TABLE t (at TIMESTAMP, n INT)")
    db.sql("""
        CREATE MATERIALIZED VIEW v AS SELECT unix_seconds(date_trunc('HOUR', at)) / 3600.0 AS hour,
            unix_seconds(date_trunc('minute', at)) / 3600.0 AS minute,
            timestampdiff(HOUR, TIMESTAMP'2026-10-31 00:00:00', at) AS hours,
            timestampdiff(DAY, TIMESTAMP'2026-10-31 01:30:00', at) AS days,
            unix_seconds(at + make_dt_interval(0, n)) - unix_seconds(at) AS later,
            unix_seconds(at + make_ym_interval(0, n - 1)) - unix_seconds(at) AS months,
            round(months_between(at, TIMESTAMP'2026-10-15 00:00:00') * 31 * 48) AS between FROM t
    """)
    first = dt.datetime(2026, 11, 1, 5, 30)  # the clock shows 1:30, and does so again an hour later
    db.apply({"t": [((first + dt.timedelta(hours=hour), 1), 1) for hour in range(3)]})
    since = 498197  # hours since 1970 at 5:00
    assert sorted(tuple(map(float, row)) for row in db.view("v").rows()) == [
        (since + hour, since + hour + 0.5, (25, 25, 26)[hour], 1, 3600, 0, 819 + 2 * hour) for hour in range(3)
    ]
    db.verify()


def test_generated_columns_and_constraints_are_in_the_zone() -> None:
    db = ev.connect(timezone="Asia/Tokyo")
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)))")
    db.sql("INSERT INTO t (id, at) VALUES (1, '2024-01-01 23:00:00Z')")
    with db.transaction() as tx:
        tx.insert("t", [{"id": 2, "at": dt.datetime(2024, 1, 1, 23)}])
    assert db.sql("SELECT day FROM t").rows() == [(dt.date(2024, 1, 2),)] * 2


@pytest.mark.parametrize("zone", ["Nowhere/City", "", "+19:00"])
def test_a_zone_that_there_is_not(zone: str) -> None:
    with pytest.raises(EverviewError, match="there is no time zone"):
        ev.connect(timezone=zone)


def test_conditions_on_the_time_in_a_zone() -> None:
    db = ev.connect(timezone="Europe/Berlin")
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP, d DATE)")
    start = dt.datetime(2030, 10, 27, 0, 30)  # the clock shows 2:30, and will show it once more
    db.advance(start)
    db.sql("CREATE MATERIALIZED VIEW recent AS SELECT id FROM t WHERE ts > now() - INTERVAL 90 MINUTES")
    db.sql("CREATE MATERIALIZED VIEW days AS SELECT id FROM t WHERE ts + INTERVAL 1 DAY > now()")
    today = "now() >= CAST(d AS TIMESTAMP) AND now() < CAST(d + 1 AS TIMESTAMP)"
    db.sql(f"CREATE MATERIALIZED VIEW today AS SELECT id FROM t WHERE {today}")
    with db.transaction() as tx:
        tx.insert("t", [(1, start, start.date())])
    for hours, recent, days, of_today in ((1, 1, 1, 1), (2, 0, 1, 1), (23, 0, 1, 0), (24, 0, 1, 0), (25, 0, 0, 0)):
        db.advance(start + dt.timedelta(hours=hours))
        counts = [len(db.view(name).rows()) for name in ("recent", "days", "today")]
        assert counts == [recent, days, of_today], hours


def first_moment(day: dt.date, zone: ZoneInfo) -> dt.datetime:
    """The instant at which a local day begins; where its midnight is left out, the one after."""
    shown = dt.datetime.combine(day, dt.time(0), zone)
    return dt.datetime.fromtimestamp(shown.timestamp(), dt.UTC).replace(tzinfo=None)


Condition = Callable[[dt.datetime, dt.date, dt.date, ZoneInfo], bool]
DAYS: dict[str, Condition] = {  # of a row's moment, its local day, the local day of now, and the zone
    "date(ts) = current_date": lambda ts, day, today, zone: day == today,
    "date(ts) > current_date - 1": lambda ts, day, today, zone: day > today - dt.timedelta(1),
    "date(ts) <= date_sub(current_date, 1)": lambda ts, day, today, zone: day <= today - dt.timedelta(1),
    "d < current_date": lambda ts, day, today, zone: ts.date() < today,
    "datediff(current_date, d) >= 1": lambda ts, day, today, zone: (today - ts.date()).days >= 1,
    "d >= add_months(current_date, -1)": lambda ts, day, today, zone: ts.date() >= month_before(today),
    "d >= trunc(current_date, 'MM')": lambda ts, day, today, zone: ts.date() >= today.replace(day=1),
    "ts >= current_date": lambda ts, day, today, zone: ts >= first_moment(today, zone),
    "ts < current_date + INTERVAL 1 DAY": lambda ts, day, today, zone: ts < first_moment(today + dt.timedelta(1), zone),
    "ts >= date_trunc('day', now())": lambda ts, day, today, zone: ts >= first_moment(today, zone),
    "date_trunc('day', now()) < ts": lambda ts, day, today, zone: first_moment(today, zone) < ts,
    "ts < date_trunc('week', now())": lambda ts, day, today, zone: (
        ts < first_moment(today - dt.timedelta(today.weekday()), zone)
    ),
    "date_trunc('month', now()) <= ts": lambda ts, day, today, zone: first_moment(today.replace(day=1), zone) <= ts,
}


def month_before(day: dt.date) -> dt.date:
    last = day.replace(day=1) - dt.timedelta(1)
    return last.replace(day=min(day.day, last.day))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("Europe/Berlin", dt.datetime(2030, 3, 31, 1)),  # 2:00 is left out
        ("America/Sao_Paulo", dt.datetime(2018, 11, 4, 3)),  # midnight is left out
        ("America/Havana", dt.datetime(2030, 11, 3, 5)),  # midnight comes twice
        ("America/Sao_Paulo", dt.datetime(2018, 2, 18, 2)),  # the last hour of a day comes twice
    ],
)
def test_days_of_a_zone_before_now(name: str, change: dt.datetime) -> None:
    zone, hour = ZoneInfo(name), dt.timedelta(hours=1)
    db = ev.connect(timezone=name)
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP, d DATE)")
    moments = [change + n * hour - off for n in range(-30, 31, 3) for off in (dt.timedelta(0), dt.timedelta.resolution)]
    db.advance(change - dt.timedelta(days=2))
    for at, condition in enumerate(DAYS):
        db.sql(f"CREATE MATERIALIZED VIEW v{at} AS SELECT id FROM t WHERE {condition}")
    db.apply({"t": [((n, ts, ts.date()), 1) for n, ts in enumerate(moments)]})
    for hours in (*range(-30, -6, 6), *range(-6, 7), *range(8, 31, 6)):
        now = change + hours * hour
        db.advance(now)
        today = now.replace(tzinfo=dt.UTC).astimezone(zone).date()
        for at, (condition, holds) in enumerate(DAYS.items()):
            local = [ts.replace(tzinfo=dt.UTC).astimezone(zone).date() for ts in moments]
            expected = [(n,) for n, ts in enumerate(moments) if holds(ts, local[n], today, zone)]
            assert sorted(db.view(f"v{at}").rows()) == expected, (condition, now)
    db.verify().raise_if_different()


LOCAL_DAYS = (
    "ts > now() - INTERVAL 1 DAY",
    "ts <= now() - INTERVAL 1 DAY",
    "ts >= now() - INTERVAL '1 02:30:00' DAY TO SECOND",
    "ts < dateadd(DAY, 2, now())",
    "now() - INTERVAL 1 DAY < ts AND ts < now() + INTERVAL 1 DAY",
    "NOT (ts > now() - INTERVAL 1 DAY) OR id > 40",
    "ts > now() - n * INTERVAL 1 DAY",
)
CHANGES_OF_CLOCKS = [
    ("Europe/Berlin", "2027-03-28 01:00:00"),
    ("Europe/Berlin", "2027-10-31 01:00:00"),
    ("Europe/Berlin", "2045-03-26 01:00:00"),
    ("Australia/Lord_Howe", "2027-04-03 15:00:00"),
    ("America/New_York", "2027-11-07 06:00:00"),
]


@pytest.mark.parametrize(("zone", "change"), CHANGES_OF_CLOCKS)
def test_calendar_days_of_a_zone_before_now(zone: str, change: str) -> None:
    """A view holds at every moment what its query says, also in the hours that clocks show twice or never."""
    clocks = dt.datetime.fromisoformat(change)
    hours = [dt.timedelta(hours=h / 2) for h in range(-3, 6)]
    rows = [clocks + dt.timedelta(days=day) + hour for day in (-1, 0, 1) for hour in hours]
    db = ev.connect(timezone=zone)
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP, n INT)")
    for number, condition in enumerate(LOCAL_DAYS):
        db.sql(f"CREATE MATERIALIZED VIEW v{number} AS SELECT id FROM t WHERE {condition}")
    with db.transaction() as tx:
        tx.insert("t", [(number, row, number % 3 - 1) for number, row in enumerate([*rows, None])])
    asked = ", ".join(f"({condition}) AS c{number}" for number, condition in enumerate(LOCAL_DAYS))
    for day in (-2, -1, 0, 1, 2):
        for hour in hours:
            now = clocks + dt.timedelta(days=day) + hour + dt.timedelta(microseconds=day)
            db.advance(now=now)
            held = db.sql(f"SELECT id, {asked} FROM t".replace("now()", f"TIMESTAMP'{now.isoformat(' ')}Z'")).rows()
            for number, condition in enumerate(LOCAL_DAYS):
                wanted = sorted((row[0],) for row in held if row[number + 1])
                assert sorted(db.view(f"v{number}").rows()) == wanted, (condition, now)
        db.sql(f"DELETE FROM t WHERE id = {20 + day}")
    db.verify()


LOCAL_MONTHS = (
    "ts > now() - INTERVAL 1 MONTH",
    "ts <= now() - INTERVAL 1 MONTH",
    "ts < now() + INTERVAL 13 MONTHS AND ts >= now() + INTERVAL 1 MONTH",
    "NOT (ts > now() - INTERVAL 1 MONTH) OR id > 25",
    "ts > now() - n * INTERVAL 1 MONTH",
)


@pytest.mark.parametrize(
    ("zone", "end"),
    [
        ("Europe/Berlin", "2027-03-31 00:00:00"),  # clocks are put forward three days before, and a month is too short
        ("Europe/Berlin", "2027-10-31 01:00:00"),
        ("Australia/Lord_Howe", "2028-02-29 13:00:00"),
        ("+03:30", "2027-05-31 20:30:00"),
    ],
)
def test_months_of_a_zone_before_now(zone: str, end: str) -> None:
    """A view holds at every moment what its query says, also at the ends of months and where clocks are set."""
    last = dt.datetime.fromisoformat(end)
    hours = [dt.timedelta(hours=h) for h in (-24, -1, 0, 1, 23)]
    rows = [last + dt.timedelta(days=day) + hour for day in (-33, -31, -28, 0, 1, 30, 31) for hour in hours[1:4]]
    db = ev.connect(timezone=zone)
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP, n INT)")
    db.advance(now=last - dt.timedelta(days=9))
    for number, condition in enumerate(LOCAL_MONTHS):
        db.sql(f"CREATE MATERIALIZED VIEW v{number} AS SELECT id FROM t WHERE {condition}")
    with db.transaction() as tx:
        tx.insert("t", [(number, row, number % 3 - 1) for number, row in enumerate([*rows, None])])
    for day in (-4, -2, -1, 0, 1, 2):
        for hour in hours[1:]:
            now = last + dt.timedelta(days=day) + hour + dt.timedelta(microseconds=day)
            db.advance(now=now)
            for number, condition in enumerate(LOCAL_MONTHS):
                asked = condition.replace("now()", f"TIMESTAMP'{now.isoformat(' ')}Z'")
                wanted = sorted(db.sql(f"SELECT id FROM t WHERE {asked}").rows())
                assert sorted(db.view(f"v{number}").rows()) == wanted, (condition, now)
    db.verify().raise_if_different()


@settings(max_examples=15, deadline=None)
@given(
    some.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "+03:30", "No/where"]),
    some.integers(0, 4_000_000_000) | some.integers(1_806_000_000, 1_806_400_000),
    some.sampled_from([-1, 1, -2, 0, 12, -217]),
)
def test_turns_of_months_are_where_the_condition_changes(zone: str, second: int, months: int) -> None:
    moment = dt.datetime.fromtimestamp(second, dt.UTC)
    found = call("month_turns_in_zone", Column(0, "m", TIMESTAMP), literal(months, YEAR_MONTH), literal(zone))
    agrees(found, [TIMESTAMP], [[moment, None]])


@settings(max_examples=25, deadline=None)
@given(
    some.sampled_from(
        ["Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns", "+03:30", "No/where"]
    ),
    some.integers(0, 4_000_000_000)
    | some.integers(1_806_000_000, 1_806_400_000)
    | some.integers(1_325_000_000, 1_325_400_000),
    some.sampled_from([-1, 1, -2, 0, 7, -217]),
)
def test_turns_are_where_the_condition_changes(zone: str, second: int, days: int) -> None:
    moment = dt.datetime.fromtimestamp(second, dt.UTC)
    found = call("turns_in_zone", Column(0, "m", TIMESTAMP), literal(days * 86_400_000_000, DAY_TIME), literal(zone))
    agrees(found, [TIMESTAMP], [[moment, None]])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, window(ts, '1 day').start AS s, window(ts, '1 day').end AS e FROM t",
        "SELECT id, window(ts, '24 hours').start AS s, window(ts, '24 hours').end AS e FROM t",
        "SELECT id, window_start, window_end FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL 1 DAY)",
        "SELECT id, window_start, window_end FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL 12 HOURS, INTERVAL 2 DAYS)",
        "SELECT id, window_start, window_end FROM SESSION(TABLE t PARTITION BY id, DESCRIPTOR(ts), INTERVAL 1 DAY)",
    ],
)
def test_windows_are_of_elapsed_time_also_where_the_clock_is_set(query: str) -> None:
    db = ev.connect(timezone="Europe/Berlin")
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP)")
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    moments = [dt.datetime(2026, 3, 29, hour, 30) for hour in (0, 1, 22, 23)]
    moments += [dt.datetime(2026, 10, 25, hour, 30) for hour in (0, 1, 22, 23)]
    with db.transaction() as tx:
        tx.insert("t", list(enumerate(moments)))
    rows = db.view("v").rows()
    lengths = {end - start for _, start, end in rows}
    assert lengths in ({dt.timedelta(1)}, {dt.timedelta(2)})
    assert all(start <= moments[number] < end for number, start, end in rows)
    db.verify()


SUMMER, WINTER = "TIMESTAMP'2026-07-01 00:00:00Z'", "TIMESTAMP'2026-01-01 00:00:00Z'"
WRITTEN = [
    ("Europe/Berlin", f"date_format({SUMMER}, 'HH XXX VV z')", "02 +02:00 Europe/Berlin CEST"),
    ("Europe/Berlin", f"date_format({WINTER}, 'HH XXX VV z')", "01 +01:00 Europe/Berlin CET"),
    ("Europe/Berlin", f"date_format({SUMMER}, 'X XX XXXX XXXXX x xx xxx Z ZZZZ ZZZZZ O OOOO')",
     "+02 +0200 +0200 +02:00 +02 +0200 +02:00 +0200 GMT+02:00 +02:00 GMT+2 GMT+02:00"),
    ("Asia/Kolkata", f"date_format({SUMMER}, 'X x O OOOO z')", "+0530 +0530 GMT+5:30 GMT+05:30 IST"),
    ("-03:00", f"date_format({SUMMER}, \"HH X VV z O 'X'\")", "21 -03 -03:00 -03:00 GMT-3 X"),
    ("Europe/London", f"date_format({WINTER}, 'X x Z ZZZZ ZZZZZ O XXX z')", "Z +00 +0000 GMT Z GMT Z GMT"),
    ("Europe/Berlin", "from_unixtime(0, 'HH z')", "01 CET"),
    ("Europe/Berlin", f"date_format({SUMMER}, concat('H ', 'XXX'))", "2 +02:00"),
    ("Europe/Berlin", f"date_format({SUMMER}, p)", "+02:00 CEST"),
    ("Europe/Berlin", "CAST(to_timestamp('2026-07-01 00:00 +05:00', 'yyyy-MM-dd HH:mm XXX') AS STRING)",
     "2026-06-30 21:00:00"),
    ("Europe/Berlin", "CAST(unix_timestamp('1970-01-01 01 +0100', 'yyyy-MM-dd HH Z') AS STRING)", "0"),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "expression", "text"), WRITTEN)
def test_patterns_with_the_zone(zone: str, expression: str, text: str) -> None:
    db = ev.connect(timezone=zone)
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, p STRING)")
    db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {expression} AS text FROM t")
    db.sql("INSERT INTO t VALUES (1, 'XXX z')")
    assert db.view("v").rows() == [(text,)]
    db.verify()


MOMENT = "TIMESTAMP'2026-07-01 00:00:00.25'"
SHOWN = "2026-07-01 00:00:00.25"
IN_VARIANTS = {
    "CAST(parse_json('\"2026-07-01 00:00:00.25\"')::timestamp AS STRING)": SHOWN,
    "CAST(parse_json('\"2026-06-30 22:00:00.25Z\"')::timestamp AS STRING)": SHOWN,
    "CAST(variant_get(parse_json('{\"a\": \"2026-07-01\"}'), '$.a', 'timestamp') AS STRING)": "2026-07-01 00:00:00",
    "CAST(try_variant_get(parse_json('{\"a\": \"no\"}'), '$.a', 'timestamp') AS STRING)": None,
    "CAST(CAST(DATE'2026-07-01' AS VARIANT)::timestamp AS STRING)": "2026-07-01 00:00:00",
    f"CAST(CAST({MOMENT} AS VARIANT) AS STRING)": SHOWN,
    f"CAST(CAST(CAST({MOMENT} AS VARIANT) AS DATE) AS STRING)": "2026-07-01",
    f"CAST(CAST(array({MOMENT}) AS VARIANT) AS ARRAY<STRING>)[0]": SHOWN,
    "CAST(CAST(parse_json('[\"2026-07-01\"]') AS ARRAY<TIMESTAMP>)[0] AS STRING)": "2026-07-01 00:00:00",
    f"CAST(CAST(array({MOMENT}) AS VARIANT) AS STRING)": '["2026-07-01 00:00:00.25+02:00"]',
    f"to_json(CAST({MOMENT} AS VARIANT))": '"2026-07-01 00:00:00.25+02:00"',
    f"to_json(named_struct('a', {MOMENT}, 'b', array({MOMENT})))":
        '{"a":"2026-07-01T00:00:00.250+02:00","b":["2026-07-01T00:00:00.250+02:00"]}',
    f"to_json(named_struct('v', CAST({MOMENT} AS VARIANT)))": '{"v":"2026-07-01 00:00:00.25+02:00"}',
    f"to_json(named_struct('a', {MOMENT}), map('timestampFormat', 'HH XXX'))": '{"a":"00 +02:00"}',
    f"to_csv(named_struct('a', {MOMENT}, 'b', 1))": "2026-07-01T00:00:00.250+02:00,1",
    "CAST(from_csv('2026-07-01 00:00:00', 'a TIMESTAMP').a AS STRING)": "2026-07-01 00:00:00",
    "CAST(from_json('{\"a\": \"2026-07-01 00:00:00\"}', 'a TIMESTAMP').a AS STRING)": "2026-07-01 00:00:00",
}  # fmt: skip


@pytest.mark.parametrize("expression", IN_VARIANTS)
def test_moments_in_variants_json_and_csv(expression: str) -> None:
    db = ev.connect(timezone="Europe/Berlin")
    db.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {expression} AS text FROM t")
    db.sql("INSERT INTO t VALUES (1)")
    assert db.view("v").rows() == [(IN_VARIANTS[expression],)]
    db.verify()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe"])
def test_hours_that_come_twice_begin_by_the_offset_that_they_are_in(zone: str) -> None:
    """As in Spark: an hour begins by the offset of its moment, or where a skipped hour ends."""
    starts = [dt.datetime(2024, *day) for day in ((3, 30, 23), (4, 6, 13), (10, 5, 14), (10, 26, 23))]
    moments = [start + dt.timedelta(minutes=11 * step, seconds=5) for start in starts for step in range(16)]

    def begun(at: dt.datetime, **below: int) -> dt.datetime:
        local = at.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone))
        shown = local.replace(tzinfo=None, fold=0).replace(**below, second=0)
        instant = shown - (local.utcoffset() or dt.timedelta())
        again = instant.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
        return (
            instant if again == shown else shown.replace(tzinfo=ZoneInfo(zone)).astimezone(dt.UTC).replace(tzinfo=None)
        )

    with ev.connect(timezone=zone) as db:
        db.sql("CREATE TABLE t (at TIMESTAMP)")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT at, date_trunc('HOUR', at), date_trunc('minute', at) FROM t")
        db.apply({"t": [((at,), 1) for at in moments]})
        assert sorted(db.view("v").rows()) == sorted((at, begun(at, minute=0), begun(at)) for at in moments)
        db.verify()


def test_at_time_zone_and_differences_of_postgresql_do_not_depend_on_the_session() -> None:
    query = """
        SELECT z AT TIME ZONE 'America/New_York', (z AT TIME ZONE 'UTC') AT TIME ZONE 'Asia/Tokyo',
            extract(epoch FROM z - '2024-03-30 12:00:00Z'::timestamptz) FROM t
    """
    for zone in ("UTC", "Europe/Berlin"):
        with ev.connect(timezone=zone) as db:
            db.sql("CREATE TABLE t (z TIMESTAMPTZ)", dialect="postgres")
            db.apply({"t": [((dt.datetime(2024, 3, 31, 1),), 1)]})
            found = [dt.datetime(2024, 3, 30, 21), dt.datetime(2024, 3, 30, 16), 46800]
            assert list(db.sql(query, dialect="postgres")[0]) == found
