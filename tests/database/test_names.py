"""What ``dir`` shows of a database and of what it hands out is what the reference page tells of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import everview as ev

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "database.md"


def documented(page: Path) -> set[str]:
    """The names that stand as code in a page."""
    text = page.read_text()
    code = [*re.findall(r"^```.*?^```", text, re.DOTALL | re.MULTILINE)]
    code += re.findall(r"`[^`\n]+`", text)
    return {name for part in code for name in re.findall(r"\w+", part)}


def undocumented(thing: Any, page: Path) -> list[str]:
    return sorted({name for name in dir(thing) if not name.startswith("_")} - documented(page))


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
