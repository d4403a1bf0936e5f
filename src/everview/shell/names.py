"""Completion: the keywords, relations, columns, functions and commands that the word at the cursor may become."""

from __future__ import annotations

from typing import Final

from everview.database import Database
from everview.frontends.sql.words import KEYWORDS
from everview.scalars.signatures import SIGNATURES

COMMANDS: Final = {
    "\\d": "list tables and views, or describe one: \\d name",
    "\\explain": "the plan and the circuit of a view: \\explain view",
    "\\watch": "ask again and again: \\watch 2 SELECT …; Ctrl-C ends it",
    "\\timing": "show how long each statement takes, or no more",
    "\\i": "run a file: \\i script.sql",
    "\\q": "leave; so does Ctrl-D",
    "\\?": "this list",
}


def completions(db: Database, word: str) -> list[str]:
    """All that a word may become, whatever the case of its letters; names of the database first.

    >>> import everview as ev
    >>> db = ev.connect()
    >>> db.create_table("selection", "seller STRING")
    >>> completions(db, "sel")
    ['selection', 'seller', 'SELECT']
    """
    if word.startswith("\\"):
        return [command for command in COMMANDS if command.startswith(word)]
    folded = word.casefold()
    return [name for name in _names(db) if name.casefold().startswith(folded)]


def _names(db: Database) -> list[str]:
    columns = [name for (name,) in db.sql("SELECT DISTINCT column_name FROM information_schema.columns ORDER BY 1")]
    functions = [f"{name}(" for name in sorted(SIGNATURES)]
    return list(dict.fromkeys([*db.tables(), *db.views(), *columns, *KEYWORDS, *functions]))
