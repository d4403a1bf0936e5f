"""``/v1/views/{name}``: the rows of a view or a table, with filters, an order and pages.

``?country=UK`` keeps the rows with that value; several values of one column are alternatives. Other comparisons stand
behind the name: ``?amount.gt=5``, with ``eq ne gt ge lt le like``; an empty value of ``is`` and ``isnot`` is NULL:
``?country.is=null``. ``select``, ``order`` (``order=amount.desc,name``), ``limit`` and ``offset`` are what they are in
SQL. ``search=ada`` keeps the rows that have the text in any column of a simple type, whatever the case of its letters;
``count=true`` asks how many rows there are in all, where that has to be counted. Values are bound as parameters, and
cast to the types of their columns: nothing of a request becomes SQL text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from everview.codes import decode
from everview.database.lookup import is_indexed, rows_with
from everview.database.snapshots import core_of
from everview.errors import CastFailure, EverviewError, LimitReached, UnknownName, shown
from everview.plan.typing import cast, castable, literal
from everview.scalars.evaluate import fold
from everview.scalars.expressions import Literal
from everview.serve.http.answering import NotFound
from everview.serve.http.formats import bytes_of_json
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
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Decimal,
    Schema,
    Type,
    unknown_name,
)
from everview.types.names import quoted

if TYPE_CHECKING:
    from everview.database import Database
    from everview.database.snapshots import DatabaseSnapshot

RESERVED: Final = ("select", "order", "limit", "offset", "format", "search", "count")
COMPARISONS: Final = {"eq": "=", "ne": "<>", "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "like": "LIKE"}
NULLS: Final = {"is": "IS NULL", "isnot": "IS NOT NULL"}
SEARCHED: Final = (STRING, BIGINT, INTEGER, SMALLINT, TINYINT, DOUBLE, FLOAT, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ)
PAGE: Final = 1_000  # rows, unless a request says otherwise


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A comparison of a column with one of some values."""

    column: str
    by: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a relation, as a client asks for it."""

    conditions: tuple[RowCondition, ...] = ()
    select: tuple[str, ...] = ()
    order: tuple[tuple[str, str], ...] = ()
    limit: int = PAGE
    offset: int = 0
    search: str = ""
    count: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether no row is left out but by the page."""
        return not self.conditions and not self.search

    @classmethod
    def of(cls, schema: Schema, given: Sequence[tuple[str, str]], most: int) -> Page:
        """The page that the parameters of a request describe."""
        named = dict(given)
        grouped: dict[tuple[str, str], list[str]] = {}
        for name, value in given:
            if name not in RESERVED:
                grouped.setdefault(_compared(schema, name), []).append(value)
        limit = _count("limit", named.get("limit", str(min(PAGE, most))))
        if limit > most:
            raise LimitReached(f"a page of {limit:,} rows is too large", hint=f"at most {most:,}")
        return cls(
            tuple(RowCondition(column, by, tuple(values)) for (column, by), values in grouped.items()),
            tuple(_known(schema, name) for name in _listed(named.get("select", ""))),
            tuple(_ordered(schema, each) for each in _listed(named.get("order", ""))),
            limit,
            _count("offset", named.get("offset", "0")),
            named.get("search", ""),
            named.get("count", "").lower() in ("true", "1", "yes"),
        )


@dataclass(frozen=True, slots=True)
class RowsOfPage:
    """The rows of a page, whether there are more behind them, and how many there are in all if that is known."""

    schema: Schema
    rows: pa.Table
    more: bool
    total: int | None = None


def schema_of(database: Database, name: str) -> tuple[str, Schema]:
    """The full name of a table or a materialized view, and its columns."""
    catalog = core_of(database).catalog
    try:
        relation = catalog.find(name)
        if relation not in catalog.tables:
            relation = catalog.find_materialized(name)
    except UnknownName as error:
        raise NotFound(error.message, hint=error.hint) from None
    return relation, catalog.relations[relation].schema


def rows_held(snapshot: DatabaseSnapshot) -> dict[str, int]:
    """The number of rows of each table and each kept view: the sum of their weights."""
    nodes = {name: table.resolver.trace for name, table in snapshot.relations.items()}
    nodes |= {name: node for name, (_, node) in snapshot.views.items() if node is not None}
    return {
        name: sum(int(batch[:, -1].sum()) for trace in snapshot.state.of(node) for batch in trace.before.batches)
        for name, node in nodes.items()
    }


def page_of(database: Database, name: str, given: Sequence[tuple[str, str]], most: int) -> RowsOfPage:
    """The rows of a relation that a request asks for."""
    name, schema = schema_of(database, name)
    page = Page.of(schema, given, most)
    searched = _searched(schema, page)
    if searched is not None:
        return _found(database, name, schema, page, searched)
    if page.is_whole and not page.order and not getattr(core_of(database).catalog.relations[name], "order", ()):
        return _slice(database, name, schema, page)
    return _queried(database, name, schema, page)


def is_searched(database: Database, name: str, given: Sequence[tuple[str, str]], most: int) -> bool:
    """Whether an index of the relation has the rows that a request asks for."""
    if not given:
        return False
    name, schema = schema_of(database, name)
    searched = _searched(schema, Page.of(schema, given, most))
    return searched is not None and is_indexed(core_of(database), name, searched)


def _searched(schema: Schema, page: Page) -> dict[str, Any] | None:
    """The values to search by, if only equality of simple columns is asked for; else None."""
    if not page.conditions or page.order or page.search:
        return None
    values: dict[str, Any] = {}
    for condition in page.conditions:
        type_ = schema[condition.column].type
        if condition.by != "eq" or len(condition.values) != 1 or type_ not in (BIGINT, INTEGER, STRING):
            return None
        value = next(iter(condition.values))
        if type_ == STRING:
            values[condition.column] = value
        elif value.isascii() and value.removeprefix("-").isdecimal() and len(value) < 10:
            values[condition.column] = int(value)
        else:
            return None
    return values


def _found(database: Database, name: str, schema: Schema, page: Page, values: Mapping[str, Any]) -> RowsOfPage:
    rows = rows_with(core_of(database), name, values)
    part = rows[page.offset : page.offset + page.limit]
    columns = list(zip(*part, strict=True)) if part else [()] * len(schema)
    arrays = [pa.array(column, f.type.arrow) for column, f in zip(columns, schema, strict=True)]
    table = pa.Table.from_arrays(arrays, names=list(schema.names))
    return _selected(RowsOfPage(schema, table, len(rows) > page.offset + page.limit, len(rows)), page)


def _slice(database: Database, name: str, schema: Schema, page: Page) -> RowsOfPage:
    """A page in the order in which the rows are kept; only its own rows are decoded."""
    held = core_of(database).holdings.contents_of(name)
    ends = np.cumsum(np.maximum(held.weights, 0))
    total = int(ends[-1]) if len(ends) else 0
    first, last = min(page.offset, total), min(page.offset + page.limit, total)
    places = np.searchsorted(ends, np.arange(first, last), side="right")
    words = np.ascontiguousarray(held.rows[places, :-1])
    table = decode(held.schema, words, held.dictionary)
    return _selected(RowsOfPage(schema, table, last < total, total), page)


def _selected(rows: RowsOfPage, page: Page) -> RowsOfPage:
    if not page.select:
        return rows
    return replace(rows, schema=rows.schema.select(page.select), rows=rows.rows.select(list(page.select)))


def _queried(database: Database, name: str, schema: Schema, page: Page) -> RowsOfPage:
    params: dict[str, Any] = {}
    where = [_condition(schema, condition, params) for condition in page.conditions]
    if page.search:
        where.append(_containing(schema, page.search, params))
    columns = ", ".join(quoted(name) for name in page.select or schema.names)
    source = f"FROM {'.'.join(quoted(part) for part in name.split('.', 1))}"
    source += f" WHERE {' AND '.join(where)}" if where else ""
    text = f"SELECT {columns} {source}"
    text += f" ORDER BY {', '.join(f'{quoted(name)} {how}' for name, how in page.order)}" if page.order else ""
    answer = database.sql(f"{text} LIMIT {page.limit + 1} OFFSET {page.offset}", params or None)
    rows = answer.to_arrow()
    total = None
    if page.is_whole:
        total = int(np.maximum(core_of(database).holdings.contents_of(name).weights, 0).sum())
    elif page.count:
        ((total,),) = database.sql(f"SELECT count(*) {source}", params or None)
    return RowsOfPage(answer.schema, rows.slice(0, page.limit), rows.num_rows > page.limit, total)


def _containing(schema: Schema, text: str, params: dict[str, Any]) -> str:
    """The condition that a row has a text in one of its columns."""
    params["search"] = text.lower()
    simple = [field for field in schema if field.type in SEARCHED or isinstance(field.type, Decimal)]
    texts = [quoted(f.name) if f.type == STRING else f"CAST({quoted(f.name)} AS STRING)" for f in simple]
    return f"({' OR '.join(f'instr(lower({each}), :search) > 0' for each in texts)})" if texts else "FALSE"


def _condition(schema: Schema, condition: RowCondition, params: dict[str, Any]) -> str:
    column, type_ = quoted(condition.column), schema[condition.column].type
    if condition.by in NULLS:
        return f"{column} {NULLS[condition.by]}"
    parts: list[str] = []
    for value in condition.values:
        plain = type_ == STRING or condition.by == "like"
        params[f"p{len(params)}"] = value if plain else _read(value, type_)
        given = f":p{len(params) - 1}"
        compared = given if plain or type_ == BINARY else f"CAST({given} AS {type_.sql})"
        parts.append(f"{column} {COMPARISONS[condition.by]} {compared}")
    return f"({(' AND ' if condition.by == 'ne' else ' OR ').join(parts)})"


def _read(value: str, type_: Type) -> Any:
    """A value for a column, which is a text to be cast, or bytes; raises if it is none, whatever rows there are."""
    if type_ == BINARY:
        return bytes_of_json(value.replace(" ", "+"))  # a plus in a query is a blank
    if not castable(STRING, type_) or not isinstance(fold(cast(literal(value), type_)), Literal):
        raise CastFailure(f"{shown(value, 60)} is no {type_.sql}", hint="give a value of the column's type")
    return value


def _compared(schema: Schema, name: str) -> tuple[str, str]:
    """A column and a comparison by the name of a parameter."""
    if name in schema:
        return name, "eq"
    column, _, by = name.rpartition(".")
    if by in COMPARISONS or by in NULLS:
        return _known(schema, column), by
    return _known(schema, name), "eq"


def _known(schema: Schema, name: str) -> str:
    if name not in schema:
        raise unknown_name("column", name, schema.names)
    return name


def _ordered(schema: Schema, said: str) -> tuple[str, str]:
    if said in schema:
        return said, "ASC"
    column, _, how = said.rpartition(".")
    if how not in ("asc", "desc"):
        raise unknown_name("column", said, schema.names)
    return _known(schema, column), how.upper()


def _listed(said: str) -> list[str]:
    return [part for part in said.split(",") if part]


def _count(what: str, said: str) -> int:
    if not (said.isascii() and said.isdecimal() and len(said) < 16):
        raise EverviewError(f"{what} is {said!r}, which is no count", hint=f"as in {what}=100")
    return int(said)
