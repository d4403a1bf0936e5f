"""How much a loop has grown in the open tick, and whether that is within its bounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from everview.circuit.bounds import LoopBounds
from everview.circuit.program import Loop
from everview.errors import EndlessLoop
from everview.types.words import Matrix

SHOWN = 8  # iterations whose sizes an error shows
HINT = "does it make new values for ever? Bound them by a condition, or raise the limit"


@dataclass(slots=True)
class Grown:
    """The rows that all loops of a tick have appended to their traces so far."""

    rows: int = 0
    bytes: int = 0

    def add(self, appends: Mapping[int, Any]) -> None:
        """Count batches: in memory, or written by tasks elsewhere, whose bytes are on disk."""
        for appended in appends.values():
            if isinstance(appended, np.ndarray):
                self.rows += appended.shape[0]
                self.bytes += appended.nbytes
            else:
                self.rows += appended.rows


class Growth:
    """One run of a loop to its fixed point, measured from its start; loops inside of it count, too."""

    def __init__(self, loop: Loop, bounds: LoopBounds, grown: Grown) -> None:
        self.loop, self.bounds = loop, bounds
        self._rounds = bounds.of(loop.limit, grows=loop.grows)
        self._grown, self._rows, self._bytes = grown, grown.rows, grown.bytes
        self._whole = 0
        self._sizes: deque[int] = deque(maxlen=SHOWN)

    def feed(self, cells: Sequence[Mapping[int, Matrix]], *, whole: bool = False) -> int:
        """Note what is fed back, changes or ``whole`` contents, and how many rows that is."""
        matrices = [m for shard in cells for m in shard.values()]
        self._sizes.append(sum(m.shape[0] for m in matrices))
        if whole:
            self._whole = sum(m.nbytes for m in matrices)
        return self._sizes[-1]

    def check(self, iteration: int) -> None:
        """Refuse another iteration if the loop has gone beyond a bound."""
        rows = self._grown.rows - self._rows + (self._sizes[-1] if self._whole else 0)
        held = self._grown.bytes - self._bytes + self._whole
        if iteration >= self._rounds:
            raise self._endless(iteration, rows, "rounds of the child" if self.loop.limit is not None else "rounds")
        if rows > self.bounds.rows:
            raise self._endless(iteration, rows, "rows")
        if held > self.bounds.bytes:
            raise self._endless(iteration, rows, "memory", f", {held >> 20:,} MB")

    def _endless(self, iteration: int, rows: int, bound: str, also: str = "") -> EndlessLoop:
        sizes = ", ".join(f"{n:,}" for n in self._sizes)
        return EndlessLoop(
            f"loop {self.loop.name} has not ended after {iteration:,} iterations: its traces have grown by "
            f"{rows:,} rows{also}; its last iterations changed {sizes} rows",
            hint=f"{HINT} of {bound}" + ("" if "child" in bound else f": LoopBounds({bound}=…)"),
        )
