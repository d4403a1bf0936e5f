"""Rows that a statement itself has, as INSERT … VALUES does: computed without a circuit."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.plan.node import Plan
from everview.plan.nodes import Project, Values
from everview.plan.outers import is_subquery
from everview.scalars.evaluate import Evaluate, outward
from everview.scalars.expressions import walk

FEW_ROWS: Final = 100  # more are encoded by a circuit, all at once


def written_rows(plan: Plan) -> tuple[pa.Table, NDArray[np.int64]] | None:
    """The rows of a plan over a few constants, each with the weight 1; None for all other plans.

    >>> from everview.plan.typing import literal
    >>> from everview.types import INTEGER, Field, Schema
    >>> rows, weights = written_rows(Values(((literal(1),), (literal(2),)), Schema([Field("a", INTEGER)])))
    >>> rows.to_pylist(), weights.tolist()
    ([{'a': 1}, {'a': 2}], [1, 1])
    """
    columns, count = _columns(plan)
    if columns is None:
        return None
    return pa.Table.from_arrays(columns, names=list(plan.schema.names)), np.ones(count, np.int64)


def _columns(plan: Plan) -> tuple[list[Any] | None, int]:
    """The columns of the rows, and how many rows there are."""
    match plan:
        case Values(rows) if 0 < len(rows) <= FEW_ROWS:
            pairs = zip(zip(*rows, strict=True), plan.schema.fields, strict=True)
            return [_column([value.value for value in column], f.type) for column, f in pairs], len(rows)
        case Project(input_, expressions) if not any(is_subquery(e) for one in expressions for e in walk(one)):
            given, count = _columns(input_)
            return (None, 0) if given is None else (list(Evaluate(expressions)(*given)), count)
        case _:
            return None, 0


def _column(values: list[Any], type_: Any) -> Any:
    return pa.array([outward(value, type_) for value in values], type_.arrow)
