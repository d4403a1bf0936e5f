"""Distances between the times of joined rows, as the filters above a join demand them.

``a.ts BETWEEN b.ts - INTERVAL 5 MINUTES AND b.ts + INTERVAL 10 MINUTES`` is two of them: a row of ``b`` is at most ten
minutes before its partner, and a row of ``a`` at most five.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, inputs_of, reads_of
from everview.operators.join import JoinIncremental
from everview.operators.linear import Filter, Project
from everview.operators.where import Where
from everview.plan.conditions import conjuncts
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Call, Cast, Column, Expression, Literal
from everview.scalars.kinds import DAY, DAY_TIME
from everview.types import TIMESTAMP


@dataclass(frozen=True, slots=True)
class Distance:
    """A row of one side of a join is at most so much before its partner, by times of both: ``field + micros >= other``.

    ``places`` are where the field stands in the rows of the stream that is known to be so.
    """

    join: int
    side: int
    field: int
    micros: int
    other: int
    places: tuple[int, ...] = ()


class NotBefore(NamedTuple):
    """``later + micros >= earlier``, of two fields of one row."""

    later: int
    micros: int
    earlier: int


def distances(circuit: Circuit) -> dict[int, tuple[Distance, ...]]:
    """The distances that hold for the rows of each filter above a join."""
    readers = _readers(circuit)
    found: dict[int, tuple[Distance, ...]] = {}
    for node_id, node in enumerate(circuit):
        if isinstance(node, Apply) and isinstance(node.operator, JoinIncremental):
            found.update(_above(circuit, node_id, node.operator, readers))
    return found


def demanded(circuit: Circuit) -> dict[int, tuple[Distance, ...]]:
    """The distances that all results of each join must keep, for nothing reads any others."""
    readers = _readers(circuit)
    found: dict[int, tuple[Distance, ...]] = {}
    for node_id, node in enumerate(circuit):
        if isinstance(node, Apply) and isinstance(node.operator, JoinIncremental):
            for _, known in _above(circuit, node_id, node.operator, readers):
                found[node_id] = known  # the last filter knows what those below it know
    return found


def _readers(circuit: Circuit) -> Mapping[int, list[int]]:
    readers: dict[int, list[int]] = {}
    for node_id, node in enumerate(circuit):
        for other in (*inputs_of(node), *(read.node for read in reads_of(node))):
            readers.setdefault(-1 if other is None else other, []).append(node_id)
    return readers


def _above(
    circuit: Circuit, join: int, operator: JoinIncremental, readers: Mapping[int, list[int]]
) -> Iterator[tuple[int, tuple[Distance, ...]]]:
    """The filters in a row above a join, as long as each is all that reads the one below."""
    picks = list(operator.picks)
    known: dict[tuple[int, int, int], int] = {}
    at = join
    while len(readers.get(at, ())) == 1:
        (at,) = readers[at]
        node = circuit[at]
        if not isinstance(node, Apply) or not isinstance(node.operator, Project | Where | Filter):
            return
        if isinstance(node.operator, Project):
            picks = [picks[field] for field in node.operator.fields]
            continue
        for later, micros, earlier in _conditions(circuit, node.operator):
            (side, field), (other_side, other) = picks[later], picks[earlier]
            if side != other_side:
                key = side, field, other
                known[key] = min(micros, known.get(key, micros))
        yield (
            at,
            tuple(
                Distance(
                    join, side, field, micros, other, tuple(p for p, pick in enumerate(picks) if pick == (side, field))
                )
                for (side, field, other), micros in known.items()
            ),
        )


def _conditions(circuit: Circuit, operator: Where | Filter) -> Iterator[NotBefore]:
    types = operator.source.schema.types
    if isinstance(operator, Where):
        for test in operator.tests:
            if test.other is not None and types[test.field] == types[test.other] == TIMESTAMP:
                yield from _compared(test.how, (test.field, 0), (test.other, 0))
        return
    function = circuit.functions[operator.function].call
    if not isinstance(function, Evaluate):
        return
    arguments: Sequence[int] = range(len(types)) if operator.arguments is None else operator.arguments
    for part in conjuncts(function.expressions[0]):
        if isinstance(part, Call) and len(part.arguments) == 2:
            sides = [_moved(argument) for argument in part.arguments]
            if sides[0] is not None and sides[1] is not None:
                (a, i), (b, j) = sides[0], sides[1]
                yield from _compared(part.function, (arguments[a], i), (arguments[b], j))


def _compared(how: str, a: tuple[int, int], b: tuple[int, int]) -> Iterator[NotBefore]:
    if how in ("greater", "greater_equal", "equal"):
        yield NotBefore(a[0], a[1] - b[1], b[0])
    if how in ("less", "less_equal", "equal"):
        yield NotBefore(b[0], b[1] - a[1], a[0])


def _moved(expression: Expression) -> tuple[int, int] | None:
    """A column of moments and how much is added to it, in microseconds."""
    match expression:
        case Column(index, _, type_) if type_ == TIMESTAMP:
            return index, 0
        case Call(("add" | "add_time_to" | "add_days_to") as how, (moved, constant)) | Call(
            ("subtract" | "subtract_time_to" | "subtract_days_to") as how, (moved, constant)
        ):
            inner, micros = _moved(moved), _micros(constant)
            if inner is None or micros is None:
                return None
            return inner[0], inner[1] + (micros if how.startswith("add") else -micros)
        case _:
            return None


def _micros(constant: Expression) -> int | None:
    while isinstance(constant, Cast):
        constant = constant.argument
    if isinstance(constant, Literal) and constant.type in (DAY, DAY_TIME) and constant.value is not None:
        return int(constant.value)
    return None
