"""The seam between all nodes of a pipeline: history is pulled, changes are pushed.

`pull` answers a demand from the state now: rows in order, lazily, so that a reader may stop when it has enough. `push`
takes the changes of all inputs in this turn, whole and without an order, and returns the node's own change. A node's
state changes only when a turn ends: `push` puts the new state aside, `commit` takes it over, `rollback` forgets it.
Once a node has been pushed in a turn, it answers from the new state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property

from everview.runtimes.pull.demand import Demand, Row
from everview.sources.protocol import Update
from everview.types import Schema

NOTHING = Update({})


class PullNode(ABC):
    """An operator of a pipeline: its inputs, its output, and the known properties of its rows."""

    schema: Schema
    inputs: tuple[PullNode, ...] = ()
    key: tuple[int, ...] | None = None  # columns that tell rows apart; None if one may be there twice
    few: int | None = None  # how many rows there are at most, if that is known beforehand

    @cached_property
    def reads(self) -> frozenset[str]:
        """The names of the sources whose changes reach the node."""
        return frozenset[str]().union(*(node.reads for node in self.inputs))

    @abstractmethod
    def pull(self, demand: Demand) -> Iterator[Row]:
        """The rows of a demand, in its order, from the state now."""

    @abstractmethod
    def push(self, *updates: Update) -> Update:
        """The node's change, given the changes of all its inputs, of which one is not empty."""

    def commit(self) -> None:  # noqa: B027, most nodes keep nothing
        """Take over the state that the pushes of this turn have put aside."""

    def rollback(self) -> None:  # noqa: B027
        """Forget the state that the pushes of this turn have put aside."""

    def values(self, columns: tuple[int, ...], keep: bool) -> frozenset[Row] | None:
        """The values that some columns can have, or a few more than these; None if there may be many."""
        return None

    @property
    def kept(self) -> int:
        """The number of rows or groups that the node holds."""
        return 0

    @property
    def title(self) -> str:
        """The node in one line."""
        return type(self).__name__


def every_node(root: PullNode) -> Iterator[PullNode]:
    """A node and all nodes below it, each once, inputs after their readers."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(reversed(node.inputs))
