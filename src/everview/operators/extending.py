"""Prefixes through the levels of a delta query: one variable at a time, in slices of bounded memory.

Breadth first within a slice, depth first over slices: a level keeps one slice of prefixes, and as many extended ones
as its proposals allow. A prefix with more proposals than that is divided by values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from everview.kernels import extend as kernels
from everview.kernels.extend_word import extend_word
from everview.kernels.large import project
from everview.traces.wide import Wide
from everview.types.words import Matrix, Words

SLICE = 1 << 16  # prefixes looked up at once
MOST = 1 << 20  # proposals followed at once
HEAVY = 4096  # proposals for one prefix that are worth dividing


class IndexLookup(NamedTuple):
    """One lookup of a level in an index: the prefix's columns for the key, and the ones that determine the shard."""

    reading: int
    key: Words
    route: Words
    last: bool  # the variable is the index's last
    whole: Words  # then, where the prefix has all words of the index once the variable is bound


class DeltaLevel(NamedTuple):
    """The level of one variable: its width in words, and the lookups that extend a prefix by its values."""

    width: int
    lookups: tuple[IndexLookup, ...]


class DeltaPlan(NamedTuple):
    """A delta query over the words of prefixes."""

    checks: tuple[IndexLookup, ...]  # relations that the seed binds wholly
    levels: tuple[DeltaLevel, ...]
    picks: Words  # which words of a complete prefix make a result
    counted: bool  # the last variable is not among them


class Spots(NamedTuple):
    """Where the keys of some prefixes lie in the batches of some indexes."""

    at: Matrix
    slots: Words
    table: Matrix
    columns: Words
    keys: Words


class Extending:
    """A plan over the traces of one moment; counts what it proposes."""

    def __init__(self, plan: DeltaPlan, views: Sequence[Wide], depth: int = 0, dealt: bool = False) -> None:
        """``depth`` words of time begin every prefix, then, of dealt seeds, which piece of how many they stand for."""
        self.plan, self.views, self.depth, self.dealt = plan, views, depth, dealt
        self.proposed = 0

    def run(self, prefixes: Matrix) -> Iterator[Matrix]:
        """The results of some seeds, part by part."""
        needed = {lookup.reading for level in self.plan.levels for lookup in level.lookups}
        needed |= {lookup.reading for lookup in self.plan.checks}
        if not all(self.views[reading].table.shape[0] for reading in needed):
            return
        for begin in range(0, prefixes.shape[0], SLICE):
            part = prefixes[begin : begin + SLICE]
            for check in self.plan.checks:
                part = self._weighed(part, check, check.key)
            if self.dealt and not self.plan.levels:
                part = np.ascontiguousarray(part[part[:, self.depth] == 0])
            if part.shape[0]:
                yield from self._level(part, 0)

    def estimate(self, prefixes: Matrix) -> Words:
        """How many values are proposed for each seed at the first level."""
        counts = np.zeros(prefixes.shape[0], np.int64)
        for level in self.plan.levels[:1]:
            for begin in range(0, prefixes.shape[0], SLICE):
                spots = self._find(prefixes[begin : begin + SLICE], level.lookups)
                counts[begin : begin + SLICE] = kernels.proposals(spots.at, spots.slots)
        return counts

    def _level(self, prefixes: Matrix, number: int) -> Iterator[Matrix]:
        if number == len(self.plan.levels):
            yield project(prefixes, self.plan.picks)
            return
        level = self.plan.levels[number]
        final = number == len(self.plan.levels) - 1
        for begin in range(0, prefixes.shape[0], SLICE):
            part = prefixes[begin : begin + SLICE]
            spots = self._find(part, level.lookups)
            if self.dealt:
                part, spots = self._own_piece(part, spots, level.width, final=final)
            for some, where, capacity in self._bounded(part, spots, level.width):
                self.proposed += capacity
                extended = self._extended(some, where, level, capacity, counted=final and self.plan.counted)
                if extended.shape[0]:
                    yield from self._level(extended, number + 1)

    def _own_piece(self, prefixes: Matrix, spots: Spots, width: int, *, final: bool) -> tuple[Matrix, Spots]:
        """Divide prefixes among the pieces that follow them, at the first level with much work.

        Everyone who follows one of the pieces sees the same traces, and so divides alike. What never is much to do,
        the first piece does alone.
        """
        piece, pieces = (np.ascontiguousarray(prefixes[:, self.depth + c]) for c in (0, 1))
        several = pieces > 1
        if not several.any():
            return prefixes, spots
        much = several & (kernels.proposals(spots.at, spots.slots) >= HEAVY)
        kernels.narrow(*spots, width, piece, np.where(much, pieces, 1))
        prefixes = prefixes.copy()
        prefixes[much, self.depth], prefixes[much, self.depth + 1] = 0, 1
        if not final:
            return prefixes, spots
        mine = ~several | much | (piece == 0)
        return np.ascontiguousarray(prefixes[mine]), spots._replace(at=np.ascontiguousarray(spots.at[mine]))

    def _extended(self, prefixes: Matrix, spots: Spots, level: DeltaLevel, capacity: int, *, counted: bool) -> Matrix:
        timed = self.depth > 0
        last = np.array([lookup.last and not timed for lookup in level.lookups], np.int64)
        summed = counted and not timed
        if level.width == 1:
            extended = extend_word(prefixes, *spots, last, capacity, summed)
        else:
            extended = kernels.extend(prefixes, *spots, last, level.width, capacity, summed)
        if timed:
            for lookup in level.lookups:
                if lookup.last:
                    extended = self._weighed(extended, lookup, lookup.whole)
        return extended

    def _bounded(self, prefixes: Matrix, spots: Spots, width: int) -> Iterator[tuple[Matrix, Spots, int]]:
        """Prefixes in runs whose proposals do not exceed the bound."""
        counts = kernels.proposals(spots.at, spots.slots)
        total = int(counts.sum())
        if total == 0:
            return
        if total <= MOST:
            yield prefixes, spots, total
            return
        if int(counts.max()) > MOST:
            prefixes, pieces = kernels.divide(prefixes, *spots, width, np.maximum(1, -(-counts // MOST)))
            spots = spots._replace(at=pieces)
            counts = kernels.proposals(pieces, spots.slots)
        ends = np.cumsum(counts)
        begin, done = 0, 0
        while begin < counts.size:
            end = max(begin + 1, int(np.searchsorted(ends, done + MOST, side="right")))
            capacity = int(ends[end - 1]) - done
            if capacity:
                yield prefixes[begin:end], spots._replace(at=spots.at[begin:end]), capacity
            begin, done = end, int(ends[end - 1])

    def _weighed(self, prefixes: Matrix, lookup: IndexLookup, key: Words) -> Matrix:
        """The prefixes whose words of this key are a row of the index, with its weight."""
        spots = self._find(prefixes, (lookup._replace(key=key),))
        if self.depth:
            return kernels.meet(prefixes, spots.at, spots.slots, spots.table, int(spots.columns[0]), self.depth)
        return kernels.weigh(prefixes, spots.at, spots.slots, spots.table, int(spots.columns[0]))

    def _find(self, prefixes: Matrix, lookups: Sequence[IndexLookup]) -> Spots:
        views = [self.views[lookup.reading] for lookup in lookups]
        if len(views) == 1:
            table = views[0].table
        else:
            table = np.concatenate([view.table for view in views])
        slots, starts = [0], [0]
        for view, lookup in zip(views, lookups, strict=True):
            slots.append(slots[-1] + (view.most if lookup.route.size else view.table.shape[0]))
            starts.append(starts[-1] + view.table.shape[0])
        ranges = np.zeros((prefixes.shape[0], 3 * slots[-1]), np.int64)
        for number, (view, lookup) in enumerate(zip(views, lookups, strict=True)):
            where = view.starts + starts[number]
            kernels.find(prefixes, lookup.key, table, where, view.columns, lookup.route, ranges, slots[number])
        columns = np.array([view.columns for view in views], np.int64)
        keys = np.array([lookup.key.size for lookup in lookups], np.int64)
        return Spots(ranges, np.array(slots, np.int64), table, columns, keys)
