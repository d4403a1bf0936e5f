"""Sources of rows: memory, SQLite, PostgreSQL, files, Python iterators and streams of JSON lines.

See `everview.sources.protocol` for what a source is, and `Database.attach` for what becomes of one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everview.sources.files import Files
    from everview.sources.iterators import Iterator
    from everview.sources.lines import Lines
    from everview.sources.memory import Memory
    from everview.sources.postgres import Postgres, PostgresReplica
    from everview.sources.sqlite import SQLite

__all__ = ["Files", "Iterator", "Lines", "Memory", "Postgres", "PostgresReplica", "SQLite"]
_HOMES = {
    "Files": "files",
    "Iterator": "iterators",
    "Lines": "lines",
    "Memory": "memory",
    "Postgres": "postgres",
    "PostgresReplica": "postgres",
    "SQLite": "sqlite",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"everview.sources.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
