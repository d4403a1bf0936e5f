"""Signatures of functions that read and write JSON and CSV, with their schemas and their options.

Moments have no place in JSON, and many forms in CSV: they are read and written as text, and the text is turned into
moments, or made of them, by the pattern of an option.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from everview.errors import shown
from everview.later import Later
from everview.scalars.coercion import coerced, implicit, is_integer, is_number, is_simple, mismatch
from everview.scalars.expressions import Call, Cast, Expression, Literal
from everview.scalars.kinds import VOID
from everview.scalars.session_zone import UTC, cast_in_zone, current_zone, in_session_zone
from everview.scalars.signatures.rules import Arguments, Rule, Signatures, Typed, family, signed, takes
from everview.types import (
    BOOLEAN,
    COMPOSITE,
    DATE,
    INTEGER,
    INTERVALS,
    STRING,
    TIME,
    TIMESTAMP,
    VARIANT,
    Array,
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
else:
    csv_schema = Later("everview.scalars.inferred", "csv_schema")
    json_schema = Later("everview.scalars.inferred", "json_schema")


# -- options

_SYNTAX: Final = ("allowComments", "allowUnquotedFieldNames", "allowSingleQuotes", "allowNumericLeadingZeros")
_FORMATS: Final = ("timestampFormat", "dateFormat")
CORRUPT: Final = "columnNameOfCorruptRecord"
_CORRUPT_RECORD: Final = "_corrupt_record"  # the name of that field where none is given
_CELLS: Final = ("sep", "delimiter", "quote", "nullValue")
_OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "from_json": ("mode", CORRUPT, *_FORMATS, *_SYNTAX),
    "to_json": (*_FORMATS, "ignoreNullFields"),
    "from_csv": ("mode", *_FORMATS, *_CELLS),
    "to_csv": (*_FORMATS, *_CELLS, "quoteAll"),
    "schema_of_json": (*_SYNTAX, "primitivesAsString", "prefersDecimal"),
    "schema_of_csv": _CELLS[:3],
}
_TRUTHS: Final = (*_SYNTAX, "ignoreNullFields", "quoteAll", "primitivesAsString", "prefersDecimal")


@dataclass(frozen=True, slots=True)
class TextOptions:
    """The options of a call: patterns of moments, and what its kernel is told."""

    timestamps: str | None = None
    dates: str | None = None
    told: tuple[tuple[str, str], ...] = ()

    @property
    def argument(self) -> tuple[Literal, ...]:
        """The options as the last argument of a call; none if the kernel is told nothing."""
        return (Literal(json.dumps(dict(self.told)), STRING),) if self.told else ()

    def in_zone(self, written: Type) -> TextOptions:
        """The options, with the zone of the session where moments are to be written in another than UTC."""
        if current_zone() == UTC or not _shows_zone(written):
            return self
        return replace(self, told=(*self.told, ("timeZone", current_zone())))

    @property
    def as_given(self) -> Mapping[str, str]:
        return dict(self.told)


def _shows_zone(type_: Type) -> bool:
    return type_ in (TIMESTAMP, VARIANT) or any(_shows_zone(part) for part in parts_of_type(type_))


def _options(name: str, given: Arguments) -> TextOptions:
    """Read the options of a call, a map of texts that is written down."""
    if not given:
        return TextOptions()
    (written,) = given
    parts = written.arguments if isinstance(written, Call) and written.function == "map" else None
    texts = None if parts is None else [part.value if isinstance(part, Literal) else None for part in parts]
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise mismatch(name, (written.type,), "options are written down: map('mode', 'FAILFAST')")
    known = {option.lower(): option for option in _OPTIONS[name]}
    read: dict[str, str] = {}
    for option, value in zip(texts[::2], texts[1::2], strict=True):
        if str(option).lower() not in known:
            hint = f"{name} has no option {shown(str(option))}; it has {', '.join(_OPTIONS[name])}"
            raise mismatch(name, (written.type,), hint)
        read[known[str(option).lower()]] = _checked(name, known[str(option).lower()], str(value), written)
    timestamps, dates = (read.pop(option, None) for option in _FORMATS)
    if "delimiter" in read:
        read["sep"] = read.pop("delimiter")
    return TextOptions(timestamps, dates, tuple(sorted(read.items())))


def _checked(name: str, option: str, value: str, written: Expression) -> str:
    """The value of an option in one spelling."""
    allowed: tuple[str, ...] = ("TRUE", "FALSE") if option in _TRUTHS else ("PERMISSIVE", "FAILFAST")
    if option in _TRUTHS or option == "mode":
        if value.upper() not in allowed:
            raise mismatch(name, (written.type,), f"{option} is {' or '.join(allowed)}, not {shown(value)}")
        return value.upper()
    if option in ("sep", "delimiter", "quote") and len(value) != 1:
        raise mismatch(name, (written.type,), f"{option} is one character, not {shown(value)}")
    return value


# -- moments inside of structs


def _as_text(type_: Type, types: tuple[Type, ...]) -> Type:
    """A struct with text for the fields of some types, also in structs inside."""
    if isinstance(type_, Struct):
        return Struct(Field(f.name, _as_text(f.type, types), f.nullable) for f in type_.fields)
    return STRING if type_ in types else type_


def _each_field(value: Expression, to: Type, change: Callable[[Expression, Type], Expression]) -> Expression:
    """A struct whose fields that are to be of another type are changed; NULL where the struct is."""
    if value.type == to:
        return value
    if not isinstance(to, Struct):
        return change(value, to)
    parts: list[Expression] = []
    for field in to.fields:
        name = Literal(field.name, STRING)
        inner = next(f for f in value.type.fields if f.name == field.name) if isinstance(value.type, Struct) else field
        part = Call("get_field", (value, name), inner.type, value.nullable or inner.nullable)
        parts += [name, _each_field(part, field.type, change)]
    made = Call("named_struct", tuple(parts), _struct_of(parts), False)
    if not value.nullable:
        return made
    missing = Call("is_null", (value,), BOOLEAN, False)
    return Call("if", (missing, Literal(None, made.type), made), made.type, True)


def _struct_of(parts: list[Expression]) -> Struct:
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return Struct(Field(str(n.value), v.type, v.nullable) for n, v in pairs if isinstance(n, Literal))


def _moment(options: TextOptions) -> Callable[[Expression, Type], Expression]:
    """Text as a moment by the pattern of the options, or as a cast reads it; NULL where it is none."""

    def read(text: Expression, to: Type) -> Expression:
        form = options.dates if to == DATE else options.timestamps
        if form is None:
            return cast_in_zone(text, to, try_=True)
        moment = Call("try_to_timestamp", (text, Literal(form, STRING)), TIMESTAMP, True)
        return Cast(moment, DATE) if to == DATE else in_session_zone(moment)

    return read


def _in_form(options: TextOptions) -> Callable[[Expression, Type], Expression]:
    """A moment as text by the pattern of the options."""

    def write(moment: Expression, _to: Type) -> Expression:
        form = Literal(options.dates if moment.type == DATE else options.timestamps, STRING)
        if moment.type == DATE:
            return Call("date_format", (Cast(moment, TIMESTAMP), form), STRING, moment.nullable)
        return in_session_zone(Call("date_format", (moment, form), STRING, moment.nullable))

    return write


def _formed(value: Expression, options: TextOptions) -> Expression:
    """A struct with its moments as text, as far as the options have patterns for them."""
    given = ((TIMESTAMP, options.timestamps), (DATE, options.dates))
    formed = tuple(type_ for type_, form in given if form is not None)
    return _each_field(value, _as_text(value.type, formed), _in_form(options)) if formed else value


# -- JSON


def _to_json(name: str, arguments: Arguments) -> Typed | Expression:
    (a, *given) = arguments
    options = _options(name, tuple(given))
    if a.type == VARIANT:
        zone = () if current_zone() == UTC else (Literal(current_zone(), STRING),)
        return Call("variant_json", (a, *zone), STRING, a.nullable)
    if not isinstance(a.type, COMPOSITE):
        raise mismatch(name, (a.type,), "it takes a struct, an array, a map or a variant")
    wrong = _keys_not_written(a.type)
    if wrong is not None:
        raise mismatch(name, (wrong,), "the keys of a map are written if they are text, whole numbers or truth values")
    formed = _formed(a, options)
    told = options.in_zone(formed.type).argument
    return Typed((coerced(formed, _of_json(formed.type)), *told), STRING)


def _of_json(type_: Type) -> Type:
    """A type with text for what JSON has no value for: times of day and intervals."""
    if isinstance(type_, Array):
        return Array(_of_json(type_.element))
    if isinstance(type_, Struct):
        return Struct(Field(f.name, _of_json(f.type), f.nullable) for f in type_.fields)
    if isinstance(type_, MapType):
        return MapType(type_.key, _of_json(type_.value))
    return STRING if type_ == TIME or type_ in INTERVALS else type_


def _keys_not_written(type_: Type) -> Type | None:
    """A map inside of a type whose keys have no text in JSON."""
    if isinstance(type_, MapType) and not (is_integer(type_.key) or type_.key in (STRING, BOOLEAN)):
        return type_
    return next((wrong for part in parts_of_type(type_) if (wrong := _keys_not_written(part)) is not None), None)


def _schema(plain: str) -> Type:
    if re.match(r"(?i)(array|struct|map)\s*<|variant$", plain):
        return parse_type(plain)
    return Struct(Field(field.name, field.type) for field in Schema.parse(plain).fields)


def _written_schema(name: str, written: Expression) -> str:
    if not isinstance(written, Literal) or not isinstance(written.value, str):
        raise mismatch(name, (written.type,), "its schema is a literal, such as 'a INT, b DOUBLE'")
    return written.value.strip()


def _from_json(name: str, arguments: Arguments) -> Typed | Expression:
    """A struct by ``'a INT, b DOUBLE'``, or the type that is written."""
    text, plain = implicit(arguments[0], STRING, name), _written_schema(name, arguments[1])
    options, type_ = _options(name, arguments[2:]), _schema(plain)
    options = _with_corrupt(options, type_, name)
    if type_ == VARIANT:
        return Call("try_parse_json", (text,), VARIANT, True)
    kept = _as_text(type_, (TIMESTAMP, DATE))
    wrong = _unreadable(kept)
    if wrong is not None:
        raise mismatch(name, (wrong,), "read it as STRING, and cast it")
    if kept == type_:
        return Typed((text, Literal(plain, STRING), *options.argument), type_, True)
    read = Call(name, (text, Literal(kept.sql, STRING), *options.argument), kept, True)
    return _each_field(read, type_, _moment(options))


def _with_corrupt(options: TextOptions, type_: Type, name: str) -> TextOptions:
    """The options with the name of the schema's field for texts that do not fit, if the schema has one."""
    column = options.as_given.get(CORRUPT, _CORRUPT_RECORD)
    told = tuple(pair for pair in options.told if pair[0] != CORRUPT)
    field = next((f for f in type_.fields if f.name == column), None) if isinstance(type_, Struct) else None
    if field is None:
        return replace(options, told=told)
    if field.type != STRING:
        raise mismatch(name, (field.type,), f"{column} takes texts: declare it as STRING")
    if _as_text(type_, (TIMESTAMP, DATE)) != type_:
        raise mismatch(name, (type_,), f"beside {column} read dates and timestamps as STRING, and cast them")
    return replace(options, told=tuple(sorted((*told, (CORRUPT, column)))))


def _unreadable(type_: Type) -> Type | None:
    """A type inside of another that JSON is not read as; the keys of a map are texts."""
    if isinstance(type_, MapType) and type_.key != STRING:
        return type_
    if isinstance(type_, COMPOSITE):
        return next((wrong for part in parts_of_type(type_) if (wrong := _unreadable(part)) is not None), None)
    return None if is_number(type_) or type_ in (STRING, BOOLEAN) else type_


def _schema_of(inferred: Callable[[str, Mapping[str, str]], str]) -> Rule:
    """The schema of a text that is written down; of a column it would not be known before there are rows."""

    def rule(name: str, arguments: Arguments) -> Expression:
        text, *given = arguments
        if not isinstance(text, Literal) or not isinstance(text.value, str):
            raise mismatch(name, (text.type,), "write an example as a text: columns have types before there are rows")
        try:
            return Literal(inferred(text.value, _options(name, tuple(given)).as_given), STRING)
        except ValueError:
            raise mismatch(name, (text.type,), f"{shown(text.value)} is no JSON") from None

    return rule


# -- CSV


def _from_csv(name: str, arguments: Arguments) -> Typed | Expression:
    text, plain = implicit(arguments[0], STRING, name), _written_schema(name, arguments[1])
    options, type_ = _options(name, arguments[2:]), _schema(plain)
    fields = type_.fields if isinstance(type_, Struct) else ()
    wrong = next((f.type for f in fields if not is_simple(f.type)), None) if fields else type_
    if wrong is not None:
        raise mismatch(name, (wrong,), "read it as STRING, and cast it")
    in_zone = "" if current_zone() != UTC else None  # a cast reads them by the clock of the zone
    given = ((TIMESTAMP, options.timestamps or in_zone), (DATE, options.dates))
    kept = _as_text(type_, tuple(moment for moment, form in given if form is not None))
    if kept == type_:
        return Typed((text, Literal(plain, STRING), *options.argument), type_, text.nullable)
    read = Call(name, (text, Literal(kept.sql, STRING), *options.argument), kept, text.nullable)
    return _each_field(read, type_, _moment(options))


def _to_csv(name: str, arguments: Arguments) -> Typed:
    (a, *given) = arguments
    options = _options(name, tuple(given))
    if not isinstance(a.type, Struct):
        raise mismatch(name, (a.type,), "it takes a struct")
    wrong = next((f.type for f in a.type.fields if not is_simple(f.type) and f.type != VOID), None)
    if wrong is not None:
        raise mismatch(name, (wrong,), "its fields are numbers, text, truth values and moments")
    formed = _formed(a, options)
    return Typed((formed, *options.in_zone(formed.type).argument), STRING, True)


_NULL: Final = "NULL where the text is no JSON of that kind"


def _with_options(name: str) -> str:
    return f"; options: {', '.join(f'`{option}`' for option in _OPTIONS[name])}"


JSON: Final[Signatures] = family(
    signed(
        *("get_json_object", 2, 2, takes(STRING, gives=STRING, nullable=True), "text, path"),
        *(
            "a path such as `$.a[0]['b c']`, `$.a[*].b` for all elements; the value as text; NULL where there is none",
            "d",
        ),
    ),
    signed("json_array_length", 1, 1, takes(STRING, gives=INTEGER, nullable=True), "text", _NULL, "d"),
    signed("json_object_keys", 1, 1, takes(STRING, gives=Array(STRING), nullable=True), "text", _NULL, "d"),
    signed(
        *("from_json", 2, 3, _from_json, "text, literal schema [, literal map of options]"),
        "a struct such as `'a INT, b ARRAY<STRING>'`, or an array; a field that does not fit is NULL"
        + _with_options("from_json"),
        "d",
    ),
    signed(
        *("to_json", 1, 2, _to_json, "struct, array, map or variant [, literal map of options]"),
        *("without fields that are NULL" + _with_options("to_json"), "d"),
    ),
    signed("term_quoted", 1, 1, takes(STRING, gives=STRING), "", "", "d"),  # of symbols in terms of rules
    signed("term_part", 4, 4, takes(STRING, STRING, INTEGER, STRING, gives=STRING), "", "", "d"),
    signed("term_checked", 2, 2, takes(STRING, STRING, gives=STRING), "", "", "d"),
    signed("json_part", 2, 2, takes(STRING, gives=STRING, nullable=True), "", "", "d"),  # of ``->``
    signed("json_member", 2, 2, takes(STRING, gives=STRING, nullable=True), "", "", "d"),  # of json_tuple
    signed(
        *("schema_of_json", 1, 2, _schema_of(json_schema), "literal text [, literal map of options]"),
        *("the schema that from_json takes" + _with_options("schema_of_json"), "d"),
    ),
    signed(
        *("schema_of_csv", 1, 2, _schema_of(csv_schema), "literal text [, literal map of options]"),
        *("the schema that from_csv takes" + _with_options("schema_of_csv"), "d"),
    ),
    signed(
        *("from_csv", 2, 3, _from_csv, "text, literal schema [, literal map of options]"),
        *("a struct such as `'a INT, b STRING'`; a field that does not fit is NULL" + _with_options("from_csv"), "d"),
    ),
    signed(
        "to_csv", 1, 2, _to_csv, "struct [, literal map of options]", _with_options("to_csv").removeprefix("; "), "d"
    ),
)
