"""The traces of a program at one moment: batches never change in place, so whoever has them keeps what they show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from everview.runtimes.state import Path, ProgramState
from everview.traces.view import Batches


@dataclass(frozen=True, slots=True)
class FrozenTrace:
    """A trace at one moment."""

    before: Batches

    @property
    def past(self) -> Batches:
        """All of it, for its length."""
        return self.before

    @property
    def momentary(self) -> Batches:
        """All of it, for one who looks up keys."""
        return self.before


@dataclass(frozen=True, slots=True)
class FrozenState:
    """Traces at one moment, as `ProgramState` gives them: those of tables and views, or all."""

    traces: Mapping[tuple[Path, int], list[FrozenTrace]]

    @classmethod
    def of_nodes(cls, state: ProgramState, nodes: Iterable[int]) -> FrozenState:
        """The traces of some nodes, as they are now, without what the open epoch has appended."""
        return cls._of(state, (((), node) for node in nodes))

    @classmethod
    def whole(cls, state: ProgramState) -> FrozenState:
        """All traces, as they are now, also those inside of loops."""
        return cls._of(state, state.traces)

    @classmethod
    def _of(cls, state: ProgramState, places: Iterable[tuple[Path, int]]) -> FrozenState:
        return cls(
            {(path, node): [FrozenTrace(trace.before) for trace in state.of(node, path)] for path, node in places}
        )

    def of(self, node: int, path: Path = ()) -> list[FrozenTrace]:
        """The traces of a node, one a shard."""
        return self.traces[path, node]

    def before(self, shard: int, node: int) -> Batches:
        """A trace of a shard."""
        return self.traces[(), node][shard].before
