"""Work in an order on threads: nothing begins too early, and nothing is at work when it is settled."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.runtimes.beside import WorkBeside

Order = list[list[int]]  # by piece, those that begin after it


@st.composite
def orders(draw: st.DrawFn) -> Order:
    count = draw(st.integers(0, 12))
    return [
        sorted(draw(st.sets(st.integers(piece + 1, count - 1)))) if piece < count - 1 else [] for piece in range(count)
    ]


def waits_for(order: Order) -> list[int]:
    return [sum(piece in after for after in order) for piece in range(len(order))]


some = st.sets(st.integers(0, 11), max_size=3)


@given(orders(), some, some, st.integers(1, 4))
def test_every_piece_comes_once_and_after_those_it_waits_for(
    order: Order, failing: set[int], callers: set[int], threads: int
) -> None:
    done: list[int] = []

    def work(thread: int, piece: int) -> bool:
        assert not thread or piece not in callers
        assert all(piece not in order[other] or other in done for other in range(len(order)))
        if piece in failing and thread:
            raise ValueError(piece)
        if piece not in failing:
            done.append(piece)
        return piece not in failing

    WorkBeside(order, waits_for(order), callers).run(threads, work)
    lost = set(failing)
    for piece, after in enumerate(order):
        lost |= set(after) if piece in lost else set()
    assert sorted(done) == [piece for piece in range(len(order)) if piece not in lost]
    assert not [thread for thread in threading.enumerate() if thread.name == "everview work"]


def test_an_exception_of_the_caller_waits_for_what_has_begun() -> None:
    begun, ended = threading.Event(), list[int]()

    def work(thread: int, piece: int) -> bool:
        if thread == 0:
            begun.wait(10)
            raise KeyboardInterrupt
        begun.set()
        time.sleep(0.01)
        ended.append(piece)
        return True

    beside = WorkBeside([(), (), ()], [0, 0, 0])
    with pytest.raises(KeyboardInterrupt):
        beside.run(2, work)
    assert len(ended) == 1, "what had begun has ended, and nothing has begun since"
    beside.settle()
