"""A query answered once: a circuit runs over the rows that relations hold now, and keeps nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from everview.circuit.bounds import LoopBounds
from everview.circuit.circuit import Circuit
from everview.circuit.incrementalize import incrementalize
from everview.circuit.nodes import Child
from everview.circuit.program import Program
from everview.codes.dictionary import Dictionary
from everview.lowering.lower import lower
from everview.operators.operator import Context
from everview.optimize import optimize
from everview.plan.node import Plan
from everview.plan.nodes import scans
from everview.runtimes.epoch import Epochs
from everview.runtimes.state import ProgramState
from everview.zset.batch import Batch


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
    cells = [
        {source_id: contents[name].rows for name, source_id in program.circuit.sources.items() if len(contents[name])}
    ]
    epochs = Epochs(program, ProgramState(program, context), context, bounds)
    epochs.run(cells)
    return epochs.outputs(cells)


def answer_of(
    plan: Plan, contents: Callable[[str], Batch], dictionary: Dictionary, bounds: LoopBounds | None = None
) -> Batch:
    """The rows of a plan, given the contents of the relations that it reads."""
    better, circuit = optimize(plan), Circuit()
    given = {name: contents(name) for name in scans(better)}
    streams = {name: circuit.source(name, rows.schema) for name, rows in given.items()}
    lower(better, streams, circuit).under(plan.schema).sink("answer", keep=False)
    return answer(circuit, given, dictionary, bounds)["answer"]
