"""Unions: the rows of several inputs together, merged if an order is demanded."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import chain

from everview.runtimes.pull.demand import Demand, Row
from everview.runtimes.pull.node import PullNode
from everview.runtimes.pull.ordering import sort_key
from everview.sources.protocol import Update
from everview.types import Schema


class PullUnion(PullNode):
    """The node of UNION ALL: all rows of all inputs."""

    def __init__(self, inputs: Sequence[PullNode], schema: Schema) -> None:
        self.inputs, self.schema = tuple(inputs), schema
        counts = [node.few for node in inputs]
        self.few = None if None in counts else sum(c for c in counts if c is not None)

    @property
    def title(self) -> str:
        return "Union"

    def pull(self, demand: Demand) -> Iterator[Row]:
        replies = (node.pull(demand) for node in self.inputs)
        if not demand.order:
            return chain.from_iterable(replies)
        return heapq.merge(*replies, key=sort_key(self.schema, demand.order))

    def push(self, *updates: Update) -> Update:
        return Update.of(chain.from_iterable(updates))
