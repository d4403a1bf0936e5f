"""Tables: keys, bags, weights, defaults, and everything that is refused, with the table as it was."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from everview import Database, connect
from everview.errors import (
    DefinitionError,
    DuplicateKey,
    EverviewError,
    NegativeWeight,
    NullNotAllowed,
    SchemaError,
    UnknownName,
    WrongArity,
    WrongType,
)
from everview.kernels.threads import at_most

COLUMNS = "id BIGINT, owner STRING NOT NULL, amount DECIMAL(12,2), at DATE"


@pytest.fixture(params=[1, 3])
def db(request: pytest.FixtureRequest) -> Database:
    db = connect(shards=request.param)
    db.create_table("t", COLUMNS, key="id", defaults={"owner": "nobody", "amount": Decimal("1.50")})
    db.create_table("bag", "a BIGINT, b STRING")
    db.create_table("pair", "v BIGINT, b STRING, a BIGINT", key=("a", "b"))
    db.create_view("owners", lambda of: of["t"].aggregate(["owner"], n="count"))
    return db


def rows(db: Database, table: str) -> list[Any]:
    return sorted(db.table(table).rows(), key=repr)


def insert(db: Database, table: str, rows: Any) -> int:
    with db.transaction() as tx:
        return tx.insert(table, rows)


DAY = dt.date(2026, 1, 2)
ROW = (1, "Ada", Decimal("9.50"), DAY)


@pytest.mark.parametrize(
    "given",
    [
        [(1, "Ada", "9.50", "2026-01-02")],
        [{"id": 1, "owner": "Ada", "amount": "9.50", "at": DAY}],
        pa.table({"id": [1], "owner": ["Ada"], "amount": [Decimal("9.50")], "at": [DAY]}),
        pd.DataFrame({"id": [1], "owner": ["Ada"], "amount": [Decimal("9.50")], "at": [DAY]}),
        pl.DataFrame({"id": [1], "owner": ["Ada"], "amount": [Decimal("9.50")], "at": [DAY]}),
    ],
)
def test_rows_in_any_form(db: Database, given: Any) -> None:
    assert insert(db, "t", given) == 1
    assert rows(db, "t") == [ROW]
    with db.transaction() as tx:
        assert tx.upsert("t", given) == 1
    with db.transaction() as tx:
        assert tx.delete("t", given) == 1
    assert rows(db, "t") == []


@pytest.mark.parametrize(
    "given", [[{"id": 7}], {7: {"id": 7}}.values(), pa.table({"id": [7]}), pl.DataFrame({"id": [7]})]
)
def test_defaults(db: Database, given: Any) -> None:
    insert(db, "t", given)
    assert rows(db, "t") == [(7, "nobody", Decimal("1.50"), None)]


def test_a_default_does_not_replace_null(db: Database) -> None:
    insert(db, "t", [{"id": 7, "amount": None}])
    assert rows(db, "t") == [(7, "nobody", None, None)]


def test_a_key_is_there_once(db: Database) -> None:
    insert(db, "t", [ROW])
    with pytest.raises(DuplicateKey, match="two rows with id = 1"):
        insert(db, "t", [(2, "Bob", 1, None), (1, "Bob", 1, None)])
    with pytest.raises(DuplicateKey):
        insert(db, "t", [(3, "Bob", 1, None), (3, "Bob", 1, None)])
    with pytest.raises(DuplicateKey):
        db.apply({"t": [((4, "Bob", 1, None), 2)]})
    with pytest.raises(DuplicateKey):
        db.apply({"t": [((1, "Bob", 1, None), 1)]})
    assert rows(db, "t") == [ROW]
    assert db.view("owners").rows() == [("Ada", 1)]


def test_weights_may_replace_a_row(db: Database) -> None:
    insert(db, "t", [ROW])
    changes = db.apply({"t": [((1, "Bob", 1, None), 1), (ROW, -1)]})
    assert sorted(changes["owners"]) == [(("Ada", 1), -1), (("Bob", 1), 1)]
    assert rows(db, "t") == [(1, "Bob", Decimal("1.00"), None)]


def test_upsert_takes_the_last(db: Database) -> None:
    with db.transaction() as tx:
        tx.upsert("pair", [(1, "x", 1), (2, "x", 1), (3, "y", 1)])
        tx.upsert("pair", [(4, "y", 1)])
    assert rows(db, "pair") == [(2, "x", 1), (4, "y", 1)]
    with db.transaction() as tx:
        assert tx.delete("pair", [(1, "x"), (9, "y")]) == 1
    assert rows(db, "pair") == [(4, "y", 1)]


def test_delete_by_key(db: Database) -> None:
    insert(db, "t", [(i, "Ada", i, None) for i in range(6)])
    with db.transaction() as tx:
        assert tx.delete("t", [0, 99]) == 1
        assert tx.delete("t", [(1,)]) == 1
        assert tx.delete("t", [{"id": 2}]) == 1
        assert tx.delete("t", [(3, "someone else", None, None)]) == 1
        assert tx.delete("t", [3]) == 0
        assert tx.delete("t", pa.table({"id": [4, 4]})) == 1
    assert [row[0] for row in rows(db, "t")] == [5]


def test_update(db: Database) -> None:
    insert(db, "t", [(i, "Ada", i, None) for i in range(3)])
    with db.transaction() as tx:
        assert tx.update("t", [{"id": 0, "owner": "Bob"}, {"id": 1, "amount": 7}, {"id": 9, "amount": 7}]) == 2
        assert tx.update("t", pa.table({"amount": [Decimal(8), Decimal(9)], "id": [1, 2]})) == 2
        assert tx.update("t", [{"id": 1}]) == 1
    assert [row[:3] for row in rows(db, "t")] == [(0, "Bob", 0), (1, "Ada", 8), (2, "Ada", 9)]
    with pytest.raises(NullNotAllowed), db.transaction() as tx:
        tx.update("t", [{"id": 1, "owner": None}])
    with pytest.raises(WrongArity, match="has no id"), db.transaction() as tx:
        tx.update("t", [{"owner": "x"}])
    with pytest.raises(WrongType), db.transaction() as tx:
        tx.update("t", [(1, "x")])


def test_a_bag_counts(db: Database) -> None:
    insert(db, "bag", [(1, "x"), (1, "x"), (None, None)])
    db.apply({"bag": [((1, "x"), 3)]})
    assert len(db.table("bag")) == 6
    with db.transaction() as tx:
        assert tx.delete("bag", [(1, "x"), (1, "x")]) == 2
    assert rows(db, "bag") == [(1, "x")] * 3 + [(None, None)]
    with pytest.raises(NegativeWeight, match=r"\(1, 'x'\)"):
        db.apply({"bag": [((1, "x"), -4)]})
    with pytest.raises(NegativeWeight), db.transaction() as tx:
        tx.delete("bag", [(2, "y")])
    assert len(db.table("bag")) == 4


def test_a_bag_may_owe_if_told(db: Database) -> None:
    db.apply({"bag": [((1, "x"), -2)]}, negative=True)
    assert dict(db.table("bag").contents()) == {(1, "x"): -2}
    assert db.table("bag").rows() == []
    db.apply({"bag": [((1, "x"), 3)]})
    assert db.table("bag").rows() == [(1, "x")]


def test_commands_of_a_bag_need_no_key(db: Database) -> None:
    for command in ("upsert", "update"):
        with pytest.raises(DefinitionError, match="no primary key"), db.transaction() as tx:
            getattr(tx, command)("bag", [{"a": 1}])


@pytest.mark.parametrize(
    ("table", "given", "error"),
    [
        ("t", [(None, "x", 1, None)], NullNotAllowed),
        ("t", [(1, None, 1, None)], NullNotAllowed),
        ("t", [{"id": 1, "owner": None}], NullNotAllowed),
        ("t", [(1, "x")], WrongArity),
        ("t", [("one", "x", 1, None)], WrongType),
        ("t", [{"id": 1, "ovner": "x"}], UnknownName),
        ("t", {"id": 1}, WrongType),
        ("t", 7, WrongType),
        ("tt", [(1,)], UnknownName),
        ("owners", [("Ada", 1)], DefinitionError),
    ],
)
def test_refused_rows(db: Database, table: str, given: Any, error: type[EverviewError]) -> None:
    insert(db, "t", [ROW])
    epoch, words = db.epoch, len(db._core.run.dictionary)
    for command in ("insert", "upsert"):
        with pytest.raises(error), db.transaction() as tx:  # noqa: PT012
            tx.insert("bag", [(1, "a new word")])
            getattr(tx, command)(table, given)
    assert (rows(db, "t"), rows(db, "bag"), db.epoch, len(db._core.run.dictionary)) == ([ROW], [], epoch, words)


def test_near_names(db: Database) -> None:
    with pytest.raises(UnknownName, match='did you mean "bag"'):
        db.apply({"bagg": []})
    with pytest.raises(UnknownName, match='did you mean "owners"'):
        db.view("owner")
    assert db.view("OWNERS").name == "owners"
    with pytest.raises(UnknownName, match='did you mean "owner"'):
        insert(db, "t", [{"id": 1, "ownr": "x"}])


def test_refused_tables() -> None:
    db = connect()
    db.create_table("t", "a BIGINT")
    with pytest.raises(DefinitionError, match="already"):
        db.create_table("T", "a BIGINT")
    with pytest.raises(UnknownName):
        db.create_table("u", "a BIGINT", key="b")
    with pytest.raises(SchemaError):
        db.create_table("u", "a BIGINT", key=("a", "a"))
    with pytest.raises(NullNotAllowed):
        db.create_table("u", "a BIGINT NOT NULL", defaults={"a": None})
    with pytest.raises(DefinitionError):
        db.create_table("", "a BIGINT")
    with pytest.raises(DefinitionError):
        db.create_table("\ud800", "a BIGINT")
    db.create_table("t", "a BIGINT", if_not_exists=True)
    assert db.tables() == ["t"]


HOSTILE = [
    '"; DROP TABLE t; --',
    "a\nb",
    "nul\0",
    "`",
    "'",
    "📦",
    "x" * 10_000,
    "<script>alert(1)</script>",
    "../..",
    " ",
]


def test_hostile_names(tmp_path: Any) -> None:
    with connect(tmp_path / "s") as db:
        for name in HOSTILE:
            db.create_table(name, f"`{name.replace('`', '``')}` STRING", key=name)
            insert(db, name, [(name,), ("'; --",)])
        shown = db._repr_html_()
        assert "<script>" not in shown
        assert "&lt;script&gt;" in shown
    with connect(tmp_path / "s") as db:
        assert db.tables() == HOSTILE
        assert all(len(db.table(name)) == 2 and db.table(name).schema.names == (name,) for name in HOSTILE)


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    with at_most(request.param):
        yield request.param


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("count", [14_000, 40_000])
@pytest.mark.usefixtures("threads")
def test_many_rows_at_once(db: Database, shuffled: bool, count: int) -> None:
    """A large Arrow table comes with its words in the order of the table's trace."""
    order = np.random.default_rng(1).permutation(count) if shuffled else np.arange(count)
    made = pa.table({"v": order * 3, "b": [f"{n % 7}" for n in order], "a": order // 7})
    db.create_view("of_pair", lambda of: of["pair"].aggregate(["b"], n="count", total=("sum", "v")))
    assert insert(db, "pair", made) == count
    expected = sorted(zip(*made.to_pydict().values(), strict=True))
    assert sorted(db.table("pair").rows()) == expected
    db.verify()
    weighted = made.append_column("_weight", pa.array([-1] * count))
    with pytest.raises(DuplicateKey, match="would hold two rows with a = "):
        insert(db, "pair", made.set_column(0, "v", pa.array(order * 5)))
    with pytest.raises(NegativeWeight):
        db.apply({"pair": weighted.set_column(0, "v", pa.array(order * 5))})
    with pytest.raises(NullNotAllowed, match='column "b"'):
        insert(db, "pair", made.set_column(1, "b", pa.nulls(count, pa.string())))
    assert sorted(db.table("pair").rows()) == expected
    db.apply({"pair": weighted})
    assert db.table("pair").rows() == db.view("of_pair").rows() == []


def test_a_key_that_is_not_first_is_kept_in_its_place_over_shards() -> None:
    db = connect(shards=3)
    db.create_table("t", "a BIGINT NOT NULL, k BIGINT NOT NULL, b BIGINT NOT NULL", key="k")
    db.apply({"t": [((10 + k, k, 20 + k), 1) for k in range(5)]})
    assert sorted(db.table("t").rows()) == [(10 + k, k, 20 + k) for k in range(5)]
