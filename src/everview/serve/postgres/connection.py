"""One client's connection: its simple and extended queries, and the answers to them.

The protocol is a conversation: messages are read one by one, and each is answered before the next. In an extended query
an error makes everything up to Sync pass unread; see `PgConnection.serve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from everview.errors import EverviewError
from everview.frontends.sql.parse import pieces
from everview.serve.postgres import messages as m
from everview.serve.postgres.commands import (
    CloseAll,
    CloseCursor,
    CopyIn,
    CopyOut,
    DeclareCursor,
    DoNothing,
    DoorCommand,
    DropStatement,
    FetchCursor,
    SetParameter,
    SetTransaction,
    ShowParameter,
    SubscribeView,
    TurnSavepoint,
    TurnTransaction,
    command_of,
    first_word,
)
from everview.serve.postgres.context import PgContext
from everview.serve.postgres.copies import copy_in, copy_out, subscribed
from everview.serve.postgres.decode import parameter
from everview.serve.postgres.execution import SqlStatement, describe, sql_statement
from everview.serve.postgres.portals import KeptByName, Portal, PreparedText
from everview.serve.postgres.results import (
    PIECE,
    AnsweredRows,
    SubscribedRows,
    described,
    formats_of,
    named_oids,
    with_epoch,
)
from everview.serve.postgres.settings import shown_name
from everview.serve.postgres.states import ClientError, report_fields
from everview.serve.postgres.transactions import PgTransaction
from everview.types import STRING, Field, Schema

_TOGETHER: Final = ("INSERT", "UPDATE", "DELETE", "MERGE", "SELECT", "WITH", "VALUES", "TRUNCATE")
ENDLESS: Final = 2**31


class PgConnection:
    """The conversation with one client, after its authentication."""

    def __init__(self, context: PgContext) -> None:
        self._context = context
        self._wire, self._settings = context.wire, context.settings
        self._kept = KeptByName()
        self._transaction = PgTransaction(context, self._kept)
        self._idle = True  # waiting for the client's next statement
        self._leaving = False

    # -- the conversation

    async def serve(self) -> None:
        """Answer messages until the client leaves."""
        await self._ready()
        while True:
            if self._leaving and self._idle:
                raise ClientError("terminating connection: the server is stopping", "57P01")
            letter, body = await self._wire.next()
            if letter == b"X":
                return
            self._idle = False
            await self._answer(letter, m.MessageBody(body))

    async def _ready(self) -> None:
        for shown, value in self._settings.untold():
            self._wire.put(m.parameter_status(shown, value))
        self._wire.put(m.ready(self._transaction.status))
        await self._wire.flush()
        self._idle = True

    def leave(self) -> bool:
        """End the conversation after the statement at hand; True if there is none."""
        self._leaving = True
        return self._idle

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
        try:
            await self._transaction.end_implicit()
        except EverviewError as error:
            await self._fail(error)
        if not self._transaction.in_block:
            self._kept.end_transaction(committed=True)
        await self._ready()

    async def _fail(self, error: EverviewError | m.ProtocolViolation) -> None:
        """Tell a client of an error; a transaction that it happens in has failed."""
        if isinstance(error, m.ProtocolViolation):
            error = ClientError(str(error), error.state)
        self._wire.put(m.report(b"E", report_fields(error, self._context.text)))
        await self._transaction.fail()

    # -- simple queries

    async def _simple(self, text: str) -> None:
        self._context.text = text
        self._kept.close("")
        try:
            parts = pieces(text, self._settings.dialect)
            if not parts:
                self._wire.put(m.EMPTY_QUERY)
            together = len(parts) > 1 and {first_word(piece) for _, piece in parts}.issubset(_TOGETHER)
            for start, piece in parts:
                await self._answer_piece(Portal(self._prepared(text, start, piece)), together)
            await self._transaction.end_implicit()
        except (EverviewError, m.ProtocolViolation) as error:
            await self._fail(error)
        await self._ready()

    async def _answer_piece(self, portal: Portal, together: bool) -> None:
        """Run a statement of a simple query; its rows are described by nothing else, and COPY describes itself."""
        if together:
            self._transaction.begin_implicit()
        self._transaction.require_not_failed(portal.prepared)
        if portal.prepared.statement is not None:
            await self._run(portal)
        columns = await self._columns(portal)
        if columns is not None:
            self._wire.put(m.row_description(described(*columns, portal.formats)))
        try:
            await self._execute(portal, ENDLESS)
        finally:
            portal.close()

    def _prepared(self, text: str, start: int, piece: str) -> PreparedText:
        command = command_of(piece)
        if isinstance(command, DeclareCursor):
            query = sql_statement(command.query, 0, command.query, self._settings.dialect)
            return PreparedText(text, command, query=query)
        if command is not None:
            return PreparedText(text, command)
        return PreparedText(text, None, sql_statement(text, start, piece, self._settings.dialect))

    # -- extended queries

    async def _extended(self, letter: bytes, body: m.MessageBody) -> None:
        if letter == b"P":
            await self._parse(body)
        elif letter == b"B":
            self._bind(body)
        elif letter == b"D":
            await self._describe(body)
        elif letter == b"E":
            await self._execute_message(body)
        else:
            self._close(body)

    async def _parse(self, body: m.MessageBody) -> None:
        name, text = body.text(), body.text()
        oids = [body.oid() for _ in range(body.count())]
        body.end()
        self._context.text = text
        parts = pieces(text, self._settings.dialect)
        if len(parts) > 1:
            raise ClientError("cannot insert multiple commands into a prepared statement", "42601")
        self._kept.require_new(name)
        prepared = self._prepared(text, *parts[0]) if parts else PreparedText(text)
        statement = prepared.statement or prepared.query
        if statement is not None:
            self._transaction.require_not_failed(prepared)
            prepared = replace(prepared, oids=await self._parameter_oids(statement, oids))
        self._kept.prepare(name, prepared)
        self._wire.put(m.PARSE_COMPLETE)

    async def _parameter_oids(self, statement: SqlStatement, oids: Sequence[int]) -> tuple[int, ...]:
        """The types of the parameters; a text is parsed in a reader's thread, since it would hold up other clients."""
        context = self._context
        if not statement.known:
            await context.wait(context.owner.read(lambda _: statement.parsed, seconds=self._settings.seconds))
        return tuple(statement.parameter_oids(context.catalog, oids))

    def _bind(self, body: m.MessageBody) -> None:
        name, statement = body.text(), body.text()
        formats = [body.int16() for _ in range(body.count())]
        raw = [body.value() for _ in range(body.count())]
        results = tuple(body.int16() for _ in range(body.count()))
        body.end()
        prepared = self._kept.statement(statement)
        self._context.text = prepared.text
        if len(raw) != len(prepared.oids):
            said = f"bind message supplies {len(raw)} parameters, but prepared statement requires {len(prepared.oids)}"
            raise ClientError(said, "08P01")
        if len(formats) not in (0, 1, len(raw)) or not {*formats, *results}.issubset({0, 1}):
            raise ClientError("invalid format codes in bind message", "08P01")
        self._transaction.require_not_failed(prepared)
        kinds = zip(raw, prepared.oids, formats_of(formats, len(raw)), strict=True)
        values = tuple(parameter(value, oid, bool(format_)) for value, oid, format_ in kinds)
        self._kept.open(name, Portal(prepared, values, results))
        self._wire.put(m.BIND_COMPLETE)

    async def _describe(self, body: m.MessageBody) -> None:
        kind, name = body.take(1), body.text()
        body.end()
        if kind == b"S":
            prepared = self._kept.statement(name)
            self._context.text = prepared.text
            self._wire.put(m.parameter_description(prepared.oids))
            columns, formats = await self._columns(Portal(prepared)), ()
            if columns is not None and prepared.statement is not None:
                prepared.tell(named_oids(*columns))
        elif kind == b"P":
            portal = self._kept.portal(name)
            self._context.text = portal.prepared.text
            self._transaction.require_not_failed(portal.prepared)
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
        portal = self._kept.portal(name)
        self._context.text = portal.prepared.text
        if portal.prepared.empty:
            self._wire.put(m.EMPTY_QUERY)
            return
        statement = portal.prepared.statement
        changes = statement is not None and not statement.reads and statement.word in _TOGETHER
        if changes and await self._wire.peek() != b"S":  # only Sync tells that a statement stands alone
            self._transaction.begin_implicit()
        await self._execute(portal, most if most > 0 else ENDLESS)

    def _close(self, body: m.MessageBody) -> None:
        kind, name = body.take(1), body.text()
        body.end()
        if kind == b"S":
            self._kept.statements.pop(name, None)
        elif kind == b"P":
            self._kept.close(name)
        else:
            raise ClientError(f"invalid CLOSE message subtype {kind!r}", "08P01")
        self._wire.put(m.CLOSE_COMPLETE)

    # -- columns

    async def _columns(self, portal: Portal) -> tuple[Schema, tuple[str, ...]] | None:
        """The columns that a statement gives; None if it gives none."""
        prepared = portal.prepared
        if portal.outcome is not None:
            outcome = portal.outcome
            return None if outcome.schema is None else (outcome.schema, outcome.names)
        if isinstance(prepared.command, ShowParameter):
            return _shown_columns(prepared.command)
        if isinstance(prepared.command, FetchCursor) and not prepared.command.moving:
            return await self._columns(self._kept.portal(prepared.command.name))
        if isinstance(prepared.command, SubscribeView):
            return with_epoch(self._context.view_schema(prepared.command.view))
        statement = prepared.statement
        if statement is None or not statement.gives_rows:
            return None
        context = self._context
        outcome = await context.wait(
            context.session.read(lambda db: describe(db, statement, prepared.oids, context.system_of))
        )
        return None if outcome.schema is None else (outcome.schema, outcome.names)

    # -- running

    async def _execute(self, portal: Portal, most: int) -> None:
        """Run a portal, or go on with it; ends with a tag, or suspends it."""
        self._transaction.require_not_failed(portal.prepared)
        command = portal.prepared.command
        if portal.tag is not None:
            self._wire.put(m.command_complete(portal.tag))
            return
        if isinstance(command, CopyOut):
            portal.tag = await copy_out(self._context, command)
        elif isinstance(command, CopyIn):
            self._transaction.require_writable("COPY FROM")
            portal.tag = await copy_in(self._context, command)
        elif isinstance(command, SubscribeView):
            portal.source = portal.source or await subscribed(self._context, command, portal.formats)
        elif isinstance(command, DeclareCursor):
            portal.tag = await self._declare(command, portal)
        elif isinstance(command, FetchCursor):
            self._fetch(portal, command)
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

    async def _declare(self, command: DeclareCursor, declaring: Portal) -> str:
        """Run a query whose rows are fetched later."""
        if not self._transaction.in_block and not command.hold:
            hint = "write BEGIN first, or DECLARE … CURSOR WITH HOLD"
            raise ClientError("DECLARE CURSOR can only be used in transaction blocks", "25P01", hint=hint)
        query = declaring.prepared.query
        if query is None or not query.reads:
            raise ClientError("a cursor has the rows of a query", "42P11", hint="write DECLARE name CURSOR FOR SELECT")
        self._context.text = query.text
        cursor = Portal(
            PreparedText(query.text, None, query, declaring.prepared.oids), declaring.values, hold=command.hold
        )
        self._kept.open(command.name, cursor)
        try:
            await self._run(cursor)
        except BaseException:
            self._kept.close(command.name)
            raise
        return "DECLARE CURSOR"

    def _fetch(self, portal: Portal, command: FetchCursor) -> None:
        """Take the next rows of a cursor, once; MOVE passes over them."""
        if portal.outcome is not None:
            return
        outcome = self._kept.portal(command.name).fetch(command.count, "MOVE" if command.moving else "FETCH")
        if command.moving:
            portal.tag = outcome.tag
            return
        portal.outcome = outcome
        assert outcome.schema is not None and outcome.rows is not None, "it has rows"
        portal.source = AnsweredRows(outcome.schema, outcome.rows, portal.formats)

    async def _run(self, portal: Portal) -> None:
        """Run a statement of SQL, once."""
        statement = portal.prepared.statement
        if portal.outcome is not None or statement is None:
            return
        if not statement.reads:
            self._transaction.require_writable(statement.word)
        outcome = await self._context.answer(statement, portal.values)
        portal.outcome = outcome
        if not statement.reads and statement.word not in _TOGETHER:
            self._transaction.defined(outcome.tag)
        if outcome.schema is not None and outcome.rows is not None:
            portal.prepared.require_as_told(named_oids(outcome.schema, outcome.names))
            if len(portal.formats) not in (0, 1, len(outcome.schema)):
                raise ClientError("bind message has the wrong number of result formats", "08P01")
            portal.source = AnsweredRows(outcome.schema, outcome.rows, portal.formats)

    async def _send_rows(self, portal: Portal, most: int) -> bool:
        """Send rows of a portal, as many as are asked for; whether they have all been sent."""
        assert portal.source is not None
        left = most
        endless = isinstance(portal.source, SubscribedRows)
        source = portal.source
        try:
            while left > 0:
                taken = await source.messages(min(left, PIECE))
                if taken is None:
                    portal.source = None
                    break
                messages, count = taken
                left, portal.sent = left - count, portal.sent + count
                await self._wire.put_much(messages)
                if endless and most < ENDLESS:  # who asks for some changes gets those that are there
                    break
        finally:
            await source.release()
        if portal.source is not None and (endless or not portal.source.ended):
            return False
        portal.tag = f"SUBSCRIBE {portal.sent}" if endless else portal.tag
        return True

    # -- commands of the door

    async def _command(self, command: DoorCommand) -> str:
        match command:
            case TurnTransaction(kind, read_only):
                return await self._transaction.turn(kind, read_only)
            case SetTransaction(read_only, session):
                self._transaction.set_modes(read_only, session=session)
                return "SET"
            case TurnSavepoint(kind, name):
                return await self._transaction.turn_savepoint(kind, name)
            case SetParameter(name, value, local):
                self._transaction.set(name, value, local=local)
                return "SET"
            case ShowParameter(name):
                self._show(name)
                return "SHOW"
            case CloseAll(tag, settings, statements):
                if settings:
                    self._settings.reset()
                if settings and statements:
                    self._kept.close_portals()
                if statements:
                    self._kept.statements.clear()
                    self._context.session.forget()
                return tag
            case DropStatement(name):
                if not self._context.session.forget(name):
                    self._kept.statement(name)
                    del self._kept.statements[name]
                return "DEALLOCATE"
            case CloseCursor(name):
                if name is None:
                    self._kept.close_portals()
                    return "CLOSE CURSOR ALL"
                self._kept.portal(name)
                self._kept.close(name)
                return "CLOSE CURSOR"
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

    # -- the end

    def cancel(self) -> None:
        """Stop what runs now, as another connection asks."""
        self._context.cancel()

    def close(self) -> None:
        """End the session: what its transaction has changed counts for nothing."""
        self._kept.close_portals()
        if self._context.stream is not None:
            self._context.stream.close()
        self._context.session.close()


def _shown_columns(command: ShowParameter) -> tuple[Schema, tuple[str, ...]]:
    names = ("name", "setting", "description") if command.name == "all" else (shown_name(command.name),)
    return Schema(Field(name, STRING) for name in names), names
