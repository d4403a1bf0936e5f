"""Every aggregate, over streams of changes, however it is run, is what plain Python says of the rows there are."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.circuit import Circuit, incrementalize, lifted
from everview.runtimes.embedded import Embedded
from operators.aggregate.meanings import CALLS, SCHEMA, Group, Row, close, expected

Tick = list[tuple[Row, int]]

DOMAINS: list[list[Any]] = [
    ["a", "b", None],
    [0, 1, 2, -3, 2**53 + 1, None],
    [0.0, -0.0, 0.1, 1e300, -2.5, 5e-324, 1e16, math.nan, math.inf, -math.inf, None],
    [Decimal("0.0000"), Decimal("1.5000"), Decimal("-98765432109876543210.1234"), Decimal("7.0001"), None],
    [Decimal("0.00"), Decimal("1.50"), Decimal("-2.25")],
    ["", "a", "ab", "ä", "\U0001f600", "\uffff", None],
    [False, True, None],
    [0, 1, 2],
    [0, 5, -7, None],
]
WEIGHTS = [1, 1, 1, 2, 3, -1, -1, -2]


def ticks_of(seed: int, size: int, count: int) -> list[Tick]:
    """Changes of few different rows: groups fill and empty, weights cancel, deletes find nothing."""
    chance = random.Random(seed)
    few = [chance.sample(domain, k=min(3, len(domain))) for domain in DOMAINS]
    rows = [tuple(map(chance.choice, few)) for _ in range(chance.randint(2, 12))]
    ticks: list[Tick] = [[] for _ in range(count)]
    for _ in range(size):
        chance.choice(ticks).append((chance.choice(rows), chance.choice(WEIGHTS)))
    return ticks


lives = st.builds(ticks_of, st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 5))


def query(by: Sequence[str], names: Sequence[str]) -> Circuit:
    circuit = Circuit()
    rows = circuit.source("t", SCHEMA)
    rows.aggregate(by, **{name: CALLS[name][0] for name in names}).sink("found")
    return circuit


def check(run: Embedded, held: Group, by: Sequence[str], names: Sequence[str]) -> None:
    contents = list(run.view("found").contents())
    assert all(w == 1 for _, w in contents)
    found = {row[: len(by)]: row[len(by) :] for row, _ in contents}
    wanted = expected(held, by, names)
    assert found.keys() == wanted.keys()
    for key, row in found.items():
        wrong = {n: (a, b) for n, a, b in zip(names, row, wanted[key], strict=True) if not close(a, b)}
        assert not wrong, f"in group {key}, found and wanted: {wrong}"


def live(make: Callable[[], Embedded], ticks: list[Tick], by: Sequence[str], names: Sequence[str]) -> Embedded:
    held: Group = Counter()
    run = make()
    for tick in ticks:
        run.tick({"t": tick})
        for row, w in tick:
            held[plain(row)] += w
        check(run, held, by, names)
    return run


def plain(row: Row) -> Row:
    """Rows as they are told apart: one NaN, one zero."""
    return tuple(0.0 if v == 0 and isinstance(v, float) else NAN if v != v else v for v in row)


NAN = math.nan

WAYS: dict[str, Callable[[Circuit], Embedded]] = {
    "incremental": lambda circuit: Embedded(incrementalize(circuit)),
    "recomputed": lambda circuit: Embedded(lifted(circuit)),
    "three shards": lambda circuit: Embedded(incrementalize(circuit), shards=3, check_functions=True),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("by", [["g"], ["g", "at"], []], ids=str)
@settings(max_examples=12)
@given(ticks=lives)
def test_every_aggregate_is_what_it_means(way: str, by: list[str], ticks: list[Tick]) -> None:
    circuit = query(by, list(CALLS))
    live(lambda: WAYS[way](circuit), ticks, by, list(CALLS))


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=4)
@given(ticks=lives)
def test_every_aggregate_stands_alone(name: str, ticks: list[Tick]) -> None:
    circuit = query(["g"], [name])
    live(lambda: Embedded(incrementalize(circuit)), ticks, ["g"], [name])


@settings(max_examples=15)
@given(ticks=lives)
def test_what_is_undone_leaves_nothing(ticks: list[Tick]) -> None:
    """After the opposite of every tick all traces are empty, so all results can only be what they were."""
    run = Embedded(incrementalize(query(["g"], list(CALLS))))
    for tick in (*ticks, *[[(row, -w) for row, w in tick] for tick in ticks]):
        run.tick({"t": tick})
    assert run.view("found").rows() == []
    assert all(len(trace.before.consolidated()) == 0 for trace, _, _ in run.state)


def test_state_is_found_again(tmp_path: Path) -> None:
    names, ticks = list(CALLS), ticks_of(7, 80, 4)
    held: Group = Counter()
    for tick in ticks:
        with Embedded(incrementalize(query(["g"], names)), tmp_path / "state", shards=3) as run:
            run.tick({"t": tick})
            run.vacuum()
            for row, w in tick:
                held[plain(row)] += w
            check(run, held, ["g"], names)


def test_many_groups_at_once_are_evaluated_in_blocks() -> None:
    circuit = Circuit()
    rows = circuit.source("t", "g BIGINT NOT NULL, x BIGINT NOT NULL")
    rows.aggregate(["g"], n="count", med=("median", "x"), xs=("array", "x"), v=("variance pop", "x")).sink("found")
    run = Embedded(incrementalize(circuit))
    run.tick({"t": [((g, g + k), 1) for g in range(9_000) for k in (0, 2)]})
    assert run.view("found").rows() == [(g, 2, g + 1.0, [g, g + 2], 1.0) for g in range(9_000)]
    run.tick({"t": [((g, g), -1) for g in range(9_000)]})
    assert run.view("found").rows() == [(g, 1, g + 2.0, [g + 2], 0.0) for g in range(9_000)]
