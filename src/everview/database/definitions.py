"""Definitions of tables and views, as values and as data in a state directory.

A view is defined by a plan, or by a function that makes its stream of the streams of relations. A plan comes from a
text, and the text is what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.circuit.stream import Stream
from everview.codes.frames import as_arrow, is_frame, refused_column
from everview.database.constants import (
    constraint_from_json,
    constraint_to_json,
    literal_to_json,
    value_from_json,
    value_to_json,
)
from everview.errors import DefinitionError, NullNotAllowed, SchemaError, shown
from everview.plan.catalog import NamedPlan
from everview.plan.timed import CLOCK, Watermark, is_companion, kept_in_time
from everview.scalars.expressions import Literal
from everview.types import Field, Schema, unknown_name
from everview.types.names import check_names

if TYPE_CHECKING:
    from everview.database.catalog import Catalog
    from everview.frontends.sql.constraints import TableConstraint

Relations = Mapping[str, Stream]
Build = Callable[[Relations], Stream]
Reader = Callable[["Catalog", str, str, str], "ViewDefinition"]  # of a catalog, a view's name, its text and dialect


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table: its columns, its primary key if it has one, and the defaults of columns.

    >>> TableDefinition.of("t", "id BIGINT, n BIGINT", key=["id"]).schema
    Schema('id BIGINT NOT NULL, n BIGINT')
    """

    name: str
    schema: Schema
    key: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    facts: bool = False  # its values may come as text, as in a file of facts
    carries: str = ""  # the view whose rows of the last tick it holds; nothing else changes it
    fed: str = ""  # by which name it is known how far its source has been read; nothing else changes it
    constraints: tuple[TableConstraint, ...] = ()
    generated: Mapping[str, str] = field(default_factory=dict[str, str])  # columns that are computed, and how
    comments: Mapping[str, str] = field(default_factory=dict[str, str])  # of columns; of the table by ""
    watermark: Watermark | None = None

    @classmethod
    def of(
        cls,
        name: str,
        columns: Schema | str,
        key: str | tuple[str, ...] | list[str] = (),
        defaults: Mapping[str, Any] | None = None,
        *,
        facts: bool = False,
        carries: str = "",
        fed: str = "",
    ) -> TableDefinition:
        """A checked definition of a table; columns of the key become NOT NULL."""
        check_name("table", name)
        schema = Schema.parse(columns) if isinstance(columns, str) else columns
        if not len(schema):
            raise SchemaError(f"table {name} has no columns", hint="give it at least one")
        for column in schema.names:
            check_name("column", column)
        key = (key,) if isinstance(key, str) else tuple(key)
        check_names(list(key), f"the key of table {name}")
        places = {schema.index(column) for column in key}
        fields = (Field(f.name, f.type, f.nullable and place not in places) for place, f in enumerate(schema))
        table = cls(name, Schema(fields), key, dict(defaults or {}), facts, carries, fed)
        table._check_defaults()
        return table

    @property
    def internal(self) -> bool:
        """Whether it is no table of the user's, and moves by itself: what rules carry on, clocks and late rows."""
        return bool(self.carries) or self.name == CLOCK or is_companion(self.name)

    def _check_defaults(self) -> None:
        for column, value in self.defaults.items():
            place = self.schema.index(column)
            if value is None and not self.schema.fields[place].nullable:
                raise NullNotAllowed(
                    f"column {column} of table {self.name} is NOT NULL, and its default is NULL",
                    hint="give another default, or none",
                )

    def to_json(self) -> dict[str, Any]:
        defaults = {column: value_to_json(value) for column, value in self.defaults.items()}
        said = {"schema": str(self.schema), "key": list(self.key), "defaults": defaults}
        more = {"facts": self.facts, "carries": self.carries, "fed": self.fed}
        more |= {"constraints": [constraint_to_json(c) for c in self.constraints]}
        more |= {"generated": dict(self.generated), "comments": dict(self.comments)}
        if self.watermark is not None:
            rest = [] if self.watermark.ttl is None else [self.watermark.ttl]
            more |= {"watermark": [self.watermark.column, self.watermark.delay, *rest]}
        return {**said, **{name: value for name, value in more.items() if value}}

    @classmethod
    def from_json(cls, name: str, said: Mapping[str, Any]) -> TableDefinition:
        defaults = {column: value_from_json(value) for column, value in said["defaults"].items()}
        more = {"facts": said.get("facts", False), "carries": said.get("carries", ""), "fed": said.get("fed", "")}
        constraints = tuple(map(constraint_from_json, said.get("constraints", ())))
        beside = {"generated": said.get("generated", {}), "comments": said.get("comments", {})}
        if "watermark" in said:
            beside |= {"watermark": Watermark(*said["watermark"])}
        return replace(cls.of(name, said["schema"], said["key"], defaults, **more), constraints=constraints, **beside)


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A view: the function that makes its stream, and the text that is stored.

    ``reads`` names the relations that its definition names; a plain view, one that is not ``materialized``, stands
    for its definition wherever it is read.
    """

    name: str
    schema: Schema
    build: Build
    reads: tuple[str, ...] = ()
    text: str | None = None
    dialect: str = "spark"
    plan: Any = None
    materialized: bool = True
    order: Any = ()  # in which its rows are shown
    optimized: Any = None
    beside: tuple[str, ...] = ()  # the views that it is defined with, because they read each other
    whole: str = ""  # the view that it is a part of, and is dropped with
    read: Reader | None = None  # by which its text is read again
    parameters: Mapping[str, Literal] = field(default_factory=dict[str, Literal])  # the values in its text
    comments: Mapping[str, str] = field(default_factory=dict[str, str])  # of columns; of the view by ""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])  # rows of the tables that its joins are ordered by
    temporary: bool = False  # whether it ends with the process, and is not stored
    guards: tuple[str, str] | None = None  # the table and the constraint whose broken rows it shows, which are none

    @property
    def stored(self) -> bool:
        """Whether the state of a database has it by its text."""
        return self.guards is None and not self.temporary

    @classmethod
    def of_plan(cls, named: NamedPlan, text: str, dialect: str, read: Reader) -> ViewDefinition:
        """A view that a front end defines; ``read`` reads its stored text again."""
        named = _timed(named)
        return cls(
            named.name,
            named.schema,
            partial(_lowered, named),
            named.reads,
            text,
            dialect,
            named.plan,
            named.materialized,
            named.order,
            named.optimized,
            named.beside,
            named.whole,
            read,
        )

    def to_json(self) -> dict[str, Any]:
        said = {
            "text": self.text,
            "dialect": self.dialect,
            "reads": list(self.reads),
            "materialized": self.materialized,
        }
        given = {name: literal_to_json(value) for name, value in self.parameters.items()}
        more = {"parameters": given, "comments": dict(self.comments), "sizes": dict(self.sizes)}
        return {**said, **{name: value for name, value in more.items() if value}}


def _timed(named: NamedPlan) -> NamedPlan:
    """A kept view that asks the time, as one that reads the clock."""
    if not named.materialized:
        return named
    optimized = kept_in_time(named.name, named.optimized)
    return named if optimized is named.optimized else replace(named, optimized=optimized, reads=(*named.reads, CLOCK))


def _lowered(named: NamedPlan, relations: Any) -> Stream:
    """The stream of a plan over the streams of relations."""
    return relations.of_plan(named.optimized).under(named.schema)


def columns_and_rows(name: str, given: Any) -> tuple[Schema, pa.Table | None]:
    """The columns of a new table as they may be given: in SQL, as a schema, or by a frame that has rows, too."""
    if isinstance(given, Schema | str):
        return (Schema.parse(given) if isinstance(given, str) else given), None
    rows = as_arrow(given)
    if rows is None and not is_frame(given):
        hint = 'write "id BIGINT NOT NULL, name STRING", or give a PyArrow, pandas or Polars table'
        hint = "collect it first: create_table(name, frame.collect())" if hasattr(given, "collect") else hint
        raise SchemaError(f"{shown(given)} names no columns for table {name}", hint=hint)
    if rows is None:
        column, why = refused_column(given) or ("?", "has values that Arrow does not hold")
        hint = f'make it of one type, or say the types yourself: create_table({name!r}, "…"), and then insert the rows'
        raise SchemaError(f'table {name}: column "{column}" of the frame {why}', hint=hint)
    return Schema.from_arrow(rows.schema), pa.table(rows)


def check_name(what: str, name: Any) -> None:
    """Refuse a name that is no text or is empty; any other text can be a name."""
    if not isinstance(name, str):
        raise DefinitionError(f"{shown(name)} is no name for a {what}", hint="a name is text")
    if not name:
        raise DefinitionError(f"a {what} has a name", hint="give one that is not empty")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise DefinitionError(f"the name {shown(name)} is no valid text", hint="it has half of a character") from None


def find_name(what: str, name: str, among: Mapping[str, Any]) -> str:
    """The defined name that equals a name, or else the one that differs in case only."""
    if name in among:
        return name
    folded = name.casefold() if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    for known in among:
        if known.casefold() == folded:
            return known
    raise unknown_name(what, str(name), among)
