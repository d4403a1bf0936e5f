"""The compiled tick: an interpreter of instructions over registers and ledgers, so that a run of operators is one call.

An instruction is a line of words: what to do, the register of the result, those of the inputs, the traces it reads, and
a range of the constants. The routines that instructions run are the kernels that the operators' own steps call. An
instruction whose inputs are all empty does nothing, as an operator does.

The call ends when the code does, or at an instruction that is Python's: it returns that one's number. Python runs the
operator's step, puts the result into its register, and calls again with the next number. Whatever a kernel raises is
raised here, after the number of the instruction was noted in the status; the operator's step then says what is wrong.
"""

from __future__ import annotations

import numpy as np

from everview.kernels import levels, sums
from everview.kernels import registers as register
from everview.kernels.crossings import crossings
from everview.kernels.ends import first_rows, last_rows
from everview.kernels.jit import boolean, i64, inline, kernel, rows, rows_out, words, words_out
from everview.kernels.linear import negated, project
from everview.kernels.presence import where_positive
from everview.kernels.probe import join, keys, weights
from everview.kernels.reshape import reshape
from everview.kernels.sort import arrange, is_batch
from everview.kernels.sums import weigh
from everview.kernels.top import first_rows_change
from everview.kernels.weights import largest_weight
from everview.kernels.words import word_rows

# The words of an instruction. A trace is read with what its node's register holds, if that is named: after the tick.
OP, OUT, LEFT, RIGHT, TRACE, TRACE_AFTER, OTHER, OTHER_AFTER, START, END, X, Y, Z = range(13)
INSTRUCTION = 13
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
) = range(20)

# The words of the status.
AT, SUSPECT = range(2)  # the instruction under way; whether a row would be there less often than not at all
STATUS = 2

SAFE = 1 << 62  # while no sum can be larger, sums need no checking
NO_BOUND = np.empty(0, np.int64)


@inline
def _table(ledger, registers, after):
    """The batches of a trace; with what a register holds, if one is named and it holds something."""
    table, count = levels.table_of(ledger), ledger[levels.ALL]
    if after >= 0 and registers[after, register.ROWS] > 0:
        table[count, 0] = registers[after, register.ADDRESS]
        table[count, 1] = registers[after, register.ROWS]
        count += 1
    return table[:count]


@inline
def _plan(constants, start, end, columns):
    """A range of the constants as a matrix."""
    return constants[start:end].reshape(((end - start) // columns, columns))


@inline
def as_batch(m):
    """The rows as a batch."""
    return arrange(m, np.arange(m.shape[1] - 1))


@inline
def both(a, b):
    """The rows of both; a register without rows may be without columns, too."""
    out = np.empty((a.shape[0] + b.shape[0], max(a.shape[1], b.shape[1])), np.int64)
    if a.shape[0] > 0:
        out[: a.shape[0]] = a
    if b.shape[0] > 0:
        out[a.shape[0] :] = b
    return out


@inline
def is_idle(line, constants, registers):
    """Whether an instruction has inputs, and none of them has rows."""
    if line[LEFT] == NONE:
        return False
    if line[OP] in (ADD, PYTHON):
        for c in range(line[START], line[END]):  # noqa: SIM110, generators do not compile
            if registers[constants[c], register.ROWS] > 0:
                return False
        return True
    if line[OP] == AGGREGATE:
        for c in range(line[END] - 2 * line[OTHER_AFTER], line[END], 2):
            if registers[constants[c], register.ROWS] > 0:
                return False
        return True
    if registers[line[LEFT], register.ROWS] > 0:
        return False
    return line[RIGHT] == NONE or registers[line[RIGHT], register.ROWS] == 0


@inline
def add_all(line, constants, registers):
    """The rows of all inputs; those of the only one that has some, as they are."""
    total, parts, only = 0, 0, 0
    for c in range(line[START], line[END]):
        count = registers[constants[c], register.ROWS]
        if count > 0:
            total, parts, only = total + count, parts + 1, constants[c]
    if parts == 1:
        register.lend(registers, line[OUT], only)
        return
    out = np.empty((total, registers[only, register.COLUMNS]), np.int64)
    at = 0
    for c in range(line[START], line[END]):
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
        delta = reshape(delta, _plan(constants, line[START], line[END], 2))
        register.put(registers, line[OUT], delta if is_batch(delta) else as_batch(delta))
    elif line[X] and is_batch(delta):
        register.lend(registers, line[OUT], line[LEFT])
    else:
        register.put(registers, line[OUT], arrange(delta, constants[line[START] : line[END]]))


@inline
def join_of_changes(line, constants, registers):
    """The join of what is in two registers."""
    side, pick = line[RIGHT], constants[line[START] : line[END]]
    table = np.array([[registers[side, register.ADDRESS], registers[side, register.ROWS]]])
    return join(register.shown(registers, line[LEFT]), table, line[Y], line[X], pick)


@inline
def _semijoin(line, registers, trace, other):
    """``Δa ⋉ b_after + a_before ⋈ Δdistinct(b)``."""
    left, on, key = register.shown(registers, line[LEFT]), register.shown(registers, line[RIGHT]), line[X]
    after = weights(left, _table(other, registers, line[RIGHT]), other[levels.COLUMNS], key, NO_BOUND)
    kept = where_positive(left, after)
    if on.shape[0] == 0:
        return kept
    crossed = crossings(on, weights(on, _table(other, registers, NONE), other[levels.COLUMNS], key, NO_BOUND))
    whole = ~np.arange(trace[levels.COLUMNS] - 1)
    return both(kept, join(crossed, _table(trace, registers, NONE), trace[levels.COLUMNS], key, whole))


@inline
def _join_both(line, constants, registers, trace, other):
    """``Δa ⋈ b_before + a_after ⋈ Δb``; what each side picks is in the two halves of the constants."""
    left, right, key = register.shown(registers, line[LEFT]), register.shown(registers, line[RIGHT]), line[X]
    middle = (line[START] + line[END]) // 2
    by_left, by_right = constants[line[START] : middle], constants[middle : line[END]]
    if right.shape[0] == 0:
        return join(left, _table(other, registers, line[OTHER_AFTER]), other[levels.COLUMNS], key, by_left)
    of_right = join(right, _table(trace, registers, line[TRACE_AFTER]), trace[levels.COLUMNS], key, by_right)
    if left.shape[0] == 0:
        return of_right
    of_left = join(left, _table(other, registers, line[OTHER_AFTER]), other[levels.COLUMNS], key, by_left)
    return both(of_left, of_right)


@inline
def _top(line, constants, registers, trace):
    delta = register.shown(registers, line[LEFT])
    groups = keys(delta, line[X])
    table = _table(trace, registers, line[LEFT])
    changed = first_rows_change(groups, table, trace[levels.COLUMNS], line[X], line[Y], line[Z])
    if line[START] == line[END]:
        return changed
    return reshape(changed, _plan(constants, line[START], line[END], 2))


@inline
def _aggregate(line, constants, registers, ledgers):
    """The change of the results of the groups that changes touch, not consolidated; False if one is out of range.

    The inputs are entries and then rows in some orders: pairs (register, ledger) at the end of the constants.
    """
    middle = line[END] - 2 * line[OTHER_AFTER]
    inputs, calls = _plan(constants, middle, line[END], 2), _plan(constants, line[START], middle, 9)
    key, places, width = line[X], line[Y], line[Z]
    groups = np.empty((0, key + 1), np.int64)
    for i in range(inputs.shape[0]):
        groups = sums.add_groups(groups, register.shown(registers, inputs[i, 0]), key)
    trace = levels.ledger_at(ledgers[inputs[0, 1]])
    delta, table = register.shown(registers, inputs[0, 0]), _table(trace, registers, NONE)
    dense = sums.states_of(groups, delta, table, trace[levels.COLUMNS], key, places)
    numbers = sums.there(dense)
    dense, out = sums.chosen(dense, numbers), sums.begun(groups, numbers, key, width)
    for c in range(calls.shape[0]):
        call = calls[c]
        if call[0] < sums.LEAST_OF:
            if not sums.finish(out, dense, call):
                return False
            continue
        ordered = levels.ledger_at(ledgers[inputs[call[3], 1]])
        for state in range(2):
            table = _table(ordered, registers, inputs[call[3], 0] if state == 1 else NONE)
            if call[0] == sums.LEAST_OF:
                ends = first_rows(groups, table, ordered[levels.COLUMNS], key, 0, 1, NO_BOUND)
            else:
                ends = last_rows(groups, table, ordered[levels.COLUMNS], key, NO_BOUND)
            sums.put_ends(out, numbers, ends, groups, state * groups.shape[0], key, call)
    register.put(registers, line[OUT], out)
    return True


@inline
def _is_negative(registers, r, trace):
    """Whether a row of a register would be in a trace less often than not at all."""
    m = register.shown(registers, r)
    after = weights(m, _table(trace, registers, r), trace[levels.COLUMNS], m.shape[1] - 1, NO_BOUND)
    for i in range(after.size):  # noqa: SIM110, generators do not compile
        if after[i] < 0:
            return True
    return False


@inline
def _arranged(line, registers, trace, staged):
    """Let a trace's change wait until the epoch is published; False if its weights may leave 64 bits."""
    largest = largest_weight(register.shown(registers, line[LEFT]))
    if trace[levels.REACH] > SAFE - largest:
        return False
    trace[levels.REACH] += largest
    register.lend(registers, line[OUT], line[LEFT])
    staged[line[TRACE]] = line[OUT] + 1
    return True


@inline
def unary(line, constants, registers):
    """The result of an operator of one input that reads no trace."""
    op, delta = line[OP], register.shown(registers, line[LEFT])
    if op == PROJECT:
        return project(delta, constants[line[START] : line[END]])
    if op == WEIGH:
        middle = line[START] + line[X]
        return weigh(delta, constants[line[START] : middle], _plan(constants, middle, line[END], 5))
    return negated(delta)


@kernel(i64, rows, words, rows_out, words, words_out, rows_out, words_out, i64)
def run(code, constants, registers, ledgers, staged, counts, status, pc):
    """Run instructions from ``pc`` on; the number of one that is Python's, or that of all."""
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
            if not _arranged(line, registers, trace, staged):
                return pc
        elif op == JOIN:
            table = _table(trace, registers, line[TRACE_AFTER])
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
            table = _table(trace, registers, line[TRACE_AFTER])
            before = weights(delta, table, trace[levels.COLUMNS], delta.shape[1] - 1, NO_BOUND)
            register.put(registers, out, crossings(delta, before))
        elif op == TOP:
            register.put(registers, out, _top(line, constants, registers, trace))
        elif op == AGGREGATE:
            if not _aggregate(line, constants, registers, ledgers):
                return pc
        elif op == CONSOLIDATE:
            delta = register.shown(registers, line[LEFT])
            if line[X] or is_batch(delta):
                register.lend(registers, out, line[LEFT])
            else:
                register.put(registers, out, as_batch(delta))
        elif op == CHECK:
            status[SUSPECT] |= _is_negative(registers, line[LEFT], trace)
        counts[out, 0] += 1
        counts[out, 1] += registers[out, register.ROWS]
        pc += 1
    return pc


@kernel(boolean, words, words_out, rows_out)
def publish(ledgers, staged, registers):
    """Enter what waits in registers to the traces, each at once, and clear all registers; whether levels are full.

    What has been entered is not entered again by a second call.
    """
    full = False
    for t in range(staged.size):
        if staged[t] == 0:
            continue
        ledger = levels.ledger_at(ledgers[t])
        levels.enter_batch(ledger, register.owned_or_copied(registers, staged[t] - 1), ())
        staged[t] = 0
        full |= levels.is_full(ledger)
    register.clear(registers)
    return full
