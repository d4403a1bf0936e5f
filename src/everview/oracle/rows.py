"""Z-sets of the oracle: plain dictionaries from rows to weights, none of them zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from everview.oracle.values import changed, from_arrow, inward, outward
from everview.types import Schema
from everview.zset.batch import Batch
from everview.zset.weights import GREATEST_WEIGHT, LEAST_WEIGHT, checked

Row = tuple[Any, ...]
Entry = tuple[Row, int]
Groups = dict[Row, list[Entry]]


class Rows:
    """Rows and their weights; never changed, so that each grouping is computed once.

    >>> Rows.of([((1, "a"), 1), ((2, "b"), 1), ((2, "b"), -1)]).weights
    {(1, 'a'): 1}
    """

    __slots__ = ("_groups", "weights")

    def __init__(self, weights: dict[Row, int]) -> None:
        self.weights = weights
        self._groups: dict[tuple[int, ...], Groups] = {}

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Rows:
        """The sum of weighted rows; checked when complete, so that the order of entries does not matter."""
        sums: dict[Row, int] = {}
        before = sums.get
        for row, w in entries:
            sums[row] = before(row, 0) + w
        weights = sums.values()
        if 0 in weights:
            sums = {row: w for row, w in sums.items() if w}
            weights = sums.values()
        if sums and not (min(weights) >= LEAST_WEIGHT and max(weights) <= GREATEST_WEIGHT):
            checked(max(weights, key=abs))
        return cls(sums)

    @classmethod
    def inside(cls, schema: Schema, entries: Iterable[Entry]) -> Rows:
        """Rows of Python values, or of a batch, as the oracle holds them."""
        if isinstance(entries, Batch) and len(schema):
            table = entries.to_arrow()
            columns = [from_arrow(type_, table.column(field)) for field, type_ in enumerate(schema.types)]
            return cls(dict(zip(zip(*columns, strict=True), entries.weights.tolist(), strict=True)))
        pairs = list(entries)
        rows = changed(schema.types, inward)([row for row, _ in pairs]) if pairs else []
        return cls.of(zip(rows, (w for _, w in pairs), strict=True))

    def outside(self, schema: Schema) -> list[Entry]:
        """The rows as views show them."""
        return seen(schema, self.weights.items())

    def __len__(self) -> int:
        return len(self.weights)

    def __iter__(self) -> Any:
        return iter(self.weights.items())

    def by(self, fields: Sequence[int]) -> Groups:
        """The entries of every group, by the fields that tell groups apart."""
        chosen = tuple(fields)
        if chosen not in self._groups:
            key, groups = picking(chosen), defaultdict[Row, list[Entry]](list)
            for entry in self.weights.items():
                groups[key(entry[0])].append(entry)
            self._groups[chosen] = dict(groups)
        return self._groups[chosen]


def seen(schema: Schema, entries: Iterable[Entry]) -> list[Entry]:
    """Entries of the oracle as views show them."""
    pairs = list(entries)
    rows = changed(schema.types, outward)([row for row, _ in pairs]) if pairs else []
    return list(zip(rows, (w for _, w in pairs), strict=True))


def difference(a: Mapping[Row, int], b: Mapping[Row, int]) -> dict[Row, int]:
    """``a − b``."""
    if a == b:
        return {}
    weights = {row: w - b.get(row, 0) for row, w in a.items() if w != b.get(row)}
    return weights | {row: -w for row, w in b.items() if row not in a}


def picking(fields: Sequence[int | None]) -> Callable[[Row], Row]:
    """The function from a row to some of its fields, NULL for those it lacks."""
    if None in fields:
        return lambda row: tuple(None if f is None else row[f] for f in fields)
    chosen = [f for f in fields if f is not None]
    if not chosen:
        return lambda row: ()
    if chosen == list(range(chosen[0], chosen[0] + len(chosen))):
        span = slice(chosen[0], chosen[0] + len(chosen))
        return lambda row: row[span]
    return itemgetter(*chosen)
