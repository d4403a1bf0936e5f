"""Errors of PostgreSQL as errors of ours."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import psycopg

from everview.errors import SourceError


@contextmanager
def asking(name: str) -> Generator[None]:
    """A block in which errors of PostgreSQL become `SourceError`, with the name of the source."""
    try:
        yield
    except psycopg.errors.SerializationFailure as error:
        raise SourceError(f"{name}: {error}", hint="another has changed the same rows: try again") from error
    except psycopg.errors.InsufficientPrivilege as error:
        hint = "who follows a table makes a log and triggers beside it; to only read it, open it with watch=False"
        raise SourceError(f"{name}: {error}", hint=hint) from error
    except psycopg.DataError as error:
        hint = "repair the row; if it was followed already, drop the table, and attach it anew"
        raise SourceError(f"{name}: {error}", hint=hint) from error
    except psycopg.Error as error:
        raise SourceError(f"{name}: {error}", hint="see the database; nothing of the turn counts") from error
