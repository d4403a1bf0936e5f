"""The transaction of a connection: begun by the client or by several statements in one message, and its savepoints.

All that a transaction changes counts as one tick. After an error nothing of it counts, and everything but its end, or a
way back to a savepoint, is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from everview.database.parked import ParkedChanges, park, resume
from everview.database.snapshots import core_of
from everview.errors import EverviewError
from everview.serve.postgres.portals import KeptByName, PreparedText, require_room
from everview.serve.postgres.states import IN_FAILED_TRANSACTION, ClientError

if TYPE_CHECKING:
    from everview.database import Database
    from everview.serve.postgres.context import PgContext
    from everview.serve.postgres.settings import Values


class Savepoint(NamedTuple):
    """What a transaction has changed so far, and what else a way back to this moment restores."""

    name: str
    changes: ParkedChanges | None
    portals: frozenset[str]  # those that are open
    settings: tuple[Values, Values]


class PgTransaction:
    """Whether a connection is in a transaction, and what becomes of it."""

    def __init__(self, context: PgContext, kept: KeptByName) -> None:
        self._context, self._kept = context, kept
        self.in_block = False  # between BEGIN and its end
        self._implicit = False  # in a transaction of several statements that nobody began
        self._failed = False
        self._savepoints: list[Savepoint] = []
        self._defined: str | None = None  # the tag of a definition that has changed inside

    @property
    def status(self) -> bytes:
        """The letter by which clients are told."""
        return b"I" if not self.in_block else b"E" if self._failed else b"T"

    def require_not_failed(self, prepared: PreparedText) -> None:
        """Refuse a statement in a failed transaction, unless the statement ends the transaction."""
        if self.in_block and not self._context.session.in_transaction:
            self._failed = True
        if self._failed and not prepared.ends_failure and not prepared.empty:
            raise ClientError(
                "current transaction is aborted, commands ignored until end of transaction block",
                IN_FAILED_TRANSACTION,
                hint="ROLLBACK it",
            )

    async def fail(self) -> None:
        """Take note of an error: nothing that the transaction has changed counts."""
        self._failed = self.in_block
        if self._context.session.in_transaction:
            await self._roll_back()
        self._implicit = False

    def require_writable(self, what: str) -> None:
        """Refuse a change in a transaction, or of a session, that only reads."""
        settings = self._context.settings
        if settings.is_on("transaction_read_only" if self.in_block else "default_transaction_read_only"):
            hint = "write BEGIN READ WRITE, or SET default_transaction_read_only TO off"
            raise ClientError(f"cannot execute {what} in a read-only transaction", "25006", hint=hint)

    def set_modes(self, read_only: bool | None, *, session: bool) -> None:
        """Let the transaction, or all that begin from now on, change nothing."""
        if not session and not self.in_block:
            self._context.notice("SET TRANSACTION can only be used in transaction blocks", "25P01")
        elif read_only is not None:
            name = "default_transaction_read_only" if session else "transaction_read_only"
            self._context.settings.set(name, "on" if read_only else "off")

    def set(self, name: str, value: str | None, *, local: bool) -> None:
        """Set a parameter of the session, or of the transaction alone."""
        if local and not self.in_block:
            self._context.notice("SET LOCAL can only be used in transaction blocks", "25P01")
        else:
            self._context.settings.set(name, value, local=local)

    def defined(self, tag: str) -> None:
        """Take note of a definition that has changed, which a rollback does not undo."""
        if self.in_block:
            self._defined = tag

    async def turn(self, kind: str, read_only: bool | None = None) -> str:
        """Begin or end a transaction; the tag."""
        if kind == "BEGIN":
            if self.in_block:
                self._context.notice("there is already a transaction in progress", "25001")
            settings = self._context.settings
            if not self.in_block:
                settings.begin()
            only = settings.is_on("default_transaction_read_only") if read_only is None else read_only
            settings.set("transaction_read_only", "on" if only else "off")
            self.in_block = self._context.session.in_transaction = True
            return "BEGIN"
        if not self.in_block:
            self._context.notice("there is no transaction in progress", "25P01")
            return kind
        failed, self.in_block, self._failed = self._failed, False, False
        self._savepoints = []
        defined, self._defined = self._defined, None
        self._context.settings.set("transaction_read_only", None)
        committed = False
        try:
            if kind == "ROLLBACK" or failed:
                if defined is not None:
                    self._context.notice(f"{defined} is not undone: definitions count at once", "25000")
                await self._roll_back()
                return "ROLLBACK"
            await self._commit()
            committed = True
            return "COMMIT"
        finally:
            self._context.settings.end(committed=committed)
            self._kept.end_transaction(committed=committed)

    async def turn_savepoint(self, kind: str, name: str) -> str:
        """Note what a transaction has changed so far, or go back to it; the tag."""
        if not self.in_block:
            said = {"ROLLBACK": "ROLLBACK TO SAVEPOINT", "RELEASE": "RELEASE SAVEPOINT"}.get(kind, kind)
            raise ClientError(f"{said} can only be used in transaction blocks", "25P01", hint="write BEGIN first")
        if kind == "SAVEPOINT":
            require_room(self._savepoints)
            marked = self._kept.portals, self._context.settings.mark()
            self._savepoints.append(Savepoint(name, await self._changes_so_far(), *marked))
            return "SAVEPOINT"
        place = next((i for i in reversed(range(len(self._savepoints))) if self._savepoints[i].name == name), None)
        if place is None:
            raise ClientError(f'savepoint "{name}" does not exist', "3B001")
        if kind == "RELEASE":
            del self._savepoints[place:]
            return "RELEASE"
        del self._savepoints[place + 1 :]
        savepoint = self._savepoints[place]
        for opened in self._kept.portals - savepoint.portals:
            self._kept.close(opened)
        self._context.settings.back(savepoint.settings)
        await self._roll_back()
        session = self._context.session
        self._failed, session.in_transaction = False, True
        session.parked = savepoint.changes
        return "ROLLBACK"

    async def _changes_so_far(self) -> ParkedChanges | None:
        session = self._context.session
        if session.parked is not None or not self._context.changing:
            return session.parked
        return await self._context.wait(session.write(_saved))

    def begin_implicit(self) -> None:
        """Let the statements up to `end_implicit` count as one tick."""
        if not self.in_block and not self._implicit:
            self._implicit = self._context.session.in_transaction = True

    async def end_implicit(self) -> None:
        """Let what nobody began count, if there is any."""
        if self._implicit:
            self._implicit = False
            await self._commit()

    async def _commit(self) -> None:
        context = self._context
        if context.changing:
            await context.wait(context.session.run("COMMIT", dialect="spark"))
        context.session.in_transaction = False

    async def _roll_back(self) -> None:
        context = self._context
        if context.session.in_transaction and context.changing:
            try:
                await context.wait(context.session.run("ROLLBACK", dialect="spark"))
            except EverviewError:  # it is over already, as after a conflict
                context.session.parked = None
        context.session.in_transaction = False


def _saved(database: Database) -> ParkedChanges:
    """The changes of the open transaction, which goes on."""
    core = core_of(database)
    changes = park(core)
    resume(core, changes)
    return changes
