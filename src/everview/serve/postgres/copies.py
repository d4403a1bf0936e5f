"""COPY with the client: the rows of a query or the changes of a view out, rows of a table in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.serve.postgres import messages as m
from everview.serve.postgres.commands import CopyIn, CopyOut, SubscribeView, command_of
from everview.serve.postgres.copying import CopyForm, copied_lines, header_line
from everview.serve.postgres.copying_binary import END, HEAD, copied_binary
from everview.serve.postgres.execution import sql_statement
from everview.serve.postgres.filling import fill_table, table_columns
from everview.serve.postgres.results import PIECE, AnsweredRows, RowSource, SubscribedRows, with_epoch
from everview.serve.postgres.states import CANCELED, ClientError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everview.serve.postgres.context import PgContext


async def subscribed(context: PgContext, command: SubscribeView, formats: Sequence[int]) -> SubscribedRows:
    """The rows of a view and its changes from now on, or from an epoch on."""
    subscriber = await context.wait(
        context.owner.subscribe(command.view, since=command.since, snapshot=command.since is None)
    )
    try:
        first = await context.wait(context.owner.read(lambda _: subscriber.begin()))
    except BaseException:
        subscriber.close()
        raise
    context.stream = SubscribedRows(subscriber, first, formats, context.wire)
    return context.stream


async def copy_out(context: PgContext, command: CopyOut) -> str:
    """Send rows as lines of text, or in binary; the tag."""
    form = CopyForm.of(command.options)
    source, names = await _rows_to_copy(context, command, (int(form.is_binary),))
    context.wire.put(m.copy_response(b"H", len(names), binary=form.is_binary))
    if form.header:
        context.wire.put(m.message(b"d", header_line(names, form)))
    sent = 0
    try:
        while (taken := await source.take(PIECE)) is not None:
            rows = copied_binary(taken[0], first=not sent) if form.is_binary else copied_lines(taken[0], form)
            await context.wire.put_much(b"".join(m.message(b"d", row) for row in rows))
            sent += taken[1]
    finally:
        await source.release()
        if isinstance(source, SubscribedRows):
            source.close()
    if form.is_binary:
        context.wire.put(m.message(b"d", END if sent else HEAD + END))
    context.wire.put(m.COPY_DONE)
    return f"COPY {sent}"


async def _rows_to_copy(
    context: PgContext, command: CopyOut, formats: Sequence[int]
) -> tuple[RowSource, Sequence[str]]:
    inner = command_of(command.query)
    if isinstance(inner, SubscribeView):
        return await subscribed(context, inner, formats), with_epoch(context.view_schema(inner.view))[1]
    statement = sql_statement(command.query, 0, command.query, context.settings.dialect)
    context.text = command.query
    outcome = await context.answer(statement, ()) if statement.reads else None
    if outcome is None or outcome.schema is None or outcome.rows is None:
        raise ClientError("COPY takes the rows of a query", "0A000", hint="write COPY (SELECT …) TO STDOUT")
    return AnsweredRows(outcome.schema, outcome.rows, formats), outcome.names


async def copy_in(context: PgContext, command: CopyIn) -> str:
    """Take rows into a table, all or none; the tag."""
    form = CopyForm.of(command.options)
    schema = table_columns(context.catalog, command.table, command.columns)
    work = fill_table(context.session, command.table, schema, form)  # refuses before anything is sent
    context.wire.put(m.copy_response(b"G", len(schema), binary=form.is_binary))
    await context.wire.flush()
    data = await _copied_data(context)
    count = await context.wait(context.session.write(lambda db: work(db, data), seconds=context.settings.seconds))
    return f"COPY {count}"


async def _copied_data(context: PgContext) -> bytes:
    parts, size, most = list[bytes](), 0, context.owner.limits.body_bytes
    while True:
        letter, body = await context.wire.next()
        if letter == b"d":
            size += len(body)
            if size <= most:
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
    if size > most:
        said = f"COPY of {size:,} bytes, and {most:,} are allowed"
        raise ClientError(said, "54000", hint="copy fewer rows at a time")
    return b"".join(parts)
