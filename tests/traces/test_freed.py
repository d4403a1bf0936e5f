"""What large epochs free goes back to the system: at once after the first of them, and when a small one follows."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import everview as ev
from everview.runtimes.compiled import FOR_TICKS
from everview.traces import freed


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often memory is given back, as the length of a list; with bounds that a test reaches soon."""
    given: list[int] = []
    monkeypatch.setattr(freed, "MUCH", 40_000)
    monkeypatch.setattr(freed, "LARGE_EPOCHS", freed.LargeEpochs(lambda: given.append(1)))
    return given


def _load(db: ev.Database, first: int, rows: int) -> None:
    keys = np.arange(first, first + rows)
    db.apply({"t": pa.table({"k": keys, "v": keys})})


@pytest.mark.parametrize("compiled", [True, False])
def test_a_load_a_series_of_loads_and_small_ticks(
    compiled: bool, given: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FOR_TICKS, "over", compiled)
    monkeypatch.setattr(FOR_TICKS, "is_over", lambda: compiled)
    db = ev.connect()
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT NOT NULL)")
    _load(db, 0, 50_000)
    assert len(given) == 1
    _load(db, 50_000, 50_000)
    _load(db, 100_000, 50_000)
    assert len(given) == 1
    for number in range(3):
        _load(db, 200_000 + number * 3_000, 3_000)
        assert len(given) == 2
    _load(db, 300_000, 50_000)
    assert len(given) == 3


def test_a_new_view_over_many_rows(given: list[int]) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT NOT NULL)")
    for first in range(0, 60_000, 15_000):
        _load(db, first, 15_000)
    assert not given
    db.sql("CREATE MATERIALIZED VIEW by_v AS SELECT v, k FROM t")
    db.sql("CREATE MATERIALIZED VIEW pairs AS SELECT a.k, b.v FROM t a JOIN t b ON a.v = b.k")
    assert len(given) <= 1


def test_an_epoch_that_is_abandoned_counts_for_nothing(given: list[int]) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT NOT NULL)")
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT sum(v) AS s FROM t")
    with pytest.raises(ev.EverviewError):
        _load(db, 2**62, 50_000)
    assert not given


def test_the_system_takes_what_is_free() -> None:
    blocks = [b"x" * 100_000 for _ in range(1_000)]
    last = blocks.pop()  # behind it nothing is free, so the allocator keeps what is before it
    blocks.clear()
    before = _resident()
    freed.give_back()
    assert before - _resident() > 50_000_000 or freed._trim() is None
    assert len(last) == 100_000


def _resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
