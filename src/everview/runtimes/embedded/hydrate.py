"""New traces for a program that goes on from another: one tick from nothing, of what is new alone.

A trace is named by what it holds, so a program takes over every trace of its name and computes the others. Law: a
stream's integral is what a trace over it holds. So computing goes back from the new traces only as far as to streams
whose integrals are held, and starts from those: to operators this is a first tick, in which everything arrives at
once, and to a z⁻¹ there was nothing before. What is held already is read, never computed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everview.circuit.bounds import LoopBounds
from everview.circuit.nodes import Apply, Feedback, Node, inputs_of, reads_of
from everview.circuit.program import Program
from everview.errors import EverviewError
from everview.kernels.large import arrange, one_scratch, project
from everview.operators.arrange import Arrange
from everview.operators.exchange import Exchange
from everview.operators.expired import Expired
from everview.operators.index import Index, sorted_by
from everview.operators.join import JoinTrace
from everview.operators.linear import Plus, Project, Recode
from everview.operators.operator import Context, Moment, Operator, word_columns
from everview.operators.window import WindowIncremental
from everview.runtimes.embedded.walk import Route, chosen_words, operator_of, walk_from, walked
from everview.runtimes.epoch import Epochs
from everview.runtimes.loops import Cells
from everview.runtimes.state import ProgramState
from everview.traces.trace import Trace
from everview.types.words import Matrix

Held = Mapping[str, Sequence[Trace]]  # by name, a trace a shard


@dataclass(frozen=True, slots=True)
class Integral:
    """Where the integral of a stream is held: the trace, and which of its words make up the stream's rows."""

    name: str
    columns: NDArray[np.int64] | None = None  # None: the trace's rows as they are
    sorted: bool = False

    def read(self, held: Held, shard: int) -> Matrix:
        """All that has come by the stream so far."""
        return self.taken(self.whole(held, shard))

    def taken(self, whole: Matrix) -> Matrix:
        """The rows of the stream, of all rows of the trace."""
        if self.columns is None:
            return whole
        return arrange(whole, self.columns) if self.sorted else project(whole, self.columns)

    def read_by(self, index: Operator, held: Held, shard: int) -> Matrix:
        """All that an index has put out of the stream so far: of the trace, without the stream."""
        columns = chosen_words(index)
        assert columns is not None, "an index takes words as they are"
        return sorted_by(self.whole(held, shard), columns if self.columns is None else self.columns[columns])

    def whole(self, held: Held, shard: int) -> Matrix:
        """All rows of the trace."""
        return held[self.name][shard].before.consolidated()


def hydrate(
    program: Program,
    state: ProgramState,
    held: Held,
    context: Context,
    bounds: LoopBounds | None = None,
    first: Sequence[Mapping[int, Matrix]] = (),
) -> None:
    """Append to the open epoch of a state what its traces hold that are not held already.

    ``first`` are rows that arrive at new sources, shard by shard.
    """
    plan = hydration(program, held)
    if not plan.needed:
        return
    known, needed, given = plan.known, plan.needed, plan.given
    try:
        departures = _departures(program, needed, known, given)
        left = needed.difference(*(departure.done for departure in departures))
        readers = _readers(program, left)
        cells: Cells = [PassingCells(readers) for _ in range(program.shards)]
        with one_scratch():
            _fill(cells, program, held, known, departures, context, first)
            Epochs(part_of(program, left), state, context, bounds).run(cells)
        _forget_expired(program, state, held)
        return
    except (EverviewError, OverflowError):  # a kernel raises the latter
        state.abandon()
    # An error names a row as its source has it, so all streams must be there: once more, with them.
    whole = [Departure(start, Route(start, (), ()), (), True) for start in given]
    cells = [{} for _ in range(program.shards)]
    _fill(cells, program, held, known, whole, context, first)
    Epochs(part_of(program, needed), state, context, bounds).run(cells)
    _forget_expired(program, state, held)


def _forget_expired(program: Program, state: ProgramState, held: Held) -> None:
    """Drop from new traces the rows that older traces of the same stream have let expire.

    Operators have read them whole: what they make of rows that have expired since is a part of their results.
    """
    known, new = integrals(program, held), set(new_nodes(program, held))
    for node_id in sorted(new & expiring_nodes(program)):
        (index,) = inputs_of(program.circuit[node_id])
        source = None if index is None else inputs_of(program.circuit[index])[0]
        if index is None or source not in known:
            continue
        state.absorb()
        for shard, trace in enumerate(state.of(node_id)):
            trace.abandon()
            state.push(shard, (), {node_id: known[source].read_by(operator_of(program, index), held, shard)})


def expiring_nodes(program: Program) -> set[int]:
    """The streams that are kept without what has expired, their indexes, and the traces of these."""
    expiring: set[int] = set()
    for node_id in program.order:
        node = program.circuit[node_id]
        inputs = [i for i in inputs_of(node) if i is not None]
        plus = isinstance(node, Apply) and isinstance(node.operator, Plus)
        if plus and any(_takes_back(program, i) for i in inputs):
            expiring.add(node_id)
        elif isinstance(node, Apply) and isinstance(node.operator, Index | Arrange | Exchange | WindowIncremental):
            expiring.update({node_id} if expiring.intersection(inputs) else ())
    return expiring


def _takes_back(program: Program, node_id: int) -> bool:
    """Whether a stream is the feedback of what has expired."""
    node = _below_moves(program, program.circuit[node_id])
    if not isinstance(node, Feedback) or node.input is None:
        return False
    below = _below_moves(program, program.circuit[node.input])
    return isinstance(below, Apply) and isinstance(below.operator, Expired)


def _below_moves(program: Program, node: Node) -> Node:
    """The node whose rows come this way, in other columns or on another shard."""
    while isinstance(node, Apply) and isinstance(node.operator, Project | Recode | Exchange):
        (given,) = node.inputs
        assert given is not None, "a program is connected"
        node = program.circuit[given]
    return node


@dataclass(frozen=True, slots=True)
class HydrationPlan:
    """The computation of new traces: the nodes to run, and the held streams to start from."""

    program: Program
    needed: set[int]
    given: set[int]  # streams whose integrals are held
    known: Mapping[int, Integral]

    @property
    def traces(self) -> frozenset[str]:
        """The names of the traces that are read."""
        return frozenset(self.known[node_id].name for node_id in self.given)

    @property
    def sources(self) -> dict[str, int]:
        """The sources that are read from their beginning, because no trace holds their rows."""
        return {name: node_id for name, node_id in self.program.circuit.sources.items() if node_id in self.needed}


def hydration(program: Program, held: Container[str]) -> HydrationPlan:
    """The plan for computing a program's traces that are not held yet."""
    wanted, expiring = new_nodes(program, held), expiring_nodes(program)
    # A trace that expires does not hold what has come by its stream so far.
    known = {node_id: integral for node_id, integral in integrals(program, held).items() if node_id not in expiring}
    return HydrationPlan(program, *_back_from(program, wanted, known), known)


class PassingCells(dict[int, Matrix]):
    """The cells of a shard, which let go of a stream when the last of its readers has taken it.

    All rows of all tables pass at once, so what is not needed any more must not stay until the end.
    """

    def __init__(self, readers: Mapping[int, int]) -> None:
        super().__init__()
        self._left = dict(readers)  # by stream, how many are still to come; others stay

    def get(self, node: int, default: Any = None, /) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The rows of a stream, as a reader of it takes them."""
        left = self._left.get(node)
        if left is None:
            return super().get(node, default)
        self._left[node] = left - 1
        return super().get(node, default) if left > 1 else self.pop(node, default)


def _readers(program: Program, nodes: set[int]) -> dict[int, int]:
    """The number of operators that read each stream, of streams that no trace, loop or feedback reads."""
    count, others = Counter[int](), set[int]()
    for node_id in nodes:
        node = program.circuit[node_id]
        others.update(read.node for read in reads_of(node))
        if isinstance(node, Apply) and not isinstance(node.operator, Exchange):
            count.update(i for i in node.inputs if i is not None)
        else:
            others.update(i for i in inputs_of(node) if i is not None)
    return {node_id: times for node_id, times in count.items() if node_id not in others}


@dataclass(frozen=True, slots=True)
class Departure:
    """The start of a computation from a stream whose integral is held.

    Operators that look at one row at a time, and indexes, are computed from the trace at once, where they read the
    stream. The ``whole`` stream is needed only by others.
    """

    start: int
    walk: Route
    indexes: tuple[int, ...]
    whole: bool

    @property
    def done(self) -> tuple[int, ...]:
        return self.walk.nodes + self.indexes


def _departures(program: Program, needed: set[int], known: Mapping[int, Integral], given: set[int]) -> list[Departure]:
    readers: dict[int, list[int]] = {node_id: [] for node_id in sorted(given)}
    for node_id in sorted(needed):
        node = program.circuit[node_id]
        for other in {*inputs_of(node), *(read.node for read in reads_of(node))} & given:
            assert other is not None, "a program is connected"
            readers[other].append(node_id)
    return [_departure(program, needed, known[start], start, others) for start, others in readers.items()]


def _departure(program: Program, needed: set[int], known: Integral, start: int, readers: Sequence[int]) -> Departure:
    if program.shards > 1 or known.sorted:  # over several shards rows move; and what is to be sorted is whole
        return Departure(start, Route(start, (), ()), (), True)
    walk = walk_from(program, start, needed)
    rest = [node_id for node_id in readers if node_id not in walk.nodes]
    indexes = tuple(node_id for node_id in rest if _takes_words(program, node_id))
    return Departure(start, walk, indexes, len(indexes) < len(rest) or not readers)


def _fill(
    cells: Cells,
    program: Program,
    held: Held,
    known: Mapping[int, Integral],
    departures: Iterable[Departure],
    context: Context,
    first: Sequence[Mapping[int, Matrix]],
) -> None:
    """Put in what the streams to start from have brought so far, and the rows that arrive at new sources."""
    for shard, cell in enumerate(cells):
        for departure in departures:
            start, integral = departure.start, known[departure.start]
            if departure.walk.nodes:
                whole = integral.whole(held, shard)
                cell.update(walked(program, departure.walk, whole, integral.columns, context))
            for node_id in departure.indexes:
                cell[node_id] = integral.read_by(operator_of(program, node_id), held, shard)
            if departure.whole:
                cell[start] = integral.read(held, shard)
    for cell, rows in zip(cells, first, strict=False):
        cell.update(rows)


def _takes_words(program: Program, node_id: int) -> bool:
    node = program.circuit[node_id]
    return isinstance(node, Apply) and chosen_words(node.operator) is not None


def new_nodes(program: Program, held: Container[str]) -> list[int]:
    """The nodes of the root that own a trace of a new name, or whose child does."""
    new: dict[int, None] = {}
    for path, inner in program.nested():
        for node_id, name in inner.names.items():
            if name not in held:
                new[path[0] if path else node_id] = None
    return list(new)


def integrals(program: Program, held: Container[str]) -> dict[int, Integral]:
    """The root's streams with held integrals: streams arranged in a held trace, and the streams they index."""
    integral_of: dict[int, Integral] = {}
    for node_id, name in program.names.items():
        node = program.circuit[node_id]
        if name not in held or not (isinstance(node, Apply) and isinstance(node.operator, Arrange)):
            continue
        (input_,) = node.inputs
        assert input_ is not None, "a program is connected"
        integral_of[node_id] = integral_of[input_] = Integral(name)
        beyond = _indexed(program, input_, name)
        if beyond is not None:
            integral_of.setdefault(*beyond)
    return integral_of


def _indexed(program: Program, node_id: int, name: str) -> tuple[int, Integral] | None:
    """The input of an index, as the rows of its trace with their columns put back."""
    node = program.circuit[node_id]
    if not (isinstance(node, Apply) and isinstance(node.operator, Index)):
        return None
    index, (source,) = node.operator, node.inputs
    assert source is not None, "a program is connected"
    layout = program.circuit.layout(source)
    everything = sorted(index.fields) == list(range(len(layout.schema)))
    if not everything or index.order or layout.by_value:
        return None
    back = tuple(index.fields.index(field) for field in range(len(layout.schema)))
    return source, Integral(name, word_columns(index.schema, back), layout.sorted)


def _back_from(program: Program, wanted: Iterable[int], known: Mapping[int, Integral]) -> tuple[set[int], set[int]]:
    """The nodes to run, and the nodes with integrals to start from."""
    needed, given = set[int](), set[int]()
    waiting = list(wanted)
    while waiting:
        node_id = waiting.pop()
        node = program.circuit[node_id]
        if node_id in needed or node_id in given or _finds_nothing(node):
            continue
        if node_id in known:
            given.add(node_id)
            continue
        needed.add(node_id)
        waiting += [i for i in inputs_of(node) if i is not None]
        waiting += [read.node for read in reads_of(node)]
    return needed, given


def _finds_nothing(node: Node) -> bool:
    """Whether a node only probes traces as they were before the tick: empty ones, in a first tick."""
    return (
        isinstance(node, Apply)
        and isinstance(node.operator, JoinTrace)
        and all(read.moment is Moment.BEFORE for read in node.reads)
    )


def part_of(program: Program, nodes: set[int]) -> Program:
    """The program with some of its nodes only."""
    part = copy(program)
    part.stages = tuple(
        replace(
            stage,
            nodes=tuple(node_id for node_id in stage.nodes if node_id in nodes),
            moves=tuple(node_id for node_id in stage.moves if node_id in nodes),
        )
        for stage in program.stages
    )
    part.loops = tuple(tuple(loop for loop in loops if loop.at in nodes) for loops in program.loops)
    return part
