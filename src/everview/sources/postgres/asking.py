"""What PostgreSQL refuses, as an error of ours."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import psycopg

from everview.errors import SourceError


@contextmanager
def asking(name: str) -> Generator[None]:
    """Whatever is asked of PostgreSQL within this, by the name of what it is about."""
    try:
        yield
    except psycopg.errors.SerializationFailure as error:
        raise SourceError(f"{name}: {error}", hint="another has changed the same rows: try again") from error
    except psycopg.Error as error:
        raise SourceError(f"{name}: {error}", hint="see the database; nothing of the turn counts") from error
