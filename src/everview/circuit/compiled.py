"""A run of stages as code for the machine: one instruction for each operator, in order.

The registers are numbered as the nodes are. A sink has an instruction, too, which consolidates what its view is told,
and, where that is promised, one that checks that no row would be there less often than not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from everview.circuit.nodes import Apply, Feedback, Read, Sink
from everview.circuit.program import Program, Task
from everview.codes.dictionary import Dictionary
from everview.kernels import fixpoint, instructions
from everview.operators.arrange import Arrange
from everview.operators.form import CompiledForm, Reason, flat
from everview.operators.functions import Function
from everview.operators.operator import Moment, Operator
from everview.operators.word_program import WordProgram
from everview.types.words import Matrix, Words


@dataclass(frozen=True, slots=True)
class Code:
    """Instructions, their constants, and the tasks of those that Python runs or may have to."""

    instructions: Matrix
    constants: Words
    tasks: tuple[Task | None, ...]  # one for each instruction; None for a sink's
    interning: tuple[tuple[WordProgram, int], ...] = ()  # programs with interned constants, and where those are
    _bound: list[tuple[Dictionary, tuple[int, int]]] = field(default_factory=list)  # to what they were bound last
    end: int = field(init=False)  # the number of instructions
    given: bool = field(init=False)  # whether some constants are those of one run

    def __post_init__(self) -> None:
        object.__setattr__(self, "end", len(self.tasks))
        object.__setattr__(self, "given", any(program.is_given for program, _ in self.interning))

    def bind(self, dictionary: Dictionary) -> None:
        """Write the words of interned constants, if the dictionary may have forgotten them since the last time."""
        if not self.given and self._bound == [(dictionary, dictionary.losses)]:
            return
        self._bound.clear()
        for program, start in self.interning:
            words = program.constants(dictionary)
            self.constants[start : start + words.size] = words
        self._bound.append((dictionary, dictionary.losses))


def is_compilable(program: Program) -> bool:
    """Whether the stages of a program can be code: it has one shard, and is not inside a loop."""
    return program.shards == 1 and program.depth == 0


def form_of(operator: Operator, functions: Mapping[str, Function], *, orders: bool) -> CompiledForm | Reason:
    """The form of an operator where its node stands; ``orders`` says whether compiled code can compare values there.

    It cannot in a loop, nor where a dictionary has to look elsewhere for values.
    """
    if is_by_value(operator) and not (orders and operator.orders_values):
        return "its rows are in the order of texts or other values of the dictionary"
    return operator.form_of(functions)


def is_by_value(operator: Operator) -> bool:
    """Whether an operator takes or gives rows in the order of what their words stand for."""
    layouts = (operator.output, *operator.reads, *(port.layout for port in operator.inputs))
    return any(layout.by_value for layout in layouts)


def compiled(program: Program, first: int, last: int, ledgers: Mapping[int, int], *, orders: bool) -> Code:
    """The code of some stages; ``ledgers`` numbers the ledgers of the nodes that own a trace. See `form_of`."""
    writer = _Writer(program, ledgers, orders=orders)
    for stage in program.stages[first : last + 1]:
        for node_id in (*stage.moves, *stage.nodes):
            writer.write(node_id)
        for register, (feedback, input_) in enumerate(program.feedbacks, len(program.circuit)):
            if program.depth == 0 and (input_ in stage.nodes or input_ in stage.moves):
                writer.remember(feedback, input_, register)
    return writer.code()


def compiled_scope(scope: Program, ledgers: Mapping[int, int]) -> Code | Reason:
    """The code of a recursive scope; or why its rounds are run one by one."""
    if scope.shards > 1 or scope.depth > 1 or len(scope.stages) > 1 or scope.loops != ((),):
        return "there are other loops around it or in it"
    operators = [node.operator for node in scope.circuit if isinstance(node, Apply)]
    for operator in operators:
        form = form_of(operator, scope.circuit.functions, orders=False)
        if isinstance(form, str) and (operator.reads or isinstance(operator, Arrange)):
            return f"{type(operator).__name__}: {form}"
        if isinstance(form, CompiledForm) and form.op not in fixpoint.NESTED:
            return f"{type(operator).__name__} has no instruction inside a loop"
    return compiled(scope, 0, 0, ledgers, orders=False)


class _Writer:
    def __init__(self, program: Program, ledgers: Mapping[int, int], *, orders: bool) -> None:
        self._program, self._ledgers, self._orders = program, ledgers, orders
        self._lines: list[list[int]] = []
        self._constants: list[int] = []
        self._tasks: list[Task | None] = []
        self._interning: list[tuple[WordProgram, int]] = []

    def code(self) -> Code:
        lines = np.array(self._lines, np.int64).reshape(-1, instructions.INSTRUCTION)
        return Code(lines, np.array(self._constants, np.int64), tuple(self._tasks), tuple(self._interning))

    def write(self, node_id: int) -> None:
        node = self._program.circuit[node_id]
        if isinstance(node, Sink):
            self._write_sink(node_id, node)
        elif isinstance(node, Apply):
            self._write_operator(node_id, node)
        elif isinstance(node, Feedback) and self._program.depth == 0:
            self._line(node_id, (), (Read(node_id, Moment.BEFORE),), CompiledForm(instructions.RECALL))
            self._tasks.append(Task.of(node_id, node))

    def remember(self, feedback: int, input_: int, register: int) -> None:
        """Let a feedback remember its input until the next tick; the change of its trace has a register of its own.

        That is done in every tick, whether or not the input has rows.
        """
        form = CompiledForm(instructions.REMEMBER)
        self._line(register, (input_,), (Read(feedback, Moment.BEFORE),), form, always=True)
        self._tasks.append(Task(feedback, None, None, (input_,), (), False))

    def _write_operator(self, node_id: int, node: Apply) -> None:
        form = form_of(node.operator, self._program.circuit.functions, orders=self._orders)
        task = Task.of(node_id, node)
        inputs = task.inputs
        reads: Sequence[Read] = node.reads
        if isinstance(form, str):
            form, reads = CompiledForm(instructions.PYTHON), ()
        elif isinstance(node.operator, Arrange):
            reads = (Read(node_id, Moment.BEFORE),)
        self._line(node_id, inputs, reads, form)
        self._tasks.append(task)

    def _write_sink(self, node_id: int, node: Sink) -> None:
        if node.table:
            return
        if node.positive:
            self._line(node_id, (node.input,), (Read(node.input, Moment.BEFORE),), CompiledForm(instructions.CHECK))
            self._tasks.append(None)
        layout = self._program.circuit.layout(node.input)
        in_order = layout.sorted and not layout.by_value
        self._line(node_id, (node.input,), (), CompiledForm(instructions.CONSOLIDATE, x=int(in_order)))
        self._tasks.append(None)

    def _line(
        self, out: int, inputs: Sequence[int], reads: Iterable[Read], form: CompiledForm, *, always: bool = False
    ) -> None:
        start = len(self._constants)
        self._constants += form.constants
        if form.program is not None and form.program.interned:
            self._interning.append((form.program, start + form.x))
        end = len(self._constants)
        traces = [self._trace(read) for read in reads]
        self._constants += flat(traces)
        first = len(self._constants)
        self._constants += () if always else inputs
        left, right = (*inputs, instructions.NONE, instructions.NONE)[:2]
        (trace, after), (other, other_after) = (*traces, (0, instructions.NONE), (0, instructions.NONE))[:2]
        line = [form.op, out, left, right, trace, after, other, other_after, start, end, first, len(self._constants)]
        address = 0 if form.routine is None else form.routine.address
        self._lines.append([*line, form.x, form.y, form.z, address])

    def _trace(self, read: Read) -> tuple[int, int]:
        """The number of a trace's ledger, and the register whose rows are read with it."""
        return self._ledgers[read.node], read.node if read.moment is Moment.AFTER else instructions.NONE
