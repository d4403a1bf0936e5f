"""Guards of constraints: views of the rows that break a constraint. A tick that puts a row into one is refused.

A guard is a kept view as any other, so a constraint is checked at the cost of what a tick changes, over all tables that
it reads, when the tick is complete and before it counts. Its table defines it: it is not stored, and not shown.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from everview.database.catalog import Catalog
from everview.database.definitions import TableDefinition, ViewDefinition
from everview.database.frontends import ReadableDatabase, sql_view
from everview.errors import BrokenConstraint
from everview.frontends.sql import CreateView, bind
from everview.frontends.sql.constraints import CheckRows, ForeignKey, TableConstraint, UniqueColumns, quoted
from everview.scalars.coercion import is_number
from everview.scalars.text import value_text
from everview.types import TIMESTAMP, Type
from everview.zset.batch import Batch

Judge = Callable[[Mapping[str, Batch]], None]


def guarded(catalog: Catalog, table: TableDefinition) -> Catalog:
    """The catalog with a guard for each constraint of a table that it has."""
    for constraint in table.constraints:
        catalog = catalog.with_view(read_guard(table.name, constraint.name, catalog))
    return catalog


def read_guard(table: str, constraint: str, catalog: Catalog, *_stored: str) -> ViewDefinition:
    """The guard of a constraint, made from the table as the catalog has it."""
    definition = catalog.tables[table]
    declared = next(c for c in definition.constraints if c.name == constraint)
    known = ReadableDatabase(catalog)
    name = f"constraint {constraint} of {table}"
    text = f"CREATE MATERIALIZED VIEW {quoted(name)} AS {declared.query(table, definition.schema)}"
    (statement,) = bind(text, known)
    assert isinstance(statement, CreateView), "a guard is a view"
    view = sql_view(statement, known)
    return replace(view, read=partial(read_guard, table, constraint), guards=(table, constraint))


def judge_of(catalog: Catalog) -> Judge | None:
    """The function that refuses the changes of a tick; None if no table has constraints."""
    guards = {name: view.guards for name, view in catalog.views.items() if view.guards is not None}
    return partial(_judge, catalog, guards) if guards else None


def _judge(catalog: Catalog, guards: Mapping[str, tuple[str, str]], changes: Mapping[str, Batch]) -> None:
    for name, (table, constraint) in guards.items():
        broken = changes.get(name)
        if broken is not None and len(broken) and (broken.weights > 0).any():
            declared = next(c for c in catalog.tables[table].constraints if c.name == constraint)
            raise _error(table, declared, broken)


def _error(table: str, constraint: TableConstraint, broken: Batch) -> BrokenConstraint:
    row = next(row for row, weight in broken if weight > 0)
    shown = ", ".join(
        f"{field.name} = {_written(value, field.type)}" for field, value in zip(broken.schema.fields, row, strict=True)
    )
    match constraint:
        case CheckRows(name, text, ""):
            said, hint = f"{name}, CHECK ({text}), does not hold for {shown}", "nothing was changed"
        case CheckRows(_, text, column):
            said = f'column "{column}" is generated as {text}, which it is not in {shown}'
            hint = "leave the column out, or change the row by SQL, which computes it"
        case UniqueColumns(name):
            said, hint = f"{name}, UNIQUE, does not hold: two rows would have {shown}", "nothing was changed"
        case ForeignKey(name, _, other, others):
            said = f"{name}: {shown} refers to no row of {other} ({', '.join(others)})"
            hint = f"add it to {other}, or take away what refers to it, in the same transaction"
    return BrokenConstraint(f"table {table}: {said}", hint=hint)


def _written(value: Any, type_: Type) -> str:
    """A value as SQL writes it, and numbers as people do."""
    if value is not None and is_number(type_):
        return str(value)
    return value_text(value.replace(tzinfo=dt.UTC) if type_ == TIMESTAMP and value is not None else value, type_)


def check_rows(table: str, constraint: TableConstraint, broken: Batch) -> None:
    """Refuse a new constraint that existing rows violate."""
    if len(broken):
        raise _error(table, constraint, broken)
