"""Joins of many relations at once, bound one variable at a time: no intermediate join is kept.

The vocabulary, over Z-sets of Python values, says what a multiway join means: extenders, indexes, the incremental
generic join, leapfrog.
"""

from everview.multiway.calculus import Collection, Moments
from everview.multiway.choose import Statistics
from everview.multiway.connectives import AndIndex, NotIndex, OrIndex
from everview.multiway.generic_join import IncrementalGenericJoin, extensions
from everview.multiway.indexes import IncrementalIndex, PatternIndex
from everview.multiway.joins import Atom, Is, join
from everview.multiway.leapfrog import Leapfrog, LevelIterator, Scan, SortedKeys, common_keys, natural_order
from everview.multiway.patterns import Pattern, Variable, variables
from everview.multiway.prefixes import Arranged, Extenders, Prefix, PrefixExtender, ZSetExtender

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
