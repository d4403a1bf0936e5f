"""Arrays of numbers or moments at the same distance, from one bound to another."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.functions.kernel import Checked, Kernel, Kind, Value, from_numbers, length, nulls, numbers, whole
from everview.scalars.functions.lists import lists, spans, too_many
from everview.scalars.functions.moments import DAY, add_months

_WRONG: Final = "the step leads away from the end, or is none, or the array is too long"


def _sequence(out: Kind, start: Value, stop: Value, step: Value) -> Any:
    rows = length((start, stop, step))
    missing = nulls(*(whole(a, rows) for a in (start, stop, step)))
    first, last, by = (numbers(whole(a, rows)).astype(np.int64) for a in (start, stop, step))
    if missing is not None:
        first, last, by = (np.where(missing, 0, x) for x in (first, last, by))
    months = pa.types.is_int32(step.type) and pa.types.is_temporal(out.value_type)
    if pa.types.is_date32(out.value_type) and not months:
        by = by // DAY
    distance = _months_between(first, last, out.value_type) if months else last - first
    failed = ((by == 0) & (first != last)) | (np.sign(last - first) * by < 0)
    with np.errstate(all="ignore"):
        sizes = np.where(by == 0, 1, distance // np.where(by == 0, 1, by) + 1)
    failed |= too_many(np.where(failed, 0, sizes if missing is None else np.where(missing, 0, sizes)))
    failed |= np.abs(last.astype(np.float64) - first.astype(np.float64)) >= 2.0**63
    sizes = np.where(failed, 0, sizes if missing is None else np.where(missing, 0, sizes))
    places = spans(np.zeros(rows, np.int64), sizes)
    begins, steps = np.repeat(first, sizes), places * np.repeat(by, sizes)
    if months:
        values, sizes = _moved(begins, steps, np.repeat(last, sizes), np.repeat(by, sizes), sizes, out.value_type)
    else:
        values = begins + steps
    value = lists(from_numbers(values, out.value_type, None), sizes, out, missing)
    return Checked(value, failed, _WRONG) if failed.any() else value


def _months_between(first: Any, last: Any, kind: Kind) -> Any:
    """How many months apart two moments are, with one to spare in their direction."""
    unit = 1 if pa.types.is_date32(kind) else DAY
    a, b = ((x // unit).astype("M8[D]").astype("M8[M]").astype(np.int64) for x in (first, last))
    return b - a


def _moved(begins: Any, months: Any, ends: Any, by: Any, sizes: Any, kind: Kind) -> tuple[Any, Any]:
    """Moments so many months on, without those beyond the end, and how many are left in each row."""
    unit = 1 if pa.types.is_date32(kind) else DAY
    days = begins // unit
    values = add_months(days, months) * unit + (begins - days * unit)
    inside = np.where(by > 0, values <= ends, values >= ends)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    return values[inside], np.bincount(rows[inside], minlength=len(sizes))


KERNELS: Final[dict[str, Kernel]] = {"sequence": _sequence}
