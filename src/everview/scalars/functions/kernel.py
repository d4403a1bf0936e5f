"""Kernels: implementations of scalar functions on Arrow columns, which may report failed rows.

A kernel is called with the Arrow type of its result and its arguments, at least one of them an array; the others may
be scalars, which stand for all rows. It returns an array. A kernel that may fail returns `Checked`: failed rows
may hold anything; the caller raises, or puts NULL there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Value = Any  # an Arrow array or scalar; its stubs are generic where the classes are not
Kernel = Callable[..., Any]
Kind = Any  # an Arrow data type, with what its own kind of them has
Mask = Any  # a NumPy array of truth values


@dataclass(frozen=True, slots=True)
class Checked:
    """Values, a mask of the failed rows, and the reason."""

    value: Value
    failed: Mask
    reason: str


class Failed(Exception):
    """Raised by a function of one row that has no value."""


def is_scalar(value: Value) -> bool:
    return isinstance(value, pa.Scalar)


def length(arguments: Iterable[Value]) -> int:
    """The number of rows: the length of any array among the arguments."""
    return next((len(a) for a in arguments if not is_scalar(a)), 1)


def whole(value: Value, rows: int) -> Value:
    """The value as an array of so many rows."""
    return pa.repeat(value, rows) if is_scalar(value) else value


def truth(value: Value) -> Mask:
    """A BOOLEAN column as NumPy has it; NULL is false."""
    if value.null_count:
        value = value.fill_null(False)
    return value.to_numpy(zero_copy_only=False)


def nulls(*arguments: Value) -> Mask | None:
    """A mask of the rows in which any argument is NULL; None if there are none."""
    missing = None
    rows = length(arguments)
    for a in arguments:
        if is_scalar(a):
            mask = None if a.is_valid else np.ones(rows, bool)
        else:
            mask = a.is_null().to_numpy(zero_copy_only=False) if a.null_count else None
        if mask is not None:
            missing = mask if missing is None else missing | mask
    return missing


def numbers(value: Value, fill: Any = 0) -> Any:
    """A column of a fixed width as NumPy has it, `fill` for NULL; a scalar as one number."""
    if is_scalar(value):
        timed = isinstance(value, (pa.TimestampScalar, pa.DurationScalar, pa.Time64Scalar))
        single: Any = value.value if timed else value.as_py()
        kind = value.type.to_pandas_dtype()
        number = np.dtype(kind) if not isinstance(kind, np.dtype) else kind
        number = np.dtype(np.int64) if number.kind in "mMO" else number
        return number.type(fill if single is None else single)
    if pa.types.is_date32(value.type):
        value = value.cast(pa.int32())
    elif _is_micros(value.type):
        value = value.cast(pa.int64())
    if value.null_count:
        value = value.fill_null(fill)
    return value.to_numpy(zero_copy_only=False)


def _is_micros(kind: Kind) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind)


def from_numbers(array: Any, out: Kind, missing: Mask | None) -> Value:
    """A NumPy array as an Arrow column, NULL where `missing`."""
    if pa.types.is_date32(out):
        return pa.array(np.asarray(array, np.int32), pa.int32(), mask=missing).cast(out)
    if _is_micros(out):
        return pa.array(np.asarray(array, np.int64), pa.int64(), mask=missing).cast(out)
    return pa.array(array, mask=missing).cast(out)


def each(out: Kind, function: Callable[..., Any], *arguments: Value) -> Value:
    """A function of one row, called once for each distinct combination of its arguments; NULL in, NULL out.

    For what Arrow has no kernel for. `Failed` marks a row as failed.
    """
    return each_row(out, lambda *row: None if any(v is None for v in row) else function(*row), *arguments)


def each_row(out: Kind, function: Callable[..., Any], *arguments: Value) -> Value:
    """`each` for a function that takes NULL as None."""
    rows = length(arguments)
    columns = [repeat(a.as_py(), rows) if is_scalar(a) else a.to_pylist() for a in arguments]
    hashable = not any(pa.types.is_nested(a.type) for a in arguments)
    memo: dict[Any, Any] = {}
    values: list[Any] = []
    failed: dict[int, str] = {}
    for number, row in enumerate(zip(*columns, strict=True)):
        if hashable and row in memo:
            values.append(memo[row])
            continue
        try:
            value = function(*row)
        except Failed as failure:
            failed[number] = str(failure)
            values.append(None)
            continue
        if hashable:
            memo[row] = value
        values.append(value)
    array = pa.array(values, out)
    if not failed:
        return array
    mask = np.zeros(rows, bool)
    mask[list(failed)] = True
    return Checked(array, mask, next(iter(failed.values())))


def constant(position: int, kernel: Kernel) -> Kernel:
    """A kernel for an argument that is one value for all rows, such as a pattern, made to take a column there, too.

    Rows are grouped by the argument's value; a NULL there is NULL. The first other argument is a column in any case;
    what else is one value stays one, as it may be a pattern, too.
    """
    subject = int(position == 0)

    def run(out: Kind, *arguments: Value) -> Any:
        pattern = arguments[position]
        rows = length(arguments)
        if is_scalar(pattern):
            if not pattern.is_valid:
                return pa.nulls(rows, out)
            return kernel(out, *arguments)
        if rows == 1:
            known = {position: pattern[0], subject: whole(arguments[subject], 1)}
            return run(out, *(known.get(i, a) for i, a in enumerate(arguments)))
        return _grouped(out, run, position, arguments)

    return run


def _grouped(out: Kind, run: Kernel, position: int, arguments: tuple[Value, ...]) -> Any:
    rows, subject = length(arguments), int(position == 0)
    coded = arguments[position].dictionary_encode()
    codes = numbers(coded.indices, -1)
    parts: list[Value] = []
    places: list[Any] = []
    failed = np.zeros(rows, bool)
    reason = ""
    for code in np.unique(codes):
        rows_of_value = np.flatnonzero(codes == code)
        chosen = pa.array(rows_of_value)
        given = [a if is_scalar(a) and i != subject else whole(a, rows).take(chosen) for i, a in enumerate(arguments)]
        given[position] = pa.scalar(None, coded.dictionary.type) if code < 0 else coded.dictionary[int(code)]
        part = run(out, *given)
        if isinstance(part, Checked):
            failed[rows_of_value[part.failed]] = True
            part, reason = part.value, reason or part.reason
        parts.append(part)
        places.append(rows_of_value)
    value = assembled(parts, places, out) if parts else pa.array([], out)
    return Checked(value, failed, reason) if failed.any() else value


def assembled(parts: list[Value], places: list[Any], out: Kind) -> Value:
    """One column put together from parts; ``places`` has the rows of each part."""
    joined = pa.concat_arrays([p.cast(out) if p.type != out else p for p in parts])
    order = np.empty(len(joined), np.int64)
    order[np.concatenate(places)] = np.arange(len(joined))
    return joined.take(pa.array(order))


def nan_free(value: Value) -> bool:
    """Whether a float column has no NaN."""
    if is_scalar(value):
        number = value.as_py()
        return number is None or number == number
    return not pc.any(pc.is_nan(value)).as_py()


def is_float(type_: Kind) -> bool:
    return pa.types.is_floating(type_)
