"""Signatures of functions of JSON as text, and of bitmaps."""

from __future__ import annotations

import re
from typing import Final

from everview.scalars.coercion import implicit, is_number, mismatch
from everview.scalars.expressions import Call, Expression, Literal
from everview.scalars.signatures.rules import Arguments, Signatures, Typed, family, signed, takes
from everview.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    INTEGER,
    STRING,
    Array,
    Field,
    Schema,
    Struct,
    Type,
    parse_type,
)


def _to_json(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    if not isinstance(a.type, (Struct, Array)):
        raise mismatch(name, (a.type,), "it takes a struct or an array")
    return Typed(arguments, STRING)


def _from_json(name: str, arguments: Arguments) -> Typed:
    """A struct by ``'a INT, b DOUBLE'``, or the type that is written."""
    text, written = implicit(arguments[0], STRING, name), arguments[1]
    if not isinstance(written, Literal) or not isinstance(written.value, str):
        raise mismatch(name, (written.type,), "its schema is a literal, such as 'a INT, b DOUBLE'")
    plain = written.value.strip()
    if re.match(r"(?i)(array|struct)\s*<", plain):
        type_ = parse_type(plain)
    else:
        type_ = Struct(Field(field.name, field.type) for field in Schema.parse(plain).fields)
    wrong = _unreadable(type_)
    if wrong is not None:
        raise mismatch(name, (wrong,), "read it as STRING, and cast it")
    return Typed((text, Literal(plain, STRING)), type_, True)


def _unreadable(type_: Type) -> Type | None:
    """A type inside of another that JSON is not read as."""
    if isinstance(type_, Array):
        return _unreadable(type_.element)
    if isinstance(type_, Struct):
        return next((wrong for f in type_.fields if (wrong := _unreadable(f.type)) is not None), None)
    return None if is_number(type_) or type_ in (STRING, BOOLEAN) else type_


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
    signed(
        *("from_json", 2, 2, _from_json, "text, literal schema"),
        *(
            "a struct such as `'a INT, b ARRAY<STRING>'`, or an array; a field that does not fit is NULL; no options",
            "d",
        ),
    ),
    signed("to_json", 1, 1, _to_json, "struct or array", "without fields that are NULL; no options", "d"),
)
BITMAPS: Final[Signatures] = family(
    signed("bitmap_bucket_number", 1, 1, _bucket, "`BIGINT`", "32,768 values to a bucket, the first from 1 on"),
    signed("bitmap_bit_position", 1, 1, _position, "`BIGINT`", "the place in its bucket"),
    signed("bitmap_count", 1, 1, takes(BINARY, gives=BIGINT), "bytes", "how many bits are one", "d"),
)
