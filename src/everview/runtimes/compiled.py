"""The compiled tick: the stages of a program as calls of the machine, over registers and the ledgers of the traces.

What the machine does not know it returns to Python, which runs the operator's step and calls again. Changes of traces
wait in their registers until the epoch is published, which is one call for all of them, or abandoned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from everview.circuit.compiled import Code, compiled, is_compilable
from everview.circuit.nodes import Read, Sink
from everview.circuit.program import Program, Ran, Task
from everview.errors import EverviewError
from everview.kernels import machine, registers
from everview.operators.operator import Context, Moment
from everview.traces.trace import Trace
from everview.traces.view import Batches
from everview.traces.wide import Wide
from everview.types.words import Matrix, Words

Everywhere = Callable[[Read], Wide]


class Compiled:
    """A program with one shard as code, and the memory that it works on."""

    def __init__(self, program: Program, traces: Mapping[int, Trace], context: Context) -> None:
        """``traces`` are those of the nodes that own one."""
        self.program, self.context = program, context
        self._traces = dict(traces)
        self._number = {node: number for number, node in enumerate(traces)}
        self._ledgers = np.array([t.past.ledger.ctypes.data for t in self._traces.values()] or [0], np.int64)
        nodes = len(program.circuit)
        self._registers: Matrix = np.zeros((nodes, registers.REGISTER), np.int64)
        self._staged: Words = np.zeros(len(self._traces), np.int64)  # by trace: a register and one, or 0
        self._status: Words = np.zeros(machine.STATUS, np.int64)
        self.counts: Matrix = np.zeros((nodes, 2), np.int64)  # by node: steps, and rows put out
        self._codes: dict[tuple[int, int], tuple[Code, tuple[int, ...]]] = {}
        self._kept: list[dict[int, Matrix]] = []  # matrices of Python's that registers show
        self._tending = False  # whether levels are about to become batches
        self.suspect = False  # whether a view would hold a row less often than not at all, or that is unknown

    @staticmethod
    def can(program: Program, traces: Mapping[int, Trace]) -> bool:
        """Whether a program can run here."""
        return is_compilable(program) and all(trace.past.order is None for trace in traces.values())

    def run(self, first: int, last: int, cells: dict[int, Matrix], everywhere: Everywhere) -> dict[int, Matrix]:
        """Some stages; cells hold what has arrived, and get what is wanted later. What Python appends to traces."""
        code, wanted = self._code(first, last)
        self._kept.append(cells)
        for node, matrix in cells.items():
            if len(matrix):
                registers.place(self._registers, node, matrix)
        ran, pc, end = Ran(cells), 0, len(code.instructions)
        while True:
            pc = self._go_on(code, pc, ran, everywhere)
            if pc == end:
                break
            self._step(code.tasks[pc], ran, everywhere)
            pc += 1
        held = self._registers
        for node in wanted:
            if held[node, registers.ROWS] and node not in cells:
                cells[node] = registers.taken(held, node)
        self.suspect = bool(self._status[machine.SUSPECT]) or self._unchecked
        return ran.appends

    def _go_on(self, code: Code, pc: int, ran: Ran, everywhere: Everywhere) -> int:
        """Run instructions until one is Python's; an exception is raised by the operator's own step."""
        held, status = self._registers, self._status
        try:
            return machine.run(
                *(code.instructions, code.constants, held, self._ledgers, self._staged, self.counts, status, pc)
            )
        except (OverflowError, EverviewError):
            self._step(code.tasks[int(status[machine.AT])], ran, everywhere)
            raise  # the step knew better

    def _step(self, task: Task | None, ran: Ran, everywhere: Everywhere) -> None:
        """Run a step in Python, with the cells that it reads, and put its output into its register."""
        assert task is not None, "a sink is never Python's"
        cells = ran.cells
        after = [read.node for read in task.reads if read.moment is Moment.AFTER]
        for node in (*task.inputs, *after):
            if self._registers[node, registers.ROWS] and node not in cells:
                cells[node] = registers.taken(self._registers, node)
        self.program.run_task(task, ran, self._before, everywhere, self.context)
        out = cells.get(task.at)
        if out is not None and len(out):
            registers.place(self._registers, task.at, np.ascontiguousarray(out))

    def _before(self, node: int) -> Batches:
        return self._traces[node].momentary

    # -- the end of an epoch

    def absorb(self) -> None:
        """Hand the changes that wait in registers to the traces' open epoch, as appends of Python's."""
        for number in np.flatnonzero(self._staged).tolist():
            trace = self._trace_list[number]
            trace.push(registers.taken(self._registers, int(self._staged[number]) - 1))
        self.abandon()

    def publish(self) -> None:
        """Let the changes that wait in registers be past. It may be repeated."""
        if self._tending:
            self._tend()
        if machine.publish(self._ledgers, self._staged, self._registers):
            self._tend()
        self._end()

    def abandon(self) -> None:
        """Forget the changes that wait in registers."""
        self._staged[:] = 0
        registers.cleared(self._registers)
        self._end()

    def _end(self) -> None:
        self._kept.clear()
        self._status[:] = 0

    def _tend(self) -> None:
        """Make full levels batches. The machine appends nothing before that is done: it would be lost with the levels."""
        self._tending = True
        for trace in self._trace_list:
            trace.past.tend()
        self._tending = False

    @cached_property
    def _trace_list(self) -> list[Trace]:
        return list(self._traces.values())

    @cached_property
    def _unchecked(self) -> bool:
        """Whether a view must be checked in Python."""
        circuit = self.program.circuit
        sinks = [node for node in circuit if isinstance(node, Sink) and node.positive]
        return any(circuit.layout(sink.input).by_value for sink in sinks)

    def _code(self, first: int, last: int) -> tuple[Code, tuple[int, ...]]:
        """The code of a piece, and the streams of it that are wanted later, those of sinks included."""
        known = self._codes.get((first, last))
        if known is None:
            program = self.program
            code = compiled(program, first, last, self._number)
            nodes = {node for stage in program.stages[first : last + 1] for node in stage.nodes}
            sinks = [node for node in nodes if isinstance(program.circuit[node], Sink)]
            outputs = set(program.outputs)
            wanted = [node for node in program.wanted(first, last) if node not in outputs or self._is_read(node)]
            known = self._codes[first, last] = code, (*wanted, *sinks)
        return known

    def _is_read(self, node: int) -> bool:
        """Whether a stream that a sink shows is read by a loop or a later stage, too."""
        program = self.program
        imports = {outer for loops in program.loops for loop in loops for _, outer in loop.imports}
        later = {other for stage in program.stages for other in (*stage.stays, *stage.shared)}
        return node in imports or node in later
