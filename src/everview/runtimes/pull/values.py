"""Constant relations, as VALUES writes them: they never change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everview.runtimes.pull.demand import Demand, Row
from everview.runtimes.pull.node import NOTHING, PullNode
from everview.runtimes.pull.rows import satisfied
from everview.sources.protocol import Update
from everview.types import Schema


class PullValues(PullNode):
    """The node of VALUES: constant rows."""

    def __init__(self, rows: Sequence[Row], schema: Schema) -> None:
        self.rows, self.schema, self.few = tuple(rows), schema, len(rows)

    @property
    def title(self) -> str:
        return "Values"

    def pull(self, demand: Demand) -> Iterator[Row]:
        return satisfied(self.rows, self.schema, demand)

    def push(self, *updates: Update) -> Update:
        return NOTHING
