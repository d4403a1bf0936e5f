"""Sessions: the statements of one client, with its role, its prepared statements and its transaction.

A query outside of a transaction is answered from a snapshot. Everything else runs in the writer's thread. BEGIN only
notes that statements belong together: the database's own transaction begins with the first change, and while the
client is idle, it is parked as soon as anybody else wants to change something. COMMIT lets it count, as one tick.
Definitions change outside of transactions: inside one they are possible as long as it has changed nothing, and count at
once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from everview.database.answers import Answer
from everview.database.snapshots import core_of
from everview.database.statements import only_reads, planned_soon, run_planned
from everview.errors import LimitReached, NotPermitted, TransactionError
from everview.frontends.sql import (
    Begin,
    Commit,
    CopyFrom,
    CopyTo,
    Deallocate,
    DeleteRows,
    Execute,
    Explain,
    InsertRows,
    Merge,
    Prepare,
    Rollback,
    Select,
    Statement,
    UpdateRows,
    Use,
)
from everview.frontends.sql.parameters import ParameterValues
from everview.serve.roles import Role
from everview.serve.tasks import ServerTask

if TYPE_CHECKING:
    from everview.database import Database
    from everview.database.core import StatementGuard
    from everview.database.parked import ParkedChanges
    from everview.serve.owner import Owner

T = TypeVar("T")
READS = Select, Explain, Begin, Commit, Rollback, Prepare, Execute, Deallocate, Use
WRITES = InsertRows, DeleteRows, UpdateRows, Merge


class ClientSession:
    """One client of an `Owner`. Statements of one session are run one after the other: wait for each."""

    def __init__(self, owner: Owner, role: Role = Role.ADMIN, *, dialect: str = "spark") -> None:
        self._owner = owner
        self.role = owner.allowed(role)
        self.dialect = dialect
        self.in_transaction = False
        self.parked: ParkedChanges | None = None  # what the transaction has changed, while others have their turn
        self._prepared: dict[str, Prepare] = {}
        self._schema = ""  # as USE says
        self._running: ServerTask[Any] | None = None

    def run(
        self, text: str, params: Any = None, *, dialect: str | None = None, seconds: float | None = None
    ) -> ServerTask[Any]:
        """Run statements of SQL; the result of the last: an `Answer`, how many rows changed, a text, or None."""
        dialect = dialect or self.dialect

        def work(database: Database) -> Any:
            result = database.sql(text, params, dialect=dialect)
            if isinstance(result, Answer):
                _require_rows(len(result), self._owner.limits.rows)
            return result

        if self._may_read(text):
            task = self.read(work, seconds=seconds)
        else:
            task = self.write(work, seconds=seconds)
        self._running = task
        return task

    def answered_now(self, text: str, params: Any = None) -> Answer | None:
        """The answer of a query that takes microseconds, in this thread; None if it is another statement."""
        if not self._may_read(text) or self._owner.closing:
            return None
        given = ParameterValues.of(params)

        def work(database: Database) -> Answer | None:
            core = core_of(database)
            planned = planned_soon(core, text, self.dialect, given)
            return None if planned is None else run_planned(core, planned, given)

        answer = self.now(work)
        if answer is not None:
            _require_rows(len(answer), self._owner.limits.rows)
        return answer

    def read(self, work: Callable[[Database], T], *, seconds: float | None = None) -> ServerTask[T]:
        """Run work on a snapshot, in a reader's thread; statements other than queries are refused there."""
        return self._owner.read(lambda database: self._as_mine(database, SnapshotGuard(), work), seconds=seconds)

    def now(self, work: Callable[[Database], T | None]) -> T | None:
        """Run work of microseconds on a snapshot, in this thread; None if it turns out to be more. See `Owner.now`."""
        return self._owner.now(lambda database: self._as_mine(database, SnapshotGuard(), work))

    def write(self, work: Callable[[Database], T], *, seconds: float | None = None) -> ServerTask[T]:
        """Run work on the database itself, in the writer's thread, in this session's transaction if it has one."""
        return self._owner.submit(lambda database: self._in_turn(database, work), seconds=seconds, holder=self)

    def forget(self, name: str | None = None) -> bool:
        """Drop one prepared statement, or all; False if none has the name."""
        if name is not None:
            return self._prepared.pop(name, None) is not None
        self._prepared.clear()
        return True

    def cancel(self) -> bool:
        """Stop the statement that runs or waits; False if there is none."""
        return self._running is not None and self._running.stop()

    def lost(self) -> None:
        """Take note that the transaction is over, and counts for nothing: see `Owner`."""
        self.in_transaction = False

    def close(self) -> None:
        """End the session; a transaction that has not ended counts for nothing."""
        self.cancel()
        if self.in_transaction and not self._owner.closing:
            self.write(self._rolled_back)

    def _may_read(self, text: str) -> bool:
        """Whether a text is answered from a snapshot: a single query, and no transaction has changed anything."""
        if self.in_transaction and (self.parked is not None or self._owner.holds(self)):
            return False
        return only_reads(text) and ";" not in str(text).strip().rstrip(";")

    def _in_turn(self, database: Database, work: Callable[[Database], T]) -> T:
        def noted(mine: Database) -> T:
            try:
                return work(mine)
            finally:
                self._schema = core_of(mine).schema

        return self._as_mine(database, SessionGuard(self, database), noted)

    def _as_mine(self, database: Database, guard: StatementGuard, work: Callable[[Database], T]) -> T:
        """Do some work on a database with what this session has prepared and uses, and leave nothing of it there."""
        core = core_of(database)
        core.guard, core.prepared, core.schema = guard, self._prepared, self._schema
        try:
            return work(database)
        finally:
            core.guard, core.prepared, core.schema = None, {}, ""

    def _rolled_back(self, database: Database) -> None:
        if core_of(database).access.open is not None:
            database.rollback()
        self.in_transaction = False


def _require_rows(count: int, most: int) -> None:
    if count > most:
        hint = "ask for fewer: LIMIT, WHERE, or page by page"
        raise LimitReached(f"the answer has {count:,} rows, and {most:,} are allowed", hint=hint)


class SnapshotGuard:
    """Lets queries pass, and nothing else: a snapshot changes nothing."""

    def took(self, statement: Statement) -> bool:
        """See `StatementGuard`."""
        if not isinstance(statement, Select | Explain):
            raise NotPermitted(
                "only queries are answered from a snapshot", hint="begin the text with the statement's own word"
            )
        return False


class SessionGuard:
    """Judges statements by the role of a session, and keeps its transaction."""

    def __init__(self, session: ClientSession, database: Database) -> None:
        self._session, self._core = session, core_of(database)
        self._database = database

    def took(self, statement: Statement) -> bool:
        """See `StatementGuard`: statements that begin or end a transaction are dealt with here."""
        session, kind = self._session, type(statement).__name__
        if isinstance(statement, CopyFrom | CopyTo):
            self._core.require_unsealed("COPY with a file")
        if isinstance(statement, WRITES):
            session.role.require(Role.WRITE, kind)
            if session.in_transaction and self._core.access.open is None:
                self._database.begin()
            return False
        if not isinstance(statement, READS):
            session.role.require(Role.ADMIN, kind)
            return False
        return isinstance(statement, Begin | Commit | Rollback) and self._turned(statement)

    def _turned(self, statement: Begin | Commit | Rollback) -> bool:
        session = self._session
        if isinstance(statement, Begin):
            if session.in_transaction:
                raise TransactionError("a transaction is open already", hint="COMMIT or ROLLBACK it first")
            session.in_transaction = True
            return True
        if not session.in_transaction:
            raise TransactionError("no transaction has begun", hint="write BEGIN first")
        session.in_transaction = False  # it ends, in whatever way
        if self._core.access.open is not None:
            self._database.commit() if isinstance(statement, Commit) else self._database.rollback()
        return True
