"""The compiled fixed point: all rounds of a recursive scope in one call, as long as they change few rows.

A scope is run by the instructions of `everview.kernels.machine`, which do here what their operators do at a nested
time (see `everview.operators.nested`):

- an entry of a trace ends in the word of its iteration;
- a row that a join makes of two entries belongs to the later of their iterations, and is *held* until then;
- a group that changes now, and has entries of later iterations, is *woken* at these, to be looked at again.

Held rows and groups to be woken wait in registers called ``left``: those of node n in ``2n`` and ``2n + 1``.

A trace has two ledgers here: one of the closed epochs, and one of what the open epoch has appended at earlier
iterations. Their batches are read as one table. The call gives up when it has appended more rows than it is meant for,
or when a weight may leave 64 bits. Then what it has appended is dropped, and Python runs the rounds one by one.
"""

from __future__ import annotations

import numpy as np

from everview.kernels import levels
from everview.kernels import registers as register
from everview.kernels.crossings import crossings_at
from everview.kernels.instructions import (
    ADD,
    ARRANGE,
    DISTINCT,
    END,
    INDEX,
    INDEX_IN_ORDER,
    JOIN,
    JOIN_BOTH,
    JOIN_CHANGES,
    LEFT,
    NEGATE,
    NONE,
    OP,
    OTHER,
    OTHER_AFTER,
    OUT,
    PASS,
    PROJECT,
    PYTHON,
    RIGHT,
    START,
    SUBTRACT,
    TRACE,
    TRACE_AFTER,
    WEIGH,
    WORDS,
    X,
    both,
    is_idle,
)
from everview.kernels.jit import boolean, i64, inline, kernel, rows, rows_out, void, words, words_out
from everview.kernels.linear import negated
from everview.kernels.machine import SAFE, add_all, as_batch, in_words, index, join_of_changes, unary
from everview.kernels.probe import join_at, keys, later_times
from everview.kernels.rows import SIEVE
from everview.kernels.sort import arrange, is_batch
from everview.kernels.timed import split_now, stamped
from everview.kernels.weights import largest_weight

# The instructions that have a meaning at a nested time.
NESTED = (
    *(PYTHON, PASS, PROJECT, WORDS, NEGATE, ADD, SUBTRACT, INDEX, INDEX_IN_ORDER, ARRANGE, JOIN, JOIN_BOTH),
    *(JOIN_CHANGES, WEIGH, DISTINCT),
)

# Links are lines (kind, register, other register): an import (inside, outside), a feedback (its node inside, the node
# whose rows it repeats in the next iteration), or an export (inside, outside).
IMPORT, FEEDBACK, EXPORT = range(3)

# The words of the state: the iteration and the instruction to go on with, limits, and the rows appended so far.
ITERATION, AT, MOST_ROWS, MOST_ROUNDS, GROWN = range(5)
STATE = 5

DONE, GIVEN_UP = -1, -2


@inline
def _seen(ledger, open_, inside, after, now):
    """The batches of a trace: of closed epochs, of the open one, and the rows of register ``after``, if not `NONE`.

    The rows of the register get the word of their time for that. They are kept in one of the last two registers, two
    because a join may read two traces.
    """
    table, count = levels.table_of(ledger), ledger[levels.ALL]
    ledger[levels.ASKED] = 1
    more = levels.table_of(open_)
    for b in range(open_[levels.ALL]):
        table[count, 0], table[count, 1], table[count, SIEVE] = more[b, 0], more[b, 1], 0
        count += 1
    if after != NONE and inside[after, register.ROWS] > 0:
        spare = inside.shape[0] - 1
        if inside[spare, register.ROWS] > 0:
            spare -= 1
        register.put(inside, spare, stamped(register.shown(inside, after), now))
        table[count, 0], table[count, 1] = inside[spare, register.ADDRESS], inside[spare, register.ROWS]
        table[count, SIEVE] = 0
        count += 1
    return table[:count]


@inline
def _due(left, r, now):
    """Take from a register of ``left`` the rows that are due now. Their times are the words before the weights."""
    width = left[r, register.COLUMNS]
    if left[r, register.ROWS] == 0:
        return np.empty((0, max(width - 1, 0)), np.int64)
    current, later = split_now(register.shown(left, r), now)
    register.drop(left, r)
    if later.shape[0] > 0:
        register.put(left, r, later)
    return current


@inline
def _leave(left, r, m):
    """Add rows with later times to a register of ``left``."""
    if m.shape[0] == 0:
        return
    if left[r, register.ROWS] > 0:
        m = both(register.shown(left, r), m)
        register.drop(left, r)
    register.put(left, r, m)


@inline
def _next(left, iteration):
    """The next iteration for which rows or groups wait in ``left``, or -1."""
    least = -1
    for r in range(left.shape[0]):
        if left[r, register.ROWS] == 0:
            continue
        m = register.shown(left, r)
        time = m.shape[1] - 2
        for i in range(m.shape[0]):
            if m[i, time] > iteration and (least < 0 or m[i, time] < least):
                least = m[i, time]
    return least


@inline
def _join(line, constants, inside, ledgers, opens, now):
    """Join the changes of this iteration; each result has the time at which it belongs."""
    trace, open_ = levels.ledger_at(ledgers[line[TRACE]]), levels.ledger_at(opens[line[TRACE]])
    left, key = register.shown(inside, line[LEFT]), line[X]
    columns = trace[levels.COLUMNS]
    table = _seen(trace, open_, inside, line[TRACE_AFTER], now)
    if line[OP] == JOIN:
        return join_at(left, table, columns, key, constants[line[START] : line[END]], now)
    middle = (line[START] + line[END]) // 2
    right = register.shown(inside, line[RIGHT])
    of_right = join_at(right, table, columns, key, constants[middle : line[END]], now)
    other, other_open = levels.ledger_at(ledgers[line[OTHER]]), levels.ledger_at(opens[line[OTHER]])
    table = _seen(other, other_open, inside, line[OTHER_AFTER], now)
    return both(join_at(left, table, other[levels.COLUMNS], key, constants[line[START] : middle], now), of_right)


@inline
def _groups(delta, woken, key):
    """The groups that change now or are woken now, sorted, once each."""
    if woken.shape[0] == 0:
        return keys(delta, key)
    groups = both(keys(delta, key), woken) if delta.shape[0] > 0 else woken
    groups = arrange(groups, np.arange(key))
    groups[:, key] = 1
    return groups


@inline
def _distinct(line, inside, ledgers, opens, left, woken, now):
    """How the presence of the rows that change or are woken now changes; which to wake later is noted in ``left``."""
    trace, open_ = levels.ledger_at(ledgers[line[TRACE]]), levels.ledger_at(opens[line[TRACE]])
    columns = trace[levels.COLUMNS]
    key = columns - 2
    delta = register.shown(inside, line[LEFT])
    groups = _groups(delta, woken, key)
    table = _seen(trace, open_, inside, line[LEFT], now)
    _leave(left, 2 * line[OUT] + 1, later_times(groups, table, columns, key, now))
    return crossings_at(groups, table, trace[levels.ALL], columns, key, now)


@inline
def _instruct(line, constants, inside, ledgers, opens, left, now):
    """Run one instruction at a nested time; False if a row has no result, as of a division by zero."""
    op, out = line[OP], line[OUT]
    held, woken = _due(left, 2 * out, now), _due(left, 2 * out + 1, now)
    if woken.shape[0] == 0 and is_idle(line, constants, inside):
        if held.shape[0] > 0:
            register.put(inside, out, held)
        return True
    register.drop(inside, inside.shape[0] - 1)
    register.drop(inside, inside.shape[0] - 2)
    if op in (JOIN, JOIN_BOTH):
        current, later = split_now(_join(line, constants, inside, ledgers, opens, now), now)
        _leave(left, 2 * out, later)
        register.put(inside, out, current if held.shape[0] == 0 else both(current, held))
    elif op == DISTINCT:
        register.put(inside, out, _distinct(line, inside, ledgers, opens, left, woken, now))
    elif op in (PASS, ARRANGE):
        register.lend(inside, out, line[LEFT])
    elif op == WORDS:
        return in_words(line, constants, inside)
    elif op == ADD:
        add_all(line, constants, inside)
    elif op == SUBTRACT:
        taken = negated(register.shown(inside, line[RIGHT]))
        register.put(inside, out, both(register.shown(inside, line[LEFT]), taken))
    elif op in (INDEX, INDEX_IN_ORDER):
        index(line, constants, inside)
    elif op == JOIN_CHANGES:
        register.put(inside, out, join_of_changes(line, constants, inside))
    else:
        register.put(inside, out, unary(line, constants, inside))
    return True


@inline
def _append(code, inside, ledgers, opens, state, now):
    """Append the rows that arranged streams have now to the open epoch's traces; False if that is too much."""
    for pc in range(code.shape[0]):
        line = code[pc]
        if line[OP] != ARRANGE or inside[line[OUT], register.ROWS] == 0:
            continue
        ledger, open_ = levels.ledger_at(ledgers[line[TRACE]]), levels.ledger_at(opens[line[TRACE]])
        m = stamped(register.shown(inside, line[OUT]), now)
        largest = largest_weight(m)
        state[GROWN] += m.shape[0]
        if ledger[levels.REACH] > SAFE - largest or state[GROWN] > state[MOST_ROWS]:
            return False
        ledger[levels.REACH] += largest
        levels.enter_batch(open_, m, ())
        if ledger[levels.ALL] + open_[levels.ALL] >= levels.MOST:
            return False
    return True


@inline
def _export(links, inside, outside):
    """Add the rows that the scope's outputs have now to the registers outside."""
    for k in range(links.shape[0]):
        r, other = links[k, 1], links[k, 2]
        if links[k, 0] != EXPORT or inside[r, register.ROWS] == 0:
            continue
        m = register.owned_or_copied(inside, r)
        if outside[other, register.ROWS] > 0:
            m = both(register.shown(outside, other), m)
            register.drop(outside, other)
        register.put(outside, other, m)


@inline
def _feed_back(links, inside, back):
    """Clear all registers inside, then fill those of feedbacks for the next iteration; how many rows are fed back."""
    fed = 0
    for k in range(links.shape[0]):
        r = links[k, 2]
        if links[k, 0] != FEEDBACK or inside[r, register.ROWS] == 0:
            continue
        m = register.shown(inside, r)
        m = register.owned_or_copied(inside, r) if is_batch(m) else as_batch(m)
        if m.shape[0] > 0:
            register.put(back, k, m)
            fed += m.shape[0]
    register.clear(inside)
    for k in range(links.shape[0]):
        if back[k, register.ROWS] > 0:
            for c in range(register.REGISTER):
                inside[links[k, 1], c] = back[k, c]
                back[k, c] = 0
    return fed


@kernel(i64, rows, words, rows, rows_out, rows_out, rows_out, rows_out, words, words, words_out)
def run(code, constants, links, inside, outside, left, back, ledgers, opens, state):
    """Run a scope to its fixed point; returns `DONE`, `GIVEN_UP`, or the number of an instruction for Python to run.

    The state says at which iteration and instruction to begin. The rows of imports are in the registers inside already.
    """
    now = np.empty(1, np.int64)
    while True:
        now[0] = state[ITERATION]
        while state[AT] < code.shape[0]:
            line = code[state[AT]]
            if line[OP] != PYTHON:
                if not _instruct(line, constants, inside, ledgers, opens, left, now):
                    return state[AT]
            elif not is_idle(line, constants, inside):
                return state[AT]
            state[AT] += 1
        if not _append(code, inside, ledgers, opens, state, now):
            return GIVEN_UP
        _export(links, inside, outside)
        following = state[ITERATION] + 1
        if _feed_back(links, inside, back) == 0:
            following = _next(left, state[ITERATION])
        if following < 0:
            return DONE
        if following > state[MOST_ROUNDS]:
            return GIVEN_UP
        state[ITERATION], state[AT] = following, 0


@kernel(boolean, words, words)
def publish(ledgers, opens):
    """Move the open epoch's entries to the traces of the closed ones; whether levels of one are full.

    A second call does not move them again.
    """
    full = False
    for t in range(opens.size):
        open_, ledger = levels.ledger_at(opens[t]), levels.ledger_at(ledgers[t])
        if open_[levels.ALL] > 0:
            levels.enter_batch(ledger, levels.gather(open_, ()), ())
            levels.give_up(open_)
            full |= levels.is_full(ledger)
    return full


@kernel(void, words)
def abandon(opens):
    """Drop the open epoch's entries."""
    for t in range(opens.size):
        levels.give_up(levels.ledger_at(opens[t]))
