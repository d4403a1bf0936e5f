"""Signatures, and the rules of types that several kinds of functions have.

A rule takes the arguments as written and returns them as the function takes them, with the type of the result and
whether it may be NULL although no argument is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from everview.scalars import coercion
from everview.scalars.coercion import coerced, common_of, decimal_of, implicit, is_number, mismatch
from everview.scalars.expressions import Expression
from everview.scalars.kinds import VOID
from everview.types import BIGINT, DOUBLE, INTEGER, STRING, Decimal, Type

Arguments = tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Typed:
    """A call after its types are known; `nullable` None: NULL where any argument is."""

    arguments: Arguments
    type: Type
    nullable: bool | None = None


Rule = Callable[[str, Arguments], Typed | Expression]


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """The signature of a function: how many arguments, the rule of their types, other names, and its reference text."""

    least: int
    most: int | None  # None: any number
    rule: Rule
    also: tuple[str, ...] = ()  # as SQL spells it, too
    # for the reference: the arguments in words (none of an operator), a note, and how it is computed: ``a`` on whole
    # columns, ``d`` once for each distinct combination of arguments
    arguments: str = ""
    note: str = ""
    how: str = "a"


Signatures = dict[str, FunctionSignature]


def signed(
    names: str,
    least: int,
    most: int | None,
    rule: Rule,
    arguments: str = "",
    note: str = "",
    how: str = "a",
    **also: str,
) -> Signatures:
    """The functions of these names, which are alike; ``also`` are the other names of each."""
    return {
        name: FunctionSignature(least, most, rule, tuple(also.get(name, "").split()), arguments, note, how)
        for name in names.split()
    }


def family(*tables: Signatures) -> Signatures:
    """Several tables as one; no function is in two of them."""
    signatures: Signatures = {}
    for table in tables:
        assert not signatures.keys() & table.keys()
        signatures |= table
    return signatures


# -- Rules that several kinds of functions have


def takes(*wanted: Type, gives: Type, nullable: bool | None = None) -> Rule:
    """The rule for arguments of given types; the last type stands for all further arguments."""

    def rule(name: str, arguments: Arguments) -> Typed:
        kinds = (*wanted, *(wanted[-1:] * (len(arguments) - len(wanted))))
        typed = tuple(implicit(a, t, name) for a, t in zip(arguments, kinds, strict=False))
        return Typed(typed, gives, nullable)

    return rule


def any_type(gives: Type, nullable: bool | None) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        return Typed(arguments, gives, nullable)

    return rule


def operand(name: str, argument: Expression) -> Expression:
    """The argument as a number; text and NULL become DOUBLE."""
    if argument.type in (VOID, STRING):
        return coerced(argument, DOUBLE)
    if not is_number(argument.type):
        raise mismatch(name, (argument.type,), "it takes a number")
    return argument


def narrowed(value: Expression, name: str) -> Expression:
    """The value as an INTEGER; a BIGINT beyond its range fails when it is evaluated."""
    return coerced(value, INTEGER) if value.type == BIGINT else implicit(value, INTEGER, name)


def widest(name: str, arguments: Arguments) -> Arguments:
    type_ = common_of(arguments, name)
    return tuple(coerced(a, type_) for a in arguments)


def either(name: str, arguments: Arguments) -> Typed:
    operands = widest(name, arguments)
    return Typed(operands, operands[0].type)


def alike(name: str, arguments: Arguments) -> Arguments:
    """The arguments as their common type; integer literals count as DECIMALs of just their digits."""
    type_ = common_of(arguments, name)
    if isinstance(type_, Decimal) and len(arguments) == 2:
        kinds = [decimal_of(a) for a in arguments if a.type != VOID]
        type_ = coercion.wider(kinds[0], kinds[-1])
    return tuple(coerced(a, type_) for a in arguments)
