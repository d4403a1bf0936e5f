"""Views as a list of rows in an order, or a part of that list.

Law: it is ``sorted(rows)[offset : offset + limit]``, after every transaction. A changed row costs a search and an
insertion; a row that leaves the part lets the next one in.

>>> from everview import connect
>>> db = connect()
>>> _ = db.sql("CREATE TABLE t (id BIGINT, n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t")
>>> best = OrderedView(db.view("v"), "n desc", limit=2)
>>> _ = db.apply({"t": [((1, 5), 1), ((2, 7), 1), ((3, None), 1)]})
>>> best.rows()
[(2, 7), (1, 5)]
>>> _ = db.apply({"t": [((2, 7), -1)]})
>>> best[1], best[0:1]
((3, None), [(1, 5)])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, overload

from everview.codes.exits import AsFrames
from everview.doors import doors
from everview.errors import ShapeError
from everview.orders.sorted_rows import ALL, SortedRows
from everview.views.bag import Bag
from everview.views.change import Change, Net, add_one
from everview.views.feed import Feed
from everview.views.order import By, order_of, sort_key
from everview.zset.tables import SHOWN

if TYPE_CHECKING:
    import pyarrow as pa


@doors()
class OrderedView(Bag, AsFrames):
    """The rows of a feed in an order: ``OrderedView(feed, "rating desc", "name", limit=10)``.

    NULL is first ascending and last descending; ties are broken by all columns. It is a sequence of rows, as tuples
    or as ``dicts``. Listeners are told of the rows that it shows, not of those beyond ``limit``.
    """

    def __init__(
        self,
        feed: Feed,
        *by: By | Iterable[By],
        limit: int | None = None,
        offset: int = 0,
        dicts: bool = False,
        name: str | None = None,
    ) -> None:
        if offset < 0 or (limit is not None and limit < 0):
            raise ShapeError(
                f"a view cannot show {limit} rows from place {offset} on",
                hint="give a limit and an offset of 0 or more",
            )
        self.order = tuple(pair for each in by for pair in order_of(feed.schema, each))
        self._first, self._last = offset, ALL if limit is None else offset + limit
        self._dicts = dicts
        super().__init__(feed, name)

    def _hydrate(self) -> None:
        key = self._sort_key = sort_key(self.schema, self.order)
        self._sorted = SortedRows((key(row), row) for row, weight in self._held.values() for _ in range(weight))

    def _apply(self, change: Change) -> Change:
        net: Net = {}
        whole = self._first == 0 and self._last == ALL
        for own, (row, weight) in change.net.items():
            after = self._held[own][1] if own in self._held else 0
            steps = max(after, 0) - max(after - weight, 0)
            key = self._sort_key(row)
            for _ in range(steps):
                self._add(key, row, net, whole)
            for _ in range(-steps):
                self._remove(key, net, whole)
            if whole and steps:
                net[own] = row, steps
        return self._shown(net, change.epoch)

    def _add(self, key: Any, row: Any, net: Net, whole: bool) -> None:
        place = self._sorted.add(key, row, 0 if whole else self._last)
        if whole or place >= self._last or self._first == self._last:
            return
        self._enters(max(place, self._first), net, 1)
        self._enters(self._last, net, -1)

    def _remove(self, key: Any, net: Net, whole: bool) -> None:
        place, row = self._sorted.remove(key, 0 if whole else self._last)
        if whole or place >= self._last or self._first == self._last:
            return
        if place >= self._first:
            add_one(net, self._key(row), row, -1)
        else:
            self._enters(self._first - 1, net, -1)  # what was the first of the part is now before it
        self._enters(self._last - 1, net, 1)

    def _enters(self, place: int, net: Net, weight: int) -> None:
        """Note in a net that the row at a place has entered the shown part, or with weight -1 has left it."""
        inside = self._first <= place < self._last if weight > 0 else True
        if inside and place < len(self._sorted):
            row = self._sorted[place]
            add_one(net, self._key(row), row, weight)

    # -- reading

    def contents(self) -> Change:
        """The rows that the view shows, each with its weight."""
        with self.lock:
            whole = Change.of(((row, 1) for row in self._rows()), self.epoch, self._key)
            return self._shown(dict(whole.net), self.epoch, snapshot=True)

    def rows(self) -> list[Any]:
        """The rows that the view shows, in order."""
        with self.lock:
            return [self._as(row) for row in self._rows()]

    def _rows(self) -> list[Any]:
        return self._sorted[self._first : self._last]

    def _as(self, row: Any) -> Any:
        return dict(zip(self.schema.names, row, strict=True)) if self._dicts else row

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        with self.lock:
            count = len(self)
            if isinstance(index, slice):
                start, stop, step = index.indices(count)
                if step == 1:
                    return [self._as(row) for row in self._sorted[self._first + start : self._first + stop]]
                return [self._as(self._sorted[self._first + place]) for place in range(start, stop, step)]
            place = index + count if index < 0 else index
            if not 0 <= place < count:
                raise IndexError(f"place {index} of {count} rows")
            return self._as(self._sorted[self._first + place])

    def to_arrow(self) -> pa.Table:
        """The rows of `rows` as an Arrow table."""
        from everview.codes.ingest import ingest

        return ingest(self.schema, self.rows())[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows())

    def __len__(self) -> int:
        return max(0, min(len(self._sorted), self._last) - self._first)

    def __repr__(self) -> str:
        by = ", ".join(f"{self.schema.names[place]} {how}" for place, how in self.order)
        return f"<ordered view {self.name}: {len(self)} rows of {self.schema}{' by ' * bool(by)}{by}>"

    def _repr_html_(self) -> str:
        with self.lock:
            return self._html(self._sorted[self._first : min(self._last, self._first + SHOWN)], len(self))
