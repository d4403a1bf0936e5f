"""Types and literals as SQL writes them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql.context import QueryContext
from everview.plan.typing import call, cast, interval, literal, number
from everview.scalars.evaluate import fold
from everview.scalars.expressions import Expression, Literal, Now
from everview.scalars.kinds import DAY_TIME, MICROS, MONTHS, YEAR_MONTH
from everview.scalars.session_zone import today
from everview.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    Array,
    Decimal,
    Field,
    MapType,
    Struct,
    Type,
)
from everview.types.spellings import SPANS

D = exp.DataType.Type
TYPES: dict[Any, Type] = {
    D.BOOLEAN: BOOLEAN,
    D.TINYINT: TINYINT,
    D.SMALLINT: SMALLINT,
    D.INT: INTEGER,
    D.BIGINT: BIGINT,
    D.FLOAT: FLOAT,
    D.DOUBLE: DOUBLE,
    D.DATE: DATE,
    D.TIMESTAMP: TIMESTAMP,
    D.TIMESTAMPTZ: TIMESTAMP,
    D.TIMESTAMPLTZ: TIMESTAMP,
    D.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    D.TIME: TIME,
    D.DATETIME: TIMESTAMP,
    D.CHAR: STRING,
    D.VARCHAR: STRING,
    D.NCHAR: STRING,
    D.NVARCHAR: STRING,
    D.TEXT: STRING,
    D.BINARY: BINARY,
    D.VARBINARY: BINARY,
    D.VARIANT: VARIANT,
    D.JSON: STRING,
    # Unsigned and wider integers of other dialects, in what holds them.
    D.UTINYINT: SMALLINT,
    D.USMALLINT: INTEGER,
    D.UINT: BIGINT,
    D.UBIGINT: Decimal(20, 0),
    D.INT128: Decimal(38, 0),
}
_LENGTHS = (D.CHAR, D.VARCHAR, D.NCHAR, D.NVARCHAR, D.TEXT, D.BINARY, D.VARBINARY)
_NUMBER = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)?")
_UNITS = {
    "y": "year", "yr": "year", "mon": "month", "w": "week", "d": "day", "h": "hour", "hr": "hour",
    "m": "minute", "min": "minute", "s": "second", "sec": "second", "ms": "millisecond", "us": "microsecond",
}  # fmt: skip

_NEAR: Final = {
    D.UUID: "write STRING",
    D.ENUM: "write STRING, with CHECK (x IN ('a', 'b'))",
    D.JSON: "write VARIANT, or STRING with get_json_object",
    D.JSONB: "write VARIANT, or STRING with get_json_object",
    D.MONEY: "write DECIMAL(19, 4)",
    **dict.fromkeys((D.SERIAL, D.BIGSERIAL, D.SMALLSERIAL), "write BIGINT, and give the numbers: none are made here"),
}  # types of other databases, and what holds their values here
_KNOWN: Final = (
    "numbers, DECIMAL(p, s), STRING, BINARY, BOOLEAN, DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ, INTERVAL, ARRAY, "
    "STRUCT, MAP and VARIANT"
)


def type_of(node: exp.Expr, context: QueryContext) -> Type:
    """The type that a tree names."""
    if not isinstance(node, exp.DataType):
        raise context.unsupported(f"the type {node.sql()[:60]}", node)
    context.only(node, "this", "expressions", "nested", "nullable")
    kind, inner = node.this, node.expressions
    if kind in (D.DECIMAL, D.BIGDECIMAL):
        digits = [int(p.name) for p in inner]
        return Decimal(*digits) if digits else Decimal(18, 3) if context.dialect == "duckdb" else Decimal(10, 0)
    if kind in (D.ARRAY, D.LIST) and len(inner) == 1:
        return Array(type_of(inner[0], context))
    if kind == D.STRUCT:
        return Struct(Field(part.name, type_of(part.args["kind"], context)) for part in inner)
    if isinstance(kind, exp.Interval) or kind == D.INTERVAL:
        return interval_of(node, context)[1]
    if kind == D.MAP and len(inner) == 2:
        return MapType(*(type_of(part, context) for part in inner))
    simple = TYPES.get(kind)
    if simple in (TIME, TIMESTAMP, TIMESTAMP_NTZ) and len(inner) == 1 and inner[0].name in tuple("0123456"):
        return _with_digits(simple, inner[0].name, node, context)
    if simple is None or (inner and kind not in _LENGTHS):
        name = kind.value if isinstance(kind, D) and not inner else node.sql()[:60]
        raise context.unsupported(f"the type {name}", node, _NEAR.get(kind, f"there are {_KNOWN}"))
    return simple


def _with_digits(type_: Type, digits: str, node: exp.DataType, context: QueryContext) -> Type:
    """A type of moments or times with so many digits of a second; a column keeps all six, whatever is written."""
    if digits == "6" or _of_column(node):
        return type_
    if type_ != TIME:
        hint = "write date_trunc('millisecond', ts) to cut digits off"
        raise context.unsupported(f"{type_.sql}({digits}) but as the type of a column", node, hint)
    if not isinstance(node.parent, exp.Cast):
        hint = "write TIME, which has six, and CAST(x AS TIME(3)) where it is read"
        raise context.unsupported(f"TIME({digits}) inside of a type", node, hint)
    return type_


def is_interval_of_any_units(node: exp.Expr) -> bool:
    """Whether a type is INTERVAL alone, as the type of a cast, where its text says the units."""
    kind = node.this
    bare = isinstance(kind, exp.Interval) and kind.args.get("unit") is None
    return isinstance(node, exp.DataType) and (bare or kind == D.INTERVAL) and isinstance(node.parent, exp.Cast)


def interval_in_text(text: str, node: exp.Expr, context: QueryContext) -> Literal:
    """An interval as a text says it: ``1 day``, ``INTERVAL '1' DAY``, ``1 mon``, ``1 day 02:03:04``."""
    said = text.strip().lower()
    if said.startswith("interval "):
        said = said.removeprefix("interval ").replace("'", "").strip()
    turned = said.endswith(" ago")
    said = said.removesuffix(" ago").strip()
    clock = _CLOCK.search(said)
    parts = [] if clock is None else [_of_clock(clock)]
    rest = said if clock is None else said[: clock.start()].strip()
    if rest or clock is None:
        parts.append(_written(rest, None, node, context))
    total = _total(parts, node, context)
    return Literal(-total.value, total.type) if turned else total


_CLOCK: Final = re.compile(r"(?:^|(?<=\s))([+-]?)(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d{1,9})?))?$")


def _of_clock(written: re.Match[str]) -> Literal:
    """``02:03:04.5``: hours, minutes and seconds."""
    sign, hours, minutes, seconds = written.groups()
    total = int(hours) * MICROS["hour"] + int(minutes) * MICROS["minute"]
    total += int(decimal.Decimal(seconds or 0) * MICROS["second"])
    return Literal(-total if sign == "-" else total, DAY_TIME)


def interval_of(node: exp.DataType, context: QueryContext) -> tuple[str, Type]:
    """The units of a type of intervals, as ``DAY TO SECOND``, and the type that holds them."""
    unit = node.this.args.get("unit") if isinstance(node.this, exp.Interval) else None
    if unit is None:
        raise context.error("INTERVAL of which units?", node, "write INTERVAL DAY TO SECOND, or INTERVAL YEAR TO MONTH")
    ends = (unit.this, unit.expression) if isinstance(unit, exp.IntervalSpan) else (unit,)
    units = " TO ".join(end.name.upper() for end in ends)
    if units not in SPANS:
        raise context.error(f"there is no INTERVAL {units[:40]}", node, f"there are {', '.join(SPANS)}")
    return units, SPANS[units]


def _of_column(node: exp.Expr) -> bool:
    """Whether a type is that of a column of a table, and no part of another type."""
    return isinstance(node.parent, exp.ColumnDef) and not isinstance(node.parent.parent, exp.DataType)


def digits_of_time(node: exp.DataType) -> int | None:
    """The digits of a second that a column of TIME(p) has, if they are fewer than six."""
    if TYPES.get(node.this) != TIME or len(node.expressions) != 1:
        return None
    digits = int(node.expressions[0].name)
    return digits if digits < 6 else None


def longest_text(node: exp.Expr, context: QueryContext) -> int | None:
    """How many letters a column of VARCHAR(n) or CHAR(n) holds; None for any number, as always in DuckDB."""
    if context.dialect == "duckdb" or node.this not in _LENGTHS or TYPES[node.this] != STRING:
        return None
    return int(node.expressions[0].name) if node.expressions and node.expressions[0].name.isdigit() else None


def constant(node: exp.Literal, context: QueryContext) -> Expression:
    """A text, or a number of the type that Spark gives it: 1 INTEGER, 1.5 DECIMAL(2,1), 1e3 DOUBLE."""
    if node.is_string:
        return literal(node.this)
    text = node.this.replace("_", "")
    if text.isdigit():
        if len(text.lstrip("0")) > Decimal(38, 0).precision:
            raise context.error("a number of more than 38 digits", node, "write it as 1e40 for a DOUBLE")
        return literal(int(text))
    if "e" in text.lower():
        value = float(text)
        if math.isinf(value):
            raise context.error(f"{text[:40]} is no DOUBLE", node, "the greatest is 1.7976931348623157e308")
        return literal(value)
    exact = decimal.Decimal(text)
    if len(exact.as_tuple().digits) > 38 or -int(exact.as_tuple().exponent) > 38:
        raise context.error("a number of more than 38 digits", node, "write it as 1e0 for a DOUBLE")
    return number(exact)


def hexadecimal(node: exp.HexString, context: QueryContext) -> Expression:
    """``X'1F'``: bytes."""
    text = str(node.this)
    try:
        return literal(bytes.fromhex("0" + text if len(text) % 2 else text))
    except ValueError:
        raise context.error(f"{text[:20]!r} is not hexadecimal", node) from None


def moment(text: str, type_: Type, node: exp.Expr, context: QueryContext) -> Expression:
    """``DATE '2026-01-01'``, ``TIMESTAMP '2026-01-01 12:00:00'``, ``TIME '12:00:00'``: the text cast at once."""
    read = read_moment(literal(text), type_)
    if read is None:
        forms: dict[Type, str] = {DATE: "DATE '2026-01-31'", TIME: "TIME '23:59:59'"}
        hint = "write " + forms.get(type_, f"{type_} '2026-01-31 23:59:59'")
        raise context.error(f"{text[:40]!r} is no {type_}", node, hint)
    return read


def read_moment(text: Literal, type_: Type) -> Expression | None:
    """A literal text as a date or timestamp, read as a cast of a column would; None if it is neither.

    A literal may also be one of the words in `_SPECIAL`.
    """
    named = None if type_ == TIME else _SPECIAL.get(str(text.value).strip().lower())
    if named is not None:
        special = named()
        return special if special == Now("timestamp") and type_ == TIMESTAMP else cast(cast(special, DATE), type_)
    folded = fold(cast(text, type_))
    return folded if isinstance(folded, Literal) else None


_SPECIAL: dict[str, Callable[[], Expression]] = {
    "epoch": lambda: Literal(dt.date(1970, 1, 1), DATE),
    "now": lambda: Now("timestamp"),
    "today": today,
    "yesterday": lambda: call("date_sub", today(), literal(1)),
    "tomorrow": lambda: call("date_add", today(), literal(1)),
}


def duration(node: exp.Interval, context: QueryContext) -> Literal | None:
    """A literal interval; None if its amount is an expression, which counts units of `unit_of`."""
    context.only(node, "this", "unit")
    amount, unit = node.this, node.args.get("unit")
    if isinstance(amount, exp.Neg) and isinstance(amount.this, exp.Literal):
        positive = duration(exp.Interval(this=amount.this.copy(), unit=unit), context)
        return None if positive is None else Literal(-positive.value, positive.type)
    if isinstance(unit, exp.IntervalSpan):
        return _spanned(amount.name, unit, context)
    if isinstance(amount, exp.Literal) and unit is None and context.dialect != "spark":
        return interval_in_text(amount.name, node, context)
    if isinstance(amount, exp.Literal):
        return _written(amount.name, None if unit is None else unit.name, node, context)
    return None


def unit_of(node: exp.Interval, context: QueryContext) -> Literal:
    """An interval of one unit, as the interval names it."""
    unit = node.args.get("unit")
    if unit is None:
        raise context.error("an interval of which unit?", node, "write INTERVAL 3 DAYS")
    return _part("1", unit.name, node, context)


def _written(text: str, unit: str | None, node: exp.Expr, context: QueryContext) -> Literal:
    """``'3' DAY``, ``'30 days'``, ``'1 day 2 hours'``."""
    if unit is not None and ":" not in text:
        number = _NUMBER.fullmatch(text)
        if number is not None and number[2] is None:
            return _part(number[1], unit, node, context)
    parts = list(_NUMBER.finditer(text))
    if not parts or "".join(p[0] for p in parts).strip() != text.strip() or any(p[2] is None for p in parts):
        raise context.error(f"{text[:40]!r} is no interval", node, "write INTERVAL '3' DAY or INTERVAL '1 day 2 hours'")
    return _total([_part(p[1], p[2], node, context) for p in parts], node, context)


def _part(amount: str, unit: str, node: exp.Expr, context: QueryContext) -> Literal:
    value = decimal.Decimal(amount)
    unit = _unit(unit)
    if value != int(value) and unit in MONTHS:
        raise context.error(f"{amount} {unit} is no whole number of months", node, "write whole numbers")
    if abs(value) * (MONTHS.get(unit) or MICROS.get(unit, 1)) >= (2**31 if unit in MONTHS else 2**63):
        raise context.error(f"an interval of {amount[:30]} {unit}s is too long", node)
    try:
        return interval(int(value) if value == int(value) else value, unit)
    except EverviewError as error:
        context.source.locate(error, node)
        raise


def _total(parts: list[Literal], node: exp.Expr, context: QueryContext) -> Literal:
    kinds = {part.type for part in parts}
    if len(kinds) > 1 and YEAR_MONTH in kinds:
        raise context.error("an interval of months and of days", node, "add two intervals, one after the other")
    type_ = kinds.pop() if len(kinds) == 1 else DAY_TIME
    return Literal(sum(part.value for part in parts), type_)


def _spanned(text: str, span: exp.IntervalSpan, context: QueryContext) -> Literal:
    """``'1-2' YEAR TO MONTH``, ``'1 02:03:04' DAY TO SECOND`` and what lies between two smaller units."""
    units = (_unit(span.this.name), _unit(span.expression.name))
    if units == ("year", "month"):
        match = re.fullmatch(r"\s*([+-])?(\d+)-(\d+)\s*", text)
        if match is not None and int(match[3]) < 12:
            months = int(match[2]) * 12 + int(match[3])
            return Literal(-months if match[1] == "-" else months, YEAR_MONTH)
    written = _SPANS.get(units)
    match = None if written is None else re.fullmatch(rf"\s*(?P<sign>[+-])?{written}\s*", text)
    if match is None:
        raise context.unsupported(f"the interval {text[:40]!r} {' TO '.join(units).upper()}", span)
    parts = match.groupdict(default="0")
    sign = parts.pop("sign")
    first = next(iter(parts))
    for unit, most in (("hour", 24), ("minute", 60), ("second", 60)):
        if unit != first and decimal.Decimal(parts.get(unit, 0)) >= most:
            raise context.error(f"{text[:40]!r} has {parts[unit]} {unit}s", span, f"there are {most} at most")
    total = sum(int(decimal.Decimal(amount) * MICROS[unit]) for unit, amount in parts.items())
    return Literal(-total if sign == "-" else total, DAY_TIME)


_WRITTEN = {
    "day": r"(?P<day>\d+)", "hour": r"(?P<hour>\d+)", "minute": r"(?P<minute>\d+)",
    "second": r"(?P<second>\d+(?:\.\d{1,9})?)",
}  # fmt: skip
_SPANS = {
    (units[start], units[end]): _WRITTEN["day"] + r"\s+" * (end > 0) + ":".join(_WRITTEN[u] for u in units[1 : end + 1])
    if start == 0
    else ":".join(_WRITTEN[u] for u in units[start : end + 1])
    for units in (("day", "hour", "minute", "second"),)
    for start in range(4)
    for end in range(start + 1, 4)
}


def _unit(name: str) -> str:
    name = name.lower()
    return _UNITS.get(name) or _UNITS.get(name.removesuffix("s")) or name.removesuffix("s")
