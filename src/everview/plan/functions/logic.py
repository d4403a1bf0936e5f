"""Truth in three values, and tests for NULL and NaN. AND, OR and the conditions are in `evaluate`: they choose rows."""

from __future__ import annotations

from typing import Any, Final

import pyarrow.compute as pc

from everview.plan.functions.kernel import Kernel, Kind, Value


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


KERNELS: Final[dict[str, Kernel]] = {
    "not": _not,
    "is_null": _is_null,
    "is_not_null": _is_not_null,
    "is_nan": _is_nan,
    "nanvl": _nanvl,
}
