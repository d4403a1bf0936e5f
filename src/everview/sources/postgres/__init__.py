"""PostgreSQL tables as sources; needs psycopg, which ``everview[postgres]`` installs."""

from everview.errors import MissingRuntime

try:
    import psycopg as _psycopg  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError:
    raise MissingRuntime("PostgreSQL sources need psycopg", hint="pip install 'everview[postgres]'") from None

from everview.sources.postgres.replica import PostgresReplica
from everview.sources.postgres.source import Postgres

__all__ = ["Postgres", "PostgresReplica"]
