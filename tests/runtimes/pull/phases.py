"""A stream of changes in four phases: everything goes, comes back, is edited at random, and edited back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from everview.sources.protocol import Update

Row = tuple[Any, ...]
Held = dict[str, list[Row]]
Turn = dict[str, Update]


def phases(
    start: Mapping[str, list[Row]], spare: Mapping[str, list[Row]], keys: Mapping[str, tuple[str, ...]], seed: int
) -> Iterator[Turn]:
    """Turns that lead from ``start`` to nothing, back, elsewhere with rows of ``spare``, and back to ``start``."""
    random = Random(seed)
    removals = [(name, row) for name, rows in start.items() for row in rows]
    random.shuffle(removals)
    yield from _turns(random, [(name, row, -1) for name, row in removals])
    random.shuffle(removals)
    yield from _turns(random, [(name, row, +1) for name, row in removals])
    edits: list[Turn] = []
    held = {name: list(rows) for name, rows in start.items()}
    for _ in range(6):
        turn = _edit(random, held, spare, keys)
        edits.append(turn)
        yield turn
    for turn in reversed(edits):
        yield {name: Update({row: -weight for row, weight in update}) for name, update in turn.items()}


def _turns(random: Random, changes: list[tuple[str, Row, int]]) -> Iterator[Turn]:
    while changes:
        size = random.choice([1, 1, 2, 5])
        part, changes = changes[:size], changes[size:]
        yield {n: Update.of([(row, w) for name, row, w in part if name == n]) for n in {name for name, *_ in part}}


def _edit(random: Random, held: Held, spare: Mapping[str, list[Row]], keys: Mapping[str, tuple[str, ...]]) -> Turn:
    """Some rows of some relations are added, removed, or put in the place of others."""
    turn: Turn = {}
    for name in random.sample(sorted(held), random.choice([1, 1, 2, 3])):
        rows, changes = held[name], list[tuple[Row, int]]()
        for _ in range(random.choice([1, 1, 2])):
            if rows and random.random() < 0.4:
                gone = rows.pop(random.randrange(len(rows)))
                changes.append((gone, -1))
            elif spare[name]:
                row = random.choice(spare[name])
                same = [r for r in rows if keys[name] and r[0] == row[0]]
                for gone in same:
                    rows.remove(gone)
                    changes.append((gone, -1))
                rows.append(row)
                changes.append((row, 1))
        update = Update.of(changes)
        if update:
            turn[name] = update
    return turn
