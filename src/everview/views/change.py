"""Net changes of a view: rows with weights, and the epochs between which they lead.

The order of edits in a transaction means nothing, so weights are summed first, and rows that cancel are left out.
Successive changes add up to one.

>>> first = Change.of([((1, "a"), 1), ((1, "b"), 1), ((1, "b"), -1)], epoch=1)
>>> second = Change.of([((1, "a"), -1), ((1, "c"), 1)], epoch=2)
>>> list(first), list(first + second), (first + second).epoch
([((1, 'a'), 1)], [((1, 'c'), 1)], 2)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from everview.codes.exits import AsFrames
from everview.errors import ShapeError
from everview.types import Schema
from everview.views.feed import Weighted
from everview.views.identity import Identity, itself

if TYPE_CHECKING:
    import pyarrow as pa

Net = dict[Hashable, tuple[Any, int]]  # by the key of a row: the row and its weight, which is not 0


def add(net: Net, changes: Weighted, key: Identity) -> None:
    """Add rows with weights to a net, in place."""
    for row, weight in changes:
        own = row if key is itself else key(row)
        if own in net:
            add_one(net, own, row, weight)
        elif weight:
            net[own] = row, weight


def add_one(net: Net, key: Hashable, row: Any, weight: int) -> None:
    """Add one row under its key to a net, in place."""
    known = net.get(key)
    total = weight if known is None else known[1] + weight
    if total:
        net[key] = row, total
    elif known is not None:
        del net[key]


@dataclass(frozen=True, slots=True, eq=False)
class Change(AsFrames):
    """Rows with weights; iterates as (row, weight), no row twice and none with weight 0.

    A change leads from the view after epoch ``since`` to the view after ``epoch``. With ``snapshot`` its rows are all
    that there is, not a difference.
    """

    net: Mapping[Hashable, tuple[Any, int]]
    epoch: int = 0
    since: int = 0
    snapshot: bool = False
    schema: Schema | None = None

    @classmethod
    def of(cls, changes: Weighted, epoch: int = 0, key: Identity = itself, schema: Schema | None = None) -> Change:
        """The net change of one epoch's rows with weights."""
        net: Net = {}
        add(net, changes, key)
        return cls(net, epoch, epoch - 1, False, schema)

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return iter(self.net.values())

    def __len__(self) -> int:
        """The number of different rows."""
        return len(self.net)

    def __bool__(self) -> bool:
        return bool(self.net)

    def __add__(self, later: Change) -> Change:
        """Both changes, one after the other; a snapshot replaces what came before it."""
        if later.snapshot:
            return later
        net = dict(self.net)
        for key, (row, weight) in later.net.items():
            add_one(net, key, row, weight)
        return Change(net, later.epoch, self.since, self.snapshot, self.schema)

    @property
    def added(self) -> list[Any]:
        """The rows that were added, each as often as it was."""
        return [row for row, weight in self for _ in range(weight)]

    @property
    def removed(self) -> list[Any]:
        """The rows that were removed, each as often as it was."""
        return [row for row, weight in self for _ in range(-weight)]

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table with a ``_weight`` column."""
        from everview.zset.batch import Batch

        if self.schema is None:
            raise ShapeError("these changes are not of rows with columns", hint="iterate over them")
        return Batch.of(self.schema, list(self)).to_arrow()

    def __repr__(self) -> str:
        return f"<{'snapshot' if self.snapshot else 'change'} of {len(self)} rows, epoch {self.epoch}>"


def less(change: Change, held: Net) -> Change:
    """The change that leads from held rows to the rows of another change."""
    net = dict(change.net)
    for key, (row, weight) in held.items():
        add_one(net, key, row, -weight)
    return replace(change, net=net)


@dataclass(frozen=True, slots=True)
class Missed:
    """A gap: so many transactions were not told, because their reader was too slow. A snapshot follows."""

    count: int
    epoch: int
    snapshot: bool = False

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False
