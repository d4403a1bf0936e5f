"""Lower literal relations. They stand at the root of a circuit; a child circuit imports them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from everview.circuit.circuit import Circuit
from everview.circuit.stream import Stream
from everview.operators.constant import Unit, Written
from everview.plan.nodes import Values
from everview.types import DURATIONS, Array, Schema, Struct, Type


def written(plan: Values, circuit: Circuit) -> Stream:
    """The stream of `Values`."""
    return constant(circuit, [tuple(python_value(v.value, v.type) for v in row) for row in plan.rows], plan.schema)


def python_value(value: Any, type_: Type) -> Any:
    """The value of a literal as columns take it: intervals, which literals count in microseconds, as timedeltas."""
    if value is None:
        return None
    if isinstance(type_, Array):
        return tuple(python_value(part, type_.element) for part in value)
    if isinstance(type_, Struct) and not isinstance(value, dict):
        return tuple(python_value(part, f.type) for part, f in zip(value, type_.fields, strict=True))
    return dt.timedelta(microseconds=value) if type_ in DURATIONS and isinstance(value, int) else value


def constant(circuit: Circuit, rows: Sequence[tuple[Any, ...]], schema: Schema) -> Stream:
    """The stream of these rows; a row that is listed twice has weight 2."""
    root = circuit
    while root.parent is not None:
        root = root.parent
    unit = root.add(Unit(), []).distinct()
    return circuit.enter(root.add(Written(unit.layout, tuple(rows), schema), [unit]))
