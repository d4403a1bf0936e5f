"""The traces of a program, shard by shard: opened, closed and abandoned together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from everview.circuit.program import Program
from everview.codes import references
from everview.operators.operator import Context
from everview.traces.trace import Trace
from everview.traces.view import View

Matrix = NDArray[np.int64]
Pushed = tuple[Trace, str, int, Matrix]  # a trace, its name and shard, and what the open epoch adds to it


class State:
    """One trace for every node that owns one, on every shard."""

    def __init__(self, program: Program, context: Context) -> None:
        self.names = program.names
        self.traces = {
            at: [Trace(layout.width + 1, context.order(layout)) for _ in range(program.shards)]
            for at, layout in program.traces.items()
        }

    def __iter__(self) -> Iterator[tuple[Trace, str, int]]:
        """Every trace with its name and shard."""
        for at, shards in self.traces.items():
            for shard, trace in enumerate(shards):
                yield trace, self.names[at], shard

    def before(self, shard: int, at: int) -> View:
        return self.traces[at][shard].before

    def push(self, shard: int, appends: Mapping[int, Matrix]) -> None:
        for at, batch in appends.items():
            self.traces[at][shard].push(batch)

    def pushed(self) -> list[Pushed]:
        """What the open epoch appends, where it appends anything."""
        found = ((trace, name, shard, trace.sum()) for trace, name, shard in self)
        return [(trace, name, shard, batch) for trace, name, shard, batch in found if batch is not None]

    def close(self, ids: Sequence[int] = (), pushed: Sequence[Pushed] = ()) -> None:
        """End the epoch; ``ids`` are those under which a store keeps what was pushed."""
        for (trace, *_), id_ in zip(pushed, ids, strict=True):
            trace.close((id_,))
        for trace, _, _ in self:
            trace.close()

    def references(self, program: Program) -> dict[int, Matrix]:
        """The dictionary codes that any row refers to, by kind."""
        found: dict[int, list[Matrix]] = {}
        for at, shards in self.traces.items():
            for batch in (b for trace in shards for b in trace.past.batches):
                for kind, codes in references(program.traces[at].schema, batch).items():
                    found.setdefault(kind, []).append(np.unique(codes))
        return {kind: np.unique(np.concatenate(codes)) for kind, codes in found.items()}

    def abandon(self) -> None:
        """Forget what the open epoch has appended."""
        for trace, _, _ in self:
            trace.abandon()
