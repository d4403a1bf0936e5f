"""Frames out of a database and into it: every exit agrees with `rows`, and what cannot come in is named."""

from __future__ import annotations

import datetime as dt
import uuid
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import everview as ev
from everview.errors import DefinitionError, EverviewError, SchemaError, ShapeError, UnknownName, WrongArity
from everview.views.change import Change

NOON = dt.datetime(2026, 1, 1, 12)
ROWS = [("x", 1, NOON), ("y", None, None)]


@pytest.fixture
def db() -> ev.Database:
    db = ev.connect()
    db.sql("""
      CREATE TABLE t (s STRING, n BIGINT, at TIMESTAMP);
      CREATE MATERIALIZED VIEW v AS SELECT * FROM t ORDER BY s;
    """)
    db.apply({"t": [(row, 1) for row in ROWS]})
    return db


def exits(db: ev.Database) -> dict[str, Any]:
    """Everything that has rows."""
    view = db.view("v")
    return {
        "view": view,
        "table": db.table("t"),
        "answer": db.sql("SELECT * FROM v ORDER BY s"),
        "live": view.live(),
        "dicts": view.live(dicts=True),
        "ordered": view.ordered("s"),
    }


def plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows whose moments are all in UTC, without the zone."""
    return sorted(
        (
            tuple(v.astimezone(dt.UTC).replace(tzinfo=None) if isinstance(v, dt.datetime) else v for v in row)
            for row in rows
        ),
        key=repr,
    )


@pytest.mark.parametrize("name", ["view", "table", "answer", "live", "dicts", "ordered"])
def test_all_libraries_read_the_same_rows(db: ev.Database, name: str) -> None:
    made = exits(db)[name]
    for frame in (pl.DataFrame(made), made.to_polars()):
        assert frame.schema == {"s": pl.String, "n": pl.Int64, "at": pl.Datetime("us", "UTC")}
        assert plain(frame.rows()) == plain(ROWS)
    for table in (pa.table(made), made.to_arrow()):
        assert table.schema.field("at").type == pa.timestamp("us", "UTC")
        assert plain([tuple(row.values()) for row in table.to_pylist()]) == plain(ROWS)
    assert plain(duckdb.sql("FROM made").fetchall()) == plain(ROWS)
    assert plain(duckdb.from_arrow(made).fetchall()) == plain(ROWS)
    frame = made.to_pandas()
    assert str(frame["at"].dtype) == "datetime64[us, UTC]"
    assert sorted(frame["s"]) == ["x", "y"]
    assert len(made) == len([*made]) == 2


def test_changes_are_frames_with_weights(db: ev.Database) -> None:
    with db.view("v").changes(snapshot=True) as changes:
        out = db.apply({"t": [(ROWS[0], -1)]})
        (snapshot, _), (change, _) = changes.ready()
    assert plain(pl.DataFrame(snapshot).rows()) == plain([(*row, 1) for row in ROWS])
    for each in (out["v"], change):
        assert plain(pl.DataFrame(each).rows()) == plain(duckdb.sql("FROM each").fetchall()) == [("x", 1, NOON, -1)]
        assert plain(each.to_polars().rows()) == [("x", 1, NOON, -1)]
        assert each.to_pandas()["_weight"].tolist() == [-1]
    db.create_table("copy", db.sql("SELECT * FROM t"))
    db.apply({"copy": out["v"]}, negative=True)  # what comes out goes in
    assert db.table("copy").rows() == [ROWS[1]]


def test_changes_without_columns_are_no_table() -> None:
    with pytest.raises(ShapeError, match="not of rows with columns"):
        Change.of([("x", 1)]).to_arrow()


def test_a_circuit_has_the_same_exits() -> None:
    circuit = ev.Circuit()
    circuit.source("a", "n BIGINT").sink("out")
    run = ev.Embedded(circuit)
    run.tick({"a": [((1,), 2)]})
    assert pl.DataFrame(run.view("out")).rows() == [*run.view("out")] == [(1,), (1,)]


def test_an_answer_is_a_sequence_all_the_same(db: ev.Database) -> None:
    answer = db.sql("SELECT s FROM t ORDER BY s")
    assert answer == [("x",), ("y",)]
    assert ("x",) in answer
    assert [*reversed(answer)] == [("y",), ("x",)]
    assert (answer.index(("y",)), answer.count(("x",)), answer[-1], answer[:1]) == (1, 1, ("y",), [("x",)])


def test_a_missing_library_is_named(db: ev.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(EverviewError, match="polars is not installed\n  hint: pip install polars"):
        db.view("v").to_polars()


# -- lookups


WANTED = [*product(range(4), ["a", "b", None], [None, 1])]


@pytest.mark.parametrize(("shards", "key"), [(1, "k"), (2, "k"), (1, ()), (2, ())])
def test_a_lookup_finds_what_a_look_at_all_rows_finds(shards: int, key: str | tuple[()]) -> None:
    db = ev.connect(shards=shards)
    db.create_table("t", "a STRING, k BIGINT NOT NULL, b BIGINT", key=key)
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    rows = [("a", 0, 1), ("b", 1, None), (None, 2, 1)] + ([] if key else [("a", 0, 1), ("a", 1, None), ("b", 1, 1)])
    db.apply({"t": [(row, 1) for row in rows]})
    for relation in (db.table("t"), db.view("v")):
        assert sorted(relation.rows(), key=repr) == sorted(rows, key=repr)
        for wanted, columns in product(WANTED, ["", "k", "a", "b", "ak", "kb", "akb"]):
            values = {name: wanted["kab".index(name)] for name in columns}
            matching = [row for row in rows if all(row["akb".index(name)] == value for name, value in values.items())]
            assert sorted(relation.find(values), key=repr) == sorted(matching, key=repr)
    if key:
        assert [db.table("t").get(k) for k in range(4)] == [*rows, None]


def test_lookups_that_cannot_be(db: ev.Database) -> None:
    db.create_table("two", "a BIGINT, b STRING", key=["b", "a"])
    db.sql("INSERT INTO two VALUES (1, 'x')")
    assert db.table("two").get("x", 1) == (1, "x")
    assert db.table("two").find(A=1) == [(1, "x")]
    with pytest.raises(WrongArity, match="has 2 columns, not 1"):
        db.table("two").get("x")
    with pytest.raises(DefinitionError, match="table t has no key"):
        db.table("t").get(1)
    with pytest.raises(UnknownName, match="column"):
        db.view("v").find(nothing=1)


# -- in


@pytest.mark.parametrize(
    ("frame", "columns", "rows"),
    [
        (pd.DataFrame({"c": pd.Categorical(["a", None])}), "c STRING", [(None,), ("a",)]),
        (pl.DataFrame({"c": pl.Series(["a"], dtype=pl.Enum(["a", "b"]))}), "c STRING", [("a",)]),
        (pa.table({"c": pa.array([2, 1, 2]).dictionary_encode()}), "c BIGINT", [(1,), (2,), (2,)]),
        (pd.DataFrame({"c": [uuid.UUID(int=1)]}), "c STRING", [(str(uuid.UUID(int=1)),)]),
        (pa.table({"c": pa.array(['{"a":1}'], pa.json_())}), "c STRING", [('{"a":1}',)]),
        (
            pa.table({"c": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))}),
            "c BOOLEAN",
            [(False,), (True,)],
        ),
        (pd.DataFrame({"c": pd.to_datetime(["2026-01-01"]).tz_localize("Europe/Berlin")}), "c TIMESTAMP", None),
    ],
)
def test_columns_of_many_kinds_become_tables(frame: Any, columns: str, rows: list[Any] | None) -> None:
    db = ev.connect()
    db.create_table("t", frame)
    assert str(db.table("t").schema) == columns
    assert db.table("t").rows() == (rows or [(dt.datetime(2025, 12, 31, 23),)])
    db.create_table("again", columns)
    with db.transaction() as tx:
        tx.insert("again", frame)
    assert db.table("again").rows() == db.table("t").rows()


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame({"id": [1, 2], "c": ["a", 1]}), 'column "c" of the frame has values of the types str and int'),
        (pl.DataFrame({"c": pl.Series([b"", 1], dtype=pl.Object)}), 'column "c" .* the types bytes and int'),
        (pd.DataFrame({"c": np.array([1j])}), 'column "c" of the frame is of type complex128'),
        (pd.DataFrame({"c": pd.arrays.SparseArray([1, 0])}), r'column "c" of the frame is of type Sparse\[int64, 0\]'),
        (pd.DataFrame({"c": pd.period_range("2026-01", periods=1, freq="M")}), 'column "c" has Arrow type .*period'),
        (pl.LazyFrame({"c": [1]}), "collect it first"),
    ],
)
def test_a_column_that_cannot_come_in_is_named(frame: Any, said: str) -> None:
    db = ev.connect()
    with pytest.raises(SchemaError, match=said):
        db.create_table("t", frame)
    assert db.tables() == []
