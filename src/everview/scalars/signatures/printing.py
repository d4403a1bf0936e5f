"""Signatures of functions that write values as text and read them: by formats, and as JSON."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from everview.later import Later
from everview.scalars.coercion import (
    FRACTIONS,
    MOST_DIGITS,
    coerced,
    decimal_of,
    implicit,
    is_number,
    is_simple,
    mismatch,
)
from everview.scalars.expressions import Call, Cast, Expression, Literal
from everview.scalars.kinds import VOID
from everview.scalars.signatures.rules import Arguments, Signatures, Typed, family, operand, signed, takes
from everview.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INTEGER,
    INTERVALS,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Decimal,
    Field,
    Schema,
    Struct,
    Type,
    parse_type,
)

if TYPE_CHECKING:
    from everview.scalars.number_formats import NumberFormat, number_format
else:
    number_format = Later("everview.scalars.number_formats", "number_format")


def _literal(name: str, form: Expression) -> str:
    """The text of a format, which is written down."""
    while isinstance(form, Cast):
        form = form.argument
    if not isinstance(form, Literal) or not isinstance(form.value, str):
        raise mismatch(name, (form.type,), "its format is a literal text")
    return form.value


def _to_char(name: str, arguments: Arguments) -> Typed | Expression:
    """A moment by a pattern, bytes in a base or as UTF-8, and a number by a format."""
    value, form = arguments
    if value.type in (DATE, TIMESTAMP):
        parts = (coerced(value, TIMESTAMP), implicit(form, STRING, name))
        return Call("date_format", parts, STRING, any(p.nullable for p in parts))
    text = _literal(name, form)
    if value.type == BINARY:
        return _bytes_written(name, value, text.lower())
    value = operand(name, value)
    kind = Decimal(30, 15) if value.type in FRACTIONS else decimal_of(value.type)
    number_format(text)
    return Typed((coerced(value, kind), Literal(text, STRING)), STRING)


def _bytes_written(name: str, value: Expression, form: str) -> Expression:
    if form in ("base64", "hex"):
        return Call(form, (value,), STRING, value.nullable)
    if form not in ("utf-8", "utf8"):
        raise mismatch(name, (value.type,), "the form of bytes is 'base64', 'hex' or 'utf-8'")
    return Call("decode", (value, Literal("utf-8", STRING)), STRING, value.nullable)


def _to_number(name: str, arguments: Arguments) -> Typed:
    value, form = arguments
    text = _literal(name, form)
    return Typed((implicit(value, STRING, name), Literal(text, STRING)), _decimal(number_format(text), name))


def _decimal(form: NumberFormat, name: str) -> Decimal:
    if form.digits > MOST_DIGITS:
        raise mismatch(name, (STRING,), f"a DECIMAL has {MOST_DIGITS} digits at most")
    return Decimal(form.digits, len(form.after))


def _try_to_number(name: str, arguments: Arguments) -> Typed:
    return replace(_to_number(name, arguments), nullable=True)


def _format_string(name: str, arguments: Arguments) -> Typed:
    form, *values = arguments
    values = [coerced(v, TIMESTAMP) if v.type == TIMESTAMP_NTZ else v for v in values]
    uncounted = (TIME, *INTERVALS)
    wrong = next((v.type for v in values if v.type in uncounted or (v.type != VOID and not is_simple(v.type))), None)
    if wrong is not None:
        raise mismatch(name, (wrong,), "it takes numbers, text, truth values and moments")
    form = implicit(form, STRING, name)
    return Typed((form, *(coerced(v, STRING) if v.type == VOID else v for v in values)), STRING, form.nullable)


def _to_json(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    if not isinstance(a.type, (Struct, Array)):
        raise mismatch(name, (a.type,), "it takes a struct or an array")
    return Typed((coerced(a, _of_json(a.type)),), STRING)


def _of_json(type_: Type) -> Type:
    """A type with text for what JSON has no value for: times of day and intervals."""
    if isinstance(type_, Array):
        return Array(_of_json(type_.element))
    if isinstance(type_, Struct):
        return Struct(Field(f.name, _of_json(f.type), f.nullable) for f in type_.fields)
    return STRING if type_ == TIME or type_ in INTERVALS else type_


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


_FORMAT: Final = (
    "digits `0` and `9`, `,` or `G`, `.` or `D`, `$`, `S`, `MI`, `PR`; `#` where a number is too long; a moment takes "
    "a pattern, and bytes take `base64`, `hex` or `utf-8`"
)
PRINTED: Final[Signatures] = family(
    signed("to_char", 2, 2, _to_char, "number, moment or bytes, literal format", _FORMAT, "d", to_char="to_varchar"),
    signed("to_number", 2, 2, _to_number, "text, literal format", "a `DECIMAL` of the format's digits", "d"),
    signed("try_to_number", 2, 2, _try_to_number, "text, literal format", "NULL where the other raises", "d"),
    signed(
        *("format_string", 1, None, _format_string, "text, values"),
        *("`%s`, `%d`, `%x`, `%o`, `%c`, `%b`, `%f`, `%e`, `%g`, `%n`, `%%` as in Java", "d"),
        format_string="printf",
    ),
)
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
