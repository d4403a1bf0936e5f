"""Z-sets and traces whose entries carry a timestamp: the changes of a collection, each at its moment.

What a collection holds at a moment is the sum of all changes at or before it, in the partial order of times.

Invariant, from construction on: no element is listed twice at the same time, no weight is zero, all times
belong to scopes of the same depth.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from everview.doors import doors
from everview.errors import SchemaError, WrongType, shown
from everview.theory.algebra import Time
from everview.zset.elements import identity, position
from everview.zset.indexed import IndexedZSet
from everview.zset.reference import ZSet, pairs, several
from everview.zset.tables import table

AnyTime = Time | int | tuple[int, ...]  # all accepted by `Time.of`
Triple = tuple[Any, Time, int]  # element, time, weight
NO_VALUE = ()  # what a trace of a plain Z-set associates with its keys


@doors()
class TimedZSet:
    """Triples of element, timestamp and weight; frozen. A time may be written as an integer or a tuple.

    >>> changes = TimedZSet.of([("a", (0, 0), 1), ("a", (1, 1), -1), ("b", (0, 1), 2), ("b", (0, 1), -1)])
    >>> changes
    TimedZSet([('a', (0, 0), 1), ('a', (1, 1), -1), ('b', (0, 1), 1)])
    >>> changes.up_to((0, 5))
    ZSet({'a': 1, 'b': 1})

    With pairs for elements it is an indexed Z-set: it is read by key, then by value, then by time.
    """

    __slots__ = ("_moments",)
    _moments: dict[Time, ZSet]

    def __init__(self, triples: Iterable[tuple[Any, AnyTime, int]] = ()) -> None:
        entries: dict[Time, list[tuple[Any, int]]] = {}
        for element, time, weight in _entries(triples, 3, "triple of an element, a time and a weight"):
            entries.setdefault(Time.of(time), []).append((element, weight))
        moments = {time: zset for time, pairs in entries.items() if (zset := ZSet.of(pairs))}
        if len({len(time) for time in entries}) > 1:
            raise SchemaError(
                "times of different depth in one Z-set", hint="enter or leave a scope with all its elements"
            )
        object.__setattr__(self, "_moments", moments)

    @classmethod
    def of(cls, triples: Iterable[tuple[Any, AnyTime, int]]) -> TimedZSet:
        """The sum of weighted elements, each at its time, in any order and as often as they come."""
        return cls(triples)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Z-set is frozen; adding gives a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return TimedZSet, (list(self),)

    # -- sequential access: by element, then by time

    def __iter__(self) -> Iterator[Triple]:
        triples = [(e, time, w) for time, zset in self._moments.items() for e, w in zset]
        return iter(sorted(triples, key=lambda triple: (position(triple[0]), triple[1].coordinates)))

    def __len__(self) -> int:
        return sum(len(zset) for zset in self._moments.values())

    def times(self) -> list[Time]:
        """The moments at which something changed, in a total order that extends theirs."""
        return sorted(self._moments, key=lambda time: time.coordinates)

    def at(self, time: AnyTime) -> ZSet:
        """The change at exactly this moment.

        >>> TimedZSet.of([("a", 0, 1), ("b", 1, 1)]).at(1)
        ZSet({'b': 1})
        """
        return self._moments.get(Time.of(time), ZSet())

    def up_to(self, time: AnyTime) -> ZSet:
        """The sum of the changes at or before this moment; those it cannot be compared with are not.

        >>> changes = TimedZSet.of([("a", (0, 2), 1), ("b", (1, 1), 1)])
        >>> changes.up_to((1, 1)), changes.up_to((1, 2))
        (ZSet({'b': 1}), ZSet({'a': 1, 'b': 1}))
        """
        until = Time.of(time)
        return ZSet.of(entry for moment, zset in self._moments.items() if moment <= until for entry in zset)

    def consolidate(self) -> ZSet:
        """The sum of all changes, without times.

        >>> TimedZSet.of([("a", 0, 1), ("b", 0, 1), ("a", 1, -1)]).consolidate()
        ZSet({'b': 1})
        """
        return ZSet.of(entry for zset in self._moments.values() for entry in zset)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimedZSet):
            return NotImplemented
        return self._moments == other._moments

    def __hash__(self) -> int:
        return hash(frozenset(self._moments.items()))

    # -- a group, and operators at every moment

    def __add__(self, other: TimedZSet) -> TimedZSet:
        if not isinstance(other, TimedZSet):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return TimedZSet([*self, *other])

    def __neg__(self) -> TimedZSet:
        return self.lift(lambda zset: -zset)

    def __sub__(self, other: TimedZSet) -> TimedZSet:
        if not isinstance(other, TimedZSet):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return TimedZSet([*self, *((element, time, -weight) for element, time, weight in other)])

    def lift(self, operator: Callable[[ZSet], ZSet]) -> TimedZSet:
        """The operator at every moment: ``z.lift(f).at(t) == f(z.at(t))``, for an f that keeps zero.

        >>> TimedZSet.of([(0, 0, 1), (1, 0, 2), (2, 0, -1), (3, 0, 0)]).lift(ZSet.distinct)
        TimedZSet([(0, 0, 1), (1, 0, 1)])
        """
        return TimedZSet(
            (element, time, weight)
            for time, zset in self._moments.items()
            for element, weight in pairs(several(operator, zset))
        )

    def map(self, function: Callable[[Any], Any]) -> TimedZSet:
        """Replace every element by its image, at its time."""
        return self.lift(lambda zset: zset.map(function))

    def filter(self, predicate: Callable[[Any], bool]) -> TimedZSet:
        """Keep the elements for which the predicate holds.

        >>> TimedZSet.of([(0, 0, 1), (1, 0, 2), (2, 1, -3)]).filter(lambda x: x >= 1)
        TimedZSet([(1, 0, 2), (2, 1, -3)])
        """
        return self.lift(lambda zset: zset.filter(predicate))

    def index_with(self, key: Callable[[Any], Any]) -> TimedZSet:
        """Pair every element with its key: the timed form of an indexed Z-set.

        >>> edges = TimedZSet.of([((0, 1, 1), 0, 1), ((1, 2, 1), 1, 1), ((1, 3, 2), 1, -1)])
        >>> edges.index_with(lambda edge: edge[0])
        TimedZSet([((0, (0, 1, 1)), 0, 1), ((1, (1, 2, 1)), 1, 1), ((1, (1, 3, 2)), 1, -1)])
        """
        return self.map(lambda element: (key(element), element))

    # -- display

    def __repr__(self) -> str:
        triples = ", ".join(f"({element!r}, {_written(time)}, {weight})" for element, time, weight in self)
        return f"TimedZSet([{triples}])"

    def _repr_html_(self) -> str:
        return table(["element", "time", "weight"], self, len(self))


def _written(time: Time) -> str:
    return repr(time.coordinates) if time.iterations else str(time.epoch)


@doors()
class ReferenceTrace:
    """A collection of changes as 4-tuples of key, value, time and weight; frozen, inserting gives a new one.

    >>> trace = ReferenceTrace.of([("b", 2, 0, 1), ("a", 1, 1, -1), ("a", 1, 0, 1), ("a", 0, 0, 1)])
    >>> trace
    ReferenceTrace([('a', 0, 0, 1), ('a', 1, 0, 1), ('a', 1, 1, -1), ('b', 2, 0, 1)])
    >>> trace.keys(), trace.values("a"), trace.times("a", 1)
    (['a', 'b'], [0, 1], [(Time(0), 1), (Time(1), -1)])
    """

    __slots__ = ("_index",)
    _index: TimedZSet  # of (key, value) pairs

    def __init__(self, changes: Iterable[tuple[Any, Any, AnyTime, int]] = ()) -> None:
        entries = _entries(changes, 4, "entry of a key, a value, a time and a weight")
        index = TimedZSet(((key, value), time, weight) for key, value, time, weight in entries)
        object.__setattr__(self, "_index", index)

    @classmethod
    def of(cls, changes: Iterable[tuple[Any, Any, AnyTime, int]]) -> ReferenceTrace:
        return cls(changes)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a trace is frozen; inserting gives a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return ReferenceTrace, (list(self),)

    # -- inserting

    def insert(self, changes: TimedZSet) -> ReferenceTrace:
        """With these changes; their elements are keys without a value.

        >>> ReferenceTrace().insert(TimedZSet.of([(5, (0, 1), 1)]))
        ReferenceTrace([(5, (), (0, 1), 1)])
        """
        return ReferenceTrace([*self, *((element, NO_VALUE, time, w) for element, time, w in changes)])

    def insert_indexed(self, changes: TimedZSet) -> ReferenceTrace:
        """With these changes; their elements are pairs of key and value.

        >>> ReferenceTrace().insert_indexed(TimedZSet.of([(("a", 1), 0, 1)]))
        ReferenceTrace([('a', 1, 0, 1)])
        """
        keyed = ((_entry(element, 2, "pair of a key and a value"), time, w) for element, time, w in changes)
        return ReferenceTrace([*self, *((key, value, time, w) for (key, value), time, w in keyed)])

    def append(self, changes: ZSet | IndexedZSet, at: AnyTime) -> ReferenceTrace:
        """With these changes, all at one moment.

        >>> ReferenceTrace().append(ZSet({"x": 1}), at=0).append(ZSet({"x": -1}), at=1)
        ReferenceTrace([('x', (), 0, 1), ('x', (), 1, -1)])
        """
        if isinstance(changes, ZSet):
            return self.insert(TimedZSet((element, at, weight) for element, weight in changes))
        pairs = ((key, value) for key in changes.keys() for value in changes.values(key))  # noqa: SIM118
        return self.insert_indexed(TimedZSet(((key, e), at, weight) for key, (e, weight) in pairs))

    # -- sequential access: by key, then by value, then by time

    def __iter__(self) -> Iterator[tuple[Any, Any, Time, int]]:
        return ((key, value, time, weight) for (key, value), time, weight in self._index)

    def __len__(self) -> int:
        return len(self._index)

    def keys(self) -> list[Any]:
        """Every key that something ever changed for, in order."""
        return _runs(key for key, _, _, _ in self)

    def values(self, key: Any) -> list[Any]:
        """Every value ever associated with a key, in order."""
        wanted = identity(key)
        return _runs(value for kept, value, _, _ in self if identity(kept) == wanted)

    def times(self, key: Any, value: Any = NO_VALUE) -> list[tuple[Time, int]]:
        """The moments at which a key and value changed, with the weights of the changes."""
        wanted = identity((key, value))
        return [(time, weight) for pair, time, weight in self._index if identity(pair) == wanted]

    # -- its sums

    def up_to(self, time: AnyTime) -> IndexedZSet:
        """What the collection holds at a moment.

        >>> ReferenceTrace.of([("a", 1, (0, 2), 1), ("a", 2, (1, 1), 1)]).up_to((1, 1))
        IndexedZSet({'a': {2: 1}})
        """
        return IndexedZSet.of(self._index.up_to(time))

    def consolidate(self) -> ZSet:
        """The sum of all changes, as pairs of key and value without times.

        >>> ReferenceTrace.of([
        ...     (0, 0, 0, 1), (0, 0, 0, -1), (0, 1, 0, 1), (0, 1, 0, 1), (1, 2, 0, 2),
        ...     (1, 3, 0, 1), (1, 3, 0, -1), (1, 4, 0, -1), (2, 2, 0, 1), (2, 4, 0, 1),
        ... ]).consolidate()
        ZSet({(0, 1): 2, (1, 2): 2, (1, 4): -1, (2, 2): 1, (2, 4): 1})
        """
        return self._index.consolidate()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReferenceTrace):
            return NotImplemented
        return self._index == other._index

    def __hash__(self) -> int:
        return hash(self._index)

    # -- display

    def __repr__(self) -> str:
        rows = ", ".join(f"({key!r}, {value!r}, {_written(time)}, {w})" for key, value, time, w in self)
        return f"ReferenceTrace([{rows}])"

    def _repr_html_(self) -> str:
        return table(["key", "value", "time", "weight"], self, len(self))


def _entries(entries: Iterable[Any], size: int, what: str) -> Iterator[tuple[Any, ...]]:
    """The entries as tuples of this size; anything else is refused."""
    return (_entry(entry, size, what) for entry in entries)


def _entry(entry: Any, size: int, what: str) -> tuple[Any, ...]:
    if not isinstance(entry, tuple | list) or len(entry) != size:  # pyright: ignore[reportUnknownArgumentType]
        raise WrongType(f"{shown(entry)} is no {what}", hint=f"write a tuple of {size}")
    return tuple(entry)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _runs(ordered: Iterable[Any]) -> list[Any]:
    """Each of these elements once, in the order given."""
    seen: dict[Hashable, Any] = {}
    for element in ordered:
        seen.setdefault(identity(element), element)
    return list(seen.values())
