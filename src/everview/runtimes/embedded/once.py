"""A query answered once: a circuit over what relations hold now, and nothing kept."""

from __future__ import annotations

from collections.abc import Mapping

from everview.circuit.bounds import LoopBounds
from everview.circuit.circuit import Circuit
from everview.circuit.incrementalize import incrementalize
from everview.circuit.nodes import Child, Sink
from everview.circuit.program import Program
from everview.codes.dictionary import Dictionary
from everview.operators.operator import Context
from everview.runtimes.loops import Here, Tick
from everview.runtimes.state import State
from everview.zset.batch import Batch


def answer(
    circuit: Circuit, contents: Mapping[str, Batch], dictionary: Dictionary, bounds: LoopBounds | None = None
) -> dict[str, Batch]:
    """What the sinks of a query circuit hold when its sources hold these contents.

    Without recursion the operators work on whole Z-sets, and there are no traces. A loop works on changes: each
    iteration then costs what it adds.
    """
    circuit.check()
    recursive = any(isinstance(node, Child) for node in circuit)
    program = Program(incrementalize(circuit) if recursive else circuit)
    context = Context(dictionary, dict(circuit.functions))
    cells = [{at: contents[name].rows for name, at in program.circuit.sources.items() if len(contents[name])}]
    Tick(program, Here(program, State(program, context), context), bounds).run(cells)
    sinks = [node for node in program.circuit if isinstance(node, Sink) and not node.table]
    return {
        sink.name: Batch.consolidated(
            program.circuit.layout(sink.input).schema,
            cells[0].get(sink.input, program.empty(sink.input)),
            dictionary,
        )
        for sink in sinks
    }
