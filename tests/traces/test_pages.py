"""Memory of merges is used again only when nobody reads it, and what waits is bounded."""

from __future__ import annotations

import gc
import mmap
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest

import everview as ev
from everview.runtimes.compiled import FOR_TICKS
from everview.traces import pages
from everview.traces.spine import Spine
from traces.matrices import weights_of

ROWS, COLUMNS = 1 << 16, 4
SIZE = ROWS * COLUMNS * 8


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    gc.collect()  # what other tests have left would wait as soon as it goes
    pages.let_go()
    yield
    pages.let_go()


def test_a_region_is_used_again_once_no_array_shows_it() -> None:
    first = pages.untouched(ROWS, COLUMNS)
    address, part = first.ctypes.data, first[10:20]
    part[:] = 7
    del first
    gc.collect()
    assert not pages.waiting()
    other = pages.untouched(ROWS, COLUMNS)
    assert other.ctypes.data != address
    assert (part == 7).all()
    del part
    assert pages.waiting() >= SIZE
    assert pages.untouched(ROWS, COLUMNS).ctypes.data == address
    assert other.shape == (ROWS, COLUMNS)


def test_a_region_is_not_used_for_much_less() -> None:
    address = pages.untouched(ROWS, COLUMNS).ctypes.data
    assert pages.untouched(ROWS // 3, COLUMNS).ctypes.data != address


def test_few_bytes_and_very_many_do_not_wait() -> None:
    pages.untouched(10, COLUMNS)
    pages.untouched(pages.LARGE // 8 + 1, 1)
    assert not pages.waiting()


def test_what_waits_is_bounded() -> None:
    held = [pages.untouched(size // 8 // part, 1) for size in pages.COUNTS for part in (1, 2) for _ in range(20)]
    held.clear()
    assert 0 < pages.waiting() <= 1.2 * sum(size * count for size, count in pages.COUNTS.items())
    pages.lend_to_system()
    pages.let_go()
    assert not pages.waiting()


def test_a_short_result_keeps_its_rows() -> None:
    out = pages.untouched(ROWS, COLUMNS)
    out[:] = 5
    kept = pages.shortened(out, 1_000)
    assert kept.shape == (1_000, COLUMNS)
    assert (kept == 5).all()
    assert not out[-1].any() if pages.DROP is not None else (out[-1] == 5).all()


class Advised(mmap.mmap):
    """A region that calls a function when the system is advised about it."""

    called: Callable[[], None]

    def madvise(self, *_: int) -> None:
        self.called()


def _advised(monkeypatch: pytest.MonkeyPatch, called: Callable[[], None]) -> None:
    def mapped(size: int) -> mmap.mmap:
        region = Advised(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        region.called = called
        return region

    monkeypatch.setattr(pages, "_mapped", mapped)
    monkeypatch.setattr(pages, "DROP", 4)
    monkeypatch.setattr(pages, "LAZILY", 8)


def test_a_system_that_refuses_advice_keeps_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does whose memory is locked."""

    def refuse() -> None:
        raise OSError(22, "Invalid argument")

    _advised(monkeypatch, refuse)
    out = pages.untouched(pages.LARGE // 16, 1)
    out[:] = 5
    assert (pages.shortened(out, 1_000) == 5).all()
    del out
    pages.lend_to_system()
    assert pages.waiting() >= pages.LARGE // 2


def test_no_thread_takes_a_region_while_the_system_is_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[int] = []
    _advised(monkeypatch, lambda: waiting.append(pages.waiting()))
    pages.untouched(pages.LARGE // 16, 1)
    pages.lend_to_system()
    assert waiting == [0]
    assert pages.waiting()


def test_views_keep_what_they_show_while_large_appends_use_memory_again() -> None:
    """Every batch stays what it was for whoever has taken a view, however often regions are used again."""
    random, spine, sums, seen = np.random.default_rng(3), Spine(3), [], []
    for number in range(12):
        rows = np.unique(random.integers(0, 1 << 40, (pages.MUCH + 5_000, 2)), axis=0)
        batch = np.column_stack([rows, np.ones(len(rows), np.int64)])
        taken_back = sums[-1][::2] * [1, 1, -1] if number % 3 == 2 else batch[:0]
        for each in (batch, taken_back):
            sums.append(each)
            spine.append(np.ascontiguousarray(each))
        if number % 4 == 1:
            seen.append((spine.view, len(sums)))
    for view, count in seen:
        assert weights_of([view.consolidated()]) == weights_of(sums[:count])
    assert weights_of([spine.view.consolidated()]) == weights_of(sums)


def test_a_small_append_lets_go() -> None:
    pages.untouched(ROWS, COLUMNS)
    assert pages.waiting()
    spine = Spine(2)
    spine.append(np.column_stack([np.arange(600), np.ones(600, np.int64)]))
    assert not pages.waiting()


@pytest.mark.parametrize(("rows", "waits"), [(3_000, False), (pages.MUCH, True)])
def test_a_tick_lets_go_if_all_that_it_appends_is_little(
    rows: int, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not if only one of its traces gets little."""
    monkeypatch.setattr(FOR_TICKS, "over", True)  # whatever is compiled already
    db = ev.connect()
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT NOT NULL)")
    db.sql("CREATE MATERIALIZED VIEW few AS SELECT k, v FROM t WHERE k % 7 = 0")
    pages.untouched(ROWS, COLUMNS)
    keys = np.arange(rows)
    db.apply({"t": pa.table({"k": keys, "v": keys})})
    assert bool(pages.waiting()) == waits
