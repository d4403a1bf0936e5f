"""A large epoch on threads: strands of instructions ahead of the rest, and the merging of traces afterwards.

Instructions and traces are independent of one another where nothing orders them, so the result is the same for any
number of threads. What a thread could not do is left to who goes on in turn: so errors are those of running in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from everview.circuit.compiled import Code
from everview.circuit.program import Task
from everview.circuit.strands import Strands, code_without, strands_of
from everview.errors import EverviewError
from everview.kernels import instructions, levels, machine
from everview.kernels.jit import cause_of, made_of
from everview.kernels.threads import allowed
from everview.runtimes.beside import WorkBeside
from everview.traces.trace import Trace
from everview.types.words import Matrix, Words

RUN = made_of(machine.run)
MANY_ROWS: Final = 1 << 12  # of an epoch, from which on threads are worth their start


def is_large(rows: int) -> bool:
    """Whether an epoch of so many rows is one for threads, if there may be some."""
    return rows >= MANY_ROWS and allowed() > 1


class Ahead:
    """The threads of a program in an epoch, and what may still be at work on them."""

    def __init__(self, is_free: Callable[[Task], bool]) -> None:
        """``is_free`` tells of a step of Python's whether threads may be at work beside it."""
        self._is_free = is_free
        self._strands: dict[int, tuple[Code, Strands, Code]] = {}  # by the identity of the code; and all but strands
        self.beside: WorkBeside | None = None  # what may still be at work

    def run(
        self,
        code: Code,
        step: Callable[[Task], None],
        *memory: *tuple[Matrix, Words, Words, Matrix, Words],
    ) -> Code:
        """Run the strands of some code, steps of Python's by a function; the code that is left to be run in turn."""
        (_, strands, rest), threads = self._strands_of(code), allowed()
        if len(strands.lines) < 2:
            return code
        statuses: Matrix = np.zeros((threads, machine.STATUS), np.int64)
        whole = machine.frame_of(code.instructions, code.constants, *memory)
        done: list[int] = []  # instructions

        def work(thread: int, strand: int, _kept: object = memory) -> bool:
            lines, numbers = strands.lines[strand], strands.numbers[strand]
            if strand in strands.callers:
                task = code.tasks[numbers[0]]
                assert task is not None, "a sink is never Python's"
                try:
                    step(task)
                except EverviewError:  # which is found again in turn
                    return False
                done.extend(numbers)
                return True
            frame = whole.copy()
            frame[machine.CODE] = lines.ctypes.data, len(lines)
            frame[machine.STATE, 0] = statuses[thread].ctypes.data
            try:
                reached = RUN.direct(frame.ctypes.data, 0)
            except OverflowError:  # which is found again in turn
                return False
            except SystemError as error:
                raise cause_of(error) from None
            done.extend(numbers[:reached])
            return reached == len(numbers)

        self.beside = WorkBeside(strands.followers, strands.waits_for, strands.callers)
        self.beside.run(threads, work)
        status = memory[-1]
        status[machine.SUSPECT] |= int(statuses[:, machine.SUSPECT].any())
        return rest if len(rest.tasks) + len(done) == len(code.tasks) else code_without(code, {*done})

    def tend(self, full: Sequence[Trace]) -> int:
        """Let traces whose levels are full make them batches; how many rows that is whose merging is not spread."""
        rows = sum(trace.past.ledger.item(levels.ROWS) for trace in full if not trace.past.spreads)
        if len(full) > 1 and is_large(rows):  # without merging, threads would take longer to begin than to do it

            def work(thread: int, number: int) -> bool:
                full[number].past.tend()
                return True

            self.beside = WorkBeside([()] * len(full), [0] * len(full))
            self.beside.run(allowed(), work)
        for trace in full:
            trace.past.tend()
        return rows

    def settle(self) -> None:
        """Wait for what an exception may have left at work, before anything else touches registers or traces."""
        if self.beside is not None:
            self.beside.settle()
            self.beside = None

    def _strands_of(self, code: Code) -> tuple[Code, Strands, Code]:
        known = self._strands.get(id(code))
        if known is None:
            steps = [number for number, task in enumerate(code.tasks) if task is not None and self._is_free(task)]
            python = code.instructions[:, instructions.OP] == instructions.PYTHON
            strands = strands_of(code, {number for number in steps if python[number]})
            rest = code_without(code, {number for numbers in strands.numbers for number in numbers})
            known = self._strands[id(code)] = code, strands, rest
        return known
