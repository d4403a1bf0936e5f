"""New traces for a program that goes on from another: one tick from nothing, of what is new alone.

A trace is named by what it holds, so a program takes over every trace of its name and computes the others. Law: a
stream's integral is what a trace over it holds. So computing goes back from the new traces only as far as to streams
whose integrals are held, and starts from those: to operators this is a first tick, in which everything arrives at
once, and to a z⁻¹ there was nothing before. What is held already is read, never computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from everview.circuit.bounds import LoopBounds
from everview.circuit.nodes import Apply, inputs_of, reads_of
from everview.circuit.program import Program
from everview.kernels.linear import project
from everview.kernels.sort import arrange
from everview.operators.arrange import Arrange
from everview.operators.index import Index
from everview.operators.operator import Context, word_columns
from everview.runtimes.epoch import Epochs
from everview.runtimes.loops import Cells
from everview.runtimes.state import ProgramState
from everview.traces.trace import Trace
from everview.types.words import Matrix

Held = Mapping[str, Sequence[Trace]]  # by name, a trace a shard


@dataclass(frozen=True, slots=True)
class Integral:
    """Where the integral of a stream is held: the trace, and which of its words make up the stream's rows."""

    name: str
    columns: NDArray[np.int64] | None = None  # None: the trace's rows as they are
    sorted: bool = False

    def read(self, held: Held, shard: int) -> Matrix:
        """All that has come by the stream so far."""
        whole = held[self.name][shard].before.consolidated()
        if self.columns is None:
            return whole
        return arrange(whole, self.columns) if self.sorted else project(whole, self.columns)


def hydrate(
    program: Program,
    state: ProgramState,
    held: Held,
    context: Context,
    bounds: LoopBounds | None = None,
    first: Sequence[Mapping[int, Matrix]] = (),
) -> None:
    """Append to the open epoch of a state what its traces hold that are not held already.

    ``first`` are rows that arrive at new sources, shard by shard.
    """
    wanted = new_nodes(program, held)
    if not wanted:
        return
    known = integrals(program, held)
    needed, given = _back_from(program, wanted, known)
    cells: Cells = [{at: known[at].read(held, shard) for at in given} for shard in range(program.shards)]
    for cell, rows in zip(cells, first, strict=False):
        cell.update(rows)
    Epochs(_part(program, needed), state, context, bounds).run(cells)


def new_nodes(program: Program, held: Held) -> list[int]:
    """The nodes of the root that own a trace of a new name, or whose child does."""
    found: dict[int, None] = {}
    for path, inner in program.nested():
        for at, name in inner.names.items():
            if name not in held:
                found[path[0] if path else at] = None
    return list(found)


def integrals(program: Program, held: Held) -> dict[int, Integral]:
    """The root's streams with held integrals: streams arranged in a held trace, and the streams they index."""
    found: dict[int, Integral] = {}
    for at, name in program.names.items():
        node = program.circuit[at]
        if name not in held or not (isinstance(node, Apply) and isinstance(node.operator, Arrange)):
            continue
        (input_,) = node.inputs
        assert input_ is not None, "a program is connected"
        found[at] = found[input_] = Integral(name)
        beyond = _indexed(program, input_, name)
        if beyond is not None:
            found.setdefault(*beyond)
    return found


def _indexed(program: Program, at: int, name: str) -> tuple[int, Integral] | None:
    """What an index is of: its rows are those of the trace, with their columns put back."""
    node = program.circuit[at]
    if not (isinstance(node, Apply) and isinstance(node.operator, Index)):
        return None
    index, (source,) = node.operator, node.inputs
    assert source is not None, "a program is connected"
    layout = program.circuit.layout(source)
    everything = sorted(index.fields) == list(range(len(layout.schema)))
    if not everything or index.order or layout.by_value:
        return None
    back = tuple(index.fields.index(field) for field in range(len(layout.schema)))
    return source, Integral(name, word_columns(index.schema, back), layout.sorted)


def _back_from(program: Program, wanted: Iterable[int], known: Mapping[int, Integral]) -> tuple[set[int], set[int]]:
    """The nodes that must run, and those whose integrals they start from."""
    needed, given = set[int](), set[int]()
    waiting = list(wanted)
    while waiting:
        at = waiting.pop()
        if at in needed or at in given:
            continue
        if at in known:
            given.add(at)
            continue
        needed.add(at)
        node = program.circuit[at]
        waiting += [i for i in inputs_of(node) if i is not None]
        waiting += [read.node for read in reads_of(node)]
    return needed, given


def _part(program: Program, nodes: set[int]) -> Program:
    """The program with some of its nodes only."""
    part = copy(program)
    part.stages = tuple(
        replace(
            stage,
            nodes=tuple(at for at in stage.nodes if at in nodes),
            moves=tuple(at for at in stage.moves if at in nodes),
        )
        for stage in program.stages
    )
    part.loops = tuple(tuple(loop for loop in loops if loop.at in nodes) for loops in program.loops)
    return part
