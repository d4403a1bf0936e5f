"""The traces of a program, shard by shard: opened, closed and abandoned together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from everview.circuit.compiled import is_compilable
from everview.circuit.program import Program, trace_columns
from everview.codes import references
from everview.errors import WeightOverflow
from everview.operators.operator import Context, TimedView
from everview.runtimes.compiled import Compiled
from everview.traces import freed
from everview.traces.trace import Trace
from everview.traces.view import Batches
from everview.types import Schema
from everview.types.words import Matrix

Path = tuple[int, ...]  # the child nodes that lead to a program
NOT_APPLIED = "the tick was not applied"
Pushed = tuple[Trace, str, int, Matrix]  # a trace, its name and shard, and what the open epoch adds to it


class ProgramState:
    """One trace for every node that owns one, on every shard, those of children included."""

    def __init__(self, program: Program, context: Context) -> None:
        self.traces: dict[tuple[Path, int], list[Trace]] = {}
        self.schemas: dict[tuple[Path, int], tuple[str, Schema]] = {}
        self._flat: list[tuple[Trace, str, int]] | None = None
        self.program, self._context = program, context
        self._pushed = True  # whether the open epoch may have appends of Python's
        self._staged: list[int] | None = None  # if `pushed` has left all in registers, the numbers of the traces
        for path, inner in program.nested():
            for node, layout in inner.traces.items():
                order = context.order(layout, inner.depth)
                columns = trace_columns(layout, inner.depth)
                key = layout.key_words or layout.width
                self.traces[path, node] = [Trace(columns, order, key) for _ in range(program.shards)]
                self.schemas[path, node] = inner.names[node], layout.schema

    @cached_property
    def compiled(self) -> Compiled | None:
        """The program as compiled code over these traces; None if it cannot be compiled."""
        if not is_compilable(self.program):
            return None
        return Compiled(self.program, {key: shards[0] for key, shards in self.traces.items()}, self._context)

    @cached_property
    def _numbered(self) -> list[tuple[Trace, str, int]]:
        """The traces of the program itself as compiled code numbers them, each with its name and shard."""
        return [(shards[0], self.schemas[key][0], 0) for key, shards in self.traces.items() if not key[0]]

    def absorb(self) -> None:
        """Make what compiled code has appended to the open epoch appends like others, which a store can be given."""
        if self.compiled is not None:
            self._pushed = True
            self.compiled.absorb()

    def __iter__(self) -> Iterator[tuple[Trace, str, int]]:
        """Every trace with its name and shard."""
        if self._flat is None:
            self._flat = [
                (trace, self.schemas[key][0], shard)
                for key, shards in self.traces.items()
                for shard, trace in enumerate(shards)
            ]
        return iter(self._flat)

    def of(self, node: int, path: Path = ()) -> list[Trace]:
        """The traces of a node, one a shard."""
        return self.traces[path, node]

    def before(self, shard: int, node: int) -> Batches:
        """A trace without the open epoch, for a reader that is done when the epoch is."""
        return self.traces[(), node][shard].momentary

    def reading(self, shard: int, path: Path, node: int) -> TimedView:
        """A trace of a child: the closed epochs, and what the open one has appended at earlier iterations."""
        trace = self.traces[path, node][shard]
        return TimedView(trace.before, trace.after)

    def push(self, shard: int, path: Path, appends: Mapping[int, Matrix]) -> None:
        self._pushed = True
        for node, batch in appends.items():
            try:
                self.traces[path, node][shard].push(batch)
            except OverflowError as error:
                raise WeightOverflow(f"{error}: of rows ({self.schemas[path, node][1]})", hint=NOT_APPLIED) from None

    def pushed(self, names: Collection[str] | None = None) -> list[Pushed]:
        """The batches of the open epoch by trace and shard; of all traces, or of the named ones.

        Changes that wait in compiled code's registers stay there, and are published from there, if there are no others.
        """
        compiled = self.compiled
        waiting = None if compiled is None or self._pushed or names is not None else compiled.waiting()
        if waiting is not None:
            self._staged = [number for number, _ in waiting]
            return [(*self._numbered[number], batch) for number, batch in waiting]
        self._staged = None
        self.absorb()
        chosen = self if names is None else [trace for trace in self if trace[1] in names]
        return [(trace, name, shard, batch) for trace, name, shard in chosen if (batch := trace.sum()) is not None]

    def held(self) -> dict[str, list[Trace]]:
        """The traces by their names, one a shard."""
        return {self.schemas[key][0]: shards for key, shards in self.traces.items()}

    def adopt(self, held: Mapping[str, list[Trace]]) -> None:
        """Take over the traces whose names are the same, in place of these."""
        for key, (name, _) in self.schemas.items():
            if name in held:
                self.traces[key] = held[name]
        self._flat = None
        for made in ("compiled", "_numbered"):
            vars(self).pop(made, None)

    def waiting(self) -> list[Pushed]:
        """The batches that closed epochs have left unsaved, by trace and shard."""
        return [(trace, name, shard, batch) for trace, name, shard in self if (batch := trace.waiting()) is not None]

    def saved(self, ids: Sequence[int], waiting: Sequence[Pushed]) -> None:
        """Note that a store has what was `waiting`, under these ids."""
        for (trace, *_), id_ in zip(waiting, ids, strict=True):
            trace.saved((id_,))
        for trace, _, _ in self:
            if trace.unsaved:
                trace.saved(())

    def leave(self) -> None:
        """End the epoch, to be saved later."""
        for trace, _, _ in self:
            if trace.current:
                trace.leave()

    def close(self, ids: Sequence[int] = (), pushed: Sequence[Pushed] = ()) -> None:
        """End the epoch; ``ids`` are the ids, in the store, of the batches in ``pushed``."""
        compiled = self.compiled
        if pushed and self._staged is not None:
            assert compiled is not None, "what waits in registers is compiled code's"
            compiled.note_ids(dict(zip(self._staged, ids, strict=True)))
        elif pushed:
            for (trace, *_), id_ in zip(pushed, ids, strict=True):
                trace.close((id_,))
        if compiled is not None:
            compiled.publish()
        if self._pushed:
            for trace, _, _ in self:
                if trace.current:
                    trace.close()
            self._pushed = False
            freed.LARGE_EPOCHS.over()

    def references(self) -> dict[int, Matrix]:
        """The dictionary codes that any row refers to, by kind."""
        by_kind: dict[int, list[Matrix]] = {}
        for key, shards in self.traces.items():
            for batch in (b for trace in shards for b in trace.past.batches):
                for kind, codes in references(self.schemas[key][1], batch).items():
                    by_kind.setdefault(kind, []).append(np.unique(codes))
        return {kind: np.unique(np.concatenate(codes)) for kind, codes in by_kind.items()}

    def abandon(self) -> None:
        """Forget what the open epoch has appended."""
        if self.compiled is not None:
            self.compiled.abandon()
        for trace, _, _ in self:
            if trace.current:
                trace.abandon()
