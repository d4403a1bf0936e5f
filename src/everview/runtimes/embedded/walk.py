"""A table's rows on their way to a new view, block by block: as far as operators look at one row at a time.

A view reads a few columns of a table, keeps some rows, and computes something of each. Step after step over all rows,
what lies between the steps would be larger than what comes out, and fresh memory costs more than the steps. So blocks
of rows go through all of these steps, and only the streams that others read are put together whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from everview.circuit.nodes import Apply, inputs_of, reads_of
from everview.circuit.program import Program, Spent
from everview.codes.dictionary import Dictionary
from everview.kernels.large import project, project_into, space, together
from everview.kernels.threads import PARTS, allowed, at_most, each
from everview.kernels.words import word_rows
from everview.operators.by_words import ByWords
from everview.operators.functions import Function
from everview.operators.index import Index
from everview.operators.linear import Filter, Map, Matching, NotNull, Project, Recode
from everview.operators.operator import Context, Operator, word_columns
from everview.operators.pad import Pad
from everview.operators.present import Present
from everview.operators.where import Where
from everview.operators.word_program import WordProgram
from everview.types.words import Matrix, Words

BLOCK = 1 << 15  # rows
BY_ROW = (Filter, Map, Matching, NotNull, Pad, Present, Project, Recode, Where)


@dataclass(frozen=True, slots=True)
class Route:
    """Operators behind a stream that look at one row at a time: in order, and those whose streams others read."""

    start: int
    nodes: tuple[int, ...]
    ends: tuple[int, ...]


def walk_from(program: Program, start: int, needed: set[int]) -> Route:
    """The walk from a stream through the needed nodes."""
    reached: dict[int, None] = {}
    for node_id in program.order:
        node = program.circuit[node_id]
        if node_id in needed and isinstance(node, Apply) and _by_row(node.operator) and not node.reads:
            (before,) = node.inputs
            if before == start or before in reached:
                reached[node_id] = None
    ends = {i for node_id in needed - reached.keys() for i in _streams_read(program, node_id) if i in reached}
    # What nothing reads is there to be kept: such a node owns a trace, and is no step of a walk.
    return Route(start, tuple(reached), tuple(node_id for node_id in reached if node_id in ends))


def _streams_read(program: Program, node_id: int) -> list[int]:
    node = program.circuit[node_id]
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


# ---------------------------------------------------------------- recipes: operators in a row, fused
#
# A projection takes words of a row, and a filter or a function of words is a program over them. So a projection of a
# trace is some of its words, a program over a projection is a program over the trace, and a projection of a program's
# result is a program that writes less. Nothing between has to be written down.


@dataclass(frozen=True, slots=True)
class Taken:
    """Some words of each row, in this order."""

    columns: Words

    def bound(self, dictionary: Dictionary) -> Taken:
        """Itself: words need no dictionary."""
        return self

    def write(self, rows: Matrix, out: Matrix) -> int:
        """Write what comes of some rows; how many rows that is, or a negative number if words do not suffice."""
        project_into(rows, self.columns, out)
        return len(rows)


@dataclass(frozen=True, slots=True)
class Computed:
    """Rows computed from each row by a program."""

    program: WordProgram
    constants: Words | None = None

    def bound(self, dictionary: Dictionary) -> Computed:
        """The recipe with its constants as words, so that threads need not ask the dictionary."""
        return Computed(self.program, self.program.constants(dictionary))

    def write(self, rows: Matrix, out: Matrix) -> int:
        """Write what comes of some rows; how many rows that is, or a negative number if words do not suffice."""
        assert self.constants is not None, "a program is bound before it runs"
        return int(word_rows(rows, self.program.code, self.constants, out))


Recipe = Taken | Computed


def fused(operator: Operator, before: Recipe, functions: Mapping[str, Function]) -> Recipe | None:
    """The recipe followed by an operator, as one recipe; None if the operator needs a step of its own."""
    if isinstance(operator, Project):
        columns = word_columns(operator.source.schema, operator.fields)
        if isinstance(before, Taken):
            return Taken(before.columns[columns])
        picking = before.program.picking(columns)
        return None if picking is None else Computed(picking)
    if isinstance(before, Computed) or not isinstance(operator, ByWords | Filter | Map):
        return None
    program = operator.in_words(functions)
    return Computed(program.over(before.columns)) if isinstance(program, WordProgram) else None


def all_words(rows: Matrix) -> Words:
    """The words of a row, without its weight."""
    return np.arange(rows.shape[1] - 1)


# ---------------------------------------------------------------- walking


def walked(program: Program, walk: Route, whole: Matrix, columns: Words | None, context: Context) -> dict[int, Matrix]:
    """The streams at the ends of a walk, given a trace's rows, and which of their words make up the first stream."""
    if not len(whole):
        return {}
    steps = _steps(program, walk, all_words(whole) if columns is None else columns, context)
    outs = {node_id: space(len(whole), program.circuit.layout(node_id).width + 1) for node_id in walk.ends}
    parts = _parts(len(whole), alone=any(step.recipe is None and step.operator.reads_values for step in steps))
    fills = each(lambda part: _fill(outs, whole, part, steps), parts)
    for node_id, rows in _rows_put_out(steps, fills, len(whole)).items():
        program.spent[node_id].add(rows, sum(fill[node_id].seconds for fill in fills))
    starts = [lo for lo, _ in parts]
    return {node_id: together(out, starts, [fill[node_id].rows for fill in fills]) for node_id, out in outs.items()}


def _rows_put_out(steps: Sequence[WalkStep], fills: Sequence[Mapping[int, Spent]], whole: int) -> dict[int, int]:
    """The rows of each step, also of one that was not written: all, or those of the projection in its place."""
    rows: dict[int, int] = {}
    for step in reversed(steps):
        if step.written:
            rows[step.node_id] = sum(fill[step.node_id].rows for fill in fills)
        elif isinstance(step.recipe, Taken):
            rows[step.node_id] = whole
        if step.previous is not None and not step.previous.written:
            rows[step.previous.node_id] = rows[step.node_id]
    return rows


@dataclass(frozen=True)
class WalkStep:
    """One step of a walk: by a recipe, from a block of the trace; or else by the operator, from the stream before."""

    node_id: int
    previous: WalkStep | None  # None: the stream that the walk starts from
    operator: Operator
    recipe: Recipe | None
    written: bool  # whether something reads the rows
    start: Words  # the words of the trace that make up the first stream
    width: int
    context: Context

    def rows(self, block: Matrix, streams: Mapping[int, Matrix], out: Matrix | None) -> Matrix:
        """The rows that come of a block; written into ``out`` or, if it is None, space of their own."""
        recipe = self.recipe
        if recipe is not None:
            made = np.empty((len(block), self.width + 1), np.int64) if out is None else out[: len(block)]
            count = recipe.write(block, made)
            if count >= 0:
                return made[:count]
        made = self.step(block, streams)
        if out is None:
            return made
        out[: len(made)] = made
        return out[: len(made)]

    def step(self, block: Matrix, streams: Mapping[int, Matrix]) -> Matrix:
        """The rows that the operator's own step gives; also where words do not suffice."""
        if self.previous is None:
            before = project(block, self.start)
        elif self.previous.written:
            before = streams[self.previous.node_id]
        else:
            before = self.previous.step(block, streams)
        if not len(before):
            return np.empty((0, self.width + 1), np.int64)
        return self.operator.step([before], (), self.context).out


def _steps(program: Program, walk: Route, start: Words, context: Context) -> list[WalkStep]:
    """The steps of a walk, those that others stand for left out."""
    recipes: dict[int, Recipe | None] = {}
    readers = Counter(before for node_id in walk.nodes for before in _streams_read(program, node_id))
    for node_id in walk.nodes:
        (before,) = _streams_read(program, node_id)
        known = Taken(start) if before == walk.start else recipes[before]
        # A program whose result several read is run once.
        shared = isinstance(known, Computed) and (before in walk.ends or readers[before] > 1)
        recipes[node_id] = (
            None if known is None or shared else fused(operator_of(program, node_id), known, context.functions)
        )
    unfused = {
        before for node_id in walk.nodes if recipes[node_id] is None for before in _streams_read(program, node_id)
    }
    steps: dict[int, WalkStep] = {}
    for node_id in walk.nodes:
        (before,), recipe = _streams_read(program, node_id), recipes[node_id]
        steps[node_id] = WalkStep(
            node_id,
            steps.get(before),
            operator_of(program, node_id),
            None if recipe is None else recipe.bound(context.dictionary),
            node_id in walk.ends or node_id in unfused,
            start,
            program.circuit.layout(node_id).width,
            context,
        )
    return list(steps.values())


def _fill(
    outs: Mapping[int, Matrix], whole: Matrix, part: tuple[int, int], steps: Sequence[WalkStep]
) -> dict[int, Spent]:
    """Send the rows of a part through a walk, and write what comes out from the part's first row on."""
    spent = {step.node_id: Spent() for step in steps}
    first, last = part
    with at_most(1):
        for lo in range(first, last, BLOCK):
            block, streams = whole[lo : min(lo + BLOCK, last)], dict[int, Matrix]()
            for step in steps:
                if not step.written:
                    continue
                began = perf_counter()
                out = outs.get(step.node_id)
                room = None if out is None else out[first + spent[step.node_id].rows :]
                streams[step.node_id] = rows = step.rows(block, streams, room)
                spent[step.node_id].add(len(rows), perf_counter() - began)
    return spent


def _parts(rows: int, *, alone: bool) -> list[tuple[int, int]]:
    """Ranges of whole blocks, for as many threads as may work; for one if ``alone``, as the dictionary is one's own."""
    count = 1 if alone or allowed() == 1 else min(PARTS * allowed(), -(-rows // BLOCK))
    size = BLOCK * -(-rows // (BLOCK * count))
    return [(lo, min(lo + size, rows)) for lo in range(0, rows, size)]


def operator_of(program: Program, node_id: int) -> Operator:
    """The operator of a node."""
    node = program.circuit[node_id]
    assert isinstance(node, Apply), "a step of a walk is an operator"
    return node.operator
