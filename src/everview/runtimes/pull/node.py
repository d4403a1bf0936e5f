"""The seam between all nodes of a pipeline: history is pulled, changes are pushed.

`pull` answers a demand from the state now: rows in order, lazily, to be left unread when enough have come. `push`
takes the changes of this turn of all inputs, whole and without an order, and gives the node's own. Replies and updates
are different types. What a node keeps, it changes only when a turn ends: `push` puts the new state aside, `commit`
takes it over, `rollback` forgets it. During a turn, once it has been pushed, a node answers from the new state.
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
    """An operator of a pipeline."""

    schema: Schema
    inputs: tuple[PullNode, ...] = ()
    key: tuple[int, ...] | None = None  # columns that tell rows apart; None if one may be there twice
    few: int | None = None  # how many rows there are at most, if that is known beforehand

    @cached_property
    def reads(self) -> frozenset[str]:
        """The sources whose changes reach it."""
        return frozenset[str]().union(*(node.reads for node in self.inputs))

    @abstractmethod
    def pull(self, demand: Demand) -> Iterator[Row]:
        """The rows that are asked for, in order, as of now."""

    @abstractmethod
    def push(self, *updates: Update) -> Update:
        """What the changes of all inputs change here."""

    def commit(self) -> None:  # noqa: B027, most nodes keep nothing
        """Take over what the pushes of this turn have put aside."""

    def rollback(self) -> None:  # noqa: B027
        """Forget what the pushes of this turn have put aside."""

    def values(self, columns: tuple[int, ...], keep: bool) -> frozenset[Row] | None:
        """The values that some columns have among its rows, and perhaps some more; None if these may be many."""
        return None

    @property
    def kept(self) -> int:
        """How many rows or groups it holds."""
        return 0

    @property
    def title(self) -> str:
        """One line that says what it does."""
        return type(self).__name__


def every_node(root: PullNode) -> Iterator[PullNode]:
    """A node and all that it reads, each once, inputs after what reads them."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(reversed(node.inputs))
