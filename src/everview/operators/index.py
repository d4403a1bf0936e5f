"""Index: from a Z-set to an indexed Z-set, in order of key, then value.

Linear: an index of a sum is the sum of the indexes. Its output is a batch (sorted, consolidated), which is what
joins, distinct, aggregates and traces read. The same index serves all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from everview.kernels import instructions, reshape
from everview.kernels.large import arrange, project
from everview.kernels.linear import invert
from everview.kernels.sort import is_batch, sorted_by_value
from everview.later import Later
from everview.operators.form import CompiledForm, Line, call, flat
from everview.operators.operator import (
    ByKey,
    Context,
    Layout,
    Origins,
    Partition,
    Port,
    Single,
    Step,
    UnaryOperator,
    carried,
    from_fields,
    row_partition,
    word_columns,
)
from everview.traces.order import DESCENDING, NULL_MOVED, Fields, words_by_value
from everview.traces.view import TraceView
from everview.types import BIGINT, Field, Schema
from everview.types.words import Matrix, Words

if TYPE_CHECKING:
    from everview.kernels import by_value as routines
else:
    routines = Later("everview.kernels.by_value")  # which few programs need


class Direction(Enum):
    """How a field is ordered inside an index, and where NULL stands."""

    ASC = "asc"
    DESC = "desc"
    ASC_NULLS_LAST = "asc nulls last"
    DESC_NULLS_FIRST = "desc nulls first"

    @property
    def mode(self) -> int:
        """As bits: `DESCENDING`, and `NULL_MOVED` from the end where the values' order has it."""
        return {"asc": 0, "desc": DESCENDING, "asc nulls last": NULL_MOVED}.get(self.value, DESCENDING | NULL_MOVED)


Order = tuple[tuple[int, Direction], ...]


@dataclass(frozen=True)
class Index(UnaryOperator):
    """Put the key first: rows ordered by the given fields, the first ``key`` of them being the key.

    Fields left out are projected away. ``order`` names fields whose order matters to a reader, with a direction:
    where words follow values they are recoded so that they ascend, and `restore` undoes that; interned words stay,
    and the index is ordered by the values they stand for.
    """

    source: Layout
    fields: tuple[int, ...]
    key: int
    order: Order = ()  # (position in ``fields``, direction)
    spread: bool = False  # on every shard an index of its own rows
    relays = True
    by_row = True
    orders_values = True

    @cached_property
    def schema(self) -> Schema:
        return Schema(_renamed(self.source.schema.fields[f] for f in self.fields))

    @property
    def inputs(self) -> tuple[Port, ...]:
        # Rows move to the shard of their key before they are sorted, not after.
        if self.spread:
            return (Port(self.source, row_partition(self.source.schema)),)
        key = self.fields[: self.key]
        return (Port(self.source, ByKey(key) if key else Single()),)

    @property
    def output(self) -> Layout:
        return self._indexed

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        return carried(inputs[0], self.fields)

    @property
    def origins(self) -> Origins:
        return from_fields(self.fields)

    @cached_property
    def _indexed(self) -> Layout:
        return Layout(self.schema, self.key, sorted=True, by_value=by_value(self.schema, self.order))

    @cached_property
    def _columns(self) -> Words:
        return word_columns(self.source.schema, self.fields)

    @cached_property
    def _in_place(self) -> bool:
        return _in_place(self._columns, self.source.width)

    @property
    def form(self) -> CompiledForm:
        if not self.order:
            return CompiledForm(instructions.INDEX, flat([self._columns]), self._in_place)
        turned = turning(self.schema, self.order) or [(reshape.WORD, c) for c in range(self.schema.width)]
        columns = self._columns.tolist()
        plan = [(how, columns[word]) for how, word in turned]
        if not self.output.by_value:
            return CompiledForm(instructions.INDEX_IN_ORDER, flat(plan))
        modes = words_by_value(self.schema, self.output.by_value).tolist()
        return call(routines.index_by_value, flat((*line, *mode) for line, mode in zip(plan, modes, strict=True)))

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        columns = self._columns
        if not self.order:
            return Step(delta if self._in_place and is_batch(delta) else arrange(delta, columns))
        turned = project(delta, columns)
        recode(turned, self.schema, self.order)
        batch = turned if is_batch(turned) else arrange(turned, np.arange(columns.size))
        order = context.order(self.output)
        if order is None:
            return Step(batch)
        order.admit(batch)
        return Step(sorted_by_value(batch, *order.arrays) if batch.shape[0] > 1 else batch)


def _renamed(fields: Iterable[Field]) -> Iterator[Field]:
    """A field may stand in an index twice, as key and as value: the second gets a name of its own."""
    seen: set[str] = set()
    for field in fields:
        name = field.name
        while name in seen:
            name += "'"
        seen.add(name)
        yield Field(name, field.type, field.nullable)


def sorted_by(delta: Matrix, columns: Words) -> Matrix:
    """The batch of a delta on these columns; the delta itself, if it is that batch already."""
    in_place = _in_place(columns, delta.shape[1] - 1)
    return delta if in_place and is_batch(delta) else arrange(delta, columns)


def _in_place(columns: Words, width: int) -> bool:
    return columns.size == width and bool((columns == np.arange(width)).all())


def by_value(schema: Schema, order: Order) -> Fields:
    """The fields of an order whose words do not follow their values."""
    return tuple((place, direction.mode) for place, direction in order if not schema.fields[place].type.ordered)


def recode(rows: Matrix, schema: Schema, order: Order) -> None:
    """Change words in place so that their ascending order is the direction asked for."""
    for words, field, mode in _turned(schema, order):
        if mode & NULL_MOVED:
            rows[:, words.start] = _null_last(rows[:, words.start], field, 1)
        if mode & DESCENDING:
            invert(rows, words.start, words.stop)


def restore(rows: Matrix, schema: Schema, order: Order) -> None:
    """The inverse of `recode`."""
    for words, field, mode in _turned(schema, order):
        if mode & DESCENDING:
            invert(rows, words.start, words.stop)
        if mode & NULL_MOVED:
            rows[:, words.start] = _null_last(rows[:, words.start], field, -1)


def turning(schema: Schema, order: Order) -> list[Line]:
    """`recode` as a plan for `everview.kernels.reshape`; empty if nothing is turned."""
    return _plan(schema, order, reshape.BEFORE, reshape.NEGATED)


def restoring(schema: Schema, order: Order) -> list[Line]:
    """`restore` as a plan for `everview.kernels.reshape`; empty if nothing is turned."""
    return _plan(schema, order, reshape.AFTER, reshape.NEGATED)


def _plan(schema: Schema, order: Order, stepped: int, negated: int) -> list[Line]:
    """A plan that turns words around; a first word that is stepped or negated for NULL's sake may be inverted, too.

    ``~(x − 1) = −x = ~x + 1``, and ``~(−x) = x − 1``, ``−(~x) = x + 1``: one of the two becomes the other.
    """
    turned = _turned(schema, order)
    plan = [(reshape.WORD, word) for word in range(schema.width)] if turned else []
    for words, field, mode in turned:
        if mode & DESCENDING:
            plan[words] = [(reshape.INVERTED, word) for word in range(words.start, words.stop)]
        if mode & NULL_MOVED and (field.type != BIGINT or field.nullable):
            flagged = field.type == BIGINT
            how = negated if flagged != bool(mode & DESCENDING) else stepped
            plan[words.start] = how, words.start
    return plan


@cache
def _turned(schema: Schema, order: Order) -> tuple[tuple[slice, Field, int], ...]:
    """The words of an order that do not ascend as they are."""
    return tuple(
        (schema.words(place), schema.fields[place], direction.mode)
        for place, direction in order
        if direction is not Direction.ASC and schema.fields[place].type.ordered
    )


def _null_last(first: Words, field: Field, sign: int) -> Words:
    """NULL is the least first word; stepping down by one wraps it to the greatest and keeps all other order."""
    if field.type == BIGINT:
        return -first if field.nullable else first
    return first - np.int64(sign)
