"""The incremental generic join: how a join of many relations changes when some of them do.

A product of n relations changes by n terms, one for each of them:

    Δ(A₁ ⋈ … ⋈ Aₙ) = Σᵢ A₁ ⋈ … ⋈ Aᵢ₋₁ (new) ⋈ ΔAᵢ ⋈ Aᵢ₊₁ ⋈ … ⋈ Aₙ (old)

Each term is a **delta query**: it starts from the tuples of ``ΔAᵢ``, so their variables come first, and goes on one
variable at a time. Each sees the relations before it as they will be and those after it as they were, so what several
changes make together is found by one of them only: three new edges that form a triangle are one triangle.

Its cost is bounded by the worst case of each delta query, not by what it puts out: one new edge between two hubs
without a common neighbour costs the smaller degree, for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.doors import doors
from everview.errors import SchemaError
from everview.theory.indexes import Deltas, IncrementalIndex
from everview.theory.prefixes import Prefix, PrefixExtender
from everview.zset.indexed import IndexedZSet
from everview.zset.reference import ZSet

NOTHING_BOUND = ZSet({(): 1})  # the one binding of no variables


@doors()
class IncrementalGenericJoin:
    """The natural join of relations over levels ``0 … levels-1``: its change, tick by tick.

    The triangles of a graph, which is one relation in three atoms:

    >>> from everview.multiway import Pattern, PatternIndex, variables
    >>> a, b, c = order = variables("a b c")
    >>> atoms = Pattern("edge", a, b), Pattern("edge", a, c), Pattern("edge", b, c)
    >>> triangles = IncrementalGenericJoin([PatternIndex(atom, order) for atom in atoms], levels=3)
    >>> triangles.join({"edge": ZSet({(1, 2): 1, (1, 3): 1})})
    ZSet({})
    >>> triangles.join({"edge": ZSet({(2, 3): 2})})
    ZSet({(1, 2, 3): 2})
    >>> triangles.join({"edge": ZSet({(1, 2): -1})})
    ZSet({(1, 2, 3): -2})
    """

    def __init__(self, relations: Sequence[IncrementalIndex], levels: int | Sequence[int]) -> None:
        self.relations = tuple(relations)
        bound = {level for relation in self.relations for level in relation.levels}
        # of more levels than variables one has no relation, and `_check` names it
        self.levels = tuple(range(min(levels, len(bound) + 1)) if isinstance(levels, int) else levels)
        self._orders = [self._order(relation) for relation in self.relations]
        self._check()

    def join(self, deltas: Deltas) -> ZSet:
        """The change of the join, and on to the next tick."""
        self.receive_delta(deltas)
        change = self.change()
        self.commit()
        return change

    def receive_delta(self, deltas: Deltas) -> None:
        for relation in self.relations:
            relation.receive_delta(deltas)

    def commit(self) -> None:
        for relation in self.relations:
            relation.commit()

    def change(self) -> ZSet:
        """The change of the join by the deltas received: the sum of the delta queries, as tuples by level."""
        terms = (self._delta_query(i) for i, relation in enumerate(self.relations) if relation.delta.tuples)
        return ZSet.of(entry for term in terms for entry in term)

    def _delta_query(self, i: int) -> ZSet:
        """``A₁ … Aᵢ₋₁ (new) ⋈ ΔAᵢ ⋈ Aᵢ₊₁ … Aₙ (old)``, seeded from the tuples of the delta."""
        order = self._orders[i]
        before, after = self.relations[:i], self.relations[i + 1 :]
        delta = self.relations[i].delta.along(order)
        states = (*(r.updated.along(order) for r in before), delta, *(r.accumulated.along(order) for r in after))
        if not order:
            return narrowed((), NOTHING_BOUND, states)
        result: ZSet | IndexedZSet | None = None
        for level, present in zip(order, participants(self.relations, order), strict=True):
            others = [states[n] for n in present if n != i or level not in self.relations[i].levels]
            seed = delta if level in self.relations[i].levels else None
            result = _extended(result, seed, others)
        assert result is not None, "there is a level"
        return _by_level(result, order)

    def _order(self, seed: IncrementalIndex) -> tuple[int, ...]:
        """The seed's levels first; then, as long as there is one, a level that shares a relation with a bound one."""
        order = list(seed.levels)
        while len(order) < len(self.levels):
            near = {
                level for relation in self.relations if set(relation.levels) & set(order) for level in relation.levels
            }
            rest = [level for level in self.levels if level not in order]
            order.append(next((level for level in rest if level in near), rest[0]))
        return tuple(order)

    def _check(self) -> None:
        for level in self.levels:
            if not any(relation.proposes and level in relation.levels for relation in self.relations):
                raise SchemaError(
                    f"no relation proposes values for level {level}", hint="bind its variable in a positive atom"
                )
        foreign = {level for relation in self.relations for level in relation.levels} - set(self.levels)
        if foreign:
            raise SchemaError(f"the join has no level {min(foreign)}", hint=f"its levels are {list(self.levels)}")


def participants(relations: Sequence[IncrementalIndex], order: Sequence[int]) -> list[list[int]]:
    """The relations that restrict each level, in order of binding; ones without variables restrict the first."""
    return [
        [
            n
            for n, relation in enumerate(relations)
            if relation.participates_in_level(level, order[:place]) or (place == 0 and not relation.levels)
        ]
        for place, level in enumerate(order)
    ]


def extensions(prefix: Prefix, extenders: Sequence[PrefixExtender]) -> ZSet:
    """The values by which all extenders extend the prefix: the one with the fewest proposes, the others intersect.

    >>> from everview.multiway import ZSetExtender
    >>> extensions((), [ZSetExtender(ZSet({1: 2, 5: 1, 6: 1})), ZSetExtender(ZSet({1: -3, 2: 1}))])
    ZSet({1: -6})
    """
    smallest = min(range(len(extenders)), key=lambda n: extenders[n].count(prefix))
    others = [extender for n, extender in enumerate(extenders) if n != smallest]
    return narrowed(prefix, extenders[smallest].propose(prefix), others)


def narrowed(prefix: Prefix, proposed: ZSet, extenders: Sequence[PrefixExtender]) -> ZSet:
    """The proposed extensions on which all extenders agree."""
    for extender in extenders:
        if not proposed:
            return proposed
        proposed = extender.intersect(prefix, proposed)
    return proposed


def _extended(
    result: ZSet | IndexedZSet | None, seed: PrefixExtender | None, others: Sequence[PrefixExtender]
) -> ZSet | IndexedZSet:
    """The result trie with one more level; a seed proposes, for it is a change and therefore small."""

    def extend(prefix: Prefix, weight: int) -> ZSet:
        if seed is None:
            return extensions(prefix, others) * weight
        return narrowed(prefix, seed.propose(prefix), others) * weight

    return extend((), 1) if result is None else result.extend_leaves(extend)


def _by_level(result: ZSet | IndexedZSet, order: Sequence[int]) -> ZSet:
    """The paths of a result trie as tuples, with the levels ascending."""
    if isinstance(result, ZSet):
        return result.map(lambda value: (value,))
    places = [order.index(level) for level in sorted(order)]
    return ZSet.of((tuple(path[place] for place in places), weight) for path, weight in result)
