"""Signatures of functions of JSON as text, and of bitmaps."""

from __future__ import annotations

from typing import Final

from everview.scalars.coercion import implicit, mismatch
from everview.scalars.expressions import Call, Expression, Literal
from everview.scalars.signatures.rules import Arguments, Signatures, Typed, family, signed, takes
from everview.types import BIGINT, BINARY, BOOLEAN, INTEGER, STRING, Array, Struct


def _to_json(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    if not isinstance(a.type, (Struct, Array)):
        raise mismatch(name, (a.type,), "it takes a struct or an array")
    return Typed(arguments, STRING)


def _bucket(name: str, arguments: Arguments) -> Expression:
    """The number of the 32,768 values that a value is among; values from 1 on are in the first, 0 and below before."""
    value = implicit(arguments[0], BIGINT, name)
    whole = _called("integral_divide", _called("subtract", value, _ONE), _SIZE)
    below = _called("integral_divide", value, _SIZE)
    return Call("if", (_positive(value), _called("add", whole, _ONE), below), BIGINT, value.nullable)


def _position(name: str, arguments: Arguments) -> Expression:
    value = implicit(arguments[0], BIGINT, name)
    above = _called("modulo", _called("subtract", value, _ONE), _SIZE)
    below = _called("negate", _called("modulo", value, _SIZE))
    return Call("if", (_positive(value), above, below), BIGINT, value.nullable)


_ONE: Final = Literal(1, BIGINT)
_SIZE: Final = Literal(32_768, BIGINT)


def _called(function: str, *arguments: Expression) -> Expression:
    return Call(function, arguments, BIGINT, any(a.nullable for a in arguments))


def _positive(value: Expression) -> Expression:
    return Call("greater", (value, Literal(0, BIGINT)), BOOLEAN, value.nullable)


_NULL: Final = "NULL where the text is no JSON of that kind"

JSON: Final[Signatures] = family(
    signed(
        *("get_json_object", 2, 2, takes(STRING, gives=STRING, nullable=True), "text, path"),
        *("a path such as `$.a[0]['b c']`, without `*`; the value as text; NULL where there is none", "d"),
    ),
    signed("json_array_length", 1, 1, takes(STRING, gives=INTEGER, nullable=True), "text", _NULL, "d"),
    signed("json_object_keys", 1, 1, takes(STRING, gives=Array(STRING), nullable=True), "text", _NULL, "d"),
    signed("to_json", 1, 1, _to_json, "struct or array", "without fields that are NULL; no options", "d"),
)
BITMAPS: Final[Signatures] = family(
    signed("bitmap_bucket_number", 1, 1, _bucket, "`BIGINT`", "32,768 values to a bucket, the first from 1 on"),
    signed("bitmap_bit_position", 1, 1, _position, "`BIGINT`", "the place in its bucket"),
    signed("bitmap_count", 1, 1, takes(BINARY, gives=BIGINT), "bytes", "how many bits are one", "d"),
)
