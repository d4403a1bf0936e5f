"""A rehearsal: the new nodes of a program run once, on made-up rows, before anything depends on them.

A view that was accepted must not make ticks fail later for a reason that was there from the beginning, as an operator
without code for a type. Over empty tables nothing runs, so that only a rehearsal finds it. Operators that work row by
row get rows in any case, also where a condition kept none. What depends on the rows, as a division by zero, is no
reason to refuse a view, and users' functions are not called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import assert_never

import numpy as np

from everview.circuit.circuit import Circuit
from everview.circuit.incrementalize import incrementalize
from everview.circuit.nodes import Apply, Child, Export, Feedback, Import, Read, Sink, Source, inputs_of, reads_of
from everview.circuit.program import Program
from everview.circuit.stepping import step
from everview.codes import encode_pairs
from everview.codes.dictionary import Dictionary
from everview.errors import (
    ArithmeticFailure,
    BadPattern,
    CastFailure,
    CodeCollision,
    DefinitionError,
    EverviewError,
    FunctionError,
    NullNotAllowed,
    WeightOverflow,
    WrongType,
)
from everview.kernels.sort import arrange
from everview.lowering.lower import Lowering
from everview.operators.aggregate import Weigh
from everview.operators.arrange import Arrange
from everview.operators.linear import Filter, Map
from everview.operators.operator import Context, Layout, Moment, Operator, nothing
from everview.plan.node import Plan
from everview.plan.node import walk as parts
from everview.plan.nodes import Scan
from everview.runtimes.embedded.drawn import drawn_rows
from everview.runtimes.embedded.hydrate import new_nodes
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Now, walk
from everview.traces.view import Batches
from everview.traces.wide import Wide
from everview.types import Schema
from everview.types.words import Matrix

ROWS = 8  # of a stream at most: products of many relations stay small
OF_VALUES = (
    *(ArithmeticFailure, CastFailure, BadPattern, NullNotAllowed, WrongType, CodeCollision),
    *(WeightOverflow, OverflowError),  # a kernel raises the latter
)


def rehearse_plans(plans: Collection[Plan]) -> None:
    """Refuse plans, as they are to run, of which one fails whatever the rows are."""
    circuit = Circuit()
    scans = {part.relation: part.schema for plan in plans for part in parts(plan) if isinstance(part, Scan)}
    lowering = Lowering(circuit, {relation: circuit.source(relation, schema) for relation, schema in scans.items()})
    for number, plan in enumerate(plans):
        lowering.of(plan).sink(f"plan {number}")
    rehearse(Program(incrementalize(circuit)))


def rehearse(program: Program, held: Collection[str] = ()) -> None:
    """Refuse a program of which something fails whatever the rows are; traces that are held are not tried again."""
    wanted = new_nodes(program, dict.fromkeys(held, ()))
    if wanted:
        Rehearsal(program).run(_back_from(program, wanted, held))


def _back_from(program: Program, wanted: list[int], held: Collection[str]) -> dict[int, bool]:
    """The nodes to rehearse, back from the wanted ones; True for a held relation, whose rows are made up."""
    known = _relations(program, held)
    rehearsed: dict[int, bool] = {}
    waiting = list(wanted)
    while waiting:
        node_id = waiting.pop()
        if node_id in rehearsed:
            continue
        rehearsed[node_id] = node_id in known
        if not rehearsed[node_id]:
            node = program.circuit[node_id]
            waiting += [i for i in inputs_of(node) if i is not None]
            waiting += [read.node for read in reads_of(node)]
    return rehearsed


def _relations(program: Program, held: Collection[str]) -> set[int]:
    """The streams of views and tables that are held."""
    streams: set[int] = set()
    for node in program.circuit:
        if isinstance(node, Sink) and program.names.get(node.input) in held:
            kept = program.circuit[node.input]
            assert isinstance(kept, Apply) and isinstance(kept.operator, Arrange), "contents are held by a trace"
            (index,) = kept.inputs
            assert index is not None, "a program is connected"
            streams.update(i for i in (index, *inputs_of(program.circuit[index])) if i is not None)
    return {stream for stream in streams if not isinstance(program.circuit[stream], Child)}


class Rehearsal:
    """One tick from nothing of some nodes of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.context = Context(Dictionary(), program.circuit.functions)
        self.cells: dict[int, Matrix] = {}
        self._encoded: dict[Schema, Matrix] = {}
        self._entries: set[int] = set()  # nodes of entries (group, place), of which no place may be made up

    def run(self, nodes: Mapping[int, bool]) -> None:
        """Run the nodes in order; a source, or a node marked True, gets made-up rows instead."""
        for node_id in self.program.order:
            if node_id not in nodes:
                continue
            node = self.program.circuit[node_id]
            match node:
                case Source() | Export():
                    self.cells[node_id] = self._drawn(node.output)
                case Child():
                    self._inside(node.circuit)
                case Apply() if nodes[node_id]:
                    self.cells[node_id] = self._drawn(node.output)
                case Apply():
                    self._apply(node_id, node)
                case Feedback() | Import() | Sink():
                    pass
                case _:
                    assert_never(node)

    def _apply(self, node_id: int, node: Apply) -> None:
        operator, cells = node.operator, self.cells
        if not self._ours(operator):
            cells[node_id] = self._drawn(operator.output)
            return
        inputs = [i for i in node.inputs if i is not None]
        moved = len(inputs) == 1 and inputs[0] in self._entries
        if operator.by_row and not moved and not len(cells.get(inputs[0], ())):
            cells = {**cells, inputs[0]: self._drawn(operator.inputs[0].layout)}
        made_up = partial(self._drawn, operator.output)
        if moved or isinstance(operator, Weigh):
            self._entries.add(node_id)
            made_up = partial(nothing, operator.output.width)
        everywhere = partial(self._everywhere, cells)
        out = self._tried(lambda: step(self.program, node_id, cells, self._before, everywhere, self.context), made_up)
        if isinstance(operator, Filter) and not len(out):
            out = cells[inputs[0]]  # as if it had kept all
        self.cells[node_id] = out if isinstance(operator, Weigh | Arrange) else out[:ROWS]

    def _ours(self, operator: Operator) -> bool:
        """Whether an operator calls no function of a user's, and none that knows the time."""
        calls = [self.context.functions[name].call for name in operator.functions]
        return all(isinstance(c, Evaluate) and not c.users and not _timed(c) for c in calls)

    def _tried(self, step: Callable[[], Matrix], made_up: Callable[[], Matrix]) -> Matrix:
        """The output of a step; made-up rows if the step fails because of the values in its input."""
        try:
            return step()
        except OF_VALUES:
            return made_up()
        except FunctionError as error:
            if not isinstance(error.__cause__, ValueError | ArithmeticError):
                raise _refusal(error.__cause__ or error) from error
            return made_up()
        except EverviewError:
            raise
        except Exception as error:
            raise _refusal(error) from error

    def _inside(self, circuit: Circuit) -> None:
        """The functions inside a loop, each by itself: rows that are made up might keep it going for ever."""
        for node in circuit:
            if isinstance(node, Child):
                self._inside(node.circuit)
            elif isinstance(node, Apply) and isinstance(node.operator, Map | Filter) and self._ours(node.operator):
                rows = self._drawn(node.operator.source)
                made_up = partial(self._drawn, node.operator.output)
                self._tried(lambda step=node.operator.step, rows=rows: step([rows], (), self.context).out, made_up)

    def _before(self, node_id: int) -> Batches:
        return self.context.view(self.program.circuit.layout(node_id))

    def _everywhere(self, cells: Mapping[int, Matrix], read: Read) -> Wide:
        view = self._before(read.node)
        return Wide([view.plus(cells[read.node]) if read.moment is Moment.AFTER and read.node in cells else view])

    def _drawn(self, layout: Layout) -> Matrix:
        """Rows of a layout; none where they must be in an order that only values have."""
        if layout.by_value:
            return nothing(layout.width)
        if layout.schema not in self._encoded:
            self._encoded[layout.schema] = encode_pairs(
                layout.schema, drawn_rows(layout.schema), self.context.dictionary
            )
        rows = self._encoded[layout.schema]
        return arrange(rows, np.arange(layout.width)) if layout.sorted else rows


def _timed(function: Evaluate) -> bool:
    return any(isinstance(part, Now) for e in function.expressions for part in walk(e))


def _refusal(error: BaseException) -> DefinitionError:
    return DefinitionError(
        f"the view cannot be computed, whatever its rows are: {type(error).__name__}: {error}",
        hint="this is a limit of Everview, and nothing was changed; write the view in another way",
    )
