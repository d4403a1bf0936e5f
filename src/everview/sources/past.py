"""Replies as they would have been before some changes: rows that came are left out, rows that went are put back.

>>> from everview.sources.order import sort_key
>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL")
>>> changes = Update({(2,): -1, (3,): +1})
>>> list(before(iter([(1,), (3,), (4,)]), changes, lambda row: True, sort_key(schema, (("id", "asc"),))))
[(1,), (2,), (4,)]
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from everview.orders import SortKey
from everview.sources.protocol import Reply, Row, Update


def before(reply: Reply, changes: Update, asked: Callable[[Row], bool | None], key: SortKey) -> Reply:
    """The reply before the changes; ``asked`` tests whether a row belongs to the reply, ``key`` orders the rows."""
    gone = sorted((row for row, weight in changes for _ in range(-weight) if asked(row)), key=key)
    return heapq.merge(_without(reply, {row: weight for row, weight in changes if weight > 0}), gone, key=key)


def _without(reply: Reply, came: dict[Row, int]) -> Iterator[Row]:
    for row in reply:
        if came.get(row):
            came[row] -= 1
        else:
            yield row
