"""A connection's stream of messages, with one message of looking ahead."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from everview.serve.postgres.messages import read_message

CHUNK: Final = 64 << 10  # bytes that are gathered before they are sent


class Wire:
    """Messages in both directions. What is sent is gathered until `flush`, or until there is much of it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int) -> None:
        self.reader, self.writer = reader, writer
        self._limit = limit
        self._ahead: asyncio.Task[tuple[bytes, bytes]] | None = None
        self._out: list[bytes] = []
        self._size = 0

    def ahead(self) -> asyncio.Task[tuple[bytes, bytes]]:
        """The next message, which stays the next one; done when it is there, or when the client has gone."""
        if self._ahead is None:
            self._ahead = asyncio.create_task(read_message(self.reader, self._limit))
        return self._ahead

    async def next(self) -> tuple[bytes, bytes]:
        """The letter and the body of the next message."""
        if self._ahead is None:
            return await read_message(self.reader, self._limit)
        taken = await self._ahead
        self._ahead = None
        return taken

    def put(self, data: bytes) -> None:
        """Send some messages with the next flush."""
        self._out.append(data)
        self._size += len(data)

    async def put_much(self, data: bytes) -> None:
        """Send some messages of many: waits for a client that is slow to take them."""
        self.put(data)
        if self._size >= CHUNK:
            await self.flush()

    async def flush(self) -> None:
        """Send all that has been gathered."""
        if self._out:
            self.writer.write(b"".join(self._out))
            self._out, self._size = [], 0
        await self.writer.drain()

    async def close(self) -> None:
        """End the stream."""
        if self._ahead is not None:
            self._ahead.cancel()
            with contextlib.suppress(BaseException):
                await self._ahead
        self.writer.close()
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            async with asyncio.timeout(5):
                await self.writer.wait_closed()
