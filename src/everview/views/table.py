"""Views as a bag of rows, in no order.

>>> from everview import connect
>>> db = connect()
>>> _ = db.sql("CREATE TABLE t (id BIGINT, n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t")
>>> view = TableView(db.view("v"), dicts=True)
>>> _ = db.apply({"t": [((1, 5), 2)]})
>>> view.rows(), len(view)
([{'id': 1, 'n': 5}, {'id': 1, 'n': 5}], 2)
>>> {"n": 5, "id": 1} in view, (1, 5) in view, {"id": 1} in view
(True, True, False)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from everview.codes.exits import AsFrames
from everview.views.bag import Bag
from everview.views.change import Change
from everview.views.feed import Feed
from everview.zset.tables import SHOWN

if TYPE_CHECKING:
    import pyarrow as pa


class TableView(Bag, AsFrames):
    """The rows of a feed, each as often as its weight; as tuples, or as ``dicts``."""

    def __init__(self, feed: Feed, *, dicts: bool = False, name: str | None = None) -> None:
        self._dicts = dicts
        super().__init__(feed, name)

    def _hydrate(self) -> None:
        self._len = sum(max(weight, 0) for _, weight in self._held.values())

    def _apply(self, change: Change) -> Change:
        for key, (_, weight) in change.net.items():
            after = self._held[key][1] if key in self._held else 0
            self._len += max(after, 0) - max(after - weight, 0)
        return change

    def contents(self) -> Change:
        """The rows now, each with its weight."""
        with self.lock:
            return self._shown(dict(self._held), self.epoch, snapshot=True)

    def rows(self) -> list[Any]:
        """The rows now, each as often as its weight."""
        return list(self)

    def to_arrow(self) -> pa.Table:
        """The rows of `rows` as an Arrow table."""
        from everview.codes.ingest import ingest

        return ingest(self.schema, self.rows())[0]

    def __iter__(self) -> Iterator[Any]:
        with self.lock:
            rows = [row for row, weight in self._held.values() for _ in range(weight)]
        names = self.schema.names
        return (dict(zip(names, row, strict=True)) for row in rows) if self._dicts else iter(rows)

    def __contains__(self, row: Any) -> bool:
        names = self.schema.names
        values: Any = [row.get(name) for name in names] if isinstance(row, Mapping) and len(row) == len(names) else row
        if not isinstance(values, tuple | list) or len(cast(Sequence[Any], values)) != len(names):
            return False
        with self.lock:
            return self._held.get(self._key(tuple(cast(Sequence[Any], values))), (None, 0))[1] > 0

    def __len__(self) -> int:
        return self._len

    def __repr__(self) -> str:
        return f"<table view {self.name}: {len(self)} rows of {self.schema}>"

    def _repr_html_(self) -> str:
        with self.lock:
            first = list(islice((row for row, weight in self._held.values() for _ in range(weight)), SHOWN))
            return self._html(first, len(self))
