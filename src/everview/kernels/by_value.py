"""Instructions on rows that are ordered by value, such as texts, as routines of the compiled tick.

They are those of the machine, with the same kernels, compiled with the comparison that looks into the dictionary (see
`everview.kernels.ordering`). Where the dictionary's arrays are, the last register says.
"""

from __future__ import annotations

import numpy as np

from everview.kernels import levels
from everview.kernels import registers as register
from everview.kernels.instructions import (
    END,
    LEFT,
    OUT,
    START,
    TRACE,
    dictionary_of,
    lines_of,
    ordering_of,
    routine,
)
from everview.kernels.ordering import ordering_with
from everview.kernels.reshape import reshape
from everview.kernels.sort import arrange, is_batch, sorted_by_value
from everview.kernels.top import top


@routine
def index_by_value(line, constants, registers, ledgers):
    """A batch ordered by value; the constants are a line (how, column, kind, mode) for each of its words."""
    lines = lines_of(constants, line[START], line[END], 4)
    batch = reshape(register.shown(registers, line[LEFT]), lines[:, :2].copy())
    if not is_batch(batch):
        batch = arrange(batch, np.arange(lines.shape[0]))
    if batch.shape[0] > 1:
        batch = sorted_by_value(batch, *ordering_with(lines[:, 2:].copy(), dictionary_of(registers)))
    register.put(registers, line[OUT], batch)
    return 1


@routine
def top_by_value(line, constants, registers, ledgers):
    """The change of the first rows of groups whose rows are ordered by value."""
    trace = levels.ledger_at(ledgers[line[TRACE]])
    register.put(registers, line[OUT], top(line, constants, registers, trace, ordering_of(trace, registers)))
    return 1
