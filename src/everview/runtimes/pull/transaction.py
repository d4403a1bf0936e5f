"""Transactions over several sources: changes are collected until the end, and then written together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

from everview.errors import TransactionError
from everview.runtimes.pull.writes import Writes
from everview.sources.protocol import Source, Update
from everview.types import unknown_name


class SourceTransaction:
    """The changes of an open transaction. Made by `PullPipeline.transaction`; methods return how many rows they change.

    A command is checked when it is given, against the sources with the changes so far.
    """

    def __init__(self, sources: Mapping[str, Source], begin: Callable[[Iterable[str]], None]) -> None:
        self._sources, self._begin = sources, begin
        self._writes: dict[str, Writes] = {}
        self.closed = False

    def insert(self, source: str, rows: Any) -> int:
        """Add rows; one whose key is there is refused."""
        return self._of(source).insert(rows)

    def upsert(self, source: str, rows: Any) -> int:
        """Add rows in place of those with their keys; of several with one key the last counts."""
        return self._of(source).upsert(rows)

    def update(self, source: str, rows: Any) -> int:
        """Set columns of rows that are there: dicts, a table or frame with the key and these columns, or whole rows."""
        return self._of(source).update(rows)

    def delete(self, source: str, rows: Any) -> int:
        """Remove rows: by their keys if the source has one, and those that are not there are no mistake."""
        return self._of(source).delete(rows)

    def apply(self, changes: Mapping[str, Any]) -> None:
        """Add rows with weights: pairs (row, weight), or tables and frames with a ``_weight`` column."""
        for source, rows in changes.items():
            self._of(source).apply(rows)

    @contextmanager
    def inner(self) -> Generator[None]:
        """A nested block: an exception drops the changes collected in the block."""
        before = self.savepoint()
        try:
            yield
        except BaseException:
            self.back_to(before)
            raise

    def savepoint(self) -> dict[str, Any]:
        """The changes collected so far, for `back_to`."""
        return {name: writes.savepoint() for name, writes in self._writes.items()}

    def back_to(self, savepoint: Mapping[str, Any]) -> None:
        """Forget what has been collected since a savepoint."""
        self._writes = {name: writes for name, writes in self._writes.items() if name in savepoint}
        for name, writes in self._writes.items():
            writes.back_to(savepoint[name])

    def updates(self) -> dict[str, Update]:
        """The net changes of the sources."""
        return {name: writes.net() for name, writes in self._writes.items()}

    def _of(self, name: str) -> Writes:
        if self.closed:
            raise TransactionError("the transaction has ended", hint="begin another: with pipeline.transaction() as tx")
        writes = self._writes.get(name)
        if writes is None:
            if name not in self._sources:
                raise unknown_name("source", name, list(self._sources))
            self._begin((name,))
            writes = self._writes[name] = Writes(name, self._sources[name])
        return writes
