"""Mirrors: the views of a Spark pipeline as views of a database in memory, kept up to date from its state directory.

The pipeline's process writes, and this one reads each epoch that it commits. A view has a table behind it, in the
schema ``pipeline``, which becomes what the state says: so subscribers are told of the difference, as one tick.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from everview.database import Database, connect
from everview.database.snapshots import core_of
from everview.errors import StoreError
from everview.runtimes.embedded.history import contents_at, described_at, last_epoch
from everview.types import Schema
from everview.types.names import quoted

HOME: Final = "pipeline"


class PipelineMirror:
    """A database that shows the kept views of a pipeline's state."""

    def __init__(self, path: Path) -> None:
        """Read the last epoch of a state directory; `follow` moves on to later ones."""
        self._path = path
        self._epoch = 0
        self._schemas: dict[str, Schema] = {}
        self.database = connect()
        self.database.sql(f"CREATE SCHEMA {HOME}")
        self.follow(self.database)

    def follow(self, database: Database) -> None:
        """Show the last epoch that the pipeline has committed."""
        epoch = last_epoch(self._path)
        if epoch == self._epoch:
            return
        said: dict[str, Any] = described_at(self._path, epoch).get("views") or {}
        schemas = {name: Schema.parse(each["schema"]) for name, each in said.items() if each is not None}
        if not schemas and epoch:
            raise StoreError(f"{self._path} keeps no views", hint="a pipeline keeps a view unless it is told not to")
        self._define(database, schemas)
        read = {name: contents_at(self._path, name, epoch) for name in schemas}
        core = core_of(database)
        with core.transactions.block() as tx:
            for name, schema in schemas.items():
                tx.overwrite(_table(name), read[name].rows.select(list(schema.names)), read[name].weights)
        self._epoch = epoch

    def _define(self, database: Database, schemas: dict[str, Schema]) -> None:
        """Have a table and a view for each view of the pipeline, and no others."""
        for name in [each for each, schema in self._schemas.items() if schemas.get(each) != schema]:
            database.drop(_table(name), cascade=True)
            del self._schemas[name]
        for name, schema in schemas.items():
            if name not in self._schemas:
                database.create_table(_table(name), schema)
                columns = ", ".join(map(quoted, schema.names))
                source = f"{HOME}.{quoted(_table(name).partition('.')[2])}"
                database.sql(
                    f"CREATE MATERIALIZED VIEW {quoted(name.replace('.', '_'))} AS SELECT {columns} FROM {source}"
                )
                self._schemas[name] = schema


def _table(view: str) -> str:
    return f"{HOME}.{view.replace('.', '_')}"
