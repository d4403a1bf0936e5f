"""Functions that fail: where a condition is not true, and in every row."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.functions.kernel import Checked, Kernel, Kind, Mask, Value, length, truth, whole


def _raised(out: Kind, failed: Mask, message: Value) -> Any:
    rows = len(failed)
    nothing = pa.nulls(rows, out)
    if not failed.any():
        return nothing
    said = whole(message, rows)[int(np.argmax(failed))].as_py()
    return Checked(nothing, failed, "NULL" if said is None else said)


def _assert_true(out: Kind, condition: Value, message: Value) -> Any:
    rows = length((condition, message))
    return _raised(out, ~truth(whole(condition, rows)), message)


def _raise_error(out: Kind, message: Value) -> Any:
    return _raised(out, np.ones(length((message,)), bool), message)


KERNELS: Final[dict[str, Kernel]] = {"assert_true": _assert_true, "raise_error": _raise_error}
