"""A query answered once: a circuit runs over the rows that relations hold now, and keeps nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from everview.circuit.bounds import LoopBounds
from everview.circuit.circuit import Circuit
from everview.circuit.compiled import is_compilable
from everview.circuit.incrementalize import incrementalize
from everview.circuit.nodes import Child, Read, Sink
from everview.circuit.program import Program
from everview.codes.dictionary import Dictionary
from everview.lowering.lower import lower
from everview.operators.operator import Context
from everview.optimize import optimize
from everview.plan.node import Plan
from everview.plan.nodes import scans
from everview.runtimes.compiled import FOR_TICKS, Compiled
from everview.runtimes.epoch import Epochs
from everview.runtimes.in_process import MANY
from everview.runtimes.state import ProgramState
from everview.traces.wide import Wide
from everview.types import Schema
from everview.types.words import Matrix
from everview.zset.batch import Batch

FEW_ENOUGH: Final = 1 << 16  # rows, below which an answer takes less time than threads take to start


def answer(
    circuit: Circuit, contents: Mapping[str, Batch], dictionary: Dictionary, bounds: LoopBounds | None = None
) -> dict[str, Batch]:
    """The contents of a query circuit's sinks, given the contents of its sources.

    Without recursion the operators work on whole Z-sets, and there are no traces. A loop works on changes: each
    iteration then costs what it adds.
    """
    circuit.check()
    recursive = any(isinstance(node, Child) for node in circuit)
    program = Program(incrementalize(circuit) if recursive else circuit)
    context = Context(dictionary, dict(circuit.functions))
    cells = _cells(program, contents)
    epochs = Epochs(program, ProgramState(program, context), context, bounds)
    epochs.run(cells)
    return epochs.outputs(cells)


def answer_of(
    plan: Plan, contents: Callable[[str], Batch], dictionary: Dictionary, bounds: LoopBounds | None = None
) -> Batch:
    """The rows of a plan, given the contents of the relations that it reads."""
    return PlannedAnswer(plan).run(contents, dictionary, bounds)


@dataclass(frozen=True, slots=True)
class LoweredPlan:
    """A plan as a circuit over relations of some schemas, and as a program if that can be used again."""

    schemas: Mapping[str, Schema]
    circuit: Circuit
    program: Program | None


class PlannedAnswer:
    """A plan that is answered any number of times, on any threads: optimized, lowered and compiled once.

    Programs without recursion hold nothing from one answer to the next, so one that is idle is used again.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan, self._better = plan, optimize(plan)
        self.reads = tuple(scans(self._better))
        self._lowered: LoweredPlan | None = None
        self._idle: list[CompiledAnswer] = []

    def run(self, contents: Callable[[str], Batch], dictionary: Dictionary, bounds: LoopBounds | None = None) -> Batch:
        """The rows, given the contents of the relations that the plan reads."""
        given = {name: contents(name) for name in self.reads}
        lowered = self._lowered
        if lowered is None or any(given[name].schema != schema for name, schema in lowered.schemas.items()):
            lowered = self._lowered = self._lower({name: rows.schema for name, rows in given.items()})
        circuit, program = lowered.circuit, lowered.program
        if program is None or sum(map(len, given.values())) >= MANY or not FOR_TICKS.is_over():
            return answer(circuit, given, dictionary, bounds)["answer"]
        try:
            runs = self._idle.pop()
        except IndexError:
            runs = CompiledAnswer(program, dictionary)
        batch = runs.answer(given, dictionary) if runs.fits(program, dictionary) else None
        if batch is None:
            return answer(circuit, given, dictionary, bounds)["answer"]
        self._idle.append(runs)  # only here: what an exception has cut short is not used again
        return batch

    def _lower(self, schemas: dict[str, Schema]) -> LoweredPlan:
        circuit = Circuit()
        streams = {name: circuit.source(name, schema) for name, schema in schemas.items()}
        lower(self._better, streams, circuit).under(self._plan.schema).sink("answer", keep=False)
        circuit.check()
        recursive = any(isinstance(node, Child) for node in circuit)
        return LoweredPlan(schemas, circuit, None if recursive else _alone(Program(circuit)))


def _alone(program: Program) -> Program | None:
    """A program if it is one piece of code without traces."""
    first, last = program.pieces[0]
    whole = len(program.pieces) == 1 and not program.stages[first].moves and not program.loops[last]
    return program if whole and is_compilable(program) and not program.traces else None


class CompiledAnswer:
    """The memory in which compiled code answers a query, once at a time."""

    def __init__(self, program: Program, dictionary: Dictionary) -> None:
        self._program, self._partial = program, dictionary.is_partial
        self._functions = dict(program.circuit.functions)
        self._compiled = Compiled(program, {}, Context(dictionary, self._functions))
        self._compiled.many = FEW_ENOUGH
        sinks = ((node, sink) for node, sink in enumerate(program.circuit) if isinstance(sink, Sink))
        self._node, sink = next(iter(sinks))
        self._schema = program.circuit.layout(sink.input).schema
        self._empty = program.empty(sink.input)

    def fits(self, program: Program, dictionary: Dictionary) -> bool:
        """Whether it runs this program, with a dictionary of this kind."""
        return program is self._program and dictionary.is_partial == self._partial

    def answer(self, contents: Mapping[str, Batch], dictionary: Dictionary) -> Batch | None:
        """The rows of the answer; None if its weights have to be looked at by other means."""
        compiled, program = self._compiled, self._program
        compiled.context = Context(dictionary, self._functions)
        cells = _cells(program, contents)
        appends = compiled.run(*program.pieces[0], cells, _no_reads)
        assert not appends, "there are no traces"
        if compiled.suspect:
            return None
        rows = cells[0].get(self._node)
        batch = Batch.in_order(self._schema, self._empty if rows is None else rows, dictionary)
        compiled.abandon()
        return batch


def _cells(program: Program, contents: Mapping[str, Batch]) -> list[dict[int, Matrix]]:
    """The contents of the sources of a program, by their nodes."""
    sources = program.circuit.sources.items()
    return [{source: contents[name].rows for name, source in sources if len(contents[name])}]


def _no_reads(_: list[dict[int, Matrix]]) -> Callable[[Read], Wide]:
    return _no_read


def _no_read(_: Read) -> Wide:
    raise AssertionError("there are no traces to read")
