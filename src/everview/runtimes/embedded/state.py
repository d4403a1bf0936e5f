"""The traces of a program, shard by shard: opened, closed and abandoned together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from everview.circuit.program import Program
from everview.operators.operator import Context
from everview.traces.trace import Trace
from everview.traces.view import View

Matrix = NDArray[np.int64]


class State:
    """One trace for every node that owns one, on every shard."""

    def __init__(self, program: Program, context: Context) -> None:
        self.traces = {
            at: [Trace(layout.width + 1, order=context.order(layout)) for _ in range(program.shards)]
            for at, layout in program.traces.items()
        }

    def before(self, shard: int, at: int) -> View:
        return self.traces[at][shard].before

    def push(self, shard: int, appends: Mapping[int, Matrix]) -> None:
        for at, batch in appends.items():
            self.traces[at][shard].push(batch)

    def pushed(self) -> Iterator[tuple[int, int, Matrix]]:
        """What the open epoch appends: (node, shard, batch)."""
        for at, shards in self.traces.items():
            for shard, trace in enumerate(shards):
                for batch in trace.current:
                    yield at, shard, batch

    def close(self) -> None:
        for shards in self.traces.values():
            for trace in shards:
                trace.close()

    def abandon(self) -> None:
        for shards in self.traces.values():
            for trace in shards:
                trace.abandon()
