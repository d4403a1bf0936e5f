"""Window: each touched partition anew, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from everview.errors import WeightOverflow
from everview.operators.by_state import ByState, OverChanges, OverWhole
from everview.operators.index import Order, restore
from everview.operators.operator import Context, FieldOrigin, Layout, Origins, Port, UnaryOperator, key_partition
from everview.operators.window.aggregates import AggregateOver
from everview.operators.window.frames import Places
from everview.operators.window.functions import SESSIONS, Over
from everview.traces.view import TraceView
from everview.types import Schema
from everview.types.words import Matrix

ALL = 1 << 62  # more places than a partition has
MOST = 1 << 31  # rows of one change


@dataclass(frozen=True, slots=True)
class SessionEdges:
    """Where windows of sessions have the moments of rows and the last ones of sessions, and the gap that ends one."""

    moment: int
    last: int
    gap: int


@dataclass(frozen=True)
class _Window(ByState, UnaryOperator):
    """The input is indexed by the partition, then by the order, of which the first ``peers`` fields tell peers."""

    source: Layout
    order: Order
    peers: int
    calls: tuple[Over, ...]

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self.source, key_partition(self.source.key)),)

    @cached_property
    def schema(self) -> Schema:
        return Schema([*self.source.schema.fields, *(call.result for call in self.calls)])

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    @property
    def group_words(self) -> int:
        return self.source.key_words

    @property
    def functions(self) -> tuple[str, ...]:
        """The user's aggregates that it calls."""
        return tuple(call.call.user for call in self.calls if isinstance(call, AggregateOver) and call.call.user)

    @property
    def sessions(self) -> SessionEdges | None:
        """The fields of sessions, if these are all that the calls tell, and one tells where they end."""
        if any(call.function not in SESSIONS for call in self.calls) or len({call.number for call in self.calls}) > 1:
            return None
        ends = [place for place, call in enumerate(self.calls) if call.function == SESSIONS[1]]
        if not ends:
            return None
        call = self.calls[ends[0]]
        return SessionEdges(call.fields[0], len(self.source.schema) + ends[0], call.number)

    @property
    def reads_values(self) -> bool:
        return super().reads_values or any(call.reads_values(self.source.schema) for call in self.calls)

    def evaluate(self, groups: Matrix, states: Sequence[Sequence[TraceView]], context: Context) -> list[Matrix]:
        return [self._beside(view.first_rows(groups, self.group_words, 0, ALL), context) for (view,) in states]

    def _beside(self, rows: Matrix, context: Context) -> Matrix:
        """Every row, as often as it is there, with the results after its words."""
        schema, weights = self.source.schema, rows[:, -1]
        if int(weights.astype(np.float64).sum()) > MOST:
            raise WeightOverflow(
                f"a window over {int(weights.sum()):,} rows", hint="partition by more columns, or aggregate first"
            )
        if (weights != 1).any():
            rows = np.repeat(rows, weights, axis=0)
            rows[:, -1] = 1
        last = self.source.key + self.peers
        restore(rows, schema, self.order)  # one to one, so that equal stays equal
        places = Places(rows, self.group_words, schema.words(last - 1).stop if last else 0)
        out = np.empty((rows.shape[0], self.schema.width + 1), np.int64)
        out[:, : schema.width], out[:, -1] = rows[:, :-1], 1
        if rows.shape[0]:
            for place, call in enumerate(self.calls, len(schema)):
                out[:, self.schema.words(place)] = call.words(places, schema, context)
        return out


@dataclass(frozen=True)
class Window(OverWhole, _Window):
    """The windows of every tick's whole input."""

    def incremental(self) -> WindowIncremental:
        return WindowIncremental(self.source, self.order, self.peers, self.calls)


@dataclass(frozen=True)
class WindowIncremental(OverChanges, _Window):
    """The change of `Window`."""

    asked_again = (
        "its functions may read any row of a partition; a watermark bounds partitions by time, "
        "and frames of RANGE BETWEEN INTERVAL … PRECEDING over it"
    )

    @property
    def origins(self) -> Origins:
        """A row can join or split only sessions whose end is at most the gap before the row's time."""
        groups, edges = super().origins, self.sessions
        return groups if edges is None else {**groups, edges.last: (FieldOrigin(0, edges.moment, edges.gap),)}
