"""The shell as a command: on a terminal a conversation, else a script that ends at its first error."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from everview import __version__
from everview.database import connect
from everview.errors import EverviewError
from everview.shell.lines import converse, history_file, is_terminal, line_reader
from everview.shell.names import completions
from everview.shell.session import Leave, ShellSession

INTERRUPTED = 130


def run_shell(
    directory: Path | None, file: Path | None, command: str | None, *, objects: bool, read_only: bool = False
) -> int:
    """Run the shell; the code that the process ends with."""
    if directory is not None and directory.is_file():
        raise EverviewError(
            f"{directory} is a file, and a database is a directory",
            hint=f"everview shell -f {directory} runs a script; a file of data is read in the shell, by its name",
        )
    text = command if command is not None else None if file is None else _read(file)
    with connect(directory, read_only=read_only) as db:
        session = ShellSession(db, Console(highlight=False), Console(stderr=True, highlight=False), objects=objects)
        try:
            if text is None and is_terminal():
                _converse(session, directory)
                return 0
            return 0 if session.run(sys.stdin.read() if text is None else text) else 1
        except Leave:
            return 0
        except KeyboardInterrupt:  # what was under way has not happened
            return INTERRUPTED
        finally:
            session.close()


def _converse(session: ShellSession, directory: Path | None) -> None:
    where = f"in {directory}" if directory is not None else "in memory: it is gone at the end"
    session.console.print(
        f"Everview {__version__}, a database {where}. \\? for help, \\q or Ctrl-D to leave.", markup=False
    )
    reader = line_reader(lambda word: completions(session.db, word), history_file())
    try:
        converse(session, reader)
    finally:
        reader.close()


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise EverviewError(f"{file} cannot be read: {error}", hint="give a file of SQL, in UTF-8") from None
