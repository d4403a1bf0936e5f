"""The interface that every runtime shares: frozen operators with a pure `step`.

A step reads this tick's deltas and views of traces as they stood before (or stand after) the tick, and
returns what it puts out and what is to be appended. It changes nothing: the runtime commits, or does not,
so a rollback, a retry and a failed tick are one act.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from everview.codes.dictionary import Dictionary
from everview.operators.functions import Function
from everview.traces.order import Fields, ValueOrder, value_order
from everview.traces.view import Batches, View
from everview.types import Schema

Matrix = NDArray[np.int64]
Words = NDArray[np.int64]


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


Partition = Anywhere | ByKey | Single | Evenly


def key_partition(key: int) -> Partition:
    """Where rows indexed by their first ``key`` fields must be."""
    return ByKey(tuple(range(key))) if key else Single()


def row_partition(schema: Schema) -> Partition:
    """Where whole rows are kept together, and nothing more."""
    return ByKey(tuple(range(len(schema))))


@dataclass(frozen=True, slots=True)
class Port:
    """What an operator asks of one input: its layout, and where its rows must be."""

    layout: Layout
    partition: Partition = Anywhere()


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
class Context:
    """What a step may use besides its inputs: value dictionary, user functions, and whether to check them."""

    dictionary: Dictionary
    functions: Mapping[str, Function] = field(default_factory=dict[str, Function])
    check: bool = False

    def view(self, layout: Layout, *batches: Matrix) -> Batches:
        """Some batches of a layout, as if they were a trace."""
        return Batches(layout.width + 1, batches, self.order(layout))

    def order(self, layout: Layout, depth: int = 0) -> ValueOrder | None:
        """The order of a layout's batches, whose rows end in ``depth`` words of time; None if by words alone."""
        return value_order(layout.schema, layout.by_value, self.dictionary, depth)


class Operator(Protocol):
    """Frozen data with a pure step; ``reads`` says which input's trace is read, and when."""

    @property
    def inputs(self) -> tuple[Port, ...]: ...

    @property
    def output(self) -> Layout: ...

    def step(self, deltas: Sequence[Matrix], views: Sequence[View], context: Context) -> Step: ...


class Unary:
    """An operator of one input whose rows may be anywhere, and which by default keeps their layout."""

    source: Layout

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self.source),)

    @property
    def output(self) -> Layout:
        return self.source


@cache
def word_columns(schema: Schema, fields: tuple[int, ...]) -> Words:
    """The words that hold these fields, in order."""
    slices = (schema.words(f) for f in fields)
    return np.array([w for s in slices for w in range(s.start, s.stop)], np.int64)


def nothing(width: int) -> Matrix:
    """A delta without rows."""
    return np.empty((0, width + 1), np.int64)
