"""Signatures of functions of arrays and structs."""

from __future__ import annotations

from typing import Final

from everview.errors import TypeMismatch
from everview.scalars import coercion
from everview.scalars.coercion import coerced, implicit, mismatch
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import VOID
from everview.scalars.signatures.rules import (
    Arguments,
    Rule,
    Signatures,
    Typed,
    family,
    narrowed,
    signed,
    takes,
    widest,
)
from everview.types import BOOLEAN, INTEGER, STRING, Array, Field, Struct, Type


def _array(name: str, arguments: Arguments) -> Typed:
    elements = widest(name, arguments) if arguments else ()
    return Typed(elements, Array(elements[0].type if elements else VOID), False)


def _contained(name: str, arguments: Arguments) -> Typed:
    array, value = arguments
    type_ = _element(name, array)
    met = coercion.tightest(type_, value.type)
    if met is None:
        raise mismatch(name, (array.type, value.type))
    return Typed((coerced(array, Array(met)), coerced(value, met)), BOOLEAN, True)


def _element(name: str, array: Expression) -> Type:
    if not isinstance(array.type, Array):
        raise mismatch(name, (array.type,), "it takes an array")
    return array.type.element


def _element_at(name: str, arguments: Arguments) -> Typed:
    array, index = arguments
    return Typed((array, narrowed(index, name)), _element(name, array), True)


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
    member = next((f for f in value.type.fields if f.name.lower() == str(field.value).lower()), None)
    if member is None:
        names = ", ".join(f.name for f in value.type.fields)
        raise TypeMismatch(f"{value.type} has no field {field.value!r}", hint=f"its fields are {names}")
    return Typed((value, Literal(member.name, STRING)), member.type, value.nullable or member.nullable)


def _struct(name: str, arguments: Arguments) -> Typed:
    """``named_struct('name', value, …)``."""
    names, values = arguments[::2], arguments[1::2]
    if len(names) != len(values) or not all(isinstance(n, Literal) and n.type == STRING for n in names):
        raise mismatch(name, tuple(a.type for a in arguments), "it takes names, written down, and values in turn")
    fields = (Field(n.value, v.type, v.nullable) for n, v in zip(names, values, strict=True) if isinstance(n, Literal))
    return Typed(arguments, Struct(fields), False)


def _one(name: str, arguments: Arguments) -> Typed:
    return Typed(arguments, _element(name, arguments[0]), True)


COLLECTIONS: Final[Signatures] = family(
    signed("array", 0, None, _array, "any"),
    signed("array_contains", 2, 2, _contained, "array, value", "NULL when nothing equals and an element is NULL"),
    signed("size", 1, 1, _over_array(INTEGER), "array", "NULL for NULL", size="cardinality array_size"),
    signed(
        *("element_at try_element_at", 2, 2, _element_at, "array, index"),
        "from 1, negative from the end; beyond raises, or is NULL with `try_`; 0 always raises",
    ),
    signed("sort_array", 1, 2, _over_array(), "array [, ascending]", "NULL first, last when descending", "d"),
    signed("array_distinct", 1, 1, _over_array(), "array", "", "d"),
    signed("array_min array_max", 1, 1, _one, "array", "", "d"),
    signed("flatten", 1, 1, _flat, "array of arrays", "NULL if one of them is", "d"),
    signed("array_join", 2, 3, takes(Array(STRING), STRING, gives=STRING), "array, separator [, for NULL]", "", "d"),
    signed("get_field", 2, 2, _member),  # of ``s.field``
    signed("named_struct", 2, None, _struct, "literal names and values in turn", "never NULL"),
)
