"""Distances between the times of joined rows, as the filters above a join demand them.

``a.ts BETWEEN b.ts - INTERVAL 5 MINUTES AND b.ts + INTERVAL 10 MINUTES`` is two of them: a row of ``b`` is at most ten
minutes before its partner, and a row of ``a`` at most five.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, inputs_of, reads_of
from everview.lowering.rising import MOMENTS
from everview.operators.join import JoinIncremental
from everview.operators.linear import Filter, Project
from everview.operators.where import Where
from everview.plan.conditions import conjuncts
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Call, Cast, Column, Expression, Literal
from everview.scalars.kinds import DAY, DAY_TIME
from everview.types import BIGINT, INTEGER


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


Spans = Mapping[tuple[int, int, int], int]  # by side, field and the other side's field: how much earlier it may be
_Picks = Sequence[tuple[int, int]]  # of each field of a stream above a join: the side, and the field there


def distances(circuit: Circuit) -> dict[int, tuple[Distance, ...]]:
    """The distances that hold for the rows of each filter above a join."""
    readers = _readers(circuit)
    known: dict[int, tuple[Distance, ...]] = {}
    for node_id, operator in _joins(circuit):
        known.update(_above(circuit, node_id, (node_id, operator.picks), {}, readers))
    return known


def demanded(circuit: Circuit) -> dict[int, tuple[Distance, ...]]:
    """The distances that all results of each join must keep, for nothing reads any others."""
    readers = _readers(circuit)
    known: dict[int, tuple[Distance, ...]] = {}
    for node_id, operator in _joins(circuit):
        spans = _kept(circuit, node_id, operator.picks, readers)
        if spans:
            known[node_id] = _told(node_id, spans, operator.picks)
    return known


def _joins(circuit: Circuit) -> Iterator[tuple[int, JoinIncremental]]:
    for node_id, node in enumerate(circuit):
        if isinstance(node, Apply) and isinstance(node.operator, JoinIncremental):
            yield node_id, node.operator


def _readers(circuit: Circuit) -> Mapping[int, list[int]]:
    readers: dict[int, list[int]] = {}
    for node_id, node in enumerate(circuit):
        for other in (*inputs_of(node), *(read.node for read in reads_of(node))):
            readers.setdefault(-1 if other is None else other, []).append(node_id)
    return readers


def _above(
    circuit: Circuit, below: int, join: tuple[int, _Picks], known: Spans, readers: Mapping[int, list[int]]
) -> Iterator[tuple[int, tuple[Distance, ...]]]:
    """The filters above a join, each with the distances that it and the filters below it demand."""
    node_id, picks = join
    for reader in readers.get(below, ()):
        node = circuit[reader]
        if not isinstance(node, Apply):
            continue
        match node.operator:
            case Project(fields=fields):
                yield from _above(circuit, reader, (node_id, [picks[f] for f in fields]), known, readers)
            case Where() | Filter() as operator:
                spans = _tightest(known, _own(circuit, operator, picks))
                yield reader, _told(node_id, spans, picks)
                yield from _above(circuit, reader, join, spans, readers)
            case _:
                pass


def _kept(circuit: Circuit, stream: int, picks: _Picks, readers: Mapping[int, list[int]]) -> Spans:
    """The distances that every reader of a stream keeps, each as wide as the widest of them."""
    every = [_kept_by(circuit, reader, picks, readers) for reader in readers.get(stream, ())]
    if not every:
        return {}
    return {key: max(spans[key] for spans in every) for key in every[0] if all(key in spans for spans in every)}


def _kept_by(circuit: Circuit, reader: int, picks: _Picks, readers: Mapping[int, list[int]]) -> Spans:
    node = circuit[reader]
    if not isinstance(node, Apply):
        return {}
    match node.operator:
        case Project(fields=fields):
            return _kept(circuit, reader, [picks[f] for f in fields], readers)
        case Where() | Filter() as operator:
            return _tightest(_own(circuit, operator, picks), _kept(circuit, reader, picks, readers))
        case _:
            return {}


def _own(circuit: Circuit, operator: Where | Filter, picks: _Picks) -> Spans:
    """The distances between both sides of a join that a filter demands."""
    spans: dict[tuple[int, int, int], int] = {}
    for later, micros, earlier in _conditions(circuit, operator):
        (side, field), (other_side, other) = picks[later], picks[earlier]
        if side != other_side:
            key = side, field, other
            spans[key] = min(micros, spans.get(key, micros))
    return spans


def _tightest(one: Spans, other: Spans) -> Spans:
    return {key: min(spans[key] for spans in (one, other) if key in spans) for key in (*one, *other)}


def _told(join: int, spans: Spans, picks: _Picks) -> tuple[Distance, ...]:
    def places(side: int, field: int) -> tuple[int, ...]:
        return tuple(place for place, pick in enumerate(picks) if pick == (side, field))

    return tuple(
        Distance(join, side, field, micros, other, places(side, field))
        for (side, field, other), micros in spans.items()
    )


def _conditions(circuit: Circuit, operator: Where | Filter) -> Iterator[NotBefore]:
    types = operator.source.schema.types
    if isinstance(operator, Where):
        for test in operator.tests:
            if test.other is not None and types[test.field] == types[test.other] in MOMENTS:
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
            for apart in _apart(part):
                yield NotBefore(arguments[apart.later], apart.micros, arguments[apart.earlier])


def _compared(how: str, a: tuple[int, int], b: tuple[int, int]) -> Iterator[NotBefore]:
    if how in ("greater", "greater_equal", "equal"):
        yield NotBefore(a[0], a[1] - b[1], b[0])
    if how in ("less", "less_equal", "equal"):
        yield NotBefore(b[0], b[1] - a[1], a[0])


_TURNED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def _apart(condition: Call) -> Iterator[NotBefore]:
    """What a bound on the difference of two moments demands: ``a.ts - b.ts <= INTERVAL 1 HOUR``."""
    how, (difference, bound) = condition.function, condition.arguments
    if not isinstance(bound, Literal | Cast):
        how, difference, bound = _TURNED.get(how, how), bound, difference
    found, most = _difference(difference), _constant(bound)
    if found is None or most is None:
        return
    a, b, unit, slack = found
    if how in ("less", "less_equal", "equal"):
        yield NotBefore(b, most * unit + slack, a)
    if how in ("greater", "greater_equal", "equal"):
        yield NotBefore(a, slack - most * unit, b)


def _difference(expression: Expression) -> tuple[int, int, int, int] | None:
    """Two columns of moments, the microseconds of a unit of their difference, and by how many that is rounded."""
    match expression:
        case Call("subtract_timestamps", (Column(a, _, x), Column(b, _, y))) if x == y in MOMENTS:
            return a, b, 1, 0
        case Call("subtract", (Call(one, (x,)), Call(other, (y,)))) if one == other and one in _UNITS:
            a, b = _moved(_read(x)), _moved(_read(y))
            if a is None or b is None or a[1] or b[1]:
                return None
            unit = _UNITS[one]  # cut off towards 1970: up for one of them, and down for the other
            return a[0], b[0], unit, 2 * unit if unit > 1 else 0
        case Call("integral_divide", (inner, Literal(size))) if isinstance(size, int) and size > 0:
            found = _difference(inner)
            return None if found is None else (*found[:2], found[2] * size, found[3] + found[2] * size)
        case _:
            return None


def _read(expression: Expression) -> Expression:
    """What a moment is cast from, if that has the same microseconds."""
    same = isinstance(expression, Cast) and expression.type in MOMENTS and expression.argument.type in MOMENTS
    return expression.argument if same else expression  # pyright: ignore[reportAttributeAccessIssue]


_UNITS: Final = {"unix_micros": 1, "unix_millis": 1_000, "unix_seconds": 1_000_000, "unix_timestamp": 1_000_000}


def _constant(expression: Expression) -> int | None:
    whole = (
        isinstance(expression, Literal) and isinstance(expression.value, int) and expression.type in (BIGINT, INTEGER)
    )
    return expression.value if whole else constant_micros(expression)  # pyright: ignore[reportAttributeAccessIssue]


def _moved(expression: Expression) -> tuple[int, int] | None:
    """A column of moments and how much is added to it, in microseconds."""
    match expression:
        case Column(index, _, type_) if type_ in MOMENTS:
            return index, 0
        case Call(("add" | "add_time_to" | "add_days_to") as how, (moved, constant)) | Call(
            ("subtract" | "subtract_time_to" | "subtract_days_to") as how, (moved, constant)
        ):
            inner, micros = _moved(moved), constant_micros(constant)
            if inner is None or micros is None:
                return None
            return inner[0], inner[1] + (micros if how.startswith("add") else -micros)
        case _:
            return None


def constant_micros(constant: Expression) -> int | None:
    """The length of an interval of days and time that is written down, in microseconds."""
    while isinstance(constant, Cast):
        constant = constant.argument
    if isinstance(constant, Literal) and constant.type in (DAY, DAY_TIME) and constant.value is not None:
        return int(constant.value)
    return None
