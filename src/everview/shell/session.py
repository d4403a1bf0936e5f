"""A session of the shell: it runs one input after the other, and prints answers and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from time import perf_counter, sleep
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from everview.database import Database
from everview.database.answers import Answer
from everview.database.runner import Runner
from everview.errors import EverviewError
from everview.shell.inputs import cut
from everview.shell.names import COMMANDS
from everview.shell.shown import as_objects, show_answer, show_rows
from everview.sources.opening import suffix_of
from everview.sources.reading import FORMATS
from everview.views import Subscription
from everview.zset.batch import Batch

EVERY: Final = 2.0  # seconds between two answers of \watch
FOLLOWED: Final = 0.5  # seconds between two looks at what another process has written
_SUBSCRIBE: Final = re.compile(r"(UN)?SUBSCRIBE\s+(?:TO\s+)?[`\"]?([^`\"]+?)[`\"]?\s*;?", re.IGNORECASE)
_WHY: Final = re.compile(r"WHY\s+(NOT\s+)?[`\"]?([^`\"(]+?)[`\"]?\s*\((.*)\)\s*;?", re.IGNORECASE | re.DOTALL)
_READERS: Final = {suffix: name for name, suffixes in FORMATS.items() for suffix in suffixes}


class Leave(Exception):
    """Raised by the command that ends a session."""


class ShellSession:
    """The shell of a database. ``objects`` prints answers as lines of JSON, and errors as objects, for other programs.

    >>> import everview as ev
    >>> shell = ShellSession(ev.connect(), Console(width=40))
    >>> shell.run("CREATE TABLE t (n BIGINT); INSERT INTO t VALUES (1);")
    1 row changed
    True
    >>> shell.run("SELECT nn FROM t;")
    False
    """

    def __init__(self, db: Database, console: Console, errors: Console | None = None, *, objects: bool = False) -> None:
        self.db = db
        self.console = console
        self.errors = errors or Console(stderr=True)
        self.objects = objects
        self.timing = False
        self.subscribed: dict[str, Subscription] = {}
        self.aside: Callable[[Callable[[], None]], None] | None = None  # prints while a line is typed, if one can be
        self._told: list[tuple[str, Batch, int]] = []
        self._telling = Lock()  # changes may come from the thread that follows a writer
        self._waiting = False
        self._runner: Runner | None = None
        self._commands: dict[str, Callable[[str], None]] = {
            "\\d": self._describe,
            "\\explain": self._explain,
            "\\watch": self._watch,
            "\\timing": self._timing,
            "\\i": self._run_file,
            "\\q": self._leave,
            "\\?": self._help,
        }

    def run(self, text: str, *, go_on: bool = False) -> bool:
        """Run the inputs of a text, the last of which may lack its semicolon; whether all went well.

        The first that fails is the last, unless it is to ``go_on``.
        """
        inputs, rest = cut(text)
        well = True
        for each in [*inputs, *([rest] if rest else [])]:
            well = self.run_one(each) and well
            if not well and not go_on:
                return False
        return well

    def run_one(self, text: str) -> bool:
        """Run one input; an error is printed, and leaves the database as it was."""
        began = perf_counter()
        try:
            if self.db.read_only:
                self.db.refresh()  # to the last epoch of the process that writes
            self._run(text)
        except EverviewError as error:
            self._show_error(error)
            return False
        finally:
            self._show_changes()
        if self.timing and not self.objects:
            self.console.print(Text(f"{(perf_counter() - began) * 1000:.1f} ms", "dim"))
        return True

    def close(self) -> None:
        """End what was subscribed to."""
        for subscription in self.subscribed.values():
            subscription.close()
        if self._runner is not None:
            self._runner.stop()

    @contextmanager
    def waiting(self) -> Generator[None]:
        """A block in which a line is typed: changes that come meanwhile are printed as they come."""
        self._waiting = True
        try:
            self._show_changes()  # of those that came just before
            yield
        finally:
            self._waiting = False

    # -- inputs

    def _run(self, text: str) -> None:
        text = text.strip()
        if text.startswith("\\"):
            self._command(text)
        elif (about := _SUBSCRIBE.fullmatch(text)) is not None:
            self._unsubscribe(about[2]) if about[1] else self._subscribe(about[2])
        elif (asked := _WHY.fullmatch(text)) is not None:
            self._why(asked[2], asked[3], absent=asked[1] is not None)
        elif (file := self._file(text)) is not None:
            self._table_of(file)
        else:
            self.show(self.db.sql(text))

    def show(self, result: Any) -> None:
        """Print what a statement gives."""
        if isinstance(result, Answer):
            if self.objects:
                for line in as_objects(result):
                    self._line(line)
            else:
                show_answer(self.console, result)
        elif isinstance(result, int):
            said = {"changed": result} if self.objects else f"{result:,} row{'s' * (result != 1)} changed"
            self._say(said)
        elif result is not None:
            self._say({"text": str(result)} if self.objects else str(result))

    def _say(self, said: Any) -> None:
        if isinstance(said, str):
            self.console.print(Text(said), soft_wrap=True)
        else:
            self._line(json.dumps(said, ensure_ascii=False, default=str))

    def _line(self, line: str) -> None:
        self.console.print(Text(line), soft_wrap=True)

    def _show_error(self, error: EverviewError) -> None:
        if self.objects:
            said = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
            self.errors.print(Text(json.dumps(said, ensure_ascii=False)), soft_wrap=True)
            return
        self.errors.print(Text("error: ", "red"), end="")
        self.errors.print(Text(str(error)), soft_wrap=True)

    def _why(self, view: str, values: str, *, absent: bool) -> None:
        """Print why a view has a row, or has it not; the row is written as its values in SQL."""
        (row,) = self.db.sql(f"SELECT {values}").rows()
        told = self.db.why_not(view, row) if absent else self.db.why(view, row)
        self._say(told.to_dict() if self.objects else str(told))

    # -- files

    def is_file(self, text: str) -> bool:
        """Whether an input is the name of a file, which needs no semicolon."""
        return self._file(text) is not None

    @staticmethod
    def _file(text: str) -> Path | None:
        """The file whose name is all that the input is, as when it is dropped on the terminal."""
        path = Path(text.rstrip(";").strip().strip("'\""))
        try:
            return path if suffix_of(path) in _READERS and path.is_file() else None
        except (OSError, ValueError):
            return None

    def _table_of(self, path: Path) -> None:
        """Make a table of a file, named as the file is."""
        reader = f"read_{_READERS[suffix_of(path)]}"
        name = re.sub(r"\W+", "_", path.name.split(".")[0]).strip("_") or "data"
        self.db.sql(f"CREATE TABLE `{name}` AS SELECT * FROM {reader}(?)", [str(path)])
        table = self.db.table(name)
        self._say(
            {"table": name, "schema": str(table.schema), "rows": len(table)}
            if self.objects
            else f"table {name} ({table.schema}), {len(table):,} rows"
        )

    # -- commands

    def _command(self, text: str) -> None:
        word, _, rest = text.rstrip(";").partition(" ")
        command = self._commands.get(word.lower())
        if command is None:
            raise EverviewError(f"there is no command {word}", hint=f"one of {', '.join(COMMANDS)}")
        command(rest.strip())

    def _describe(self, name: str) -> None:
        if name:
            self.show(self.db.sql(f"DESCRIBE {name}"))
            return
        self.show(
            self.db.sql(
                "SELECT table_name AS name, lower(table_type) AS kind FROM information_schema.tables ORDER BY 1"
            )
        )

    def _explain(self, name: str) -> None:
        if not name:
            raise EverviewError("\\explain of what?", hint="write \\explain view; EXPLAIN SELECT … is for a query")
        self.show(self.db.explain(name))

    def _watch(self, rest: str) -> None:
        match = re.match(r"(\d+(?:\.\d+)?)\s+", rest)
        every, query = (float(match[1]), rest[match.end() :]) if match is not None else (EVERY, rest)
        if not query:
            raise EverviewError("\\watch of what?", hint="write \\watch 2 SELECT …")
        try:
            while True:
                self.show(self.db.sql(query))
                sleep(every)
        except KeyboardInterrupt:
            self.console.print()

    def _timing(self, _: str) -> None:
        self.timing = not self.timing
        self._say({"timing": self.timing} if self.objects else f"timing is {'on' if self.timing else 'off'}")

    def _run_file(self, name: str) -> None:
        try:
            text = Path(name).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise EverviewError(f"{name or 'no file'} cannot be read: {error}", hint="write \\i script.sql") from None
        if not self.run(text):
            raise EverviewError(f"{name} ended at its first error", hint="what came before it has happened")

    def _leave(self, _: str) -> None:
        raise Leave

    def _help(self, _: str) -> None:
        for command, said in COMMANDS.items():
            self._say(f"{command:10}{said}")
        self._say(
            "SUBSCRIBE view shows its changes as they come; UNSUBSCRIBE view ends that. A file's name makes a table. "
            "WHY view (value, …) shows what is behind a row, WHY NOT view (value, …) what is missing."
        )

    # -- subscriptions

    def _subscribe(self, name: str) -> None:
        view = self.db.view(name)
        if view.name in self.subscribed:
            raise EverviewError(f"{view.name} is subscribed to already", hint=f"UNSUBSCRIBE {view.name} ends it")

        def told(changes: Batch, epoch: int) -> None:
            self._told.append((view.name, changes, epoch))
            if self._waiting and self.aside is not None:
                self.aside(self._show_changes)

        self.subscribed[view.name] = view.subscribe(told, snapshot=True)
        if self.aside is not None and self.db.read_only and self._runner is None:
            self._runner = self.db.run(every=FOLLOWED)

    def _unsubscribe(self, name: str) -> None:
        known = next((each for each in self.subscribed if each.casefold() == name.casefold()), None)
        if known is None:
            raise EverviewError(
                f"{name} is not subscribed to", hint=f"subscribed: {', '.join(self.subscribed) or 'none'}"
            )
        self.subscribed.pop(known).close()

    def _show_changes(self) -> None:
        """Print the changes that have come of views that are subscribed to."""
        with self._telling:
            told, self._told = self._told, []
            for name, changes, epoch in told:
                self._show_change(name, changes, epoch)

    def _show_change(self, name: str, changes: Batch, epoch: int) -> None:
        if self.objects:
            for row, weight in changes:
                said = dict(zip(changes.schema.names, row, strict=True))
                self._line(json.dumps({"view": name, "epoch": epoch, "weight": weight, "row": said}, default=str))
            return
        with self.console:  # in one piece, so that the line being typed does not come between
            self.console.print(Text(f"{name}, epoch {epoch}", "bold cyan"))
            show_rows(self.console, changes.schema, changes.elements(), changes.weights.tolist())
