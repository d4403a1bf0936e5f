"""Arithmetic over words: integers of all widths, floats, and decimals of one word or two."""

from __future__ import annotations

from typing import Final

from everview.operators.word_program import NotInWords, is_wide, op, two_words
from everview.scalars.coercion import MOST_DIGITS, bits, is_integer
from everview.scalars.expressions import Call, Literal
from everview.scalars.functions.decimals import NARROW
from everview.scalars.in_words.slots import FLOATS, Handler, Slots
from everview.types import BIGINT, DOUBLE, FLOAT, INTERVALS, Decimal, Type

_WHOLE: Final = {"add": op.ADD, "subtract": op.SUBTRACT, "multiply": op.MULTIPLY}
_WIDE: Final = {"add": op.ADD_WIDE, "subtract": op.SUBTRACT_WIDE, "multiply": op.MULTIPLY_WIDE}
_FLOATING: Final = {
    "add": op.ADD_FLOATS,
    "subtract": op.SUBTRACT_FLOATS,
    "multiply": op.MULTIPLY_FLOATS,
    "divide": op.DIVIDE_FLOATS,
    "modulo": op.MODULO_FLOATS,
}


def _floating(slots: Slots, name: str, out: Type, values: list[int], failure: int) -> int:
    return slots.emit(_FLOATING[name], *values, int(out == FLOAT), failure)


def _decimals(call: Call) -> tuple[Decimal, Decimal, Decimal]:
    a, b, out = call.arguments[0].type, call.arguments[1].type, call.type
    if not (isinstance(a, Decimal) and isinstance(b, Decimal) and isinstance(out, Decimal)):
        raise NotInWords(f"{call.function} of {a} and {b}")
    return a, b, out


def _summed(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    """Sums, differences and products."""
    name, out = call.function.removeprefix("try_"), call.type
    if out in FLOATS:
        return _floating(slots, name, out, values, failure)
    if is_integer(out):
        return slots.whole(_WHOLE[name], values[0], values[1], slots.range_of(out), failure)
    a, b, exact = _decimals(call)
    x, y = values
    scale = a.scale + b.scale
    if name != "multiply":
        scale = max(a.scale, b.scale)
        if exact.words() == 1:
            x, y = slots.times(x, 10 ** (scale - a.scale)), slots.times(y, 10 ** (scale - b.scale))
    if exact.words() == 1:
        return slots.whole(_WHOLE[name], x, y)  # the type has a digit more than any result
    x, y = slots.widened(x, a), slots.widened(y, b)
    if name != "multiply":
        x, y = slots.shifted(x, scale - a.scale), slots.shifted(y, scale - b.scale)
    if scale == exact.scale:
        return slots.wide(_WIDE[name], x, y, exact.precision, failure)
    return slots.rescaled(slots.wide(_WIDE[name], x, y), scale - exact.scale, exact, failure)


def _divide(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    if call.type in FLOATS:
        return _floating(slots, "divide", call.type, values, failure)
    a, b, out = _decimals(call)
    x, y = slots.widened(values[0], a), slots.widened(values[1], b)
    shift = out.scale + b.scale - a.scale
    x, y = slots.shifted(x, max(shift, 0)), slots.shifted(y, max(-shift, 0))
    return slots.fitted(slots.wide(op.DIVIDE_WIDE, x, y, out.precision, failure), out, failure)


def _integral_divide(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    a, b = call.arguments[0].type, call.arguments[1].type
    if is_integer(a):
        return slots.whole(op.DIVIDE, values[0], values[1], slots.range_of(call.type), failure)
    assert isinstance(a, Decimal) and isinstance(b, Decimal)
    scale = max(a.scale, b.scale)
    x = slots.shifted(slots.widened(values[0], a), scale - a.scale)
    y = slots.shifted(slots.widened(values[1], b), scale - b.scale)
    return slots.fitted(slots.wide(op.TRUNCATE_WIDE, x, y, MOST_DIGITS, failure), BIGINT, failure)


def _remainder(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    """The remainder with the sign of the dividend; of `pmod`, one that is negative with the divisor added."""
    positive, out = call.function.removeprefix("try_") == "pmod", call.type
    x, y = values
    if is_integer(out):
        return slots.whole(op.FLOOR_MODULO if positive else op.MODULO, x, y, None, failure)
    if out in FLOATS:
        return _float_remainder(slots, x, y, out, positive, failure)
    a, b, exact = _decimals(call)
    scale = max(a.scale, b.scale)
    if max(a.precision - a.scale, b.precision - b.scale) + scale <= NARROW and scale == exact.scale:
        x, y = slots.times(x, 10 ** (scale - a.scale)), slots.times(y, 10 ** (scale - b.scale))
        return slots.whole(op.FLOOR_MODULO if positive else op.MODULO, x, y, None, failure)
    x = slots.shifted(slots.widened(x, a), scale - a.scale)
    y = slots.shifted(slots.widened(y, b), scale - b.scale)
    whole = slots.wide(op.TRUNCATE_WIDE, x, y, MOST_DIGITS, failure)
    rest = slots.wide(op.SUBTRACT_WIDE, x, slots.wide(op.MULTIPLY_WIDE, whole, y))
    if positive:
        wide, zero = Decimal(MOST_DIGITS, 0), slots.constant(*two_words(0))
        turned = slots.emit(
            op.AND, slots.compared(op.LESS, rest, zero, wide), slots.compared(op.GREATER, y, zero, wide)
        )
        rest = slots.select(turned, slots.wide(op.ADD_WIDE, rest, y), rest, wide)
    return slots.rescaled(rest, scale - exact.scale, exact, failure)


def _float_remainder(slots: Slots, x: int, y: int, out: Type, positive: bool, failure: int) -> int:
    rest = _floating(slots, "modulo", out, [x, y], failure)
    if not positive:
        return rest
    again = _floating(slots, "modulo", out, [_floating(slots, "add", out, [rest, y], failure), y], failure)
    return slots.select(slots.compared(op.LESS, rest, slots.constant(0), out), again, rest, out)


def _minus(slots: Slots, a: int, type_: Type, failure: int) -> int:
    if type_ in FLOATS:
        return slots.emit(op.SUBTRACT_FLOATS, slots.literal(Literal(0.0, type_)), a, 0, failure)
    if is_wide(type_):
        return slots.wide(op.SUBTRACT_WIDE, slots.constant(*two_words(0)), a)
    if is_integer(type_) or isinstance(type_, Decimal) or type_ in INTERVALS:
        return slots.whole(op.SUBTRACT, slots.constant(0), a, slots.range_of(type_), failure)
    raise NotInWords(f"the negative of {type_}")


def _negate(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return _minus(slots, values[0], call.type, failure)


def _abs(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    (a,) = values
    opposite = _minus(slots, a, call.type, failure)
    zero = slots.constant(*two_words(0)) if is_wide(call.type) else slots.constant(0)
    return slots.select(slots.compared(op.LESS, a, zero, call.type), opposite, a, call.type)


def _positive(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return values[0]


def _sign(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    """-1.0, 0.0 or 1.0; NaN, which is above all numbers, and NULL are themselves."""
    (a,) = values
    zero, one, minus, infinity = (slots.literal(Literal(x, DOUBLE)) for x in (0.0, 1.0, -1.0, float("inf")))
    above = slots.select(slots.compared(op.GREATER, a, infinity, DOUBLE), a, one, DOUBLE)
    chosen = slots.select(slots.compared(op.GREATER, a, zero, DOUBLE), above, a, DOUBLE)
    return slots.select(slots.compared(op.LESS, a, zero, DOUBLE), minus, chosen, DOUBLE)


def _sqrt(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.emit(op.ROOT, values[0], values[0], 0, failure)


def _digits(call: Call) -> int:
    """The literal number of digits that a number is rounded to."""
    if len(call.arguments) == 1:
        return 0
    digits = call.arguments[1]
    if not isinstance(digits, Literal) or digits.value is None:
        raise NotInWords("a number of digits that is no literal")
    return digits.value


def _towards(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    """Ceiling and floor."""
    type_, out, a = call.arguments[0].type, call.type, values[0]
    if is_integer(type_):
        return a
    if type_ == DOUBLE and out == BIGINT:
        operation = op.FLOOR_FLOAT if call.function == "floor" else op.CEIL_FLOAT
        return slots.emit(operation, a, 0, slots.unlimited, failure)
    digits = _digits(call)
    if not isinstance(type_, Decimal) or not isinstance(out, Decimal) or digits < 0:
        raise NotInWords(f"{call.function} of {type_} to {digits} digits")
    drop = max(type_.scale - digits, 0)
    if is_wide(type_):
        return slots.rescaled(_wide_towards(slots, a, drop, call.function == "floor"), 0, out, failure)
    if call.function == "floor":
        a = slots.floored(a, 10**drop)
    else:
        zero = slots.constant(0)
        a = slots.whole(op.SUBTRACT, zero, slots.floored(slots.whole(op.SUBTRACT, zero, a), 10**drop))
    return slots.widened(a, type_) if is_wide(out) else a


def _wide_towards(slots: Slots, a: int, drop: int, down: bool) -> int:
    """A DECIMAL of two slots without its last digits, towards one side."""
    if not drop:
        return a
    wide, one = Decimal(MOST_DIGITS, 0), slots.constant(*two_words(1))
    whole = slots.wide(op.TRUNCATE_WIDE, a, slots.power(drop))
    beyond = slots.compared(op.GREATER if down else op.LESS, slots.shifted(whole, drop), a, wide)
    return slots.select(beyond, slots.wide(op.SUBTRACT_WIDE if down else op.ADD_WIDE, whole, one), whole, wide)


def _round(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    type_, out, digits, a = call.arguments[0].type, call.type, _digits(call), values[0]
    if is_integer(type_) and digits >= 0:
        return a
    if is_integer(type_) and digits >= -NARROW:
        unit = slots.constant(10**-digits)
        rounded = slots.whole(op.ROUND_DIVIDE, a, unit)
        return slots.whole(op.MULTIPLY, rounded, unit, slots.range_of(out), failure)
    if type_ == DOUBLE and 0 <= digits <= 15:
        place = slots.float_power(digits)
        whole = slots.emit(op.FLOAT_TO_SCALED, a, place, slots.unlimited, failure)
        return slots.emit(op.SCALED_TO_FLOAT, whole, place)
    if not isinstance(type_, Decimal) or not isinstance(out, Decimal) or digits < 0:
        raise NotInWords(f"{call.function} of {type_} to {digits} digits")
    drop = max(type_.scale - digits, 0)
    if is_wide(type_):
        return slots.rescaled(a, drop, out, failure)
    if drop:
        a = slots.whole(op.ROUND_DIVIDE, a, slots.constant(10**drop))
    return slots.widened(a, type_) if is_wide(out) else a


_BITS: Final = {
    "bit_and": op.BIT_AND,
    "bit_or": op.BIT_OR,
    "bit_xor": op.BIT_XOR,
}
_SHIFTS: Final = {
    "shiftleft": op.SHIFT_LEFT,
    "shiftright": op.SHIFT_RIGHT,
    "shiftrightunsigned": op.SHIFT_RIGHT_UNSIGNED,
}


def _bits(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.whole(_BITS[call.function], *values)


def _bit_not(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.whole(op.BIT_XOR, values[0], slots.constant(-1))


def _shift(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.emit(_SHIFTS[call.function], *values, bits(call.type), failure)


FUNCTIONS: Final[dict[str, Handler]] = {
    "add": _summed,
    "subtract": _summed,
    "multiply": _summed,
    "divide": _divide,
    "integral_divide": _integral_divide,
    "modulo": _remainder,
    "pmod": _remainder,
    "negate": _negate,
    "positive": _positive,
    "abs": _abs,
    "sign": _sign,
    "sqrt": _sqrt,
    "ceil": _towards,
    "floor": _towards,
    "round": _round,
    **dict.fromkeys(_BITS, _bits),
    "bit_not": _bit_not,
    **dict.fromkeys(_SHIFTS, _shift),
}
