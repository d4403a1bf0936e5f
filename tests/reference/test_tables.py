"""Pages of the reference hold what the registries say."""

from __future__ import annotations

from pathlib import Path

import pytest

from reference.tables import TABLE, TABLES, anew, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_has_the_tables_of_the_registry(page: Path) -> None:
    assert page.read_text() == anew(page.read_text()), "run tests/reference/tables.py"


def test_every_table_stands_in_a_page() -> None:
    assert {name for page in pages() for name, *_ in TABLE.findall(page.read_text())} == set(TABLES)
