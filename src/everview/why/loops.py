"""Recursions in explanations: which rows a recursive relation has, and in which round each of them comes.

A row of round *r* follows from rows of earlier rounds alone, so an explanation that goes from round to round is a
shortest one and never turns in a circle. Where the rounds are kept by the loop that maintains a view, they are looked
up. Else the relation is computed for the values that are asked for, and for those that these depend on, in rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from everview.plan.nodes import Recursive
from everview.why.find import Finder, Lookup, Lookups
from everview.why.push import Entry, Row, Wanted, agrees

Goal = tuple[str, tuple[tuple[int, Any], ...]]  # a relation, and the values that are asked for
Ranked = Callable[[Wanted], list[tuple[Row, int]]]


class LoopRounds(Protocol):
    """The rows of the relations of a recursion, and their rounds."""

    def lookups(self, around: Lookups, below: int | None = None) -> Lookups:
        """The lookups of a plan inside: those around the recursion, and its own of rows of rounds ``below``."""
        ...

    def round_of(self, name: str, row: Row) -> int | None:
        """The round in which a row comes; None if it is not there."""
        ...


def loop_of(finder: Finder, plan: Recursive, around: Lookups) -> LoopRounds:
    """The recursion of a plan."""
    kept = None if around or plan.bags else finder.held.loop(plan)
    return ComputedRounds(finder, plan, around) if kept is None else KeptRounds(finder, kept)


class KeptRounds:
    """A recursion whose rounds are kept."""

    def __init__(self, finder: Finder, ranked: Mapping[str, Ranked]) -> None:
        self._finder, self._ranked = finder, ranked

    def lookups(self, around: Lookups, below: int | None = None) -> Lookups:
        return {**around, **{name: partial(self._found, name, below) for name in self._ranked}}

    def round_of(self, name: str, row: Row) -> int | None:
        return next((came for _, came in self._ranked[name](dict(enumerate(row)))), None)

    def _found(self, name: str, below: int | None, wanted: Wanted) -> list[Entry]:
        ranked = self._ranked[name](wanted)
        self._finder.budget.spend(len(ranked))
        return [(row, 1) for row, came in ranked if below is None or came < below]


class ComputedRounds:
    """A recursion that is computed for the goals that are asked for."""

    def __init__(self, finder: Finder, plan: Recursive, around: Lookups) -> None:
        self._finder, self._plan, self._around = finder, plan, around
        self._plans = dict(plan.bindings)
        self._rows: dict[Goal, dict[Row, int]] = {}
        self._came: dict[Goal, dict[Row, int]] = {}
        self._readers: dict[Goal, set[Goal]] = {}
        self._solved: set[Goal] = set()

    def lookups(self, around: Lookups, below: int | None = None) -> Lookups:
        return {**around, **{name: partial(self._found, name, below) for name in self._plans}}

    def round_of(self, name: str, row: Row) -> int | None:
        goal = _goal(name, dict(enumerate(row)))
        self._solve(goal)
        return self._came[goal].get(row)

    def _found(self, name: str, below: int | None, wanted: Wanted) -> list[Entry]:
        goal = self._wider(_goal(name, wanted))
        self._solve(goal)
        came = self._came[goal]
        bag = name in self._plan.bags
        return [
            (row, w)
            for row, w in self._rows[goal].items()
            if (below is None or bag or came[row] < below) and agrees(row, wanted)
        ]

    def _wider(self, goal: Goal) -> Goal:
        """A goal that has been computed and includes another; else the other."""
        if goal in self._solved:
            return goal
        name, values = goal
        return next((g for g in self._solved if g[0] == name and set(g[1]) <= set(values)), goal)

    def _solve(self, goal: Goal) -> None:
        """Compute a goal and all that it depends on."""
        if goal in self._solved:
            return
        before = len(self._rows)
        self._rows[goal], self._readers[goal], self._came[goal] = {}, set(), {}
        self._rounds({goal})
        if len(self._rows) > before + 1:  # goals came late, and so did their rows: once more with all from the start
            again = {g for g in self._rows if g not in self._solved}
            for g in again:
                self._rows[g], self._came[g] = {}, {}
            self._rounds(again)
        self._solved |= self._rows.keys()

    def _rounds(self, changed: set[Goal]) -> None:
        """Go on in rounds, each over the rows of the last one, until no goal has other rows."""
        last = max((came for g in self._solved for came in self._came[g].values()), default=0)
        unsolved, number = set(changed), 0
        while changed or number <= last:
            number += 1
            known = set(self._rows)
            new = {goal: self._derived(goal, number) for goal in (unsolved if number <= last + 1 else changed)}
            changed = set()
            for goal, rows in new.items():
                if rows != self._rows[goal]:
                    for row in rows:
                        self._came[goal].setdefault(row, number)
                    self._rows[goal] = rows
                    changed |= self._readers[goal] - self._solved
            late = set(self._rows) - known
            changed |= late
            unsolved |= late

    def _derived(self, goal: Goal, number: int) -> dict[Row, int]:
        """The rows of a goal that follow from those of earlier rounds."""
        name, values = goal
        inner = {n: partial(self._earlier, goal, n, number) for n in self._plans}
        lookups: dict[str, Lookup] = {**self._around, **inner}
        entries = self._finder.find(self._plans[name], dict(values), lookups)
        return dict(entries) if name in self._plan.bags else {row: 1 for row, w in entries if w > 0}

    def _earlier(self, reader: Goal, name: str, number: int, wanted: Wanted) -> list[Entry]:
        goal = self._wider(_goal(name, wanted))
        if goal not in self._rows:
            self._rows[goal], self._readers[goal], self._came[goal] = {}, set(), {}
        self._readers[goal].add(reader)
        came = self._came[goal]
        return [(row, w) for row, w in self._rows[goal].items() if came[row] < number and agrees(row, wanted)]


def _goal(name: str, wanted: Wanted) -> Goal:
    return name, tuple(sorted(wanted.items(), key=lambda item: item[0]))
