"""Indexes composed of others: and, or, not. They pass the changes of a tick on to their parts.

Invariant: the delta of each is exactly the change of what it accumulates, as a Z-set of tuples over its levels. So each
can stand wherever an atom can, and be composed again.

- **and** is the join of its parts: weights multiply. Nothing is kept beyond what its parts keep.
- **or** is a set: a tuple is there, once, if the weights of the alternatives sum to more than zero.
- **not** is a set, too: a tuple is there, once, unless its part has it with a positive weight. It cannot be enumerated,
  so it only restricts levels at which its variables are all bound; its change can.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from everview.doors import doors
from everview.errors import SchemaError
from everview.theory.generic_join import (
    NOTHING_BOUND,
    IncrementalGenericJoin,
    extensions,
    narrowed,
    participants,
)
from everview.theory.indexes import Deltas, IncrementalIndex
from everview.theory.prefixes import UNBOUNDED, Arranged, Extenders, Prefix, PrefixExtender, Scaled, cannot_propose
from everview.zset.reference import ZSet


@doors()
class AndIndex:
    """Tuples that all parts have, each part over its own levels; a negated part restricts what the others bind.

    >>> from everview.multiway import Pattern, PatternIndex, NotIndex, variables
    >>> a, b = order = variables("a b")
    >>> knows, blocks = (PatternIndex(Pattern(name, a, b), order) for name in ("knows", "blocks"))
    >>> friends = AndIndex(knows, NotIndex(blocks))
    >>> friends.receive_delta({"knows": ZSet({(1, 2): 1, (1, 3): 1}), "blocks": ZSet({(1, 3): 1})})
    >>> friends.delta.tuples
    ZSet({(1, 2): 1})
    """

    proposes = True

    def __init__(self, *parts: IncrementalIndex) -> None:
        self.parts = parts
        self.levels = _union(parts)
        self._join = IncrementalGenericJoin(parts, self.levels)
        self.delta = Arranged(self.levels, ZSet())

    def participates_in_level(self, level: int, bound: Collection[int] | None = None) -> bool:
        return level in self.levels

    def receive_delta(self, deltas: Deltas) -> None:
        self._join.receive_delta(deltas)
        self.delta = Arranged(self.levels, self._join.change())

    def commit(self) -> None:
        self._join.commit()
        self.delta = Arranged(self.levels, ZSet())

    @property
    def accumulated(self) -> Extenders:
        return _Together(self.parts, [part.accumulated for part in self.parts], self.levels)

    @property
    def updated(self) -> Extenders:
        return _Together(self.parts, [part.updated for part in self.parts], self.levels)

    def __repr__(self) -> str:
        return f"AndIndex({', '.join(map(repr, self.parts))})"


@doors()
class OrIndex:
    """Tuples that one of the alternatives has; all alternatives are over the same levels.

    >>> from everview.multiway import Pattern, PatternIndex, variables
    >>> a, b = order = variables("a b")
    >>> edge = OrIndex(PatternIndex(Pattern("road", a, b), order), PatternIndex(Pattern("rail", b, a), order))
    >>> edge.receive_delta({"road": ZSet({(1, 2): 1}), "rail": ZSet({(2, 1): 1, (4, 3): 1})})
    >>> edge.delta.tuples
    ZSet({(1, 2): 1, (3, 4): 1})
    >>> edge.commit()
    >>> edge.receive_delta({"road": ZSet({(1, 2): -1}), "rail": ZSet({(4, 3): -1})})
    >>> edge.delta.tuples
    ZSet({(3, 4): -1})
    """

    proposes = True

    def __init__(self, *alternatives: IncrementalIndex) -> None:
        self.alternatives = alternatives
        self.levels = _union(alternatives)
        for alternative in alternatives:
            _enumerable(alternative, "an alternative")
            if alternative.levels != self.levels:
                raise SchemaError(
                    f"{alternative} is not over the levels {list(self.levels)} of the other alternatives",
                    hint="let all alternatives hold the same variables",
                )
        self._support = self._supported = ZSet()  # the sum of the alternatives, before and after the tick
        self.accumulated = self.updated = self.delta = Arranged(self.levels, ZSet())

    def participates_in_level(self, level: int, bound: Collection[int] | None = None) -> bool:
        return level in self.levels

    def receive_delta(self, deltas: Deltas) -> None:
        for alternative in self.alternatives:
            alternative.receive_delta(deltas)
        change = ZSet.of(entry for alternative in self.alternatives for entry in alternative.delta.tuples)
        self._supported = self._support + change
        self.delta = Arranged(self.levels, crossings(self._support, self._supported, change))
        self.updated = self.accumulated + self.delta

    def commit(self) -> None:
        for alternative in self.alternatives:
            alternative.commit()
        self._support, self.accumulated = self._supported, self.updated
        self.delta = Arranged(self.levels, ZSet())

    def __repr__(self) -> str:
        return f"OrIndex({', '.join(map(repr, self.alternatives))})"


@doors()
class NotIndex:
    """Tuples that its part does not have.

    >>> from everview.multiway import Pattern, PatternIndex, variables
    >>> a, b, c = order = variables("a b c")
    >>> closed = NotIndex(PatternIndex(Pattern("edge", a, c), order))
    >>> [closed.participates_in_level(level) for level in range(3)], closed.participates_in_level(0, bound={2})
    ([False, False, True], True)
    >>> closed.receive_delta({"edge": ZSet({(1, 3): 2})})
    >>> closed.updated.intersect((1, 2), ZSet({3: 1, 4: 1})), closed.delta.tuples
    (ZSet({4: 1}), ZSet({(1, 3): -1}))
    """

    proposes = False

    def __init__(self, part: IncrementalIndex) -> None:
        _enumerable(part, "what is negated")
        self.part = part
        self.levels = part.levels
        self._support = self._supported = ZSet()  # the part, before and after the tick
        self.delta = Arranged(self.levels, ZSet())

    def participates_in_level(self, level: int, bound: Collection[int] | None = None) -> bool:
        earlier = range(level) if bound is None else bound
        return level in self.levels and all(other == level or other in earlier for other in self.levels)

    def receive_delta(self, deltas: Deltas) -> None:
        self.part.receive_delta(deltas)
        change = self.part.delta.tuples
        self._supported = self._support + change
        self.delta = Arranged(self.levels, -crossings(self._support, self._supported, change))

    def commit(self) -> None:
        self.part.commit()
        self._support = self._supported
        self.delta = Arranged(self.levels, ZSet())

    @property
    def accumulated(self) -> Extenders:
        return _Absent(self.levels, self._support)

    @property
    def updated(self) -> Extenders:
        return _Absent(self.levels, self._supported)

    def __repr__(self) -> str:
        return f"NotIndex({self.part})"


def crossings(before: ZSet, after: ZSet, changed: ZSet) -> ZSet:
    """The change of the distinct tuples; only those that changed can have crossed zero.

    >>> crossings(ZSet({"a": 1, "b": 2}), ZSet({"b": 1, "c": 3}), ZSet({"a": -1, "b": -1, "c": 3}))
    ZSet({'a': -1, 'c': 1})
    """
    return ZSet.of((element, (after[element] > 0) - (before[element] > 0)) for element, _ in changed)


class _Together:
    """The product of extenders: the smallest proposes, all others intersect."""

    def __init__(self, parts: Sequence[IncrementalIndex], states: Sequence[Extenders], levels: Sequence[int]) -> None:
        self._parts = parts
        self._states = states
        self._levels = levels

    def along(self, order: Sequence[int]) -> PrefixExtender:
        own = [level for level in order if level in self._levels]
        states = [state.along(order) for state in self._states]
        if not own:
            return Scaled(narrowed((), NOTHING_BOUND, states)[()])
        present = participants(self._parts, own)
        return _AllOf(
            {order.index(level): [states[n] for n in places] for level, places in zip(own, present, strict=True)}
        )

    def _natural(self) -> PrefixExtender:
        return self.along(range(max(self._levels, default=-1) + 1))

    def count(self, prefix: Prefix) -> int:
        return self._natural().count(prefix)

    def propose(self, prefix: Prefix) -> ZSet:
        return self._natural().propose(prefix)

    def intersect(self, prefix: Prefix, extensions: ZSet) -> ZSet:
        return self._natural().intersect(prefix, extensions)


class _AllOf:
    """Extenders that all have a say, by the length of the prefix."""

    def __init__(self, present: dict[int, list[PrefixExtender]]) -> None:
        self._present = present

    def count(self, prefix: Prefix) -> int:
        return min(extender.count(prefix) for extender in self._present[len(prefix)])

    def propose(self, prefix: Prefix) -> ZSet:
        return extensions(prefix, self._present[len(prefix)])

    def intersect(self, prefix: Prefix, extensions: ZSet) -> ZSet:
        return narrowed(prefix, extensions, self._present[len(prefix)])


class _Absent:
    """The extender of a negation: keeps the extensions that complete no tuple of positive weight."""

    def __init__(self, levels: Sequence[int], support: ZSet, order: Sequence[int] | None = None) -> None:
        self._levels = levels
        self._support = support
        natural = range(max(levels, default=-1) + 1)
        self._places = [(natural if order is None else order).index(level) for level in levels]

    def along(self, order: Sequence[int]) -> PrefixExtender:
        return _Absent(self._levels, self._support, order)

    def count(self, prefix: Prefix) -> int:
        return UNBOUNDED

    def propose(self, prefix: Prefix) -> ZSet:
        raise cannot_propose("a negation")

    def intersect(self, prefix: Prefix, extensions: ZSet) -> ZSet:
        def absent(extension: object) -> bool:
            bound = (*prefix, extension)
            return self._support[tuple(bound[place] for place in self._places)] <= 0

        return extensions.filter(absent)


def _union(parts: Sequence[IncrementalIndex]) -> tuple[int, ...]:
    return tuple(sorted({level for part in parts for level in part.levels}))


def _enumerable(part: IncrementalIndex, what: str) -> None:
    if not part.proposes:
        raise SchemaError(
            f"{what} cannot be a negation", hint="put it in an AndIndex with an atom that binds its values"
        )
