"""The order of values as expressions compare them."""

from __future__ import annotations

from typing import Any


def compare(a: Any, b: Any) -> int:
    """The order of two values as -1, 0 or 1; NULL comes first inside arrays and structs, NaN last."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if isinstance(a, dict):
        a, b = list(a.values()), list(b.values())
    if isinstance(a, list):
        for x, y in zip(a, b, strict=False):
            order = compare(x, y)
            if order:
                return order
        return (len(a) > len(b)) - (len(a) < len(b))
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    if isinstance(a, float) and (a != a or b != b):
        return (a != a) - (b != b)
    return (a > b) - (a < b)
