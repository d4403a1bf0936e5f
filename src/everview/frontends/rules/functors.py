"""Functors: what each name means, as an expression of the plan.

A name is looked up here, then among the functions of SQL, then among those that the user has registered. ``sql.name``
goes to the functions of SQL at once, where a name means something else there.

>>> from everview.plan.typing import literal
>>> str(functor("cat", (literal("a"), literal("b"))))
"concat('a', 'b')"
>>> str(functor("/", (literal(7), literal(2))))
'CAST(7L DIV 2L AS INTEGER)'
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Final

from everview.errors import TypeMismatch, UnknownName, WrongArity
from everview.frontends.rules.meeting import alike
from everview.frontends.rules.relations import function_type
from everview.plan.typing import call, cast, is_function, is_integer, is_number, literal
from everview.scalars.expressions import Expression, Literal, UserCall
from everview.types import BIGINT, BOOLEAN, DOUBLE, STRING, Decimal, Type, unknown_name

Arguments = tuple[Expression, ...]
Make = Callable[..., Expression]

SQL: Final = "sql."  # before the name of a function of SQL


def functor(name: str, arguments: Arguments) -> Expression:
    """Call a functor; raises `UnknownName`, `WrongArity`, `TypeMismatch`."""
    if name.startswith(SQL):
        return call(name.removeprefix(SQL), *arguments)
    known = FUNCTORS.get(name)
    if known is not None:
        counts, make = known
        _check_count(name, counts, arguments)
        return make(*arguments)
    type_ = function_type(name)
    if type_ is not None:
        return UserCall(name.lower(), arguments, type_)
    if is_function(name):
        return call(name, *arguments)
    error = unknown_name("functor", name, sorted(FUNCTORS))
    guess = error.hint.split(" available:")[0] + " " if error.hint and error.hint.startswith("did") else ""
    raise UnknownName(error.message, hint=f"{guess}functions of your own are registered with @ev.function")


def _check_count(name: str, wanted: tuple[int, ...], arguments: Arguments) -> None:
    if len(arguments) in wanted or (wanted[-1] == MANY and len(arguments) >= wanted[0]):
        return
    takes = f"{wanted[0]} or more" if wanted[-1] == MANY else " or ".join(map(str, wanted))
    raise WrongArity(
        f"{name} takes {takes} arguments, and was given {len(arguments)}", hint=f"write {name} with {takes}"
    )


MANY: Final = 1 << 30


# -- numbers


def _require(name: str, what: str, is_one: Callable[[Type], bool], given: Arguments) -> None:
    for side in given:
        if not is_one(side.type):
            hint = "to_number, to_float and to_string convert"
            raise TypeMismatch(f"{name} takes {what}, and was given {side.type}", hint=hint)


def _is_text(type_: Type) -> bool:
    return type_ == STRING


def _numbers(name: str) -> Make:
    def make(a: Expression, b: Expression) -> Expression:
        for side in (a, b):
            if not is_number(side.type):
                raise TypeMismatch(f"{name} takes numbers, and was given {side.type}", hint="to_number reads text")
        pair = alike(a, b)
        assert pair is not None, "numbers go together"
        if any(isinstance(side.type, Decimal) for side in pair):
            pair = a, b  # each DECIMAL as its own, so that no digits are asked for that nobody needs
        return call(name, *pair)

    return make


def _quotient(a: Expression, b: Expression) -> Expression:
    """Divide; the quotient of integers is an integer, truncated."""
    if is_integer(a.type) and is_integer(b.type):
        return _whole(call("integral_divide", a, b), a, b)
    return _numbers("divide")(a, b)


def _whole(result: Expression, a: Expression, b: Expression) -> Expression:
    """Cast a BIGINT to the wider of the types of two operands."""
    pair = alike(a, b)
    assert pair is not None, "integers go together"
    return result if result.type == pair[0].type else cast(result, pair[0].type)


def _power(a: Expression, b: Expression) -> Expression:
    """Raise to a power; of integers by multiplication, which is exact, and fails where the result does not fit."""
    if not is_integer(a.type):
        return call("pow", a, b)
    if not isinstance(b, Literal) or not isinstance(b.value, int) or not 0 <= b.value <= 64:
        raise TypeMismatch(
            "an integer to a power that is no small constant", hint="write a constant, or to_float(x) ^ to_float(y)"
        )
    one = Literal(1, a.type)
    return reduce(lambda x, y: call("multiply", x, y), [a] * b.value, one) if b.value != 1 else a


def _negated(a: Expression) -> Expression:
    if isinstance(a, Literal) and isinstance(a.value, (int, float)) and not isinstance(a.value, bool):
        return literal(-a.value)
    return call("negate", a)


def _truth(a: Expression) -> Expression:
    return a if a.type == BOOLEAN else call("not_equal", a, Literal(0, a.type))


def _logical(name: str) -> Make:
    """Make a logical operator: of numbers it gives 1 or 0, of truth values a truth value."""

    def make(*given: Expression) -> Expression:
        _require(name, "numbers and truth values", lambda type_: is_number(type_) or type_ == BOOLEAN, given)
        result = _LOGIC[name](*map(_truth, given))
        return (
            result
            if all(a.type == BOOLEAN for a in given)
            else call("if", result, Literal(1, BIGINT), Literal(0, BIGINT))
        )

    return make


_LOGIC: Final[dict[str, Make]] = {
    "land": lambda a, b: call("and", a, b),
    "lor": lambda a, b: call("or", a, b),
    "lxor": lambda a, b: call("not_equal", a, b),
    "lnot": lambda a: call("not", a),
}


def _bits(name: str) -> Make:
    def make(*given: Expression) -> Expression:
        _require(name, "integers", is_integer, given)
        return call(name, *given)

    return make


def _shift(name: str) -> Make:
    def make(a: Expression, b: Expression) -> Expression:
        _require(name, "integers", is_integer, (a, b))
        return call(name, a, b if b.type != BIGINT else cast(b, literal(0).type))

    return make


def _extreme(name: str) -> Make:
    def make(*given: Expression) -> Expression:
        result = given[0]
        for other in given[1:]:
            pair = alike(result, other)
            if pair is None:
                raise TypeMismatch(f"{name} of {result.type} and {other.type}", hint="give values of one type")
            result = call(name, *pair)
        return result

    return make


# -- text


def _cat(*given: Expression) -> Expression:
    for side in given:
        if side.type != STRING:
            raise TypeMismatch(f"cat takes text, and was given {side.type}", hint="to_string(x) makes text of it")
    return call("concat", *given)


def _substr(text: Expression, start: Expression, length: Expression) -> Expression:
    """The part of a text from a position, counted from 0, with a number of characters."""
    _require("substr", "text first", _is_text, (text,))
    _require("substr", "integers after the text", is_integer, (start, length))
    first = literal(start.value + 1) if isinstance(start, Literal) else _narrow(call("add", start, literal(1)))
    return call("substring", text, first, _narrow(length))


def _narrow(result: Expression) -> Expression:
    return cast(result, literal(0).type) if result.type == BIGINT else result


def _match(pattern: Expression, text: Expression) -> Expression:
    """Does a pattern match the whole text?"""
    _require("match", "text", _is_text, (pattern, text))
    if isinstance(pattern, Literal):
        return call("rlike", text, literal(f"^(?:{pattern.value})$"))
    return call("rlike", text, call("concat", literal("^(?:"), pattern, literal(")$")))


def _strlen(text: Expression) -> Expression:
    _require("strlen", "text", _is_text, (text,))
    return cast(call("length", text), BIGINT)


def _contains(part: Expression, text: Expression) -> Expression:
    _require("contains", "text", _is_text, (part, text))
    return call("contains", text, part)


def unsigned(a: Expression) -> Expression:
    """The number, if it is not negative; else evaluation fails, and says so."""
    _require("unsigned", "numbers", is_number, (a,))
    told = call("concat", cast(a, STRING), literal(" is negative, and no unsigned number"))
    return call("if", call("greater_equal", a, cast(literal(0), a.type)), a, cast(call("raise_error", told), a.type))


def _cast_to(type_: Type) -> Make:
    return lambda a: cast(a, type_)


def _record(*given: Expression) -> Expression:
    """A struct whose fields have provisional names; the column it goes into renames the fields."""
    named = (part for place, value in enumerate(given) for part in (literal(f"_{place + 1}"), value))
    return call("named_struct", *named)


FUNCTORS: Final[dict[str, tuple[tuple[int, ...], Make]]] = {
    "+": ((2,), _numbers("add")),
    "-": ((1, 2), lambda *g: _negated(*g) if len(g) == 1 else _numbers("subtract")(*g)),
    "*": ((2,), _numbers("multiply")),
    "/": ((2,), _quotient),
    "%": ((2,), _numbers("modulo")),
    "^": ((2,), _power),
    **{name: ((1,) if name == "lnot" else (2,), _logical(name)) for name in _LOGIC},
    "band": ((2,), _bits("bit_and")),
    "bor": ((2,), _bits("bit_or")),
    "bxor": ((2,), _bits("bit_xor")),
    "bnot": ((1,), _bits("bit_not")),
    "bshl": ((2,), _shift("shiftleft")),
    "bshr": ((2,), _shift("shiftright")),
    "bshru": ((2,), _shift("shiftrightunsigned")),
    "min": ((2, MANY), _extreme("least")),
    "max": ((2, MANY), _extreme("greatest")),
    "cat": ((2, MANY), _cat),
    "strlen": ((1,), _strlen),
    "substr": ((3,), _substr),
    "contains": ((2,), _contains),
    "match": ((2,), _match),
    "record": ((1, MANY), _record),
    "unsigned": ((1,), unsigned),
    "ord": ((1,), lambda a: call("xxhash64", a)),
    "to_number": ((1,), _cast_to(BIGINT)),
    "to_unsigned": ((1,), _cast_to(BIGINT)),
    "to_float": ((1,), _cast_to(DOUBLE)),
    "to_string": ((1,), _cast_to(STRING)),
    **dict.fromkeys(("itof", "utof"), ((1,), _cast_to(DOUBLE))),
    **dict.fromkeys(("ftoi", "ftou", "itou", "utoi"), ((1,), _cast_to(BIGINT))),
}
