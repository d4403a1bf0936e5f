"""Files in SQL: `read_csv` and its like in FROM, COPY from a file, and COPY to one.

A file that a query reads is read when the query is bound, because its columns are needed then; its rows are held until
the statement has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from everview.later import Later
from everview.plan.nodes import Scan
from everview.sources.csv_form import CsvForm
from everview.sources.files import FileRows, rejected
from everview.sources.opening import written_paths
from everview.sources.reading import FORMATS, columns_in, format_of, read_file, read_fitting
from everview.sources.writing import write_file
from everview.types import Schema, unknown_name
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.database.statements import select
    from everview.database.transaction import OpenTransaction
    from everview.frontends.sql import CopyFrom, CopyTo
else:
    select = Later("everview.database.statements", "select")

CSV_OPTIONS: Final = tuple(signature(CsvForm).parameters)
COPY_MODES: Final = ("insert", "upsert", "replace")
Options = Mapping[str, Any]


def scan_files(core: Core, format_: str, paths: Sequence[str], options: Options) -> Scan:
    """The plan that reads files, which `file_contents` has the rows of until the statement has ended."""
    core.require_unsealed(f"read_{format_}")
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
    core.require_unsealed("COPY FROM a file")
    name = core.catalog.find_table(statement.table)
    options = dict(statement.options)
    mode, rejects = _mode(options), options.pop("rejects", None)
    format_ = _format(options)
    copying = Copying(core, name, _form(options, format_), format_, statement.columns, mode, rejects)
    if rejects is None:
        return copying.take(statement.path)
    if rejects in core.catalog.tables:
        make_rejects(core, rejects)
        return copying.take(statement.path)
    with Tentative(core, undoing_table(core, rejects)):
        make_rejects(core, rejects)
        return copying.take(statement.path)


@dataclass(frozen=True, slots=True)
class Copying:
    """A COPY from files into a table: how files are read, and the fate of rows that exist already or do not fit."""

    core: Core
    table: str
    form: CsvForm
    format: str | None
    columns: Sequence[str]
    mode: str
    rejects: str | None

    def take(self, path: str) -> int:
        """Take the files of a path, as one tick; how many rows were taken."""
        with self.core.transactions.block() as tx:
            files = _existing([path])
            if self.mode == "replace":
                tx.become(self.table, self.core.catalog.tables[self.table].schema.arrow.empty_table())
            return sum(self._take_one(tx, file) for file in files)

    def _take_one(self, tx: OpenTransaction, path: Path) -> int:
        """Take one file; defaults fill the columns that it lacks."""
        schema = self._schema(path)
        take = tx.upsert if self.mode == "upsert" else tx.insert
        if self.rejects is None:
            rows = read_file(path, schema, self.form, self.format)
            try:
                return take(self.table, rows)
            except DuplicateKey as error:
                raise FileRows(path, rows, schema, self.form).duplicate(error) from error
        fitting = read_fitting(path, schema, self.form, self.format)
        refused = rejected(self.rejects, path, fitting.refused)
        if refused.rows:
            tx.insert(self.rejects, refused.rows)
        if self.mode == "upsert":
            return take(self.table, fitting.rows)
        doubled = insert_fitting(tx, self.table, fitting.rows)
        if doubled:
            origin = FileRows(path, fitting.rows, schema, self.form, self.rejects, tuple(fitting.lines))
            tx.insert(self.rejects, origin.refused(doubled).rows)
        return fitting.rows.num_rows - len(doubled)

    def _schema(self, path: Path) -> Schema:
        """The columns of the table that a file has values for."""
        schema, columns = self.core.catalog.tables[self.table].schema, self.columns
        if self.form.header or (self.format or format_of(path)) != "csv":
            columns = columns or columns_in(path, self.form, self.format)
        for name in columns:
            if name not in schema:
                raise unknown_name("column", name, schema.names)
        return schema.select(columns) if columns else schema


def copy_to(core: Core, statement: CopyTo) -> int:
    """Write the rows of a query to a file; how many rows they are."""
    core.require_unsealed("COPY TO a file")
    rest, answer = dict(statement.options), select(core, statement.rows)
    format_ = _format(rest)
    target = path_of(statement.path, SourceError)
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
