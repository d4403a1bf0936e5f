"""Relations that are written down. They stand at the root of a circuit; a child is given what the root has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from everview.circuit.circuit import Circuit
from everview.circuit.stream import Stream
from everview.operators.constant import Constant
from everview.plan.lowering.rows import picked
from everview.plan.nodes import Values, unique
from everview.types import INTEGER, Field, Schema


def written(plan: Values, circuit: Circuit) -> Stream:
    """The stream of `Values`."""
    return constant(circuit, [tuple(found.value for found in row) for row in plan.rows], plan.schema)


def constant(circuit: Circuit, rows: Sequence[tuple[Any, ...]], schema: Schema) -> Stream:
    """These rows, a row as often as it stands there: where one stands twice, all are numbered first.

    What several shards say is said once, so distinct rows of it are taken.
    """
    root = circuit
    while root.parent is not None:
        root = root.parent
    if max(Counter(map(repr, rows)).values(), default=1) > 1:
        names = unique([*schema.names, "row"])
        schema = Schema([*schema.fields, Field(names[-1], INTEGER, nullable=False)])
        rows = [(*row, number) for number, row in enumerate(rows)]
        numbered = root.add(Constant(tuple(rows), schema), []).distinct()
        return circuit.enter(picked(numbered, range(len(schema) - 1)))
    return circuit.enter(root.add(Constant(tuple(rows), schema), []).distinct())
