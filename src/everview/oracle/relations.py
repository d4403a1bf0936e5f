"""What operators on rows mean: projections, joins, and the first rows in an order."""

from __future__ import annotations

from collections.abc import Sequence

from everview.operators.index import Direction
from everview.operators.join import JoinStream
from everview.operators.semijoin import Semijoin
from everview.operators.top import Top
from everview.oracle.rows import Entry, Row, Rows, picking
from everview.oracle.values import Keyed, in_order


def projected(rows: Rows, fields: Sequence[int | None], width: int) -> Rows:
    """Some fields of rows that have so many."""
    if list(fields) == list(range(width)):
        return rows
    pick = picking(fields)
    if width and set(range(width)) <= set(fields):
        return Rows({pick(row): w for row, w in rows})  # no two rows become one
    return Rows.of((pick(row), w) for row, w in rows)


def joined(join: JoinStream, left: Rows, right: Rows) -> Rows:
    """Every pair of rows with equal keys, weights multiplied; NULL and NaN equal themselves."""
    key, width = picking(range(join.left.key)), len(join.left.schema)
    pick = picking([field if side == 0 else width + field for side, field in join.picks])
    partners = right.by(range(join.right.key))
    nobody: list[Entry] = []
    return Rows.of((pick(a + b), v * w) for a, v in left for b, w in partners.get(key(a), nobody))


def semijoined(semijoin: Semijoin, left: Rows, keys: Rows) -> Rows:
    """The rows whose key is there: more often than not."""
    key, found = picking(range(semijoin.left.key)), keys.weights
    return Rows({row: w for row, w in left if found.get(key(row), 0) > 0})


def first(top: Top, rows: Rows) -> Rows:
    """Of each group, the rows that take places ``skip`` to ``skip + limit``; weight w takes w places."""
    directions, fields = dict(top.order), top.source.schema.fields
    rest = range(top.source.key, len(fields))
    order: list[Keyed] = [(at, fields[at].type, directions.get(at, Direction.ASC)) for at in rest]
    found: dict[Row, int] = {}
    for entries in rows.by(range(top.source.key)).values():
        place = 0
        for row, w in in_order([e for e in entries if e[1] > 0], order):
            inside = min(place + w, top.skip + top.limit) - max(place, top.skip)
            if inside > 0:
                found[row] = inside
            place += w
    return Rows(found)
