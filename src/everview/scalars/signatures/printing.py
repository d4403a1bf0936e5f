"""Signatures of functions that write values as text by formats, and read them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from everview.later import Later
from everview.scalars.coercion import (
    FRACTIONS,
    MOST_DIGITS,
    coerced,
    decimal_of,
    implicit,
    is_simple,
    mismatch,
)
from everview.scalars.expressions import Call, Cast, Expression, Literal
from everview.scalars.kinds import VOID
from everview.scalars.signatures.rules import Arguments, Signatures, Typed, family, operand, signed, takes
from everview.types import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INTERVALS,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
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


# -- what casts and functions of other dialects are computed by; no query calls them by name


def _float_text(name: str, arguments: Arguments) -> Typed:
    value = arguments[0] if arguments[0].type == FLOAT else implicit(arguments[0], DOUBLE, name)
    if not isinstance(arguments[1], Literal) or arguments[1].value not in ("duckdb", "postgres"):
        raise mismatch(name, (arguments[1].type,), "its dialect is duckdb or postgres")
    return Typed((value, arguments[1]), STRING)


FOREIGN: Final[Signatures] = family(
    signed("upper_letters lower_letters", 2, 2, takes(STRING, gives=STRING)),
    signed("capitalized", 1, 1, takes(STRING, gives=STRING)),
    signed("float_text", 2, 2, _float_text),
    signed("escaped_bytes", 2, 2, takes(STRING, gives=BINARY)),
    signed("gcd lcm", 2, 2, takes(BIGINT, gives=BIGINT)),
)
