"""Requests as SQL: one text with marks, and the values for them; no value is ever part of the text.

>>> from everview.types import Schema
>>> class Plain:
...     same, different = "IS", "IS NOT"
...     def name(self, column): return f'"{column}"'
...     equal = ordered = name
...     def mark(self, column): return "?"
...     def direction(self, column, direction): return direction.upper()
...     def bind(self, column, value): return value
...     def special(self, compare): return None
...     def one_of(self, column, values): return "IN (?)", list(values)
...     def like(self, pattern): return "GLOB ?", pattern
>>> schema = Schema.parse("id BIGINT NOT NULL, n BIGINT")
>>> select(Plain(), '"t"', schema, Compare("n", ">", 3), (("n", "desc"), ("id", "asc")), 10)
('SELECT "id", "n" FROM "t" WHERE "n" > ? ORDER BY "n" DESC, "id" ASC LIMIT 10', [3])
"""

from __future__ import annotations

from typing import Any, Final, Protocol, assert_never

from everview.sources.order import Order
from everview.sources.protocol import All, Any_, Compare, Condition, Direction, Not
from everview.types import Schema

Sql = tuple[str, list[Any]]
_OPERATORS: Final = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class Dialect(Protocol):
    """The way in which one database writes names, values and conditions."""

    same: str  # equal, and NULL is equal to NULL
    different: str

    def name(self, column: str) -> str: ...
    def mark(self, column: str) -> str:
        """The mark for a value that is compared with a column, or put into it."""
        ...

    def equal(self, column: str) -> str:
        """The column as it is compared: equal only to values with the same bytes."""
        ...

    def ordered(self, column: str) -> str:
        """The column as it is ordered: by its bytes."""
        ...

    def direction(self, column: str, direction: Direction) -> str: ...
    def bind(self, column: str, value: Any) -> Any: ...
    def special(self, compare: Compare) -> Sql | None:
        """A comparison that this database writes differently; None for all others."""
        ...

    def one_of(self, column: str, values: tuple[Any, ...]) -> Sql: ...
    def like(self, pattern: str) -> tuple[str, Any]:
        """The operator of LIKE, and the pattern in the database's own form."""
        ...


def select(
    dialect: Dialect, table: str, schema: Schema, where: Condition, order: Order, limit: int | None = None
) -> Sql:
    """The query of the rows that meet a normal condition, in a total order."""
    columns = ", ".join(map(dialect.name, schema.names))
    condition, values = written(dialect, where)
    by = ", ".join(f"{dialect.ordered(column)} {dialect.direction(column, way)}" for column, way in order)
    most = "" if limit is None else f" LIMIT {int(limit)}"
    return f"SELECT {columns} FROM {table} WHERE {condition} ORDER BY {by}{most}", values


def written(dialect: Dialect, condition: Condition) -> Sql:
    """A normal condition as SQL, and its values."""
    match condition:
        case Compare():
            return _compare(dialect, condition)
        case All(conditions):
            return _joined(dialect, conditions, "AND", "TRUE")
        case Any_(conditions):
            return _joined(dialect, conditions, "OR", "FALSE")
        case Not(inner):
            text, values = written(dialect, inner)
            return f"NOT ({text})", values
        case _:
            assert_never(condition)


def _joined(dialect: Dialect, conditions: tuple[Condition, ...], by: str, none: str) -> Sql:
    if not conditions:
        return none, []
    if len(conditions) == 1:
        return written(dialect, conditions[0])
    parts = [written(dialect, each) for each in conditions]
    return f" {by} ".join(f"({text})" for text, _ in parts), [value for _, values in parts for value in values]


def _compare(dialect: Dialect, compare: Compare) -> Sql:
    special = dialect.special(compare)
    if special is not None:
        return special
    column, name, value = compare.column, dialect.name(compare.column), compare.value
    match compare.operator:
        case "in" | "not in":
            text, values = dialect.one_of(column, value)
            return (text if compare.operator == "in" else f"NOT ({text})"), values
        case "like" | "not like":
            text, pattern = dialect.like(value) if value is not None else (f"= {dialect.mark(column)}", None)
            return (f"{name} {text}" if compare.operator == "like" else f"NOT ({name} {text})"), [pattern]
        case "is" | "is not" if value is None:
            return f"{name} {compare.operator.upper()} NULL", []
        case "is" | "is not":
            by = dialect.same if compare.operator == "is" else dialect.different
            return f"{dialect.equal(column)} {by} {dialect.mark(column)}", [dialect.bind(column, value)]
        case "=" | "!=":
            by = _OPERATORS[compare.operator]
            return f"{dialect.equal(column)} {by} {dialect.mark(column)}", [dialect.bind(column, value)]
        case _:
            by = _OPERATORS[compare.operator]
            return f"{dialect.ordered(column)} {by} {dialect.mark(column)}", [dialect.bind(column, value)]
