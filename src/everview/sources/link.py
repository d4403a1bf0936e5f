"""Connections that sources share: the turns of these sources are then one transaction.

A transaction begins with the first read or write, so that one that begins with a write can say so. It ends when the
turns of all its sources have ended: committed if all turns were, else rolled back. Replies outside of turns have a
transaction of their own, which the next turn ends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

from everview.errors import SourceError, TransactionError


class Session(Protocol):
    """The way in which a database begins and ends a transaction."""

    connection: Any

    def start(self, *, write: bool) -> None: ...
    def start_aside(self) -> None:
        """Begin a transaction that writes, outside of all turns."""
        ...

    def finish(self) -> None: ...
    def abandon(self) -> None: ...
    def close(self) -> None: ...


class Link:
    """A connection that sources share; `of` gives one link for each connection."""

    _known: ClassVar[dict[int, Link]] = {}

    def __init__(self, session: Session, *, own: bool) -> None:
        self.session = session
        self.age = 0  # how often replies have been ended
        self._own, self._users = own, 0
        self._turns: list[object] = []
        self._done: list[Callable[[], None]] = []
        self._failed = False
        self._open = self._writing = False
        self._replies = 0

    @classmethod
    def of(cls, session: Session, *, own: bool) -> Link:
        """The link over a connection; one of our ``own`` is closed with the last source that uses it."""
        link = cls._known.setdefault(id(session.connection), cls(session, own=own))
        link._users += 1
        return link

    def leave(self) -> None:
        """Note that a source does not use the link any more."""
        self._users -= 1
        if self._users:
            return
        self._end_replies()
        if self._open:
            self._abandon()
        self._known.pop(id(self.session.connection), None)
        if self._own:
            self.session.close()

    # -- turns

    def in_turn(self, who: object) -> bool:
        return any(each is who for each in self._turns)

    def begin(self, who: object) -> None:
        assert not self.in_turn(who), "one turn at a time"
        if not self._turns:
            self._end_replies()
            self._failed, self._done = False, []
        self._turns.append(who)

    def commit(self, who: object, done: Callable[[], None]) -> None:
        """End a turn; with the last one the transaction is committed, and all ``done`` callbacks run."""
        if self._failed:
            self.rollback(who)
            raise TransactionError(
                "another source of the same connection has been rolled back", hint="and this one with it: try again"
            )
        self._done.append(done)
        self._leave_turn(who)
        if self._turns:
            return
        done_by_all, self._done = self._done, []
        self._finish()
        for each in done_by_all:
            each()

    def rollback(self, who: object) -> None:
        self._failed = True
        self._leave_turn(who)
        if not self._turns and self._open:
            self._abandon()

    def _leave_turn(self, who: object) -> None:
        self.age += 1
        self._turns = [each for each in self._turns if each is not who]

    # -- the transaction

    def reading(self) -> None:
        """Begin a transaction, if none is open."""
        if not self._open:
            self.session.start(write=False)
            self._open = True

    def writing(self) -> None:
        """Begin a transaction that may write, if none is open."""
        assert self._turns, "rows are written inside of a turn"
        if not self._open:
            self.session.start(write=True)
            self._open = True
        self._writing = True

    @contextmanager
    def reply(self) -> Generator[None]:
        """A block in which a reply is read, in a transaction."""
        self.reading()
        self._replies += 1
        age = self.age
        try:
            yield
        finally:
            if age == self.age:
                self._replies -= 1
                if not self._replies and not self._turns and self._open:
                    self._finish()

    @contextmanager
    def aside(self) -> Generator[None]:
        """A block in which a transaction writes, outside of all turns."""
        assert not self._turns, "not inside of a turn"
        self._end_replies()
        self.session.start_aside()
        self._open = True
        try:
            yield
        except BaseException:
            self._abandon()
            raise
        self._finish()

    def _end_replies(self) -> None:
        self.age += 1
        self._replies = 0
        if self._open and not self._turns:
            self._abandon()

    def _finish(self) -> None:
        if not self._open:
            return
        try:
            self.session.finish()
        except SourceError:
            self._abandon()
            raise
        self._open = self._writing = False

    def _abandon(self) -> None:
        self._open = self._writing = False
        self.session.abandon()


def ended() -> SourceError:
    return SourceError("the source has changed since this reply was asked for", hint="ask again")
