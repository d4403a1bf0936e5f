"""Semi and anti joins that keep no rows of either side: partners are pulled by key.

Where partners only need equal keys, a key changes the result when its first partner comes or its last one goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from everview.runtimes.pull.demand import Among, Demand, Row
from everview.runtimes.pull.lookup import Found, JoinMatching, batches, before, by_key, found_by
from everview.runtimes.pull.node import PullNode
from everview.sources.protocol import Update

FEW = 1000  # rows of the right whose keys are looked for in the left

Rows = dict[Row, int]


class PullSemiJoin(PullNode):
    """The node of a semi or anti join: rows of the left that have a partner, or that have none."""

    def __init__(self, left: PullNode, right: PullNode, kind: Literal["semi", "anti"], matching: JoinMatching) -> None:
        self.left, self.right, self.kind, self.matching = left, right, kind, matching
        self.inputs, self.schema = (left, right), left.schema
        self.key, self.few = left.key, left.few
        self._left_key, self._right_key = matching.key(matching.left), matching.key(matching.right)

    @property
    def title(self) -> str:
        return self.matching.title(self.kind, self.left, self.right)

    # -- history

    def pull(self, demand: Demand) -> Iterator[Row]:
        if self.kind == "semi" and self.matching.left and self._starts_right(demand):
            return self._by_right(demand)
        return self._by_left(demand)

    def _starts_right(self, demand: Demand) -> bool:
        asked = [len(a.keys) for a in demand.among]
        mine = min(asked if self.left.few is None else [*asked, self.left.few], default=1 << 60)
        return self.right.few is not None and self.right.few <= min(FEW, mine)

    def _by_right(self, demand: Demand) -> Iterator[Row]:
        """Pull the few rows of the right, and look their keys up in the left."""
        others = list(self.right.pull(Demand(keep=demand.keep)))
        keys = frozenset(key for row in others if (key := self._right_key(row)) is not None)
        asked = demand.and_among(Among(self.matching.left, keys))
        if self.matching.test is None:
            return self.left.pull(asked)
        rows = self.left.pull(replace(asked, limit=None, near=demand.guess))
        by = Counter(others)
        return (row for row in rows if self.matching.partners(row, list(by)))

    def _by_left(self, demand: Demand) -> Iterator[Row]:
        asked = replace(demand, limit=None, near=demand.guess)
        for rows in batches(self.left.pull(asked), asked.near):
            keys = list(map(self._left_key, rows))
            wanted = (k for k in keys if k is not None)
            partners = found_by(self.right, self.matching.right, wanted, Demand(keep=demand.keep))
            for row, key in zip(rows, keys, strict=True):
                if self._stays(row, partners.get(key, ()) if key is not None else ()):
                    yield row

    def _stays(self, row: Row, others: Iterable[Row]) -> bool:
        return bool(self.matching.partners(row, list(others))) == (self.kind == "semi")

    def values(self, columns: tuple[int, ...], keep: bool) -> frozenset[Row] | None:
        few = self.right.few is not None and self.right.few <= FEW
        if self.kind == "anti" or not few or columns != self.matching.left:
            return self.left.values(columns, keep)
        keys = map(self._right_key, self.right.pull(Demand(keep=keep)))
        return frozenset(key for key in keys if key is not None)

    # -- changes

    def push(self, *updates: Update) -> Update:
        left, right = updates
        lefts, unmatched = by_key(left.rows, self._left_key)
        rights, _ = by_key(right.rows, self._right_key)
        out = Counter[Row](unmatched if self.kind == "anti" else {})
        theirs = found_by(self.right, self.matching.right, {*lefts, *rights})
        turned = {key for key in rights if self._turns(theirs.get(key, ()), rights[key])}
        mine = found_by(self.left, self.matching.left, turned)
        for key in {*lefts, *turned}:
            self._change(out, key, lefts.get(key, {}), rights.get(key, {}) if key in turned else {}, theirs, mine)
        return Update({row: weight for row, weight in out.items() if weight})

    def _turns(self, after: Iterable[Row], change: Rows) -> bool:
        """Whether a change of the right may add or remove rows of the left."""
        if self.matching.test is not None:
            return True
        now = len(list(after))
        return (now > 0) != (now - sum(change.values()) > 0)

    def _change(self, out: Counter[Row], key: Row, changed: Rows, others: Rows, theirs: Found, mine: Found) -> None:
        after = Counter(theirs.get(key, ()))
        if not others:
            self._add(out, changed, after, 1)
            return
        rows = Counter(mine.get(key, ()))
        self._add(out, rows, after, 1)
        self._add(out, before(rows, changed), before(after, others), -1)

    def _add(self, out: Counter[Row], rows: Rows, others: Rows, sign: int) -> None:
        there = [row for row, weight in others.items() if weight > 0]
        for row, weight in rows.items():
            if self._stays(row, there):
                out[row] += sign * weight
