"""Prefix extenders: what a relation says about the next variable, once the ones before are bound.

`count`, `propose` and `intersect` are all that a generic join asks of a relation. Invariant: above its last variable a
relation has no weights, a key is there or not; so proposals there weigh 1 and its own weights count exactly once, when
its last variable is bound. A key is there if something lies below it, even if the weights below sum to zero.

The tries are built with `IndexedZSet.extend_leaves` and read with `get_by_prefix` and `as_zset_view`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol

from everview.doors import doors
from everview.errors import SchemaError
from everview.zset.indexed import IndexedZSet
from everview.zset.reference import ZSet

Prefix = tuple[Any, ...]  # the values bound so far, in the order in which they were bound

UNBOUNDED = sys.maxsize  # the count of an extender that can only intersect


class PrefixExtender(Protocol):
    """Extends a prefix by one value.

    Laws: ``intersect(p, e) == e.equi_join(propose(p))`` and ``count(p) == len(propose(p))`` wherever it proposes.
    A count only chooses who proposes; it never drops an answer.
    """

    def count(self, prefix: Prefix) -> int:
        """How many extensions `propose` would give; `UNBOUNDED` if it cannot."""
        ...

    def propose(self, prefix: Prefix) -> ZSet:
        """All extensions of the prefix."""
        ...

    def intersect(self, prefix: Prefix, extensions: ZSet) -> ZSet:
        """Those of the extensions that this extender has too, weights multiplied."""
        ...


class Extenders(PrefixExtender, Protocol):
    """One state of a relation, as extenders for any order of the levels; itself, the one for their natural order."""

    def along(self, order: Sequence[int]) -> PrefixExtender:
        """The extender whose prefixes hold the values of ``order[0]``, ``order[1]``, … ."""
        ...


@doors()
class ZSetExtender:
    """Extends prefixes by what lies below them in a trie.

    >>> places = ZSetExtender(IndexedZSet({"Germany": {"Berlin": 2, "Munich": -1}, "USA": {"LA": 1}}))
    >>> places.propose(())
    ZSet({'Germany': 1, 'USA': 1})
    >>> places.count(("Germany",)), places.propose(("Germany",))
    (2, ZSet({'Berlin': 2, 'Munich': -1}))
    >>> places.intersect(("Germany",), ZSet({"Munich": 3, "LA": 1}))
    ZSet({'Munich': -3})

    ``at`` says which places of the prefix the trie is about; the others are bound by other relations.

    >>> ZSetExtender(IndexedZSet({"b": {"c": 1}}), at=(1, 2)).propose(("a", "b"))
    ZSet({'c': 1})
    """

    def __init__(self, trie: ZSet | IndexedZSet, at: Sequence[int] | None = None) -> None:
        self._trie = trie
        self._at = at

    def count(self, prefix: Prefix) -> int:
        below = self._below(prefix)
        return len(below) if isinstance(below, ZSet) else len(below.as_zset_view())

    def propose(self, prefix: Prefix) -> ZSet:
        return self._below(prefix).as_zset_view()

    def intersect(self, prefix: Prefix, extensions: ZSet) -> ZSet:
        below = self._below(prefix)
        if isinstance(below, ZSet):
            return extensions.equi_join(below)
        return extensions.filter(lambda extension: extension in below)

    def _below(self, prefix: Prefix) -> ZSet | IndexedZSet:
        if self._at is None:
            return self._trie.get_by_prefix(prefix)
        if len(prefix) not in self._at:
            raise SchemaError(
                f"a relation of the places {list(self._at)} does not extend a prefix of {len(prefix)}",
                hint="ask participates_in_level first",
            )
        return self._trie.get_by_prefix([prefix[place] for place in self._at if place < len(prefix)])


class Scaled:
    """The extender of a relation without variables: every extension, times the relation's weight."""

    def __init__(self, weight: int) -> None:
        self._weight = weight

    def count(self, prefix: Prefix) -> int:
        return UNBOUNDED

    def propose(self, prefix: Prefix) -> ZSet:
        raise cannot_propose("a relation without variables")

    def intersect(self, prefix: Prefix, extensions: ZSet) -> ZSet:
        return extensions * self._weight


@doors()
class Arranged:
    """A Z-set of tuples over some levels, with a trie for each order of them that has been asked for.

    Frozen, but for the tries it remembers; a sum keeps the tries of its first summand.

    >>> edges = Arranged((1, 2), ZSet({("b", "c"): 1, ("b", "d"): 2}))  # levels 1 and 2; what is bound at 0 is not ours
    >>> edges.propose(("a", "b"))
    ZSet({'c': 1, 'd': 2})
    >>> edges.along((2, 0, 1)).propose(("d", "a"))
    ZSet({'b': 2})
    """

    def __init__(self, levels: Sequence[int], tuples: ZSet) -> None:
        self.levels = tuple(levels)
        self.tuples = tuples
        self._tries: dict[tuple[int, ...], ZSet | IndexedZSet] = {}

    def along(self, order: Sequence[int]) -> PrefixExtender:
        if not self.levels:
            return Scaled(self.tuples[()])
        places = [place for place, level in enumerate(order) if level in self.levels]
        assert len(places) == len(self.levels), "an order holds every level"
        return ZSetExtender(self._trie(tuple(order[place] for place in places)), places)

    def _trie(self, levels: tuple[int, ...]) -> ZSet | IndexedZSet:
        if levels not in self._tries:
            columns = [self.levels.index(level) for level in levels]
            self._tries[levels] = _trie([(tuple(row[c] for c in columns), w) for row, w in self.tuples], len(levels))
        return self._tries[levels]

    def __add__(self, other: Arranged) -> Arranged:
        if not other.tuples:
            return self
        assert self.levels == other.levels, "only Z-sets over the same levels add"
        added = Arranged(self.levels, self.tuples + other.tuples)
        for levels, trie in self._tries.items():
            added._tries[levels] = _sum(trie, other._trie(levels))
        return added

    # -- an extender for the natural order

    def count(self, prefix: Prefix) -> int:
        return self.along(self._natural()).count(prefix)

    def propose(self, prefix: Prefix) -> ZSet:
        return self.along(self._natural()).propose(prefix)

    def intersect(self, prefix: Prefix, extensions: ZSet) -> ZSet:
        return self.along(self._natural()).intersect(prefix, extensions)

    def _natural(self) -> Sequence[int]:
        return range(max(self.levels, default=-1) + 1)


def _trie(paths: list[tuple[Prefix, int]], depth: int) -> ZSet | IndexedZSet:
    if depth == 1:
        return ZSet.of((path[0], weight) for path, weight in paths)
    return IndexedZSet.of(paths)


def _sum(one: ZSet | IndexedZSet, two: ZSet | IndexedZSet) -> ZSet | IndexedZSet:
    if isinstance(one, ZSet):
        assert isinstance(two, ZSet), "tries over the same levels"
        return one + two
    assert isinstance(two, IndexedZSet), "tries over the same levels"
    return one + two


def cannot_propose(what: str) -> SchemaError:
    return SchemaError(f"{what} cannot propose values", hint="let a relation that holds the variable propose them")
