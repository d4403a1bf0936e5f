"""The scalar functions: by name, how each is computed on Arrow columns, and which of them may fail.

Their argument and result types are in `everview.scalars.signatures`. One file a family; a new function is a line in its
family's `KERNELS` (and `FAILING`, if it may), one in the signatures of its kind, and its meaning in `everview.oracle`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from everview.scalars.functions import (
    arithmetic,
    bits,
    codings,
    collections,
    comparison,
    dates,
    formats,
    hashing,
    json_text,
    likeness,
    lists,
    logic,
    making,
    numbers,
    parts,
    patterns,
    printing,
    sequences,
    statistics,
    strings,
    zones,
)
from everview.scalars.functions.kernel import Kernel, Value, length, whole


def _on_columns(kernel: Kernel) -> Kernel:
    """A kernel whose first argument is a column, never one value for all rows."""

    def run(out: Any, *arguments: Value) -> Any:
        if not arguments:
            return kernel(out)
        return kernel(out, whole(arguments[0], length(arguments)), *arguments[1:])

    return run


_PLAIN: Final = (
    arithmetic,
    comparison,
    logic,
    numbers,
    dates,
    collections,
    hashing,
    bits,
    codings,
    lists,
    sequences,
    making,
    statistics,
)
_OF_COLUMNS: Final = (strings, patterns, formats, parts, likeness, printing, zones, json_text)

KERNELS: Final[Mapping[str, Kernel]] = {
    **{name: kernel for family in _PLAIN for name, kernel in family.KERNELS.items()},
    **{name: _on_columns(kernel) for family in _OF_COLUMNS for name, kernel in family.KERNELS.items()},
    "concat_ws": strings.KERNELS["concat_ws"],
}
# Functions that raise for some arguments; all others may be called on rows whose result nobody looks at.
FAILING: Final[frozenset[str]] = frozenset(
    name for family in (*_PLAIN, *_OF_COLUMNS) for name in getattr(family, "FAILING", ())
)
