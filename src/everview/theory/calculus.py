"""Differentiate a collection, compute with its changes at the moments they happen, and integrate what comes out.

Every tick ``t`` has two moments, ``alt(t) < neu(t) < alt(t+1)``. A collection enters at alt: there it changes. Its
derivative holds the change of a tick at alt and nothing from neu on. So what a derivative meets is looked up once, as
it is then, and needs no state; and to let it miss what changes in its own tick, that is delayed to neu. Integrating
takes the changes at alt for changes of the tick.

Invariant: a collection is the sum of its changes at all moments so far. A join keeps to that at every moment, so it
changes by ``Δa ⋈ b + a ⋈ Δb + Δa ⋈ Δb``, with both sides as they were the moment before.

This is for totally ordered time, so for the root of a circuit: inside a child there are iterations besides the ticks,
and a cut between alt and neu loses what two incomparable times make together; see `everview.theory.algebra.AltNeu`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from everview.circuit.circuit import Circuit
from everview.circuit.joined import On, Select, sides
from everview.circuit.stream import Names, Stream, StreamTrace, UserFunction
from everview.doors import doors
from everview.errors import CircuitError, SchemaError
from everview.operators.arrange import Arrange
from everview.operators.join import LEFT, JoinChanges, JoinTrace
from everview.operators.operator import Moment
from everview.types import Schema


class Kept(NamedTuple):
    """The contents of a collection before or after the tick; a trace, once the key is known."""

    changes: Stream
    moment: Moment


Part = Stream | Kept  # of a collection's contents: the changes at one moment, or what was kept


@doors()
@dataclass(frozen=True, eq=False)
class Moments:
    """The moments alt and neu of every tick of a circuit: a scope for computing with changes.

    >>> circuit = Circuit()
    >>> order = circuit.source("order", "item STRING NOT NULL")
    >>> price = circuit.source("price", "item STRING NOT NULL, cents BIGINT NOT NULL")
    >>> moments = Moments(circuit)
    >>> bill = moments.differentiate(order).join_map(moments.enter(price), on="item")
    >>> bill.integrate().sink("bill")

    An order meets the price of its tick. What prices do later does not touch the bill.
    """

    circuit: Circuit

    def __post_init__(self) -> None:
        if self.circuit.parent is not None:
            raise CircuitError(
                "alt and neu are moments of totally ordered time, and a child has iterations besides the ticks",
                hint="differentiate at the root; inside a child, use join, which holds matches until their time",
            )

    def enter(self, stream: Stream) -> Collection:
        """A collection, whose changes are at alt."""
        return Collection(self, self._own(stream), None)

    def differentiate(self, stream: Stream) -> Collection:
        """Its derivative: the change of a tick at alt, the opposite at neu."""
        return Collection(self, self._own(stream), None, fleeting=True)

    def _own(self, stream: Stream) -> Stream:
        if stream.circuit is not self.circuit:
            raise CircuitError(
                f"{stream!r} is not of the circuit of these moments", hint="let a stream of a child leave it first"
            )
        return stream


@doors()
@dataclass(frozen=True, eq=False)
class Collection:
    """A collection at the moments of a circuit: its changes at alt, and those at neu.

    A ``fleeting`` one undoes at neu what it did at alt, so that it holds nothing between ticks and needs no trace.
    """

    moments: Moments
    alt: Stream | None
    later: Stream | None  # at neu, but for what is undone there
    fleeting: bool = False

    @property
    def neu(self) -> Stream | None:
        """The changes at neu."""
        return -self.alt if self.fleeting and self.alt is not None else self.later

    @property
    def schema(self) -> Schema:
        return self._some.schema

    # -- linear: the same at both moments

    def map(
        self, function: UserFunction, schema: Schema | str, *, columns: Names | None = None, by_row: bool = False
    ) -> Collection:
        """Replace every row by its image; see `Stream.map`."""
        return self._each(lambda stream: stream.map(function, schema, columns=columns, by_row=by_row))

    def filter(self, predicate: UserFunction, *, columns: Names | None = None, by_row: bool = False) -> Collection:
        """Keep the rows for which the predicate is true; see `Stream.filter`."""
        return self._each(lambda stream: stream.filter(predicate, columns=columns, by_row=by_row))

    def select(self, *names: str, **renamed: str) -> Collection:
        """Keep these columns, in this order; ``new="old"`` renames."""
        return self._each(lambda stream: stream.select(*names, **renamed))

    def rename(self, names: Mapping[str, str]) -> Collection:
        """Columns under new names: ``rename({"old": "new"})``."""
        return self._each(lambda stream: stream.rename(names))

    def __neg__(self) -> Collection:
        return self._each(lambda stream: -stream)

    def __add__(self, other: Collection) -> Collection:
        return self.concat(other)

    def concat(self, *others: Collection) -> Collection:
        """Add the weights of several collections of the same types; the names are this one's."""
        every = (self, *(self._alike(other) for other in others))
        alt = _sum(each.alt for each in every)
        if all(each.fleeting for each in every):
            return Collection(self.moments, alt, None, fleeting=True)
        return Collection(self.moments, alt, _sum(each.neu for each in every))

    # -- time

    def delay(self) -> Collection:
        """All changes at neu: what looks at alt misses those of its own tick."""
        if self.fleeting:
            raise CircuitError("a derivative holds nothing at neu", hint="delay the collection that it meets")
        return Collection(self.moments, None, self._changes)

    def integrate(self) -> Stream:
        """The changes at alt, as changes of the tick: after `differentiate`, the original stream."""
        if self.alt is None:
            raise CircuitError("all changes of this collection are at neu", hint="leave() takes them, too")
        return self.alt

    def leave(self) -> Stream:
        """The changes of both moments, as changes of the tick: after `enter`, the original stream."""
        if self.fleeting:
            raise CircuitError("a derivative holds nothing after its tick", hint="integrate() takes what was at alt")
        return self._changes

    # -- bilinear

    def join_map(self, other: Collection, on: On, *, select: Select | None = None) -> Collection:
        """Pairs of rows with equal keys, at every moment; weights multiply. See `Stream.join` for what is selected."""
        self._meets(other)

        def joined(*pairs: tuple[Part, Part]) -> Stream | None:
            return _sum(_joined(left, right, on, select) for left, right in pairs)

        # Of Δa ⋈ b + a ⋈ Δb + Δa ⋈ Δb, the last term is one of the others' with the side as it is at the moment.
        if self.fleeting or other.fleeting:  # what meets at alt has parted at neu
            met = _left(self.alt, other._upto_alt()) if self.fleeting else _right(self._upto_alt(), other.alt)
            return Collection(self.moments, joined(*met), None, fleeting=True)
        alt = joined(*_left(self.alt, other._upto_alt()), *_right(self._before(), other.alt))
        neu = joined(*_left(self.neu, other._upto_neu()), *_right(self._upto_alt(), other.neu))
        return Collection(self.moments, alt, neu)

    def semijoin(self, other: Collection, on: On) -> Collection:
        """The rows that have partners, each as often as it has: bilinear, unlike `Stream.semijoin`."""
        return self.join_map(other, on, select=[(LEFT, name, name) for name in self.schema.names])

    # -- inside: what a collection holds at a moment, in parts that are there to be joined with

    def _before(self) -> list[Part]:
        return [] if self.fleeting else [Kept(self._changes, Moment.BEFORE)]

    def _upto_alt(self) -> list[Part]:
        if self.alt is None:
            return self._before()
        if self.fleeting or self.later is not None:
            return [*self._before(), self.alt]
        return self._upto_neu()

    def _upto_neu(self) -> list[Part]:
        return [] if self.fleeting else [Kept(self._changes, Moment.AFTER)]

    @property
    def _some(self) -> Stream:
        changes = self.alt or self.later
        assert changes is not None, "a collection changes at one moment at least"
        return changes

    @property
    def _changes(self) -> Stream:
        """The changes of both moments."""
        changes = _sum((self.alt, self.neu))
        assert changes is not None, "a collection changes at one moment at least"
        return changes

    def _each(self, function: Callable[[Stream], Stream]) -> Collection:
        alt, later = (None if stream is None else function(stream) for stream in (self.alt, self.later))
        return Collection(self.moments, alt, later, self.fleeting)

    def _meets(self, other: Collection) -> None:
        if other.moments.circuit is not self.moments.circuit:
            raise CircuitError("the two collections are of different circuits", hint="enter both in one circuit")

    def _alike(self, other: Collection) -> Collection:
        self._meets(other)
        if [(f.type, f.nullable) for f in other.schema.fields] != [(f.type, f.nullable) for f in self.schema.fields]:
            raise SchemaError(
                f"({other.schema}) does not add to ({self.schema})", hint="select columns of the same types"
            )
        return other._each(lambda stream: stream.under(self.schema))


def _sum(streams: Iterable[Stream | None]) -> Stream | None:
    present = [stream for stream in streams if stream is not None]
    if len(present) < 2:
        return present[0] if present else None
    return present[0].plus(*present[1:])


def _left(change: Stream | None, state: list[Part]) -> list[tuple[Part, Part]]:
    return [] if change is None else [(change, part) for part in state]


def _right(state: list[Part], change: Stream | None) -> list[tuple[Part, Part]]:
    return [] if change is None else [(part, change) for part in state]


def _joined(one: Part, two: Part, on: On, select: Select | None) -> Stream:
    """Changes of a moment with what is kept on either side, or with changes of the other side."""
    streams = [part.changes if isinstance(part, Kept) else part for part in (one, two)]
    left, right, picks, schema = sides(streams[0], streams[1], on, select)
    circuit = left.circuit
    if isinstance(two, Kept):
        return circuit.add(JoinTrace(left.layout, right.layout, picks, schema), [left], [_trace(right, two.moment)])
    if isinstance(one, Kept):
        turned = tuple((1 - side, field) for side, field in picks)
        return circuit.add(JoinTrace(right.layout, left.layout, turned, schema), [right], [_trace(left, one.moment)])
    return circuit.add(JoinChanges(left.layout, right.layout, picks, schema), [left, right])


def _trace(indexed: Stream, moment: Moment) -> StreamTrace:
    return StreamTrace(indexed.circuit.add(Arrange(indexed.layout), [indexed]), moment)
