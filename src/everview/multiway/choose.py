"""Choosing: the order in which each delta query binds its variables, and the indexes for this order.

A query costs what it proposes: for every prefix the values of its smallest extender. Estimates come from how many rows
a relation has and how many different values each of its columns; the order that proposes least wins, but one that
needs fewer new indexes is preferred if it proposes hardly more. Choosing never changes a join's result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import factorial, prod, sqrt

import numpy as np

from everview.operators.multijoin import Order, Query
from everview.zset.batch import Batch

HARDLY_MORE = 1.5  # times the proposals that are worth an index less
EXHAUSTIVE = 1000  # orders times atoms that are tried, for one delta query
Fields = tuple[int, ...]


@dataclass(frozen=True)
class Statistics:
    """The sizes of a relation: its rows, and for each column the number of values and the most rows of one value."""

    rows: float
    distinct: tuple[float, ...]
    degrees: tuple[int, ...] = ()

    @classmethod
    def of(cls, relation: Batch) -> Statistics:
        """The statistics of the rows that a relation holds now."""
        schema = relation.schema
        found = [
            np.unique(relation.rows[:, schema.words(c)], axis=0, return_counts=True)[1] for c in range(len(schema))
        ]
        return cls(len(relation), tuple(c.size for c in found), tuple(int(c.max(initial=0)) for c in found))

    def select(self, columns: Sequence[int]) -> Statistics:
        """The statistics of some columns."""
        degrees = tuple(self.degrees[c] for c in columns) if self.degrees else ()
        return Statistics(self.rows, tuple(self.distinct[c] for c in columns), degrees)

    @classmethod
    def unknown(cls, columns: int) -> Statistics:
        """The statistics assumed for a relation that has not been measured."""
        return cls(1e6, (1e5,) * columns)

    def fan(self, bound: Sequence[int], column: int) -> float:
        """The estimated number of values of a column for one value of some others.

        Changes come to where many rows are: so between the mean and the most rows that a value has.
        """
        mean = max(1.0, self._combinations((*bound, column)) / self._combinations(bound))
        if len(bound) != 1 or not self.degrees:
            return mean
        return sqrt(mean * max(mean, min(self.degrees[bound[0]], self.distinct[column])))

    def _combinations(self, columns: Sequence[int]) -> float:
        return max(1.0, min(self.rows, prod(self.distinct[c] for c in columns)))


@dataclass(frozen=True)
class MeasuredAtom:
    """An atom to choose an order for: the stream it reads, its variables, and the statistics of its rows."""

    stream: int
    variables: Fields
    statistics: Statistics
    known: bool = False


@dataclass(frozen=True)
class _Candidate:
    order: tuple[int, ...]
    proposals: float
    new: int
    indexes: tuple[Order | None, ...]


@dataclass(frozen=True)
class Choice:
    """The delta queries of a join, and the reasons for their orders."""

    queries: tuple[Query, ...]
    reasons: tuple[str, ...]


def choose(
    relations: Sequence[MeasuredAtom],
    names: Sequence[str],
    existing: Mapping[int, Sequence[Order]] | None = None,
    order: Sequence[int] | None = None,
) -> Choice:
    """One delta query an atom. ``existing`` are indexes that are there, by stream; ``order`` fixes that of binding."""
    have = {stream: list(orders) for stream, orders in (existing or {}).items()}
    chosen: list[_Candidate] = []
    reasons: list[str] = []
    for seed in range(len(relations)):
        best = _best(relations, seed, have, order)
        chosen.append(best)
        _take(relations, best, have)
        reasons.append(_reason(relations, names, seed, best, fixed=order is not None))
    return Choice(
        tuple(
            Query(best.order, tuple(o or _own(relations[a], have) for a, o in enumerate(best.indexes)))
            for best in chosen
        ),
        tuple(reasons),
    )


def _best(
    relations: Sequence[MeasuredAtom], seed: int, have: Mapping[int, Sequence[Order]], fixed: Sequence[int] | None
) -> _Candidate:
    orders = [_rest(relations, seed, fixed)] if fixed is not None else list(_orders(relations, seed))
    candidates = [_candidate(relations, seed, order, have) for order in orders]
    least = min(candidate.proposals for candidate in candidates)
    near = [candidate for candidate in candidates if candidate.proposals <= HARDLY_MORE * least]
    return min(near, key=lambda candidate: (candidate.new, candidate.proposals, candidate.order))


def _rest(relations: Sequence[MeasuredAtom], seed: int, order: Sequence[int]) -> tuple[int, ...]:
    return tuple(variable for variable in order if variable not in relations[seed].variables)


def _orders(relations: Sequence[MeasuredAtom], seed: int) -> Iterator[tuple[int, ...]]:
    """Orders of the free variables: where possible, the next one shares an atom with a variable bound before."""
    every = {variable for relation in relations for variable in relation.variables}
    free = every - {*relations[seed].variables}
    if factorial(len(free)) * len(relations) > EXHAUSTIVE:
        yield _greedy(relations, seed, free)
        return

    def grow(bound: set[int], order: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        left = free - {*order}
        if not left:
            yield order
        for variable in _next(relations, bound, left):
            yield from grow({*bound, variable}, (*order, variable))

    yield from grow({*relations[seed].variables}, ())


def _next(relations: Sequence[MeasuredAtom], bound: set[int], left: set[int]) -> list[int]:
    """Variables that share an atom with a bound one; if there are none, all."""
    near = {v for r in relations if bound & {*r.variables} for v in r.variables if v in left}
    return sorted(near or left)


def _greedy(relations: Sequence[MeasuredAtom], seed: int, free: set[int]) -> tuple[int, ...]:
    bound, order = {*relations[seed].variables}, list[int]()
    while len(order) < len(free):
        left = free - {*order}
        best = min(_next(relations, bound, left), key=lambda v: (_fan(relations, seed, bound, v)[0], v))
        bound.add(best)
        order.append(best)
    return tuple(order)


def _fan(relations: Sequence[MeasuredAtom], seed: int, bound: set[int], variable: int) -> tuple[float, float]:
    """The estimated numbers of a variable's values for one prefix: proposed ones, and ones in all extenders."""
    fans: list[float] = []
    values = 1.0
    for atom, relation in enumerate(relations):
        if variable not in relation.variables:
            continue
        column = relation.variables.index(variable)
        values = max(values, relation.statistics.distinct[column])
        if atom != seed:
            before = [c for c, v in enumerate(relation.variables) if v in bound]
            fans.append(relation.statistics.fan(before, column))
    least = min(fans)
    return least, least * prod(min(1.0, fan / values) for fan in sorted(fans)[1:])


def _candidate(
    relations: Sequence[MeasuredAtom], seed: int, order: tuple[int, ...], have: Mapping[int, Sequence[Order]]
) -> _Candidate:
    bound, prefixes, proposals = {*relations[seed].variables}, 1.0, 0.0
    for variable in order:
        proposed, matched = _fan(relations, seed, bound, variable)
        proposals += prefixes * proposed
        prefixes *= matched
        bound.add(variable)
    indexes: list[Order | None] = []
    new: set[tuple[int, Order]] = set()
    for atom, relation in enumerate(relations):
        if atom == seed:
            indexes.append(None)
            continue
        there = next((o for o in have.get(relation.stream, ()) if _serves(relation, o, seed, order, relations)), None)
        made = there or next(
            (o for s, o in new if s == relation.stream and _serves(relation, o, seed, order, relations)), None
        )
        if made is None:
            made = _fresh(relation, relations[seed], order)
            new.add((relation.stream, made))
        indexes.append(made)
    return _Candidate(order, proposals, len(new), tuple(indexes))


def _serves(
    relation: MeasuredAtom, index: Order, seed: int, order: tuple[int, ...], relations: Sequence[MeasuredAtom]
) -> bool:
    """Whether an index has the variables of the seed first, and then the others in the order of binding."""
    if sorted(index.fields) != list(range(len(relation.variables))):
        return False
    has = [relation.variables[field] for field in index.fields]
    given = {*relations[seed].variables} & {*has}
    rest = [variable for variable in order if variable in has]
    return {*has[: len(given)]} == given and has[len(given) :] == rest


def _fresh(relation: MeasuredAtom, seed: MeasuredAtom, order: tuple[int, ...]) -> Order:
    given = [c for c, v in enumerate(relation.variables) if v in seed.variables]
    rest = [relation.variables.index(v) for v in order if v in relation.variables]
    return Order((*given, *rest))


def _take(relations: Sequence[MeasuredAtom], best: _Candidate, have: dict[int, list[Order]]) -> None:
    for relation, index in zip(relations, best.indexes, strict=True):
        if index is not None and index not in have.setdefault(relation.stream, []):
            have[relation.stream].append(index)


def _own(relation: MeasuredAtom, have: Mapping[int, Sequence[Order]]) -> Order:
    """The order in which a seed's changes arrive: of an index kept anyway, or else of the atom's fields."""
    whole = sorted(range(len(relation.variables)))
    fitting = [order for order in have.get(relation.stream, ()) if sorted(order.fields) == whole]
    return fitting[0] if fitting else Order(tuple(whole))


def _reason(
    relations: Sequence[MeasuredAtom], names: Sequence[str], seed: int, best: _Candidate, *, fixed: bool
) -> str:
    seeded = ", ".join(names[v] for v in relations[seed].variables)
    if not best.order:
        return f"change of atom {seed + 1} ({seeded}): binds every variable"
    bound = ", ".join(names[v] for v in best.order)
    why = "the order that was asked for" if fixed else f"about {best.proposals:,.0f} proposals a row"
    if not fixed and not all(relation.known for relation in relations):
        why += ", of relations not seen yet"
    made = f"{best.new} new index{'' if best.new == 1 else 'es'}" if best.new else "indexes that are there"
    return f"change of atom {seed + 1} ({seeded}): binds {bound}; {why}; {made}"
