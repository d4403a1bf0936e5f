"""What SQLite refuses, as an error of ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from everview.errors import SourceError


@contextmanager
def asking(name: str) -> Generator[None]:
    """Whatever is asked of SQLite within this, by the name of what it is about."""
    try:
        yield
    except sqlite3.OperationalError as error:
        busy = "locked" in str(error) or "busy" in str(error)
        hint = "another connection is writing: try again, or give sources that change together one connection"
        raise SourceError(f"{name}: {error}", hint=hint if busy else "see the database") from error
    except sqlite3.Error as error:
        raise SourceError(f"{name}: {error}", hint="see the database; nothing of the turn counts") from error
