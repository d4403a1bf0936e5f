"""Feeds of tables: steps of changes, and after each turn a position from which to go on.

Tables of databases and sources in memory are followed: the first turn gives all rows, later ones what has changed.
Files, iterators and streams give each row once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from everview.errors import DuplicateKey
from everview.sources.protocol import Followed, Position, Request, is_keyed
from everview.types import Schema


class Origin(Protocol):
    """The place where the rows of a step come from, for error messages."""

    def duplicate(self, error: DuplicateKey) -> DuplicateKey:
        """The error with the places of the rows that share the key."""
        ...

    @property
    def rejects(self) -> str | None:
        """The table for rows that cannot be taken; None if one of them is an error."""
        ...

    def refused(self, rows: Sequence[tuple[int, str]]) -> FeedStep:
        """The step that sets some of the rows aside, given by their numbers and the reasons."""
        ...


class FeedStep(NamedTuple):
    """Rows and the command for them: a command of a transaction; ``become`` or ``replace``, which replace the whole
    table by rows that a source gives, or by a table; ``patch``, for keys with the columns that change of their rows; or
    ``reject``, for rows that go to another table.
    """

    kind: Literal["insert", "upsert", "delete", "apply", "become", "replace", "patch", "reject"]
    rows: Any
    origin: Origin | None = None
    table: str = ""  # that rejected rows go to


@runtime_checkable
class TableFeed(Protocol):
    """A feed of one table: it gives the table's changes in turns.

    `read` gives what comes next, at most ``limit`` items (rows, lines or files), and `position` how far this goes: text
    that `resume` takes, perhaps in another process. What a turn gave that is rolled back is given again. `settle` says
    that no older position will be resumed from.
    """

    schema: Schema
    key: tuple[str, ...]  # empty if it has none
    loads: bool  # whether all that is there is to be read when it is attached; else it waits to be asked

    def begin(self) -> None: ...
    def read(self, limit: int | None) -> list[FeedStep]: ...
    def position(self) -> Position: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def resume(self, position: Position) -> None: ...
    def settle(self, position: Position) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class Renewed(Protocol):
    """A feed that can begin anew with all rows, after its position was lost."""

    def renew(self) -> None: ...


@dataclass
class FollowedFeed:
    """The feed of a source that is copied and followed."""

    source: Followed
    whole: bool = True  # whether the next turn gives all rows, or what has changed

    def __post_init__(self) -> None:
        self.schema = self.source.schema
        self.key = self.source.key if is_keyed(self.source) else ()
        self.loads = True

    def begin(self) -> None:
        self.source.begin()

    def read(self, limit: int | None = None) -> list[FeedStep]:
        """All changes since the last turn, whatever the limit: they belong together."""
        changes = self.source.changes()
        if self.whole:
            return [FeedStep("become", self.source.pull(Request()))]
        return [FeedStep("apply", list(changes))] if changes else []

    def position(self) -> Position:
        return self.source.position()

    def commit(self) -> None:
        self.source.commit()
        self.whole = False

    def rollback(self) -> None:
        self.source.rollback()

    def resume(self, position: Position) -> None:
        self.source.resume(position)
        self.whole = False

    def renew(self) -> None:
        self.whole = True

    def settle(self, position: Position) -> None:
        self.source.settle(position)

    def close(self) -> None:
        self.source.close()


# The names under which docs/how-to/sources.md sends those here who write a feed of their own.
Feed = TableFeed
Step = FeedStep
