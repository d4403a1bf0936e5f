"""A circuit ready to run: its nodes in order, cut into stages where rows move between shards or a child runs.

A stage is what one shard does without hearing from the others; it is the unit that a runtime places: a loop
over shards in one process, a task on a cluster. After a stage come the children that it feeds, each a program of its
own that a runtime repeats until nothing is left to do. `everview.circuit.stepping` runs stages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Child, Export, Feedback, Import, Read, Sink, Source, inputs_of, reads_of
from everview.circuit.place import deal_seeds, keep_contents, place_exchanges, spread_tops, table_key
from everview.circuit.reuse import reuse_traces
from everview.operators.arrange import Arrange
from everview.operators.exchange import Exchange
from everview.operators.operator import (
    Anywhere,
    ByKey,
    Layout,
    Moment,
    Partition,
    Step,
    TimedStep,
    nothing,
)
from everview.types.words import Matrix


@dataclass(frozen=True, slots=True)
class Stage:
    """Nodes that run together on a shard, and the streams that cross from earlier stages."""

    nodes: tuple[int, ...]
    moves: tuple[int, ...]  # Exchange nodes whose rows arrive here from all shards
    stays: tuple[int, ...]  # earlier streams of the same shard that are still needed
    shared: tuple[int, ...]  # earlier streams that every shard needs of all shards


@dataclass(frozen=True, slots=True)
class Loop:
    """A child that runs after a stage: its imports from the parent, its feedbacks, and its exports to the parent."""

    at: int
    name: str
    limit: int | None
    changes: bool
    grows: bool
    program: Program
    imports: tuple[tuple[int, int], ...]  # (import in the child, stream of the parent)
    feedbacks: tuple[tuple[int, int], ...]  # (feedback in the child, its input)
    exports: tuple[tuple[int, int], ...]  # (export in the parent, stream of the child)


@dataclass(frozen=True, slots=True)
class Task:
    """A node's work in a tick, prepared for speed: its step functions, inputs and reads."""

    at: int
    step: Callable[..., Step] | None  # None for a feedback
    step_at: Callable[..., TimedStep] | None  # inside a child
    inputs: tuple[int, ...] = ()
    reads: tuple[Read, ...] = ()
    wide: bool = False

    @classmethod
    def of(cls, node_id: int, node: Apply | Feedback) -> Task:
        if isinstance(node, Feedback):
            return cls(node_id, None, None)
        inputs = tuple(i for i in node.inputs if i is not None)
        operator = node.operator
        return cls(node_id, operator.step, operator.step_at, inputs, node.reads, operator.wide)


@dataclass(slots=True)
class Spent:
    """What a node has done so far."""

    steps: int = 0
    rows: int = 0  # put out
    seconds: float = 0.0

    def add(self, rows: int, seconds: float) -> None:
        self.steps += 1
        self.rows += rows
        self.seconds += seconds


class Program:
    """The stages and loops of a circuit for a number of shards."""

    def __init__(
        self,
        circuit: Circuit,
        shards: int = 1,
        tables: Mapping[str, Sequence[str]] | None = None,
        *,
        reuse: bool = False,
    ) -> None:
        """``tables`` names the sources whose contents are kept, each with its key.

        With ``reuse`` joins read traces that are there anyway, instead of others of their own; on one shard, for a
        longer key would put rows on others.
        """
        circuit, prints = keep_contents(circuit, tables), None
        if shards > 1:
            circuit = place_exchanges(deal_seeds(spread_tops(circuit), shards))
        elif reuse:
            circuit, prints = reuse_traces(circuit)
        self._prepare(circuit, shards, 0, circuit.fingerprints() if prints is None else prints)
        self._tell_apart()

    @classmethod
    def _of_child(cls, circuit: Circuit, shards: int, depth: int, outer: Mapping[int, str]) -> Program:
        program = cls.__new__(cls)
        program._prepare(circuit, shards, depth, circuit.fingerprints(outer))
        return program

    def _prepare(self, circuit: Circuit, shards: int, depth: int, prints: Mapping[int, str]) -> None:
        self.circuit = circuit
        self._nodes = tuple(circuit)
        self.shards = shards
        self.depth = depth  # how many words of time the entries of traces have
        self.order = circuit.order()
        # The streams that leave it: to views, or from a child to its parent and to its own next iteration.
        self.outputs = tuple(n.input for n in circuit if isinstance(n, Sink) and not n.table)
        self.feedbacks = [(node_id, n.input) for node_id, n in enumerate(circuit) if isinstance(n, Feedback)]
        self.traces = {node_id: circuit.layout(node_id) for node_id in self.order if self._owns_trace(node_id)}
        self.names = {node_id: prints[node_id] for node_id in self.traces}
        self.empties = {
            node_id: nothing(circuit.layout(node_id).width)
            for node_id in self.order
            if not isinstance(circuit[node_id], Sink | Child)
        }
        self._level = level = self._levels()
        self._needed: dict[tuple[int, int], frozenset[int]] = {}
        self._kept: dict[tuple[int, int], frozenset[int]] = {}
        self._prepared: dict[tuple[int, ...], tuple[Task, ...]] = {}
        self.spent = tuple(Spent() for _ in self._nodes)  # of the nodes of the root
        self.stages = tuple(self._stage(n, level) for n in range(max(level.values(), default=0) + 1))
        self.loops = tuple(
            tuple(
                self._loop(node_id, prints)
                for node_id in self.order
                if level[node_id] == n and isinstance(circuit[node_id], Child)
            )
            for n in range(len(self.stages))
        )

    def _tell_apart(self) -> None:
        """Number the traces of equal children: each has traces of its own, so the second's need other names."""
        seen: Counter[str] = Counter()
        for _, program in self.nested():
            for node_id, name in program.names.items():
                seen[name] += 1
                if seen[name] > 1:
                    program.names[node_id] = f"{name}-{seen[name]}"

    @property
    def fingerprint(self) -> dict[str, str]:
        """The name of each trace, and what it holds."""
        return {
            name: f"{program.traces[node_id].schema} / {program.depth}"
            for _, program in self.nested()
            for node_id, name in program.names.items()
        }

    def nested(self, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Program]]:
        """This program and the programs of its children, each with its path of child nodes."""
        yield path, self
        for loops in self.loops:
            for loop in loops:
                yield from loop.program.nested((*path, loop.at))

    def contents(self, sink: str) -> int | None:
        """The node whose trace holds what a sink shows."""
        node = self.circuit[self.circuit.sinks[sink]]
        assert isinstance(node, Sink)
        return node.input if node.keep else None

    def table(self, source: str) -> int | None:
        """The node whose trace holds what a source holds, if that is kept."""
        node = self.circuit[self.circuit.tables[source]] if source in self.circuit.tables else None
        return node.input if isinstance(node, Sink) else None

    def arrival(self, source: str) -> Partition:
        """On which shards the rows of a source have to arrive."""
        return ByKey(table_key(self.circuit, source)) if source in self.circuit.tables else Anywhere()

    @cached_property
    def pieces(self) -> tuple[tuple[int, int], ...]:
        """Runs of stages (first, last) with nothing but exchanges between them; loops may follow each run."""
        ends = [n for n, loops in enumerate(self.loops) if loops or n == len(self.stages) - 1]
        return tuple(zip([0, *(end + 1 for end in ends)], ends, strict=False))

    def needed(self, first: int, last: int) -> frozenset[int]:
        """The streams given to a piece: the inputs of its first stage, and earlier streams still needed."""
        if (first, last) in self._needed:
            return self._needed[first, last]
        stages = self.stages[first : last + 1]
        given = (Export, Source) if self.depth == 0 else (Export, Import, Feedback)
        begin = {node_id for node_id in stages[0].nodes if isinstance(self._nodes[node_id], given)}
        earlier = {node_id for stage in stages for node_id in stage.stays if self._level[node_id] < first}
        self._needed[first, last] = streams = frozenset({*begin, *stages[0].moves, *earlier})
        return streams

    def wanted(self, first: int, last: int, end: int | None = None) -> frozenset[int]:
        """The streams of some stages that are needed when ``end`` is over: by views, loops and later stages."""
        end = last if end is None else end
        later = [
            node_id
            for stage in self.stages[end + 1 :]
            for node_id in (*stage.stays, *stage.shared, *map(self.moved, stage.moves))
        ]
        return self._still(first, last, later)

    def _still(self, first: int, last: int, later: Iterable[int]) -> frozenset[int]:
        """Those of some stages' streams that are needed ``later``, by loops, or outside."""
        imports = [outer for loops in self.loops[first:] for loop in loops for _, outer in loop.imports]
        return frozenset(
            node_id for node_id in (*later, *imports, *self.outputs) if first <= self._level[node_id] <= last
        )

    def shared(self, first: int, last: int) -> frozenset[int]:
        """The earlier streams that a piece is given whole, on every shard."""
        stages = self.stages[first : last + 1]
        return frozenset(node_id for stage in stages for node_id in stage.shared if self._level[node_id] < first)

    def kept(self, number: int, end: int) -> frozenset[int]:
        """The streams of a stage that are wanted on their own shards when stage ``end`` is over; see `wanted`."""
        if (number, end) not in self._kept:
            later = [node_id for stage in self.stages[end + 1 :] for node_id in (*stage.stays, *stage.shared)]
            self._kept[number, end] = self._still(number, number, later)
        return self._kept[number, end]

    def moved(self, move: int) -> int:
        """The stream that an exchange moves."""
        (source,) = inputs_of(self._nodes[move])
        assert source is not None, "an exchange has an input"
        return source

    def empty(self, node_id: int) -> Matrix:
        return self.empties[node_id]

    def tasks(self, nodes: tuple[int, ...]) -> tuple[Task, ...]:
        """The nodes of a stage that have something to do, as running needs them."""
        tasks = self._prepared.get(nodes)
        if tasks is None:
            tasks = self._prepared[nodes] = tuple(
                Task.of(node_id, node)
                for node_id in nodes
                if isinstance(node := self._nodes[node_id], Apply | Feedback)
            )
        return tasks

    # -- preparing

    def _owns_trace(self, node_id: int) -> bool:
        node = self.circuit[node_id]
        if isinstance(node, Feedback):
            return self.depth == 0  # inside a child it remembers within the step only
        return isinstance(node, Apply) and isinstance(node.operator, Arrange)

    def _levels(self) -> dict[int, int]:
        """The stage of every node: an exchange opens the next one, and so does leaving a child."""
        level: dict[int, int] = {}
        for node_id in self.order:
            node = self.circuit[node_id]
            needed = max((level[i] for i in self._same_tick(node_id)), default=0)
            needed = max((needed, *(level[i] + 1 for i in self._shared(node_id))))
            level[node_id] = needed + (self._is_exchange(node_id) or isinstance(node, Export))
        return level

    def _stage(self, number: int, level: Mapping[int, int]) -> Stage:
        nodes = tuple(node_id for node_id in self.order if level[node_id] == number and not self._is_exchange(node_id))
        moves = tuple(node_id for node_id in self.order if level[node_id] == number and self._is_exchange(node_id))
        needed = {i for node_id in nodes for i in self._same_tick(node_id)}
        shared = {i for node_id in nodes for i in self._shared(node_id)}
        return Stage(nodes, moves, tuple(sorted(i for i in needed if level[i] < number)), tuple(sorted(shared)))

    def _loop(self, node_id: int, prints: Mapping[int, str]) -> Loop:
        node = self.circuit[node_id]
        assert isinstance(node, Child)
        inner = node.circuit
        imports = tuple((i, n.parent) for i, n in enumerate(inner) if isinstance(n, Import))
        feedbacks = tuple((i, n.input) for i, n in enumerate(inner) if isinstance(n, Feedback) and n.input is not None)
        exports = tuple((i, n.node) for i, n in enumerate(self.circuit) if isinstance(n, Export) and n.child == node_id)
        program = Program._of_child(inner, self.shards, self.depth + 1, prints)
        program.outputs = tuple(node for _, node in (*feedbacks, *exports))
        return Loop(node_id, node.name, node.limit, node.changes, node.grows, program, imports, feedbacks, exports)

    def _is_exchange(self, node_id: int) -> bool:
        node = self.circuit[node_id]
        return isinstance(node, Apply) and isinstance(node.operator, Exchange)

    def _shared(self, node_id: int) -> list[int]:
        """The streams whose cells of this tick a node reads from all shards."""
        node = self.circuit[node_id]
        if self.shards == 1 or not (isinstance(node, Apply) and node.operator.wide):
            return []
        return [r.node for r in node.reads if r.moment is Moment.AFTER]

    def _same_tick(self, node_id: int) -> list[int]:
        """The streams whose cells of this tick a node reads on its own shard."""
        node = self.circuit[node_id]
        if isinstance(node, Feedback):
            return []
        if self._shared(node_id):
            return [i for i in inputs_of(node) if i is not None]
        after = [r.node for r in reads_of(node) if r.moment is Moment.AFTER]
        return [i for i in inputs_of(node) if i is not None] + after


def trace_columns(layout: Layout, depth: int) -> int:
    """The columns of a trace's entries: the words of a row, of its time, and the weight."""
    return layout.width + depth + 1
