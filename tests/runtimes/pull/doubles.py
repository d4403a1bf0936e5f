"""Doubles that are ordinary nodes: one that notes what passes, one that fails when it is told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from everview.pull import Demand, Node
from everview.sources.memory import Memory
from everview.sources.protocol import Update

Row = tuple[Any, ...]


class Between(Node):
    """A node that stands before another, and does the same."""

    def __init__(self, input_: Node) -> None:
        self.input, self.inputs = input_, (input_,)
        self.schema, self.key, self.few = input_.schema, input_.key, input_.few

    def pull(self, demand: Demand) -> Iterator[Row]:
        return self.input.pull(demand)

    def push(self, *updates: Update) -> Update:
        return updates[0]


class Snitch(Between):
    """It notes the demands that pass on their way up, and the updates on their way down."""

    def __init__(self, input_: Node) -> None:
        super().__init__(input_)
        self.demands: list[Demand] = []
        self.updates: list[Update] = []

    def pull(self, demand: Demand) -> Iterator[Row]:
        self.demands.append(demand)
        return super().pull(demand)

    def push(self, *updates: Update) -> Update:
        self.updates.append(updates[0])
        return super().push(*updates)


class Fault(Exception):
    """What a double raises."""


class Faults:
    """Something may fail whenever `pass_by` is called: the one after so many, if that is set."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.passed = 0

    def pass_by(self) -> None:
        self.passed += 1
        if self.left is not None:
            if self.left == 0:
                self.left = None
                raise Fault
            self.left -= 1


class Fragile(Between):
    """It fails before or after it has pushed, and with every row that is pulled."""

    def __init__(self, input_: Node, faults: Faults) -> None:
        super().__init__(input_)
        self._faults = faults

    def pull(self, demand: Demand) -> Iterator[Row]:
        self._faults.pass_by()
        for row in self.input.pull(demand):
            self._faults.pass_by()
            yield row

    def push(self, *updates: Update) -> Update:
        self._faults.pass_by()
        return super().push(*updates)


class FragileSource(Memory):
    """A source in memory that fails at any step of a turn."""

    faults: Faults = Faults()

    def begin(self) -> None:
        self.faults.pass_by()
        super().begin()

    def write(self, update: Update) -> None:
        self.faults.pass_by()
        super().write(update)
        self.faults.pass_by()

    def changes(self) -> Update:
        self.faults.pass_by()
        return super().changes()

    def commit(self) -> None:
        try:
            self.faults.pass_by()
        except Fault:
            super().rollback()  # what cannot be committed is rolled back
            raise
        super().commit()


Around = Callable[[Node], Node]
