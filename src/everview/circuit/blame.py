"""Which row, and which views, an error of a tick is about.

An operator fails on a whole change. The row that made it fail is found by halving that change, and where only
operators of one input lie between, it is shown as it came from its source, with all of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Sink, Source, inputs_of, reads_of
from everview.codes import decode, to_rows
from everview.errors import EverviewError, shown
from everview.operators.operator import Context
from everview.types.words import Matrix

MOST_ROWS = 1 << 20  # of a larger change the row is not looked for
ROW_SHOWN = 200  # characters of a row
UNIT = "unit"  # the column of the one row that constants are computed from
NODE = "node"  # where an error remembers the node that raised it


def blame_row(
    circuit: Circuit, node_id: int, error: EverviewError, cells: Mapping[int, Matrix], context: Context
) -> None:
    """Add to an error of a node the row that made it fail, if a single row does."""
    setattr(error, NODE, node_id)
    if getattr(error, "row_told", False):
        return
    error.row_told = True  # pyright: ignore[reportAttributeAccessIssue]
    chain = _chain(circuit, node_id, cells)
    if not chain:
        return
    start = _input(circuit, chain[0])
    assert start is not None, "a chain has an input"
    if circuit.layout(start).schema.names == (UNIT,):
        return  # a constant, which the message shows
    row = _smallest(cells[start], _fails(circuit, chain, context))
    if row is not None:
        error.tell(_told(circuit, start, row, context))


def blame_views(circuit: Circuit, error: EverviewError, names: Callable[[str], str] = str) -> None:
    """Add to an error the names of the views that need the failed node."""
    node_id = getattr(error, NODE, None)
    if node_id is None:
        return
    views = sorted({names(view) for view in views_behind(circuit, node_id)})
    if views:
        error.tell(f"in view{'s' * (len(views) > 1)} {', '.join(views)}")
    delattr(error, NODE)


def _input(circuit: Circuit, node_id: int) -> int | None:
    """The input of an operator that has one, and reads no trace."""
    node = circuit[node_id]
    if not isinstance(node, Apply) or node.reads or len(node.inputs) != 1:
        return None
    return node.inputs[0]


def _chain(circuit: Circuit, node_id: int, cells: Mapping[int, Matrix]) -> list[int]:
    """Operators of one input that lead to a node, the first of them as near to a source as may be."""
    chain: list[int] = []
    while (before := _input(circuit, node_id)) is not None and before in cells:
        chain.insert(0, node_id)
        node_id = before
    return chain


def _fails(circuit: Circuit, chain: list[int], context: Context) -> Callable[[Matrix], bool]:
    def fails(rows: Matrix) -> bool:
        try:
            for node_id in chain:
                node = circuit[node_id]
                assert isinstance(node, Apply)
                rows = node.operator.step([rows], (), context).out
        except (EverviewError, OverflowError):
            return True
        return False

    return fails


def _smallest(rows: Matrix, fails: Callable[[Matrix], bool]) -> Matrix | None:
    """A single row that fails; None if only several rows together do, or if there are too many to try."""
    if len(rows) > MOST_ROWS:
        return None
    while len(rows) > 1:
        half = len(rows) // 2
        rows = rows[:half] if fails(rows[:half]) else rows[half:]
    return rows if len(rows) and fails(rows) else None


def _told(circuit: Circuit, node_id: int, row: Matrix, context: Context) -> str:
    schema, node = circuit.layout(node_id).schema, circuit[node_id]
    (values,) = to_rows(schema, decode(schema, row[:, :-1], context.dictionary))
    held = ", ".join(f"{name}={shown(value)}" for name, value in zip(schema.names, values, strict=True))
    held = held if len(held) <= ROW_SHOWN else held[: ROW_SHOWN - 3] + "..."
    return f"the row{f' of {node.name}' if isinstance(node, Source) else ''}: {held}"


def views_behind(circuit: Circuit, node_id: int) -> list[str]:
    """The sinks that a node leads to."""
    reached = {node_id}
    grown = True
    while grown:
        more = {
            n
            for n, node in enumerate(circuit)
            if n not in reached
            and (any(i in reached for i in inputs_of(node)) or any(r.node in reached for r in reads_of(node)))
        }
        grown = bool(more)
        reached |= more
    return [node.name for n in reached if isinstance(node := circuit[n], Sink) and not node.table]
