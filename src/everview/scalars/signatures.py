"""What each scalar function takes and gives: the number of arguments, their types after coercion, the result's type.

A rule takes the arguments as written and returns them as the function takes them, with the type of the result and
whether it may be NULL although no argument is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from everview.errors import TypeMismatch
from everview.scalars import coercion
from everview.scalars.coercion import (
    FRACTIONS,
    MOST_DIGITS,
    bounded,
    coerced,
    common_of,
    decimal_of,
    implicit,
    is_integer,
    is_number,
    mismatch,
)
from everview.scalars.expressions import Call, Cast, Expression, Literal
from everview.scalars.kinds import DAY, DAY_TIME, INTERVALS, VOID, YEAR_MONTH
from everview.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Struct,
    Type,
)

Arguments = tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Typed:
    """A call after its types are known; `nullable` None: NULL where any argument is."""

    arguments: Arguments
    type: Type
    nullable: bool | None = None


Rule = Callable[[str, Arguments], Typed | Expression]


@dataclass(frozen=True, slots=True)
class Signature:
    """How many arguments, and the rule of their types."""

    least: int
    most: int | None  # None: any number
    rule: Rule


# -- Rules


def _takes(*wanted: Type, gives: Type, nullable: bool | None = None) -> Rule:
    """Arguments of given types; the last stands for all further ones."""

    def rule(name: str, arguments: Arguments) -> Typed:
        kinds = (*wanted, *(wanted[-1:] * (len(arguments) - len(wanted))))
        found = tuple(implicit(a, t, name) for a, t in zip(arguments, kinds, strict=False))
        return Typed(found, gives, nullable)

    return rule


def _operand(name: str, argument: Expression) -> Expression:
    """A number: text and NULL are taken for DOUBLE."""
    if argument.type in (VOID, STRING):
        return coerced(argument, DOUBLE)
    if not is_number(argument.type):
        raise mismatch(name, (argument.type,), "it takes a number")
    return argument


def _number_pair(name: str, a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """Two numbers as one type, or as two DECIMALs of their own."""
    if a.type == b.type == VOID:
        return coerced(a, DOUBLE), coerced(b, DOUBLE)
    met = coercion.common(a.type, b.type)
    if met == STRING:
        met = DOUBLE
    if met is None or not is_number(met):
        raise mismatch(name, (a.type, b.type))
    if isinstance(met, Decimal):
        return _as_decimal(a, met), _as_decimal(b, met)
    return coerced(a, met), coerced(b, met)


def _as_decimal(found: Expression, met: Decimal) -> Expression:
    return coerced(found, met if found.type == VOID else decimal_of(found))


def _sum_type(a: Decimal, b: Decimal) -> Decimal:
    scale = max(a.scale, b.scale)
    return bounded(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)


def _product_type(a: Decimal, b: Decimal) -> Decimal:
    return bounded(a.precision + b.precision + 1, a.scale + b.scale)


def _quotient_type(a: Decimal, b: Decimal) -> Decimal:
    scale = max(6, a.scale + b.precision + 1)
    return bounded(a.precision - a.scale + b.scale + scale, scale)


def _remainder_type(a: Decimal, b: Decimal) -> Decimal:
    scale = max(a.scale, b.scale)
    return bounded(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def _arithmetic(of_decimals: Callable[[Decimal, Decimal], Decimal]) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        a, b = _number_pair(name, *arguments)
        if isinstance(a.type, Decimal) and isinstance(b.type, Decimal):
            return Typed((a, b), of_decimals(a.type, b.type))
        return Typed((a, b), a.type)

    return rule


def _attempt(rule: Rule) -> Rule:
    """The same types, but NULL where the function fails."""

    def attempted(name: str, arguments: Arguments) -> Typed | Expression:
        found = rule(name, arguments)
        if isinstance(found, Typed):
            return replace(found, nullable=True)
        assert isinstance(found, Call)
        return replace(found, function=f"try_{found.function}", nullable=True)

    return attempted


_numbers_sum: Final = _arithmetic(_sum_type)


def _add(name: str, arguments: Arguments) -> Typed | Expression:
    a, b = arguments
    if a.type in INTERVALS and b.type not in INTERVALS and b.type != VOID:
        a, b = b, a
    if b.type == DATE and is_integer(a.type):
        a, b = b, a
    return _moved(name, a, b) or _numbers_sum(name, (a, b))


def _subtract(name: str, arguments: Arguments) -> Typed | Expression:
    a, b = arguments
    moments = (DATE, TIMESTAMP)
    if a.type in moments and b.type in (*moments, STRING):
        if a.type == DATE and b.type in (DATE, STRING):
            return Call("subtract_dates", (a, implicit(b, DATE, name)), DAY, a.nullable or b.nullable)
        pair = (coerced(a, TIMESTAMP), implicit(b, TIMESTAMP, name))
        return Call("subtract_timestamps", pair, DAY_TIME, a.nullable or b.nullable)
    found = _moved(name, a, b)
    if found is not None:
        return replace(
            found, function=found.function.replace("add", "subtract", 1).replace("date_subtract", "date_sub")
        )
    return _numbers_sum(name, (a, b))


def _moved(name: str, a: Expression, b: Expression) -> Call | None:
    """A moment or an interval, plus an interval; a date plus days."""
    nullable = a.nullable or b.nullable
    if a.type == DATE and (is_integer(b.type) or b.type in (VOID, STRING)):
        return Call("date_add", (a, implicit(b, INTEGER, name)), DATE, nullable)
    if b.type not in INTERVALS:
        return None
    if a.type in (STRING, VOID):
        a = coerced(a, TIMESTAMP)
    if a.type in INTERVALS:
        met = coercion.common(a.type, b.type)
        if met is None:
            raise mismatch(name, (a.type, b.type))
        return Call("add_intervals", (coerced(a, met), coerced(b, met)), met, nullable)
    if a.type not in (DATE, TIMESTAMP):
        raise mismatch(name, (a.type, b.type))
    if b.type == YEAR_MONTH:
        return Call("add_months_to", (a, b), a.type, nullable)
    if a.type == DATE and b.type == DAY:
        return Call("add_days_to", (a, b), DATE, nullable)
    return Call("add_time_to", (coerced(a, TIMESTAMP), coerced(b, DAY_TIME)), TIMESTAMP, nullable)


def _multiply(name: str, arguments: Arguments) -> Typed | Expression:
    a, b = arguments
    if a.type in INTERVALS:
        a, b = b, a
    if b.type in INTERVALS:
        if not is_integer(a.type):
            raise mismatch(name, (a.type, b.type), "an interval is multiplied by an integer")
        of = DAY_TIME if b.type == DAY else b.type
        return Call("scale_interval", (coerced(a, BIGINT), coerced(b, of)), of, a.nullable or b.nullable)
    return _arithmetic(_product_type)(name, arguments)


def _divide(name: str, arguments: Arguments) -> Typed:
    a, b = _number_pair(name, *arguments)
    if isinstance(a.type, Decimal) and isinstance(b.type, Decimal):
        return Typed((a, b), _quotient_type(a.type, b.type))
    return Typed((coerced(a, DOUBLE), coerced(b, DOUBLE)), DOUBLE)


def _integral_divide(name: str, arguments: Arguments) -> Typed:
    a, b = _number_pair(name, *arguments)
    if a.type in FRACTIONS:
        if STRING not in (arguments[0].type, arguments[1].type) and VOID not in (arguments[0].type, arguments[1].type):
            raise mismatch(name, (arguments[0].type, arguments[1].type), "it takes integers or DECIMALs")
        a, b = (coerced(x, BIGINT) for x in arguments)
    if not isinstance(a.type, Decimal):
        a, b = coerced(a, BIGINT), coerced(b, BIGINT)
    return Typed((a, b), BIGINT)


def _same_number(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    if a.type in INTERVALS:
        return Typed((a,), a.type)
    a = _operand(name, a)
    return Typed((a,), a.type)


def _compared(name: str, arguments: Arguments) -> Typed:
    found = _alike(name, arguments)
    return Typed(found, BOOLEAN)


def _null_safe(name: str, arguments: Arguments) -> Typed:
    return replace(_compared(name, arguments), nullable=False)


def _alike(name: str, arguments: Arguments) -> Arguments:
    """All as the type they have in common, in which integer literals are as narrow as their digits."""
    of = common_of(arguments, name)
    if isinstance(of, Decimal) and len(arguments) == 2:
        kinds = [decimal_of(a) for a in arguments if a.type != VOID]
        of = coercion.wider(kinds[0], kinds[-1])
    return tuple(coerced(a, of) for a in arguments)


def _either(name: str, arguments: Arguments) -> Typed:
    found = _widest(name, arguments)
    return Typed(found, found[0].type)


def _widest(name: str, arguments: Arguments) -> Arguments:
    of = common_of(arguments, name)
    return tuple(coerced(a, of) for a in arguments)


def _least(name: str, arguments: Arguments) -> Typed:
    found = _widest(name, arguments)
    return Typed(found, found[0].type, all(a.nullable for a in found))


def _nullif(name: str, arguments: Arguments) -> Expression:
    """The value keeps its own type; only the comparison meets in another."""
    test = Call("equal", _alike(name, arguments), BOOLEAN, any(a.nullable for a in arguments))
    value = arguments[0]
    return Call("if", (test, Literal(None, value.type), value), value.type, True)


def _if(name: str, arguments: Arguments) -> Typed:
    condition = implicit(arguments[0], BOOLEAN, name)
    found = _widest(name, arguments[1:])
    return Typed((condition, *found), found[0].type, any(a.nullable for a in found))


def _case(name: str, arguments: Arguments) -> Typed:
    """``case(condition, value, …, otherwise)``; without an otherwise it is NULL."""
    if len(arguments) % 2 == 0:
        arguments = (*arguments, Literal(None, VOID))
    conditions = [implicit(c, BOOLEAN, name) for c in arguments[:-1:2]]
    values = _widest(name, (*arguments[1::2], arguments[-1]))
    found: list[Expression] = []
    for condition, value in zip(conditions, values[:-1], strict=True):
        found += [condition, value]
    return Typed((*found, values[-1]), values[-1].type, any(v.nullable for v in values))


def _nvl2(name: str, arguments: Arguments) -> Expression:
    tested, a, b = arguments
    test = Call("is_not_null", (tested,), BOOLEAN, False)
    found = _if(name, (test, a, b))
    return Call("if", found.arguments, found.type, bool(found.nullable))


def _double(name: str, arguments: Arguments) -> Typed:
    return Typed(tuple(implicit(a, DOUBLE, name) for a in arguments), DOUBLE)


def _logarithm(name: str, arguments: Arguments) -> Typed:
    return replace(_double(name, arguments), nullable=True)


def _log(name: str, arguments: Arguments) -> Typed | Expression:
    if len(arguments) == 1:
        return Call("ln", _double(name, arguments).arguments, DOUBLE, True)
    return _logarithm(name, arguments)


def _scale_of(name: str, argument: Expression) -> int:
    argument = coerced(argument, INTEGER) if isinstance(argument, Literal) else argument
    negative = isinstance(argument, Call) and argument.function == "negate"
    inner = argument.arguments[0] if isinstance(argument, Call) and negative else argument
    if not isinstance(inner, Literal) or not is_integer(inner.type) or inner.value is None:
        raise TypeMismatch(f"the scale of {name} is not a literal", hint=f"write {name}(x, 2)")
    return -inner.value if negative else inner.value


def _rounded(name: str, arguments: Arguments) -> Typed:
    a = _operand(name, arguments[0])
    scale = _scale_of(name, arguments[1]) if len(arguments) == 2 else 0
    of = a.type
    if isinstance(of, Decimal):
        whole = of.precision - of.scale + 1
        if scale < 0:
            of = Decimal(min(max(whole, -scale + 1), MOST_DIGITS), 0)
        else:
            after = min(of.scale, scale)
            of = Decimal(min(whole + after, MOST_DIGITS), after)
    return Typed((a, Literal(scale, INTEGER)), of)


def _ceiling(name: str, arguments: Arguments) -> Typed:
    a = _operand(name, arguments[0])
    if len(arguments) == 2:
        a = a if isinstance(a.type, Decimal) or not is_integer(a.type) else coerced(a, decimal_of(a))
        if a.type in FRACTIONS:
            a = coerced(a, Decimal(30, 15) if a.type == DOUBLE else Decimal(14, 7))
        return _rounded(name, (a, arguments[1]))
    if isinstance(a.type, Decimal):
        return Typed((a,), _rounded(name, (a,)).type)
    return Typed((coerced(a, BIGINT) if is_integer(a.type) else coerced(a, DOUBLE),), BIGINT)


def _concat(name: str, arguments: Arguments) -> Typed | Expression:
    if arguments and all(a.type == BINARY for a in arguments):
        return Typed(arguments, BINARY)
    if any(isinstance(a.type, Array) for a in arguments):
        return _either(name, arguments)
    return _takes(STRING, gives=STRING)(name, tuple(_text(a) for a in arguments)) if arguments else Typed((), STRING)


def _text(argument: Expression) -> Expression:
    return Cast(argument, STRING) if argument.type == BINARY else argument


def _concat_ws(name: str, arguments: Arguments) -> Typed:
    words = [implicit(a, Array(STRING) if isinstance(a.type, Array) else STRING, name) for a in arguments[1:]]
    separator = implicit(arguments[0], STRING, name)
    return Typed((separator, *words), STRING, separator.nullable)


def _text_or_bytes(gives: Type | None) -> Rule:
    """BINARY as it is, all else as text; gives the same, or a given type."""

    def rule(name: str, arguments: Arguments) -> Typed:
        a = arguments[0] if arguments[0].type == BINARY else implicit(arguments[0], STRING, name)
        return Typed((a, *arguments[1:]), gives or a.type)

    return rule


def _part(name: str, arguments: Arguments) -> Typed:
    first = arguments[0] if arguments[0].type == BINARY else implicit(arguments[0], STRING, name)
    return Typed((first, *(implicit(a, INTEGER, name) for a in arguments[1:])), first.type)


def _bytes(gives: Type, nullable: bool | None = None) -> Rule:
    """Bytes, or text for its UTF-8 bytes."""

    def rule(name: str, arguments: Arguments) -> Typed:
        first = arguments[0] if arguments[0].type == BINARY else implicit(arguments[0], STRING, name)
        return Typed((first, *(implicit(a, INTEGER, name) for a in arguments[1:])), gives, nullable)

    return rule


def _hex(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    if a.type != BINARY:
        a = implicit(a, BIGINT if is_integer(a.type) else STRING, name)
    return Typed((a,), STRING)


def _reverse(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    a = a if isinstance(a.type, Array) else implicit(a, STRING, name)
    return Typed((a,), a.type)


def _date_part(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    return Typed((implicit(a, DATE, name),), INTEGER)


def _last_parts(name: str, arguments: Arguments) -> Typed:
    return Typed((implicit(arguments[0], TIMESTAMP, name),), Decimal(8, 6) if name == "second_fraction" else INTEGER)


def _read_time(of: Type) -> Rule:
    """``to_date(text)`` is a cast; with a format, the text is read by it. A number is a moment, in seconds."""

    def rule(name: str, arguments: Arguments) -> Typed | Expression:
        if len(arguments) == 1 and of == TIMESTAMP and is_number(arguments[0].type):
            return coerced(arguments[0], of)
        if len(arguments) == 1 or arguments[0].type in (DATE, TIMESTAMP):
            return implicit(arguments[0], of, name)
        return Typed(tuple(implicit(a, STRING, name) for a in arguments), of)

    return rule


def _try_read_time(name: str, arguments: Arguments) -> Typed | Expression:
    """``try_to_timestamp``: NULL where ``to_timestamp`` fails."""
    found = _read_time(TIMESTAMP)(name, arguments)
    if isinstance(found, Typed):
        return replace(found, nullable=True)
    return replace(found, try_=True) if isinstance(found, Cast) else found


def _unix(name: str, arguments: Arguments) -> Typed:
    moment = arguments[0]
    if moment.type in (DATE, TIMESTAMP):
        return Typed((coerced(moment, TIMESTAMP),), BIGINT)
    pattern = arguments[1] if len(arguments) == 2 else Literal("yyyy-MM-dd HH:mm:ss", STRING)
    return Typed((implicit(moment, STRING, name), implicit(pattern, STRING, name)), BIGINT)


def _from_unix(name: str, arguments: Arguments) -> Typed:
    pattern = arguments[1] if len(arguments) == 2 else Literal("yyyy-MM-dd HH:mm:ss", STRING)
    return Typed((implicit(arguments[0], BIGINT, name), implicit(pattern, STRING, name)), STRING)


def _array(name: str, arguments: Arguments) -> Typed:
    found = _widest(name, arguments) if arguments else ()
    return Typed(found, Array(found[0].type if found else VOID), False)


def _contained(name: str, arguments: Arguments) -> Typed:
    array, value = arguments
    of = _element(name, array)
    met = coercion.tightest(of, value.type)
    if met is None:
        raise mismatch(name, (array.type, value.type))
    return Typed((coerced(array, Array(met)), coerced(value, met)), BOOLEAN, True)


def _element(name: str, array: Expression) -> Type:
    if not isinstance(array.type, Array):
        raise mismatch(name, (array.type,), "it takes an array")
    return array.type.element


def _element_at(name: str, arguments: Arguments) -> Typed:
    array, index = arguments
    return Typed((array, _narrowed(index, name)), _element(name, array), True)


def _over_array(gives: Type | None = None, nullable: bool | None = None) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        if arguments[0].type == VOID:
            arguments = (coerced(arguments[0], Array(VOID)), *arguments[1:])
        _element(name, arguments[0])
        rest = (implicit(a, BOOLEAN, name) for a in arguments[1:])
        return Typed((arguments[0], *rest), gives or arguments[0].type, nullable)

    return rule


def _flat(name: str, arguments: Arguments) -> Typed:
    inner = _element(name, arguments[0])
    if not isinstance(inner, Array):
        raise mismatch(name, (arguments[0].type,), "it takes an array of arrays")
    return Typed(arguments, inner, True)


def _member(name: str, arguments: Arguments) -> Typed:
    """``get_field(struct, 'name')``."""
    value, field = arguments
    if not isinstance(value.type, Struct) or not isinstance(field, Literal):
        raise mismatch(name, (value.type,), "it takes a struct and the name of a field")
    found = next((f for f in value.type.fields if f.name.lower() == str(field.value).lower()), None)
    if found is None:
        names = ", ".join(f.name for f in value.type.fields)
        raise TypeMismatch(f"{value.type} has no field {field.value!r}", hint=f"its fields are {names}")
    return Typed((value, Literal(found.name, STRING)), found.type, value.nullable or found.nullable)


def _struct(name: str, arguments: Arguments) -> Typed:
    """``named_struct('name', value, …)``."""
    names, values = arguments[::2], arguments[1::2]
    if len(names) != len(values) or not all(isinstance(n, Literal) and n.type == STRING for n in names):
        raise mismatch(name, tuple(a.type for a in arguments), "it takes names, written down, and values in turn")
    fields = (Field(n.value, v.type, v.nullable) for n, v in zip(names, values, strict=True) if isinstance(n, Literal))
    return Typed(arguments, Struct(fields), False)


def _bits(name: str, arguments: Arguments) -> Typed:
    found = _widest(name, arguments)
    if not is_integer(found[0].type):
        raise mismatch(name, tuple(a.type for a in arguments), "it takes integers")
    return Typed(found, found[0].type)


def _shift(name: str, arguments: Arguments) -> Typed:
    value, by = arguments
    value = implicit(value, INTEGER, name) if value.type != BIGINT else value
    return Typed((value, _narrowed(by, name)), value.type)


def _narrowed(value: Expression, name: str) -> Expression:
    """An INTEGER; a BIGINT that is none fails when it is met."""
    return coerced(value, INTEGER) if value.type == BIGINT else implicit(value, INTEGER, name)


def _digest(of: Type) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        return Typed(arguments, of, False)

    return rule


def _nanvl(name: str, arguments: Arguments) -> Typed:
    of = FLOAT if all(a.type == FLOAT for a in arguments) else DOUBLE
    return Typed(tuple(implicit(a, of, name) for a in arguments), of)


def _is_nan(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    return Typed((a if a.type in FRACTIONS else implicit(a, DOUBLE, name),), BOOLEAN, False)


def _any_type(gives: Type, nullable: bool | None) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        return Typed(arguments, gives, nullable)

    return rule


def _format_number(name: str, arguments: Arguments) -> Typed:
    a = _operand(name, arguments[0])
    return Typed((a, implicit(arguments[1], INTEGER, name)), STRING, True)


_LOGIC: Final = _takes(BOOLEAN, gives=BOOLEAN)
_TEXT: Final = _takes(STRING, gives=STRING)
_TEXT_TEST: Final = _takes(STRING, gives=BOOLEAN)
_PADDED: Final = _takes(STRING, INTEGER, STRING, gives=STRING)


def _signed(names: str, least: int, most: int | None, rule: Rule) -> dict[str, Signature]:
    return dict.fromkeys(names.split(), Signature(least, most, rule))


def _family(*tables: dict[str, Signature]) -> dict[str, Signature]:
    found: dict[str, Signature] = {}
    for table in tables:
        assert not found.keys() & table.keys()
        found |= table
    return found


SIGNATURES: Final[dict[str, Signature]] = _family(
    # arithmetic
    _signed("add", 2, 2, _add),
    _signed("subtract", 2, 2, _subtract),
    _signed("multiply", 2, 2, _multiply),
    _signed("divide", 2, 2, _divide),
    _signed("integral_divide", 2, 2, _integral_divide),
    _signed("modulo pmod", 2, 2, _arithmetic(_remainder_type)),
    _signed("try_add", 2, 2, _attempt(_add)),
    _signed("try_subtract", 2, 2, _attempt(_subtract)),
    _signed("try_multiply", 2, 2, _attempt(_arithmetic(_product_type))),
    _signed("try_divide", 2, 2, _attempt(_divide)),
    _signed("try_modulo", 2, 2, _attempt(_arithmetic(_remainder_type))),
    _signed("negate positive abs", 1, 1, _same_number),
    # numbers
    _signed("sqrt cbrt exp sin cos tan atan radians degrees", 1, 1, _double),
    _signed("sign", 1, 1, _double),
    _signed("pow atan2", 2, 2, _double),
    _signed("ln log10 log2 log1p", 1, 1, _logarithm),
    _signed("log", 1, 2, _log),
    _signed("ceil floor", 1, 2, _ceiling),
    _signed("round bround", 1, 2, _rounded),
    _signed("format_number", 2, 2, _format_number),
    _signed("bit_and bit_or bit_xor", 2, 2, _bits),
    _signed("bit_not", 1, 1, _bits),
    _signed("shiftleft shiftright shiftrightunsigned", 2, 2, _shift),
    # comparison, logic, conditions
    _signed("equal not_equal less less_equal greater greater_equal", 2, 2, _compared),
    _signed("null_safe_equal", 2, 2, _null_safe),
    _signed("in", 2, None, _compared),
    _signed("and or", 2, None, _LOGIC),
    _signed("not", 1, 1, _LOGIC),
    _signed("is_null is_not_null", 1, 1, _any_type(BOOLEAN, False)),
    _signed("is_nan", 1, 1, _is_nan),
    _signed("nanvl", 2, 2, _nanvl),
    _signed("is_one_row", 1, 1, _takes(BIGINT, gives=BOOLEAN)),
    _signed("case", 2, None, _case),
    _signed("if", 3, 3, _if),
    _signed("nvl2", 3, 3, _nvl2),
    _signed("coalesce", 1, None, _least),
    _signed("nullif", 2, 2, _nullif),
    _signed("greatest least", 2, None, _least),
    # text
    _signed("upper lower initcap", 1, 1, _TEXT),
    _signed("trim ltrim rtrim", 1, 2, _TEXT),
    _signed("replace", 2, 3, _TEXT),
    _signed("translate", 3, 3, _TEXT),
    _signed("regexp_replace", 3, 3, _TEXT),
    _signed("split", 2, 3, _takes(STRING, STRING, INTEGER, gives=Array(STRING))),
    _signed("regexp_extract", 2, 3, _takes(STRING, STRING, INTEGER, gives=STRING)),
    _signed("length", 1, 1, _text_or_bytes(INTEGER)),
    _signed("octet_length bit_length", 1, 1, _text_or_bytes(INTEGER)),
    _signed("substring", 2, 3, _part),
    _signed("left right", 2, 2, _part),
    _signed("lpad rpad", 2, 3, _PADDED),
    _signed("concat", 0, None, _concat),
    _signed("concat_ws", 1, None, _concat_ws),
    _signed("instr", 2, 2, _takes(STRING, gives=INTEGER)),
    _signed("locate", 2, 3, _takes(STRING, STRING, INTEGER, gives=INTEGER)),
    _signed("reverse", 1, 1, _reverse),
    _signed("repeat", 2, 2, _takes(STRING, INTEGER, gives=STRING)),
    _signed("starts_with ends_with contains", 2, 2, _TEXT_TEST),
    _signed("like ilike", 2, 3, _TEXT_TEST),
    _signed("rlike", 2, 2, _TEXT_TEST),
    _signed("ascii", 1, 1, _takes(STRING, gives=INTEGER)),
    _signed("chr", 1, 1, _takes(BIGINT, gives=STRING)),
    _signed("space", 1, 1, _takes(INTEGER, gives=STRING)),
    # hashes and bytes
    _signed("md5 sha1", 1, 1, _bytes(STRING)),
    _signed("sha2", 2, 2, _bytes(STRING, nullable=True)),
    _signed("crc32", 1, 1, _bytes(BIGINT)),
    _signed("hex", 1, 1, _hex),
    _signed("unhex", 1, 1, _takes(STRING, gives=BINARY, nullable=True)),
    _signed("base64", 1, 1, _bytes(STRING)),
    _signed("unbase64", 1, 1, _takes(STRING, gives=BINARY, nullable=True)),
    _signed("xxhash64", 1, None, _digest(BIGINT)),
    _signed("hash", 1, None, _digest(INTEGER)),
    # dates
    _signed("year quarter month day dayofweek weekday dayofyear weekofyear yearofweek", 1, 1, _date_part),
    _signed("hour minute second second_fraction", 1, 1, _last_parts),
    _signed("date_add date_sub", 2, 2, _takes(DATE, INTEGER, gives=DATE)),
    _signed("datediff", 2, 2, _takes(DATE, DATE, gives=INTEGER)),
    _signed("add_months", 2, 2, _takes(DATE, INTEGER, gives=DATE)),
    _signed("months_between", 2, 3, _takes(TIMESTAMP, TIMESTAMP, BOOLEAN, gives=DOUBLE)),
    _signed("last_day", 1, 1, _takes(DATE, gives=DATE)),
    _signed("trunc", 2, 2, _takes(DATE, STRING, gives=DATE, nullable=True)),
    _signed("date_trunc", 2, 2, _takes(STRING, TIMESTAMP, gives=TIMESTAMP, nullable=True)),
    _signed("to_date", 1, 2, _read_time(DATE)),
    _signed("to_timestamp", 1, 2, _read_time(TIMESTAMP)),
    _signed("try_to_timestamp", 1, 2, _try_read_time),
    _signed("date_format", 2, 2, _takes(TIMESTAMP, STRING, gives=STRING)),
    _signed("unix_timestamp", 1, 2, _unix),
    _signed("from_unixtime", 1, 2, _from_unix),
    _signed("make_date", 3, 3, _takes(INTEGER, gives=DATE)),
    _signed("unix_micros unix_millis unix_seconds", 1, 1, _takes(TIMESTAMP, gives=BIGINT)),
    _signed("timestamp_micros timestamp_millis timestamp_seconds", 1, 1, _takes(BIGINT, gives=TIMESTAMP)),
    # collections
    _signed("array", 0, None, _array),
    _signed("array_contains", 2, 2, _contained),
    _signed("size", 1, 1, _over_array(INTEGER)),
    _signed("element_at try_element_at", 2, 2, _element_at),
    _signed("sort_array", 1, 2, _over_array()),
    _signed("array_distinct", 1, 1, _over_array()),
    _signed("flatten", 1, 1, _flat),
    _signed("array_min array_max", 1, 1, lambda n, a: Typed(a, _element(n, a[0]), True)),
    _signed("array_join", 2, 3, _takes(Array(STRING), STRING, gives=STRING)),
    _signed("get_field", 2, 2, _member),
    _signed("named_struct", 2, None, _struct),
)

# Other names of the same functions, as SQL spells them.
ALIASES: Final[dict[str, str]] = {
    "plus": "add", "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulo", "mod": "modulo",
    "div": "integral_divide", "negative": "negate", "try_mod": "try_modulo", "power": "pow", "ceiling": "ceil",
    "signum": "sign", "&": "bit_and", "|": "bit_or", "^": "bit_xor", "~": "bit_not",
    "=": "equal", "==": "equal", "<>": "not_equal", "!=": "not_equal", "<": "less", "<=": "less_equal",
    ">": "greater", ">=": "greater_equal", "<=>": "null_safe_equal", "equal_null": "null_safe_equal", "!": "not",
    "isnull": "is_null", "isnotnull": "is_not_null", "isnan": "is_nan", "nvl": "coalesce", "ifnull": "coalesce",
    "ucase": "upper", "lcase": "lower", "char_length": "length", "character_length": "length", "len": "length",
    "substr": "substring", "mid": "substring", "position": "locate", "charindex": "locate",
    "startswith": "starts_with", "endswith": "ends_with", "regexp": "rlike", "regexp_like": "rlike", "char": "chr",
    "btrim": "trim", "||": "concat", "sha": "sha1",
    "dayofmonth": "day", "dateadd": "date_add", "date_diff": "datediff", "to_unix_timestamp": "unix_timestamp",
    "cardinality": "size", "array_size": "size",
}  # fmt: skip
