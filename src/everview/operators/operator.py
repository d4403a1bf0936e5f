"""The interface that every runtime shares: frozen operators with a pure `step`.

A step reads this tick's deltas and views of traces as they stood before (or stand after) the tick, and
returns what it puts out and what is to be appended. It changes nothing: the runtime commits, or does not,
so a rollback, a retry and a failed tick are one act.

`Operator` has all that passes and runtimes ask of an operator, with defaults. They ask nothing else, so a new operator
is a file here and a line in the table of `everview.circuit.incrementalize`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np

from everview.codes.dictionary import Dictionary
from everview.operators.form import CompiledForm, Reason
from everview.operators.functions import Function
from everview.traces.order import Fields, ValueOrder, value_order
from everview.traces.view import Batches, TraceView
from everview.types import Schema
from everview.types.words import Matrix, Words


@dataclass(frozen=True)
class Layout:
    """The shape of what flows on a stream: a schema, of which the first ``key`` fields index the rest.

    A sorted layout promises batches: consolidated, and in the order of their words, but for the fields named
    in ``by_value`` (after the key), which follow the values that their words stand for.
    """

    schema: Schema
    key: int = 0
    sorted: bool = False
    by_value: Fields = ()

    @cached_property
    def width(self) -> int:
        return self.schema.width

    @cached_property
    def key_words(self) -> int:
        return self.schema.select(self.schema.names[: self.key]).width

    def __str__(self) -> str:
        names = self.schema.names
        index = f"{', '.join(names[: self.key])} → " if self.key else ""
        return f"[{index}{', '.join(names[self.key :])}]"


@dataclass(frozen=True, slots=True)
class Anywhere:
    """Rows may be on any shard."""


@dataclass(frozen=True, slots=True)
class ByKey:
    """Rows that agree on these fields are on one shard."""

    fields: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Single:
    """All rows are on shard 0."""


@dataclass(frozen=True, slots=True)
class Evenly:
    """Rows may be on any shard, but about as many on each."""


@dataclass(frozen=True, slots=True)
class OnEveryShard:
    """A placement: all rows are on every shard, so an operator puts out nothing for them alone."""


Partition = Anywhere | ByKey | Single | Evenly | OnEveryShard


def key_partition(key: int) -> Partition:
    """Where rows indexed by their first ``key`` fields must be."""
    return ByKey(tuple(range(key))) if key else Single()


def row_partition(schema: Schema) -> Partition:
    """Where whole rows are kept together, and nothing more."""
    return ByKey(tuple(range(len(schema))))


def carried(partition: Partition, fields: Iterable[int | None]) -> Partition:
    """The partition of rows after a projection to ``fields``; None stands for a field of another origin.

    >>> carried(ByKey((2, 0)), (0, None, 2))
    ByKey(fields=(2, 0))
    >>> carried(ByKey((1,)), (0, None, 2))
    Anywhere()
    """
    if not isinstance(partition, ByKey):
        return partition
    places: dict[int | None, int] = {}
    for place, field_ in enumerate(fields):
        places.setdefault(field_, place)
    if any(field_ not in places for field_ in partition.fields):
        return Anywhere()
    return ByKey(tuple(places[field_] for field_ in partition.fields))


@dataclass(frozen=True, slots=True)
class Port:
    """What an operator asks of one input: its layout, and where its rows must be."""

    layout: Layout
    partition: Partition = Anywhere()


@dataclass(frozen=True, slots=True)
class FieldOrigin:
    """A field of an input from which a value comes: the same value, or one at most ``earlier`` microseconds before it.

    Of a field that is an array, the value may be an ``element``.
    """

    input: int
    field: int
    earlier: int = 0
    element: bool = False


Origins = Mapping[int, tuple[FieldOrigin, ...]]  # by field; each value comes from one of these


def from_fields(fields: Iterable[int | None], inputs: int = 1) -> Origins:
    """Fields in the order in which a result has them, of any of so many inputs; None stands for another origin.

    >>> {place: among[0].field for place, among in from_fields((2, None, 0)).items()}
    {0: 2, 2: 0}
    """
    return {
        place: tuple(FieldOrigin(number, field_) for number in range(inputs))
        for place, field_ in enumerate(fields)
        if field_ is not None
    }


class Moment(Enum):
    """Which state of a trace is read: without this tick's changes, or with them (alt and neu)."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Step:
    """What one step gives: output now, and a batch for the operator's own trace, if it has one."""

    out: Matrix
    append: Matrix | None = None


@dataclass(frozen=True, slots=True)
class TimedStep:
    """What a step at a nested time gives: output now, entries for the trace, what belongs to later times."""

    out: Matrix
    append: Matrix | None = None  # with times
    held: Matrix | None = None  # output rows with their times
    wake: Matrix | None = None  # groups with the times at which to look at them again


@dataclass(frozen=True, slots=True)
class TimedView:
    """A trace as a step at a nested time sees it."""

    past: TraceView  # closed epochs
    seen: TraceView  # and what the open epoch has appended before this time, or with it, as the edge says


@dataclass(frozen=True, slots=True)
class Context:
    """What a step may use besides its inputs: value dictionary, user functions, and whether to check them."""

    dictionary: Dictionary
    functions: Mapping[str, Function] = field(default_factory=dict[str, Function])
    check: bool = False

    def view(self, layout: Layout, *batches: Matrix) -> Batches:
        """A view of some batches of a layout, as of a trace."""
        return Batches(layout.width + 1, batches, self.order(layout))

    def order(self, layout: Layout, depth: int = 0) -> ValueOrder | None:
        """The order of a layout's batches, whose rows end in ``depth`` words of time; None if by words alone."""
        return value_order(layout.schema, layout.by_value, self.dictionary, depth)


class Operator(ABC):
    """Frozen data with a pure step. ``inputs``, ``output`` and ``step`` are each operator's own; the rest has defaults.

    Rows may be anywhere unless a port says otherwise, no trace is read and no function called, and nothing is known of
    where the output's rows are.
    """

    wide: ClassVar[bool] = False  # a step reads the traces of all shards, and is given a `Wide` for each
    relays: ClassVar[bool] = False  # an index or a trace: rows have to be where readers want them
    by_row: ClassVar[bool] = False  # one input, whose rows are taken one by one, and may be any rows of its layout
    orders_values: ClassVar[bool] = False  # its instruction works on rows in the order of texts, too
    root_only: ClassVar[tuple[str, str] | None] = None  # why it cannot be inside a child, and what to do instead
    asked_again: ClassVar[str] = "any row may still be read"  # why its traces keep old rows, for `explain`
    reasons: tuple[str, ...] = ()  # why the operator is as it is, for `explain`

    @cached_property
    def text(self) -> str:
        """The operator's part of a fingerprint: its own fields, and the layout of its output."""
        return f"{self!r}\n{self.output!r}"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "text"}  # it is long, and soon made

    @property
    @abstractmethod
    def inputs(self) -> tuple[Port, ...]:
        """The layout that each input must have, and where its rows must be."""

    @property
    @abstractmethod
    def output(self) -> Layout:
        """The layout of what a step puts out."""

    @abstractmethod
    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        """One tick of one shard, given a delta for each input and a view for each trace of `reads`."""

    def step_at(
        self, now: Words, deltas: Sequence[Matrix], woken: Matrix | None, views: Sequence[TimedView], context: Context
    ) -> TimedStep:
        """One iteration of a recursive scope (see `everview.operators.nested`); ``woken`` are groups to look at again.

        What reads no trace acts on each time alone.
        """
        assert not views, f"{type(self).__name__} does not run inside a recursive scope"
        return TimedStep(self.step(deltas, (), context).out)

    @property
    def form(self) -> CompiledForm | Reason:
        """The instruction that does in a compiled tick what `step` does; or why there is none."""
        return "there is no instruction for it"

    def form_of(self, functions: Mapping[str, Function]) -> CompiledForm | Reason:
        """`form`, where it depends on the functions of a circuit."""
        return self.form

    @property
    def reads(self) -> tuple[Layout, ...]:
        """The layouts of the traces that steps read. An operator that reads traces is made for changes already."""
        return ()

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the users' functions that steps call."""
        return ()

    @property
    def reads_values(self) -> bool:
        """Whether steps need the dictionary, to look up what words stand for: by default, to keep rows in order."""
        layouts = (self.output, *self.reads, *(port.layout for port in self.inputs))
        return any(layout.by_value for layout in layouts)

    @property
    def alone(self) -> bool:
        """Whether groups are never matched with another stream's rows, so that each may be on any one shard."""
        return False

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        """Where the output's rows are, given where the rows of the inputs and of the traces of `reads` are."""
        return Anywhere()

    @property
    def origins(self) -> Origins:
        """Of fields of changed rows of the output, the fields of changed rows of the inputs that they come from.

        So a lower bound of all changes to come of the latter is one of the former. Other fields may have any value.
        """
        return {}

    @property
    def lookups(self) -> tuple[Origins, ...]:
        """For each trace of `reads`, the fields of changed rows from which the fields of the rows that are read come.

        So rows before a bound of all changes to come are never read again, and their trace may drop them.
        """
        return ({},) * len(self.reads)


class UnaryOperator(Operator):
    """An operator of one input whose rows may be anywhere, and which by default keeps their layout."""

    source: Layout

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self.source),)

    @property
    def output(self) -> Layout:
        return self.source


class SameRows(UnaryOperator):
    """An operator whose rows are rows of its input, field by field."""

    @property
    def origins(self) -> Origins:
        return from_fields(range(len(self.source.schema)))


class InPlace(Operator):
    """An operator whose results stay on the shards of its first input's rows, and begin with the same fields."""

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        return inputs[0]


@cache
def word_columns(schema: Schema, fields: tuple[int, ...]) -> Words:
    """The words that hold these fields, in order."""
    slices = (schema.words(f) for f in fields)
    return np.array([w for s in slices for w in range(s.start, s.stop)], np.int64)


def nothing(width: int) -> Matrix:
    """A delta without rows."""
    return np.empty((0, width + 1), np.int64)
