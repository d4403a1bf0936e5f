"""The lines that somebody types: with history, completion by the tab key, and inputs over several lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from everview.shell.inputs import BREAKS, cut
from everview.shell.session import Leave, ShellSession

PROMPT: Final = "everview> "
MORE: Final = "     ...> "
MOST_REMEMBERED: Final = 10_000


class LineReader(Protocol):
    """A reader of lines from a terminal: raises `EOFError` at their end, `KeyboardInterrupt` when one is given up."""

    def read(self, prompt: str) -> str: ...

    def aside(self, show: Callable[[], None]) -> None:
        """Let something be printed while a line is read, from another thread; what is typed so far stays."""
        ...

    def remember(self, text: str) -> None: ...
    def close(self) -> None: ...


class Readline:
    """Lines by the readline of Python, with a history that is kept in a file."""

    def __init__(self, complete: Callable[[str], list[str]], history: Path | None) -> None:
        import readline

        self._readline, self._complete, self._history = readline, complete, history
        self._found: list[str] = []
        self._prompt = ""
        readline.set_auto_history(False)
        readline.set_completer_delims(BREAKS)
        readline.set_completer(self._completion)
        readline.parse_and_bind("tab: complete")
        if history is not None:
            with suppress(OSError):
                readline.read_history_file(history)

    def read(self, prompt: str) -> str:
        self._prompt = prompt
        return input(prompt)

    def aside(self, show: Callable[[], None]) -> None:
        sys.stdout.write("\n")
        show()
        sys.stdout.write(f"{self._prompt}{self._readline.get_line_buffer()}")
        sys.stdout.flush()

    def remember(self, text: str) -> None:
        """Add an input to the history, as one line."""
        self._readline.add_history(" ".join(text.split("\n")))

    def close(self) -> None:
        if self._history is not None:
            self._readline.set_history_length(MOST_REMEMBERED)
            with suppress(OSError):
                self._history.parent.mkdir(parents=True, exist_ok=True)
                self._readline.write_history_file(self._history)

    def _completion(self, word: str, number: int) -> str | None:
        if number == 0:
            with suppress(Exception):  # whatever it is, it is no reason to end a line
                self._found = self._complete(word)
        return self._found[number] if number < len(self._found) else None


def line_reader(complete: Callable[[str], list[str]], history: Path | None) -> LineReader:
    """Lines with colours, where prompt_toolkit is installed and the terminal has them; else plain ones."""
    if os.environ.get("TERM", "dumb") not in {"dumb", "unknown"}:
        with suppress(ModuleNotFoundError):
            from everview.shell.prompted import Prompted

            return Prompted(complete, history)
    return Readline(complete, history)


def history_file() -> Path:
    """The file that the history is kept in; ``EVERVIEW_HISTORY`` names another."""
    given = os.environ.get("EVERVIEW_HISTORY")
    return Path(given) if given else Path.home() / ".everview_history"


def converse(session: ShellSession, reader: LineReader) -> None:
    """Run what is typed until the end. Ctrl-C gives up the input at hand, or the statement that runs."""
    waiting = ""
    session.aside = reader.aside
    while True:
        try:
            with session.waiting():
                line = reader.read(MORE if waiting else PROMPT)
            inputs, rest = cut(f"{waiting}\n{line}" if waiting else line)
            if not waiting and not inputs and session.is_file(line):
                inputs, rest = [line], ""
            waiting = rest
            for each in inputs:
                reader.remember(each)
                session.run_one(each)
        except KeyboardInterrupt:
            waiting = ""
            session.console.print()
        except EOFError:
            session.console.print()
            return
        except Leave:
            return


def is_terminal() -> bool:
    """Whether somebody types, and reads."""
    return sys.stdin.isatty() and sys.stdout.isatty()
