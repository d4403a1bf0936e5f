"""Tables of databases as sinks: each epoch of a view is one transaction there, and counts once.

PostgreSQL is written to here, without Spark; other databases are by their drivers, see `everview.spark.drivers`.

A table beside the target, ``everview_epochs``, has the last epoch of every sink, by the id of the state. It changes in
the transaction that changes the rows, so an epoch that is delivered again after a crash is known, and passed over. The
target has the rows of the view by their key: deleted rows go, others are inserted or take the place of the old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from everview.errors import MissingRuntime, SinkError
from everview.runtimes.spark.stored_change import Change
from everview.spark.drivers import DIALECTS, deliver_by_driver, dialect_of
from everview.spark.keyed import DELETE, OP, KeyedChange, keyed_change
from everview.types import Decimal, Type

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import SparkSession

    from everview.spark.sinks import SinkSpec

PREFIX: Final = "jdbc:"
EPOCHS: Final = "everview_epochs"
TYPES: Final[Mapping[str, str]] = {  # of columns that are made, by ours
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "SMALLINT": "smallint",
    "INTEGER": "integer",
    "BIGINT": "bigint",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "STRING": "text",
    "BINARY": "bytea",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamptz",
    "TIMESTAMP_NTZ": "timestamp",
}


def check_url(url: str) -> None:
    """Refuse the address of a database that no sink writes to."""
    if not _is_postgres(url) and dialect_of(url) is None:
        known = ", ".join(dialect.name for dialect in DIALECTS.values())
        raise SinkError(
            f'no sink writes to "{url.partition("?")[0].partition("@")[0]}…"',
            hint=f'give "jdbc:postgresql://host:5432/database?user=…", or one of {known}; others by a callback=',
        )


def _is_postgres(url: str) -> bool:
    return url.removeprefix(PREFIX).startswith(("postgresql:", "postgres:"))


def deliver_rows(spark: SparkSession, spec: SinkSpec, epoch: int, changes: Change, state: str) -> None:
    """Write an epoch to a table, unless the table has it."""
    if not len(changes):
        return
    keyed = keyed_change(spark, spec.view, changes, spec.key)
    for name in keyed.nulls:
        hint = "leave such rows out of the view, or write coalesce(…); a key of a table has no NULL"
        raise SinkError(f'view "{spec.view}": {name}, of the key of its sink, is NULL in a row', hint=hint)
    assert spec.jdbc is not None, "the sink has an address"
    if not _is_postgres(spec.jdbc):
        deliver_by_driver(spark, spec, _place(spec), epoch, keyed, state)
        return
    with _connected(spec) as connection, connection.transaction():
        if _is_new(connection, spec, epoch, state):
            _write(connection, spec, keyed)


def _connected(spec: SinkSpec) -> psycopg.Connection[Any]:
    try:
        import psycopg
    except ImportError:
        raise MissingRuntime("a sink in PostgreSQL needs psycopg", hint="pip install 'everview[postgres]'") from None

    assert spec.jdbc is not None, "the sink has an address"
    settings: Any = dict(spec.options)
    return psycopg.connect(spec.jdbc.removeprefix(PREFIX), **settings)


def _is_new(connection: psycopg.Connection[Any], spec: SinkSpec, epoch: int, state: str) -> bool:
    """Whether an epoch is new to the table; the same transaction notes the epoch as delivered."""
    schema = _place(spec)[:-1]
    epochs = _quoted(*schema, EPOCHS)
    _run(connection, "SELECT pg_advisory_xact_lock(hashtext(%s))", (EPOCHS,))  # two may not make one table at once
    _run(
        connection,
        f"CREATE TABLE IF NOT EXISTS {epochs} (state text, target text, epoch bigint NOT NULL,"
        " PRIMARY KEY (state, target))",
    )
    name = _place(spec)[-1]
    known = _run(connection, f"SELECT epoch FROM {epochs} WHERE state = %s AND target = %s", (state, name)).fetchone()
    if known is not None and known[0] > epoch:
        raise SinkError(
            f"table {spec.table} has epoch {known[0]}, and the state is at epoch {epoch}: {spec}",
            hint="the state is an older copy: restore the table to the same moment, or give the sink another one",
        )
    _run(
        connection,
        f"INSERT INTO {epochs} VALUES (%s, %s, %s) ON CONFLICT (state, target) DO UPDATE SET epoch = excluded.epoch",
        (state, name, epoch),
    )
    return known is None or known[0] < epoch


def _write(connection: psycopg.Connection[Any], spec: SinkSpec, changes: KeyedChange) -> None:
    """Put rows into the table by way of a temporary one, so that a few statements do for any number."""
    schema = changes.schema
    target, names = _quoted(*_place(spec)), [_quoted(name) for name in schema.names]
    keys = [_quoted(name) for name in spec.key]
    columns = ", ".join(f"{_quoted(f.name)} {_type(f.type, f.name, spec)}" for f in schema)
    made = f"{columns}, PRIMARY KEY ({', '.join(keys)})"
    _run(connection, f"CREATE TABLE IF NOT EXISTS {target} ({made})")
    _run(connection, f"CREATE TEMPORARY TABLE everview_delivered ({OP} text, {columns}) ON COMMIT DROP")
    listed = f"{OP}, {', '.join(names)}"
    with connection.cursor() as cursor, cursor.copy(f"COPY everview_delivered ({listed}) FROM STDIN".encode()) as copy:
        for rows in changes.tables():
            for row in zip(*(rows[name].to_pylist() for name in (OP, *schema.names)), strict=True):
                copy.write_row(row)
    same = " AND ".join(f"t.{key} = d.{key}" for key in keys)
    _run(connection, f"DELETE FROM {target} t USING everview_delivered d WHERE d.{OP} = '{DELETE}' AND {same}")
    others = [name for name in names if name not in keys]
    replaced = ", ".join(f"{name} = excluded.{name}" for name in others)
    _run(
        connection,
        f"INSERT INTO {target} ({', '.join(names)}) SELECT {', '.join(names)} FROM everview_delivered"
        f" WHERE {OP} <> '{DELETE}' ON CONFLICT ({', '.join(keys)})"
        f" DO {f'UPDATE SET {replaced}' if others else 'NOTHING'}",
    )


def _run(connection: psycopg.Connection[Any], text: str, values: tuple[Any, ...] = ()) -> psycopg.Cursor[Any]:
    return connection.execute(text.encode(), values or None)


def _place(spec: SinkSpec) -> list[str]:
    """The schema, if one is named, and the name of the table."""
    return [part.strip("`") for part in (spec.table or spec.view).split(".")]


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def _type(type_: Type, name: str, spec: SinkSpec) -> str:
    if isinstance(type_, Decimal):
        return f"numeric({type_.precision}, {type_.scale})"
    made = TYPES.get(type_.sql)
    if made is None:
        hint = f"deliver it as text: to_json({name})"
        raise SinkError(f'column "{name}" of view "{spec.view}" is {type_}, which PostgreSQL does not hold', hint=hint)
    return made
