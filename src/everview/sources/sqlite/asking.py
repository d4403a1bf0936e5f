"""Errors of SQLite as errors of ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from everview.errors import SourceError


@contextmanager
def asking(name: str) -> Generator[None]:
    """A block in which errors of SQLite become `SourceError`, with the name of the source."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise SourceError(f"{name}: {error}", hint=_hint(str(error), "see the database")) from error
    except sqlite3.Error as error:
        hint = _hint(str(error), "see the database; nothing of the turn counts")
        raise SourceError(f"{name}: {error}", hint=hint) from error


_HINTS: Final = {
    "locked": "another connection is writing: try again, or give sources that change together one connection",
    "busy": "another connection is writing: try again, or give sources that change together one connection",
    "readonly": "who follows a table writes a log beside it; to only read it, open it with watch=False",
    "closed": "open it again; a source is closed when it is detached",
    "decode": "text is in UTF-8: repair the row; if it was followed already, drop the table, and attach it anew",
    "same thread": "give the path of the database, or a connection made with check_same_thread=False",
}


def _hint(error: str, otherwise: str) -> str:
    return next((hint for word, hint in _HINTS.items() if word in error), otherwise)
