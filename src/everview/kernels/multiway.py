"""Delta queries of a multiway join as a routine of the compiled tick: all levels of all seeds within one call.

The kernels are those of the operator's step (`everview.operators.extending`), which goes through prefixes in slices.
Here all prefixes of a level are extended at once; if there is too much to propose, the step does it.

The plan is a run of words for each seed: how long it is, the words of a result, the indexes that the seed binds wholly,
and the levels, each the width of its variable and the lookups that extend a prefix. A lookup is the number of the trace
among those that are read, whether the variable is the index's last, and the columns of the prefix that are the key.
"""

from __future__ import annotations

import numpy as np

from everview.kernels import levels
from everview.kernels import registers as register
from everview.kernels.extend import extend, find, proposals, weigh
from everview.kernels.extend_word import extend_word
from everview.kernels.instructions import END, FROM, OUT, START, TO, X, Y, both, lines_of, routine, table_of
from everview.kernels.jit import inline
from everview.kernels.linear import project
from everview.kernels.rows import LINE

NOWHERE = np.empty(0, np.int64)  # with one shard no word tells the shard


@inline
def _found(prefixes, plan, at, lookups, reads, registers, ledgers):
    """Where the keys of prefixes lie in the indexes of some lookups, and what is to be known of those.

    Where the lookups end in the plan; spots, and where those of each index begin; all batches; the columns of each
    index, how many of them are bound, and whether the variable is the last.
    """
    slots, table = np.zeros(lookups + 1, np.int64), np.empty((lookups * (levels.MOST + 1), LINE), np.int64)
    columns, keys, last = np.empty(lookups, np.int64), np.empty(lookups, np.int64), np.empty(lookups, np.int64)
    begin = at
    for j in range(lookups):
        ledger = levels.ledger_at(ledgers[reads[plan[at], 0]])
        batches = table_of(ledger, registers, reads[plan[at], 1])
        slots[j + 1] = slots[j] + batches.shape[0]
        table[slots[j] : slots[j + 1]] = batches
        columns[j], last[j], keys[j] = ledger[levels.COLUMNS], plan[at + 1], plan[at + 2]
        at += 3 + keys[j]
    spots = np.zeros((prefixes.shape[0], 3 * slots[lookups]), np.int64)
    starts, at = np.empty(2, np.int64), begin
    for j in range(lookups):
        starts[0], starts[1] = slots[j], slots[j + 1]
        find(prefixes, plan[at + 3 : at + 3 + keys[j]], table, starts, columns[j], NOWHERE, spots, slots[j])
        at += 3 + keys[j]
    return at, spots, slots, table, columns, keys, last


@inline
def _is_absent(slots):
    """Whether an index has no batches: nothing is in it, so there is no result."""
    for j in range(1, slots.size):  # noqa: SIM110, generators do not compile
        if slots[j] == slots[j - 1]:
            return True
    return False


@inline
def _query(prefixes, plan, reads, registers, ledgers, most):
    """The results of one seed's changes; and False if a level proposes more values than ``most``."""
    picks, checks, depth, counted = plan[4 : 4 + plan[0]], plan[1], plan[2], plan[3]
    at, nothing = 4 + plan[0], np.empty((0, plan[0] + 1), np.int64)
    for _ in range(checks):
        at, spots, slots, table, columns, keys, last = _found(prefixes, plan, at, 1, reads, registers, ledgers)
        if _is_absent(slots):
            return nothing, True
        prefixes = weigh(prefixes, spots, slots, table, columns[0])
        if prefixes.shape[0] == 0:
            return nothing, True
    for level in range(depth):
        width, lookups = plan[at], plan[at + 1]
        at, spots, slots, table, columns, keys, last = _found(
            prefixes, plan, at + 2, lookups, reads, registers, ledgers
        )
        if _is_absent(slots):
            return nothing, True
        counts, total = proposals(spots, slots), 0
        for i in range(counts.size):
            total += counts[i]
        if total > most:
            return nothing, False
        summed = counted if level == depth - 1 else 0
        if width == 1:
            prefixes = extend_word(prefixes, spots, slots, table, columns, keys, last, total, summed)
        else:
            prefixes = extend(prefixes, spots, slots, table, columns, keys, last, width, total, summed)
        if prefixes.shape[0] == 0:
            return nothing, True
    return project(prefixes, picks), True


@routine
def delta_queries(line, constants, registers, ledgers):
    """The change of a multiway join: the results of every input's changes, one after the other."""
    reads = lines_of(constants, line[END], line[FROM], 2)
    out = np.empty((0, line[X]), np.int64)
    at = line[START]
    for r in range(line[FROM], line[TO]):
        plan = constants[at + 1 : at + constants[at]]
        at += constants[at]
        seeds = register.shown(registers, constants[r])
        if seeds.shape[0] == 0:
            continue
        results, done = _query(seeds, plan, reads, registers, ledgers, line[Y])
        if not done:
            return 0
        out = results if out.shape[0] == 0 else both(out, results)
    register.put(registers, line[OUT], out)
    return 1
