"""Values of expressions as slots of a program: constants, limits, choices, and decimals of one word or two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from everview.codes import Dictionary, encode_pairs
from everview.errors import EverviewError
from everview.operators.word_program import GREATEST, LEAST, Assembler, NotInWords, is_wide, op, two_words
from everview.scalars.coercion import MOST_DIGITS, bits, is_integer
from everview.scalars.expressions import Call, Literal
from everview.scalars.functions.moments import DAY
from everview.scalars.kinds import INTERVALS, VOID, YEAR_MONTH
from everview.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Field,
    Schema,
    Type,
)

FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # of the years 1 to 9999
TEXTS: Final = (STRING, BINARY)
FLOATS: Final = (FLOAT, DOUBLE)

Handler = Callable[["Slots", Call, list[int], int], int]  # of a call, its arguments' slots, the state of a failure


class Slots(Assembler):
    """An assembler that knows the types of expressions."""

    # -- constants

    def literal(self, literal: Literal) -> int:
        """The value of a literal."""
        type_, value = literal.type, literal.value
        supported(type_)
        if value is None:
            return self.null(2 if is_wide(type_) else 1)
        if type_ in TEXTS:
            return self.at(self.texts([literal]))
        return self.constant(*literal_words(literal))

    def texts(self, literals: list[Literal]) -> int:
        """The place of the first of some texts of one type."""
        return self.interned(literals[0].type.kind, [_bytes_of(one) for one in literals])

    def truth(self, value: bool) -> int:
        return self.constant(int(value))

    # -- integers

    def limited(self, least: int, greatest: int) -> int:
        """The place of two limits."""
        return self.words(max(least, LEAST), min(greatest, GREATEST))

    @property
    def unlimited(self) -> int:
        return self.words(LEAST, GREATEST)

    def range_of(self, type_: Type) -> int:
        """The limits of a type whose values are one word each."""
        if is_integer(type_):
            limit = 1 << (bits(type_) - 1)
            return self.limited(-limit, limit - 1)
        if isinstance(type_, Decimal):
            limit = 10**type_.precision
            return self.limited(1 - limit, limit - 1)
        if type_ == DATE:
            return self.limited(FIRST_DAY, LAST_DAY)
        if type_ == TIME:
            return self.limited(0, DAY - 1)
        if type_ in (TIMESTAMP, TIMESTAMP_NTZ):
            return self.limited(FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1)
        return self.limited(-(1 << 31), (1 << 31) - 1) if type_ == YEAR_MONTH else self.unlimited

    def whole(self, operation: int, a: int, b: int, limits: int | None = None, failure: int = op.FAILED) -> int:
        """The result of an operation on two integers."""
        return self.emit(operation, a, b, self.unlimited if limits is None else limits, failure)

    def within(self, a: int, limits: int, failure: int) -> int:
        """An integer that must be within limits."""
        return self.whole(op.ADD, a, self.constant(0), limits, failure)

    def times(self, a: int, factor: int) -> int:
        return a if factor == 1 else self.whole(op.MULTIPLY, a, self.constant(factor))

    def floored(self, a: int, unit: int) -> int:
        """The quotient by a constant, cut off towards the past."""
        return a if unit == 1 else self.whole(op.FLOOR_DIVIDE, a, self.constant(unit))

    def rest(self, a: int, unit: int) -> int:
        return self.whole(op.FLOOR_MODULO, a, self.constant(unit))

    # -- choosing

    def compared(self, accepted: int, a: int, b: int, type_: Type) -> int:
        """Whether two values of one type are in an accepted order."""
        if type_ in TEXTS and accepted not in (op.EQUAL, op.LESS | op.GREATER):
            raise NotInWords("the order of texts")
        return self.emit(op.COMPARE_WIDE if is_wide(type_) else op.COMPARE, a, b, accepted)

    def select(self, condition: int, a: int, b: int, type_: Type) -> int:
        """One value where a condition holds, another where it does not."""
        first = (op.SELECT, condition, a, b)
        if not is_wide(type_):
            return self.emit(*first)
        return self.emit_both(first, (op.SELECT, condition, a + 1, b + 1))

    def of_two(self, operation: int, a: int, b: int, type_: Type) -> int:
        """One of two values, by their states."""
        if not is_wide(type_):
            return self.emit(operation, a, b)
        return self.emit_both((operation, a, b), (operation, a + 1, b + (1 if operation == op.COALESCE else 0)))

    # -- decimals

    def power(self, digits: int) -> int:
        """Ten to this power, as two slots."""
        if digits >= MOST_DIGITS:
            raise NotInWords(f"a decimal shifted by {digits} digits")
        return self.constant(*two_words(10**digits))

    def float_power(self, digits: int) -> int:
        """The place of ten to this power, as a float; up to 22 digits it is exact."""
        return self.words(*literal_words(Literal(10.0**digits, DOUBLE)))

    def limit_of(self, digits: int) -> int:
        """The place of the limit that a DECIMAL of so many digits stays below."""
        return self.words((10**digits) >> 64, _signed(10**digits & ((1 << 64) - 1)))

    def wide(self, operation: int, a: int, b: int, digits: int = MOST_DIGITS, failure: int = op.FAILED) -> int:
        """The result of an operation on two DECIMALs of two words, of at most so many digits."""
        return self.emit_wide(operation, a, b, self.limit_of(digits), failure)

    def widened(self, a: int, type_: Type) -> int:
        """A DECIMAL, or an integer, as two slots."""
        return a if is_wide(type_) else self.emit_wide(op.WIDEN, a)

    def shifted(self, a: int, digits: int) -> int:
        """A DECIMAL of two slots with so many zeros behind it."""
        return self.wide(op.MULTIPLY_WIDE, a, self.power(digits)) if digits else a

    def fitted(self, a: int, out: Type, failure: int) -> int:
        """A value of two slots as a type that may have one."""
        if is_wide(out):
            return a
        return self.emit(op.NARROW, a, 0, self.range_of(out), failure)

    def rescaled(self, a: int, drop: int, out: Decimal, failure: int) -> int:
        """A DECIMAL of two slots with fewer digits behind the point, halves away from zero, as another DECIMAL."""
        if drop > 0:
            a = self.wide(op.DIVIDE_WIDE, a, self.power(drop), out.precision, failure)
        elif drop < 0:
            a = self.wide(op.MULTIPLY_WIDE, a, self.power(-drop), out.precision, failure)
        else:
            a = self.wide(op.ADD_WIDE, a, self.constant(*two_words(0)), out.precision, failure)
        return self.fitted(a, out, failure)


def supported(type_: Type) -> None:
    """Raise if values of this type are no words that a program computes with."""
    simple = is_integer(type_) or type_ in (BOOLEAN, DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ, *FLOATS, *TEXTS, *INTERVALS)
    if not simple and not isinstance(type_, Decimal):
        raise NotInWords(f"a value of type {type_}")


def literal_words(literal: Literal) -> tuple[int, ...]:
    """The words of a literal of a type that is not interned."""
    if literal.type in INTERVALS:
        return (int(literal.value),)
    if literal.type == VOID:
        raise NotInWords("a value of no type")
    schema = Schema((Field("literal", literal.type, nullable=False),))
    try:
        encoded = encode_pairs(schema, [((literal.value,), 1)], Dictionary())
    except EverviewError as error:
        raise NotInWords(f"the literal {literal}: {error.message}") from error
    return tuple(encoded[0, :-1].tolist())


def _bytes_of(literal: Literal) -> bytes:
    try:
        return literal.value.encode() if literal.type == STRING else bytes(literal.value)
    except UnicodeEncodeError as error:
        raise NotInWords("text that is not valid") from error


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
