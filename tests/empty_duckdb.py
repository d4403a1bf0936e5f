"""Empty databases of DuckDB, all within one instance: opening an instance of its own takes ten times as long."""

from __future__ import annotations

from functools import cache
from itertools import count

import duckdb

_numbers = count()


@cache
def _instance() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def empty_duckdb() -> duckdb.DuckDBPyConnection:
    """A connection to a new, empty database in memory; settings are shared with all others."""
    connection, name = _instance().cursor(), f"empty{next(_numbers)}"
    connection.execute(f"ATTACH ':memory:' AS {name}")
    connection.execute(f"USE {name}")
    return connection
