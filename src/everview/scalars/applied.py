"""Functions of arrays that apply a function to elements, for all rows at once.

The elements of all arrays are laid out in one column, each with the row that its array is of; a body is evaluated once
over that column. Only ``aggregate`` goes through arrays element by element, for all rows in step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.types.words import Words

Body = Callable[..., Any]  # of the row of each element, and the values of the variables
Applied = Callable[[list[Any], Sequence[Body], pa.DataType], Any]


@dataclass(frozen=True)
class LaidOut:
    """The elements of a column of arrays: the values, the row and the place of each, and the length of each array."""

    values: Any
    rows: Words
    places: Words
    lengths: Words
    absent: Any  # which arrays are NULL

    @classmethod
    def of(cls, arrays: Any) -> LaidOut:
        """The elements of an Arrow column of lists."""
        lengths = pc.list_value_length(arrays).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        starts = np.cumsum(lengths) - lengths
        absent = arrays.is_null().to_numpy(zero_copy_only=False)
        return cls(pc.list_flatten(arrays), rows, np.arange(len(rows)) - starts[rows], lengths, absent)

    def arrays(self, values: Any, lengths: Words, out: pa.DataType) -> Any:
        """Values as arrays of these lengths, NULL where the arrays were."""
        ends: Any = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
        made: Any = pa.ListArray.from_arrays(ends, values)
        if self.absent.any():
            made = pc.if_else(pa.array(self.absent), pa.scalar(None, made.type), made)
        return made if made.type == out else made.cast(out)


def _arguments(laid: LaidOut, arity: int) -> list[Any]:
    """The variables of a body: the element, and its place if that is asked for."""
    return [laid.values, pa.array(laid.places.astype(np.int32))][:arity]


def _transform(arity: int) -> Applied:
    def apply(given: list[Any], bodies: Sequence[Body], out: pa.DataType) -> Any:
        laid = LaidOut.of(given[0])
        values = bodies[0](pa.array(laid.rows), *_arguments(laid, arity))
        return laid.arrays(_chunk(values), laid.lengths, out)

    return apply


def _filter(arity: int) -> Applied:
    def apply(given: list[Any], bodies: Sequence[Body], out: pa.DataType) -> Any:
        laid = LaidOut.of(given[0])
        kept = _true(bodies[0](pa.array(laid.rows), *_arguments(laid, arity)))
        lengths = np.bincount(laid.rows[kept], minlength=len(laid.lengths)).astype(np.int64)
        return laid.arrays(_chunk(laid.values.filter(pa.array(kept))), lengths, out)

    return apply


def _quantified(wanted: bool) -> Applied:
    """Whether some element has the ``wanted`` verdict: then it is the result; NULL if none has, but some are NULL."""

    def apply(given: list[Any], bodies: Sequence[Body], out: pa.DataType) -> Any:
        laid = LaidOut.of(given[0])
        verdicts = _chunk(bodies[0](pa.array(laid.rows), laid.values))
        count = len(laid.lengths)
        known = verdicts.is_valid().to_numpy(zero_copy_only=False)
        yes = verdicts.fill_null(not wanted).to_numpy(zero_copy_only=False) == wanted
        some = np.bincount(laid.rows[yes & known], minlength=count) > 0
        unknown = np.bincount(laid.rows[~known], minlength=count) > 0
        result = pa.array(some if wanted else ~some)
        return pc.if_else(pa.array(laid.absent | (unknown & ~some)), pa.scalar(None, pa.bool_()), result)

    return apply


def _zip_with(given: list[Any], bodies: Sequence[Body], out: pa.DataType) -> Any:
    """The function of the elements at the same places, NULL where one array is shorter."""
    left, right = (LaidOut.of(array) for array in given)
    absent = left.absent | right.absent
    lengths = np.where(absent, 0, np.maximum(left.lengths, right.lengths))
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(rows)) - (np.cumsum(lengths) - lengths)[rows]
    sides: list[Any] = []
    for side in (left, right):
        starts = np.cumsum(side.lengths) - side.lengths
        there = places < side.lengths[rows]
        sides.append(_chunk(side.values).take(pa.array(np.where(there, starts[rows] + places, 0), mask=~there)))
    values = bodies[0](pa.array(rows), *sides)
    both = LaidOut(values, rows, places, lengths, absent)
    return both.arrays(_chunk(values), lengths, out)


def _aggregate(given: list[Any], bodies: Sequence[Body], out: pa.DataType) -> Any:
    """The elements of each array merged one after the other into a value that begins as the second argument."""
    laid, state = LaidOut.of(given[0]), _chunk(given[1])
    starts = np.cumsum(laid.lengths) - laid.lengths
    everywhere, values = np.arange(len(laid.lengths)), _chunk(laid.values)
    for place in range(int(laid.lengths.max(initial=0))):
        rows = np.flatnonzero(laid.lengths > place)
        merged = _chunk(
            bodies[0](pa.array(rows), state.take(pa.array(rows)), values.take(pa.array(starts[rows] + place)))
        )
        order = everywhere.copy()
        order[rows] = len(everywhere) + np.arange(len(rows))
        state = pa.concat_arrays([state, merged.cast(state.type)]).take(pa.array(order))
    result = _chunk(bodies[1](pa.array(everywhere), state)) if len(bodies) > 1 else state
    if laid.absent.any():
        result = pc.if_else(pa.array(laid.absent), pa.scalar(None, result.type), result)
    return result if result.type == out else result.cast(out)


def _true(verdicts: Any) -> Any:
    return _chunk(verdicts).fill_null(False).to_numpy(zero_copy_only=False)


def _chunk(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


# By the name of the function; with _i the body takes the place of an element, too.
APPLIED: Final[dict[str, Applied]] = {
    "transform": _transform(1),
    "transform_i": _transform(2),
    "filter": _filter(1),
    "filter_i": _filter(2),
    "exists": _quantified(wanted=True),
    "forall": _quantified(wanted=False),
    "zip_with": _zip_with,
    "aggregate": _aggregate,
}
