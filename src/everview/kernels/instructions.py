"""Instructions of the compiled tick: what their words mean, and what most of them need.

An instruction is a line of words: what to do, the register of the result, those of the first two inputs, the first two
traces that are read, and ranges of the constants: what the operator gives, all traces that are read, and all inputs. A
trace is two words: the number of its ledger, and the register whose rows are read with it, which shows the trace after
the tick; or `NONE`.

`CALL` is for what few programs do: the address of a routine, a kernel of its own that is compiled and loaded only if it
is needed, and not part of the machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]
from numba.core import cgutils
from numba.extending import intrinsic

from everview.kernels import levels
from everview.kernels import registers as register
from everview.kernels.jit import i64, inline, kernel, rows_out, words
from everview.kernels.ordering import ordering_with
from everview.kernels.rows import SIEVE, as_pointer

# The words of an instruction: constants START to END are the operator's, then come the traces, from FROM on the inputs.
OP, OUT, LEFT, RIGHT, TRACE, TRACE_AFTER, OTHER, OTHER_AFTER, START, END, FROM, TO, X, Y, Z, ROUTINE = range(16)
INSTRUCTION = 16
NONE = -1

# What to do.
(
    PYTHON,
    PASS,
    PROJECT,
    WORDS,
    NEGATE,
    ADD,
    SUBTRACT,
    INDEX,
    INDEX_IN_ORDER,
    ARRANGE,
    JOIN,
    JOIN_BOTH,
    JOIN_CHANGES,
    SEMIJOIN,
    DISTINCT,
    TOP,
    WEIGH,
    AGGREGATE,
    CONSOLIDATE,
    CHECK,
    CONSTANT,
    RECALL,
    REMEMBER,
    CALL,
) = range(24)

NO_BOUND = np.empty(0, np.int64)

# A routine gets its instruction, all constants, the registers and the addresses of ledgers, and puts the result into
# its register. It returns 0 if the step has to be run by Python.
routine = kernel(i64, words, words, rows_out, words)


@intrinsic
def _called(typingctx: Any, address: Any, line: Any, constants: Any, registers: Any, ledgers: Any) -> Any:
    """Call the routine at an address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        convention, kinds = context.call_conv, (words, words, rows_out, words)
        function = convention.get_function_type(types.int64, kinds).as_pointer()
        given = [
            context.cast(builder, argument, given, kind)
            for argument, given, kind in zip(arguments[1:], signature.args[1:], kinds, strict=True)
        ]
        where = builder.inttoptr(arguments[0], function)
        status, result = convention.call_function(builder, where, types.int64, kinds, given)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    return types.int64(address, line, constants, registers, ledgers), codegen


call_routine: Any = _called


@inline
def is_idle(line, constants, registers):
    """Whether an instruction has inputs, and none of them has rows."""
    for c in range(line[FROM], line[TO]):
        if registers[constants[c], register.ROWS] > 0:
            return False
    return line[FROM] < line[TO]


@inline
def table_of(ledger, registers, after):
    """The batches of a trace; with what a register holds, if one is named and it holds something."""
    table, count = levels.table_of(ledger), ledger[levels.ALL]
    ledger[levels.ASKED] = 1
    if after >= 0 and registers[after, register.ROWS] > 0:
        table[count, 0] = registers[after, register.ADDRESS]
        table[count, 1] = registers[after, register.ROWS]
        table[count, SIEVE] = 0
        count += 1
    return table[:count]


@inline
def dictionary_of(registers):
    """The address of the words that say where the dictionary's arrays are: the last register's, which has no rows."""
    return registers[registers.shape[0] - 1, register.ADDRESS]


@inline
def ordering_of(ledger, registers):
    """The ordering (see `everview.kernels.ordering`) of a trace that is ordered by value."""
    order = carray(as_pointer(ledger[levels.ORDER]), (ledger[levels.COLUMNS] - 1, 2))
    return ordering_with(order, dictionary_of(registers))


@inline
def lines_of(constants, start, end, columns):
    """A range of the constants as a matrix."""
    return constants[start:end].reshape(((end - start) // columns, columns))


@inline
def both(a, b):
    """The rows of both; a register without rows may be without columns, too."""
    out = np.empty((a.shape[0] + b.shape[0], max(a.shape[1], b.shape[1])), np.int64)
    if a.shape[0] > 0:
        out[: a.shape[0]] = a
    if b.shape[0] > 0:
        out[a.shape[0] :] = b
    return out
