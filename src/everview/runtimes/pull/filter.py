"""Filters: one more condition for what is pulled, a test of each row that is pushed."""

from __future__ import annotations

from collections.abc import Iterator

from everview.plan.conditions import conjuncts
from everview.runtimes.pull.demand import Demand, Row
from everview.runtimes.pull.node import PullNode
from everview.runtimes.pull.rows import RowTest
from everview.scalars.expressions import Call, Column, Expression, Literal
from everview.sources.protocol import Update


class PullFilter(PullNode):
    """The node of WHERE: the rows of its input for which a predicate is true."""

    def __init__(self, input_: PullNode, predicate: Expression) -> None:
        self.input, self.predicate = input_, predicate
        self.inputs, self.schema, self.key = (input_,), input_.schema, input_.key
        self._conditions = tuple(conjuncts(predicate))
        self._test = RowTest(self._conditions, self.schema)
        self.few = self._few()

    @property
    def title(self) -> str:
        return f"Filter {self.predicate}"

    def pull(self, demand: Demand) -> Iterator[Row]:
        return self.input.pull(demand.and_where(*self._conditions))

    def values(self, columns: tuple[int, ...], keep: bool) -> frozenset[Row] | None:
        return self.input.values(columns, keep)

    def push(self, *updates: Update) -> Update:
        rows = updates[0].rows
        chosen = zip(rows.items(), self._test.of(list(rows)), strict=True)
        return Update({row: weight for (row, weight), holds in chosen if holds})

    def _few(self) -> int | None:
        """The most rows that there can be: equalities with a whole key leave no more than they name."""
        if self.key is None:
            return self.input.few
        named = dict(filter(None, map(_equated, self._conditions)))
        if not set(self.key) <= set(named):
            return self.input.few
        rows = 1
        for column in self.key:
            rows *= named[column]
        return rows if self.input.few is None else min(rows, self.input.few)


def _equated(condition: Expression) -> tuple[int, int] | None:
    """The column that a condition equates with constants, and how many there are; None for other conditions."""
    match condition:
        case Call("equal", (Column(index), Literal())) | Call("equal", (Literal(), Column(index))):
            return index, 1
        case Call("in", (Column(index), *chosen)) if all(isinstance(c, Literal) for c in chosen):
            return index, len(chosen)
        case _:
            return None
