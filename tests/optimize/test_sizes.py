"""Joins in the order that the sizes of tables ask for: the same rows, and the same plan after a restart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everview as ev
from everview.database import holdings
from everview.optimize.keyed import order_along_keys
from everview.plan.nodes import Scan
from everview.types import Schema

TABLES = """
CREATE TABLE shop (s BIGINT PRIMARY KEY, town BIGINT);
CREATE TABLE item (i BIGINT PRIMARY KEY, kind BIGINT);
CREATE TABLE sale (n BIGINT PRIMARY KEY, s BIGINT, i BIGINT, price BIGINT);
"""
QUERY = (
    "SELECT shop.town, sum(price) AS p FROM shop, sale, item WHERE sale.s = shop.s AND sale.i = item.i GROUP BY town"
)


def of_rows(shops: int, items: int, sales: int) -> dict[str, pa.Table]:
    def numbered(name: str, count: int, **others: int) -> pa.Table:
        columns = {name: np.arange(count)} | {other: np.arange(count) % of for other, of in others.items()}
        return pa.table(columns)

    return {
        "shop": numbered("s", shops, town=3),
        "item": numbered("i", items, kind=2),
        "sale": numbered("n", sales, s=shops, i=items, price=7),
    }


def plan(db: ev.Database) -> str:
    return str(db._core.catalog.views["v"].optimized)


def filled(db: ev.Database, **rows: int) -> None:
    db.sql(TABLES)
    for name, table in of_rows(**rows).items():
        with db.transaction() as tx:
            tx.insert(name, table)


def test_a_reopened_state_has_the_plan_of_its_first_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holdings, "MANY_ROWS", 100)
    with ev.connect(tmp_path) as db:
        filled(db, shops=5, items=300, sales=1_000)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
        first, sizes, rows = plan(db), db._core.catalog.views["v"].sizes, db.view("v").rows()
        assert sizes == {"shop": 5, "sale": 1_000, "item": 300}
        assert first in str(db.sql(f"EXPLAIN {QUERY}"))
        db.sql("DELETE FROM sale WHERE n > 10")
        db.sql("ALTER TABLE shop ADD COLUMN name STRING")
        assert db._core.catalog.views["v"].sizes == sizes, "also when it is read again"
        first = plan(db)
        traces = db._core.run.program.fingerprint
    with ev.connect(tmp_path) as db:
        assert (plan(db), db._core.catalog.views["v"].sizes) == (first, sizes)
        assert db._core.run.program.fingerprint == traces
        db.verify()
        with db.transaction() as tx:
            tx.insert("sale", of_rows(5, 300, 1_000)["sale"].slice(11))
        assert sorted(db.view("v").rows()) == sorted(rows)


def test_few_rows_are_not_looked_at() -> None:
    db = ev.connect()
    filled(db, shops=2, items=3, sales=9)
    db.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    assert not db._core.catalog.views["v"].sizes


names = ["shop", "item", "sale"]


@given(st.tuples(*[st.integers(1, 10**6)] * 3), st.permutations(range(3)))
def test_the_order_with_the_least_rows(rows: tuple[int, int, int], places: list[int]) -> None:
    schemas = {
        "shop": Schema.parse("s BIGINT NOT NULL, town BIGINT"),
        "item": Schema.parse("i BIGINT NOT NULL, kind BIGINT"),
        "sale": Schema.parse("n BIGINT NOT NULL, s BIGINT, i BIGINT"),
    }
    values = {"shop": (0, 1), "item": (2, 3), "sale": (4, 0, 2)}
    keys = {"shop": ("s",), "item": ("i",), "sale": ("n",)}
    chosen = [names[place] for place in places]
    relations = [Scan(name, schemas[name]) for name in chosen]
    order = order_along_keys(relations, [values[name] for name in chosen], keys, [rows[place] for place in places])
    assert order is not None
    assert sorted(order) == [0, 1, 2]
    assert "sale" in {chosen[place] for place in order[:2]}, "shops and items have nothing in common"
