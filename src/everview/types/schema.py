"""Schemas: the columns of a relation, and which words of a row hold each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from everview.doors import doors
from everview.errors import UnknownName, WrongType, shown
from everview.types.kinds import Field, NotNullType, Type
from everview.types.names import check_names, unknown_name

if TYPE_CHECKING:
    import pyarrow as pa


@doors()
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Schema:
    """The columns of a relation, in order, with unique names."""

    fields: tuple[Field, ...]
    names: tuple[str, ...] = field(compare=False)
    types: tuple[Type, ...] = field(compare=False)
    width: int = field(compare=False)  # words of a row, without the weight
    slices: tuple[slice, ...] = field(compare=False)  # the words of each column
    _hash: int = field(compare=False)

    def __init__(self, fields: Iterable[Field] = ()) -> None:
        fields = tuple(fields)
        for f in fields:
            if not isinstance(f, Field):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise WrongType(f"{shown(f)} is no column", hint='write Schema.parse("id BIGINT, name STRING")')
        names = [f.name for f in fields]
        check_names(names, "a schema")
        starts = [0, *accumulate([f.type.words(f.nullable) for f in fields])]
        init = object.__setattr__
        init(self, "fields", _shared(fields))
        init(self, "names", tuple(names))
        init(self, "types", tuple([f.type for f in fields]))
        init(self, "width", starts[-1])
        init(self, "slices", tuple(map(slice, starts[:-1], starts[1:])))
        init(self, "_hash", hash(fields))

    @staticmethod
    def of(**types: Type | NotNullType) -> Schema:
        """A schema from names and types: ``Schema.of(id=BIGINT.not_null, owner=STRING)``."""
        for name, t in types.items():
            if not isinstance(t, Type | NotNullType):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise WrongType(
                    f"{name}: {shown(t)} is no type", hint="write Schema.of(id=BIGINT.not_null, owner=STRING)"
                )
        return Schema(
            Field(name, t.type, nullable=False) if isinstance(t, NotNullType) else Field(name, t)
            for name, t in types.items()
        )

    @staticmethod
    def parse(text: str) -> Schema:
        """A schema from SQL: ``Schema.parse("id BIGINT NOT NULL, tags ARRAY<STRING>")``."""
        from everview.types.parse import TypeParser

        return Schema(TypeParser(text).columns())

    @staticmethod
    def from_arrow(schema: pa.Schema) -> Schema:
        """The schema for all rows of an Arrow table of that schema."""
        import pyarrow as pa

        from everview.types.arrow import field_of_arrow

        if not isinstance(schema, pa.Schema):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise WrongType(f"{shown(schema)} is no schema of Arrow's", hint="give table.schema")

        return Schema(field_of_arrow(f) for f in schema)

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of its tables; types that Arrow lacks are noted in the fields' metadata."""
        from everview.types.arrow import arrow_schema

        return arrow_schema(self)

    def words(self, column: int) -> slice:
        """Which words of a row hold a column."""
        if not -len(self.slices) <= column < len(self.slices):
            raise UnknownName(f"there is no column {shown(column)}", hint=f"there are {len(self)}, from 0 on")
        return self.slices[column]

    def index(self, name: str) -> int:
        """The position of a column.

        >>> from everview.types import BIGINT, STRING
        >>> Schema.of(id=BIGINT, owner=STRING).index("onwer")
        Traceback (most recent call last):
        everview.errors.UnknownName: column "onwer" does not exist
          hint: did you mean "owner"? available: id, owner
        """
        try:
            return self.names.index(name)
        except ValueError:
            raise unknown_name("column", name, self.names) from None

    def select(self, names: Iterable[str]) -> Schema:
        """Only these columns, in this order."""
        return Schema(self.fields[self.index(name)] for name in names)

    def rename(self, names: Mapping[str, str]) -> Schema:
        """Columns under new names: ``schema.rename({"old": "new"})``."""
        for old in names:
            self.index(old)
        return Schema(Field(names.get(f.name, f.name), f.type, f.nullable) for f in self.fields)

    def __add__(self, other: Schema) -> Schema:
        return Schema(self.fields + other.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, column: int | str) -> Field:
        return self.fields[self.index(column) if isinstance(column, str) else column]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Schema], tuple[tuple[Field, ...]]]:
        return Schema, (self.fields,)  # hashes of text differ between processes

    def __str__(self) -> str:
        return ", ".join(map(str, self.fields))

    def __repr__(self) -> str:
        return f"Schema({str(self)!r})"

    def _repr_html_(self) -> str:
        from html import escape

        cells = "".join(
            f"<tr><td>{escape(f.name)}</td><td>{escape(f.type.sql)}{'' if f.nullable else ' NOT NULL'}</td></tr>"
            for f in self.fields
        )
        return f"<table><thead><tr><th>column</th><th>type</th></tr></thead><tbody>{cells}</tbody></table>"


@lru_cache(4096)
def _shared(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The same object for equal columns: schemas are keys of caches that every tick reads, and compared by identity."""
    return fields
