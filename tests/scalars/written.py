"""Expressions written once for SQL and for us: a call such as ``date_add(dt, 1)`` is read by both.

`expression` reads the text with Python's grammar: names are columns of `SCHEMA` or functions, numbers with a point are
DECIMAL as in SQL, ``a == b`` is SQL's ``a = b``.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from everview.plan.typing import call, cast, interval, literal
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Column, Expression, Now
from everview.types import Schema, parse_type

D = decimal.Decimal
NAN = float("nan")
SCHEMA = Schema.parse(
    "i INT, l BIGINT, si SMALLINT, d DOUBLE, f FLOAT, m DECIMAL(12,2), w DECIMAL(38,10), s STRING, t STRING,"
    " dt DATE, ts TIMESTAMP, b BOOLEAN, a ARRAY<INT>, x BINARY, n INT"
)


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


ROWS: list[tuple[Any, ...]] = [
    (1, 2, 3, 1.5, 2.5, D("1.25"), D("1.5"), "abc", "b", dt.date(2024, 1, 31), at("2024-01-31 12:34:56.789"), True,
     [3, 1, None, 1], b"ab", None),
    (-7, 5_000_000_000, -3, -2.675, -0.1, D("-99.99"), D("-12345678901234567890.0123456789"), "Hello World", "o",
     dt.date(1969, 12, 31), at("1969-12-31 23:59:59.999999"), False, [], b"", None),
    (None,) * 15,
    (10, -9, 7, NAN, float("inf"), D("0.05"), D("0.0000000001"), " a,b  ", ",", dt.date(2000, 2, 29),
     at("2000-02-29 00:00:00"), None, [None], b"\xff\x00", 5),
    (4, 3, 2, 1e20, 1e-5, D("12.50"), D("3"), "éàß", "à", dt.date(2023, 12, 31), at("2023-12-31 23:59:59.5"), True,
     [5, 2], "é".encode(), None),
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Written:
    """An expression under Python's operators."""

    expression: Expression

    def __add__(self, other: Any) -> Written:
        return of("add", self, other)

    def __radd__(self, other: Any) -> Written:
        return of("add", other, self)

    def __sub__(self, other: Any) -> Written:
        return of("subtract", self, other)

    def __rsub__(self, other: Any) -> Written:
        return of("subtract", other, self)

    def __mul__(self, other: Any) -> Written:
        return of("multiply", self, other)

    def __rmul__(self, other: Any) -> Written:
        return of("multiply", other, self)

    def __truediv__(self, other: Any) -> Written:
        return of("divide", self, other)

    def __rtruediv__(self, other: Any) -> Written:
        return of("divide", other, self)

    def __mod__(self, other: Any) -> Written:
        return of("modulo", self, other)

    def __neg__(self) -> Written:
        return of("negate", self)

    def __invert__(self) -> Written:
        return of("bit_not", self)

    def __and__(self, other: Any) -> Written:
        return of("bit_and", self, other)

    def __or__(self, other: Any) -> Written:
        return of("bit_or", self, other)

    def __xor__(self, other: Any) -> Written:
        return of("bit_xor", self, other)

    def __lt__(self, other: Any) -> Written:
        return of("less", self, other)

    def __le__(self, other: Any) -> Written:
        return of("less_equal", self, other)

    def __gt__(self, other: Any) -> Written:
        return of("greater", self, other)

    def __ge__(self, other: Any) -> Written:
        return of("greater_equal", self, other)

    def __eq__(self, other: object) -> Any:
        return of("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return of("not_equal", self, other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def plain(value: Any) -> Expression:
    if isinstance(value, Written):
        return value.expression
    # A number with a point is DECIMAL.
    return literal(D(repr(value)) if isinstance(value, float) else value)


def of(name: str, *arguments: Any) -> Written:
    return Written(call(name, *map(plain, arguments)))


class Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        if name in SCHEMA:
            index = SCHEMA.index(name)
            return Written(Column(index, name, SCHEMA[index].type))
        return lambda *arguments: of(name.rstrip("_"), *arguments)


NAMES = Names(
    cast=lambda value, name: Written(cast(plain(value), parse_type(name))),
    try_cast=lambda value, name: Written(cast(plain(value), parse_type(name), try_=True)),
    interval=lambda amount, unit: Written(interval(amount, unit)),
    date=lambda text: Written(literal(dt.date.fromisoformat(text))),
    timestamp=lambda text: Written(literal(at(text))),
    double=lambda value: Written(literal(float(value))),
    big=lambda value: Written(literal(value, parse_type("BIGINT"))),
    current_timestamp=lambda: Written(Now("timestamp")),
    null=None,
    true=True,
    false=False,
    len=lambda *arguments: of("length", *arguments),
    pow=lambda *arguments: of("pow", *arguments),
    abs=lambda *arguments: of("abs", *arguments),
    round=lambda *arguments: of("round", *arguments),
    hex=lambda *arguments: of("hex", *arguments),
    chr=lambda *arguments: of("chr", *arguments),
    ascii=lambda *arguments: of("ascii", *arguments),
    hash=lambda *arguments: of("hash", *arguments),
)


def expression(text: str) -> Expression:
    """What the text means to us."""
    python = re.sub(r"(?<![<>=!])=(?![=>])", "==", text)
    return plain(eval(python, {"__builtins__": {}}, NAMES))


COLUMNS = [pa.array([row[i] for row in ROWS], f.type.arrow) for i, f in enumerate(SCHEMA.fields)]


def evaluated(found: Expression) -> list[Any]:
    return Evaluate((found,))(*COLUMNS)[0].to_pylist()
