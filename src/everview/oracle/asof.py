"""The meaning of an as-of join: of all right rows with a left row's key, the one in force at its time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from datetime import date
from typing import Any

from everview.operators.asof import Asof, Toward
from everview.operators.index import Direction
from everview.oracle.rows import Entry, Row, Rows, picking
from everview.oracle.values import in_order, rank
from everview.types import Decimal, Type


def in_force(asof: Asof, left: Rows, right: Rows) -> Rows:
    """Each left row, with its weight, beside the right row; beside NULL where there is none, if the join is outer."""
    key, time = picking(range(asof.left.key)), asof.left.key
    width, empty = len(asof.left.schema), (None,) * len(asof.right.schema)
    pick = picking([field if side == 0 else width + field for side, field in asof.picks])
    groups = {group: History(asof, entries) for group, entries in right.by(range(asof.right.key)).items()}
    nothing = History(asof, [])
    sums: list[Entry] = []
    for row, w in left:
        match = groups.get(key(row), nothing).at(row[time])
        if match is not None or asof.outer:
            sums.append((pick(row + (empty if match is None else match)), w))
    return Rows.of(sums)


class History:
    """Of the right rows with one key that are there, the last at every time, in order of time."""

    def __init__(self, asof: Asof, entries: list[Entry]) -> None:
        self.asof = asof
        schema, time = asof.right.schema, asof.right.key
        self.type = schema.fields[time].type
        self.place: Callable[[Any], Any] = rank(self.type) or (lambda value: value)
        order = [(field, schema.fields[field].type, Direction.ASC) for field in range(time + 1, len(schema))]
        present = [entry for entry in entries if entry[1] > 0 and entry[0][time] is not None]
        last = {self.place(row[time]): row for row, _ in in_order(present, order)}
        self.places = sorted(last)
        self.rows = [last[place] for place in self.places]

    def at(self, t: Any) -> Row | None:
        """The row in force at a time."""
        if t is None:
            return None
        first, past = bisect_left(self.places, self.place(t)), bisect_right(self.places, self.place(t))
        before = (first if self.asof.strict else past) - 1
        after = past if self.asof.strict else first
        row = self._nearer(
            t, self.rows[before] if before >= 0 else None, self.rows[after] if after < len(self.rows) else None
        )
        if row is None or (self.asof.tolerance is not None and self._distance(t, row) > self.asof.tolerance):
            return None
        return row

    def _nearer(self, t: Any, before: Row | None, after: Row | None) -> Row | None:
        match self.asof.toward:
            case Toward.BACKWARD:
                return before
            case Toward.FORWARD:
                return after
            case Toward.NEAREST:
                if before is None or after is None:
                    return after if before is None else before
                return before if self._distance(t, before) <= self._distance(t, after) else after

    def _distance(self, t: Any, row: Row) -> int:
        return distance(self.type, t, row[self.asof.right.key])


def distance(type_: Type, a: Any, b: Any) -> int:
    """How far apart two times are: in days, in microseconds, or in units of a number's last digit."""
    if isinstance(a, date):
        return abs(a.toordinal() - b.toordinal())
    return int(abs(a - b) * (10**type_.scale if isinstance(type_, Decimal) else 1))
