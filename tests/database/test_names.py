"""What ``dir`` shows of a database and of what it hands out is what the reference page tells of."""

from __future__ import annotations

import pytest

import everview as ev
from documented import documented, undocumented

PAGE = "database.md"


@pytest.fixture
def shop() -> ev.Database:
    db = ev.connect()
    db.sql("CREATE TABLE item (id BIGINT PRIMARY KEY, n BIGINT); CREATE MATERIALIZED VIEW total AS SELECT n FROM item")
    return db


def test_a_database_its_tables_and_views(shop: ev.Database) -> None:
    named = shop.edn("{:find [?n] :where [[?i :item/n ?n]]}", "named")
    for thing in (shop, shop.table("item"), shop.view("total"), named):
        assert undocumented(thing, PAGE) == []


def test_a_transaction(shop: ev.Database) -> None:
    with shop.transaction() as tx:
        assert undocumented(tx, PAGE) == []


def test_what_is_not_documented_would_be_seen(shop: ev.Database) -> None:
    assert "_core" not in documented(PAGE)
    assert undocumented(shop._core, PAGE)
