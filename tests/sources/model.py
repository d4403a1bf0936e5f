"""What a source must answer, written plainly: rows in a list, conditions by their truth tables, orders by comparing."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import strategies as st

from everview.sources.protocol import All, Any_, Compare, Condition, Not, Request, Row
from everview.types import Schema

SCHEMA = Schema.parse(
    "id BIGINT NOT NULL, n BIGINT, name STRING, price DECIMAL(8,2), score DOUBLE, day DATE, at TIMESTAMP,"
    " ok BOOLEAN, raw BINARY, must BIGINT NOT NULL"
)
KEY = ("id",)
VALUES: dict[str, list[Any]] = {
    "id": list(range(1, 13)),
    "n": [-3, -1, 0, 1, 2, 2**62],
    "name": ["", "a", "A", "ab", "aB", "b%", "a_b", "[x]", "*", "é", "z\n", "～", "𝄞", "back\\slash"],
    "price": [decimal.Decimal(text) for text in ("-9.99", "0.00", "0.10", "9.50", "123456.78")],
    "score": [-1.5, 0.0, 0.1, 2.0, 1e300, float("inf")],
    "day": [dt.date(1999, 12, 31), dt.date(2026, 1, 1), dt.date(2026, 1, 2)],
    "at": [
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC),
        dt.datetime(2025, 6, 1, 12, 30, 15, 250000, tzinfo=dt.UTC),
    ],
    "ok": [False, True],
    "raw": [b"", b"\x00", b"a", b"\xff"],
    "must": [0, 1, 2],
}
OTHER: dict[str, list[Any]] = {  # values that a column never has, but may be compared with
    "n": [0.5, -2.5, 2**70, -(2**70), decimal.Decimal("1.5"), float("inf"), float("nan")],
    "price": [0.1, 3, decimal.Decimal("0.105"), decimal.Decimal("9.4999"), 1e30],
    "score": [3, decimal.Decimal("0.1"), float("nan")],
    "must": [0.5, 10**30],
}
PATTERNS = ["", "%", "_", "a%", "%b", "a\\_b", "_%", "[x]", "*", "%\\%", "A_", "z_", "é", "%\\\\%"]


def rows() -> st.SearchStrategy[list[Row]]:
    one = st.tuples(*(_column(name) for name in SCHEMA.names))
    return st.lists(one, max_size=12, unique_by=lambda row: row[0])


def _column(name: str) -> st.SearchStrategy[Any]:
    values = st.sampled_from(VALUES[name])
    return st.one_of(st.none(), values) if SCHEMA[name].nullable else values


def conditions() -> st.SearchStrategy[Condition]:
    return st.recursive(compares(), _combined, max_leaves=5)


def _combined(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    several = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(st.builds(All, several), st.builds(Any_, several), st.builds(Not, inner))


@st.composite
def compares(draw: st.DrawFn) -> Compare:
    column = draw(st.sampled_from(SCHEMA.names))
    value = st.one_of(st.sampled_from([*VALUES[column], *OTHER.get(column, [])]), st.none())
    operators = ["=", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"]
    if column == "name":
        operators += ["like", "not like"] * 2
    match draw(st.sampled_from(operators)):
        case "in" | "not in" as operator:
            return Compare(column, operator, tuple(draw(st.lists(value, max_size=3))))
        case "like" | "not like" as operator:
            return Compare(column, operator, draw(st.sampled_from(PATTERNS)))
        case operator:
            return Compare(column, operator, draw(value))  # type: ignore[arg-type]


@st.composite
def requests(draw: st.DrawFn, known: list[Row]) -> Request:
    order = draw(st.lists(st.tuples(st.sampled_from(SCHEMA.names), st.sampled_from(["asc", "desc"])), max_size=3))
    after = draw(st.none() | st.sampled_from(known)) if known else None
    return Request(draw(conditions()), tuple(order), after, draw(st.none() | st.integers(0, 5)))


# -- what it means


def answer(known: Iterable[Row], request: Request) -> list[Row]:
    found = [row for row in known if holds(request.where, row) is True]
    compare = comparing(request.order)
    found.sort(key=functools.cmp_to_key(compare))
    if request.after is not None:
        after = request.after
        found = [row for row in found if compare(row, after) > 0]
    return found if request.limit is None else found[: request.limit]


def comparing(order: Iterable[tuple[str, str]]) -> Callable[[Row, Row], int]:
    terms = [*((SCHEMA.index(column), way) for column, way in order), (0, "asc")]

    def compare(a: Row, b: Row) -> int:
        for at, way in terms:
            found = _compare(a[at], b[at])
            if found:
                return found if way == "asc" else -found
        return 0

    return compare


def _compare(a: Any, b: Any) -> int:
    if a is None or b is None:
        return (a is not None) - (b is not None)
    a, b = (v.encode() if isinstance(v, str) else v for v in (a, b))
    if a != a or b != b:
        return (a != a) - (b != b)
    return (a > b) - (a < b)


def holds(condition: Condition, row: Row) -> bool | None:
    match condition:
        case All(conditions):
            found = [holds(each, row) for each in conditions]
            return False if False in found else None if None in found else True
        case Any_(conditions):
            found = [holds(each, row) for each in conditions]
            return True if True in found else None if None in found else False
        case Not(inner):
            known = holds(inner, row)
            return None if known is None else not known
        case Compare(column, operator, value):
            return _holds(row[SCHEMA.index(column)], operator, value)


def _holds(value: Any, operator: str, other: Any) -> bool | None:
    if operator in ("is", "is not"):
        same = value is None if other is None else value is not None and _like_number(value, other, 0)
        return same if operator == "is" else not same
    if operator in ("in", "not in"):
        each = [_holds(value, "=", one) for one in other]
        found = True if True in each else None if None in each else False
        return found if operator == "in" or found is None else not found
    if value is None or other is None:
        return None
    if operator in ("like", "not like"):
        return _like(value, other) is (operator == "like")
    wanted = {"=": (0,), "!=": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}[operator]
    return any(_like_number(value, other, each) for each in wanted)


def _like_number(value: Any, other: Any, wanted: int) -> bool:
    if isinstance(value, decimal.Decimal) and isinstance(other, float) and other == other:
        other = decimal.Decimal(repr(other))
    if isinstance(value, float) and isinstance(other, decimal.Decimal):
        other = float(other)
    return _compare(value, other) == wanted


def _like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return any(_like(text[at:], rest) for at in range(len(text) + 1))
    if first == "\\":
        first, rest = rest[0], rest[1:]
    elif first == "_":
        return bool(text) and _like(text[1:], rest)
    return text[:1] == first and _like(text[1:], rest)
