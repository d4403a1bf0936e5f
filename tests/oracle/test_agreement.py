"""Incremental equals recompute: random queries and changes, run in every way, against the oracle."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.circuit import incrementalize, lifted
from everview.oracle import evaluate
from everview.runtimes.embedded import Embedded
from everview.zset import ZSet
from oracle.cases import Case
from oracle.chains import EXAMPLES, chain
from oracle.ways import check
from strategies import cases


@given(case=cases())
def test_every_tick_leaves_what_the_oracle_says(case: Case) -> None:
    check(case)


@pytest.mark.slow
@given(case=cases(max_steps=12, max_ticks=10))
def test_every_tick_of_a_longer_life_leaves_what_the_oracle_says(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("first", EXAMPLES)
def test_every_operator_after_every_other(first: str) -> None:
    """By each other on three shards: what an operator leaves must be where and how the next one needs it."""
    for second in EXAMPLES:
        check(chain(first, second), "3 shards")


THIRD = ("distinct", "aggregate by one", "join", "antijoin", "top by one")


@pytest.mark.slow
@pytest.mark.parametrize("first", EXAMPLES)
def test_every_operator_after_every_two_others(first: str) -> None:
    """Two of `THIRD` after each pair, by turns: each of them follows each second one, after several first ones."""
    turn = list(EXAMPLES).index(first)
    for number, second in enumerate(EXAMPLES):
        for third in (THIRD[(turn + number) % 5], THIRD[(turn + number + 2) % 5]):
            check(chain(first, second, third), "3 shards")


@given(case=cases(max_ticks=4), seed=st.integers(0, 2**16))
def test_where_ticks_begin_and_end_does_not_show(case: Case, seed: int) -> None:
    entries = [(name, entry) for tick in case.ticks for name, rows in tick.items() for entry in rows]
    apart = [{name: [entry]} for name, entry in entries]
    shuffled = random.Random(seed).sample(apart, len(apart))
    expected = evaluate(case.build(), case.sums()[-1])
    for ticks in (apart, shuffled, [together(entries)]):
        run = Embedded(incrementalize(case.build()))
        for tick in ticks:
            run.tick(tick)
        assert contents(run) == expected


def together(entries: list[tuple[str, Any]]) -> dict[str, list[Any]]:
    tick: dict[str, list[Any]] = {}
    for name, entry in entries:
        tick.setdefault(name, []).append(entry)
    return tick


def contents(run: Embedded) -> dict[str, ZSet]:
    return {name: view.contents().to_zset() for name, view in run.views.items()}


@given(case=cases())
def test_what_is_undone_leaves_nothing(case: Case) -> None:
    """The opposite of every tick, in any order: all views, and all traces, come back to what they were."""
    run = Embedded(incrementalize(case.build()))
    empty = contents(run)
    opposite = [{name: [(row, -w) for row, w in rows] for name, rows in tick.items()} for tick in case.ticks]
    for tick in (*case.ticks, *opposite):
        run.tick(tick)
    assert contents(run) == empty
    for shards in run.state.traces.values():
        assert all(len(trace.before.consolidated()) == 0 for trace in shards)


@given(case=cases())
def test_incrementalize_is_idempotent(case: Case) -> None:
    once = incrementalize(case.build())
    assert str(incrementalize(once)) == str(once)
    assert incrementalize(once).fingerprint(len(once) - 1) == once.fingerprint(len(once) - 1)


@given(case=cases())
def test_the_passes_leave_the_query_as_it_was(case: Case) -> None:
    query = case.build()
    before = str(query)
    incrementalize(query)
    lifted(query)
    Embedded(incrementalize(query), shards=3)
    assert str(query) == before


@given(case=cases(max_ticks=1))
def test_a_case_survives_its_json(case: Case) -> None:
    again = Case.from_json(case.to_json())
    assert str(again.build()) == str(case.build())
    assert again.sums() == case.sums()
