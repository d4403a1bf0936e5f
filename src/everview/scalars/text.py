"""Expressions as SQL text, for `explain` and for errors.

>>> from everview.types import BIGINT
>>> from everview.scalars.expressions import Column
>>> from everview.plan.typing import call, literal
>>> x = Column(0, "x", BIGINT)
>>> sql(call("multiply", call("add", x, literal(1)), literal(2)))
'(x + 1L) * 2L'
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any, Final, assert_never

from everview.scalars.coercion import is_number
from everview.scalars.expressions import (
    USER,
    AggregateCall,
    AggregateWindowCall,
    Call,
    Cast,
    Column,
    ExcludingFrame,
    Exists,
    Expression,
    Frame,
    GivenValue,
    InQuery,
    LambdaCall,
    LambdaVariable,
    Literal,
    Now,
    Order,
    Outer,
    Scalar,
    UserCall,
    WindowCall,
)
from everview.scalars.kinds import DAY, INTERVALS, MICROS, YEAR_MONTH
from everview.types import BIGINT, DOUBLE, FLOAT, STRING, VARIANT, Array, Decimal, MapType, Struct, Type, Variant

# How tightly an operator binds its operands, loosest first.
_LEVELS: Final = (
    ("or",),
    ("and",),
    ("not",),
    ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "null_safe_equal", "in",
     "like", "ilike", "rlike", "is_null", "is_not_null"),
    ("bit_or",),
    ("bit_xor",),
    ("bit_and",),
    ("add", "subtract", "add_intervals", "subtract_intervals", "add_months_to", "add_days_to", "add_time_to",
     "subtract_months_to", "subtract_days_to", "subtract_time_to", "subtract_dates", "subtract_timestamps",
     "add_to_time", "subtract_from_time"),
    ("multiply", "divide", "integral_divide", "modulo", "scale_interval", "multiply_interval",
     "divide_interval"),
    ("negate", "bit_not"),
)  # fmt: skip
_LEVEL: Final = {name: level for level, names in enumerate(_LEVELS) for name in names}
_ATOM: Final = len(_LEVELS)
_INFIX: Final = {
    "or": "OR", "and": "AND", "equal": "=", "not_equal": "<>", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=", "null_safe_equal": "<=>", "like": "LIKE", "ilike": "ILIKE", "rlike": "RLIKE",
    "bit_or": "|", "bit_xor": "^", "bit_and": "&", "add": "+", "subtract": "-", "multiply": "*", "divide": "/",
    "integral_divide": "DIV", "modulo": "%", "scale_interval": "*",
    "multiply_interval": "*", "divide_interval": "/",
}  # fmt: skip
_INFIX_OF: Final = {name: _INFIX.get(name, "-" if name.startswith("subtract") else "+") for name in _LEVELS[7]} | _INFIX
_PREFIX: Final = {"not": "NOT ", "negate": "-", "bit_not": "~"}
_POSTFIX: Final = {"is_null": " IS NULL", "is_not_null": " IS NOT NULL"}


def sql(expression: Expression) -> str:
    """The expression as SQL text."""
    return _written(expression)[0]


def _written(expression: Expression) -> tuple[str, int]:
    """The text of an expression, and how tightly its outermost operator binds."""
    match expression:
        case Column(_, name) | Outer(_, _, name):
            return _name(name), _ATOM
        case Literal(value, type_):
            text = value_text(value, type_)
            return text, _LEVEL["negate"] if text.startswith("-") else _ATOM
        case Call():
            return _call(expression)
        case Cast(argument, type_, try_):
            return f"{'TRY_' if try_ else ''}CAST({sql(argument)} AS {type_.sql})", _ATOM
        case UserCall(name, arguments):
            return f"{name}({_listed(arguments)})", _ATOM
        case LambdaVariable(_, name):
            return _name(name), _ATOM
        case LambdaCall():
            return _lambda_call(expression), _ATOM
        case GivenValue(number):
            return f"${number + 1}", _ATOM
        case Now(kind):
            return f"CURRENT_{kind.upper()}", _ATOM
        case Exists() | InQuery() | Scalar():
            return _subquery(expression)
        case AggregateCall():
            return _aggregate(expression), _ATOM
        case WindowCall():
            return _window(expression), _ATOM
        case _:
            return repr(expression), _ATOM


def _lambda_call(call: LambdaCall) -> str:
    parts = [sql(argument) for argument in call.arguments]
    for variables, body in zip(call.variables, call.bodies, strict=True):
        names = [_name(variable.name) for variable in variables]
        parts.append(f"{names[0] if len(names) == 1 else '(' + ', '.join(names) + ')'} -> {sql(body)}")
    return f"{call.function}({', '.join(parts)})"


def _subquery(expression: Exists | InQuery | Scalar) -> tuple[str, int]:
    match expression:
        case Exists(plan, negated):
            return f"{'NOT ' if negated else ''}EXISTS ({plan})", _LEVEL["not"]
        case InQuery(arguments, plan, negated):
            return f"({_listed(arguments)}) {'NOT ' if negated else ''}IN ({plan})", _LEVEL["in"]
        case Scalar(plan):
            return f"({plan})", _ATOM
        case _:
            assert_never(expression)


def _name(name: str) -> str:
    return name if name.replace("_", "a").replace(".", "a").isalnum() else "`" + name.replace("`", "``") + "`"


def _listed(arguments: tuple[Expression, ...]) -> str:
    return ", ".join(map(sql, arguments))


def _within(expression: Expression, level: int) -> str:
    text, binds = _written(expression)
    return text if binds >= level else f"({text})"


def _call(call: Call) -> tuple[str, int]:
    name, arguments = call.function, call.arguments
    level = _LEVEL.get(name, _ATOM)
    if name in _PREFIX:
        return _PREFIX[name] + _within(arguments[0], level + (name == "negate")), level
    if name in _POSTFIX:
        return _within(arguments[0], level + 1) + _POSTFIX[name], level
    if name in _INFIX_OF and not (name in ("like", "ilike") and len(arguments) == 3):
        first, *rest = arguments
        mark = f" {_INFIX_OF[name]} "
        return mark.join([_within(first, level), *(_within(a, level + 1) for a in rest)]), level
    special = _SPECIAL.get(name)
    if special is not None:
        return special(arguments), level
    return f"{name}({_listed(arguments)})", _ATOM


def _in(arguments: tuple[Expression, ...]) -> str:
    return f"{_within(arguments[0], _LEVEL['in'] + 1)} IN ({_listed(arguments[1:])})"


def _case(arguments: tuple[Expression, ...]) -> str:
    pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
    branches = "".join(f" WHEN {sql(c)} THEN {sql(v)}" for c, v in pairs)
    last = arguments[-1]
    otherwise = "" if isinstance(last, Literal) and last.value is None else f" ELSE {sql(last)}"
    return f"CASE{branches}{otherwise} END"


def _like(word: str) -> Callable[[tuple[Expression, ...]], str]:
    return lambda arguments: f"{sql(arguments[0])} {word} {sql(arguments[1])} ESCAPE {sql(arguments[2])}"


def _member(arguments: tuple[Expression, ...]) -> str:
    field = arguments[1]
    assert isinstance(field, Literal)
    return f"{_within(arguments[0], _ATOM)}.{_name(field.value)}"


_SPECIAL: Final[dict[str, Callable[[tuple[Expression, ...]], str]]] = {
    "in": _in,
    "case": _case,
    "like": _like("LIKE"),
    "ilike": _like("ILIKE"),
    "get_field": _member,
}


def _aggregate(call: AggregateCall) -> str:
    inner = _listed(call.arguments) or "*"
    distinct = "DISTINCT " if call.distinct else ""
    order = f" ORDER BY {_ordered(call.order)}" if call.order else ""
    kept = f" FILTER (WHERE {sql(call.filter)})" if call.filter is not None else ""
    return f"{call.function.removeprefix(USER)}({distinct}{inner}{order}){kept}"


def _window(call: WindowCall) -> str:
    parts: list[str] = []
    if call.partition:
        parts.append(f"PARTITION BY {_listed(call.partition)}")
    if call.order:
        parts.append(f"ORDER BY {_ordered(call.order)}")
    if call.frame is not None:
        parts.append(_frame(call.frame))
    kept = f" FILTER (WHERE {sql(call.filter)})" if call.filter is not None else ""
    inner = _listed(call.arguments)
    if isinstance(call, AggregateWindowCall):
        inner = f"{'DISTINCT ' if call.distinct else ''}{inner}"
        inner += f" ORDER BY {_ordered(call.inner)}" if call.inner else ""
    return f"{call.function.removeprefix(USER)}({inner}){kept} OVER ({' '.join(parts)})"


def _ordered(order: Order) -> str:
    return ", ".join(f"{sql(by)} {direction.upper()}" for by, direction in order)


def _frame(frame: Frame) -> str:
    said = f"{frame.unit.upper()} BETWEEN {_bound(frame.start, 'PRECEDING')} AND {_bound(frame.end, 'FOLLOWING')}"
    return f"{said} EXCLUDE {frame.exclude.upper()}" if isinstance(frame, ExcludingFrame) else said


def _bound(bound: Any, side: str) -> str:
    if bound is None:
        return f"UNBOUNDED {side}"
    if isinstance(bound, Literal):
        return f"{sql(Literal(abs(bound.value), bound.type))} {'PRECEDING' if bound.value < 0 else 'FOLLOWING'}"
    if bound == 0:
        return "CURRENT ROW"
    return f"{-bound} PRECEDING" if bound < 0 else f"{bound} FOLLOWING"


def value_text(value: Any, type_: Type) -> str:
    """A value as SQL writes it."""
    if value is None:
        return "NULL"
    if isinstance(type_, Array | Struct | MapType):
        return _nested(value, type_)
    if type_ in INTERVALS:
        return _interval(value, type_)
    if type_ == STRING:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if type_ == VARIANT:
        return f"<variant {(value if isinstance(value, Variant) else Variant(value)).value!r}>"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, dt.date | dt.time):
        return _moment(value)
    return _number(value, type_) if is_number(type_) else str(value)


def _nested(value: Any, type_: Array | Struct | MapType) -> str:
    """An array, a struct or a map, as a call of the function that makes it."""
    if isinstance(type_, Array):
        return f"array({', '.join(value_text(v, type_.element) for v in value)})"
    parts = value if not isinstance(value, dict) else value.items() if isinstance(type_, MapType) else value.values()
    if isinstance(type_, Struct):
        return f"struct({', '.join(value_text(v, f.type) for v, f in zip(parts, type_.fields, strict=True))})"
    return f"map({', '.join(f'{value_text(k, type_.key)}, {value_text(v, type_.value)}' for k, v in parts)})"


def _moment(value: dt.date | dt.time) -> str:
    """A date, a time of day or a timestamp."""
    if isinstance(value, dt.time):
        return f"TIME '{value.isoformat()}'"
    if not isinstance(value, dt.datetime):
        return f"DATE '{value.isoformat()}'"
    if value.tzinfo is None:
        return f"TIMESTAMP_NTZ '{value.isoformat(' ')}'"
    return f"TIMESTAMP '{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ')}'"


def _number(value: Any, type_: Type) -> str:
    if type_ in (FLOAT, DOUBLE):
        if not math.isfinite(value):
            return f"CAST('{value}' AS {type_})"
        return f"{value!r}{'D' if type_ == DOUBLE else 'F'}"
    if isinstance(type_, Decimal):
        text = f"{value:f}"
        return text if "." in text else f"{text}BD"
    return f"{value}L" if type_ == BIGINT else str(value)


def _interval(value: Any, type_: Type) -> str:
    if isinstance(value, dt.timedelta):
        value = value // dt.timedelta(microseconds=1)
    if type_ == YEAR_MONTH:
        return f"INTERVAL {value} MONTH"
    units = ("day",) if type_ == DAY else ("day", "hour", "minute", "second", "millisecond", "microsecond")
    unit = next((u for u in units if value % MICROS[u] == 0), "microsecond")
    return f"INTERVAL {value // MICROS[unit]} {unit.upper()}"
