"""The circuits of as-of joins: by the times that rows carry, and by the ticks in which they arrive."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal as Number
from typing import TYPE_CHECKING

from everview.errors import CircuitError, HistoryWarning, SchemaError
from everview.operators.asof import Asof, Toward
from everview.operators.billed import Billed
from everview.operators.index import Direction, Index
from everview.operators.join import LEFT, RIGHT, JoinTrace, Pick
from everview.operators.linear import Project
from everview.operators.operator import Layout
from everview.types import DATE, DURATIONS, INTEGERS, TIME, TIMESTAMP, TIMESTAMP_NTZ, Decimal, Field, Schema, Type

if TYPE_CHECKING:
    from everview.circuit.stream import Stream

Tolerance = int | timedelta | Number
Chosen = Sequence[tuple[int, str, str]]  # (side, column, new name) of every column of the result
Pairs = Sequence[tuple[str, str]]

_GREATEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AsofChoice:
    """The options of `Stream.asof_join` as a user writes them: direction, tolerance, strictness, kind of join."""

    direction: str
    tolerance: Tolerance | None
    strict: bool
    how: str


def asof_joined(
    left: Stream, right: Stream, on: Pairs, at: tuple[str, str], chosen: Chosen, asked: AsofChoice
) -> Stream:
    """Each left row with the right row in force at its time; both sides have keys and times of the same words."""
    _at_the_root(left, "an as-of join")
    if asked.direction not in [toward.value for toward in Toward]:
        raise CircuitError(f"there is no direction {asked.direction!r}", hint='"backward", "forward" or "nearest"')
    if asked.how not in ("inner", "left"):
        raise CircuitError(f"an as-of join is not {asked.how!r}", hint='"inner", or "left" to keep rows without match')
    toward, outer = Toward(asked.direction), asked.how == "left"
    when = left.schema[at[0]]
    if toward is Toward.NEAREST and _units(when.type) is None:
        raise SchemaError(f"of {when} it cannot be said what is nearest", hint="use a time that can be subtracted")
    lefts = _timed(left, [a for a, _ in on], at[0], by_value=False)
    rights = _timed(right, [b for _, b in on], at[1], by_value=True)
    sides = (lefts, rights)
    picks = tuple((side, sides[side].schema.index(name)) for side, name, _ in chosen)
    chosen_fields = [sides[side].schema.fields[field] for side, field in picks]
    schema = Schema(
        Field(new, f.type, f.nullable or (outer and side == RIGHT))
        for f, (side, _, new) in zip(chosen_fields, chosen, strict=True)
    )
    reach = None if asked.tolerance is None else _words(when, asked.tolerance)
    operator = Asof(lefts.layout, rights.layout, picks, schema, toward, asked.strict, reach, outer)
    return left.circuit.add(operator, [lefts, rights])


def _timed(stream: Stream, key: Sequence[str], time: str, *, by_value: bool) -> Stream:
    """Index a side by its key, then by time; ``by_value`` orders the remaining columns by their values."""
    first = [stream.schema.index(name) for name in (*key, time)]
    if len(set(first)) < len(first):
        raise SchemaError(f'"{time}" is a key of the as-of join and its time, too', hint="join on the other columns")
    fields = (*first, *(f for f in range(len(stream.schema)) if f not in first))
    order = tuple((i, Direction.ASC) for i in range(len(first), len(fields))) if by_value else ()
    return stream.circuit.add(Index(Layout(stream.schema), fields, len(key), order), [stream])


def _units(type_: Type) -> int | timedelta | None:
    """The words in one unit of a number, or the time in one word of a time; None where words have no distance."""
    if isinstance(type_, Decimal):
        return 10**type_.scale
    if type_ in INTEGERS:
        return 1
    if type_ in (TIMESTAMP, TIMESTAMP_NTZ, TIME, *DURATIONS):
        return timedelta(microseconds=1)
    return timedelta(days=1) if type_ == DATE else None


def _words(time: Field, tolerance: Tolerance) -> int:
    """A tolerance in words, rounded down: distances are whole words."""
    unit = _units(time.type)
    if isinstance(unit, timedelta) and isinstance(tolerance, timedelta):
        words = tolerance // unit
    elif isinstance(unit, timedelta) and isinstance(tolerance, int):
        words = tolerance
    elif isinstance(unit, int) and isinstance(tolerance, int | Number):
        try:
            words = int(tolerance * unit // 1)
        except (ArithmeticError, ValueError):  # NaN, or far beyond all distances
            raise SchemaError(f"{tolerance!r} is no tolerance for {time}", hint="give a number") from None
    else:
        hint = "an int in units of the column; for a DATE or TIMESTAMP a timedelta, for a DECIMAL a Decimal"
        raise SchemaError(f"{tolerance!r} is no tolerance for {time}", hint=hint)
    if words < 0:
        raise CircuitError(f"a tolerance of {tolerance} is negative", hint="it is the largest distance that matches")
    return min(words, _GREATEST)


# -- as of now

_HISTORY = (
    "what as_of_now gives depends on the ticks in which rows come: taking a row back subtracts it with what the other "
    "side says at that moment, not with what it was given. With remember=True it takes back what it was given; an "
    "asof_join by the times of the rows depends on no history"
)


def joined_now(left: Stream, right: Stream, picks: tuple[Pick, ...], schema: Schema) -> Stream:
    """This tick's rows of the left with the right as it is after the tick; both are indexed by their keys."""
    _at_the_root(left, "as_of_now")
    warnings.warn(_HISTORY, HistoryWarning, stacklevel=4)
    return left.circuit.add(JoinTrace(left.layout, right.layout, picks, schema), [left], [right.trace()])


def billed_now(left: Stream, right: Stream, picks: tuple[Pick, ...], schema: Schema) -> Stream:
    """`joined_now` that remembers what each left row was given, until the row is taken back."""
    _at_the_root(left, "as_of_now")
    circuit, width = left.circuit, len(left.schema)
    fields = tuple(dict.fromkeys(field for side, field in picks if side == RIGHT))
    whole = Schema((*left.schema.fields, *_apart(left.schema, [right.schema.fields[f] for f in fields])))
    before, again = circuit.feedback(whole)
    order = tuple((i, Direction.ASC) for i in range(width, len(whole)))
    past = circuit.add(Index(before.layout, tuple(range(len(whole))), left.layout.key, order), [before]).trace()
    rows = left.trace()
    operator = Billed(left.layout, right.layout, fields, past.layout)
    billed = circuit.add(operator, [rows.stream], [rows.delay(), right.trace(), past])
    again(billed)
    places = tuple(field if side == LEFT else width + fields.index(field) for side, field in picks)
    return circuit.add(Project(billed.layout, places, schema), [billed])


def _apart(schema: Schema, fields: Sequence[Field]) -> list[Field]:
    """Rename fields so that none has the name of a field of the schema."""
    taken, renamed = set(schema.names), list[Field]()
    for field in fields:
        name = field.name
        while name in taken:
            name += "'"
        taken.add(name)
        renamed.append(Field(name, field.type, field.nullable))
    return renamed


def _at_the_root(stream: Stream, what: str) -> None:
    if stream.circuit.parent is not None:
        raise CircuitError(f"{what} is inside a child", hint="join at the root; its result may enter")
