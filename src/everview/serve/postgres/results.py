"""Results on their way to a client: rows of an answer, piece by piece, and changes of a view without end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from everview.codes.rows import python_values
from everview.errors import StatementCancelled
from everview.serve.changes import ChangeSubscriber, ViewChange
from everview.serve.postgres.encode import encode_column
from everview.serve.postgres.messages import ColumnDescription, data_rows
from everview.serve.postgres.oids import modifier_of, oid_of, size_of
from everview.types import BIGINT, Field, Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.serve.postgres.wire import Wire

PIECE: Final = 500  # rows that are encoded at a time
Columns = list[list[bytes | None]]


def described(schema: Schema, names: Sequence[str], formats: Sequence[int] = ()) -> list[ColumnDescription]:
    """The columns of a result as clients are told of them."""
    wanted = formats_of(formats, len(schema))
    made: list[ColumnDescription] = []
    for f, name, format_ in zip(schema.fields, names, wanted, strict=True):
        oid = oid_of(f.type)
        made.append(ColumnDescription(name, oid, size_of(oid), modifier_of(f.type), format_))
    return made


def named_oids(schema: Schema, names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """The names and OIDs of the columns of a result."""
    return tuple((name, oid_of(f.type)) for f, name in zip(schema.fields, names, strict=True))


def formats_of(given: Sequence[int], count: int) -> list[int]:
    """The format of each of some values: none given means text, and one is for all of them."""
    if not given:
        return [0] * count
    return [given[0]] * count if len(given) == 1 else list(given)


class RowSource(Protocol):
    """Rows that are taken in pieces."""

    async def take(self, most: int) -> tuple[Columns, int] | None:
        """The next rows as encoded columns, and how many they are; None at the end."""
        ...

    async def messages(self, most: int) -> tuple[bytes, int] | None:
        """The next rows as messages, and how many they are; None at the end."""
        ...

    async def release(self) -> None:
        """Take nothing for now: what the client says is for others again."""
        ...

    @property
    def ended(self) -> bool:
        """Whether no row will come any more, as far as is known."""
        ...


class AnsweredRows:
    """The rows of an answer, encoded as they are taken."""

    def __init__(self, schema: Schema, rows: pa.Table, formats: Sequence[int]) -> None:
        self._schema, self._rows, self._at = schema, rows, 0
        self._formats = formats_of(formats, len(schema))

    @property
    def ended(self) -> bool:
        return self._at >= self._rows.num_rows

    async def take(self, most: int) -> tuple[Columns, int] | None:
        if self.ended:
            return None
        part = self._rows.slice(self._at, min(most, PIECE))
        self._at += part.num_rows
        columns = [
            encode_column(f.type, python_values(f.type, part.column(i)), bool(self._formats[i]))
            for i, f in enumerate(self._schema.fields)
        ]
        return columns, part.num_rows

    async def messages(self, most: int) -> tuple[bytes, int] | None:
        taken = await self.take(most)
        return None if taken is None else (data_rows(*taken), taken[1])

    async def release(self) -> None:
        """Do nothing: it reads nothing of what the client says."""


def with_epoch(schema: Schema) -> tuple[Schema, tuple[str, ...]]:
    """The columns of a subscription: the epoch and the weight before those of the view."""
    taken = {name.lower() for name in schema.names}
    own = [name if name not in taken else f"everview_{name}" for name in ("epoch", "weight")]
    fields = (*(Field(name, BIGINT, nullable=False) for name in own), *schema.fields)
    return Schema(fields), tuple(f.name for f in fields)


class SubscribedRows:
    """The rows of a view and then its changes; ends when the view is dropped, and raises when it is cancelled.

    While it waits for a change it watches the wire for the client's leaving, so nobody else may read there until
    `release`.
    """

    def __init__(
        self, subscriber: ChangeSubscriber, first: ViewChange | None, formats: Sequence[int], wire: Wire
    ) -> None:
        self._subscriber, self._wire = subscriber, wire
        self._changes: deque[ViewChange] = deque(() if first is None else (first,))
        self._at = 0  # rows of the first change that have been taken
        self._formats = tuple(formats)
        self._cancelled = False
        self._gone: asyncio.Task[None] | None = None  # ends when the client has gone

    @property
    def ended(self) -> bool:
        return self._subscriber.over and not self._changes

    def cancel(self) -> None:
        """Let `take` raise, now if it waits."""
        self._cancelled = True
        self._subscriber.nudge()

    def close(self) -> None:
        """Follow the view no longer."""
        self._subscriber.close()

    async def release(self) -> None:
        """Watch the wire no longer: its next message is another's to read."""
        watch, self._gone = self._gone, None
        if watch is not None:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    async def take(self, most: int) -> tuple[Columns, int] | None:
        piece = await self._piece(most)
        return None if piece is None else (piece.columns(), piece.rows)

    async def messages(self, most: int) -> tuple[bytes, int] | None:
        piece = await self._piece(most)
        return None if piece is None else (piece.messages(), piece.rows)

    async def _piece(self, most: int) -> PieceOfChange | None:
        """The next rows of one change; None if no more will come."""
        while not self._changes or not len(self._changes[0]):
            if self._changes:
                self._changes.popleft()
                continue
            if self._cancelled:
                raise StatementCancelled("the subscription was cancelled")
            self._changes += self._subscriber.take()
            if self._changes:
                continue
            if self._subscriber.over:
                return None
            await self._wait()
        change, start = self._changes[0], self._at
        count = min(most, PIECE, len(change) - start)
        self._at += count
        if self._at == len(change):
            self._changes.popleft()
            self._at = 0
        return PieceOfChange(change, start, count, self._formats)

    async def _wait(self) -> None:
        """Wait for a change, for a request to cancel, or until the client has gone, which raises."""
        await self._wire.flush()
        if self._gone is None:
            self._gone = asyncio.create_task(self._wire.gone())
            self._gone.add_done_callback(lambda _: self._subscriber.nudge())
        if not self._gone.done() and not self._cancelled:  # which may have come while the wire was flushed
            await self._subscriber.wait()
        if self._gone.done():
            self._gone.result()


class PieceOfChange(NamedTuple):
    """Some rows of a change, which are encoded once for all that get the same piece."""

    change: ViewChange
    start: int
    rows: int
    formats: tuple[int, ...]

    def columns(self) -> Columns:
        """The rows as encoded columns: the epoch and the weight before those of the view."""
        return self.change.once(("columns", *self[1:]), lambda _: self._encoded())

    def messages(self) -> bytes:
        """The rows as messages."""
        return self.change.once(("messages", *self[1:]), lambda _: data_rows(self._encoded(), self.rows))

    def _encoded(self) -> Columns:
        change = self.change
        schema, _ = with_epoch(change.schema)
        part = change.pairs()[self.start : self.start + self.rows]
        rows = [(change.epoch, weight, *row) for row, weight in part]
        kinds = zip(schema.fields, zip(*rows, strict=True), formats_of(self.formats, len(schema)), strict=True)
        return [encode_column(f.type, list(column), bool(format_)) for f, column, format_ in kinds]
