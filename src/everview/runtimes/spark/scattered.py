"""Cells off the driver: tasks have written their rows into files, and the driver knows the places.

A cell is what one stream has on one shard in the open epoch. A large one stays where a task has put it, and a reference
goes from job to job in its place, so that what the driver holds does not grow with what a recursion finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from everview.runtimes.pending import At
from everview.traces.store import SliceRef
from everview.types.words import Matrix

CellPart = Matrix | SliceRef


@dataclass(frozen=True, slots=True, eq=False)
class Scattered:
    """The rows of a stream on one shard, in parts; at least one of them is a file."""

    parts: tuple[CellPart, ...]
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """As a matrix of all rows would have it."""
        return sum(map(rows_of, self.parts)), self.columns

    def among(self, cells: Iterable[Matrix | Scattered]) -> Scattered:
        """Several cells as one."""
        return Scattered(tuple(part for cell in cells for part in parts_of(cell)), self.columns)


@dataclass(frozen=True, slots=True)
class ScatteredByTime:
    """Rows that a stage has left for later times of a recursion, apart by time."""

    by_time: tuple[tuple[At, Scattered], ...]


def parts_of(cell: Matrix | Scattered) -> tuple[CellPart, ...]:
    """The parts of a cell, which is one matrix or is scattered."""
    return cell.parts if isinstance(cell, Scattered) else (cell,)


def rows_of(part: CellPart) -> int:
    """The number of rows of a part, wherever they are."""
    return part.rows if isinstance(part, SliceRef) else part.shape[0]


def scattered_in(cells: Iterable[Mapping[int, Any]], nodes: Iterable[int]) -> Iterator[tuple[int, int, Scattered]]:
    """Those of some cells that are scattered, with shard and node."""
    nodes = frozenset(nodes)
    for shard, shard_cells in enumerate(cells):
        for node in sorted(nodes & shard_cells.keys()):
            if isinstance(cell := shard_cells[node], Scattered):
                yield shard, node, cell
