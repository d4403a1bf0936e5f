"""How streams leave a task: small cells as rows for the driver, large ones as files whose places the driver passes on.

Of a large cell that moves between shards, the task that has it writes what each shard is to get; so the next job reads
from files what it needs, and nothing of it is ever on the driver. Whoever has a cell moves it: the driver those that it
was given as rows, tasks those that are files. Both sides tell that by the same rule, `is_large`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from everview.circuit.nodes import Apply
from everview.circuit.program import Program
from everview.operators.exchange import Exchange
from everview.runtimes.loops import consolidated
from everview.runtimes.pending import by_time
from everview.runtimes.spark.passing import Passer, is_large
from everview.runtimes.spark.wire import Row, RowKind, matrix_rows
from everview.types.words import Matrix


class LeavingStage:
    """The streams of one stage that are wanted after a job whose last stage is ``end``."""

    def __init__(self, program: Program, number: int, end: int, passer: Passer) -> None:
        self._program, self._passer = program, passer
        self._kept = program.kept(number, end)
        self._wanted = program.wanted(number, number, end)
        follows = number == end and end + 1 < len(program.stages)
        self._moves = {move: program.moved(move) for move in program.stages[end + 1].moves} if follows else {}
        self._fed = frozenset(fed for _, fed in program.feedbacks) if program.depth else frozenset[int]()

    def made(self, nodes: Iterable[int], known: Mapping[int, bool]) -> list[int]:
        """The wanted streams among these, without those known to the driver."""
        return sorted(node for node in nodes if node in self._wanted and node not in known)

    def rows(self, shard: int, cells: Mapping[int, Matrix], known: Mapping[int, bool]) -> Iterator[Row]:
        """A shard's rows for the driver; rows of the streams ``known`` to the driver may be references to files.

        What is fed back is consolidated here if it is a file: the driver cannot do it.
        """
        for node in sorted(self._wanted & cells.keys()):
            matrix = cells[node]
            if known[node] if node in known else is_large(matrix):
                self._by_file(node, shard, matrix, is_new=node not in known)
            elif node not in known:
                yield from matrix_rows(RowKind.LEFT, node, shard, matrix)

    def _by_file(self, node: int, shard: int, matrix: Matrix, *, is_new: bool) -> None:
        fed = node in self._fed
        if node in self._kept and (is_new or fed):
            self._passer.refer(RowKind.LEFT, node, shard, consolidated(matrix) if fed else matrix)
        for move in (move for move, source in self._moves.items() if source == node):
            for target, part in enumerate(exchange_of(self._program, move).split(matrix, self._program.shards)):
                self._passer.refer(RowKind.LEFT, move, target, part)

    def later(self, kind: RowKind, node: int, shard: int, timed: Matrix) -> Iterator[Row]:
        """Rows of later times of a recursion; many of them are parted by time."""
        if not is_large(timed):
            yield from matrix_rows(kind, node, shard, timed)
            return
        for at, rows in by_time(timed, self._program.depth):
            self._passer.refer(kind, node, shard, rows, at)


def exchange_of(program: Program, move: int) -> Exchange:
    """The operator of a node that moves rows between shards."""
    node = program.circuit[move]
    assert isinstance(node, Apply) and isinstance(node.operator, Exchange)
    return node.operator
