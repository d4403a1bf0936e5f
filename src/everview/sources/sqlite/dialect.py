"""The dialect of SQLite.

>>> SqliteDialect(Schema.parse("n STRING")).like("a*%_")
('GLOB ?', 'a[*]*?')
"""

from __future__ import annotations

from typing import Any, Final

from everview.errors import BadRows, SourceError
from everview.sources.protocol import Compare, Direction
from everview.sources.sql import Sql
from everview.sources.sqlite.columns import bound
from everview.types import ScalarType, Schema

MOST_VALUES: Final = 30_000  # SQLite allows 32,766 marks in a statement


class SqliteDialect:
    """The way SQLite writes conditions. Its LIKE ignores case, so GLOB stands for ours."""

    same, different = "IS", "IS NOT"

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._text = {field.name for field in schema if field.type == ScalarType("STRING")}

    def name(self, column: str) -> str:
        return quoted(column)

    def mark(self, column: str) -> str:
        return "?"

    def equal(self, column: str) -> str:
        return f"{quoted(column)} COLLATE BINARY" if column in self._text else quoted(column)

    ordered = equal

    def direction(self, column: str, direction: Direction) -> str:
        return direction.upper()

    def bind(self, column: str, value: Any) -> Any:
        if value != value:
            raise BadRows(f'column "{column}": SQLite cannot keep NaN', hint="it would become NULL")
        return bound(self._schema[column].type, value)

    def special(self, compare: Compare) -> Sql | None:
        """A comparison with NaN, which SQLite does not have: all numbers are less."""
        column, value = quoted(compare.column), compare.value
        if isinstance(value, tuple) or value == value:
            return None
        match compare.operator:
            case "is":
                return "FALSE", []
            case "is not":
                return "TRUE", []
            case "<" | "<=" | "!=":
                return f"{column} = {column}", []
            case _:
                return f"{column} <> {column}", []

    def one_of(self, column: str, values: tuple[Any, ...]) -> Sql:
        there = [self.bind(column, value) for value in values if value == value]
        if values and not there:
            return f"{quoted(column)} <> {quoted(column)}", []
        if len(there) > MOST_VALUES:
            hint = f"ask for at most {MOST_VALUES:,} at a time"
            raise SourceError(f'column "{column}" is compared with {len(there):,} values', hint=hint)
        return f"{self.equal(column)} IN ({', '.join(['?'] * len(there))})", there

    def like(self, pattern: str) -> tuple[str, Any]:
        letters, parts = iter(pattern), list[str]()
        for letter in letters:
            if letter == "\\":
                letter = next(letters)  # noqa: PLW2901, a pattern that is not right was refused before
            elif letter in "%_":
                parts.append("*" if letter == "%" else "?")
                continue
            parts.append(f"[{letter}]" if letter in "*?[" else letter)
        return "GLOB ?", "".join(parts)


def quoted(name: str) -> str:
    """A name in quotes."""
    return '"' + name.replace('"', '""') + '"'
