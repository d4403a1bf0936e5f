"""The compiled tick: an interpreter of instructions over registers and ledgers, so that a run of operators is one call.

Instructions are those of `everview.kernels.instructions`; they run the kernels that the operators' own steps call. An
instruction whose inputs are all empty does nothing, as an operator does.

The call ends when the code does, or at an instruction that is Python's: it returns that one's number. Python runs the
operator's step, puts the result into its register, and calls again with the next number. Whatever a kernel raises is
raised here, after the number of the instruction was noted in the status; the operator's step then says what is wrong.
"""

from __future__ import annotations

import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numpy.typing import NDArray

from everview.kernels import levels, sums
from everview.kernels import registers as register
from everview.kernels.contributions import SUMS_ALONE
from everview.kernels.crossings import crossings
from everview.kernels.instructions import (
    ADD,
    AGGREGATE,
    ARRANGE,
    CALL,
    CHECK,
    CONSOLIDATE,
    CONSTANT,
    DISTINCT,
    END,
    FROM,
    INDEX,
    INDEX_IN_ORDER,
    INSTRUCTION,
    JOIN,
    JOIN_BOTH,
    JOIN_CHANGES,
    LEFT,
    NEGATE,
    NO_BOUND,
    NONE,
    OP,
    OTHER,
    OTHER_AFTER,
    OUT,
    PASS,
    PROJECT,
    PYTHON,
    RECALL,
    REMEMBER,
    RIGHT,
    ROUTINE,
    SEMIJOIN,
    START,
    SUBTRACT,
    TO,
    TOP,
    TRACE,
    TRACE_AFTER,
    WEIGH,
    WORDS,
    X,
    Y,
    Z,
    both,
    call_routine,
    is_idle,
    lines_of,
    ordering_of,
    table_of,
)
from everview.kernels.jit import boolean, i64, inline, kernel, rows, rows_out, void
from everview.kernels.linear import negated, project
from everview.kernels.merge import merged
from everview.kernels.presence import where_positive
from everview.kernels.probe import join, weights
from everview.kernels.reshape import reshape
from everview.kernels.rows import as_pointer, batch
from everview.kernels.sort import arrange, is_batch
from everview.kernels.sums import weigh
from everview.kernels.top import top
from everview.kernels.weights import largest_weight
from everview.kernels.words import word_rows

# The words of the status.
AT, SUSPECT = range(2)  # the instruction under way; whether a row would be there less often than not at all
STATUS = 2

# The parts of a frame: what `run` works on, each by its address and its length.
CODE, CONSTANTS, REGISTERS, LEDGERS, STAGED, COUNTS, STATE = range(7)
PARTS = 7

SAFE = 1 << 62  # while no sum can be larger, sums need no checking


@inline
def as_batch(m):
    """The rows as a batch."""
    return arrange(m, np.arange(m.shape[1] - 1))


@inline
def add_all(line, constants, registers):
    """The rows of all inputs; those of the only one that has some, as they are."""
    total, parts, only = 0, 0, 0
    for c in range(line[FROM], line[TO]):
        count = registers[constants[c], register.ROWS]
        if count > 0:
            total, parts, only = total + count, parts + 1, constants[c]
    if parts == 1:
        register.lend(registers, line[OUT], only)
        return
    out = np.empty((total, registers[only, register.COLUMNS]), np.int64)
    at = 0
    for c in range(line[FROM], line[TO]):
        m = register.shown(registers, constants[c])
        if m.shape[0] > 0:
            out[at : at + m.shape[0]] = m
            at += m.shape[0]
    register.put(registers, line[OUT], out)


@inline
def in_words(line, constants, registers):
    """The rows that a program over words makes of those of a register; False if one has no result."""
    delta, middle = register.shown(registers, line[LEFT]), line[START] + line[X]
    out = np.empty((delta.shape[0], line[Y] + 1), np.int64)
    count = word_rows(delta, constants[line[START] : middle], constants[middle : line[END]], out)
    if count == delta.shape[0] and line[Z]:
        register.lend(registers, line[OUT], line[LEFT])
    elif count >= 0:
        register.put(registers, line[OUT], out[:count])
    return count >= 0


@inline
def index(line, constants, registers):
    delta = register.shown(registers, line[LEFT])
    if line[OP] == INDEX_IN_ORDER:
        delta = reshape(delta, lines_of(constants, line[START], line[END], 2))
        register.put(registers, line[OUT], delta if is_batch(delta) else as_batch(delta))
    elif line[X] and is_batch(delta):
        register.lend(registers, line[OUT], line[LEFT])
    else:
        register.put(registers, line[OUT], arrange(delta, constants[line[START] : line[END]]))


@inline
def join_of_changes(line, constants, registers):
    """The join of what is in two registers."""
    side, pick = line[RIGHT], constants[line[START] : line[END]]
    table = np.array([[registers[side, register.ADDRESS], registers[side, register.ROWS], 0]])
    return join(register.shown(registers, line[LEFT]), table, line[Y], line[X], pick)


@inline
def _semijoin(line, registers, trace, other):
    """``Δa ⋉ b_after + a_before ⋈ Δdistinct(b)``."""
    left, on, key = register.shown(registers, line[LEFT]), register.shown(registers, line[RIGHT]), line[X]
    after = weights(left, table_of(other, registers, line[RIGHT]), other[levels.COLUMNS], key, NO_BOUND)
    kept = where_positive(left, after)
    if on.shape[0] == 0:
        return kept
    crossed = crossings(on, weights(on, table_of(other, registers, NONE), other[levels.COLUMNS], key, NO_BOUND))
    whole = ~np.arange(trace[levels.COLUMNS] - 1)
    return both(kept, join(crossed, table_of(trace, registers, NONE), trace[levels.COLUMNS], key, whole))


@inline
def _join_both(line, constants, registers, trace, other):
    """``Δa ⋈ b_before + a_after ⋈ Δb``; what each side picks is in the two halves of the constants."""
    left, right, key = register.shown(registers, line[LEFT]), register.shown(registers, line[RIGHT]), line[X]
    middle = (line[START] + line[END]) // 2
    by_left, by_right = constants[line[START] : middle], constants[middle : line[END]]
    if right.shape[0] == 0:
        return join(left, table_of(other, registers, line[OTHER_AFTER]), other[levels.COLUMNS], key, by_left)
    of_right = join(right, table_of(trace, registers, line[TRACE_AFTER]), trace[levels.COLUMNS], key, by_right)
    if left.shape[0] == 0:
        return of_right
    of_left = join(left, table_of(other, registers, line[OTHER_AFTER]), other[levels.COLUMNS], key, by_left)
    return both(of_left, of_right)


@inline
def _is_negative(registers, r, trace):
    """Whether a row of a register would be in a trace less often than not at all."""
    m = register.shown(registers, r)
    after = weights(m, table_of(trace, registers, r), trace[levels.COLUMNS], m.shape[1] - 1, NO_BOUND)
    for i in range(after.size):  # noqa: SIM110, generators do not compile
        if after[i] < 0:
            return True
    return False


@inline
def _appended(line, registers, trace, staged):
    """Let a trace's change wait in its register until the epoch is published; False if weights may leave 64 bits."""
    if registers[line[OUT], register.ROWS] == 0:
        return True
    largest = largest_weight(register.shown(registers, line[OUT]))
    if trace[levels.REACH] > SAFE - largest:
        register.drop(registers, line[OUT])
        return False
    trace[levels.REACH] += largest
    staged[line[TRACE]] = line[OUT] + 1
    return True


@inline
def _whole(table, columns):
    """All batches of a trace as one."""
    whole = np.empty((0, columns), np.int64)
    for b in range(table.shape[0] - 1, -1, -1):
        whole = merged(batch(table, b, columns), whole, ())
    return whole


@inline
def _recall(line, registers, trace):
    """Let a register have all rows of a trace."""
    table, columns = table_of(trace, registers, NONE), trace[levels.COLUMNS]
    if table.shape[0] == 1:
        register.show(registers, line[OUT], table[0, 0], table[0, 1], columns)
    else:
        register.put(registers, line[OUT], _whole(table, columns))


@inline
def _replaced(line, registers, trace):
    """The change that leaves of a trace the rows of a register alone."""
    old = negated(_whole(table_of(trace, registers, NONE), trace[levels.COLUMNS]))
    return as_batch(both(register.shown(registers, line[LEFT]), old))


@inline
def unary(line, constants, registers):
    """The result of an operator of one input that reads no trace."""
    op, delta = line[OP], register.shown(registers, line[LEFT])
    if op == PROJECT:
        return project(delta, constants[line[START] : line[END]])
    if op == WEIGH:
        middle = line[START] + line[X]
        return weigh(delta, constants[line[START] : middle], lines_of(constants, middle, line[END], 5))
    return negated(delta)


def frame_of(
    code: NDArray[np.int64],
    constants: NDArray[np.int64],
    registers: NDArray[np.int64],
    ledgers: NDArray[np.int64],
    staged: NDArray[np.int64],
    counts: NDArray[np.int64],
    status: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Where the machine finds all that it works on. Whoever keeps the frame keeps these arrays, too.

    A kernel that is given an address begins half a microsecond earlier than one that is given seven arrays.
    """
    arrays = code, constants, registers, ledgers, staged, counts, status
    assert all(each.flags.c_contiguous and each.dtype == np.int64 for each in arrays), "words one after the other"
    return np.array([(each.ctypes.data, len(each)) for each in arrays], np.int64)


@inline
def _words_at(frame, part):
    return carray(as_pointer(frame[part, 0]), frame[part, 1])


@inline
def _lines_at(frame, part, columns):
    return carray(as_pointer(frame[part, 0]), (frame[part, 1], columns))


@inline
def _frame_at(address):
    return carray(as_pointer(address), (PARTS, 2))


@inline
def _registers_in(frame):
    return _lines_at(frame, REGISTERS, register.REGISTER)


@kernel(i64, i64, i64)
def run(frame, pc):
    """Run the code of a frame, whose address this is, from ``pc`` on; the number of an instruction that is Python's.

    If there is none, that of all. Nobody counts who holds the arrays of a frame: at every use of a line, that would
    take a quarter of a small tick.
    """
    parts = _frame_at(frame)
    code, constants = _lines_at(parts, CODE, INSTRUCTION), _words_at(parts, CONSTANTS)
    registers, ledgers = _registers_in(parts), _words_at(parts, LEDGERS)
    counts = _lines_at(parts, COUNTS, 2)
    return _run(code, constants, registers, ledgers, _words_at(parts, STAGED), counts, _words_at(parts, STATE), pc)


@kernel(boolean, i64, i64, i64, rows)
def arrive(frame, r, other, m):
    """Show a matrix of Python's in a register of a frame, and in another unless that is -1.

    False if its rows do not lie one after the other: nothing was done.
    """
    if m.shape[0] > 1 and m.strides[0] != 8 * m.shape[1]:
        return False
    registers = _registers_in(_frame_at(frame))
    register.drop(registers, r)
    register.show(registers, r, m.ctypes.data, m.shape[0], m.shape[1])
    if other >= 0:
        register.drop(registers, other)
        register.show(registers, other, m.ctypes.data, m.shape[0], m.shape[1])
    return True


@inline
def _run(code, constants, registers, ledgers, staged, counts, status, pc):
    while pc < code.shape[0]:
        line = code[pc]
        op, out = line[OP], line[OUT]
        if registers[out, register.ROWS] > 0 or is_idle(line, constants, registers):
            pc += 1
            continue
        if op == PYTHON:
            return pc
        status[AT] = pc
        trace = levels.ledger_at(ledgers[line[TRACE]])
        other = levels.ledger_at(ledgers[line[OTHER]])
        if op == PASS:
            register.lend(registers, out, line[LEFT])
        elif op in (PROJECT, WEIGH, NEGATE):
            register.put(registers, out, unary(line, constants, registers))
        elif op == WORDS:
            if not in_words(line, constants, registers):
                return pc
        elif op == ADD:
            add_all(line, constants, registers)
        elif op == SUBTRACT:
            taken = negated(register.shown(registers, line[RIGHT]))
            register.put(registers, out, both(register.shown(registers, line[LEFT]), taken))
        elif op in (INDEX, INDEX_IN_ORDER):
            index(line, constants, registers)
        elif op == ARRANGE:
            register.lend(registers, out, line[LEFT])
            if not _appended(line, registers, trace, staged):
                return pc
        elif op == CONSTANT:
            register.put(registers, out, lines_of(constants, line[START], line[END], line[X]).copy())
        elif op == RECALL:
            _recall(line, registers, trace)
        elif op == REMEMBER:
            register.put(registers, out, _replaced(line, registers, trace))
            if not _appended(line, registers, trace, staged):
                return pc
        elif op == JOIN:
            table = table_of(trace, registers, line[TRACE_AFTER])
            pick = constants[line[START] : line[END]]
            delta = register.shown(registers, line[LEFT])
            register.put(registers, out, join(delta, table, trace[levels.COLUMNS], line[X], pick))
        elif op == JOIN_BOTH:
            register.put(registers, out, _join_both(line, constants, registers, trace, other))
        elif op == JOIN_CHANGES:
            register.put(registers, out, join_of_changes(line, constants, registers))
        elif op == SEMIJOIN:
            register.put(registers, out, _semijoin(line, registers, trace, other))
        elif op == DISTINCT:
            delta = register.shown(registers, line[LEFT])
            table = table_of(trace, registers, line[TRACE_AFTER])
            before = weights(delta, table, trace[levels.COLUMNS], delta.shape[1] - 1, NO_BOUND)
            register.put(registers, out, crossings(delta, before))
        elif op == TOP:
            register.put(registers, out, top(line, constants, registers, trace, ()))
        elif op == AGGREGATE:
            if not sums.aggregate(line, constants, registers, ledgers, SUMS_ALONE):
                return pc
        elif op == CONSOLIDATE:
            delta = register.shown(registers, line[LEFT])
            if line[X] or is_batch(delta):
                register.lend(registers, out, line[LEFT])
            else:
                register.put(registers, out, as_batch(delta))
        elif op == CALL:
            if call_routine(line[ROUTINE], line, constants, registers, ledgers) == 0:
                return pc
        elif op == CHECK:
            status[SUSPECT] |= _is_negative(registers, line[LEFT], trace)
        counts[out, 0] += 1
        counts[out, 1] += registers[out, register.ROWS]
        pc += 1
    return pc


@kernel(boolean, i64)
def publish(frame):
    """Enter what waits in registers to the traces, each at once, and clear all registers; whether levels are full.

    What has been entered is not entered again by a second call.
    """
    parts = _frame_at(frame)
    return _publish(_words_at(parts, LEDGERS), _words_at(parts, STAGED), _registers_in(parts))


@kernel(void, rows_out, i64, i64)
def copy_out(out, frame, r):
    """Copy the rows of a register of a frame: for a few, that is done before an array could be made of the register."""
    m = register.shown(_registers_in(_frame_at(frame)), r)
    for i in range(out.shape[0]):
        for c in range(out.shape[1]):
            out[i, c] = m[i, c]


@inline
def _publish(ledgers, staged, registers):
    full = False
    for t in range(staged.size):
        if staged[t] == 0:
            continue
        ledger = levels.ledger_at(ledgers[t])
        waiting = register.owned_or_copied(registers, staged[t] - 1)
        if ledger[levels.ORDER] == 0:
            levels.enter_batch(ledger, waiting, ())
        else:
            levels.enter_batch(ledger, waiting, ordering_of(ledger, registers))
        staged[t] = 0
        full |= levels.is_full(ledger)
    register.clear(registers)
    return full
