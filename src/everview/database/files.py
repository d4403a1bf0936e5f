"""Files in SQL: `read_csv` and its like in FROM, COPY from a file, and COPY to one.

A file that a query reads is read when the query is bound, because its columns are needed then; its rows are held until
the statement has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from everview.codes.encode import encode_weighted
from everview.codes.ingest import ingest
from everview.database.rejects import insert_fitting, make_rejects
from everview.database.tentative import Tentative, undoing_table
from everview.doors import path_of
from everview.errors import DefinitionError, DuplicateKey, SourceError
from everview.plan.nodes import Scan
from everview.sources.csv_form import CsvForm
from everview.sources.files import FileRows, rejected
from everview.sources.opening import written_paths
from everview.sources.reading import FORMATS, columns_in, format_of, read_file, read_fitting
from everview.sources.writing import write_file
from everview.types import Schema, unknown_name
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database.answers import Answer
    from everview.database.core import Core
    from everview.database.transaction import OpenTransaction
    from everview.frontends.sql import CopyFrom

CSV_OPTIONS: Final = tuple(signature(CsvForm).parameters)
COPY_MODES: Final = ("insert", "upsert", "replace")
Options = Mapping[str, Any]


def scan_files(core: Core, format_: str, paths: Sequence[str], options: Options) -> Scan:
    """The plan that reads files, which `file_contents` has the rows of until the statement has ended."""
    rest = dict(options)
    schema = rest.pop("schema", None)
    schema = Schema.parse(schema) if isinstance(schema, str) else None
    form = _form(rest, format_)
    files = _existing(paths)
    tables = [read_file(path, schema, form, format_) for path in files]
    table = tables[0] if len(tables) == 1 else _together(tables, files)
    schema = schema or Schema.from_arrow(table.schema)
    name = f"read_{format_}({', '.join(map(repr, paths))}) {len(core.files)}"
    core.files[name] = schema, ingest(schema, table)[0]
    return Scan(name, schema)


def file_contents(core: Core, name: str) -> Batch:
    """The rows of files that `scan_files` has named."""
    schema, table = core.files[name]
    encoded = encode_weighted(schema, table, np.ones(table.num_rows, np.int64), core.run.dictionary)
    return Batch.consolidated(schema, encoded, core.run.dictionary)


# -- COPY


def copy_from(core: Core, statement: CopyFrom) -> int:
    """Take the rows of files into a table, as one tick; how many rows were taken."""
    name = core.catalog.find_table(statement.table)
    options = dict(statement.options)
    mode, rejects = _mode(options), options.pop("rejects", None)
    format_ = _format(options)
    form = _form(options, format_)
    with ExitStack() as stack:
        if rejects is not None:
            fresh = rejects not in core.catalog.tables
            stack.enter_context(Tentative(core, undoing_table(core, rejects)) if fresh else nullcontext())
            make_rejects(core, rejects)
        with core.transactions.block() as tx:
            files = _existing([statement.path])
            if mode == "replace":
                tx.become(name, core.catalog.tables[name].schema.arrow.empty_table())
            return sum(
                _copy_one(core, tx, name, path, form, format_, statement.columns, mode, rejects) for path in files
            )


def _copy_one(
    core: Core,
    tx: OpenTransaction,
    name: str,
    path: Path,
    form: CsvForm,
    format_: str | None,
    columns: Sequence[str],
    mode: str,
    rejects: str | None,
) -> int:
    """Take one file into a table; defaults fill the columns that it lacks."""
    schema = _columns(core.catalog.tables[name].schema, path, form, format_, columns)
    take = tx.upsert if mode == "upsert" else tx.insert
    if rejects is None:
        rows = read_file(path, schema, form, format_)
        try:
            return take(name, rows)
        except DuplicateKey as error:
            raise FileRows(path, rows, schema, form).duplicate(error) from error
    fitting = read_fitting(path, schema, form, format_)
    refused = rejected(rejects, path, fitting.refused)
    if refused.rows:
        tx.insert(rejects, refused.rows)
    if mode == "upsert":
        return take(name, fitting.rows)
    doubled = insert_fitting(tx, name, fitting.rows)
    if doubled:
        origin = FileRows(path, fitting.rows, schema, form, rejects, tuple(fitting.lines))
        tx.insert(rejects, origin.refused(doubled).rows)
    return fitting.rows.num_rows - len(doubled)


def _columns(schema: Schema, path: Path, form: CsvForm, format_: str | None, columns: Sequence[str]) -> Schema:
    """The columns of a table that a file has values for."""
    if form.header or (format_ or format_of(path)) != "csv":
        columns = columns or columns_in(path, form, format_)
    for name in columns:
        if name not in schema:
            raise unknown_name("column", name, schema.names)
    return schema.select(columns) if columns else schema


def copy_to(answer: Answer, path: str, options: Options) -> int:
    """Write the rows of an answer to a file; how many rows they are."""
    rest = dict(options)
    format_ = _format(rest)
    target = path_of(path, SourceError)
    write_file(answer.schema, answer.to_arrow(), target, format_ or format_of(target), rest)
    return len(answer)


# -- options


def _form(options: dict[str, Any], format_: str | None) -> CsvForm:
    """The form of CSV that options say; options that nobody knows are refused."""
    if "nulls" in options:
        nulls = options["nulls"]
        options["nulls"] = (nulls,) if isinstance(nulls, str) else tuple(nulls)
    for option, value in options.items():
        if option not in CSV_OPTIONS:
            raise unknown_name("option", option, [*CSV_OPTIONS, "schema" if format_ else "format"])
        wanted = bool if option == "header" else tuple if option == "nulls" else str
        if not isinstance(value, wanted):
            raise SourceError(f"the option {option} is {value!r}", hint=f"give {_WANTED[wanted]}")
    if options and format_ not in ("csv", None):
        raise SourceError(f"{format_} has no option {next(iter(options))}", hint="it is one of CSV")
    return CsvForm(**options)


_WANTED: Final = {bool: "TRUE or FALSE", tuple: "text, or several texts", str: "text"}


def _mode(options: dict[str, Any]) -> str:
    mode = str(options.pop("mode", "insert")).lower()
    if mode not in COPY_MODES:
        raise SourceError(f"{mode!r} is no mode", hint=f"one of {', '.join(COPY_MODES)}")
    return mode


def _format(options: dict[str, Any]) -> str | None:
    format_ = options.pop("format", None)
    if format_ is None:
        return None
    format_ = {"ndjson": "json", "jsonl": "json"}.get(str(format_).lower(), str(format_).lower())
    if format_ not in FORMATS:
        raise unknown_name("format", format_, FORMATS)
    return format_


def _existing(paths: Sequence[str]) -> list[Path]:
    files = written_paths([path_of(path, SourceError) for path in paths])
    if not files:
        raise SourceError(f"no file is called {', '.join(paths)}", hint="paths are relative to where Python runs")
    for path in files:
        if not path.is_file():
            raise SourceError(f"there is no file {path}", hint="paths are relative to where Python runs")
    return files


def _together(tables: Sequence[pa.Table], files: Sequence[Path]) -> pa.Table:
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        hint = "say their columns: schema => 'id BIGINT, name STRING'"
        raise SourceError(f"{files[0]} and others have columns that do not fit: {error}", hint=hint) from error


def require_no_files(names: Sequence[str], view: str) -> None:
    """Refuse a view whose plan reads files."""
    if names:
        raise DefinitionError(
            f'view "{view}" reads files, which it cannot follow',
            hint="CREATE TABLE t AS SELECT …, and the view over t; or db.attach('t', Files(path))",
        )
