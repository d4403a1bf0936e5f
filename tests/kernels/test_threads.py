"""Work that is divided among threads: results in order, and of several exceptions the first part's."""

from __future__ import annotations

import threading
import time

import pytest

import everview as ev
from everview.kernels import threads as home
from everview.kernels.threads import PARTS, allowed, at_most, each, ranges


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_parts(threads: int) -> None:
    def slow_at_first(part: int) -> int:
        time.sleep(0.002 * (part == 0))
        return -part

    with at_most(threads):
        assert each(slow_at_first, range(20)) == [-part for part in range(20)]
        assert each(slow_at_first, []) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "everview work"]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_exception_of_the_first_part_is_raised(threads: int) -> None:
    def failing(part: int) -> int:
        time.sleep(0.002 * (part == 1))
        if part in (1, 2):
            raise ValueError(part)
        return part

    with at_most(threads), pytest.raises(ValueError, match="1"):
        each(failing, range(4))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_caller_does_what_is_beside_the_work(threads: int) -> None:
    callers: list[threading.Thread] = []
    with at_most(threads):
        assert each(lambda part: -part, range(3), lambda: callers.append(threading.current_thread())) == [0, -1, -2]
        assert each(lambda part: -part, [], lambda: callers.append(threading.current_thread())) == []
        with pytest.raises(ZeroDivisionError):
            each(lambda part: -part, range(3), lambda: callers.append(threading.Thread(name=str(1 // 0))))
    assert callers == [threading.current_thread()] * 2


def test_so_many_threads_as_are_allowed() -> None:
    seen, together = set[int](), threading.Barrier(3, timeout=10)

    def meet(_: int) -> None:
        seen.add(threading.get_ident())
        together.wait()

    with at_most(3):
        each(meet, range(3))
    assert len(seen) == 3
    with at_most(1):
        assert allowed() == 1
        with at_most(None):
            assert allowed() == 1
    assert allowed() >= 1


def test_a_database_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "_kept", [])
    ev.connect()
    assert allowed() >= 1
    ev.connect(threads=3)
    assert allowed() == 3
    ev.connect()
    assert allowed() == 3, "it holds for the process"
    with pytest.raises(ev.EverviewError, match="0 threads cannot work"):
        ev.connect(threads=0)
    assert allowed() == 3


@pytest.mark.parametrize("rows", [0, 1, 7, 1000])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_ranges_are_all_rows(rows: int, threads: int) -> None:
    with at_most(threads):
        found = ranges(rows, 10)
    assert [row for lo, hi in found for row in range(lo, hi)] == list(range(rows))
    assert len(found) <= (PARTS * threads if threads > 1 else 1)
    assert len(found) == 1 or all(hi - lo >= 10 for lo, hi in found)
