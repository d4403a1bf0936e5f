"""Random plans over sources in memory: right after every turn of the four phases, and told exactly what changed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from everview.oracle.plans import contents as contents_of
from everview.oracle.rows import Rows
from everview.plan.node import Plan
from everview.pull import Feed, Pipeline
from everview.sources.memory import Memory
from everview.sources.protocol import Request, Source
from runtimes.pull.drawn import KEYS, SCHEMAS, contents, plans
from runtimes.pull.phases import phases

Given = dict[str, list[tuple[Any, ...]]]
STARTS = st.fixed_dictionaries({name: contents(name) for name in SCHEMAS})


def expected(plan: Plan, sources: Mapping[str, Source]) -> dict[Any, int]:
    """What the oracle says, of all rows that the sources hold."""
    given = {name: list(Counter(source.pull(Request())).items()) for name, source in sources.items()}
    return contents_of(plan, given).weights


def held(feed: Feed) -> dict[Any, int]:
    """What a view holds, with values as the oracle has them."""
    return Rows.inside(feed.schema, list(feed.contents())).weights


def with_nan(rows: Given) -> Given:
    """The rows with NaN where they are infinite; not every store has one."""
    return {n: [tuple(math.nan if v == math.inf else v for v in row) for row in each] for n, each in rows.items()}


@settings(max_examples=100)
@given(plans(), STARTS.map(with_nan), STARTS.map(with_nan), st.integers(0, 2**32))
def test_with_nan(plan: Plan, start: Given, spare: Given, seed: int) -> None:
    _follow(plan, start, spare, seed)


@settings(max_examples=100)
@given(plans(), STARTS, STARTS, st.integers(0, 2**32))
def test_right_after_every_turn(plan: Plan, start: Given, spare: Given, seed: int) -> None:
    _follow(plan, start, spare, seed)


def _follow(plan: Plan, start: Given, spare: Given, seed: int) -> None:
    sources = {name: Memory(SCHEMAS[name], KEYS[name], start[name]) for name in SCHEMAS}
    pipeline = Pipeline(sources)
    feed = pipeline.attach(plan)
    told: Counter[Any] = Counter()

    def listen(changes: Any, epoch: int) -> None:
        for row, weight in changes:
            told[repr(row)] += weight

    feed.subscribe(listen, snapshot=True)
    assert held(feed) == expected(plan, sources)
    for turn in phases(start, spare, KEYS, seed):
        pipeline.apply(turn)
        assert held(feed) == expected(plan, sources)
        assert +told == Counter(map(repr, feed.rows()))
    again = pipeline.attach(plan)
    assert held(again) == held(feed)
