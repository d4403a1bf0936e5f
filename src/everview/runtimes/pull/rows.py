"""Expressions on single rows: simple ones as Python functions, all others by the evaluator of columns.

Both give the same values. An update has few rows, for which going through Arrow would cost more than all else.

>>> from everview.scalars.expressions import Column
>>> from everview.plan.typing import call, literal
>>> from everview.types import BIGINT
>>> x = Column(0, "x", BIGINT)
>>> small = call("or", call("less", x, literal(3)), call("equal", x, literal(7)))
>>> [simple(small)(row) for row in [(1,), (5,), (7,), (None,)]]
[True, False, True, None]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from everview.codes.rows import to_rows
from everview.plan.conditions import conjunction
from everview.runtimes.pull.demand import Among, Demand, Row
from everview.runtimes.pull.ordering import coming_after, sort_key
from everview.runtimes.pull.simple import Run, simple
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import TRUE, Column, Expression, columns_of, moved
from everview.types import DOUBLE, FLOAT, Field, Schema, Type

FIRST, MOST = 16, 1024  # rows that are evaluated at once, when they come one by one


class Rowwise:
    """A function from rows to rows of the values of some expressions."""

    def __init__(self, expressions: Sequence[Expression], schema: Schema) -> None:
        self._columns = [e.index if isinstance(e, Column) else None for e in expressions]
        self._runs = [simple(e) for e in expressions]
        self.simple = all(run is not None for run in self._runs)
        if self.simple:
            self.one = _together([run for run in self._runs if run is not None], self._columns)
        else:
            self._arguments = sorted({column for e in expressions for column in columns_of(e)}) or [0]
            self._read = [(column, schema.fields[column].type) for column in self._arguments]
            self._results = Schema(Field(f"c{column}", e.type) for column, e in enumerate(expressions))
            self._evaluate = Evaluate(tuple(moved(e, self._arguments.index) for e in expressions))

    def __call__(self, rows: Sequence[Row]) -> list[Row]:
        """The values of all expressions, for every row."""
        if self.simple:
            return list(map(self.one, rows))
        if not rows:
            return []
        columns = [pa.array([row[column] for row in rows], type_.arrow) for column, type_ in self._read]
        table = pa.table(list(self._evaluate(*columns)), names=list(self._results.names))
        changes = [canonical(type_) for type_ in self._results.types]
        values = to_rows(self._results, table)
        if not any(changes):
            return values
        return [tuple(v if c is None else c(v) for v, c in zip(row, changes, strict=True)) for row in values]

    def lazily(self, rows: Iterable[Row]) -> Iterator[tuple[Row, Row]]:
        """Each row with its values, lazily; for expressions that go through Arrow some rows are read ahead."""
        if self.simple:
            one = self.one
            yield from ((row, one(row)) for row in rows)
            return
        waiting, size = iter(rows), FIRST
        while part := list(islice(waiting, size)):
            yield from zip(part, self(part), strict=True)
            size = min(2 * size, MOST)


def _together(runs: list[Run], columns: list[int | None]) -> Callable[[Row], Row]:
    places = [column for column in columns if column is not None]
    if len(places) == len(columns):
        return lambda row: tuple([row[column] for column in places])
    return lambda row: tuple([run(row) for run in runs])


def canonical(type_: Type) -> Callable[[Any], Any] | None:
    """The function that makes equal values of a type equal in Python; None where they are."""
    if type_ in (FLOAT, DOUBLE):
        return lambda value: value if value is None else math.nan if value != value else value + 0.0
    return _frozen if type_.arrow.num_fields else None


def _frozen(value: Any) -> Any:
    if isinstance(value, float):
        return math.nan if value != value else value + 0.0
    if isinstance(value, dict):
        return tuple(map(_frozen, value.values()))
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


class RowTest:
    """A test whether some conditions are all true of a row."""

    def __init__(self, conditions: Sequence[Expression], schema: Schema) -> None:
        self._rowwise = Rowwise((conjunction(conditions) or TRUE,), schema)

    def of(self, rows: Sequence[Row]) -> list[bool]:
        """For each row, whether it passes."""
        return [value is True for (value,) in self._rowwise(rows)]

    def lazily(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows that pass, lazily."""
        return (row for row, (value,) in self._rowwise.lazily(rows) if value is True)


def within(rows: Iterable[Row], among: Among) -> Iterator[Row]:
    """The rows whose key is among some keys."""
    columns, keys = among.columns, among.keys
    return (row for row in rows if tuple([row[column] for column in columns]) in keys)


def satisfied(rows: Iterable[Row], schema: Schema, demand: Demand) -> Iterator[Row]:
    """The rows that meet a demand, in its order."""
    left = iter(rows)
    for among in demand.among:
        left = within(left, among)
    if demand.where:
        left = RowTest(demand.where, schema).lazily(left)
    if not demand.order:
        return left
    key = sort_key(schema, demand.order)
    ordered = sorted(left, key=key)
    if demand.after is None:
        return iter(ordered)
    return filter(coming_after(schema, demand.order, demand.after), ordered)
