"""A recursive scope as one call: its rounds run in the machine until nothing is left to do.

What its operators append waits in ledgers of the open epoch, beside those of the traces. A scope that is given much, or
that grows, gives up before anything has changed, and its rounds are run one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from everview.circuit.bounds import LoopBounds
from everview.circuit.compiled import Code
from everview.circuit.program import Loop
from everview.errors import EverviewError
from everview.kernels import fixpoint, levels, registers
from everview.kernels.registers import taken
from everview.operators.operator import Context
from everview.traces.trace import Trace
from everview.types.words import Matrix, Words

MOST_GIVEN = 1 << 12  # rows that a scope is given, for its rounds to be one call
MOST_ROWS = 1 << 15  # and rows that are appended in it
MOST_ROUNDS = 1 << 12


class Ledgers:
    """The ledgers of some traces, by their addresses, and their numbers by node."""

    def __init__(self, traces: Mapping[int, Trace]) -> None:
        self.traces = list(traces.values())
        self.number = {node: number for number, node in enumerate(traces)}
        self.addresses = _addresses([trace.past.ledger for trace in self.traces])


class CompiledScope:
    """A recursive scope as code, and the memory that it works on."""

    def __init__(self, loop: Loop, code: Code, ledgers: Ledgers) -> None:
        self.loop, self.code, self.ledgers = loop, code, ledgers
        imports = [(fixpoint.IMPORT, inner, outer) for inner, outer in loop.imports]
        feedbacks = [(fixpoint.FEEDBACK, feedback, node) for feedback, node in loop.feedbacks]
        exports = [(fixpoint.EXPORT, node, export) for export, node in loop.exports]
        self._links = np.array([*imports, *feedbacks, *exports], np.int64)
        nodes = len(loop.program.circuit)
        self.inside = new_registers(nodes + 2)  # and two for rows with their time
        self._left, self._back = new_registers(2 * nodes), new_registers(len(self._links))
        self._state: Words = np.zeros(fixpoint.STATE, np.int64)
        self._open = [levels.new_ledger(trace.past.columns) for trace in ledgers.traces]
        self.opens = _addresses(self._open)

    def run(self, outside: Matrix, bounds: LoopBounds, context: Context) -> bool:
        """Run the rounds until nothing is left to do; False if they are to be run one by one: nothing has changed."""
        for inner, outer in self.loop.imports:
            self.inside[inner] = outside[outer]
            self.inside[inner, registers.HELD] = 0
        given = int(self.inside[:, registers.ROWS].sum())
        if given > MOST_GIVEN:
            registers.cleared(self.inside)
            return False
        if not given:
            return True
        if self.code.interning:
            self.code.bind(context.dictionary)
        rounds = bounds.of(self.loop.limit, grows=self.loop.grows)
        self._state[:] = 0, 0, min(bounds.rows, MOST_ROWS), min(rounds - 1, MOST_ROUNDS), 0
        try:
            done = self._ran(outside, context)
        except (OverflowError, EverviewError):
            done = False  # the operator's step, in its round, says what is wrong, and with which row
        if not done:
            self.abandon()
            for export, _ in self.loop.exports:
                registers.dropped(outside, export)
        return done

    def _ran(self, outside: Matrix, context: Context) -> bool:
        """Call until nothing is left to do; False if the call has given up."""
        code, state = self.code, self._state
        memory = self.inside, outside, self._left, self._back, self.ledgers.addresses, self.opens
        while True:
            line = fixpoint.run(code.instructions, code.constants, self._links, *memory, state)
            if line < 0:
                return line == fixpoint.DONE
            self._step(line, context)
            state[fixpoint.AT] += 1

    def _step(self, line: int, context: Context) -> None:
        task = self.code.tasks[line]
        assert task is not None and task.step is not None, "only operators without traces are Python's"
        deltas = [taken(self.inside, node) for node in task.inputs]
        registers.dropped(self.inside, task.at)
        registers.given(self.inside, task.at, np.ascontiguousarray(task.step(deltas, (), context).out))

    def absorb(self) -> None:
        """Hand what the open epoch has appended to the traces, as appends of Python's."""
        for ledger, trace in zip(self._open, self.ledgers.traces, strict=True):
            if ledger[levels.ALL]:
                trace.push(levels.gathered(ledger))
        self.abandon()

    def abandon(self) -> None:
        """Forget what the open epoch has appended."""
        for memory in (self.inside, self._left, self._back):
            registers.cleared(memory)
        fixpoint.abandon(self.opens)


def new_registers(count: int) -> Matrix:
    """Registers without rows."""
    return np.zeros((count, registers.REGISTER), np.int64)


def _addresses(ledgers: Sequence[Words]) -> Words:
    """The addresses of ledgers."""
    return np.array([ledger.ctypes.data for ledger in ledgers], np.int64)
