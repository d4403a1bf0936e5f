"""The compiled tick: the stages of a program as calls of the machine, over registers and the ledgers of the traces.

What the machine does not know it returns to Python, which runs the operator's step and calls again. Changes of traces
wait in their registers until the epoch is published, which is one call for all of them, or abandoned.

A recursive scope whose operators all have instructions inside a loop is one call, too, as long as little changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from everview.circuit.bounds import LoopBounds
from everview.circuit.compiled import Code, compiled, compiled_scope, form_of, is_by_value
from everview.circuit.nodes import Apply, Child, Read, Sink
from everview.circuit.program import Loop, Program, Spent, Task
from everview.circuit.stepping import Ran, overflow, remembered, run_task
from everview.codes.dictionary import Located
from everview.kernels import fixpoint, machine, registers
from everview.kernels.jit import cause_of, made_of
from everview.kernels.registers import taken
from everview.operators.form import Reason
from everview.operators.linear import Filter, Map
from everview.operators.operator import Context, Moment
from everview.operators.word_program import WordProgram
from everview.runtimes.ahead import MANY_ROWS, Ahead, is_large
from everview.runtimes.compiled_scope import CompiledScope, Ledgers, new_registers
from everview.traces import freed, pages
from everview.traces.trace import Owing, Trace
from everview.traces.view import Batches
from everview.traces.wide import Wide
from everview.types.words import Matrix, Words

Everywhere = Callable[[Read], Wide]
Reads = Callable[[list[dict[int, Matrix]]], Everywhere]  # of what has arrived
Appends = Mapping[int, Matrix]  # rows by the node whose trace gets them
Traces = Mapping[tuple[tuple[int, ...], int], Trace]  # by the path of their program, and their node

RUN, PUBLISH, PLACE, COPY_OUT = map(made_of, (machine.run, machine.publish, registers.place, machine.copy_out))
ARRIVE = made_of(machine.arrive)
FEW = 1 << 10  # rows that are copied rather than taken
NO_APPENDS: Appends = {}
NO_CODE = Code(np.empty((0, machine.INSTRUCTION), np.int64), np.empty(0, np.int64), ())


class Patience:
    """Whether to use compiled code that would have to be compiled first, which takes half a minute, once for a machine.

    A program that ends after a few ticks is faster without. So some ticks are waited for.
    """

    TICKS: ClassVar = 64

    def __init__(self, *kernels: Any) -> None:
        self._kernels, self._waited, self.over = kernels, 0, False

    def is_over(self) -> bool:
        """Whether the code is at hand, or it has been asked for often enough."""
        if not self.over:
            self._waited += 1
            self.over = self._waited > self.TICKS or all(kernel.is_at_hand for kernel in self._kernels)
        return self.over


FOR_TICKS = Patience(machine.run, machine.publish)
FOR_LOOPS = Patience(fixpoint.run, fixpoint.publish)


class CompiledPiece(NamedTuple):
    """The code of some stages, their sinks, and the frame that the code runs in, by its address."""

    code: Code
    sinks: tuple[int, ...]
    frame: Words
    address: int


class Compiled:
    """A program with one shard as code, and the memory that it works on."""

    def __init__(self, program: Program, traces: Traces, context: Context) -> None:
        """``traces`` are those of the nodes that own one, in the program and in its scopes."""
        self.program, self.context = program, context
        self._ledgers = Ledgers({node: trace for (path, node), trace in traces.items() if not path})
        self._scopes: dict[int, CompiledScope] = {}
        self._round_by_round: dict[int, Reason] = {}
        for loop in (loop for loops in program.loops for loop in loops):
            ledgers = Ledgers({node: trace for (path, node), trace in traces.items() if path == (loop.at,)})
            code = compiled_scope(loop.program, ledgers.number) if loop.changes else "it runs on whole contents"
            if isinstance(code, Code):
                self._scopes[loop.at] = CompiledScope(loop, code, ledgers)
            else:
                self._round_by_round[loop.at] = code
        places = len(program.circuit) + len(program.feedbacks)  # one a node, and one for what a feedback appends
        self._registers = new_registers(places + 1)  # the last is not for rows: it has the address of `Located.words`
        self._staged: Words = np.zeros(len(self._ledgers.traces), np.int64)  # by trace: a register and one, or 0
        self._status: Words = np.zeros(machine.STATUS, np.int64)
        self._counts: Matrix = np.zeros((places, 2), np.int64)  # by node: steps, and rows put out
        self._memory = self._registers, self._ledgers.addresses, self._staged, self._counts, self._status
        self._seconds: dict[int, float] = {}  # by node, while times are taken
        self.timed = False  # whether to take the time of every node, which takes a call for each
        self._ahead = Ahead(self._is_free)
        self.many = MANY_ROWS  # rows of an epoch, from which on threads are used
        self._pieces: dict[tuple[int, int], CompiledPiece] = {}  # by their first and last stage
        self._last: tuple[Code, Words] | None = None  # the code that ran last, and its frame
        self._frame = self._framed(NO_CODE)  # to publish: all but the code
        self._address: int = self._frame.ctypes.data
        self._straight: CompiledPiece | None = None  # the only piece, if `turn` may run it
        self._placed: dict[int, Matrix] = {}  # matrices of Python's that registers show
        self._used = False  # whether something may wait here
        self._tending = False  # whether levels are about to become batches
        self._owing = Owing()
        circuit = program.circuit
        checked = [node for node in circuit if isinstance(node, Sink) and node.positive]
        self._unchecked = any(circuit.layout(sink.input).by_value for sink in checked)
        self._orders = not context.dictionary.is_partial  # whether compiled code can compare what words stand for
        self._by_value = self._orders and any(is_by_value(node.operator) for node in circuit if isinstance(node, Apply))
        self._located: Located | None = None  # what compiled code reads of the dictionary
        self.suspect = False  # whether a view would hold a row less often than not at all, or that is unknown

    def run(self, first: int, last: int, shards: list[dict[int, Matrix]], reads: Reads) -> Appends:
        """Run some stages: arrivals are read from cells, sinks' changes written there; returns appends made in Python.

        ``reads`` makes the reads of whole traces, which only steps in Python ask for.
        """
        if self._ahead.beside is not None:
            self._ahead.settle()
        self._used = True
        (cells,), placed, rows = shards, self._placed, 0
        code, sinks, _, address = self._pieces.get((first, last)) or self._piece(first, last)
        for node, matrix in cells.items():
            count = matrix.shape[0]
            if count and node not in placed:
                self._place(node, matrix)
            rows += count
        if code.interning:
            code.bind(self.context.dictionary)
        if self._by_value:
            self._locate()
        if self.timed or rows >= self.many:
            code, pc = self._run_slowly(code, rows, shards, reads)
        else:
            try:
                pc = RUN.direct(address, 0)
            except (SystemError, OverflowError) as error:
                pc = self._failed(error, code, shards, reads)
        appends = NO_APPENDS if pc == code.end else self._in_turns(code, pc, shards, reads)
        self.fetch(cells, sinks)
        self.suspect = self._unchecked or self._status.item(machine.SUSPECT) != 0
        return appends

    def straighten(self, first: int, last: int) -> None:
        """Let `turn` run these stages, which are all of the program, unless something about them is not plain."""
        piece = self._pieces.get((first, last)) or self._piece(first, last)
        python = (piece.code.instructions[:, machine.OP] == machine.PYTHON).any()
        plain = not (python or piece.code.interning or self._unchecked or self._scopes)
        self._straight = piece if plain else None

    def turn(self, streams: Mapping[int, Matrix]) -> bool:
        """Run all of the program over a few rows, which arrive at one node or two.

        False if they have to be run in another way, which also tells of errors: then nothing is left of them here.
        """
        piece = self._straight
        if piece is None or self.timed or self._ahead.beside is not None:
            return False
        if len(streams) == 1:
            ((node, rows),), other = streams.items(), -1
        elif len(streams) == 2:
            (node, rows), (other, same) = streams.items()
            if same is not rows:
                return False
        else:
            return False
        if rows.shape[0] >= self.many or not rows.flags.c_contiguous:
            return False
        self._used, self.suspect = True, False
        self._placed[node] = rows
        if self._by_value:
            self._locate()
        try:
            arrived = ARRIVE.direct(piece.address, node, other, rows)
            if arrived and RUN.direct(piece.address, 0) == piece.code.end and not self._status.item(machine.SUSPECT):
                return True
        except OverflowError:  # which is found again, with the row
            pass
        except SystemError as error:
            raise cause_of(error) from None
        self.abandon()
        return False

    def change_of(self, node: int) -> Matrix | None:
        """The stream of a node, if it has rows; it stays when registers are cleared."""
        rows = self._registers.item(node, registers.ROWS)
        if not rows:
            return None
        try:
            return self._copied(node, rows) if rows <= FEW else taken(self._registers, node)
        except SystemError as error:
            raise cause_of(error) from None

    def _run_slowly(self, code: Code, rows: int, shards: list[dict[int, Matrix]], reads: Reads) -> tuple[Code, int]:
        """Run code line by line, or many rows on threads; the code that was run in turn, and where that ended."""
        if not self.timed and is_large(rows):
            ran, everywhere = Ran(shards[0]), reads(shards)
            code = self._ahead.run(code, lambda task: self._step(task, ran, everywhere), *self._memory)
        return code, self._go_on(code, 0, shards, reads)

    def run_loop(self, loop: Loop, bounds: LoopBounds, cells: dict[int, Matrix]) -> bool:
        """Run a recursive scope to its fixed point; False if that is Python's: cells then hold its imports."""
        scope = self._scopes.get(loop.at)
        if scope is not None and FOR_LOOPS.is_over() and scope.run(self._registers, bounds, self.context):
            return True
        self.fetch(cells, [outer for _, outer in loop.imports])
        return False

    def fetch(self, cells: dict[int, Matrix], nodes: Iterable[int]) -> None:
        """Put the streams of some nodes into cells, as far as they have rows."""
        lines = self._registers
        try:
            for node in nodes:
                rows = lines.item(node, registers.ROWS)
                if rows and node not in cells:
                    cells[node] = self._placed[node] = self._copied(node, rows) if rows <= FEW else taken(lines, node)
        except SystemError as error:
            raise cause_of(error) from None

    def _copied(self, node: int, rows: int) -> Matrix:
        out: Matrix = np.empty((rows, self._registers.item(node, registers.COLUMNS)), np.int64)
        COPY_OUT.direct(out, self._address, node)
        return out

    def _locate(self) -> None:
        """Let compiled code read the dictionary as it is now."""
        located = self.context.dictionary.located
        if located is not self._located:
            self._located = located  # which keeps the arrays
            self._registers[-1, registers.ADDRESS] = located.words.ctypes.data

    def _place(self, node: int, matrix: Matrix) -> None:
        if not matrix.flags.c_contiguous:
            matrix = np.ascontiguousarray(matrix)
        self._placed[node] = matrix
        PLACE.direct(self._registers, node, matrix)

    def _in_turns(self, code: Code, pc: int, shards: list[dict[int, Matrix]], reads: Reads) -> Appends:
        """Run from an instruction that only Python can do to the end; returns what Python appends to traces."""
        ran, everywhere = Ran(shards[0]), reads(shards)
        while pc < code.end:
            self._step(code.tasks[pc], ran, everywhere)
            if self._by_value:
                self._locate()  # a step may have added to the dictionary
            pc = self._go_on(code, pc + 1, shards, reads)
        return ran.appends

    def _go_on(self, code: Code, pc: int, shards: list[dict[int, Matrix]], reads: Reads) -> int:
        """Run instructions until one is Python's."""
        frame = self._framed(code)
        try:
            return self._call_timed(code, pc) if self.timed else machine.run(frame.ctypes.data, pc)
        except (SystemError, OverflowError) as error:
            return self._failed(error, code, shards, reads)

    def _failed(self, error: Exception, code: Code, shards: list[dict[int, Matrix]], reads: Reads) -> int:
        """Go on behind a check that found a row too large to tell; any other error is told by the operator's own step.

        An exception that only came while the code ran is raised as it is.
        """
        if not isinstance(error, OverflowError):
            assert isinstance(error, SystemError), "what machine code raises"
            raise cause_of(error) from None
        line = int(self._status[machine.AT])
        if int(code.instructions[line, machine.OP]) == machine.CHECK:
            self._status[machine.SUSPECT] = 1
            return self._go_on(code, line + 1, shards, reads)
        self._step(code.tasks[line], Ran(shards[0]), reads(shards))
        raise overflow(self.program, self._node(code, line), error, shards[0], self.context) from None

    def _node(self, code: Code, pc: int) -> int:
        """The node of an instruction; the appends of feedbacks are numbered after all nodes."""
        place, nodes = int(code.instructions[pc, machine.OUT]), len(self.program.circuit)
        return place if place < nodes else self.program.feedbacks[place - nodes][0]

    def _call_timed(self, code: Code, pc: int) -> int:
        """Run instructions one by one, each with its time."""
        while pc < len(code.instructions):
            start = perf_counter()
            one = machine.frame_of(code.instructions[: pc + 1], code.constants, *self._memory)
            reached = machine.run(one.ctypes.data, pc)
            if reached == pc:
                return pc
            node = self._node(code, pc)
            self._seconds[node] = self._seconds.get(node, 0.0) + perf_counter() - start
            pc = reached
        return pc

    def _step(self, task: Task | None, ran: Ran, everywhere: Everywhere) -> None:
        """Run a step in Python, with the cells that it reads, and put its output into its register."""
        assert task is not None, "a sink is never Python's"
        cells = ran.cells
        self.fetch(cells, task.inputs)
        if task.step is None:
            self._step_back(task, ran)
            return
        self.fetch(cells, [read.node for read in task.reads if read.moment is Moment.AFTER])
        run_task(self.program, task, ran, self._before, everywhere, self.context)
        out = cells.get(task.at)
        if out is not None and len(out):
            self._place(task.at, out)

    def _is_free(self, task: Task) -> bool:
        """Whether a step in Python only reads its input, and the dictionary: what threads may do meanwhile."""
        node = self.program.circuit[task.at]
        if not isinstance(node, Apply) or not isinstance(node.operator, Filter | Map) or task.reads or not self._orders:
            return False
        if isinstance(node.operator.in_words(self.program.circuit.functions), WordProgram):
            return False  # its constants may be new to the dictionary
        computed = () if isinstance(node.operator, Filter) else node.operator.computed.fields
        return all(field.type.ordered for field in computed)  # no codes

    def _step_back(self, task: Task, ran: Ran) -> None:
        """A feedback's step in Python: gives the rows kept at the last tick, or keeps its input for the next."""
        if not task.inputs:
            self._place(task.at, self._before(task.at).consolidated())
            return
        rows = ran.cells.get(task.inputs[0], self.program.empty(task.at))
        ran.appends[task.at] = remembered(task.at, rows, self._before)

    def _before(self, node: int) -> Batches:
        return self._ledgers.traces[self._ledgers.number[node]].momentary

    # -- what is told of it

    def spent(self, node: int) -> Spent:
        """The work of a node, here and in Python."""
        known, (steps, rows) = self.program.spent[node], self._counts[node].tolist()
        return Spent(known.steps + steps, known.rows + rows, known.seconds + self._seconds.get(node, 0.0))

    def all_spent(self) -> list[Spent]:
        """The work of each node, here and in Python."""
        counts, seconds = self._counts[: len(self.program.spent)].tolist(), self._seconds
        return [
            Spent(known.steps + steps, known.rows + rows, known.seconds + seconds.get(node, 0.0))
            for node, (known, (steps, rows)) in enumerate(zip(self.program.spent, counts, strict=True))
        ]

    def how(self, node_id: int) -> str:
        """Where a node runs, and why it is not compiled, if it is not."""
        node = self.program.circuit[node_id]
        if isinstance(node, Child):
            reason = self._round_by_round.get(node_id)
            return "compiled, one call" if reason is None else f"round by round: {reason}"
        if not isinstance(node, Apply):
            return ""
        form = form_of(node.operator, self.program.circuit.functions, orders=self._orders)
        if isinstance(form, str):
            return f"in Python: {form}"
        calls = [call for call, (first, last) in enumerate(self.program.pieces, 1) if self._is_in(node_id, first, last)]
        return f"compiled, call {calls[0]}" if calls else ""

    def _is_in(self, node_id: int, first: int, last: int) -> bool:
        return any(node_id in stage.nodes for stage in self.program.stages[first : last + 1])

    # -- the end of an epoch

    def waiting(self) -> list[tuple[int, Matrix]] | None:
        """The changes that wait here, each with the number of its trace; None if `absorb` has to gather them."""
        if not self._used or self._scopes:
            return None
        self._ahead.settle()
        staged = [(number, place - 1) for number, place in enumerate(self._staged.tolist()) if place]
        return [(number, taken(self._registers, place)) for number, place in staged]

    def note_ids(self, ids: Mapping[int, int]) -> None:
        """Let the changes that wait here, by the numbers of their traces, be known to a store. It may be repeated.

        What is not published yet is in no level. So levels that are about to become a batch do so first.
        """
        self._ahead.settle()
        if self._tending:
            self._tend()
        for number, id_ in ids.items():
            if self._staged.item(number):
                self._ledgers.traces[number].past.note_ids((id_,), -1 - id_)  # no number of an append is below 0

    def absorb(self) -> None:
        """Hand the changes that wait here to the traces' open epoch, as appends of Python's."""
        self._ahead.settle()
        if not self._used:
            return
        for number in np.flatnonzero(self._staged).tolist():
            trace = self._ledgers.traces[number]
            trace.push(taken(self._registers, int(self._staged[number]) - 1))
        for scope in self._scopes.values():
            scope.absorb()
        self.abandon()

    def publish(self) -> None:
        """Let the changes that wait here be past. It may be repeated."""
        if self._ahead.beside is not None:
            self._ahead.settle()
        if self._tending:
            self._tend()
        if not self._used:
            return
        full = False
        for scope in self._scopes.values():
            full |= fixpoint.publish(scope.ledgers.addresses, scope.opens)
        full |= PUBLISH.direct(self._address)
        if full:
            self._tend()
        elif self._owing.traces:
            self._owing.pay()
        self._end()

    def abandon(self) -> None:
        """Forget the changes that wait here."""
        self._ahead.settle()
        if not self._used:
            return
        for scope in self._scopes.values():
            scope.abandon()
        self._staged[:] = 0
        registers.cleared(self._registers)
        self._end()

    def _end(self) -> None:
        self._placed.clear()
        if self.suspect or self._status.item(machine.SUSPECT):
            self._status.fill(0)
        self._used = False

    def _tend(self) -> None:
        """Make full levels batches. Until that is done nothing is appended: it would be lost with the levels."""
        self._tending = True
        everywhere = (self._ledgers, *(scope.ledgers for scope in self._scopes.values()))
        traces = [trace for ledgers in everywhere for trace in ledgers.traces]
        pages.appended(self._ahead.tend([trace for trace in traces if trace.past.is_full]))
        self._owing.become(traces)
        self._tending = False
        freed.LARGE_EPOCHS.over()

    def _piece(self, first: int, last: int) -> CompiledPiece:
        """Some stages as code."""
        program = self.program
        code = compiled(program, first, last, self._ledgers.number, orders=self._orders)
        nodes = [node for stage in program.stages[first : last + 1] for node in stage.nodes]
        sinks = tuple(node for node in nodes if isinstance(program.circuit[node], Sink))
        frame = self._framed(code)
        piece = self._pieces[first, last] = CompiledPiece(code, sinks, frame, frame.ctypes.data)
        return piece

    def _framed(self, code: Code) -> Words:
        if self._last is None or self._last[0] is not code:
            self._last = code, machine.frame_of(code.instructions, code.constants, *self._memory)
        return self._last[1]
