"""Merging that small ticks owe, paid by turns: in each tick a few traces do a share of theirs, and not all of them.

The traces of a view get their rows in the same ticks, so their levels are often full in the same tick. What they owe
from then on would make each of the next ticks as much longer as there are traces.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Final

from everview.traces.trace import Trace

HASTE: Final = 2  # times as fast as levels fill up again


class Owing:
    """The traces that have merging left to be done, and how many of them do a share in a tick."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self._turn = 0

    def become(self, traces: Iterable[Trace]) -> None:
        """Begin anew with those of some traces that owe merging."""
        owing = [trace for trace in traces if trace.past.owes]
        self._turn = ceil(HASTE * sum(trace.past.owes / trace.past.pace for trace in owing))
        self.traces = owing

    def pay(self) -> None:
        """Let the traces whose turn it is do a share; those that owe more wait behind the others."""
        turn, others = self.traces[: self._turn], self.traces[self._turn :]
        for trace in turn:
            trace.past.pay()
        self.traces = others + [trace for trace in turn if trace.past.owes]
