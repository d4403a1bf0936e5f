"""Truth in three values, and tests for NULL and NaN. AND, OR and the conditions are in `evaluate`: they choose rows."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from everview.scalars.functions.kernel import Checked, Kernel, Kind, Value


def _not(out: Kind, a: Value) -> Any:
    return pc.invert(a)


def _is_null(out: Kind, a: Value) -> Any:
    return pc.is_null(a)


def _is_not_null(out: Kind, a: Value) -> Any:
    return pc.is_valid(a)


def _is_nan(out: Kind, a: Value) -> Any:
    return pc.is_nan(a).fill_null(False)


def _nanvl(out: Kind, a: Value, b: Value) -> Any:
    return pc.if_else(pc.is_nan(a), b, a)


SEVERAL: Final = "a subquery that is used as a value gave several rows"


def _is_one_row(out: Kind, count: Value) -> Any:
    """True; a subquery that counts several rows fails."""
    single = pc.less_equal(count, pa.scalar(1, pa.int64()))
    several = ~single.fill_null(True).to_numpy(zero_copy_only=False)
    return Checked(single, several, SEVERAL) if several.any() else single


KERNELS: Final[dict[str, Kernel]] = {
    "not": _not,
    "is_null": _is_null,
    "is_not_null": _is_not_null,
    "is_nan": _is_nan,
    "nanvl": _nanvl,
    "is_one_row": _is_one_row,
}
FAILING: Final = frozenset({"is_one_row"})
