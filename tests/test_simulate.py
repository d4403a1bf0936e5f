"""The model of pipelines past one machine: right where it can be measured, and its page has its figures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PAGE = Path(__file__).parents[1] / "docs" / "design" / "scale.md"


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield __import__("simulate")
    del sys.modules["simulate"]


def test_the_model_is_right_where_it_can_be_measured(simulate: ModuleType) -> None:
    for what, model, measured in simulate.stored_runs():
        assert 0.7 < model / measured < 1.4, what
    model, measured = simulate.measured_spine(epochs=120)
    assert 0.7 < model / measured < 1.4
    assert simulate.measured_store(shards=32).entry == pytest.approx(simulate.Measured().entry, rel=0.2)


def test_the_page_has_what_the_model_says(simulate: ModuleType) -> None:
    page = PAGE.read_text()
    for row in simulate.merging():
        assert row in page
    for state, executors in ((1e12, 10), (10e12, 100), (100e12, 1000)):
        for row in list(simulate.table((state,), (executors,), (1_000, 1_000_000, 100_000_000)))[2:]:
            cells = row.split(" | ")
            assert " | ".join(cells[:6] + cells[7:]) in page  # all but the store's part
