"""The net of changes that logical replication tells of one table, as steps of a transaction."""

from __future__ import annotations

from collections import Counter
from typing import Any

from everview.sources.feed import FeedStep
from everview.sources.postgres.messages import UNCHANGED
from everview.types import Schema


class NetChanges:
    """Changes of rows in their order, put together: of a table with a key, the last row of each key."""

    def __init__(self, schema: Schema, key: tuple[str, ...]) -> None:
        self._names, self._key = schema.names, key
        self._places = [schema.index(column) for column in key]
        self._rows: dict[tuple[Any, ...], tuple[Any, ...] | None] = {}  # by key; None has gone
        self._weights: Counter[tuple[Any, ...]] = Counter()  # of rows without a key
        self._steps: list[FeedStep] = []

    def enter(self, old: tuple[Any, ...] | None, new: tuple[Any, ...] | None) -> None:
        """A row that came, went or changed; of the old one perhaps only the key is there."""
        if not self._key:
            for row, weight in ((old, -1), (new, 1)):
                if row is not None:
                    self._weights[row] += weight
            return
        before = None if old is None else self._key_of(old)
        if new is None:
            assert before is not None, "a deleted row has a key"
            self._rows[before] = None
            return
        after = self._key_of(new)
        before = after if before is None else before
        if UNCHANGED in new:
            new = self._completed(before, new)
        if before != after:
            self._rows[before] = None
        if new is not None:
            self._rows[after] = new

    def empty(self) -> None:
        """The table was truncated."""
        self._rows, self._weights, self._steps = {}, Counter(), [FeedStep("become", [])]

    def steps(self) -> list[FeedStep]:
        """The steps that make these changes."""
        self._flush()
        return self._steps

    def _key_of(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(row[place] for place in self._places)

    def _completed(self, before: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """A row with the values that were not sent, if they are known here; else a step takes them from the table."""
        known = self._rows.get(before)
        if known is not None:
            return tuple(o if n is UNCHANGED else n for o, n in zip(known, new, strict=True))
        self._flush()
        told = {name: value for name, value in zip(self._names, new, strict=True) if value is not UNCHANGED}
        self._steps.append(FeedStep("patch", [(before, told)]))
        return None

    def _flush(self) -> None:
        gone = [key for key, row in self._rows.items() if row is None]
        come = [row for row in self._rows.values() if row is not None]
        changed = [(row, weight) for row, weight in self._weights.items() if weight]
        self._steps += [
            step
            for step in (FeedStep("delete", gone), FeedStep("upsert", come), FeedStep("apply", changed))
            if step.rows
        ]
        self._rows, self._weights = {}, Counter()
