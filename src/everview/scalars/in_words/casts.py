"""Casts over words, between numbers, truth values, dates and timestamps."""

from __future__ import annotations

from everview.operators.word_program import NotInWords, is_wide, op, two_words
from everview.scalars.coercion import is_integer
from everview.scalars.functions.moments import DAY
from everview.scalars.in_words.slots import FLOATS, Slots
from everview.scalars.kinds import DAY as DAYS
from everview.scalars.kinds import DAY_TIME, VOID
from everview.types import BOOLEAN, DATE, DOUBLE, FLOAT, INTERVALS, TIME, TIMESTAMP, TIMESTAMP_NTZ, Decimal, Type

_SECOND = 1_000_000
_UNITS = {"INTERVAL YEAR TO MONTH": 1, "INTERVAL DAY": DAY, "INTERVAL DAY TO SECOND": _SECOND}
INSTANTS = (TIMESTAMP, TIMESTAMP_NTZ)
_EXACT_POWERS = 22  # of ten, that a float holds


def cast(slots: Slots, a: int, type_: Type, to: Type, failure: int) -> int:
    """A value as another type; raises `NotInWords` for what is read from text or written to it."""
    if type_ == to:
        return a
    if type_ == VOID:
        return slots.null(2 if is_wide(to) else 1)
    if isinstance(type_, Decimal) and is_wide(type_):
        return _from_wide(slots, a, type_, to, failure)
    if is_integer(type_) or type_ == BOOLEAN:
        return _from_integer(slots, a, type_, to, failure)
    if type_ in FLOATS:
        return _from_float(slots, a, type_, to, failure)
    if isinstance(type_, Decimal):
        return _from_decimal(slots, a, type_, to, failure)
    if type_ in INSTANTS and to in INSTANTS:
        return a
    if type_ in INSTANTS and to == TIME:
        return slots.rest(a, DAY)
    if type_ in INSTANTS:
        return _from_timestamp(slots, a, to, failure)
    if type_ == DATE and to in INSTANTS:
        return slots.times(a, DAY)
    if type_ == TIME and is_integer(to):
        return slots.whole(op.FLOOR_DIVIDE, a, slots.constant(_SECOND), slots.range_of(to), failure)
    if type_ in INTERVALS and is_integer(to):
        return slots.whole(op.DIVIDE, a, slots.constant(_UNITS[type_.sql]), slots.range_of(to), failure)
    if (type_, to) == (DAY_TIME, DAYS):
        return slots.times(slots.whole(op.DIVIDE, a, slots.constant(DAY)), DAY)
    if (type_, to) == (DAYS, DAY_TIME):
        return a
    raise _none(type_, to)


def _none(type_: Type, to: Type) -> NotInWords:
    return NotInWords(f"a cast of {type_} to {to}")


def _is_set(slots: Slots, a: int, type_: Type) -> int:
    return slots.compared(op.LESS | op.GREATER, a, slots.constant(0), type_)


def _from_integer(slots: Slots, a: int, type_: Type, to: Type, failure: int) -> int:
    if is_integer(to):
        return a if type_ == BOOLEAN else slots.within(a, slots.range_of(to), failure)
    if to in FLOATS:
        return slots.emit(op.TO_FLOAT, a, int(to == FLOAT))
    if isinstance(to, Decimal):
        return _scaled(slots, a, type_, 0, to, failure)
    if to == BOOLEAN:
        return _is_set(slots, a, type_)
    if to in INTERVALS and is_integer(type_):
        return slots.whole(op.MULTIPLY, a, slots.constant(_UNITS[to.sql]), slots.range_of(to), failure)
    if to == TIMESTAMP and is_integer(type_):
        return slots.whole(op.MULTIPLY, a, slots.constant(_SECOND), slots.range_of(TIMESTAMP), failure)
    raise _none(type_, to)


def _scaled(slots: Slots, a: int, type_: Type, scale: int, to: Decimal, failure: int) -> int:
    """An integer with digits behind an imagined point as a DECIMAL."""
    drop = scale - to.scale
    if is_wide(to):
        return slots.rescaled(slots.widened(a, type_), drop, to, failure)
    limits = slots.range_of(to)
    if drop > 18:
        raise NotInWords("a decimal shifted by more than 18 digits")
    if drop > 0:
        return slots.whole(op.ROUND_DIVIDE, a, slots.constant(10**drop), limits, failure)
    return slots.whole(op.MULTIPLY, a, slots.constant(10**-drop), limits, failure)


def _from_decimal(slots: Slots, a: int, type_: Decimal, to: Type, failure: int) -> int:
    if is_integer(to):
        return slots.whole(op.DIVIDE, a, slots.constant(10**type_.scale), slots.range_of(to), failure)
    if isinstance(to, Decimal):
        return _scaled(slots, a, type_, type_.scale, to, failure)
    if to in FLOATS:
        double = slots.emit(op.SCALED_TO_FLOAT, a, slots.float_power(type_.scale))
        return slots.emit(op.TO_SINGLE, double) if to == FLOAT else double
    if to == BOOLEAN:
        return _is_set(slots, a, type_)
    if to == TIMESTAMP:
        drop = type_.scale - 6
        limits = slots.range_of(TIMESTAMP)
        if drop > 0:
            return slots.whole(op.DIVIDE, a, slots.constant(10**drop), limits, failure)
        return slots.whole(op.MULTIPLY, a, slots.constant(10**-drop), limits, failure)
    raise _none(type_, to)


def _from_wide(slots: Slots, a: int, type_: Decimal, to: Type, failure: int) -> int:
    if isinstance(to, Decimal):
        return slots.rescaled(a, type_.scale - to.scale, to, failure)
    if is_integer(to):
        whole = slots.wide(op.TRUNCATE_WIDE, a, slots.power(type_.scale)) if type_.scale else a
        return slots.fitted(whole, to, failure)
    if to == BOOLEAN:
        return slots.compared(op.LESS | op.GREATER, a, slots.constant(*two_words(0)), type_)
    if to in FLOATS and type_.scale <= _EXACT_POWERS:
        # One that needs more digits than a float has fails here, and is read from its text instead.
        one_word = slots.emit(op.NARROW, a, 0, slots.unlimited, op.FAILED)
        double = slots.emit(op.SCALED_TO_FLOAT, one_word, slots.float_power(type_.scale))
        return slots.emit(op.TO_SINGLE, double) if to == FLOAT else double
    raise _none(type_, to)


def _from_float(slots: Slots, a: int, type_: Type, to: Type, failure: int) -> int:
    if to == DOUBLE:
        return a
    if to == FLOAT:
        return slots.emit(op.TO_SINGLE, a)
    if is_integer(to):
        return slots.emit(op.FROM_FLOAT, a, 0, slots.range_of(to), failure)
    if to == BOOLEAN:
        return _is_set(slots, a, type_)
    if to == TIMESTAMP:
        micros = slots.emit(op.MULTIPLY_FLOATS, a, slots.emit(op.TO_FLOAT, slots.constant(_SECOND), 0), 0, op.FAILED)
        return slots.emit(op.FROM_FLOAT, micros, 0, slots.range_of(TIMESTAMP), failure)
    if isinstance(to, Decimal) and type_ == DOUBLE and to.scale <= _EXACT_POWERS:
        whole = slots.emit(op.FLOAT_TO_SCALED, a, slots.float_power(to.scale), slots.range_of(to), failure)
        return slots.widened(whole, type_) if is_wide(to) else whole
    raise _none(type_, to)


def _from_timestamp(slots: Slots, a: int, to: Type, failure: int) -> int:
    if to == DATE:
        return slots.floored(a, DAY)
    if is_integer(to):
        return slots.whole(op.FLOOR_DIVIDE, a, slots.constant(_SECOND), slots.range_of(to), failure)
    if isinstance(to, Decimal):
        return _scaled(slots, a, TIMESTAMP, 6, to, failure)
    if to in FLOATS:
        second = slots.emit(op.TO_FLOAT, slots.constant(_SECOND), 0)
        return slots.emit(op.DIVIDE_FLOATS, slots.emit(op.TO_FLOAT, a, 0), second, int(to == FLOAT), op.FAILED)
    raise _none(TIMESTAMP, to)
