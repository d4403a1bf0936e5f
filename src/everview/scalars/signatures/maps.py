"""Signatures of functions of maps."""

from __future__ import annotations

from typing import Final

from everview.errors import SchemaError
from everview.scalars import coercion
from everview.scalars.coercion import coerced, common_of, implicit, mismatch
from everview.scalars.expressions import Call, Expression, Literal
from everview.scalars.kinds import VOID
from everview.scalars.signatures.rules import Arguments, Rule, Signatures, Typed, family, signed
from everview.types import BOOLEAN, INTEGER, STRING, Array, MapType, Struct, Type


def map_type(name: str, key: Type, value: Type) -> MapType:
    """The type of maps that a function gives; raises `TypeMismatch` for keys that no map has."""
    try:
        return MapType(key, value)
    except SchemaError as error:
        raise mismatch(name, (key,), error.hint or "") from None


def type_of_map(name: str, value: Expression) -> MapType:
    """The type of an argument that is a map; raises `TypeMismatch` if it is none."""
    if not isinstance(value.type, MapType):
        raise mismatch(name, (value.type,), "it takes a map")
    return value.type


def _alike(name: str, arguments: Arguments) -> tuple[Arguments, Type]:
    if not arguments:
        return (), VOID
    type_ = common_of(arguments, name)
    return tuple(coerced(a, type_) for a in arguments), type_


def _map(name: str, arguments: Arguments) -> Typed:
    if len(arguments) % 2:
        raise mismatch(name, tuple(a.type for a in arguments), "it takes keys and values in turn")
    keys, key = _alike(name, arguments[::2])
    values, value = _alike(name, arguments[1::2])
    pairs = tuple(part for pair in zip(keys, values, strict=True) for part in pair)
    return Typed(pairs, map_type(name, key, value), False)


def _from_arrays(name: str, arguments: Arguments) -> Typed:
    keys, values = (coerced(a, Array(VOID)) if a.type == VOID else a for a in arguments)
    if not isinstance(keys.type, Array) or not isinstance(values.type, Array):
        raise mismatch(name, (keys.type, values.type), "it takes two arrays")
    return Typed((keys, values), map_type(name, keys.type.element, values.type.element))


def _from_entries(name: str, arguments: Arguments) -> Typed:
    (array,) = arguments
    element = array.type.element if isinstance(array.type, Array) else None
    if not isinstance(element, Struct) or len(element.fields) != 2:
        raise mismatch(name, (array.type,), "it takes an array of structs of a key and a value")
    key, value = element.fields
    return Typed(arguments, map_type(name, key.type, value.type), True)


def _concat(name: str, arguments: Arguments) -> Typed:
    if not arguments:
        return Typed((), MapType(STRING, STRING), False)
    for argument in arguments:
        type_of_map(name, argument)
    alike, type_ = _alike(name, arguments)
    return Typed(alike, type_)


def _of_text(name: str, arguments: Arguments) -> Typed:
    text, *marks = (implicit(a, STRING, name) for a in arguments)
    marks += [Literal(mark, STRING) for mark in (",", ":")][len(marks) :]
    return Typed((text, *marks), MapType(STRING, STRING))


def _parts(place: int) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        type_ = type_of_map(name, arguments[0])
        return Typed(arguments, Array((type_.key, type_.value)[place]))

    return rule


def _entries(name: str, arguments: Arguments) -> Typed:
    return Typed(arguments, type_of_map(name, arguments[0]).entries)


def value_of_key(name: str, arguments: Arguments) -> Typed:
    """The value of a key, which is compared as the type that both have in common."""
    given, key = arguments
    type_ = type_of_map(name, given)
    met = coercion.tightest(type_.key, key.type) or implicit(key, type_.key, name).type
    wider = given if met == type_.key else coerced(given, MapType(met, type_.value))
    return Typed((wider, coerced(key, met)), type_.value, True)


def _contains(name: str, arguments: Arguments) -> Typed:
    typed = value_of_key(name, arguments)
    return Typed(typed.arguments, BOOLEAN)


def element_of_map(name: str, arguments: Arguments) -> Expression:
    """``element_at(map, key)``."""
    typed = value_of_key(name, arguments)
    return Call("map_value", typed.arguments, typed.type, True)


def _size(name: str, arguments: Arguments) -> Typed:
    type_of_map(name, arguments[0])
    return Typed(arguments, INTEGER)


def _sorted(name: str, arguments: Arguments) -> Typed:
    return Typed(arguments, type_of_map(name, arguments[0]))


_ONCE: Final = "raises where a key is NULL or comes twice"
MAPS: Final[Signatures] = family(
    signed("map", 0, None, _map, "keys and values in turn", _ONCE),
    signed("map_from_arrays", 2, 2, _from_arrays, "array of keys, array of values", _ONCE),
    signed("map_from_entries", 1, 1, _from_entries, "array of structs", f"{_ONCE}; NULL where an entry is NULL"),
    signed("map_concat", 0, None, _concat, "maps", _ONCE),
    signed(
        *("str_to_map", 1, 3, _of_text, "text [, mark between entries [, mark between key and value]]"),
        *(f"the marks are regular expressions; {_ONCE}", "d"),
    ),
    signed("map_keys", 1, 1, _parts(0), "map", "in the order of the entries"),
    signed("map_values", 1, 1, _parts(1), "map", "in the order of the entries"),
    signed("map_entries", 1, 1, _entries, "map", "structs of `key` and `value`"),
    signed("map_contains_key", 2, 2, _contains, "map, key"),
    signed("map_value", 2, 2, value_of_key),  # of ``m[key]`` and element_at
    signed("map_size", 1, 1, _size),  # of size
    signed("map_sorted", 1, 1, _sorted, "", "", "d"),  # of GROUP BY
)
