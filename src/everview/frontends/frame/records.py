"""Rows and types of frames as PySpark shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everview.types import Array, MapType, Schema, Struct, Type, unknown_name


class FrameRow(tuple[Any, ...]):
    """A row: a tuple whose values have names.

    >>> row = FrameRow.of(("id", "city"), (1, "Oslo"))
    >>> row, row.city, row["id"], row.asDict()
    (Row(id=1, city='Oslo'), 'Oslo', 1, {'id': 1, 'city': 'Oslo'})
    """

    names: tuple[str, ...]

    @classmethod
    def of(cls, names: tuple[str, ...], values: Sequence[Any]) -> FrameRow:
        """A row of values under names."""
        row = cls(values)
        row.names = names
        return row

    def __getitem__(self, item: Any) -> Any:
        return super().__getitem__(self._place(item) if isinstance(item, str) else item)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.names:
            raise AttributeError(name)
        return self[name]

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise unknown_name("column", name, self.names)
        return self.names.index(name)

    def asDict(self) -> dict[str, Any]:
        """The values by their names."""
        return dict(zip(self.names, self, strict=True))

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in zip(self.names, self, strict=True))})"


def simple_type(type_: Type) -> str:
    """A type as PySpark writes it.

    >>> from everview.types import parse_type
    >>> simple_type(parse_type("ARRAY<STRUCT<a: INTEGER NOT NULL, b: DECIMAL(8,2)>>"))
    'array<struct<a:int,b:decimal(8,2)>>'
    """
    match type_:
        case Array(element):
            return f"array<{simple_type(element)}>"
        case MapType(key, value):
            return f"map<{simple_type(key)},{simple_type(value)}>"
        case Struct(fields):
            return f"struct<{','.join(f'{f.name}:{simple_type(f.type)}' for f in fields)}>"
        case _:
            name = type_.sql.lower()
            return "int" if name == "integer" else name


def tree_text(schema: Schema) -> str:
    """Columns, one in a line, as `printSchema` shows them."""
    lines = [f" |-- {f.name}: {simple_type(f.type)} (nullable = {str(f.nullable).lower()})" for f in schema.fields]
    return "\n".join(("root", *lines))
