"""Incremental indexes: a relation of a join before the tick, its change in the tick, and the relation after.

An index takes the changes of a tick with `receive_delta`, shows them until `commit`, and then adds them to what it has
accumulated. Nothing accumulated changes before that, so a tick that fails has not happened.

Law: ``updated == accumulated + delta``, and after `commit`, ``accumulated`` is what ``updated`` was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

from everview.doors import doors
from everview.theory.patterns import Pattern, Variable
from everview.theory.prefixes import Arranged, Extenders
from everview.zset.reference import ZSet

Deltas = Mapping[str, ZSet]  # how the relations change in a tick, by name


@runtime_checkable
class IncrementalIndex(Protocol):
    """One relation of a join, or several that are composed to one."""

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels of the join whose variables it holds, ascending."""
        ...

    @property
    def proposes(self) -> bool:
        """Whether the accumulated contents can be enumerated; if not, the index can only intersect."""
        ...

    def participates_in_level(self, level: int, bound: Collection[int] | None = None) -> bool:
        """Whether the index restricts a level once the levels in ``bound`` (by default, all lower ones) are bound."""
        ...

    def receive_delta(self, deltas: Deltas) -> None:
        """Take the changes of this tick; those of a tick that was not committed are forgotten."""
        ...

    def commit(self) -> None:
        """Add the changes to what was accumulated; call it when the join has been computed."""
        ...

    @property
    def delta(self) -> Arranged:
        """The changes of this tick."""
        ...

    @property
    def accumulated(self) -> Extenders:
        """The rows before this tick: ``z⁻¹``."""
        ...

    @property
    def updated(self) -> Extenders:
        """The rows after this tick."""
        ...


@doors()
class PatternIndex:
    """The rows of a relation that fit an atom; its variables may sit at any levels of the join's order.

    >>> from everview.theory.patterns import variables
    >>> a, b, c = variables("a b c")
    >>> index = PatternIndex(Pattern("edge", c, b), order=(a, b, c))
    >>> index.levels, [index.participates_in_level(level) for level in range(3)]
    ((1, 2), [False, True, True])
    >>> index.receive_delta({"edge": ZSet({("x", "y"): 1, ("z", "y"): 2})})
    >>> index.delta.propose(("anything", "y")), index.accumulated.propose(("anything", "y"))
    (ZSet({'x': 1, 'z': 2}), ZSet({}))
    >>> index.commit()
    >>> index.delta.propose(("anything", "y")), index.accumulated.propose(("anything", "y"))
    (ZSet({}), ZSet({'x': 1, 'z': 2}))
    """

    proposes = True

    def __init__(self, pattern: Pattern, order: Sequence[Variable]) -> None:
        self.pattern = pattern
        self._variables = pattern.arranged(order)
        self.levels = tuple(order.index(variable) for variable in self._variables)
        self.accumulated = self.updated = self.delta = Arranged(self.levels, ZSet())

    def participates_in_level(self, level: int, bound: Collection[int] | None = None) -> bool:
        return level in self.levels

    def receive_delta(self, deltas: Deltas) -> None:
        rows = deltas.get(self.pattern.relation, ZSet())
        self.delta = Arranged(self.levels, self.pattern.bindings(rows, self._variables))
        self.updated = self.accumulated + self.delta

    def commit(self) -> None:
        self.accumulated = self.updated
        self.delta = Arranged(self.levels, ZSet())

    def __repr__(self) -> str:
        return f"PatternIndex({self.pattern})"
