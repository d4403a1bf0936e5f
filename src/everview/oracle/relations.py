"""The meaning of operators on rows: projections, joins, and the first rows in an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everview.operators.bags import Bags
from everview.operators.index import Direction
from everview.operators.join import JoinStream
from everview.operators.linear import Matching
from everview.operators.multijoin import Multijoin
from everview.operators.semijoin import Semijoin
from everview.operators.top import Top
from everview.operators.where import Test, Where
from everview.oracle.rows import Entry, Row, Rows, picking
from everview.oracle.values import Keyed, in_order, rank
from everview.types import Field, Schema


def projected(rows: Rows, fields: Sequence[int | None], width: int) -> Rows:
    """Some fields of rows that have ``width`` fields."""
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


def joined_all(join: Multijoin, relations: Sequence[Rows]) -> Rows:
    """Every binding of the variables that all relations hold, weights multiplied."""
    known: list[int] = []
    bindings: list[Entry] = [((), 1)]
    for variables, rows in zip(join.variables, relations, strict=True):
        shared = [place for place, variable in enumerate(variables) if variable in known]
        fresh = picking([place for place, variable in enumerate(variables) if variable not in known])
        bound, partners = picking([known.index(variables[place]) for place in shared]), rows.by(shared)
        nobody: list[Entry] = []
        bindings = [
            ((*before, *fresh(row)), v * w) for before, v in bindings for row, w in partners.get(bound(before), nobody)
        ]
        known += [variable for variable in variables if variable not in known]
    pick = picking([known.index(variable) for variable in join.select])
    return Rows.of((pick(binding), w) for binding, w in bindings)


def matching(match: Matching, rows: Rows) -> Rows:
    """The rows in which given pairs of fields are equal and given fields have given values."""
    fields = match.source.schema.fields
    given = Schema(fields[field] for field, _ in match.constants)
    ((constants, _),) = Rows.inside(given, [(tuple(value for _, value in match.constants), 1)])
    wanted = picking([field for field, _ in match.constants])
    # As tuples, in which NaN, which is one object here, equals itself.
    left, right = (picking([pair[side] for pair in match.same]) for side in (0, 1))
    return Rows({row: w for row, w in rows if left(row) == right(row) and wanted(row) == constants})


def passing(where: Where, rows: Rows) -> Rows:
    """The rows that pass all tests; NULL passes only a test for NULL."""
    fields = where.source.schema.fields
    given: dict[Test, list[Any]] = {}
    for test in where.tests:
        field = Field("value", fields[test.field].type)
        given[test] = [row[0] for value in test.constants for row, _ in Rows.inside(Schema([field]), [((value,), 1)])]
    return Rows({row: w for row, w in rows if all(_passes(test, row, given[test], fields) for test in where.tests)})


def _passes(test: Test, row: Row, constants: list[Any], fields: Sequence[Field]) -> bool:
    value, type_ = row[test.field], fields[test.field].type
    if test.how in ("is_null", "is_not_null"):
        return (value is None) == (test.how == "is_null")
    others = constants if test.other is None else [row[test.other]]
    if value is None or None in others:
        return False
    place = rank(type_) or (lambda value_: value_)
    return any(_holds(test.how, place(value), place(other)) for other in others)


def _holds(how: str, a: Any, b: Any) -> bool:
    return {
        "equal": a == b,
        "not_equal": a != b,
        "less": a < b,
        "less_equal": a <= b,
        "greater": a > b,
        "greater_equal": a >= b,
    }[how]


def semijoined(semijoin: Semijoin, left: Rows, keys: Rows) -> Rows:
    """The rows whose key has a positive weight on the other side."""
    key, weights = picking(range(semijoin.left.key)), keys.weights
    return Rows({row: w for row, w in left if weights.get(key(row), 0) > 0})


def compared(bags: Bags, left: Rows, right: Rows) -> Rows:
    """The bag intersection (as often as both have a row) or difference (as often as the left has more)."""
    other = {row: max(w, 0) for row, w in right}
    if bags.compare == "common":
        return Rows({row: min(w, other[row]) for row, w in left if w > 0 and other.get(row)})
    return Rows({row: w - other.get(row, 0) for row, w in left if w > other.get(row, 0)})


def first(top: Top, rows: Rows) -> Rows:
    """Of each group, the rows that take places ``skip`` to ``skip + limit``; weight w takes w places."""
    directions, fields = dict(top.order), top.source.schema.fields
    rest = range(top.source.key, len(fields))
    order: list[Keyed] = [(field, fields[field].type, directions.get(field, Direction.ASC)) for field in rest]
    kept: dict[Row, int] = {}
    for entries in rows.by(range(top.source.key)).values():
        place = 0
        for row, w in in_order([e for e in entries if e[1] > 0], order):
            inside = min(place + w, top.skip + top.limit) - max(place, top.skip)
            if inside > 0:
                kept[row] = inside
            place += w
    return Rows(kept)
