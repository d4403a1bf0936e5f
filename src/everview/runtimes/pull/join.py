"""Inner and left joins that keep no trace: partners are pulled by key.

``Δ(L ⋈ R) = ΔL ⋈ R' + L' ⋈ ΔR − ΔL ⋈ ΔR``, where L' and R' are the sides after the change, of which only the keys
that changed are read. On the way up, conditions go to the side whose columns they read; the side whose columns are
ordered by drives, and the other is asked for its partners, a few rows at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from everview.runtimes.pull.demand import Among, Demand, Row
from everview.runtimes.pull.lookup import JoinMatching, batches, before, by_key, found_by
from everview.runtimes.pull.node import PullNode
from everview.runtimes.pull.ordering import through
from everview.runtimes.pull.rows import RowTest, within
from everview.scalars.expressions import Expression, columns_of, moved
from everview.sources.protocol import Update
from everview.types import Schema

Changes = Counter[Row]
FEW = 100  # rows from which it is better to start, whatever the order


@dataclass(frozen=True, slots=True)
class Parted:
    """A demand of a join split into demands of its sides, and conditions and keys that need both sides."""

    left: Demand
    right: Demand
    where: tuple[Expression, ...]
    among: tuple[Among, ...]

    def rest(self, rows: Iterator[Row], schema: Schema) -> Iterator[Row]:
        for among in self.among:
            rows = within(rows, among)
        return RowTest(self.where, schema).lazily(rows) if self.where else rows


class PullJoin(PullNode):
    """The node of an inner or left join: pairs of partners; LEFT pads rows without a partner with NULL."""

    def __init__(
        self, left: PullNode, right: PullNode, kind: Literal["inner", "left"], matching: JoinMatching, schema: Schema
    ) -> None:
        self.left, self.right, self.kind, self.matching, self.schema = left, right, kind, matching, schema
        self.inputs = (left, right)
        self._width = len(left.schema)
        self._padding: Row = (None,) * len(right.schema)
        self._left_key, self._right_key = matching.key(matching.left), matching.key(matching.right)
        if left.key is not None and right.key is not None:
            self.key = (*left.key, *(self._width + column for column in right.key))
            if set(right.key) <= set(matching.right):
                self.key, self.few = left.key, left.few  # a row of the left has one partner at most

    @property
    def title(self) -> str:
        return self.matching.title(self.kind, self.left, self.right)

    # -- history

    def pull(self, demand: Demand) -> Iterator[Row]:
        inner = self.kind == "inner" or self._needs_partner(demand)
        parted = self._parted(demand, inner)
        if inner and self._from_right(demand, parted):
            return through(demand, self.schema, self._place_right, lambda asked: self._by_right(asked, parted))
        return through(demand, self.schema, self._place_left, lambda asked: self._by_left(asked, parted, inner))

    def _place_left(self, column: int) -> int | None:
        return column if column < self._width else None

    def _place_right(self, column: int) -> int | None:
        return column - self._width if column >= self._width else None

    def _by_left(self, asked: Demand, parted: Parted, inner: bool) -> Iterator[Row]:
        driving = replace(asked, where=parted.left.where, among=(*parted.left.among, *asked.among), limit=None)
        return parted.rest(self._led_by_left(driving, replace(parted.right, keep=asked.keep), inner), self.schema)

    def _led_by_left(self, driving: Demand, other: Demand, inner: bool) -> Iterator[Row]:
        key, matching = self._left_key, self.matching
        for rows in batches(self.left.pull(driving), driving.near):
            keys = list(map(key, rows))
            others = found_by(self.right, matching.right, (k for k in keys if k is not None), other)
            for row, k in zip(rows, keys, strict=True):
                partners = matching.partners(row, others.get(k, ())) if k is not None else ()
                yield from (row + partner for partner in partners)
                if not partners and not inner:
                    yield row + self._padding

    def _by_right(self, asked: Demand, parted: Parted) -> Iterator[Row]:
        driving = replace(asked, where=parted.right.where, among=(*parted.right.among, *asked.among), limit=None)
        return parted.rest(self._led_by_right(driving, replace(parted.left, keep=asked.keep)), self.schema)

    def _led_by_right(self, driving: Demand, other: Demand) -> Iterator[Row]:
        key, matching = self._right_key, self.matching
        for rows in batches(self.right.pull(driving), driving.near):
            keys = list(map(key, rows))
            others = found_by(self.left, matching.left, (k for k in keys if k is not None), other)
            for row, k in zip(rows, keys, strict=True):
                partners = matching.partners(row, others.get(k, ()), turned=True) if k is not None else ()
                yield from (partner + row for partner in partners)

    def _from_right(self, demand: Demand, parted: Parted) -> bool:
        """Whether to start from the right: it has the keys, fewer rows, or the first ordered column."""
        left, right = _least(parted.left, self.left), _least(parted.right, self.right)
        if min(left, right) <= max(FEW, demand.guess or 0) or not demand.order:
            return right < left
        return demand.order[0].column >= self._width

    def _needs_partner(self, demand: Demand) -> bool:
        """Whether a demand excludes rows without a partner: its conditions on the right do not hold for NULL."""
        nothing = (None,) * len(self.schema)
        for among in demand.among:
            places = [place for place, column in enumerate(among.columns) if column >= self._width]
            if places and not any(all(key[place] is None for place in places) for key in among.keys):
                return True
        own = [w for w in demand.where if (read := columns_of(w)) and min(read) >= self._width]
        return any(not RowTest((each,), self.schema).of([nothing])[0] for each in own)

    def _parted(self, demand: Demand, inner: bool) -> Parted:
        width, both = self._width, list[Expression]()
        lefts, rights = list[Expression](), list[Expression]()
        for each in demand.where:
            read = columns_of(each)
            if read and max(read) < width:
                lefts.append(each)
            elif read and min(read) >= width and inner:
                rights.append(moved(each, lambda place: place - width))
            else:
                both.append(each)
        left, right, mixed = list[Among](), list[Among](), list[Among]()
        for among in demand.among:
            mine = [place for place, column in enumerate(among.columns) if column < width]
            theirs = [place for place, column in enumerate(among.columns) if column >= width]
            if mine:
                left.append(among.of(mine))
            if theirs and inner:
                right.append(among.of(theirs).at(lambda place: place - width))
            if theirs and (mine or not inner):
                mixed.append(among)
        return Parted(Demand(tuple(lefts), tuple(left)), Demand(tuple(rights), tuple(right)), tuple(both), tuple(mixed))

    # -- changes

    def push(self, *updates: Update) -> Update:
        left, right = updates
        lefts, unmatched = by_key(left.rows, self._left_key)
        rights, _ = by_key(right.rows, self._right_key)
        out = Counter[Row]()
        if self.kind == "left":
            out.update({row + self._padding: weight for row, weight in unmatched.items()})
        theirs = found_by(self.right, self.matching.right, {*lefts, *rights} if self.kind == "left" else lefts)
        mine = found_by(self.left, self.matching.left, rights)
        for key in {*lefts, *rights}:
            changed, others = lefts.get(key, {}), Counter(theirs.get(key, ()))
            if key not in rights:
                self._add(out, changed.items(), others)
            elif self.kind == "left":
                self._add_whole(out, Counter(mine.get(key, ())), changed, others, rights[key])
            else:
                self._pair(out, changed.items(), others)
                self._pair(out, Counter(mine.get(key, ())).items(), rights[key])
                self._pair(out, ((row, -weight) for row, weight in changed.items()), rights[key])
        return Update({row: weight for row, weight in out.items() if weight})

    def _add(self, out: Changes, rows: Iterable[tuple[Row, int]], others: Changes, sign: int = 1) -> None:
        """Add the pairs of rows of the left with all rows of the right that have their key."""
        there = list(others)
        for row, weight in rows:
            partners = self.matching.partners(row, there)
            for partner in partners:
                out[row + partner] += sign * weight * others[partner]
            if not partners and self.kind == "left":
                out[row + self._padding] += sign * weight

    def _add_whole(
        self, out: Changes, mine: Changes, changed: dict[Row, int], theirs: Changes, others: dict[Row, int]
    ) -> None:
        """Add the difference of a key: all its pairs after the change, less all before."""
        self._add(out, mine.items(), theirs)
        self._add(out, before(mine, changed).items(), before(theirs, others), -1)

    def _pair(self, out: Changes, rows: Iterable[tuple[Row, int]], others: dict[Row, int] | Changes) -> None:
        there = list(others)
        for row, weight in rows:
            for partner in self.matching.partners(row, there):
                out[row + partner] += weight * others[partner]


def _least(demand: Demand, node: PullNode) -> int:
    """The most rows that a demand can give, by the number of its keys or what the node knows."""
    known = [len(among.keys) for among in demand.among]
    if node.few is not None:
        known.append(node.few)
    return min(known, default=1 << 60)
