"""Cells of SQL, Datalog and EDN in notebooks: ``%load_ext everview``, and then ``%%everview``."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any, NoReturn

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class

from everview.database import Database, connect
from everview.errors import EverviewError
from everview.later import Later

if TYPE_CHECKING:
    from everview.notebook.output import live
else:
    live = Later("everview.notebook.output", "live")

DATABASE = "db"  # the variable of the database, unless a cell names another
USAGE = "%%everview [VARIABLE] [--dialect NAME] [--datalog | --edn | --live] [--into NAME]"


class _Arguments(argparse.ArgumentParser):
    """The words behind ``%%everview``; a mistake is told in one sentence, and ends nothing."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n  hint: {USAGE}")


def _arguments() -> _Arguments:
    parser = _Arguments(prog="%%everview", add_help=False)
    parser.add_argument("variable", nargs="?", default=DATABASE)
    parser.add_argument("--dialect")
    parser.add_argument("--into")
    language = parser.add_mutually_exclusive_group()
    language.add_argument("--datalog", action="store_true")
    language.add_argument("--edn", action="store_true")
    language.add_argument("--live", action="store_true")
    return parser


@magics_class
class EverviewMagics(Magics):
    """``%everview SELECT 1`` asks the database ``db`` in a line; ``%%everview`` runs a cell."""

    @line_cell_magic
    def everview(self, line: str, cell: str | None = None) -> Any:
        """Run a line of SQL, or a cell of SQL, Datalog or EDN, and show the result; ``--into`` names it."""
        given = _arguments().parse_args([] if cell is None else _words(line))
        text = line if cell is None else cell
        try:
            result = _run(self._database(given.variable), text, given)
        except EverviewError as error:
            raise UsageError(str(error)) from None
        if given.into is not None:
            self.namespace[given.into] = result
        return result

    @property
    def namespace(self) -> dict[str, Any]:
        """The variables of the notebook."""
        assert self.shell is not None, "made by `load_ipython_extension`"
        return self.shell.user_ns

    def _database(self, variable: str) -> Database:
        """The database in a variable; the usual one is made in memory, if there is none."""
        if variable == DATABASE and DATABASE not in self.namespace:
            self.namespace[DATABASE] = connect()
        database = self.namespace.get(variable)
        if not isinstance(database, Database):
            what = "is not defined" if variable not in self.namespace else f"is a {type(database).__name__}"
            raise UsageError(f"{variable} {what}, not a database\n  hint: {variable} = ev.connect()")
        return database


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{error}\n  hint: {USAGE}") from None


def _run(db: Database, text: str, given: argparse.Namespace) -> Any:
    dialect = {} if given.dialect is None else {"dialect": given.dialect}
    if given.datalog:
        return db.datalog(text, **dialect)
    if given.edn:
        return db.edn(text, **dialect)
    if given.live:
        return live(db, text.strip().removesuffix(";"))
    return db.sql(text, **dialect)


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Let a notebook know ``%everview`` and ``%%everview``."""
    ipython.register_magics(EverviewMagics)
