"""Signatures of functions that write values as text and read them: by formats, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from everview.errors import shown
from everview.later import Later
from everview.scalars.coercion import (
    FRACTIONS,
    MOST_DIGITS,
    coerced,
    decimal_of,
    implicit,
    is_integer,
    is_number,
    is_simple,
    mismatch,
)
from everview.scalars.expressions import Call, Cast, Expression, Literal
from everview.scalars.kinds import VOID
from everview.scalars.signatures.rules import Arguments, Rule, Signatures, Typed, family, operand, signed, takes
from everview.types import (
    BINARY,
    BOOLEAN,
    COMPOSITE,
    DATE,
    INTEGER,
    INTERVALS,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    Decimal,
    Field,
    MapType,
    Schema,
    Struct,
    Type,
    parse_type,
    parts_of_type,
)

if TYPE_CHECKING:
    from everview.scalars.inferred import csv_schema, json_schema
    from everview.scalars.number_formats import NumberFormat, number_format
else:
    number_format = Later("everview.scalars.number_formats", "number_format")
    csv_schema = Later("everview.scalars.inferred", "csv_schema")
    json_schema = Later("everview.scalars.inferred", "json_schema")


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
    if a.type == VARIANT:
        return Typed(arguments, STRING)
    if not isinstance(a.type, COMPOSITE):
        raise mismatch(name, (a.type,), "it takes a struct, an array, a map or a variant")
    wrong = _keys_not_written(a.type)
    if wrong is not None:
        raise mismatch(name, (wrong,), "the keys of a map are written if they are text, whole numbers or truth values")
    return Typed((coerced(a, _of_json(a.type)),), STRING)


def _of_json(type_: Type) -> Type:
    """A type with text for what JSON has no value for: times of day and intervals."""
    if isinstance(type_, Array):
        return Array(_of_json(type_.element))
    if isinstance(type_, Struct):
        return Struct(Field(f.name, _of_json(f.type), f.nullable) for f in type_.fields)
    if isinstance(type_, MapType):
        return MapType(type_.key, _of_json(type_.value))
    return STRING if type_ == TIME or type_ in INTERVALS else type_


def _to_json_or_variant(name: str, arguments: Arguments) -> Typed | Expression:
    (a,) = arguments
    typed = _to_json(name, arguments)
    return Call("variant_json", typed.arguments, STRING, a.nullable) if a.type == VARIANT else typed


def _keys_not_written(type_: Type) -> Type | None:
    """A map inside of a type whose keys have no text in JSON."""
    if isinstance(type_, MapType) and not (is_integer(type_.key) or type_.key in (STRING, BOOLEAN)):
        return type_
    return next((wrong for part in parts_of_type(type_) if (wrong := _keys_not_written(part)) is not None), None)


def _schema(plain: str) -> Type:
    if re.match(r"(?i)(array|struct|map)\s*<|variant$", plain):
        return parse_type(plain)
    return Struct(Field(field.name, field.type) for field in Schema.parse(plain).fields)


def _from_json(name: str, arguments: Arguments) -> Typed | Expression:
    """A struct by ``'a INT, b DOUBLE'``, or the type that is written."""
    text, written = implicit(arguments[0], STRING, name), arguments[1]
    if not isinstance(written, Literal) or not isinstance(written.value, str):
        raise mismatch(name, (written.type,), "its schema is a literal, such as 'a INT, b DOUBLE'")
    plain = written.value.strip()
    type_ = _schema(plain)
    if type_ == VARIANT:
        return Call("try_parse_json", (text,), VARIANT, True)
    wrong = _unreadable(type_)
    if wrong is not None:
        raise mismatch(name, (wrong,), "read it as STRING, and cast it")
    return Typed((text, Literal(plain, STRING)), type_, True)


def _unreadable(type_: Type) -> Type | None:
    """A type inside of another that JSON is not read as; the keys of a map are texts."""
    if isinstance(type_, MapType) and type_.key != STRING:
        return type_
    if isinstance(type_, COMPOSITE):
        return next((wrong for part in parts_of_type(type_) if (wrong := _unreadable(part)) is not None), None)
    return None if is_number(type_) or type_ in (STRING, BOOLEAN) else type_


def _without_options(count: int, rule: Rule) -> Rule:
    """The rule of a function that Spark gives a map of options, too, which is refused."""

    def plain(name: str, arguments: Arguments) -> Typed | Expression:
        if len(arguments) > count:
            hint = f"{name} takes no options: read the fields as STRING, and convert them, or write them as text first"
            raise mismatch(name, tuple(a.type for a in arguments), hint)
        return rule(name, arguments)

    return plain


def _schema_of(inferred: Callable[[str], str]) -> Rule:
    """The schema of a text that is written down; of a column it would not be known before there are rows."""

    def rule(name: str, arguments: Arguments) -> Expression:
        (text,) = arguments
        if not isinstance(text, Literal) or not isinstance(text.value, str):
            raise mismatch(name, (text.type,), "write an example as a text: columns have types before there are rows")
        try:
            return Literal(inferred(text.value), STRING)
        except ValueError:
            raise mismatch(name, (text.type,), f"{shown(text.value)} is no JSON") from None

    return rule


def _from_csv(name: str, arguments: Arguments) -> Typed:
    text, written = implicit(arguments[0], STRING, name), arguments[1]
    if not isinstance(written, Literal) or not isinstance(written.value, str):
        raise mismatch(name, (written.type,), "its schema is a literal, such as 'a INT, b DOUBLE'")
    plain = written.value.strip()
    type_ = _schema(plain)
    fields = type_.fields if isinstance(type_, Struct) else ()
    wrong = next((f.type for f in fields if not is_simple(f.type)), None) if fields else type_
    if wrong is not None:
        raise mismatch(name, (wrong,), "read it as STRING, and cast it")
    return Typed((text, Literal(plain, STRING)), type_, text.nullable)


def _to_csv(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    if not isinstance(a.type, Struct):
        raise mismatch(name, (a.type,), "it takes a struct")
    wrong = next((f.type for f in a.type.fields if not is_simple(f.type) and f.type != VOID), None)
    if wrong is not None:
        raise mismatch(name, (wrong,), "its fields are numbers, text, truth values and moments")
    return Typed(arguments, STRING, True)


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
        *("from_json", 2, 3, _without_options(2, _from_json), "text, literal schema"),
        *(
            "a struct such as `'a INT, b ARRAY<STRING>'`, or an array; a field that does not fit is NULL; no options",
            "d",
        ),
    ),
    signed(
        *("to_json", 1, 2, _without_options(1, _to_json_or_variant), "struct, array, map or variant"),
        *("without fields that are NULL; no options", "d"),
    ),
    signed("term_quoted", 1, 1, takes(STRING, gives=STRING), "", "", "d"),  # of symbols in terms of rules
    signed("term_part", 4, 4, takes(STRING, STRING, INTEGER, STRING, gives=STRING), "", "", "d"),
    signed("term_checked", 2, 2, takes(STRING, STRING, gives=STRING), "", "", "d"),
    signed("json_part", 2, 2, takes(STRING, gives=STRING, nullable=True), "", "", "d"),  # of ``->``
    signed("json_member", 2, 2, takes(STRING, gives=STRING, nullable=True), "", "", "d"),  # of json_tuple
    signed(
        "schema_of_json",
        1,
        2,
        _without_options(1, _schema_of(json_schema)),
        "literal text",
        "the schema that from_json takes",
        "d",
    ),
    signed(
        "schema_of_csv",
        1,
        2,
        _without_options(1, _schema_of(csv_schema)),
        "literal text",
        "the schema that from_csv takes",
        "d",
    ),
    signed(
        *("from_csv", 2, 3, _without_options(2, _from_csv), "text, literal schema"),
        *("a struct such as `'a INT, b STRING'`; a field that does not fit is NULL; no options", "d"),
    ),
    signed("to_csv", 1, 2, _without_options(1, _to_csv), "struct", "no options", "d"),
)
