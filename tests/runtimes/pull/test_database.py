"""Sources that a database does not keep: queries that pull, and transactions over them and tables together."""

from __future__ import annotations

import sqlite3
from contextlib import nullcontext
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from everview import Database, connect
from everview.errors import DefinitionError, DuplicateKey, EverviewError, UnknownName, WeightOverflow, WrongType
from everview.frontends.fluent import agg
from everview.sources.memory import Memory
from everview.sources.protocol import Update
from everview.sources.sqlite import SQLite


@pytest.fixture
def db() -> Any:
    made = connect()
    made.sql("CREATE TABLE country (code STRING PRIMARY KEY, name STRING)")
    made.sql("CREATE MATERIALIZED VIEW countries AS SELECT COUNT(*) AS n, SUM(LENGTH(code)) AS letters FROM country")
    shop = sqlite3.connect(":memory:")
    shop.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, country TEXT)")
    shop.executemany("INSERT INTO account VALUES (?, ?, ?)", [(1, "Ada", "UK"), (2, "Bob", "DE")])
    shop.commit()
    made.attach("account", SQLite(shop, "account"), keep=False)
    made.attach("payment", Memory("id BIGINT, account BIGINT, amount BIGINT", "id", [(1, 1, 5)]), keep=False)
    made.shop = shop
    return made


def paid(db: Any) -> Any:
    query = db.query("payment").join(db.query("account"), on=("account", "id"), as_="by")
    return query.group_by("by.owner").select("by.owner", agg.sum("amount", "total")).order_by("by.owner")


def test_a_query_runs_and_lives(db: Any) -> None:
    assert paid(db).run() == [{"by": {"owner": "Ada"}, "total": 5}]
    view, told = paid(db).materialize(), list[Any]()
    view.subscribe(lambda changes, epoch: told.append(epoch))
    with db.transaction() as tx:
        tx.insert("country", [("UK", "Kingdom")])
        tx.upsert("account", [(2, "Bea", "DE")])
        tx.insert("payment", [(2, 2, 7), (3, 2, 1)])
    assert len(told) == 1
    assert paid(db).run() == [{"by": {"owner": "Ada"}, "total": 5}, {"by": {"owner": "Bea"}, "total": 8}]
    assert db.view("countries").rows() == [(1, 2)]
    assert db.shop.execute("SELECT owner FROM account WHERE id = 2").fetchone() == ("Bea",)


COLUMNS = "id BIGINT, name STRING, n BIGINT"
WEIGHTED = pa.table({"id": [2, 7], "name": ["b", "c"], "n": [5, 6], "_weight": [-1, 1]})
FORMS = [
    ("insert", WEIGHTED, 0, [(1, "a", 4), (7, "c", 6)]),
    ("insert", [{"id": 2, "name": "b", "n": 5, "_weight": -1}, {"id": 7}], 0, [(1, "a", 4), (7, None, None)]),
    ("insert", WEIGHTED.set_column(3, "_weight", pa.array([2, 1])), DuplicateKey, None),
    ("upsert", WEIGHTED, WrongType, None),
    ("upsert", pd.DataFrame({"id": [1], "name": ["x"]}).set_index("id"), 1, [(1, "x", None), (2, "b", 5)]),
    ("update", [(1, "x", None), {"id": 2, "n": 9}, {"id": 3, "n": 9}], 2, [(1, "x", None), (2, "b", 9)]),
    ("update", pl.DataFrame({"id": [2, 2, 3], "n": [8, 9, 9]}), 1, [(1, "a", 4), (2, "b", 9)]),
    ("update", pd.DataFrame(), 0, [(1, "a", 4), (2, "b", 5)]),
    ("update", [(1, "x")], WrongType, None),
    ("update", [{"id": 1, "nn": 3}], UnknownName, None),
    ("delete", {2, 3}, 1, [(1, "a", 4)]),
    ("delete", pa.table({"id": [2, 3]}), 1, [(1, "a", 4)]),
    ("delete", pd.DataFrame({"n": [0], "id": [2]}), 1, [(1, "a", 4)]),
    ("delete", pd.DataFrame(), 0, [(1, "a", 4), (2, "b", 5)]),
    ("delete", [{"id": 1, "nn": 3}], UnknownName, None),
]


@pytest.fixture(scope="module")
def kinds() -> list[Database]:
    """Two databases with the same table t: one has it, the other pulls from it."""
    kept, pulled = connect(), connect()
    kept.create_table("t", COLUMNS, key="id")
    pulled.attach("t", Memory(COLUMNS, "id"), keep=False)
    return [kept, pulled]


@pytest.mark.parametrize(("act", "rows", "count", "then"), FORMS, ids=range(len(FORMS)))
def test_rows_in_every_form(kinds: list[Database], act: str, rows: Any, count: Any, then: Any) -> None:
    for db in kinds:
        with db.transaction() as tx:
            tx.delete("t", [1, 2, 7])
            tx.insert("t", [(1, "a", 4), (2, "b", 5)])
        with pytest.raises(count) if then is None else nullcontext(), db.transaction() as tx:
            assert getattr(tx, act)("t", rows) == count
        now = [tuple(row.values()) for row in db.query("t").order_by("id").run()]
        assert now == (then or [(1, "a", 4), (2, "b", 5)])


def test_weights_and_keys(db: Any) -> None:
    out = db.apply({"payment": [((1, 1, 5), -1), ((1, 2, 5), 1)], "country": [(("FR", "France"), 1)]})
    assert [row for row, weight in out["countries"] if weight > 0] == [(1, 2)]
    assert paid(db).run() == [{"by": {"owner": "Bob"}, "total": 5}]
    with db.transaction() as tx:
        assert tx.delete("payment", [1, 9]) == 1
    assert paid(db).run() == []


def test_a_transaction_that_fails_leaves_no_trace(db: Any) -> None:
    view, told = paid(db).materialize(), list[Any]()
    view.subscribe(lambda changes, epoch: told.append(epoch))
    with pytest.raises(DuplicateKey), db.transaction() as tx:  # noqa: PT012
        tx.insert("payment", [(2, 2, 7)])
        tx.insert("country", [("UK", "Kingdom")])
        tx.insert("account", [(1, "Eve", None)])
    with pytest.raises(ZeroDivisionError), db.transaction() as tx:  # noqa: PT012
        tx.upsert("account", [(1, "Eve", None)])
        raise ZeroDivisionError
    with pytest.raises(DuplicateKey):  # the source refuses it, when all else has been made ready
        db.apply({"payment": [((1, 1, 6), 1)], "country": [(("UK", "Kingdom"), 1)]})
    assert told == []
    assert db.view("countries").rows() == [(0, None)]
    assert paid(db).run() == [{"by": {"owner": "Ada"}, "total": 5}]
    assert db.shop.execute("SELECT COUNT(*), MIN(owner) FROM account").fetchone() == (2, "Ada")
    with db.transaction() as tx:
        tx.insert("payment", [(2, 2, 7)])
    assert len(told) == 1


def test_a_tick_that_is_refused_undoes_the_sources(db: Any) -> None:
    db.sql("CREATE TABLE big (n BIGINT NOT NULL)")
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT SUM(n) AS n FROM big")
    most = 2**63 - 1
    with pytest.raises(WeightOverflow), db.transaction() as tx:  # noqa: PT012
        tx.insert("payment", [(2, 2, 7)])
        tx.insert("big", [(most,), (most,)])
    assert db.query("payment").run() == [{"id": 1, "account": 1, "amount": 5}]
    assert db.view("total").rows() == [(None,)]


def test_an_inner_transaction_that_fails(db: Any) -> None:
    with db.transaction() as tx:
        tx.insert("payment", [(2, 2, 7)])
        with pytest.raises(ZeroDivisionError), db.transaction() as inner:  # noqa: PT012
            inner.insert("payment", [(3, 2, 7)])
            inner.insert("country", [("UK", "Kingdom")])
            raise ZeroDivisionError
    assert [row["id"] for row in db.query("payment").order_by("id").run()] == [1, 2]
    assert db.view("countries").rows() == [(0, None)]


def test_sql_begin_and_rollback(db: Any) -> None:
    db.sql("BEGIN")
    with db.transaction() as tx:
        tx.insert("payment", [(2, 2, 7)])
    db.sql("ROLLBACK")
    assert len(db.query("payment").run()) == 1
    db.sql("BEGIN")
    with db.transaction() as tx:
        tx.insert("payment", [(2, 2, 7)])
    db.sql("COMMIT")
    assert len(db.query("payment").run()) == 2


def test_others_changes_are_polled(db: Any) -> None:
    view, told = paid(db).materialize(), list[Any]()
    view.subscribe(lambda changes, epoch: told.append(epoch))
    db.shop.execute("UPDATE account SET owner = 'Zoe' WHERE id = 1")
    db.shop.commit()
    db.sources["payment"].write(Update({(2, 2, 3): 1}))
    db.poll()
    db.poll()
    assert len(told) == 1
    assert paid(db).run() == [{"by": {"owner": "Bob"}, "total": 3}, {"by": {"owner": "Zoe"}, "total": 5}]


def test_a_source_that_is_read_is_not_detached(db: Any) -> None:
    view = paid(db).materialize()
    with pytest.raises(EverviewError, match="read by"):
        db._core.attached.detach("payment")
    view.close()
    db._core.attached.detach("payment")
    with pytest.raises(EverviewError):
        db.query("payment")


def test_what_cannot_be_pulled_says_so() -> None:
    from everview.plan.nodes import Scan, Window
    from everview.pull import Pipeline
    from everview.scalars.expressions import WindowCall
    from everview.types import BIGINT

    source = Memory("id BIGINT", "id")
    scan = Scan("t", source.schema)
    number = WindowCall("row_number", (), (), ((scan.column(0), "asc"),), None, BIGINT, False)
    pipeline = Pipeline({"t": source})
    with pytest.raises(DefinitionError, match="keep=True"):
        pipeline.attach(Window(scan, (number,), ("n",)))
    assert pipeline.feeds == ()
