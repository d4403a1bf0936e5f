"""The change of an as-of join as a routine of the compiled tick; see `everview.operators.asof` for the law.

The constants are how a row is looked for (words of the group, how a time is absent, way, strictness, reach), whether
left rows without a right one stay, the word that stands for presence, where the words of a result come from, and what
they are without a right row.
"""

from __future__ import annotations

import numpy as np

from everview.kernels import levels
from everview.kernels import registers as register
from everview.kernels.asof import BACK, beside, in_force, spans, within_spans
from everview.kernels.instructions import (
    END,
    LEFT,
    NONE,
    OTHER,
    OUT,
    RIGHT,
    START,
    TRACE,
    both,
    routine,
    table_of,
)
from everview.kernels.jit import inline
from everview.kernels.linear import negated
from everview.kernels.probe import keys
from everview.kernels.sort import arrange

GROUP, NULLS, WAY, STRICT, REACH, OUTER, PRESENCE = range(7)
HEAD = 7


@inline
def _in_force(probes, table, columns, look):
    return in_force(probes, table, columns, look[GROUP], look[NULLS], look[WAY], look[STRICT] != 0, look[REACH])


@inline
def _in_force_now(times, table, columns, look):
    """The rows in force at given times, which are theirs."""
    return in_force(times, table, columns, look[GROUP], look[NULLS], BACK, False, 0)


@inline
def _different(a, b):
    """The numbers of the rows in which two matrices differ."""
    numbers, at = np.empty(a.shape[0], np.int64), 0
    for i in range(a.shape[0]):
        for c in range(a.shape[1]):
            if a[i, c] != b[i, c]:
                numbers[at] = i
                at += 1
                break
    return numbers[:at]


@inline
def _chosen(m, numbers):
    """Some rows."""
    out = np.empty((numbers.size, m.shape[1]), np.int64)
    for i in range(numbers.size):
        out[i, :] = m[numbers[i], :]
    return out


@inline
def _beside(rows, matched, look):
    width = (look.size - HEAD) // 2
    pick, absent = look[HEAD : HEAD + width], look[HEAD + width :]
    return beside(rows, matched, pick, absent, look[PRESENCE], look[OUTER] != 0)


@routine
def asof_change(line, constants, registers, ledgers):
    """``Δ(a ⊳ b)``: changed left rows beside the right rows after the tick, and earlier ones where those differ."""
    look = constants[line[START] : line[END]]
    left, right = register.shown(registers, line[LEFT]), register.shown(registers, line[RIGHT])
    trace, other = levels.ledger_at(ledgers[line[TRACE]]), levels.ledger_at(ledgers[line[OTHER]])
    earlier, width, columns = table_of(trace, registers, NONE), trace[levels.COLUMNS], other[levels.COLUMNS]
    before, after = table_of(other, registers, NONE), table_of(other, registers, line[RIGHT])
    out = _beside(left, _in_force(left, after, columns, look), look)
    if right.shape[0] == 0 or earlier.shape[0] == 0:
        register.put(registers, line[OUT], out)
        return 1
    times = keys(right, look[GROUP] + 1)
    lasts = _in_force_now(times, before, columns, look), _in_force_now(times, after, columns, look)
    times = _chosen(times, _different(lasts[0], lasts[1]))
    reached = spans(times, before, columns, look[GROUP], look[NULLS], look[WAY], look[STRICT] != 0, look[REACH])
    rows = arrange(within_spans(reached, earlier, width, look[GROUP]), np.arange(width - 1))
    old, new = _in_force(rows, before, columns, look), _in_force(rows, after, columns, look)
    numbers = _different(old, new)
    rows, old, new = _chosen(rows, numbers), _chosen(old, numbers), _chosen(new, numbers)
    revised = both(negated(_beside(rows, old, look)), _beside(rows, new, look))
    register.put(registers, line[OUT], both(out, revised))
    return 1
