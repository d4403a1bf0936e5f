"""What a trial has tried and what went wrong in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """Counts of what was tried, by name, a text for each fault that shows how to see it again, and notes on the rest.

    >>> outcome = Outcome()
    >>> outcome.tried["queries"] += 2
    >>> outcome.faults.append("SELECT 1 gave 2")
    >>> print(outcome)
    2 queries; 1 fault
    """

    tried: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in self.tried.items()) or "nothing tried"
        return f"{counts}; {len(self.faults)} fault{'s' * (len(self.faults) != 1)}"
