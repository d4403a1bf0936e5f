"""The book of mistakes: a file with what a user typed and the message that came, section by section.

`python tests/errors/book.py` writes the messages anew, for when they were changed on purpose; read the difference.

A section begins with `=== Title`. What follows `>>> ` and `... ` is run, in the names that `given` makes; the lines
after it, up to an empty one, are what it says: the error, or what a command printed. What says nothing prepares the
next.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BOOK = Path(__file__).with_name("mistakes.txt")

TABLES = """
CREATE TABLE account (id BIGINT PRIMARY KEY, owner STRING NOT NULL, country STRING, balance DECIMAL(12,2), opened DATE);
CREATE TABLE transfer (id BIGINT, src BIGINT, dst BIGINT, amount INT, note STRING);
CREATE MATERIALIZED VIEW exposure AS SELECT country, SUM(balance) AS total FROM account GROUP BY country;
CREATE MATERIALIZED VIEW ratio AS SELECT id, 100 / amount AS share, CAST(note AS INT) AS number FROM transfer;
CREATE VIEW plain AS SELECT id FROM account;
"""


@dataclass
class Entry:
    """One thing that was typed, and what it said."""

    section: str
    line: int
    code: str
    said: str

    def run(self, names: dict[str, Any]) -> str:
        """What it says now; another exception than ours comes through."""
        from everview.errors import EverviewError
        from everview.types.atoms import HOST_ATOMS

        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            try:
                exec(compile(self.code, f"mistake in line {self.line}", "exec"), names)
            except EverviewError as error:
                out.write(f"{type(error).__name__}: {error}")
        said = out.getvalue().strip().replace(str(names["folder"]), "FOLDER").replace(str(Path.cwd()), "HERE")
        said = re.sub(r"process \d+", "process 4711", said)
        for atom in HOST_ATOMS:  # which other tests of this process may have made known
            said = said.replace(f", {atom}", "")
        return "\n".join(line.rstrip() for line in said.splitlines())


def entries(text: str) -> Iterator[Entry]:
    """What a text has."""
    section, lines = "", [*text.splitlines(), ""]
    at = 0
    while at < len(lines):
        if lines[at].startswith("=== "):
            section = lines[at][4:].strip()
        if not lines[at].startswith(">>> "):
            at += 1
            continue
        start, code, said = at, [lines[at][4:]], list[str]()
        at += 1
        while lines[at].startswith("..."):
            code.append(lines[at][4:])
            at += 1
        while lines[at].strip() and not lines[at].startswith(">>> "):
            said.append(lines[at])
            at += 1
        yield Entry(section, start + 1, "\n".join(code), "\n".join(said))


def given(folder: Path) -> dict[str, Any]:
    """The names that a section begins with."""
    import datetime as dt
    from decimal import Decimal

    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    import everview as ev
    from everview import sources
    from everview.errors import EverviewError

    def everview(*args: str) -> None:
        """The command line."""
        from typer.testing import CliRunner

        from everview.cli import app

        print(CliRunner().invoke(app, list(args)).output.strip())

    db = ev.connect()
    db.sql(TABLES)
    names = {"ev": ev, "db": db, "pa": pa, "pd": pd, "pl": pl, "np": np, "dt": dt, "Decimal": Decimal}
    return {**names, "sources": sources, "folder": folder, "Path": Path, "everview": everview, "Err": EverviewError}


def play(book: list[Entry]) -> Iterator[tuple[Entry, str]]:
    """Every entry with what it says now; each section in names and a folder of its own."""
    section, names = "", dict[str, Any]()
    with tempfile.TemporaryDirectory(prefix="mistakes") as root:
        for number, entry in enumerate(book):
            if entry.section != section:
                _close(names)
                folder = Path(root) / str(number)
                folder.mkdir()
                section, names = entry.section, given(folder)
            yield entry, entry.run(names)
        _close(names)


def _close(names: dict[str, Any]) -> None:
    for value in names.values():
        if type(value).__name__ in ("Database", "Embedded"):
            with suppress(Exception):
                value.close()


def rewritten(text: str) -> str:
    """The text with the messages of now."""
    lines, out = text.splitlines(), list[str]()
    at = 0
    for entry, said in play(list(entries(text))):
        out += lines[at : entry.line - 1]
        code = entry.code.split("\n")
        out += [f">>> {code[0]}", *(f"... {line}".rstrip() for line in code[1:]), *said.splitlines()]
        at = entry.line - 1 + len(code) + (len(entry.said.splitlines()) if entry.said else 0)
    return "\n".join([*out, *lines[at:]]) + "\n"


if __name__ == "__main__":
    BOOK.write_text(rewritten(BOOK.read_text()))
    count = sum(1 for entry in entries(BOOK.read_text()) if entry.said)
    sys.stdout.write(f"{count} mistakes\n")
