"""Parameters of SQL are values, whatever they hold: in queries, changes and views, by place and by name."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import everview as ev
from everview.errors import SqlError, UnknownName, WrongType
from everview.types import Variant


class Colour(enum.StrEnum):
    RED = "red"


VALUES: list[tuple[Any, Any, str]] = [
    (None, None, "VOID"),
    (True, True, "BOOLEAN"),
    (7, 7, "INTEGER"),
    (2**40, 2**40, "BIGINT"),
    (np.int64(7), 7, "INTEGER"),
    (np.float64(0.5), 0.5, "DOUBLE"),
    (pa.scalar("x"), "x", "STRING"),
    (Colour.RED, "red", "STRING"),
    (Decimal("1.50"), Decimal("1.50"), "DECIMAL(3,2)"),
    (b"\x00'", b"\x00'", "BINARY"),
    (dt.date(2020, 2, 29), dt.date(2020, 2, 29), "DATE"),
    (dt.datetime(2020, 2, 29, 1), dt.datetime(2020, 2, 29, 1), "TIMESTAMP"),
    (dt.time(1, 2, 3, 4), dt.time(1, 2, 3, 4), "TIME"),
    (pa.scalar(dt.time(1, 2)), dt.time(1, 2), "TIME"),
    (dt.timedelta(days=2), dt.timedelta(days=2), "INTERVAL DAY"),
    (dt.timedelta(days=-1, microseconds=1), dt.timedelta(days=-1, microseconds=1), "INTERVAL DAY TO SECOND"),
    (bytearray(b"ab"), b"ab", "BINARY"),
    (Decimal("1E+3"), Decimal(1000), "DECIMAL(4,0)"),
    (Variant.of({"a": [1, "x"]}), Variant.of({"a": [1, "x"]}), "VARIANT"),
    ([dt.time(1), None], [dt.time(1), None], "ARRAY<TIME>"),
    (
        [{"a": [1, 2], "b": dt.time(5)}],
        [{"a": [1, 2], "b": dt.time(5)}],
        "ARRAY<STRUCT<a: ARRAY<INTEGER> NOT NULL, b: TIME NOT NULL>>",
    ),
    ([1, None, 2**40], [1, None, 2**40], "ARRAY<BIGINT>"),
    ({"a": 1}, {"a": 1}, "STRUCT<a: INTEGER NOT NULL>"),
]


@pytest.mark.parametrize(("value", "same", "type_"), VALUES)
def test_values_have_the_types_that_sql_has_for_them(value: Any, same: Any, type_: str) -> None:
    answer = ev.connect().sql("SELECT ? AS v", [value])
    assert answer.rows() == [(same,)]
    assert type_ == "VOID" or answer.schema["v"].type.sql == type_


def test_a_time_of_day_is_found_by_a_parameter() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE shift (id INT PRIMARY KEY, starts TIME)")
    db.sql("INSERT INTO shift VALUES (1, ?), (2, ?)", [dt.time(8, 30), dt.time(22)])
    for starts, ids in ((dt.time(22), [(2,)]), (dt.time(8, 30), [(1,)])):
        assert db.sql("SELECT id FROM shift WHERE starts = ?", [starts]).rows() == ids


TEXTS = some.lists(some.text(alphabet="a'\"\\`;?:-%\n é", max_size=8), min_size=1, max_size=3)


@settings(max_examples=30, deadline=None)
@given(TEXTS)
def test_no_text_is_read_as_sql(texts: list[str]) -> None:
    db = ev.connect()
    marks = ", ".join("?" for _ in texts)
    assert db.sql(f"SELECT {marks}", texts).rows() == [tuple(texts)]
    assert db.sql("SELECT '?' || :b, :a -- ?", {"a": texts[0], "b": texts[-1]}).rows() == [("?" + texts[-1], texts[0])]


def test_a_view_keeps_its_values_and_finds_them_again(tmp_path: Path) -> None:
    with ev.connect(tmp_path / "state") as db:
        db.sql("CREATE TABLE t (a INT, d DATE)")
        made = "CREATE MATERIALIZED VIEW v AS SELECT a + ? AS b FROM t WHERE a > ?"
        db.sql(f"SELECT ?; {made}", ["first", 10, 0])
        db.sql(
            "CREATE MATERIALIZED VIEW w AS SELECT d + :span AS d, :tags AS tags FROM t WHERE a IN (:x, :x)",
            {"span": dt.timedelta(days=1), "x": 1, "tags": ["O'Brien"]},
        )
        db.sql("INSERT INTO t VALUES (?, ?), (?, ?)", (1, dt.date(2020, 1, 1), -1, None))
    with ev.connect(tmp_path / "state") as db:
        db.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a + ? AS b FROM t", [20])
        db.sql("UPDATE t SET d = :d WHERE a = :a", {"d": dt.date(2021, 1, 1), "a": 1})
        assert sorted(db.view("v").rows()) == [(19,), (21,)]
        assert db.view("w").rows() == [(dt.date(2021, 1, 2), ["O'Brien"])]
        assert db.verify()


@pytest.mark.parametrize(
    ("text", "params", "said"),
    [
        ("SELECT ?", None, "parameter 1 has no value"),
        ("SELECT ?, ?", [1], "parameter 2 has no value"),
        ("SELECT ?", [1, 2], "2 parameters are given, and the text has 1"),
        ("SELECT 1; SELECT ?", [1, 2], "2 parameters are given, and the text has 1"),
        ("SELECT :a", [1], "parameter :a has no value"),
        ("SELECT :a", {"a": 1, "b": 2}, '"b" is given, and the text does not have it'),
        ("SELECT ?", {"a": 1}, "from a list"),
        ("SELECT * FROM ?", ["t"], "a parameter as a relation"),
        ("SELECT ?", [object()], "is no value of SQL"),
        ("SELECT ?", [uuid.UUID(int=1)], "is no value of SQL"),
        ("SELECT ?", [dt.time(1, tzinfo=dt.UTC)], "is no literal"),
        ("SELECT ?", [[1, "a"]], "a list of"),
        ("SELECT ?", ["\ud800"], "not Unicode"),
    ],
)
def test_mistakes_are_told(text: str, params: Any, said: str) -> None:
    with pytest.raises(SqlError, match=said):
        ev.connect().sql(text, params)


def test_values_come_in_a_list_or_a_dict() -> None:
    for wrong in (5, "ab", {0: 2}):
        with pytest.raises(WrongType):
            ev.connect().sql("SELECT ?", wrong)


def test_numbers_of_other_dialects() -> None:
    assert ev.connect().sql("SELECT $2, $1, $2", [1, 2], dialect="postgres").rows() == [(2, 1, 2)]
    assert ev.connect().sql("SELECT $n", {"n": 1}, dialect="duckdb").rows() == [(1,)]


def test_prepared_statements() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (a INT, b STRING)")
    db.sql("PREPARE put AS INSERT INTO t VALUES (?, ?)")
    assert [db.sql("EXECUTE put(1, 'x')"), db.sql("EXECUTE PUT(1 + 1, NULL)")] == [1, 1]
    db.sql("PREPARE one AS SELECT b FROM t WHERE a = :a")
    assert db.sql("EXECUTE one(a => 1)").rows() == [("x",)]
    with pytest.raises(SqlError, match="parameter :a has no value"):
        db.sql("EXECUTE one(1)")
    with pytest.raises(SqlError, match="no constant"):
        db.sql("EXECUTE put((SELECT 1), 'x')")
    db.sql("DEALLOCATE one")
    with pytest.raises(UnknownName, match='"one"'):
        db.sql("EXECUTE one(1)")
    db.sql("DEALLOCATE ALL")
    with pytest.raises(UnknownName):
        db.sql("EXECUTE put(1, 'x')")


def test_places_and_names_together() -> None:
    db = ev.connect()
    text = "SELECT a, b FROM VALUES (1, 2), (1, 3), (2, 3) AS t(a, b) WHERE a = ? AND b > :least"
    assert db.sql(text, {1: 1, "least": 2}).rows() == [(1, 3)]
    assert db.sql("SELECT 1; SELECT :a, ?, ?", {2: "x", "a": 0, 1: "y"}).rows() == [(0, "y", "x")]
    for params, told in [
        ({"least": 2}, "name its place in the dict"),
        ({2: 1, "least": 2}, "numbered from 1 on"),
        ({True: 1, "least": 2}, "no name of a parameter"),
        ({1: 1, 2: 1, "least": 2}, "2 parameters are given, and the text has 1"),
    ]:
        with pytest.raises(ev.EverviewError, match=told):
            db.sql(text, params)


def test_in_a_list_that_is_a_value() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT, xs ARRAY<BIGINT>)")
    db.sql("INSERT INTO t VALUES (1, array(1, 2)), (2, array(NULL, 3)), (4, array())")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, id IN xs AS own, id NOT IN :xs AS other FROM t", {"xs": [1, 9]})
    assert sorted(db.view("v").rows()) == [(1, True, False), (2, None, True), (4, False, True)]
    assert db.sql("SELECT id FROM t WHERE id IN ?", [[]]).rows() == []
    assert db.sql("SELECT 2 IN ?, 2 IN ?", [[2, None], [1, None]]).rows() == [(True, None)]
    with pytest.raises(SqlError, match="IN of a INTEGER, which is no list"):
        db.sql("SELECT id FROM t WHERE id IN ?", [3])
    assert db.verify("v")
