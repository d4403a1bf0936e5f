"""Lower literal relations. They stand at the root of a circuit; a child circuit imports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everview.circuit.circuit import Circuit
from everview.circuit.stream import Stream
from everview.operators.constant import Unit, Written
from everview.plan.nodes import Values
from everview.types import Schema


def written(plan: Values, circuit: Circuit) -> Stream:
    """The stream of `Values`."""
    return constant(circuit, [tuple(literal.value for literal in row) for row in plan.rows], plan.schema)


def constant(circuit: Circuit, rows: Sequence[tuple[Any, ...]], schema: Schema) -> Stream:
    """The stream of these rows; a row that is listed twice has weight 2."""
    root = circuit
    while root.parent is not None:
        root = root.parent
    unit = root.add(Unit(), []).distinct()
    return circuit.enter(root.add(Written(unit.layout, tuple(rows), schema), [unit]))
