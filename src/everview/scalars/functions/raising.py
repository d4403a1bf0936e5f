"""Functions that fail on purpose."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.functions.kernel import Checked, Kernel, Kind, Value, nulls, truth, whole


def _raise(out: Kind, message: Value) -> Any:
    """Fail with a message, on every row where there is one."""
    missing = nulls(message)
    failed = np.ones(len(message), bool) if missing is None else ~missing
    if not failed.any():
        return pa.nulls(len(message), out)
    return Checked(pa.nulls(len(message), out), failed, str(message[int(np.argmax(failed))].as_py()))


def _assert(out: Kind, condition: Value, message: Value) -> Any:
    """Fail with a message on every row where a condition is not true."""
    failed = ~truth(condition)
    if not failed.any():
        return pa.nulls(len(condition), out)
    said = whole(message, len(condition))[int(np.argmax(failed))].as_py()
    return Checked(pa.nulls(len(condition), out), failed, str(said))


KERNELS: Final[dict[str, Kernel]] = {"raise_error": _raise, "assert_true": _assert}
