"""Orders of joins along keys: where no join can have more rows than one of its relations.

A row meets at most one row of a relation that is joined by its whole key. So relations that refer to each other's
keys, as orders to customers and lines to orders, are joined one after the other without ever growing, also where their
graph is cyclic: then joining all of them at once saves nothing, and needs an index of the largest one for each way
through the cycle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from everview.plan.conditions import conjuncts
from everview.plan.node import Plan
from everview.plan.nodes import Filter, Project, Scan
from everview.scalars.expressions import Call, Column, Expression

Keys = Mapping[str, tuple[str, ...]]  # by relation the columns that tell its rows apart
MOST = 8  # relations whose orders are tried
LARGER = 10.0  # times as many rows has a relation as one that it refers to


@dataclass(frozen=True)
class KeyedRelation:
    """A relation to be joined: its values, numbered over all relations, those of its key, and how much is left."""

    values: frozenset[int]
    key: frozenset[int]  # none if it is unknown
    left: float  # the share of its rows that conditions leave

    def refers_to(self, other: KeyedRelation) -> bool:
        """Whether a row of this relation has the key of a row of the other one, and not the other way round."""
        if not other.key or not other.key <= self.values:
            return False
        return not (self.key and self.key <= other.values)


@dataclass(frozen=True)
class _Joined:
    """Relations that have been joined, and how many rows all joins so far may have."""

    order: tuple[int, ...]
    values: frozenset[int]
    largest: int  # the relation of which every result has another row
    left: float
    rows: float


def order_along_keys(
    relations: Sequence[Plan], values: Sequence[Sequence[int]], keys: Keys, rows: Sequence[float] | None = None
) -> list[int] | None:
    """The order in which joins keep least, if none of them can grow; None if there is no such order.

    ``values`` numbers the columns of each relation so that columns are equal if they have the same number. ``rows`` is
    how many rows the tables have, where that is known; else it is guessed by who refers to whom.
    """
    if len(relations) > MOST:
        return None
    keyed = [
        KeyedRelation(frozenset(own), frozenset(own[column] for column in key_of(relation, keys)), share_left(relation))
        for relation, own in zip(relations, values, strict=True)
    ]
    sizes = rows or [LARGER ** _depth(keyed, number) for number in range(len(keyed))]
    joined = [_alone(keyed, start) for start in range(len(keyed))]
    for _ in keyed[1:]:
        joined = _least([after for before in joined for after in _extended(keyed, sizes, before)])
    return list(min(joined, key=_rank).order) if joined else None


def _rank(joined: _Joined) -> tuple[float, tuple[int, ...]]:
    return joined.rows, joined.order


def _least(orders: Sequence[_Joined]) -> list[_Joined]:
    """Of orders of the same relations those that can be the beginning of the least."""
    least: dict[tuple[frozenset[int], int], _Joined] = {}
    for joined in sorted(orders, key=_rank):
        least.setdefault((frozenset(joined.order), joined.largest), joined)
    return list(least.values())


def key_of(plan: Plan, keys: Keys) -> tuple[int, ...]:
    """The columns of a table's key in a plan that takes rows and columns of the table away; none if one is gone."""
    match plan:
        case Scan(relation, schema):
            return tuple(schema.index(name) for name in keys.get(relation, ()))
        case Filter(input_):
            return key_of(input_, keys)
        case Project(input_, expressions):
            places = {e.index: place for place, e in enumerate(expressions) if isinstance(e, Column)}
            below = key_of(input_, keys)
            return tuple(places[column] for column in below) if all(c in places for c in below) else ()
        case _:
            return ()


def share_left(plan: Plan) -> float:
    """The share of a relation's rows that its conditions leave, as a guess."""
    match plan:
        case Filter(input_, predicate):
            return share_left(input_) * prod(map(_left_by, conjuncts(predicate)))
        case Project(input_):
            return share_left(input_)
        case _:
            return 1.0


def _left_by(condition: Expression) -> float:
    match condition:
        case Call("equal"):
            return 0.1
        case Call("like" | "in"):
            return 0.2
        case Call("not_equal" | "not" | "is_not_null"):
            return 1.0
        case _:
            return 0.4


def _depth(relations: Sequence[KeyedRelation], number: int, seen: tuple[int, ...] = ()) -> int:
    """How many relations refer to each other in a row, from this one on."""
    referred = [n for n, other in enumerate(relations) if n not in seen and relations[number].refers_to(other)]
    return 1 + max((_depth(relations, n, (*seen, number)) for n in referred if n != number), default=0)


def _alone(relations: Sequence[KeyedRelation], start: int) -> _Joined:
    return _Joined((start,), relations[start].values, start, relations[start].left, 0.0)


def _extended(relations: Sequence[KeyedRelation], sizes: Sequence[float], joined: _Joined) -> Iterator[_Joined]:
    """All ways to join one relation more without growing."""
    unique = relations[joined.largest].key
    for number, relation in enumerate(relations):
        if number in joined.order:
            continue
        if relation.key and relation.key <= joined.values:
            largest = joined.largest
        elif unique and unique <= relation.values:
            largest = number
        else:
            continue
        left = joined.left * relation.left
        rows = joined.rows + sizes[largest] * left
        yield _Joined((*joined.order, number), joined.values | relation.values, largest, left, rows)
