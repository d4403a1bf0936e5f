"""Columns of maps and variants in a database: in and out, kept, changed, and in views that follow."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everview as ev
from everview.codes.spark_variants import as_spark
from everview.errors import EverviewError, WrongType
from everview.types import Variant
from everview.types.variants import SingleFloat

ITEM = "CREATE TABLE item (id INT, m MAP<STRING, INT>, v VARIANT)"
VIEWS = {
    "looked": "SELECT id, m['a'] AS a, v:x[0]::string AS x FROM item",
    "kept": "SELECT id, map_filter(m, (k, n) -> n > 1) AS m, v FROM item WHERE cardinality(m) > 0",
    "entries": "SELECT id, key, value FROM item LATERAL VIEW explode(m) e AS key, value",
    "parts": "SELECT id, pos, key, to_json(value) AS part FROM item, LATERAL variant_explode(v)",
    "grouped": "SELECT m, count(*) AS n, collect_list(id) AS ids FROM item GROUP BY m",
    "shapes": "SELECT cardinality(m) AS n, schema_of_variant_agg(v) AS shape FROM item GROUP BY cardinality(m)",
}
inside = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["t", "a b", 1.5]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xab"), inner, max_size=2),
    max_leaves=4,
)
maps = st.none() | st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(0, 3), max_size=3)
rows = st.tuples(st.integers(1, 4), maps, inside.map(Variant.of) | st.none())


def made(path: Path | None = None) -> ev.Database:
    db = ev.connect() if path is None else ev.connect(path)
    db.sql(ITEM)
    for name, text in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
    return db


@given(st.lists(st.lists(rows, max_size=4), max_size=4), st.data())
def test_views_follow(batches: list[list[Any]], data: st.DataObject) -> None:
    db = made()
    held: list[Any] = []
    for batch in batches:
        gone = [held.pop(data.draw(st.integers(0, len(held) - 1))) for _ in range(len(held) // 2)]
        with db.transaction() as tx:
            tx.insert("item", batch)
            for row in gone:
                tx.delete("item", [row])
        held += batch
        assert db.verify()


def test_all_ways_in_and_out() -> None:
    db = made()
    row = {"id": 1, "m": {"b": 1, "a": None}, "v": {"x": [1, decimal.Decimal("2.50")]}}
    arrow = pa.table(
        {
            "id": pa.array([2], pa.int32()),
            "m": pa.array([[("c", 3)]], pa.map_(pa.string(), pa.int64())),
            "v": pa.array([Variant.of({"y": dt.date(2024, 1, 1)}).raw], pa.binary()),
        }
    )
    with db.transaction() as tx:
        tx.insert("item", [row])
        tx.insert("item", arrow)
        tx.insert("item", as_spark(db_table(db, [(3, {}, Variant.of(None))])))
        tx.insert("item", pd.DataFrame({"id": [4], "m": [{"p": 1}], "v": [{"q": 1}]}))
        tx.insert("item", pl.DataFrame({"id": [5], "m": [[{"key": "z", "value": 1}]], "v": ["t"]}))
    got = {r[0]: r[1:] for r in db.sql("SELECT * FROM item").rows()}
    assert got == {
        1: ({"b": 1, "a": None}, Variant.of({"x": [1, decimal.Decimal("2.50")]})),
        2: ({"c": 3}, Variant.of({"y": dt.date(2024, 1, 1)})),
        3: ({}, Variant.of(None)),
        4: ({"p": 1}, Variant.of({"q": 1})),
        5: ({"z": 1}, Variant.of("t")),
    }
    assert list(got[1][0]) == ["b", "a"], "entries keep their order"
    out = db.sql("SELECT m FROM item WHERE id = 1")
    assert out.to_arrow().schema.field("m").type == pa.map_(pa.string(), pa.int32())
    assert pl.from_arrow(out.to_arrow()).shape == (1, 1)
    assert out.to_pandas()["m"][0] == [("b", 1), ("a", None)]


def db_table(db: ev.Database, given_rows: list[Any]) -> pa.Table:
    other = made()
    with other.transaction() as tx:
        tx.insert("item", given_rows)
    return other.sql("SELECT * FROM item").to_arrow()


def test_state_is_kept(tmp_path: Path) -> None:
    with made(tmp_path / "state") as db, db.transaction() as tx:
        tx.insert("item", [(1, {"a": 1}, {"x": ["t"]}), (2, None, None)])
    with ev.connect(tmp_path / "state") as db:
        assert sorted(db.sql("SELECT * FROM looked")) == [(1, 1, "t"), (2, None, None)]
        db.sql("DELETE FROM item WHERE m['a'] = 1")
        assert db.sql("SELECT * FROM entries").rows() == []
        assert db.verify()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"id": 1, "m": [("a", 1), ("a", 2)]}, "the key 'a' twice"),
        ({"id": 1, "m": [(None, 1)]}, "the key NULL"),
        ({"id": 1, "m": 5}, "is no MAP"),
        ({"id": 1, "m": {"a": "x"}}, "is no INTEGER"),
        ({"id": 1, "v": {1: 2}}, "as a key of a variant"),
        ({"id": 1, "v": object()}, "no place in a variant"),
    ],
)
def test_wrong_values_are_refused(given: dict[str, Any], said: str) -> None:
    db = made()
    with pytest.raises(EverviewError, match=said), db.transaction() as tx:
        tx.insert("item", [given])


@pytest.mark.parametrize(
    "raw", [b"", b"\x02", b"\x01\x00\x00", b"\x01\x00\x00\xff", b"\x01\x05\x00", b"\x01\x00\x00\x02\x01\x00\x00\x01"]
)
def test_bytes_that_are_no_variant_are_refused(raw: bytes) -> None:
    db = made()
    table = pa.table({"id": pa.array([1], pa.int32()), "v": pa.array([raw], pa.binary())})
    with pytest.raises(WrongType, match="no variant"), db.transaction() as tx:
        tx.insert("item", table)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT DISTINCT m FROM item", "SELECT DISTINCT of MAP"),
        ("SELECT m FROM item UNION SELECT m FROM item", "UNION of MAP"),
        ("SELECT * FROM item ORDER BY v", "ORDER BY VARIANT"),
        ("SELECT v, count(*) FROM item GROUP BY v", "GROUP BY VARIANT"),
        ("SELECT max(m) FROM item", "max of MAP"),
        ("SELECT row_number() OVER (PARTITION BY m ORDER BY id) FROM item", "PARTITION BY MAP"),
        ("SELECT m = m FROM item", "equal is not defined on MAP"),
        ("SELECT from_json(id, schema_of_json(v::string)) FROM item", "columns have types before there are rows"),
        ("SELECT * FROM item POSITIONAL JOIN item AS other", "POSITIONAL JOIN is not supported"),
        ("SELECT map(map(1, 2), 3)", "map is not defined on MAP"),
        ("SELECT to_json(map(1.5D, 1))", "to_json is not defined on MAP"),
        ("SELECT cast(named_struct('a', 1) AS VARIANT)", "there is no cast of STRUCT"),
        ("SELECT mask('a', lower => 'b')", "that mask does not have"),
    ],
)
def test_what_spark_refuses_is_refused(text: str, said: str) -> None:
    with pytest.raises(EverviewError, match=said):
        made().sql(text)


def test_positional_joins_of_duckdb_are_refused() -> None:
    with pytest.raises(EverviewError, match="POSITIONAL JOIN is not supported"):
        made().sql("SELECT * FROM item POSITIONAL JOIN item AS other", dialect="duckdb")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("SELECT MAP {'a': 1, 'b': 2}", {"a": 1, "b": 2}),
        ("SELECT (MAP {1: 'x'})[1]", "x"),
        ("SELECT MAP(['a'], [1])['a']", 1),
        ("SELECT '{\"a\": \"x\"}' -> 'a'", '"x"'),
        ("SELECT '{\"a\": \"x\"}' ->> 'a'", "x"),
        ("SELECT json_extract('{\"a\": [1, {\"b\": 2}]}', '$.a[1].b')", "2"),
        ("SELECT cardinality(MAP {'a': 1})", 1),
    ],
)
def test_the_spellings_of_duckdb(text: str, answer: Any) -> None:
    assert made().sql(text, dialect="duckdb").rows() == [(answer,)]


@given(inside)
def test_a_variant_is_its_value(value: Any) -> None:
    held = Variant.of(value)
    assert held == Variant.of_parts(*held.parts)
    assert Variant.of(held.value) == held
    assert held.value == value


def test_values_of_variants_keep_their_types() -> None:
    moment = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
    given_values = [
        SingleFloat(1.5),
        1.5,
        decimal.Decimal("1.50"),
        2**70,
        moment,
        moment.replace(tzinfo=None),
        b"a",
        "x" * 99,
    ]
    got = Variant.of(given_values).value
    assert [type(v) for v in got] == [
        SingleFloat,
        float,
        decimal.Decimal,
        decimal.Decimal,
        *[type(v) for v in given_values[4:]],
    ]
    assert got == given_values
    assert str(got[2]) == "1.50"


@pytest.mark.parametrize("path", ["v:", "v:a.", "v:a[", "v:a[0"])
def test_a_path_that_ends_too_early(path: str) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (v VARIANT)")
    with pytest.raises(ev.EverviewError, match=r"syntax error|write a path"):
        db.sql(f"SELECT * FROM t WHERE {path}")


@pytest.mark.parametrize("value", [1, "a", {"a": 1}, [1]])
def test_a_variant_of_no_bytes_is_refused(value: Any) -> None:
    with pytest.raises(WrongType, match=r"write Variant\.of"):
        Variant(value)


CORRUPT = {
    '{"a": 1, "b": "x"}': (1, "x", None),
    '{"a": "no", "b": "x"}': (None, "x", '{"a": "no", "b": "x"}'),
    '{"a": ': (None, None, '{"a": '),
    "[1]": (None, None, "[1]"),
    "{}": (None, None, None),
}


@pytest.mark.parametrize("option", ["", ", map('columnNameOfCorruptRecord', 'c')"])
def test_a_text_that_is_not_of_its_schema_stands_in_a_field(option: str) -> None:
    column = "c" if option else "_corrupt_record"
    with ev.connect() as db:
        db.sql("CREATE TABLE t (s STRING)")
        db.sql(
            f"CREATE MATERIALIZED VIEW v AS SELECT s, from_json(s, 'a INT, {column} STRING, b STRING'{option}) r FROM t"
        )
        db.apply({"t": [((text,), 1) for text in (*CORRUPT, "")]})
        found = {text: read and (read["a"], read["b"], read[column]) for text, read in db.view("v").rows()}
        db.verify()
    assert found == {**CORRUPT, "": None}
