"""Z-sets: collections and their changes, as values that add.

`ZSet`, `IndexedZSet`, `TimedZSet` and `ReferenceTrace` are plain dictionaries underneath. They say what the
operators mean; the compiled kernels are held to them by the tests.
"""

from everview.zset.indexed import IndexedZSet
from everview.zset.reference import ZSet
from everview.zset.timed import NO_VALUE, ReferenceTrace, TimedZSet

__all__ = ["NO_VALUE", "IndexedZSet", "ReferenceTrace", "TimedZSet", "ZSet"]
