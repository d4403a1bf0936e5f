"""Statements of SQL on a database: each is bound to the definitions as they are, then run."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from everview.codes.encode import encode_weighted
from everview.codes.rows import to_rows
from everview.database.answers import Answer, in_order
from everview.database.definitions import TableDefinition
from everview.database.frontends import NO_SIZES, ReadableDatabase, sql_view, statistics_of
from everview.errors import CastFailure, DefinitionError, SqlError
from everview.frontends.sql import (
    AlterTable,
    Begin,
    CommentOn,
    Commit,
    CopyFrom,
    CopyTo,
    CreateFunction,
    CreateSchema,
    CreateTable,
    CreateView,
    Deallocate,
    DeleteRows,
    Drop,
    DropFunction,
    DropSchema,
    Execute,
    Explain,
    InsertRows,
    Merge,
    Prepare,
    Rollback,
    Select,
    Statement,
    UpdateRows,
    Use,
    bind,
)
from everview.frontends.sql.names import fold
from everview.frontends.sql.parameters import NOTHING_GIVEN, ParameterValues
from everview.frontends.sql.parse import parse
from everview.later import Later
from everview.operators.word_program import giving
from everview.optimize import optimize
from everview.plan.catalog import StoredFunction
from everview.plan.node import Plan
from everview.plan.nodes import Project, scans
from everview.scalars.evaluate import Evaluate, moment
from everview.scalars.expressions import Expression, Now, walk
from everview.scalars.text import sql
from everview.types import Schema, unknown_name

if TYPE_CHECKING:
    from everview.database.altering import alter
    from everview.database.core import Core
    from everview.database.files import copy_from, copy_to, require_no_files
    from everview.database.planned import PlannedQuery, plan_key
    from everview.database.written import written_rows
    from everview.views.identity import frozen
else:
    plan_key = Later("everview.database.planned", "plan_key")
    written_rows = Later("everview.database.written", "written_rows")
    frozen = Later("everview.views.identity", "frozen")
    alter = Later("everview.database.altering", "alter")
    copy_from = Later("everview.database.files", "copy_from")
    copy_to = Later("everview.database.files", "copy_to")
    require_no_files = Later("everview.database.files", "require_no_files")

SOON: Final = 20_000  # rows, which are read in less time than another thread takes to begin and to answer


def only_reads(text: str) -> bool:
    """Whether a text seems to be a query, and so changes nothing.

    >>> only_reads(" SELECT 1"), only_reads("INSERT INTO t SELECT 1")
    (True, False)
    """
    return re.match(r"\s*(select|with|values|explain|show|describe)\b", str(text), re.IGNORECASE) is not None


def run_sql(database: Core, text: str, dialect: str, given: ParameterValues = NOTHING_GIVEN) -> Any:
    """Run the statements of a text, one after the other, and return the result of the last one."""
    if isinstance(text, str) and only_reads(text) and ";" not in text:  # pyright: ignore[reportUnnecessaryIsInstance]
        planned = planned_query(
            database, text, dialect, given, lambda known, values: bind(text, known, dialect, values)
        )
        if planned is not None:
            return run_planned(database, planned, given)
    result = None
    for piece, share in _pieces(text, dialect, given):
        known = ReadableDatabase(database.catalog, core=database)
        try:
            for statement in bind(piece, known, dialect, share):
                result = run_bound(database, statement, known)
        finally:
            database.files.clear()
    return result


def run_bound(database: Core, statement: Statement, known: ReadableDatabase) -> Any:
    """Run a statement that has been bound to ``known`` relations, unless the database's guard deals with it."""
    if database.guard is not None and database.guard.took(statement):
        return None
    with moment(dt.datetime.now(dt.UTC)):
        return _run(database, statement, known)


def planned_query(
    database: Core,
    text: str,
    dialect: str,
    given: ParameterValues,
    bound: Callable[[ReadableDatabase, ParameterValues], Sequence[Statement]],
) -> PlannedQuery | None:
    """The plan of a query's text, for these parameters or others; None if the text is to be bound each time."""
    key, catalog = plan_key(text, dialect, database.schema, given), database.catalog
    if key is None:
        return None

    def bind_once(values: ParameterValues) -> Sequence[Statement]:
        try:
            return bound(ReadableDatabase(catalog, core=database), values)
        finally:
            database.files.clear()

    return catalog.query_plans.find(key, catalog, given, bind_once)


def planned_soon(database: Core, text: str, dialect: str, given: ParameterValues) -> PlannedQuery | None:
    """The plan of a query that takes microseconds: one that is kept, and reads few rows once; see `SOON`."""
    key = plan_key(text, dialect, database.schema, given)
    planned = None if key is None else database.catalog.query_plans.known(key)
    if planned is None or not planned.light or sum(map(database.holdings.stored_rows, planned.answer.reads)) > SOON:
        return None
    return planned


def run_planned(database: Core, planned: PlannedQuery, given: ParameterValues) -> Any:
    """Answer a planned query, unless the database's guard deals with it."""
    if database.guard is not None and database.guard.took(planned.statement):
        return None
    with giving(planned.words(given)):
        return _selected(planned.statement, *database.holdings.answered_by(planned.answer))


def _pieces(text: str, dialect: str, given: ParameterValues) -> Iterator[tuple[str, ParameterValues]]:
    """A text for each statement, with the earlier ones blanked out, so that places in errors are right; its values."""
    if not isinstance(text, str) or ";" not in text.rstrip().rstrip(";"):  # pyright: ignore[reportUnnecessaryIsInstance]
        yield text, given
        return
    statements, source = parse(text, dialect)
    end = 0
    for statement, share in zip(statements, given.shared(statements, source), strict=True):
        start, end = end, text.index(statement.text, end) + len(statement.text)
        yield re.sub(r"[^\n]", " ", text[:start]) + text[start:end], share


def _run(db: Core, statement: Statement, known: ReadableDatabase) -> Any:
    match statement:
        case InsertRows():
            return _insert(db, statement)
        case DeleteRows():
            return _delete(db, statement)
        case UpdateRows():
            return _update(db, statement)
        case Merge():
            return _merge(db, statement)
        case Select():
            return select(db, statement)
        case CopyFrom():
            return copy_from(db, statement)
        case CopyTo():
            return copy_to(db, statement)
        case Explain():
            return explained(db, statement.statement, known)
        case Begin():
            return db.transactions.begin()
        case Commit():
            return db.transactions.commit()
        case Rollback():
            return db.transactions.rollback()
        case Prepare() | Execute() | Deallocate():
            return _run_prepared(db, statement)
        case Use():
            db.schema = statement.schema
            return None
        case _:
            return _define(db, statement, known)


def _define(db: Core, statement: Statement, known: ReadableDatabase) -> None:
    """Run a statement that changes definitions."""
    match statement:
        case CreateTable():
            return _create_table(db, statement)
        case CreateView():
            return _create_view(db, statement, known)
        case Drop():
            return _drop(db, statement)
        case AlterTable():
            return alter(db, statement, _default)
        case CommentOn():
            return db.definitions.comment(statement.relation, statement.column, statement.comment)
        case CreateSchema():
            return None if statement.there else db.definitions.add_schema(statement.name)
        case DropSchema():
            return None if statement.missing else db.definitions.drop_schema(statement.name, statement.cascade)
        case CreateFunction():
            return _create_function(db, statement)
        case DropFunction():
            return None if statement.missing else db.definitions.drop_function(statement.name)
        case _:
            raise AssertionError(f"{statement} is no statement")


def _create_function(db: Core, statement: CreateFunction) -> None:
    if statement.if_not_exists and statement.name in db.catalog.functions:
        return
    function = StoredFunction(statement.name, statement.text, statement.dialect)
    db.definitions.define_function(function, replaces=statement.or_replace)


def _prepared(db: Core, name: str) -> Prepare:
    kept = db.prepared.get(fold(name))
    if kept is None:
        raise unknown_name("prepared statement", name, [known.name for known in db.prepared.values()])
    return kept


def _run_prepared(db: Core, statement: Prepare | Execute | Deallocate) -> Any:
    """Keep a prepared statement under its name, run the one of a name, or forget it."""
    match statement:
        case Prepare():
            db.prepared[fold(statement.name)] = statement
            return None
        case Execute():
            kept = _prepared(db, statement.name)
            return run_sql(db, kept.statement, kept.dialect, statement.given)
        case Deallocate():
            return _deallocate(db, statement)


def _deallocate(db: Core, statement: Deallocate) -> None:
    if statement.name is None:
        db.prepared.clear()
    else:
        del db.prepared[fold(_prepared(db, statement.name).name)]


def _insert(db: Core, statement: InsertRows) -> Any:
    returned = _returned(db, statement.returning)
    with db.transactions.block() as tx:
        rows, weights = _inserted(db, statement)
        if statement.overwrite:
            tx.overwrite(statement.table, rows, weights)
            count = int(weights.sum())
        else:
            count = tx.add_rows(statement.table, rows, weights)
    return count if returned is None else returned


def _delete(db: Core, statement: DeleteRows) -> Any:
    returned = _returned(db, statement.returning)
    with db.transactions.block() as tx:
        rows, weights = db.holdings.answered(statement.plan)
        count = -tx.add_rows(statement.table, rows, -weights)
    return count if returned is None else returned


def _returned(db: Core, returning: Select | None) -> Answer | None:
    """The rows of RETURNING, which are computed before anything changes, from what the change is computed from."""
    return None if returning is None else select(db, returning)


def _inserted(db: Core, statement: InsertRows) -> tuple[pa.Table, Any]:
    """The rows of an INSERT and their weights; the error of a value that does not fit names its column."""
    try:
        return written_rows(statement.plan) or db.holdings.answered(statement.plan)
    except CastFailure as error:
        raise _of_column(error, statement) from None


def _of_column(error: CastFailure, statement: InsertRows) -> CastFailure:
    plan = statement.plan
    assert isinstance(plan, Project), "an INSERT computes every column of its table"
    for name, value in zip(plan.names, plan.expressions_, strict=True):
        said = f" in {sql(value)}"
        if said in error.message:
            return CastFailure(
                f'column "{name}" of {statement.table}: {error.message.replace(said, "")}',
                hint="give a value of that type; try_cast gives NULL instead",
            )
    return error


def _create_table(db: Core, statement: CreateTable) -> None:
    name = statement.name
    if statement.if_not_exists and name in db.catalog.tables:
        return
    defaults = {column: _default(column, value) for column, value in statement.defaults.items()}
    table = replace(
        TableDefinition.of(name, statement.schema, statement.primary_key, defaults),
        constraints=statement.constraints,
        generated=statement.generated,
        comments=statement.comments,
        watermark=statement.watermark,
    )
    if statement.like in db.catalog.tables:
        table = replace(db.catalog.tables[statement.like], name=name, carries="", fed="")
    rows = None if statement.query is None else db.holdings.answered(statement.query)
    if rows is None:
        db.definitions.define_table(table, replace=statement.or_replace)
    else:
        db.definitions.define_table(table, partial(encode_weighted, table.schema, *rows), replace=statement.or_replace)


def _default(column: str, value: Expression) -> Any:
    if isinstance(value, Now):
        return value
    if any(isinstance(part, Now) for part in walk(value)):
        raise SqlError(
            f'the default of column "{column}" depends on the time',
            hint="a default is a constant, CURRENT_TIMESTAMP or CURRENT_DATE",
        )
    (default,) = Evaluate((value,))()
    return default.as_py() if isinstance(default, pa.Scalar) else default[0].as_py()


def _create_view(db: Core, statement: CreateView, known: ReadableDatabase) -> None:
    if statement.if_not_exists and statement.name in db.catalog.views:
        return
    if known.read_files:
        require_no_files(known.read_files, statement.name)
    sizes = db.holdings.sizes_of({*scans(statement.plan), *known.read}) if statement.materialized else NO_SIZES
    db.definitions.define(sql_view(statement, known, sizes), replace=statement.or_replace)
    if statement.comment is not None:
        db.definitions.comment(statement.name, "", statement.comment)


def _drop(db: Core, statement: Drop) -> None:
    for name in statement.names:
        kinds = {"table": db.catalog.tables, "view": db.catalog.views}
        other = "view" if statement.kind == "table" else "table"
        if name not in kinds[statement.kind] and name in kinds[other]:
            raise DefinitionError(f'"{name}" is a {other}, not a {statement.kind}', hint=f"write DROP {other.upper()}")
        db.definitions.drop(name, if_exists=statement.if_exists, cascade=statement.cascade)


def _update(db: Core, statement: UpdateRows) -> Any:
    """The rows as they were go, and come as they will be, in one act: keys may change places."""
    returned = _returned(db, statement.returning)
    rows, weights = db.holdings.answered(statement.plan)
    names = db.catalog.tables[statement.table].schema.names
    count = len(names)
    old, new = rows.select(range(count)), rows.select(range(count, 2 * count)).rename_columns(list(names))
    with db.transactions.block() as tx:
        tx.exchange_rows(statement.table, (old, weights), (new, weights))
    return int(weights.sum()) if returned is None else returned


def _merge(db: Core, statement: Merge) -> Any:
    matched, times = db.holdings.answered(statement.matches)
    often = times > 1
    if often.any():
        held = {frozen(row): weight for row, weight in db.holdings.contents_now(statement.table)}
        schema = db.catalog.tables[statement.table].schema
        rows = to_rows(schema, matched.filter(pa.array(often)))
        for row, weight in zip(rows, times[often].tolist(), strict=True):
            if weight > held.get(frozen(row), 0):
                word = statement.text.split(None, 1)[0].upper()
                raise SqlError(
                    f"{word}: several rows of the source change one row of {statement.table}: {row!r}",
                    hint="let the source have one row for each",
                )
    returned = _returned(db, statement.returning)
    removed, added = db.holdings.answered(statement.removed), db.holdings.answered(statement.added)
    count = int(added[1].sum()) + int(db.holdings.answered(statement.deleted)[1].sum())
    with db.transactions.block() as tx:
        tx.exchange_rows(statement.table, removed, added)
    return count if returned is None else returned


def select(db: Core, statement: Select) -> Answer:
    """The rows of a query, now."""
    return _selected(statement, *db.holdings.answered(statement.plan))


def _selected(statement: Select, rows: pa.Table, weights: Any) -> Answer:
    repeated = repeat(rows, weights)
    ordered = in_order(repeated, statement.order)
    count = len(statement.names)
    names = list(statement.plan.schema.names[:count])
    schema = Schema(statement.plan.schema.fields[:count])
    return Answer(schema, ordered.select(range(count)).rename_columns(names) if count else ordered)


def repeat(rows: pa.Table, weights: Any) -> pa.Table:
    """Every row as often as its weight."""
    if (weights == 1).all():
        return rows
    places: Any = pa.array(np.repeat(np.arange(rows.num_rows), np.maximum(weights, 0)))
    return rows.take(places)


def explained(db: Core, statement: Statement, known: ReadableDatabase) -> str:
    """The text of EXPLAIN: the plan of a statement, as written and as optimized for a view."""
    plans = {name: value for name, value in vars(statement).items() if isinstance(value, Plan)}
    if not plans:
        return type(statement).__name__
    parts: list[str] = []
    for name, plan in plans.items():
        head = "" if name == "plan" else f"{name}\n"
        statistics = statistics_of(db.holdings.sizes_of({*scans(plan), *known.read}))
        parts.append(f"{head}{plan}\n\noptimized\n{optimize(plan, statistics, known.keys_of(plan))}")
    return "\n\n".join(parts)
