"""Streams and traces as values to build with: every method adds a node and returns its output.

The methods build query circuits: each operator acts on a tick's whole Z-sets. `incrementalize` turns such a
circuit into one that acts on changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.circuit.asof import AsofChoice, Tolerance, asof_joined, billed_now, joined_now
from everview.circuit.grouped import aggregated
from everview.circuit.joined import (
    On,
    Select,
    alike,
    chosen_columns,
    joined,
    joined_with_trace,
    key_pairs,
    outer_joined,
    same_keys,
    semijoined,
    sides,
)
from everview.circuit.ordered import Order, direction_of, topped
from everview.doors import doors
from everview.operators.aggregate import Call, WrittenAggregate
from everview.operators.arrange import Arrange, Consolidate
from everview.operators.distinct import Distinct, DistinctIncremental
from everview.operators.functions import Function
from everview.operators.index import Index
from everview.operators.join import LEFT, RIGHT
from everview.operators.linear import (
    Filter,
    FlatMap,
    Inspect,
    Map,
    Minus,
    Negate,
    NotNull,
    Plus,
    Project,
    Recode,
)
from everview.operators.operator import Layout, Moment
from everview.types import Field, Schema

if TYPE_CHECKING:
    from everview.circuit.circuit import Circuit

Names = str | Sequence[str]
UserFunction = Callable[..., Any] | Function


@doors()
@dataclass(frozen=True, repr=False, slots=True)
class Stream:
    """The output of a node: a Z-set a tick."""

    circuit: Circuit
    id: int

    @property
    def layout(self) -> Layout:
        return self.circuit.layout(self.id)

    @property
    def schema(self) -> Schema:
        return self.layout.schema

    def __repr__(self) -> str:
        return f"<stream of {self.circuit.label(self.id)}: {self.schema}>"

    # -- linear

    def map(
        self, function: UserFunction, schema: Schema | str, *, columns: Names | None = None, by_row: bool = False
    ) -> Stream:
        """Replace every row by its image.

        The function is given the named columns, all by default, each as an Arrow array, and returns one array or a
        tuple of them; with ``by_row``, a plain function is given the values of one row at a time.
        """
        name = self.circuit.function(function, "rows" if by_row else "columns")
        return self._apply(Map(self.layout, name, _schema(schema), (), self._fields(columns)))

    def extend(
        self, function: UserFunction, schema: Schema | str, *, columns: Names | None = None, by_row: bool = False
    ) -> Stream:
        """Add computed columns after the existing ones; see `map`."""
        name = self.circuit.function(function, "rows" if by_row else "columns")
        keep = tuple(range(len(self.schema)))
        return self._apply(Map(self.layout, name, self.schema + _schema(schema), keep, self._fields(columns)))

    def filter(self, predicate: UserFunction, *, columns: Names | None = None, by_row: bool = False) -> Stream:
        """Keep the rows for which the predicate is true; see `map` for how it is called."""
        name = self.circuit.function(predicate, "rows" if by_row else "columns")
        return self._apply(Filter(self.layout, name, self._fields(columns)))

    def flat_map(self, function: UserFunction, schema: Schema | str) -> Stream:
        """Replace every row by the rows that a function of one row gives."""
        return self._apply(FlatMap(self.layout, self.circuit.function(function, "flat"), _schema(schema)))

    def select(self, *names: str, **renamed: str) -> Stream:
        """Keep these columns, in this order; ``new="old"`` renames."""
        olds = (*names, *renamed.values())
        own = self.schema
        fields = tuple(own.index(name) for name in olds)
        schema = Schema(
            Field(new, own.fields[f].type, own.fields[f].nullable)
            for new, f in zip((*names, *renamed), fields, strict=True)
        )
        return self._apply(Project(self.layout, fields, schema))

    def rename(self, names: Mapping[str, str]) -> Stream:
        """Columns under new names: ``rename({"old": "new"})``."""
        schema = self.schema.rename(names)
        return self._apply(Project(self.layout, tuple(range(len(schema))), schema))

    def not_null(self, name: str) -> Stream:
        """Keep the rows in which a column is not NULL."""
        return self._apply(NotNull(self.layout, self.schema.index(name)))

    def recode(self, schema: Schema | str) -> Stream:
        """The same values under a schema that holds them all."""
        schema = _schema(schema)
        return self if schema == self.schema else self._apply(Recode(self.layout, schema))

    def under(self, schema: Schema) -> Stream:
        """The same rows under another schema's names and, where it holds all values, its types."""
        if schema == self.schema:
            return self
        named = Schema(Field(n, f.type, f.nullable) for n, f in zip(schema.names, self.schema.fields, strict=True))
        renamed = self._apply(Project(self.layout, tuple(range(len(named))), named)) if named != self.schema else self
        return renamed.recode(schema)

    def inspect(self, function: Callable[[Any], None]) -> Stream:
        """Call a function with every tick's Z-set, and pass it on."""
        return self._apply(Inspect(self.layout, self.circuit.function(function, "rows")))

    def __neg__(self) -> Stream:
        return self._apply(Negate(self.layout))

    def __add__(self, other: Stream) -> Stream:
        return self.plus(other) if isinstance(other, Stream) else NotImplemented  # pyright: ignore[reportUnnecessaryIsInstance]

    def __sub__(self, other: Stream) -> Stream:
        if not isinstance(other, Stream):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        left, right = alike(self, other)
        return self.circuit.add(Minus(Layout(left.schema)), [left, right])

    def plus(self, *others: Stream) -> Stream:
        """Add the weights of several streams."""
        streams = (self, *others)
        for other in others:
            streams = tuple(alike(s, other)[0] for s in streams)
        streams = tuple(alike(s, streams[0])[0] for s in streams)
        return self.circuit.add(Plus(Layout(streams[0].schema), len(streams)), list(streams))

    # -- time

    def delay(self) -> Stream:
        """z⁻¹: this stream one tick late."""
        return self.circuit.delay(self)

    def trace(self) -> StreamTrace:
        """The running sum of an indexed stream, after the tick; a plain stream is indexed by all its columns."""
        indexed = self if self.layout.sorted else self.index(*self.schema.names)
        return StreamTrace(self.circuit.add(Arrange(indexed.layout), [indexed]), Moment.AFTER)

    def integrate(self) -> Stream:
        """``I(s)[t] = Σ_{i≤t} s[i]``: everything so far, every tick."""
        return self.trace().consolidate()

    def differentiate(self) -> Stream:
        """``D(s)[t] = s[t] − s[t−1]``; the inverse of `integrate`."""
        return self - self.delay()

    # -- indexed

    def index(self, *key: str) -> Stream:
        """Index the rows by these columns; the others follow in their order."""
        fields = tuple(self.schema.index(name) for name in key)
        rest = tuple(f for f in range(len(self.schema)) if f not in fields)
        return self._indexed((*fields, *rest), len(fields))

    def index_with(self, function: Callable[..., Any], key: Schema | str, *, by_row: bool = False) -> Stream:
        """Index the rows by a computed key; the whole row is the value."""
        key = _schema(key)
        return self.extend(function, key, by_row=by_row).index(*key.names)

    def distinct(self) -> Stream:
        """One of each row of positive weight."""
        indexed = self.index(*self.schema.names)
        return self.circuit.add(Distinct(indexed.layout), [indexed])

    def distinct_incremental(self, trace: StreamTrace) -> Stream:
        """The change of distinct, given the trace of this stream before the tick."""
        indexed = self.index(*self.schema.names)
        return self.circuit.add(DistinctIncremental(indexed.layout), [indexed], [trace])

    def join(self, other: Stream, on: On, *, select: Select | None = None) -> Stream:
        """Pairs of rows with equal keys; by default all columns of the left and those of the right but its key.

        ``on`` is a column name, a pair (left, right), or a list of those. NULL equals NULL here.
        """
        return joined(self, other, on, select)

    def join_trace(self, trace: StreamTrace, on: On, *, select: Select | None = None) -> Stream:
        """Pairs of this tick's rows with the rows of a trace that is indexed by the key."""
        return joined_with_trace(self, trace, on, select)

    def asof_join(
        self,
        other: Stream,
        on: On = (),
        *,
        at: str | tuple[str, str],
        direction: str = "backward",
        tolerance: Tolerance | None = None,
        strict: bool = False,
        how: str = "inner",
        select: Select | None = None,
    ) -> Stream:
        """Each row with the other's row in force at its time: of those with its key, the latest at or before it.

        ``at`` is the column of the times, or a pair (left, right). ``direction`` may also be ``"forward"``, the
        earliest at or after it, or ``"nearest"``, the earlier if both are as near. ``strict`` leaves out rows at the
        time itself. No match is further away than ``tolerance``: a number in units of the column, or for timestamps
        and dates a `timedelta`. ``how="left"`` keeps rows without a match, padded with NULL.

        Of the other's rows at one time the last counts, by the values of their remaining columns. A row that is
        there, however often, counts once: results have the weights of the left. NULL keys are equal here; a time that
        is NULL matches nothing. When either side changes, in whatever order of time, the result is revised.
        """
        keys, when = key_pairs(on), (at, at) if isinstance(at, str) else at
        left, right = same_keys(self, other, [*keys, when])
        columns = chosen_columns(self.schema, other.schema, keys, select)
        return asof_joined(left, right, keys, when, columns, AsofChoice(direction, tolerance, strict, how))

    def as_of_now(self, other: Stream, on: On, *, select: Select | None = None, remember: bool = False) -> Stream:
        """Changes joined with the other side as of the end of their tick; later changes there revise nothing.

        An order and a price that arrive in one tick meet. What an order was billed, it stays billed when the price
        changes: ``Σ_t Δorders[t] ⋈ prices[t]``, where a join would be ``orders ⋈ prices``.

        So the result depends on history, not only on what the sources hold, and taking an order back is not the
        opposite of giving it. It subtracts the order at the price of *that* moment. If the price has changed, that is
        a row that never was there, which stays with a negative weight, and the one that was billed stays, too. A
        `HistoryWarning` says so.

        With ``remember``, what each order was billed is remembered, and an order that goes gives back just that. If
        its weight only falls, the same share of every row billed for it goes; or, if it was billed differently at
        different times, as many of the rows, the first in the order of their values. An order of negative weight is
        not there.
        """
        both = sides(self, other, on, select)
        return billed_now(*both) if remember else joined_now(*both)

    def semijoin(self, other: Stream, on: On) -> Stream:
        """The rows whose key is among the other's."""
        return semijoined(self, other, on)

    def antijoin(self, other: Stream, on: On) -> Stream:
        """The rows whose key is not among the other's."""
        return self - self.semijoin(other, on)

    def left_join(self, other: Stream, on: On, *, select: Select | None = None) -> Stream:
        """A join, and the rows without a partner padded with NULL."""
        return outer_joined(self, other, on, select, keep=(LEFT,))

    def right_join(self, other: Stream, on: On, *, select: Select | None = None) -> Stream:
        """A join, and the other's rows without a partner padded with NULL."""
        return outer_joined(self, other, on, select, keep=(RIGHT,))

    def full_join(self, other: Stream, on: On, *, select: Select | None = None) -> Stream:
        """A join, and the rows of both sides without a partner padded with NULL."""
        return outer_joined(self, other, on, select, keep=(LEFT, RIGHT))

    def aggregate(self, by: Names = (), **calls: Any) -> Stream:
        """One row a group: ``aggregate(["country"], total=("sum", "amount"), n="count")``.

        A call is a name, then a column, then what it takes besides; the names are those of
        `everview.operators.aggregate.registry.COMPUTED`:

        - ``"count"`` of rows, ``("sum", "x")``, ``("max", "x")``, ``("median", "x")``
        - ``("percentile", "x", 0.9)``: with a number from 0 to 1
        - ``("first", "x", {"order": ["at desc"]})``, ``("last", "x", {"order": ["at"], "nulls": "skip"})``,
          ``("string", "x", {"separator": ", "})``: with options
        - ``(function, ["x", "y"], {"type": "DOUBLE"})``: Arrow lists in, one list a group and argument, an array
          out; ``"by_group": True`` for a plain function of one group's lists

        ``distinct`` after a name, as in ``("count distinct", "x")``, takes every different value once.
        """
        return aggregated(
            self, names_of(by), {name: self._call(WrittenAggregate.of(call)) for name, call in calls.items()}
        )

    def top(self, limit: int, order: str | Sequence[Order], *, by: Names = (), skip: int = 0) -> Stream:
        """Of each group, the first rows in an order: ``top(3, ["score desc"], by=["team"])``.

        An order is a column name, optionally followed by ``asc`` or ``desc`` and ``nulls first`` or ``nulls last``;
        ties are broken by the values of the remaining columns.
        """
        return topped(self, limit, order, names_of(by), skip)

    def sink(self, name: str, *, keep: bool = True, positive: bool = False) -> None:
        """Hand the changes to the outside under a name."""
        self.circuit.sink(name, self, keep=keep, positive=positive)

    # -- inside

    def _fields(self, columns: Names | None) -> tuple[int, ...] | None:
        return None if columns is None else tuple(self.schema.index(name) for name in names_of(columns))

    def _apply(self, operator: Any) -> Stream:
        return self.circuit.add(operator, [self])

    def _indexed(self, fields: tuple[int, ...], key: int) -> Stream:
        layout = self.layout
        if layout.sorted and fields == tuple(range(len(layout.schema))) and layout.key == key:
            return self
        return self._apply(Index(Layout(layout.schema), fields, key))

    def _call(self, call: WrittenAggregate) -> Call:
        order = tuple(direction_of(self.schema, item) for item in call.order)
        if isinstance(call.function, str):
            return call.call(self.schema, order, "")
        shape = "rows" if call.options.get("by_group") else "columns"
        return call.call(self.schema, order, self.circuit.function(call.function, shape))


@dataclass(frozen=True, repr=False, slots=True)
class StreamTrace:
    """The trace of an arranged stream at a moment of the tick."""

    stream: Stream
    moment: Moment

    @property
    def layout(self) -> Layout:
        return self.stream.layout

    def delay(self) -> StreamTrace:
        """z⁻¹ of the trace: as it was before the tick."""
        return StreamTrace(self.stream, Moment.BEFORE)

    def consolidate(self) -> Stream:
        """Everything the trace holds, as one Z-set."""
        return self.stream.circuit.add(Consolidate(self.layout), [], [self])

    def __repr__(self) -> str:
        return f"<trace {self.moment.value} the tick of {self.stream!r}>"


def names_of(names: Names) -> tuple[str, ...]:
    """Column names; one may come as itself.

    >>> names_of("country"), names_of(["country", "city"])
    (('country',), ('country', 'city'))
    """
    return (names,) if isinstance(names, str) else tuple(names)


def _schema(schema: Schema | str) -> Schema:
    return Schema.parse(schema) if isinstance(schema, str) else schema
