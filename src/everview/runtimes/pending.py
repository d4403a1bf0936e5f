"""What nested times of the open epoch have left for later ones: outputs held, and groups to be woken."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from everview.circuit.stepping import Owed, Ran
from everview.kernels.linear import project
from everview.kernels.sort import sort_order
from everview.runtimes.state import Path
from everview.types.words import Matrix

At = tuple[int, ...]


class Pending:
    """Work left for later times, by child, time and shard; an epoch ends with nothing pending."""

    def __init__(self, shards: int) -> None:
        self.shards = shards
        # path of the child → time → (shard, node, held or woken) → cells
        self._left: defaultdict[Path, dict[At, dict[tuple[int, int, bool], list[Any]]]] = defaultdict(dict)

    def note(self, path: Path, shard: int, ran: Ran, depth: int) -> None:
        """Remember what a stage left for later times."""
        for woken, left in ((False, ran.held), (True, ran.wakes)):
            timed: Any
            for node, timed in left.items():
                for time, rows in by_time(timed, depth) if isinstance(timed, np.ndarray) else timed.by_time:
                    self._left[path].setdefault(time, {}).setdefault((shard, node, woken), []).append(rows)

    def due(self, path: Path, at: At, shard: int, nodes: tuple[int, ...]) -> Owed:
        """Take the work that was left for some nodes at this time."""
        left = self._left.get(path, {}).get(at)
        if not left:
            return NOTHING
        held, woken = (
            {node: together(left.pop((shard, node, kind))) for node in nodes if (shard, node, kind) in left}
            for kind in (False, True)
        )
        if not left:
            del self._left[path][at]
        return Owed(held, woken)

    def next(self, path: Path, at: At, iteration: int) -> int | None:
        """The least later iteration, within the step ``at`` of the parent, that has something to do here or deeper."""
        later = [
            time[len(at)]
            for child, times in self._left.items()
            if child[: len(path)] == path
            for time in times
            if time[: len(at)] == at and time[len(at)] > iteration
        ]
        return min(later, default=None)


NOTHING = Owed()


def together(cells: Sequence[Any]) -> Any:
    """Several cells as one: a matrix, unless tasks have the rows of some of them elsewhere."""
    elsewhere = next((cell for cell in cells if not isinstance(cell, np.ndarray)), None)
    return np.concatenate(cells) if elsewhere is None else elsewhere.among(cells)


def by_time(timed: Matrix, depth: int) -> Iterator[tuple[At, Matrix]]:
    """Pairs (time, rows): the rows of each time, with the time columns removed."""
    width = timed.shape[1] - 1 - depth
    rows = timed[sort_order(timed, np.arange(width, width + depth))]
    times = rows[:, width:-1]
    ends = [*np.flatnonzero((times[1:] != times[:-1]).any(axis=1)) + 1, rows.shape[0]]
    plain = project(rows, np.arange(width))
    start = 0
    for end in ends:
        yield tuple(times[start].tolist()), plain[start:end]
        start = end
