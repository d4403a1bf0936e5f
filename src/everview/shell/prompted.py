"""Lines with colours, by prompt_toolkit: SQL is highlighted as it is typed, and history has whole statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import CompleteStyle
from pygments.lexers.sql import SqlLexer

from everview.shell.inputs import BREAKS


class Prompted:
    """Lines by prompt_toolkit, with a history that is kept in a file; `options` are those of its session, for tests."""

    def __init__(self, complete: Callable[[str], list[str]], history: Path | None, **options: Any) -> None:
        self._history = _StatementHistory(history)
        self._session: PromptSession[str] = PromptSession(
            history=self._history,
            completer=_Words(complete),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            lexer=PygmentsLexer(SqlLexer),
            **options,
        )

    def read(self, prompt: str) -> str:
        with patch_stdout(raw=True):  # whoever prints meanwhile, prints above the line
            return self._session.prompt(prompt)

    def aside(self, show: Callable[[], None]) -> None:
        """Let something be printed above the line that is typed."""
        show()

    def remember(self, text: str) -> None:
        """Add an input to the history, whole."""
        self._history.remember(text)

    def close(self) -> None:
        """Nothing is left to write: each input is kept when it is remembered."""


class _StatementHistory(History):
    """The inputs so far. The session would add every line by itself; only what is remembered counts."""

    def __init__(self, file: Path | None) -> None:
        super().__init__()
        self._kept: History = InMemoryHistory()
        if file is not None:
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                self._kept = FileHistory(f"{file}_statements")

    def remember(self, text: str) -> None:
        """Keep an input in the file, and show it first from now on; a disk that refuses does not end a conversation."""
        super().append_string(text)
        with suppress(OSError):
            self._kept.store_string(text)

    def append_string(self, string: str) -> None:
        """Take no line of the session's."""

    def load_history_strings(self) -> Iterable[str]:
        with suppress(OSError):
            yield from self._kept.load_history_strings()

    def store_string(self, string: str) -> None:
        """Store nothing: `remember` does."""


class _Words(Completer):
    """What the word before the cursor may become."""

    def __init__(self, complete: Callable[[str], list[str]]) -> None:
        self._complete = complete

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        start = max((text.rfind(each) for each in BREAKS), default=-1) + 1
        completions = list[str]()
        with suppress(Exception):  # whatever it is, it is no reason to end a line
            completions = self._complete(text[start:])
        return [Completion(name, start - len(text)) for name in completions]
