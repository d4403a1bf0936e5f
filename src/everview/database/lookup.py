"""Lookups: the rows of a relation that have given values in some columns, without reading the others where possible.

A table is kept in the order of its key, and a view in the order of its columns: rows are searched by those. By other
columns every row is looked at, as a whole column of words at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from everview.codes import encode_rows
from everview.database.definitions import find_name
from everview.errors import DefinitionError, WrongArity
from everview.runtimes.embedded.relation import KeptTable
from everview.runtimes.embedded.view import CircuitView
from everview.types import Schema
from everview.zset.batch import Batch
from everview.zset.shown import as_changes

if TYPE_CHECKING:
    from everview.database.core import Core

Row = tuple[Any, ...]


def row_of_key(core: Core, table: str, key: Row) -> Row | None:
    """The row of a table with a given key, a value for each key column; None if no row has it."""
    columns = core.catalog.tables[core.catalog.find_table(table)].key
    if not columns:
        raise DefinitionError(f"table {table} has no key", hint="find(column=value) gives the rows that have a value")
    if len(key) != len(columns):
        raise WrongArity(
            f"the key of table {table} has {len(columns)} column{'s' * (len(columns) > 1)}, not {len(key)}",
            hint=f"give a value for each of {', '.join(columns)}",
        )
    rows = rows_with(core, table, dict(zip(columns, key, strict=True)))
    return rows[0] if rows else None


def rows_with(core: Core, name: str, values: Mapping[str, Any]) -> list[Row]:
    """The rows of a relation that have given values, each as often as its weight; NULL is looked for as None."""
    with core.still:
        core.access.ready()
        core.access.require_open()
        schema = core.holdings.schema_of(name)
        named = {find_name("column", column, dict.fromkeys(schema.names)): value for column, value in values.items()}
        if any(value is None and not schema[column].nullable for column, value in named.items()):
            return []
        mark = core.run.dictionary.mark()
        try:
            return [row for row, weight in as_changes(_matching(core, name, named)) for _ in range(weight)]
        finally:
            core.run.dictionary.rollback(mark)


def is_indexed(core: Core, name: str, columns: Collection[str]) -> bool:
    """Whether rows with values in these columns are found without looking at others."""
    relation = core.definitions.relations.get(name)
    stored = relation.stored if relation is not None else core.run.views[name].schema
    return {*stored.names[: len(columns)]} == {*columns}


def _matching(core: Core, name: str, values: Mapping[str, Any]) -> Batch:
    """The rows with these values; the caller holds the lock, and lets go of what the values have interned."""
    relation: KeptTable | CircuitView = core.definitions.relations.get(name) or core.run.views[name]
    stored = relation.stored if isinstance(relation, KeptTable) else relation.schema
    columns = _leading(stored, values)
    if not values:
        return core.holdings.now(name)
    if not columns:
        return _scanned(core, core.holdings.now(name), values)
    beginning = Schema(stored.fields[:columns])
    words = encode_rows(beginning, [tuple(values[name] for name in beginning.names)], core.run.dictionary)
    if isinstance(relation, KeptTable):
        return relation.rows_with(words, columns, core.run.state)
    return relation.beginning_with(words)


def _leading(schema: Schema, values: Mapping[str, Any]) -> int:
    """The number of leading columns, if exactly these have values; else 0."""
    return len(values) if {*schema.names[: len(values)]} == {*values} else 0


def _scanned(core: Core, rows: Batch, values: Mapping[str, Any]) -> Batch:
    schema, matrix = rows.schema, rows.rows
    named = Schema(schema[name] for name in values)
    wanted = encode_rows(named, [tuple(values.values())], core.run.dictionary)
    match = np.ones(len(matrix), np.bool_)
    for place, name in enumerate(named.names):
        match &= (matrix[:, schema.words(schema.index(name))] == wanted[0, named.words(place)]).all(axis=1)
    return Batch(schema, matrix[match], rows.dictionary)
