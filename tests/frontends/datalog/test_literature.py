"""Programs of the literature under inserts and deletes: after every tick what they mean, and what the oracle says."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from everview import connect
from frontends.datalog.literature import PROGRAMS, Program, Row

Tick = dict[str, list[tuple[Row, int]]]


def ticks(program: Program, rng: random.Random, count: int, n: int) -> Iterator[tuple[dict[str, Counter[Row]], Tick]]:
    """Changes, and what the tables hold after them: rows come, come again, go, or come and go at once."""
    held: dict[str, Counter[Row]] = {name: Counter() for name in program.draw}
    for _ in range(count):
        changes: Tick = {name: [] for name in held}
        for _ in range(rng.choice([0, 1, 1, 2, 3, 6, 12])):
            name = rng.choice(sorted(held))
            there = sorted(held[name])
            gone = bool(there) and rng.random() < 0.4
            row = rng.choice(there) if gone else program.draw[name](rng, n)
            changes[name].append((row, -1 if gone else 1))
            held[name][row] += -1 if gone else 1
            held[name] += Counter()
        if rng.random() < 0.2:
            name = rng.choice(sorted(held))
            row = program.draw[name](rng, n)
            changes[name] += [(row, 1), (row, -1)]
        yield held, changes


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_a_program_means_what_it_says_after_every_tick(program: Program, seed: int) -> None:
    rng = random.Random(f"{program.name} {seed}")
    db = connect(shards=rng.choice([1, 3]))
    db.datalog(program.text)
    for held, changes in ticks(program, rng, count=10, n=rng.randrange(3, 7)):
        db.apply(changes)
        for view, wanted in program.meaning({name: set(rows) for name, rows in held.items()}).items():
            assert Counter(db.view(view).rows()) == Counter(wanted), (view, held)
    db.verify().raise_if_different()


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_the_oracle_agrees_after_every_tick(program: Program) -> None:
    rng = random.Random(program.name)
    db = connect()
    db.datalog(program.text)
    for _, changes in ticks(program, rng, count=6, n=4):
        db.apply(changes)
        db.verify().raise_if_different()


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_changes_add_up_to_contents(program: Program) -> None:
    rng = random.Random(f"{program.name} changes")
    db = connect()
    db.datalog(program.text)
    seen: dict[str, Counter[Row]] = {view: Counter(db.view(view).rows()) for view in db.views()}
    for _, changes in ticks(program, rng, count=6, n=5):
        for view, change in db.apply(changes).items():
            for row, weight in change:
                seen[view][row] += weight
    for view, rows in seen.items():
        assert rows == Counter(db.view(view).rows())


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_defining_it_later_gives_the_same(program: Program) -> None:
    """Rules over tables that are full already."""
    rng = random.Random(f"{program.name} later")
    first, later = connect(), connect()
    first.datalog(program.text)
    declared = "\n".join(line for line in program.text.splitlines() if line.startswith((".decl", ".input")))
    for view in set(first.views()) - set(first.tables()):
        declared = "\n".join(line for line in declared.splitlines() if not line.startswith(f".decl {view}("))
    later.datalog(declared)
    for _, changes in ticks(program, rng, count=4, n=5):
        first.apply(changes)
        later.apply(changes)
    later.datalog("\n".join(line for line in program.text.splitlines() if not line.startswith(".input")))
    for view in first.views():
        assert sorted(first.view(view).rows()) == sorted(later.view(view).rows())
