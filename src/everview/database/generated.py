"""Generated columns of rows that come from Python: computed where the rows leave them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from everview.codes import decode, encode_rows
from everview.codes.dictionary import Dictionary
from everview.codes.frames import as_arrow, is_frame, python_rows
from everview.codes.ingest import as_rows
from everview.database.definitions import TableDefinition
from everview.frontends.sql.constraints import generated_values
from everview.scalars.evaluate import Evaluate
from everview.scalars.session_zone import session_zone
from everview.types import Schema


def with_generated(table: TableDefinition, rows: Any, dictionary: Dictionary, timezone: str) -> Any:
    """The rows with generated columns; rows that give these columns themselves are left as they are, to be checked."""
    given = as_arrow(rows)
    if given is None:
        rows = list(as_rows(python_rows(rows) if is_frame(rows) else rows))
        names = rows[0].keys() if rows and isinstance(rows[0], Mapping) else table.generated.keys()
    else:
        names = given.schema.names
    if table.generated.keys() <= set(names):
        return rows
    kept = [place for place, f in enumerate(table.schema) if f.name not in table.generated]
    schema = Schema(table.schema.fields[place] for place in kept)
    encoded = encode_rows(schema, rows, dictionary)
    columns: pa.Table = decode(schema, encoded[:, :-1], dictionary)
    by_name = {name: columns.column(i).combine_chunks() for i, name in enumerate(schema.names)}
    with session_zone(timezone):
        values = generated_values(table.generated, table.schema)
    nothing = pa.nulls(columns.num_rows)
    whole = [by_name.get(f.name, nothing) for f in table.schema]
    computed = dict(zip(values, Evaluate(tuple(values.values()))(*whole), strict=True))
    arrays = [by_name[f.name] if f.name in by_name else computed[f.name] for f in table.schema]
    return pa.table(arrays, names=list(table.schema.names))
