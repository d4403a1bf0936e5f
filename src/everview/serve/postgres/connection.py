"""One client's connection: its simple and extended queries, its transaction and its answers.

The protocol is a conversation: messages are read one by one, and each is answered before the next. In an extended query
an error makes everything up to Sync pass unread; see `PgConnection.serve`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence, Sized
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from everview.database import Database
from everview.database.parked import ParkedChanges, park, resume
from everview.database.snapshots import core_of
from everview.errors import EverviewError, StatementCancelled
from everview.frontends.sql.parse import pieces
from everview.scalars.expressions import Literal
from everview.serve.postgres import messages as m
from everview.serve.postgres.commands import (
    CloseAll,
    CopyIn,
    CopyOut,
    DoNothing,
    DoorCommand,
    DropStatement,
    SetParameter,
    ShowParameter,
    SubscribeView,
    TurnSavepoint,
    TurnTransaction,
    command_of,
    first_word,
)
from everview.serve.postgres.copying import CopyForm, copied_lines, header_line
from everview.serve.postgres.decode import parameter
from everview.serve.postgres.execution import RunOutcome, SqlStatement, describe, run
from everview.serve.postgres.filling import fill_table, table_columns
from everview.serve.postgres.results import (
    PIECE,
    AnsweredRows,
    RowSource,
    SubscribedRows,
    described,
    formats_of,
    with_epoch,
)
from everview.serve.postgres.settings import REPORTED, SessionSettings
from everview.serve.postgres.states import CANCELED, IN_FAILED_TRANSACTION, ClientError, report_fields
from everview.serve.postgres.system_catalog import SystemCatalog
from everview.serve.postgres.wire import Wire
from everview.serve.sessions import ClientSession
from everview.types import STRING, Field, Schema

if TYPE_CHECKING:
    from everview.database.catalog import Catalog
    from everview.serve.owner import Owner
    from everview.serve.tasks import Task

T = TypeVar("T")
log = logging.getLogger("everview.serve.postgres")
_TOGETHER: Final = ("INSERT", "UPDATE", "DELETE", "MERGE", "SELECT", "WITH", "VALUES", "TRUNCATE")
MOST_STATEMENTS: Final = 10_000  # prepared statements and portals of one connection
ENDLESS: Final = 2**31


@dataclass(frozen=True)
class PreparedText:
    """A statement as a client has prepared it: a command of the door, SQL, or nothing at all."""

    text: str
    command: DoorCommand | None = None
    statement: SqlStatement | None = None
    oids: tuple[int, ...] = ()

    @property
    def ends_failure(self) -> bool:
        """Whether it may run in a transaction that has failed."""
        command = self.command
        ends = isinstance(command, TurnTransaction) and command.kind != "BEGIN"
        return ends or (isinstance(command, TurnSavepoint) and command.kind == "ROLLBACK")


@dataclass(eq=False)
class Portal:
    """A prepared statement with its values, and what is left of its rows once it has run."""

    prepared: PreparedText
    values: tuple[Literal, ...] = ()
    formats: tuple[int, ...] = ()
    outcome: RunOutcome | None = None
    source: RowSource | None = None
    sent: int = 0
    tag: str | None = field(default=None)  # once it has come to its end


class PgConnection:
    """The conversation with one client, from the moment it is known who it is."""

    def __init__(
        self, owner: Owner, session: ClientSession, wire: Wire, settings: SessionSettings, names: tuple[str, str, int]
    ) -> None:
        self._owner, self._session, self._wire = owner, session, wire
        self._settings = settings
        self._database, self._user, self._process = names
        self._statements: dict[str, PreparedText] = {}
        self._portals: dict[str, Portal] = {}
        self._in_block = False  # between BEGIN and its end
        self._implicit = False  # in a transaction of several statements that nobody began
        self._failed = False
        self._savepoints: list[tuple[str, ParkedChanges | None]] = []
        self._task: Task[Any] | Future[Any] | None = None
        self._stream: SubscribedRows | None = None
        self._system: SystemCatalog | None = None
        self._text = ""  # in which errors have their places

    # -- the conversation

    async def serve(self) -> None:
        """Answer messages until the client leaves."""
        self._wire.put(m.ready(self._status))
        await self._wire.flush()
        while True:
            letter, body = await self._wire.next()
            if letter == b"X":
                return
            await self._answer(letter, m.MessageBody(body))

    async def _answer(self, letter: bytes, body: m.MessageBody) -> None:
        if letter == b"Q":
            text = body.text()
            body.end()
            await self._simple(text)
        elif letter == b"S":
            await self._sync()
        elif letter == b"H":
            await self._wire.flush()
        elif letter in (b"P", b"B", b"D", b"E", b"C"):
            try:
                await self._extended(letter, body)
            except (EverviewError, m.ProtocolViolation) as error:
                await self._fail(error)
                await self._skip_to_sync()
        elif letter not in (b"d", b"c", b"f"):  # those are what is left of a COPY that has failed
            raise m.ProtocolViolation(f"invalid frontend message type {letter!r}")

    async def _skip_to_sync(self) -> None:
        await self._wire.flush()  # a client may wait for the error before it says Sync
        while True:
            letter, _ = await self._wire.next()
            if letter == b"S":
                return await self._sync()
            if letter == b"X":
                raise ConnectionResetError("the client has gone")

    async def _sync(self) -> None:
        await self._end_implicit()
        if not self._in_block:
            self._close_portals()
        self._wire.put(m.ready(self._status))
        await self._wire.flush()

    @property
    def _status(self) -> bytes:
        return b"I" if not self._in_block else b"E" if self._failed else b"T"

    async def _fail(self, error: BaseException) -> None:
        """Tell a client of an error; a transaction that it happens in has failed."""
        if not isinstance(error, (EverviewError, m.ProtocolViolation)):
            log.exception("a statement has failed inside", exc_info=error)
        if isinstance(error, m.ProtocolViolation):
            error = ClientError(str(error), error.state)
        self._wire.put(m.report(b"E", report_fields(error, self._text)))
        self._failed = self._in_block
        if self._session.in_transaction:
            await self._roll_back()
        self._implicit = False

    def _notice(self, text: str, state: str) -> None:
        self._wire.put(m.report(b"N", (("S", "WARNING"), ("V", "WARNING"), ("C", state), ("M", text))))

    # -- simple queries

    async def _simple(self, text: str) -> None:
        self._text = text
        self._portals.pop("", None)
        try:
            parts = pieces(text, self._settings.dialect)
            if not parts:
                self._wire.put(m.EMPTY_QUERY)
            words = {first_word(piece) for _, piece in parts}
            together = len(parts) > 1 and not self._in_block and words.issubset(_TOGETHER)
            for start, piece in parts:
                portal = Portal(self._prepared(text, start, piece))
                await self._begin_implicit(together)
                await self._show_columns(portal)
                await self._execute(portal, ENDLESS)
            await self._end_implicit()
        except (EverviewError, m.ProtocolViolation) as error:
            await self._fail(error)
        self._wire.put(m.ready(self._status))
        await self._wire.flush()

    async def _show_columns(self, portal: Portal) -> None:
        """Describe the rows of a simple query, which is not described by anything else; COPY describes itself."""
        self._require_not_failed(portal.prepared)
        if portal.prepared.statement is not None:
            await self._run(portal)
        columns = await self._columns(portal)
        if columns is not None:
            self._wire.put(m.row_description(described(*columns, portal.formats)))

    def _prepared(self, text: str, start: int, piece: str, oids: Sequence[int] = ()) -> PreparedText:
        command = command_of(piece)
        if command is not None:
            return PreparedText(text, command)
        return PreparedText(text, None, SqlStatement(text, start, piece, self._settings.dialect), tuple(oids))

    # -- extended queries

    async def _extended(self, letter: bytes, body: m.MessageBody) -> None:
        if letter == b"P":
            self._parse(body)
        elif letter == b"B":
            self._bind(body)
        elif letter == b"D":
            await self._describe(body)
        elif letter == b"E":
            await self._execute_message(body)
        else:
            self._close(body)

    def _parse(self, body: m.MessageBody) -> None:
        name, text = body.text(), body.text()
        oids = [body.oid() for _ in range(body.count())]
        body.end()
        self._text = text
        parts = pieces(text, self._settings.dialect)
        if len(parts) > 1:
            raise ClientError("cannot insert multiple commands into a prepared statement", "42601")
        if name and name in self._statements:
            raise ClientError(f'prepared statement "{name}" already exists', "42P05")
        self._require_room(self._statements)
        prepared = self._prepared(text, *parts[0], oids) if parts else PreparedText(text)
        if prepared.statement is not None:
            self._require_not_failed(prepared)
            known = prepared.statement.parameter_oids(self._catalog, oids)
            prepared = replace(prepared, oids=tuple(known))
        self._statements[name] = prepared
        self._wire.put(m.PARSE_COMPLETE)

    def _bind(self, body: m.MessageBody) -> None:
        portal, name = body.text(), body.text()
        formats = [body.int16() for _ in range(body.count())]
        raw = [body.value() for _ in range(body.count())]
        results = tuple(body.int16() for _ in range(body.count()))
        body.end()
        prepared = self._statement(name)
        self._text = prepared.text
        if len(raw) != len(prepared.oids):
            said = f"bind message supplies {len(raw)} parameters, but prepared statement requires {len(prepared.oids)}"
            raise ClientError(said, "08P01")
        if len(formats) not in (0, 1, len(raw)) or not {*formats, *results}.issubset({0, 1}):
            raise ClientError("invalid format codes in bind message", "08P01")
        if portal and portal in self._portals:
            raise ClientError(f'cursor "{portal}" already exists', "42P03")
        self._require_not_failed(prepared)
        self._require_room(self._portals)
        kinds = zip(raw, prepared.oids, formats_of(formats, len(raw)), strict=True)
        values = tuple(parameter(value, oid, bool(format_)) for value, oid, format_ in kinds)
        self._drop_portal(portal)
        self._portals[portal] = Portal(prepared, values, results)
        self._wire.put(m.BIND_COMPLETE)

    async def _describe(self, body: m.MessageBody) -> None:
        kind, name = body.take(1), body.text()
        body.end()
        if kind == b"S":
            prepared = self._statement(name)
            self._text = prepared.text
            self._wire.put(m.parameter_description(prepared.oids))
            columns, formats = await self._columns(Portal(prepared)), ()
        elif kind == b"P":
            portal = self._portal(name)
            self._text = portal.prepared.text
            self._require_not_failed(portal.prepared)
            statement = portal.prepared.statement
            if statement is not None and statement.reads:  # it is answered only once, and described by its answer
                await self._run(portal)
            columns, formats = await self._columns(portal), portal.formats
        else:
            raise ClientError(f"invalid DESCRIBE message subtype {kind!r}", "08P01")
        if columns is None:
            self._wire.put(m.NO_DATA)
            return
        if len(formats) not in (0, 1, len(columns[0])):
            raise ClientError("bind message has the wrong number of result formats", "08P01")
        self._wire.put(m.row_description(described(*columns, formats)))

    async def _execute_message(self, body: m.MessageBody) -> None:
        name, most = body.text(), body.int32()
        body.end()
        portal = self._portal(name)
        self._text = portal.prepared.text
        if portal.prepared.statement is None and portal.prepared.command is None:
            self._wire.put(m.EMPTY_QUERY)
            return
        statement = portal.prepared.statement
        if statement is not None and not statement.reads and first_word(statement.piece) in _TOGETHER:
            letter, _ = await self._ahead()
            await self._begin_implicit(letter != b"S")
        await self._execute(portal, most if most > 0 else ENDLESS)

    async def _ahead(self) -> tuple[bytes, bytes]:
        """The next message, without taking it: only Sync tells that a statement stands alone."""
        return await asyncio.shield(self._wire.ahead())

    def _close(self, body: m.MessageBody) -> None:
        kind, name = body.take(1), body.text()
        body.end()
        if kind == b"S":
            self._statements.pop(name, None)
        elif kind == b"P":
            self._drop_portal(name)
        else:
            raise ClientError(f"invalid CLOSE message subtype {kind!r}", "08P01")
        self._wire.put(m.CLOSE_COMPLETE)

    def _statement(self, name: str) -> PreparedText:
        if name not in self._statements:
            what = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise ClientError(f"{what} does not exist", "26000")
        return self._statements[name]

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise ClientError(f'portal "{name}" does not exist', "34000")
        return self._portals[name]

    def _drop_portal(self, name: str) -> None:
        portal = self._portals.pop(name, None)
        if portal is not None and isinstance(portal.source, SubscribedRows):
            portal.source.close()

    def _close_portals(self) -> None:
        for name in tuple(self._portals):
            self._drop_portal(name)

    def _require_room(self, kept: Sized) -> None:
        if len(kept) >= MOST_STATEMENTS:
            raise ClientError(f"a connection keeps at most {MOST_STATEMENTS:,} of them", "53000", hint="close some")

    # -- columns

    async def _columns(self, portal: Portal) -> tuple[Schema, tuple[str, ...]] | None:
        """The columns that a statement gives; None if it gives none."""
        prepared = portal.prepared
        if portal.outcome is not None:
            outcome = portal.outcome
            return None if outcome.schema is None else (outcome.schema, outcome.names)
        if isinstance(prepared.command, ShowParameter):
            return _shown_columns(prepared.command)
        if isinstance(prepared.command, SubscribeView):
            return with_epoch(self._view_schema(prepared.command.view))
        statement = prepared.statement
        if statement is None or not statement.gives_rows:
            return None
        outcome = await self._wait(
            self._session.read(lambda db: describe(db, statement, prepared.oids, self._system_of))
        )
        return None if outcome.schema is None else (outcome.schema, outcome.names)

    def _view_schema(self, view: str) -> Schema:
        catalog = self._catalog
        return catalog.views[catalog.find_materialized(view)].schema

    @property
    def _catalog(self) -> Catalog:
        return self._owner.snapshot.catalog

    def _system_of(self, catalog: Catalog) -> SystemCatalog:
        """The system catalog, kept for as long as the definitions and the settings stay."""
        settings = self._settings.all()
        known = self._system
        if known is None or known.catalog is not catalog or known.settings != settings:
            known = SystemCatalog(catalog, self._database, self._user, self._process, settings, self._settings.set)
            self._system = known
        return known

    # -- running

    async def _execute(self, portal: Portal, most: int) -> None:
        """Run a portal, or go on with it; ends with a tag, or suspends it."""
        self._require_not_failed(portal.prepared)
        command = portal.prepared.command
        if portal.tag is not None:
            self._wire.put(m.command_complete(portal.tag))
            return
        if isinstance(command, CopyOut):
            portal.tag = await self._copy_out(command, portal)
        elif isinstance(command, CopyIn):
            portal.tag = await self._copy_in(command)
        elif isinstance(command, SubscribeView):
            await self._open_stream(command, portal)
        elif command is not None:
            portal.tag = await self._command(command)
        else:
            await self._run(portal)
        if portal.source is not None and not await self._send_rows(portal, most):
            self._wire.put(m.PORTAL_SUSPENDED)
            return
        if portal.tag is None:
            assert portal.outcome is not None, "what has no tag has run"
            portal.tag = portal.outcome.tag
        self._wire.put(m.command_complete(portal.tag))

    async def _run(self, portal: Portal) -> None:
        """Run a statement of SQL, once."""
        statement = portal.prepared.statement
        if portal.outcome is not None or statement is None:
            return
        most = self._owner.limits.rows
        session, seconds = self._session, self._settings.seconds
        changing = session.in_transaction and (session.parked is not None or self._owner.holds(session))
        method = session.read if statement.reads and not changing else session.write
        outcome = await self._wait(
            method(lambda db: run(db, statement, portal.values, self._system_of, most), seconds=seconds)
        )
        portal.outcome = outcome
        if outcome.schema is not None and outcome.rows is not None:
            if len(portal.formats) not in (0, 1, len(outcome.schema)):
                raise ClientError("bind message has the wrong number of result formats", "08P01")
            portal.source = AnsweredRows(outcome.schema, outcome.rows, portal.formats)

    async def _wait(self, task: Task[T] | Future[T]) -> T:
        """The result of a task of the owner; see `cancel`."""
        self._task = task
        try:
            return await asyncio.wrap_future(task)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if task.cancelled() and (current is None or not current.cancelling()):
                raise StatementCancelled("the statement was cancelled", hint="nothing of it counts") from None
            raise
        except EverviewError:
            raise
        except Exception as error:
            log.exception("a statement has failed inside", exc_info=error)
            raise ClientError("internal error", "XX000", hint="the server's log says more") from None
        finally:
            self._task = None

    async def _send_rows(self, portal: Portal, most: int) -> bool:
        """Send rows of a portal, as many as are asked for; whether they have all been sent."""
        assert portal.source is not None
        left = most
        endless = isinstance(portal.source, SubscribedRows)
        while left > 0:
            taken = await portal.source.take(min(left, PIECE))
            if taken is None:
                portal.source = None
                break
            columns, count = taken
            left, portal.sent = left - count, portal.sent + count
            await self._wire.put_much(m.data_rows(columns, count))
            if endless and most < ENDLESS:  # who asks for some changes gets those that are there
                break
        if portal.source is not None and (endless or not portal.source.ended):
            return False
        portal.tag = f"SUBSCRIBE {portal.sent}" if endless else None if portal.tag is None else portal.tag
        return True

    def cancel(self) -> None:
        """Stop what runs now, as another connection asks."""
        task, stream = self._task, self._stream
        if task is not None:
            stop = getattr(task, "stop", task.cancel)
            stop()
        if stream is not None:
            stream.cancel()

    async def close(self) -> None:
        """End the session: what its transaction has changed counts for nothing."""
        self._close_portals()
        if self._stream is not None:
            self._stream.close()
        self._session.close()

    # -- subscriptions and COPY

    async def _open_stream(self, command: SubscribeView, portal: Portal) -> None:
        if portal.source is None:
            portal.source = await self._subscribed(command, portal.formats)

    async def _subscribed(self, command: SubscribeView, formats: Sequence[int]) -> SubscribedRows:
        subscriber = await self._wait(
            self._owner.subscribe(command.view, since=command.since, snapshot=command.since is None)
        )
        try:
            first = await self._wait(self._owner.read(lambda _: subscriber.begin()))
        except BaseException:
            subscriber.close()
            raise
        self._stream = SubscribedRows(subscriber, first, formats, self._wire)
        return self._stream

    async def _copy_out(self, command: CopyOut, portal: Portal) -> str:
        form = CopyForm.of(command.options)
        inner = command_of(command.query)
        if isinstance(inner, SubscribeView):
            source: RowSource = await self._subscribed(inner, ())
            _, names = with_epoch(self._view_schema(inner.view))
        else:
            statement = SqlStatement(command.query, 0, command.query, self._settings.dialect)
            if not statement.reads:
                raise ClientError("COPY takes the rows of a query", "0A000", hint="write COPY (SELECT …) TO STDOUT")
            self._text = command.query
            rows = Portal(PreparedText(command.query, None, statement))
            await self._run(rows)
            assert rows.outcome is not None
            if rows.source is None:
                raise ClientError("COPY takes the rows of a query", "0A000", hint="write COPY (SELECT …) TO STDOUT")
            source, names = rows.source, rows.outcome.names
        self._wire.put(m.copy_response(b"H", len(names)))
        if form.header:
            self._wire.put(m.message(b"d", header_line(names, form)))
        sent = 0
        while (taken := await source.take(PIECE)) is not None:
            await self._wire.put_much(b"".join(m.message(b"d", line) for line in copied_lines(taken[0], form)))
            sent += taken[1]
        self._wire.put(m.COPY_DONE)
        return f"COPY {sent}"

    async def _copy_in(self, command: CopyIn) -> str:
        form = CopyForm.of(command.options)
        schema = table_columns(self._catalog, command.table, command.columns)
        self._wire.put(m.copy_response(b"G", len(schema)))
        await self._wire.flush()
        data = await self._copied_data()
        work = fill_table(self._session, command.table, schema, data, form)
        count = await self._wait(self._session.write(work, seconds=self._settings.seconds))
        return f"COPY {count}"

    async def _copied_data(self) -> bytes:
        parts, size = list[bytes](), 0
        while True:
            letter, body = await self._wire.next()
            if letter == b"d":
                size += len(body)
                if size <= self._owner.limits.body_bytes:
                    parts.append(body)
            elif letter == b"c":
                break
            elif letter == b"f":
                said = m.MessageBody(body).text()
                raise ClientError(f"COPY from stdin failed: {said[:200]}", CANCELED)
            elif letter == b"X":
                raise ConnectionResetError("the client has gone")
            elif letter not in (b"H", b"S"):
                raise m.ProtocolViolation(f"unexpected message type {letter!r} during COPY from stdin")
        if size > self._owner.limits.body_bytes:
            said = f"COPY of {size:,} bytes, and {self._owner.limits.body_bytes:,} are allowed"
            raise ClientError(said, "54000", hint="copy fewer rows at a time")
        return b"".join(parts)

    # -- commands of the door

    async def _command(self, command: DoorCommand) -> str:
        match command:
            case TurnTransaction(kind):
                return await self._turn(kind)
            case TurnSavepoint(kind, name):
                return await self._turn_savepoint(kind, name)
            case SetParameter(name, value):
                self._settings.set(name, value)
                shown = REPORTED.get(name.lower())
                if shown is not None:
                    self._wire.put(m.parameter_status(shown, self._settings.get(name)))
                return "SET"
            case ShowParameter(name):
                self._show(name)
                return "SHOW"
            case CloseAll(tag, settings, statements):
                if settings:
                    self._settings.reset()
                if statements:
                    self._statements.clear()
                return tag
            case DropStatement(name):
                self._statement(name)
                del self._statements[name]
                return "DEALLOCATE"
            case DoNothing(tag):
                return tag
            case _:
                raise AssertionError(f"{command} is no command")

    def _show(self, name: str) -> None:
        if name == "all":
            rows = self._settings.all()
            columns = [
                [part.encode() for part in column] for column in ((*rows,), (*rows.values(),), ("",) * len(rows))
            ]
            self._wire.put(m.data_rows(columns, len(rows)))
            return
        self._wire.put(m.data_rows([[self._settings.get(name).encode()]], 1))

    # -- transactions

    def _require_not_failed(self, prepared: PreparedText) -> None:
        if self._in_block and not self._session.in_transaction:
            self._failed = True
        if self._failed and not prepared.ends_failure and (prepared.statement or prepared.command):
            raise ClientError(
                "current transaction is aborted, commands ignored until end of transaction block",
                IN_FAILED_TRANSACTION,
                hint="ROLLBACK it",
            )

    async def _turn(self, kind: str) -> str:
        if kind == "BEGIN":
            if self._in_block:
                self._notice("there is already a transaction in progress", "25001")
            self._in_block = self._session.in_transaction = True
            return "BEGIN"
        if not self._in_block:
            self._notice("there is no transaction in progress", "25P01")
            return kind
        failed, self._in_block, self._failed = self._failed, False, False
        self._savepoints = []
        self._close_portals()
        if kind == "ROLLBACK" or failed:
            await self._roll_back()
            return "ROLLBACK"
        await self._commit()
        return "COMMIT"

    async def _turn_savepoint(self, kind: str, name: str) -> str:
        """Note what a transaction has changed so far, or go back to it."""
        if not self._in_block:
            raise ClientError(
                f"{kind} SAVEPOINT can only be used in transaction blocks", "25P01", hint="write BEGIN first"
            )
        if kind == "SAVEPOINT":
            self._require_room(self._savepoints)
            self._savepoints.append((name, await self._changes_so_far()))
            return "SAVEPOINT"
        place = next((i for i in reversed(range(len(self._savepoints))) if self._savepoints[i][0] == name), None)
        if place is None:
            raise ClientError(f'savepoint "{name}" does not exist', "3B001")
        if kind == "RELEASE":
            del self._savepoints[place:]
            return "RELEASE"
        del self._savepoints[place + 1 :]
        await self._roll_back()
        self._failed, self._session.in_transaction = False, True
        self._session.parked = self._savepoints[place][1]
        return "ROLLBACK"

    async def _changes_so_far(self) -> ParkedChanges | None:
        if self._session.parked is not None or not self._changing:
            return self._session.parked
        return await self._wait(self._session.write(_saved))

    async def _begin_implicit(self, wanted: bool) -> None:
        if wanted and not self._in_block and not self._implicit:
            self._implicit = self._session.in_transaction = True

    async def _end_implicit(self) -> None:
        if self._implicit:
            self._implicit = False
            try:
                await self._commit()
            except EverviewError as error:
                await self._fail(error)

    async def _commit(self) -> None:
        if self._changing:
            await self._wait(self._session.run("COMMIT", dialect="spark"))
        self._session.in_transaction = False

    async def _roll_back(self) -> None:
        if self._session.in_transaction and self._changing:
            await self._wait(self._session.run("ROLLBACK", dialect="spark"))
        self._session.in_transaction = False

    @property
    def _changing(self) -> bool:
        return self._session.parked is not None or self._owner.holds(self._session)


def _saved(database: Database) -> ParkedChanges:
    """The changes of the open transaction, which goes on."""
    core = core_of(database)
    changes = park(core)
    resume(core, changes)
    return changes


def _shown_columns(command: ShowParameter) -> tuple[Schema, tuple[str, ...]]:
    names = ("name", "setting", "description") if command.name == "all" else (command.name,)
    return Schema(Field(name, STRING) for name in names), names
