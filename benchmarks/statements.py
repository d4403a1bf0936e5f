"""The input of the points-to benchmark: statements of a made-up program, and ticks in which a few are rewritten.

Variables belong to functions of some forty each. Statements name variables of one function, but for calls, which are
assignments across; so what points where stays about as large while statements change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SEED = 20_241
FUNCTION = 40  # variables
CALLS = 0.01  # of the assignments
SHARES = {"new": 0.4, "assign": 0.4, "load": 0.1, "store": 0.1}

Pair = tuple[int, int]
Statements = dict[str, list[Pair]]
Changes = dict[str, list[tuple[Pair, int]]]


@dataclass(frozen=True, slots=True)
class Edits:
    """The statements at first, the changes tick by tick, and the statements at last."""

    start: Statements
    ticks: list[Changes]
    end: Statements


def edits(statements: int, variables: int, per_tick: int, ticks: int) -> Edits:
    """The same for the same numbers.

    >>> small = edits(100, 80, per_tick=2, ticks=3)
    >>> [sum(weight for rows in tick.values() for _, weight in rows) for tick in small.ticks]
    [0, 0, 0]
    """
    random = np.random.default_rng([SEED, statements, variables])
    live: dict[str, dict[Pair, None]] = {kind: {} for kind in SHARES}
    for kind, share in SHARES.items():
        while len(live[kind]) < int(statements * share):
            live[kind][_drawn(kind, variables, random)] = None
    start = {kind: list(rows) for kind, rows in live.items()}
    changes = [_tick(live, variables, per_tick, random) for _ in range(ticks)]
    return Edits(start, changes, {kind: list(rows) for kind, rows in live.items()})


def _tick(live: dict[str, dict[Pair, None]], variables: int, per_tick: int, random: np.random.Generator) -> Changes:
    """Statements go, and as many of their kinds come."""
    changes: Changes = {kind: [] for kind in SHARES}
    for kind in random.choice(list(SHARES), max(1, per_tick // 2), p=list(SHARES.values())):
        gone = list(live[kind])[int(random.integers(len(live[kind])))]
        del live[kind][gone]
        come = gone
        while come == gone or come in live[kind]:
            come = _drawn(kind, variables, random)
        live[kind][come] = None
        changes[kind] += [(gone, -1), (come, 1)]
    return changes


def _drawn(kind: str, variables: int, random: np.random.Generator) -> Pair:
    base = int(random.integers(variables // FUNCTION)) * FUNCTION
    first, second = (base + int(v) for v in random.integers(FUNCTION, size=2))
    if kind == "assign" and random.random() < CALLS:
        second = int(random.integers(variables))
    return first, second
