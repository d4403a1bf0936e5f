"""Types of results of aggregates: rules of an aggregate's name and of the field that it is of."""

from __future__ import annotations

from collections.abc import Callable

from everview.errors import SchemaError
from everview.types import BIGINT, DAY_TIME, DOUBLE, DURATIONS, INTEGERS, INTERVALS, Array, Decimal, Field, Type

FLOATS = ("FLOAT", "DOUBLE")
TypeRule = Callable[[str, Field], Type]


def is_number(type_: Type) -> bool:
    return isinstance(type_, Decimal) or type_ in INTEGERS or type_.sql in FLOATS


def sum_type(function: str, argument: Field) -> Type:
    if argument.type in INTERVALS:
        return argument.type
    if isinstance(argument.type, Decimal):
        return Decimal(min(38, argument.type.precision + 10), argument.type.scale)
    return BIGINT if argument.type in INTEGERS else double_of_number(function, argument)


def mean_type(function: str, argument: Field) -> Type:
    if argument.type in INTERVALS:
        return DAY_TIME if argument.type in DURATIONS else argument.type
    if isinstance(argument.type, Decimal):
        return Decimal(min(38, argument.type.precision + 4), min(38, argument.type.scale + 4))
    return double_of_number(function, argument)


def double_of_number(function: str, argument: Field) -> Type:
    if not is_number(argument.type):
        raise SchemaError(f"{function} of {argument}", hint=f"{function} takes numbers")
    return DOUBLE


def own_integer(function: str, argument: Field) -> Type:
    if argument.type not in INTEGERS:
        raise SchemaError(f"{function} of {argument}", hint=f"{function} takes integers")
    return argument.type


def double_only(function: str, argument: Field) -> Type:
    if argument.type != DOUBLE:
        raise SchemaError(f"{function} of {argument}", hint=f"{function} takes DOUBLE")
    return DOUBLE


def double_or_own(function: str, argument: Field) -> Type:
    return DOUBLE if is_number(argument.type) else argument.type


def own_type(function: str, argument: Field) -> Type:
    return argument.type


def list_type(function: str, argument: Field) -> Type:
    return Array(argument.type)


def always(wanted: Type) -> TypeRule:
    return lambda function, argument: wanted


def only(wanted: Type) -> TypeRule:
    """The argument's type, which is this one."""

    def rule(function: str, argument: Field) -> Type:
        if argument.type != wanted:
            raise SchemaError(f"{function} of {argument}", hint=f"{function} takes {wanted}")
        return wanted

    return rule
