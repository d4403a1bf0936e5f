"""Projections: conditions and orders of a demand are rewritten to the input's columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from everview.runtimes.pull.demand import Demand, Row
from everview.runtimes.pull.node import PullNode
from everview.runtimes.pull.ordering import through
from everview.runtimes.pull.rows import Rowwise, within
from everview.scalars.expressions import Column, Expression, rewritten
from everview.sources.protocol import Update
from everview.types import Schema


class PullProject(PullNode):
    """The node of a SELECT list: the values of some expressions for every row of its input."""

    def __init__(self, input_: PullNode, expressions: Sequence[Expression], schema: Schema) -> None:
        self.input, self.expressions, self.schema = input_, tuple(expressions), schema
        self.inputs, self.few = (input_,), input_.few
        self._values = Rowwise(self.expressions, input_.schema)
        self._places = [e.index if isinstance(e, Column) else None for e in self.expressions]
        self.key = self._key()
        self._rewritten: dict[tuple[Expression, ...], tuple[Expression, ...]] = {}

    @property
    def title(self) -> str:
        named = zip(map(str, self.expressions), self.schema.names, strict=True)
        return f"Project {', '.join(e if e == name else f'{e} AS {name}' for e, name in named)}"

    def _key(self) -> tuple[int, ...] | None:
        key = self.input.key
        if key is None or not set(key) <= set(self._places):
            return None
        return tuple(self._places.index(column) for column in key)

    def pull(self, demand: Demand) -> Iterator[Row]:
        where = self._below(demand.where)
        below = [a for a in demand.among if all(self._places[column] is not None for column in a.columns)]
        undecided = [a for a in demand.among if a not in below]
        keys = tuple(a.at(self._place) for a in below)

        def ask(asked: Demand) -> Iterator[Row]:
            limit = None if undecided else asked.limit
            below_rows = self.input.pull(replace(asked, where=where, among=(*keys, *asked.among), limit=limit))
            rows = (values for _, values in self._values.lazily(below_rows))
            for among in undecided:
                rows = within(rows, among)
            return rows

        return through(demand, self.schema, self._places.__getitem__, ask)

    def _place(self, column: int) -> int:
        place = self._places[column]
        assert place is not None
        return place

    def _below(self, where: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """Conditions on computed columns as conditions on the input's columns."""
        below = self._rewritten.get(where)
        if below is None:
            below = self._rewritten[where] = tuple(rewritten(each, self._computed) for each in where)
        return below

    def _computed(self, expression: Expression) -> Expression:
        return self.expressions[expression.index] if isinstance(expression, Column) else expression

    def values(self, columns: tuple[int, ...], keep: bool) -> frozenset[Row] | None:
        places = [self._places[column] for column in columns]
        return None if None in places else self.input.values(tuple(map(self._place, columns)), keep)

    def push(self, *updates: Update) -> Update:
        rows = updates[0].rows
        return Update.of(zip(self._values(list(rows)), rows.values(), strict=True))
