"""Results on their way to a client: rows of an answer, piece by piece, and changes of a view without end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from everview.codes.rows import python_values
from everview.errors import StatementCancelled
from everview.serve.changes import ChangeSubscriber, ViewChange
from everview.serve.postgres.encode import encode_column
from everview.serve.postgres.messages import ColumnDescription
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


def with_epoch(schema: Schema) -> tuple[Schema, tuple[str, ...]]:
    """The columns of a subscription: the epoch and the weight before those of the view."""
    taken = {name.lower() for name in schema.names}
    own = [name if name not in taken else f"everview_{name}" for name in ("epoch", "weight")]
    fields = (*(Field(name, BIGINT, nullable=False) for name in own), *schema.fields)
    return Schema(fields), tuple(f.name for f in fields)


class SubscribedRows:
    """The rows of a view and then its changes; ends when the view is dropped, and raises when it is cancelled."""

    def __init__(
        self, subscriber: ChangeSubscriber, first: ViewChange | None, formats: Sequence[int], wire: Wire
    ) -> None:
        self._subscriber, self._wire = subscriber, wire
        self._waiting: list[tuple[Any, ...]] = [] if first is None else _rows_of(first)
        self._formats = formats
        self._schema: Schema | None = None if first is None else with_epoch(first.schema)[0]
        self._cancelled = asyncio.Event()

    @property
    def ended(self) -> bool:
        return self._subscriber.over and not self._waiting

    def cancel(self) -> None:
        """Let `take` raise, now if it waits."""
        self._cancelled.set()

    def close(self) -> None:
        """Follow the view no longer."""
        self._subscriber.close()

    async def take(self, most: int) -> tuple[Columns, int] | None:
        while not self._waiting:
            if self._cancelled.is_set():
                raise StatementCancelled("the subscription was cancelled")
            for change in self._subscriber.take():
                self._schema = with_epoch(change.schema)[0]
                self._waiting += _rows_of(change)
            if self._waiting:
                break
            if self._subscriber.over:
                return None
            await self._wait()
        count = min(most, PIECE)
        rows, self._waiting = self._waiting[:count], self._waiting[count:]
        assert self._schema is not None, "rows come with their schema"
        formats = formats_of(self._formats, len(self._schema))
        values = zip(*rows, strict=True)
        columns = [
            encode_column(f.type, list(column), bool(format_))
            for f, column, format_ in zip(self._schema.fields, values, formats, strict=True)
        ]
        return columns, len(rows)

    async def _wait(self) -> None:
        """Wait for a change, for a request to cancel, or until the client has gone, which raises."""
        await self._wire.flush()
        waits: tuple[Coroutine[Any, Any, Any], ...] = self._subscriber.wait(), self._cancelled.wait(), self._wire.gone()
        tasks = [asyncio.create_task(wait) for wait in waits]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()


def _rows_of(change: ViewChange) -> list[tuple[Any, ...]]:
    return [(change.epoch, weight, *row) for row, weight in change.pairs()]
