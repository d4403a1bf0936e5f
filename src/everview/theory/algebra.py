"""Groups, lattices, times and frontiers: the algebra that changes and moments obey.

Changes form a commutative **group**: they add in any order, and every change has an opposite that undoes it.
Moments form a **lattice** under a partial order: two of them may be incomparable, but always have a least
moment after both (`join`) and a greatest before both (`meet`).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Generic, Protocol, Self, TypeVar

from everview.doors import doors
from everview.errors import SchemaError, WrongType, shown


class AbelianGroup(Protocol):
    """Elements that add and have opposites.

    Laws, with a zero: ``(a + b) + c == a + (b + c)``, ``a + b == b + a``, ``a + zero == a``,
    ``a + (-a) == zero``.
    """

    def __add__(self, other: Self, /) -> Self: ...
    def __neg__(self) -> Self: ...


class PartialOrder(Protocol):
    """Elements of which one may come before another.

    Laws: ``a <= a``; ``a <= b`` and ``b <= a`` only if ``a == b``; ``a <= b`` and ``b <= c`` give ``a <= c``.
    """

    def __le__(self, other: Self, /) -> bool: ...


class Lattice(PartialOrder, Protocol):
    """A partial order with least upper and greatest lower bounds.

    Laws: both are associative, commutative and idempotent; each absorbs the other,
    ``a.join(a.meet(b)) == a == a.meet(a.join(b))``; and ``a <= b`` exactly when ``a.join(b) == b``.
    """

    def join(self, other: Self, /) -> Self: ...
    def meet(self, other: Self, /) -> Self: ...


G = TypeVar("G", bound=AbelianGroup)
P = TypeVar("P", bound=PartialOrder)
L = TypeVar("L", bound=Lattice)


def total(zero: G, elements: Iterable[G]) -> G:
    """The sum of all elements, in whatever order they come.

    >>> total(0, [3, -1, 5])
    7
    """
    return reduce(operator.add, elements, zero)


def less_than(a: P, b: P) -> bool:
    """Strictly before.

    >>> less_than(Time(0, 1), Time(1, 1)), less_than(Time(1, 1), Time(1, 1))
    (True, False)
    """
    return a <= b and not b <= a


def comparable(a: P, b: P) -> bool:
    """Whether one of the two comes before the other, or they are equal.

    >>> comparable(Time(0, 2), Time(1, 1))
    False
    """
    return a <= b or b <= a


def join_all(first: L, *others: L) -> L:
    """The least upper bound.

    >>> join_all(Time(0, 13), Time(11, 0))
    Time(11, 13)
    """
    return reduce(lambda a, b: a.join(b), others, first)


def meet_all(first: L, *others: L) -> L:
    """The greatest lower bound.

    >>> meet_all(Time(0, 13), Time(11, 0), Time(3, 4))
    Time(0, 0)
    """
    return reduce(lambda a, b: a.meet(b), others, first)


@doors()
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Time:
    """A moment: the epoch, and one iteration for each scope inside which the clock runs; product order.

    A moment is before another if it is in every coordinate. So a change at iteration 2 of epoch 0 and one
    at iteration 1 of epoch 1 are not ordered; what they make together belongs at their join.

    >>> Time(0, 0) <= Time(0, 1) <= Time(1, 1)
    True
    >>> Time(0, 2) <= Time(1, 1), Time(1, 1) <= Time(0, 2)
    (False, False)

    Sorting by `coordinates` is a total order that extends this one.
    """

    coordinates: tuple[int, ...]

    def __init__(self, epoch: int, *iterations: int) -> None:
        coordinates = (epoch, *iterations)
        if min(coordinates) < 0:
            raise SchemaError(f"a time counts from 0, not {coordinates}", hint="epochs and iterations are unsigned")
        object.__setattr__(self, "coordinates", coordinates)

    @classmethod
    def of(cls, time: Time | int | Iterable[int]) -> Time:
        """A time written as itself, as an epoch, or as a tuple.

        >>> Time.of(3), Time.of((3, 1)), Time.of(Time(4))
        (Time(3), Time(3, 1), Time(4))
        """
        if isinstance(time, Time):
            return time
        if isinstance(time, int):
            return cls(time)
        coordinates = tuple(time)
        if not coordinates:
            raise SchemaError("() is no time: it has no epoch", hint="write (epoch, iteration)")
        return cls(*coordinates)

    @property
    def epoch(self) -> int:
        """The tick of the root circuit."""
        return self.coordinates[0]

    @property
    def iterations(self) -> tuple[int, ...]:
        """How often each enclosing scope went round, the outermost first."""
        return self.coordinates[1:]

    def _pairs(self, other: Time) -> Iterator[tuple[int, int]]:
        if not isinstance(other, Time):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise WrongType(f"{self} is compared with {shown(other)}, which is no time", hint="write Time(epoch)")
        if len(self.coordinates) != len(other.coordinates):
            raise SchemaError(
                f"{self} and {other} belong to scopes of different depth", hint="enter or leave a scope first"
            )
        return zip(self.coordinates, other.coordinates, strict=True)

    def __le__(self, other: Time) -> bool:
        return all(a <= b for a, b in self._pairs(other))

    def __lt__(self, other: Time) -> bool:
        return self <= other and self != other

    def __ge__(self, other: Time) -> bool:
        return other <= self

    def __gt__(self, other: Time) -> bool:
        return other < self

    def join(self, other: Time) -> Time:
        """The least moment at or after both.

        >>> Time(0, 2).join(Time(1, 1))
        Time(1, 2)
        """
        return Time(*(max(a, b) for a, b in self._pairs(other)))

    def meet(self, other: Time) -> Time:
        """The greatest moment at or before both.

        >>> Time(0, 2).meet(Time(1, 1))
        Time(0, 1)
        """
        return Time(*(min(a, b) for a, b in self._pairs(other)))

    def enter(self) -> Time:
        """The first moment inside a nested scope.

        >>> Time(5).enter()
        Time(5, 0)
        """
        return Time(*self.coordinates, 0)

    def leave(self) -> Time:
        """The moment of the surrounding scope; undoes `enter`.

        >>> Time(5, 3).leave()
        Time(5)
        """
        if not self.iterations:
            raise SchemaError(f"{self} is in no scope that it could leave", hint="enter one first")
        return Time(*self.coordinates[:-1])

    def next_iteration(self) -> Time:
        """The next iteration of the innermost scope; at the root, the next epoch.

        >>> Time(5, 3).next_iteration(), Time(5).next_iteration()
        (Time(5, 4), Time(6))
        """
        return Time(*self.coordinates[:-1], self.coordinates[-1] + 1)

    def __iter__(self) -> Iterator[int]:
        return iter(self.coordinates)

    def __len__(self) -> int:
        return len(self.coordinates)

    def __repr__(self) -> str:
        return f"Time({', '.join(map(str, self.coordinates))})"


@doors()
@dataclass(frozen=True, repr=False)  # no slots, as of `Frontier`
class AltNeu(Generic[L]):
    """One of the two moments of a time: ``alt``, when collections change, and ``neu``, just after it.

    Of one time, alt comes before neu; to every other time the two are the same. Nothing lies between them.

    >>> alt(Time(3)) < neu(Time(3)) < alt(Time(4))
    True

    These moments are a lattice, whatever the lattice of times. Three laws hold only if the times are totally
    ordered: it is distributive, ``neu`` keeps joins, ``alt`` keeps meets. Of times that are not ordered:

    >>> neu(Time(0, 13)).join(neu(Time(11, 0)))
    alt(Time(11, 13))

    What came at alt and went at neu then comes and goes at one moment, and nothing is seen of it.
    """

    time: L
    neu: bool = False

    def __le__(self, other: AltNeu[L]) -> bool:
        return self.neu <= other.neu if self.time == other.time else self.time <= other.time

    def __lt__(self, other: AltNeu[L]) -> bool:
        return self <= other and self != other

    def __ge__(self, other: AltNeu[L]) -> bool:
        return other <= self

    def __gt__(self, other: AltNeu[L]) -> bool:
        return other < self

    def join(self, other: AltNeu[L]) -> AltNeu[L]:
        """The least moment at or after both: neu if one of those at its time is.

        >>> alt(Time(3)).join(neu(Time(3))), neu(Time(3)).join(alt(Time(4)))
        (neu(Time(3)), alt(Time(4)))
        """
        time = self.time.join(other.time)
        return AltNeu(time, any(each.neu for each in (self, other) if each.time == time))

    def meet(self, other: AltNeu[L]) -> AltNeu[L]:
        """The greatest moment at or before both: neu if all of those at its time are.

        >>> alt(Time(3)).meet(neu(Time(3))), neu(Time(3)).meet(alt(Time(4)))
        (alt(Time(3)), neu(Time(3)))
        """
        time = self.time.meet(other.time)
        return AltNeu(time, all(each.neu for each in (self, other) if each.time == time))

    def __repr__(self) -> str:
        return f"{'neu' if self.neu else 'alt'}({shown(self.time)})"


def alt(time: L) -> AltNeu[L]:
    """The moment of a time at which collections change."""
    return AltNeu(time)


def neu(time: L) -> AltNeu[L]:
    """The moment just after it."""
    return AltNeu(time, True)


@doors()
@dataclass(frozen=True, eq=False, repr=False)  # no slots: with them ``Frontier[Time]()`` fails
class Frontier(Generic[P]):
    """An antichain: the least of the moments that may still come, none before another.

    >>> Frontier.of([Time(0, 2), Time(1, 1), Time(1, 3)])
    Frontier([Time(0, 2), Time(1, 1)])
    """

    elements: tuple[P, ...] = ()

    @classmethod
    def of(cls, elements: Iterable[P]) -> Frontier[P]:
        return reduce(lambda frontier, element: frontier.insert(element), elements, cls())

    def insert(self, element: P) -> Frontier[P]:
        """The frontier with an element added and later ones dropped; unchanged if it has one at or before the element.

        >>> Frontier.of([Time(0, 2), Time(1, 1)]).insert(Time(0, 1))
        Frontier([Time(0, 1)])
        """
        if self.less_equal(element):
            return self
        return Frontier((*(kept for kept in self.elements if not element <= kept), element))

    def less_equal(self, element: P) -> bool:
        """Whether this moment may still come: one of the frontier is at or before it.

        >>> frontier = Frontier.of([Time(0, 2), Time(1, 1)])
        >>> frontier.less_equal(Time(1, 5)), frontier.less_equal(Time(0, 1))
        (True, False)
        """
        return any(bound <= element for bound in self.elements)

    def less_than(self, element: P) -> bool:
        """Whether one of the frontier is strictly before this moment."""
        return any(less_than(bound, element) for bound in self.elements)

    def __iter__(self) -> Iterator[P]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __contains__(self, element: object) -> bool:
        return element in self.elements

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frontier):
            return NotImplemented
        return frozenset(self.elements) == frozenset(other.elements)  # pyright: ignore[reportUnknownArgumentType]

    def __hash__(self) -> int:
        return hash(frozenset(self.elements))

    def __repr__(self) -> str:
        return f"Frontier({list(self.elements)})"
