"""Recursive programs under inserts and deletes, against their meaning in plain Python, after every tick."""

from __future__ import annotations

import random
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from everview.circuit import incrementalize, lifted
from everview.operators import extending, multijoin
from everview.runtimes.embedded import Embedded
from everview.zset import ZSet
from recursion.programs import PROGRAMS, Facts, Program


def changes(program: Program, rng: random.Random, ticks: int, n: int) -> Iterator[tuple[Facts, dict[str, list]]]:
    """Facts after each tick, and the changes that lead there; a tick may be empty, or undo itself."""
    facts: Facts = {name: set() for name in program.draw}
    for _ in range(ticks):
        delta: dict[str, list] = {name: [] for name in facts}
        for _ in range(rng.choice([0, 1, 1, 2, 3, 6])):
            name = rng.choice(sorted(facts))
            row = rng.choice(sorted(facts[name])) if facts[name] and rng.random() < 0.4 else program.draw[name](rng, n)
            present = row in facts[name]
            facts[name] ^= {row}
            delta[name].append((row, -1 if present else 1))
        yield facts, delta


MULTIWAY = [p for p in PROGRAMS if p.name in ("3-truss", "points to, multiway")]


@pytest.mark.parametrize("program", MULTIWAY, ids=lambda p: p.name)
@pytest.mark.parametrize("seed", range(4))
def test_multiway_joins_in_slices(program: Program, seed: int) -> None:
    """Inside a scope, too, a few prefixes at a time, and every seed dealt in pieces."""
    with patch.multiple(extending, SLICE=3, MOST=4, HEAVY=2), patch.multiple(multijoin, MOST=4, HEAVY=1, FEW=2):
        test_views_mean_what_they_say(program, shards=3, seed=seed)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_views_mean_what_they_say(program: Program, shards: int, seed: int) -> None:
    rng = random.Random(f"{program.name} {seed}")
    run = Embedded(incrementalize(program.build()), shards=shards)
    for facts, delta in changes(program, rng, ticks=12, n=rng.randrange(3, 7)):
        run.tick(delta)
        for view, rows in program.meaning(facts).items():
            assert run.view(view).contents().to_zset() == ZSet.of([(row, 1) for row in rows]), (facts, delta)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_changes_and_recomputing_agree(program: Program) -> None:
    rng = random.Random(program.name)
    run, recomputed = Embedded(incrementalize(program.build())), Embedded(lifted(program.build()))
    for _, delta in changes(program, rng, ticks=8, n=5):
        out, want = run.tick(delta), recomputed.tick(delta)
        for view in out:
            assert out[view].to_zset() == want[view].to_zset()
