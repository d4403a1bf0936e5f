"""Signatures of functions of variants."""

from __future__ import annotations

from typing import Final

from everview.scalars.coercion import coerced, implicit, is_number, mismatch
from everview.scalars.expressions import Call, Cast, Expression, Literal
from everview.scalars.kinds import VOID
from everview.scalars.session_zone import cast_in_zone
from everview.scalars.signatures.rules import Arguments, Rule, Signatures, Typed, family, signed, takes
from everview.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INTEGER,
    STRING,
    TIMESTAMP,
    VARIANT,
    Array,
    Field,
    MapType,
    Struct,
    Type,
    parse_type,
)

ENTRY: Final = Struct((Field("pos", INTEGER, False), Field("key", STRING), Field("value", VARIANT, False)))


def to_variant(name: str, value: Expression) -> Expression:
    """A value as a variant; raises `TypeMismatch` for structs and maps, which only to_variant_object takes."""
    if value.type in (VARIANT, VOID):
        return coerced(value, VARIANT)
    if not held_in_variant(value.type):
        raise mismatch(name, (value.type,), "make it a variant by to_variant_object")
    return Cast(value, VARIANT)


def held_in_variant(type_: Type) -> bool:
    """Whether values of a type are variants by a cast: those without parts, and arrays of such."""
    if isinstance(type_, Array):
        return held_in_variant(type_.element)
    return is_number(type_) or type_ in (STRING, BINARY, BOOLEAN, DATE, TIMESTAMP, VARIANT)


def is_object(type_: Type) -> bool:
    """Whether values of a type are objects or arrays of a variant."""
    match type_:
        case Array(element):
            return is_object(element)
        case Struct(fields):
            return all(is_object(f.type) for f in fields)
        case MapType(key, value):
            return key == STRING and is_object(value)
        case _:
            return held_in_variant(type_)


def cast_from_variant(type_: Type) -> bool:
    """Whether a variant can be cast to a type: maps have texts as keys."""
    match type_:
        case Array(element):
            return cast_from_variant(element)
        case Struct(fields):
            return all(cast_from_variant(f.type) for f in fields)
        case MapType(key, value):
            return key == STRING and cast_from_variant(value)
        case _:
            return held_in_variant(type_)


def _variant(name: str, value: Expression) -> Expression:
    if value.type not in (VARIANT, VOID):
        raise mismatch(name, (value.type,), "it takes a variant, such as parse_json makes")
    return coerced(value, VARIANT)


def _of_variant(gives: Type, nullable: bool | None = None) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        rest = (implicit(a, BOOLEAN, name) for a in arguments[1:])
        return Typed((_variant(name, arguments[0]), *rest), gives, nullable)

    return rule


def _get(try_: bool) -> Rule:
    """``variant_get(variant, path [, type])``: the part at the path, cast to the type."""

    def rule(name: str, arguments: Arguments) -> Expression:
        value, path, *rest = arguments
        part = Call("variant_at", (_variant(name, value), implicit(path, STRING, name)), VARIANT, True)
        if not rest:
            return part
        if not isinstance(rest[0], Literal) or not isinstance(rest[0].value, str):
            raise mismatch(name, (rest[0].type,), "the type is a literal, such as 'int'")
        wanted = parse_type(rest[0].value)
        if wanted == VARIANT:
            return part
        if not cast_from_variant(wanted):
            raise mismatch(name, (wanted,), "no variant is of that type")
        return cast_in_zone(part, wanted, try_)

    return rule


def _in_zone(name: str, arguments: Arguments) -> Typed:
    """A cast to the type that is written, in a zone."""
    value, wanted, zone = arguments
    if not isinstance(wanted, Literal):
        raise mismatch(name, (wanted.type,), "the type is a literal, such as 'int'")
    return Typed((_variant(name, value), wanted, zone), parse_type(str(wanted.value)), True)


def _as_json(name: str, arguments: Arguments) -> Typed:
    """A variant as JSON, in UTC or in a zone."""
    value, *zone = arguments
    return Typed((_variant(name, value), *(implicit(a, STRING, name) for a in zone)), STRING)


def _changed(name: str, arguments: Arguments) -> Typed:
    """A variant, a path, a new value, and for variant_set whether it may be made where there is none."""
    value, path, new, *rest = arguments
    last = (implicit(a, BOOLEAN, name) for a in rest)
    given = (_variant(name, value), implicit(path, STRING, name), to_variant(name, new), *last)
    return Typed(given, VARIANT, True if name.startswith("try_") else None)


def _deleted(name: str, arguments: Arguments) -> Typed:
    value, *paths = arguments
    given = _variant(name, value)
    return Typed((given, *(implicit(path, STRING, name) for path in paths)), VARIANT, given.nullable)


def _object(name: str, arguments: Arguments) -> Typed:
    (value,) = arguments
    if not isinstance(value.type, (Struct, Array, MapType)) or not is_object(value.type):
        raise mismatch(name, (value.type,), "it takes a struct, an array, or a map with texts as keys")
    return Typed(arguments, VARIANT)


def _shapes(name: str, arguments: Arguments) -> Typed:
    if arguments[0].type != Array(VARIANT):
        raise mismatch(name, (arguments[0].type,), "it takes variants")
    return Typed(arguments, STRING, True)


_PATH: Final = "a path such as `$.a[0]['b c']`"
_CHANGED: Final = f"{_PATH}; NULL where an argument is NULL"
VARIANTS: Final[Signatures] = family(
    signed("parse_json", 1, 1, takes(STRING, gives=VARIANT), "text", "raises where it is no JSON", "d"),
    signed(
        "try_parse_json", 1, 1, takes(STRING, gives=VARIANT, nullable=True), "text", "NULL where it is no JSON", "d"
    ),
    signed("variant_json", 1, 2, _as_json, "", "", "d"),  # of to_json
    signed("variant_in_zone", 3, 3, _in_zone, "", "", "d"),  # of casts
    signed("variant_at", 2, 2, _get(False)),  # of variant_get and ``v:a.b[0]``
    signed(
        *("variant_get", 2, 3, _get(False), "variant, path [, literal type]"),
        *(f"{_PATH}; NULL where there is none; raises where the value is not of the type", "d"),
    ),
    signed("try_variant_get", 2, 3, _get(True), "variant, path [, literal type]", "NULL where the other raises", "d"),
    signed("is_variant_null", 1, 1, _of_variant(BOOLEAN, False), "variant", "false for NULL", "d"),
    signed("is_valid_variant", 1, 1, _of_variant(BOOLEAN), "variant", "true: others do not come in", "d"),
    signed("schema_of_variant", 1, 1, _of_variant(STRING), "variant", "", "d"),
    signed("schema_of_variants", 1, 1, _shapes, "", "", "d"),  # of schema_of_variant_agg
    signed("to_variant_object", 1, 1, _object, "struct, array or map", "", "d"),
    signed("variant_entries", 1, 1, _of_variant(Array(ENTRY)), "", "", "d"),  # of variant_explode
    signed("variant_insert try_variant_insert", 3, 3, _changed, "variant, path, value", _CHANGED, "d"),
    signed("variant_set try_variant_set", 3, 4, _changed, "variant, path, value [, create]", _CHANGED, "d"),
    signed("variant_array_append try_variant_array_append", 3, 3, _changed, "variant, path, value", _CHANGED, "d"),
    signed("variant_delete", 2, None, _deleted, "variant, paths", "a path that is NULL is passed over", "d"),
    signed("variant_strip_nulls", 1, 2, _of_variant(VARIANT), "variant [, in arrays, too]", "", "d"),
)
