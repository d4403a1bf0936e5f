"""Functions that fail on purpose."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.functions.kernel import Checked, Kernel, Kind, Value, nulls


def _raise(out: Kind, message: Value) -> Any:
    """Fail with a message, on every row where there is one."""
    missing = nulls(message)
    failed = np.ones(len(message), bool) if missing is None else ~missing
    if not failed.any():
        return pa.nulls(len(message), out)
    return Checked(pa.nulls(len(message), out), failed, str(message[int(np.argmax(failed))].as_py()))


KERNELS: Final[dict[str, Kernel]] = {"raise_error": _raise}
