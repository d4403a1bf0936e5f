"""Z-sets: collections and their changes, as values that add.

`ZSet`, `IndexedZSet`, `TimedZSet` and `ReferenceTrace` are plain dictionaries underneath. They say what the
operators mean; the compiled kernels are held to them by the tests. Those with times are in `everview.theory`, and load
when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from everview.zset.indexed import IndexedZSet
from everview.zset.reference import ZSet

if TYPE_CHECKING:
    from everview.theory.timed import NO_VALUE, ReferenceTrace, TimedZSet

__all__ = ["NO_VALUE", "IndexedZSet", "ReferenceTrace", "TimedZSet", "ZSet"]


def __getattr__(name: str) -> Any:
    if name not in ("NO_VALUE", "ReferenceTrace", "TimedZSet"):
        raise AttributeError(f"module 'everview.zset' has no attribute {name!r}")
    return getattr(import_module("everview.theory.timed"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
