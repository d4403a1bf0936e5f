"""From expressions to programs over words.

A program gives the words that evaluation on Arrow columns would give, or nothing where that may fail. What has none
says why: a function of text, say, or of users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from everview.operators.operator import word_columns
from everview.operators.word_program import NotInWords, WordProgram, op
from everview.scalars.expressions import TRY, Call, Cast, Column, Expression, GivenValue, Literal, Now, UserCall
from everview.scalars.functions import KERNELS
from everview.scalars.in_words import choices, moments, numbers
from everview.scalars.in_words.casts import cast
from everview.scalars.in_words.choices import is_searched
from everview.scalars.in_words.slots import Handler, Slots, supported
from everview.types import BOOLEAN, STRING, Schema

_FUNCTIONS: Final[dict[str, Handler]] = choices.FUNCTIONS | numbers.FUNCTIONS | moments.FUNCTIONS


def projection(
    expressions: Sequence[Expression], source: Schema, keep: tuple[int, ...], arguments: tuple[int, ...], out: Schema
) -> WordProgram | str:
    """The program that keeps some fields of a row and adds expressions of others; or why there is none."""
    slots = Slots()
    slots.keep(0, word_columns(source, keep).tolist())
    try:
        for place, expression in enumerate(expressions, start=len(keep)):
            if out.fields[place].type != expression.type:
                raise NotInWords(f"{expression.type} written as {out.fields[place].type}")
            value = _value(slots, expression, source, arguments)
            slots.store(out.words(place).start, out.fields[place], value)
    except NotInWords as reason:
        return str(reason)
    return slots.projection(out.width)


def predicate(expression: Expression, source: Schema, arguments: tuple[int, ...]) -> WordProgram | str:
    """The program that keeps the rows for which a condition is true; or why there is none."""
    slots = Slots()
    try:
        if expression.type != BOOLEAN:
            raise NotInWords(f"a condition of type {expression.type}")
        return slots.predicate(source, _value(slots, expression, source, arguments))
    except NotInWords as reason:
        return str(reason)


def _value(slots: Slots, expression: Expression, source: Schema, arguments: tuple[int, ...]) -> int:
    """The slot of an expression."""
    match expression:
        case Column(index, _, type_):
            held = source.fields[arguments[index]].type
            if held != type_:
                raise NotInWords(f"a column of {held} read as {type_}")
            supported(type_)
            return slots.load(source, arguments[index])
        case Literal():
            return slots.literal(expression)
        case Cast(Literal(None), type_):
            return slots.literal(Literal(None, type_))
        case Cast(argument, type_, try_):
            value = _value(slots, argument, source, arguments)
            return cast(slots, value, argument.type, type_, op.NULL if try_ else op.FAILED)
        case Call():
            values = [
                0 if _is_read(expression.function, argument) else _value(slots, argument, source, arguments)
                for argument in expression.arguments
            ]
            return _called(slots, expression, values)
        case UserCall(name):
            raise NotInWords(f"{name}, a function of users")
        case GivenValue(number, type_):
            supported(type_)
            return slots.at(slots.given(number))
        case Now():
            raise NotInWords("the moment of the tick")
        case _:
            raise NotInWords(type(expression).__name__)


def _is_read(name: str, argument: Expression) -> bool:
    """Whether an argument is known when the program is made, and no slot of it is needed."""
    if name in ("trunc", "date_trunc", "time_trunc", "time_diff"):
        return isinstance(argument, Literal) and argument.type == STRING
    return name == "in" and is_searched(argument)


def _called(slots: Slots, call: Call, values: list[int]) -> int:
    name = call.function
    attempt = name not in KERNELS and name.startswith(TRY)
    handler = _FUNCTIONS.get(name.removeprefix(TRY) if attempt else name)
    if handler is None:
        raise NotInWords(f"the function {name}")
    supported(call.type)
    return handler(slots, call, values, op.NULL if attempt else op.FAILED)
