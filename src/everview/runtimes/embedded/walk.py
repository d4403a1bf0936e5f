"""A table's rows on their way to a new view, block by block: as far as operators look at one row at a time.

A view reads a few columns of a table, keeps some rows, and computes something of each. Step after step over all rows,
what lies between the steps would be larger than what comes out, and fresh memory costs more than the steps. So blocks
of rows go through all of these steps, and only the streams that others read are put together whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from everview.circuit.nodes import Apply, inputs_of, reads_of
from everview.circuit.program import Program, Spent
from everview.kernels.large import project, space, together
from everview.kernels.threads import PARTS, allowed, at_most, each
from everview.operators.index import Index
from everview.operators.linear import Filter, Map, Matching, NotNull, Project, Recode
from everview.operators.operator import Context, Operator, word_columns
from everview.operators.pad import Pad
from everview.operators.present import Present
from everview.operators.where import Where
from everview.types.words import Matrix, Words

BLOCK = 1 << 15  # rows
BY_ROW = (Filter, Map, Matching, NotNull, Pad, Present, Project, Recode, Where)


@dataclass(frozen=True, slots=True)
class Walk:
    """Operators behind a stream that look at one row at a time: in order, and those whose streams others read."""

    start: int
    nodes: tuple[int, ...]
    ends: tuple[int, ...]


def walk_from(program: Program, start: int, needed: set[int]) -> Walk:
    """The walk from a stream through the needed nodes."""
    reached: dict[int, None] = {}
    for at in program.order:
        node = program.circuit[at]
        if at in needed and isinstance(node, Apply) and _by_row(node.operator) and not node.reads:
            (before,) = node.inputs
            if before == start or before in reached:
                reached[at] = None
    ends = {i for at in needed - reached.keys() for i in _streams_read(program, at) if i in reached}
    # What nothing reads is there to be kept: such a node owns a trace, and is no step of a walk.
    return Walk(start, tuple(reached), tuple(at for at in reached if at in ends))


def _streams_read(program: Program, at: int) -> list[int]:
    node = program.circuit[at]
    return [*(i for i in inputs_of(node) if i is not None), *(read.node for read in reads_of(node))]


def _by_row(operator: Operator) -> bool:
    """Whether an operator's output for some rows is that for each of them, put together; to the bit.

    New texts get their codes as they come, column by column, so that blocks would number them otherwise.
    """
    if isinstance(operator, Map):
        return not any(field.type.interned for field in operator.computed.fields)
    return isinstance(operator, BY_ROW)


def chosen_words(operator: Operator) -> Words | None:
    """The words of its input's rows that a projection or an index puts out; None if it does anything else."""
    if isinstance(operator, Project) or (isinstance(operator, Index) and not operator.order):
        return word_columns(operator.source.schema, operator.fields)
    return None


def walked(program: Program, walk: Walk, whole: Matrix, columns: Words | None, context: Context) -> dict[int, Matrix]:
    """The streams at the ends of a walk, given a trace's rows, and which of their words make up the first stream."""
    if not len(whole):
        return {}
    steps = [(at, _step(program, walk, at, columns, context)) for at in walk.nodes]
    outs = {at: space(len(whole), program.circuit.layout(at).width + 1) for at in walk.ends}
    parts = _parts(len(whole), alone=any(operator_of(program, at).reads_values for at in walk.nodes))
    fills = each(lambda part: _fill(outs, whole, part, steps), parts)
    for at in walk.nodes:
        program.spent[at].add(sum(fill[at].rows for fill in fills), sum(fill[at].seconds for fill in fills))
    starts = [lo for lo, _ in parts]
    return {at: together(out, starts, [fill[at].rows for fill in fills]) for at, out in outs.items()}


Stepping = Callable[[Matrix, Mapping[int, Matrix]], Matrix]  # of a block of the trace, and the streams made of it


def _fill(
    outs: Mapping[int, Matrix], whole: Matrix, part: tuple[int, int], steps: Sequence[tuple[int, Stepping]]
) -> dict[int, Spent]:
    """Send the rows of a part through a walk, and write what comes out from the part's first row on."""
    spent = {at: Spent() for at, _ in steps}
    first, last = part
    with at_most(1):
        for lo in range(first, last, BLOCK):
            block, streams = whole[lo : min(lo + BLOCK, last)], dict[int, Matrix]()
            for at, step in steps:
                began = perf_counter()
                streams[at] = rows = step(block, streams)
                if at in outs:
                    start = first + spent[at].rows
                    outs[at][start : start + len(rows)] = rows
                spent[at].add(len(rows), perf_counter() - began)
    return spent


def _parts(rows: int, *, alone: bool) -> list[tuple[int, int]]:
    """Ranges of whole blocks, for as many threads as may work; for one if ``alone``, as the dictionary is one's own."""
    count = 1 if alone or allowed() == 1 else min(PARTS * allowed(), -(-rows // BLOCK))
    size = BLOCK * -(-rows // (BLOCK * count))
    return [(lo, min(lo + size, rows)) for lo in range(0, rows, size)]


def _step(program: Program, walk: Walk, at: int, columns: Words | None, context: Context) -> Stepping:
    operator, (before,), nothing = operator_of(program, at), _streams_read(program, at), program.empty(at)
    if before != walk.start:
        return lambda rows, streams: (
            operator.step([streams[before]], (), context).out if len(streams[before]) else nothing
        )
    chosen = chosen_words(operator)
    if chosen is None:
        return lambda rows, streams: operator.step([_stream(rows, columns)], (), context).out
    of_trace = chosen if columns is None else columns[chosen]
    return lambda rows, streams: project(rows, of_trace)


def _stream(rows: Matrix, columns: Words | None) -> Matrix:
    return rows if columns is None else project(rows, columns)


def operator_of(program: Program, at: int) -> Operator:
    """The operator of a node."""
    node = program.circuit[at]
    assert isinstance(node, Apply), "a step of a walk is an operator"
    return node.operator
