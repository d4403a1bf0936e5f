"""Joins of many relations at once, bound one variable at a time: no intermediate join is kept.

The vocabulary, over Z-sets of Python values, says what a multiway join means: extenders, indexes, the incremental
generic join, leapfrog. It is in `everview.theory`, and loads when one of its names is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from everview.multiway.choose import Statistics
from everview.multiway.joins import Atom, Is, join

if TYPE_CHECKING:
    from everview.theory.calculus import Collection, Moments
    from everview.theory.connectives import AndIndex, NotIndex, OrIndex
    from everview.theory.generic_join import IncrementalGenericJoin, extensions
    from everview.theory.indexes import IncrementalIndex, PatternIndex
    from everview.theory.leapfrog import Leapfrog, LevelIterator, Scan, SortedKeys, common_keys, natural_order
    from everview.theory.patterns import Pattern, Variable, variables
    from everview.theory.prefixes import Arranged, Extenders, Prefix, PrefixExtender, ZSetExtender

_HOMES = {
    "AndIndex": "connectives",
    "Arranged": "prefixes",
    "Collection": "calculus",
    "Extenders": "prefixes",
    "IncrementalGenericJoin": "generic_join",
    "IncrementalIndex": "indexes",
    "Leapfrog": "leapfrog",
    "LevelIterator": "leapfrog",
    "Moments": "calculus",
    "NotIndex": "connectives",
    "OrIndex": "connectives",
    "Pattern": "patterns",
    "PatternIndex": "indexes",
    "Prefix": "prefixes",
    "PrefixExtender": "prefixes",
    "Scan": "leapfrog",
    "SortedKeys": "leapfrog",
    "Variable": "patterns",
    "ZSetExtender": "prefixes",
    "common_keys": "leapfrog",
    "extensions": "generic_join",
    "natural_order": "leapfrog",
    "variables": "patterns",
}

__all__ = [
    "AndIndex",
    "Arranged",
    "Atom",
    "Collection",
    "Extenders",
    "IncrementalGenericJoin",
    "IncrementalIndex",
    "Is",
    "Leapfrog",
    "LevelIterator",
    "Moments",
    "NotIndex",
    "OrIndex",
    "Pattern",
    "PatternIndex",
    "Prefix",
    "PrefixExtender",
    "Scan",
    "SortedKeys",
    "Statistics",
    "Variable",
    "ZSetExtender",
    "common_keys",
    "extensions",
    "join",
    "natural_order",
    "variables",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'everview.multiway' has no attribute {name!r}")
    return getattr(import_module(f"everview.theory.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
