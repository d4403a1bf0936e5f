"""COPY from a client into a table, as one act of its transaction or as one tick."""

from __future__ import annotations

from collections.abc import Callable

from everview.codes.ingest import ingest
from everview.database import Database
from everview.database.catalog import Catalog
from everview.database.snapshots import core_of
from everview.frontends.sql.names import fold
from everview.serve.postgres.copying import CopyForm, received_rows
from everview.serve.sessions import ClientSession, Role
from everview.types import Schema, unknown_name


def table_columns(catalog: Catalog, table: str, columns: tuple[str, ...]) -> Schema:
    """The columns named by a COPY, in its order; without names, all columns but generated ones."""
    definition = catalog.tables[_table(catalog, table)]
    if not columns:
        return Schema(f for f in definition.schema.fields if f.name not in definition.generated)
    known = {fold(f.name): f for f in definition.schema.fields}
    for column in columns:
        if fold(column) not in known:
            raise unknown_name("column", column, definition.schema.names)
    return Schema(known[fold(column)] for column in columns)


def _table(catalog: Catalog, name: str) -> str:
    return next((known for known in catalog.tables if fold(known) == fold(name)), None) or catalog.find_table(name)


def fill_table(session: ClientSession, table: str, schema: Schema, form: CopyForm) -> Callable[[Database, bytes], int]:
    """The work of a COPY of some bytes on the database, which gives the number of rows."""
    session.role.require(Role.WRITE, "COPY")

    def work(database: Database, data: bytes) -> int:
        core = core_of(database)
        rows = received_rows(data, schema, form)
        if not rows:
            return 0
        if session.in_transaction and core.access.open is None:
            database.begin()
        with core.transactions.block() as tx:
            return tx.insert(_table(core.catalog, table), ingest(schema, rows)[0])

    return work
