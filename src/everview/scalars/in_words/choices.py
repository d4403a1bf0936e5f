"""Comparisons, conditions and logic over words."""

from __future__ import annotations

import math
from typing import Final

from everview.operators.where import COMPARISONS
from everview.operators.word_program import LEAST, NotInWords, is_wide, op
from everview.scalars.expressions import Call, Column, Expression, Literal
from everview.scalars.in_words.slots import TEXTS, Handler, Slots, literal_words
from everview.types import BOOLEAN, DOUBLE, Type

_NAN: Final = Literal(math.nan, DOUBLE)


def _type_of(arguments: tuple[Expression, ...]) -> Type:
    """The one type that the arguments have."""
    type_ = arguments[0].type
    if any(a.type != type_ for a in arguments):
        raise NotInWords("a comparison of several types")
    return type_


def _compared(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.compared(COMPARISONS[call.function], values[0], values[1], _type_of(call.arguments))


def _null_safe(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    a, b = values
    same = slots.emit(op.COALESCE, slots.compared(op.EQUAL, a, b, _type_of(call.arguments)), slots.truth(False))
    return slots.emit(op.OR, same, slots.emit(op.AND, slots.emit(op.IS_NULL, a), slots.emit(op.IS_NULL, b)))


def is_searched(member: Expression) -> bool:
    """Whether a member of IN is one of the constants that are looked through at once."""
    return isinstance(member, Literal) and member.value is not None and not is_wide(member.type)


def _in(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    """Whether a value is one of several."""
    type_ = _type_of(call.arguments)
    first, *members = call.arguments
    value = slots.literal(first) if isinstance(first, Literal) else values[0]
    constants = [member for member in members if isinstance(member, Literal) and is_searched(member)]
    rest = [(e, slot) for e, slot in zip(members, values[1:], strict=True) if not is_searched(e)]
    among = _among(slots, value, constants, type_) if constants else slots.truth(False)
    for _, slot in rest:
        among = slots.emit(op.OR, among, slots.compared(op.EQUAL, value, slot, type_))
    for e, slot in rest:
        if not isinstance(e, (Literal, Column)):  # one that fails, fails even if another is equal
            among = slots.emit(op.GUARD, among, slot)
    return among


def _among(slots: Slots, value: int, constants: list[Literal], type_: Type) -> int:
    if type_ in TEXTS:
        place = slots.texts(constants)
    else:
        place = slots.words(*sorted(word for one in constants for word in literal_words(one)))
    return slots.among(value, place, len(constants))


def _and_or(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    verdict = values[0]
    for other in values[1:]:
        verdict = slots.emit(op.AND if call.function == "and" else op.OR, verdict, other)
    return verdict


def _negated(slots: Slots, a: int) -> int:
    return slots.whole(op.BIT_XOR, a, slots.truth(True))


def _not(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return _negated(slots, values[0])


def _is_null(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.emit(op.IS_NULL, values[0])


def _is_not_null(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return _negated(slots, slots.emit(op.IS_NULL, values[0]))


def _case(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    _type_of((*call.arguments[1::2], call.arguments[-1]))
    chosen = values[-1]
    for condition, value in zip(values[-3::-2], values[-2::-2], strict=True):
        chosen = slots.select(condition, value, chosen, call.type)
    return chosen


def _coalesce(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    _type_of(call.arguments)
    chosen = values[-1]
    for value in reversed(values[:-1]):
        chosen = slots.of_two(op.COALESCE, value, chosen, call.type)
    return chosen


def _extreme(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    """The greatest or least of several values; NULL is passed over."""
    type_ = _type_of(call.arguments)
    wins = op.GREATER | op.EQUAL if call.function == "greatest" else op.LESS | op.EQUAL
    best = values[0]
    for other in values[1:]:
        better = slots.compared(wins, best, other, type_)
        best = slots.select(slots.emit(op.COALESCE, better, slots.emit(op.IS_NULL, other)), best, other, type_)
    return best


def _is_nan(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    same = slots.compared(op.EQUAL, values[0], slots.literal(_NAN), DOUBLE)
    return slots.emit(op.COALESCE, same, slots.truth(False))


def _nanvl(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    a, b = values
    missing = slots.compared(op.EQUAL, a, slots.literal(_NAN), DOUBLE)
    return slots.emit(op.GUARD, slots.select(missing, b, a, call.type), b)


def _is_one_row(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    """True; a count above one fails."""
    counted = slots.within(values[0], slots.limited(LEAST, 1), failure)
    return slots.compared(op.LESS | op.EQUAL, counted, slots.constant(1), BOOLEAN)


FUNCTIONS: Final[dict[str, Handler]] = {
    **dict.fromkeys(COMPARISONS, _compared),
    "null_safe_equal": _null_safe,
    "in": _in,
    "and": _and_or,
    "or": _and_or,
    "not": _not,
    "is_null": _is_null,
    "is_not_null": _is_not_null,
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
    "greatest": _extreme,
    "least": _extreme,
    "is_nan": _is_nan,
    "nanvl": _nanvl,
    "is_one_row": _is_one_row,
}
