"""Lower joins: equalities become keys, the rest of the condition a filter over the pairs.

NULL equals nothing: rows whose key is NULL find no partner, so the side that is only looked up drops them. Where
pairs are filtered, the rows that have a partner are the distinct left (or right) rows of the pairs that are left;
equal rows have the same partners, so a row is known by all its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from everview.circuit.stream import Stream
from everview.lowering.rows import extended, filtered, picked, present
from everview.multiway import Atom, join
from everview.operators.join import LEFT, RIGHT
from everview.operators.operator import Layout
from everview.operators.pad import Pad
from everview.plan.conditions import Key, split
from everview.plan.node import unique
from everview.plan.nodes import Asof, Join, Multiway
from everview.scalars.expressions import Expression
from everview.types import TINYINT, Field, Schema

Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Sides:
    """Both sides of a join with columns for their keys, and the rest of the condition."""

    left: Stream
    right: Stream
    keys: tuple[Key, ...]
    places: tuple[tuple[int, ...], tuple[int, ...]]  # of the keys, on each side
    widths: tuple[int, int]  # of the sides as they were
    rest: Expression | None

    @staticmethod
    def of(left: Stream, right: Stream, condition: Expression | None) -> Sides:
        widths = len(left.schema), len(right.schema)
        parts = split(condition, widths[0])
        left, lefts = _each_once(*extended(left, [key.left for key in parts.keys]))
        right, rights = _each_once(*extended(right, [key.right for key in parts.keys]))
        keys = tuple(
            replace(key, null_safe=key.null_safe and left.schema[a].nullable and right.schema[b].nullable)
            for key, a, b in zip(parts.keys, lefts, rights, strict=True)
        )
        return Sides(left, right, keys, (lefts, rights), widths, parts.rest)

    @property
    def pairs(self) -> Pairs:
        return [(self.left.schema.names[a], self.right.schema.names[b]) for a, b in zip(*self.places, strict=True)]

    def known(self, side: int) -> Stream:
        """A side without the rows whose keys equal nothing."""
        places = [column for column, key in zip(self.places[side], self.keys, strict=True) if not key.null_safe]
        return present((self.left, self.right)[side], places)

    def own(self, side: int) -> Stream:
        """A side without the columns that were added for keys."""
        return picked((self.left, self.right)[side], range(self.widths[side]))


def _each_once(stream: Stream, places: Sequence[int]) -> tuple[Stream, tuple[int, ...]]:
    """The stream with a copy of each column that occurs in several keys, so that all keys are different columns."""
    columns, places_of_copies = list(range(len(stream.schema))), list[int]()
    for place in places:
        if place in places_of_copies:
            columns.append(place)
            place = len(columns) - 1  # noqa: PLW2901
        places_of_copies.append(place)
    return picked(stream, columns), tuple(places_of_copies)


def joined(plan: Join, left: Stream, right: Stream) -> Stream:
    """The stream of a join."""
    sides = Sides.of(left, right, plan.condition)
    if plan.kind in ("semi", "anti"):
        rows = _with_partner(plan, sides, LEFT)
        return rows if plan.kind == "semi" else sides.own(LEFT) - rows
    parts = [_pairs_of(plan, sides)]
    if plan.kind in ("left", "full"):
        parts.append(_padded(plan, sides.own(LEFT) - _with_partner(plan, sides, LEFT), 0))
    if plan.kind in ("right", "full"):
        parts.append(_padded(plan, sides.own(RIGHT) - _with_partner(plan, sides, RIGHT), sides.widths[0]))
    parts = [part.under(plan.schema) for part in parts]
    return parts[0].plus(*parts[1:]) if len(parts) > 1 else parts[0]


def _pairs_of(plan: Join, sides: Sides) -> Stream:
    """All pairs for which the condition holds, the columns of the left and then of the right."""
    # A side whose rows are kept in any case stays as it is: its trace is read for those, too.
    left = sides.left if plan.kind in ("left", "full", "semi", "anti") else sides.known(LEFT)
    right = sides.right if plan.kind == "right" else sides.known(RIGHT)
    names = iter(plan.both.names)
    chosen = [(LEFT, name, next(names)) for name in left.schema.names[: sides.widths[0]]]
    chosen += [(RIGHT, name, next(names)) for name in right.schema.names[: sides.widths[1]]]
    return filtered(left.join(right, sides.pairs, select=chosen), sides.rest)


def _with_partner(plan: Join, sides: Sides, side: int) -> Stream:
    """The rows of one side that have a partner on the other."""
    mine, other = (sides.left, sides.known(RIGHT)) if side == LEFT else (sides.right, sides.known(LEFT))
    width, names = sides.widths[side], (sides.left, sides.right)[side].schema.names
    if sides.rest is None:
        pairs = sides.pairs if side == LEFT else [(b, a) for a, b in sides.pairs]
        matched = mine.semijoin(other, pairs) if pairs else _unless_empty(mine, other)
        return picked(matched, range(width))
    places = range(sides.widths[0]) if side == LEFT else range(sides.widths[0], sum(sides.widths))
    own = sides.own(side)
    partners = picked(_pairs_of(plan, sides), list(places), names[:width])
    return own.semijoin(partners, list(own.schema.names))


def _unless_empty(stream: Stream, other: Stream) -> Stream:
    """All rows, if the other side has any."""
    mine, theirs = everywhere(stream), everywhere(picked(other, [0]))
    name = mine.schema.names[-1]
    return mine.semijoin(theirs, (name, theirs.schema.names[-1]))


def everywhere(stream: Stream) -> Stream:
    """The stream with a column, the last, in which all rows agree: NULL, which costs nothing to compute."""
    names = unique([*stream.schema.names, "all"])
    schema = Schema([*stream.schema.fields, Field(names[-1], TINYINT)])
    fields: tuple[int | None, ...] = (*range(len(stream.schema)), None)
    return stream.circuit.add(Pad(Layout(stream.schema), fields, schema), [stream])


def _padded(plan: Join, rows: Stream, start: int) -> Stream:
    """Rows of one side as results, NULL for the columns of the other."""
    given = rows.schema.fields
    width = len(given)
    own = tuple(column - start if start <= column < start + width else None for column in range(len(plan.schema)))
    schema = Schema(
        Field(f.name, f.type, True if column is None else given[column].nullable)
        for column, f in zip(own, plan.schema.fields, strict=True)
    )
    return rows.circuit.add(Pad(Layout(rows.schema), own, schema), [rows])


def in_force(plan: Asof, left: Stream, right: Stream) -> Stream:
    """The stream of an as-of join, without rows that match nothing: with NULL as time, or as a key never NULL there."""
    right = present(right, _unmet(plan.keys, left, 1) | {plan.at[1]})
    if plan.how == "inner":
        left = present(left, _unmet(plan.keys, right, 0) | {plan.at[0]})
    names = iter(plan.schema.names)
    chosen = [(LEFT, name, next(names)) for name in left.schema.names]
    chosen += [(RIGHT, name, next(names)) for name in right.schema.names]
    lefts, rights = left.schema.names, right.schema.names
    return left.asof_join(
        right,
        [(lefts[a], rights[b]) for a, b in plan.keys],
        at=(lefts[plan.at[0]], rights[plan.at[1]]),
        direction=plan.direction,
        tolerance=plan.tolerance,
        strict=plan.strict,
        how=plan.how,
        select=chosen,
    )


def _unmet(keys: Sequence[tuple[int, int]], other: Stream, side: int) -> set[int]:
    """The key columns of one side (1 is the right) whose partners on the other side are never NULL."""
    return {pair[side] for pair in keys if not other.schema.fields[pair[1 - side]].nullable}


def joined_all(plan: Multiway, streams: Sequence[Stream]) -> Stream:
    """The stream of a multiway join."""
    atoms: list[Atom] = []
    for stream, terms in zip(streams, plan.variables, strict=True):
        joining = () if plan.null_safe else plan.shared
        known = present(stream, [column for column, v in enumerate(terms) if v in joining])
        atoms.append(Atom(known, tuple(None if v is None else f"v{v}" for v in terms)))
    chosen = list(dict.fromkeys(f"v{v}" for v in plan.select))
    joined = join(atoms, select=chosen, order=None if plan.order is None else [f"v{v}" for v in plan.order])
    return picked(joined, [chosen.index(f"v{v}") for v in plan.select], plan.names)
