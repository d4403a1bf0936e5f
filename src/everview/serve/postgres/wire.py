"""A connection's stream of messages, with one message of looking ahead."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from typing import Final

from everview.serve.postgres.messages import STARTUP_LIMIT, ProtocolViolation

CHUNK: Final = 64 << 10  # bytes that are gathered before they are sent, and that are read at a time
HEAD: Final = struct.Struct("!cI")
LENGTH: Final = struct.Struct("!I")


class StalledClient(ConnectionError):
    """A client that has read nothing for too long."""


class Wire:
    """Messages in both directions. What is sent is gathered until `flush`, or until there is much of it.

    Messages longer than `limit` are refused before they are read. A client that takes nothing for ``patience`` seconds
    is given up.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int, patience: float = 600.0
    ) -> None:
        self._reader, self._writer = reader, writer
        self.limit, self._patience = limit, patience
        self._in = bytearray()
        self._at = 0  # where the next message begins
        self._next: tuple[bytes, bytes] | None = None  # that has been looked at
        self._out: list[bytes] = []
        self._size = 0

    # -- what comes

    async def startup(self) -> bytes:
        """The body of one of the first messages of a connection, which have no letter."""
        await self._gather(4)
        (length,) = LENGTH.unpack_from(self._in, self._at)
        if not 8 <= length <= STARTUP_LIMIT:
            raise ProtocolViolation("invalid length of startup packet")
        await self._gather(length)
        return self._taken(4, length)

    async def encrypt(self, tls: ssl.SSLContext) -> None:
        """Go on in TLS; bytes that came before would be taken for what is encrypted, so there must be none."""
        if len(self._in) > self._at:
            raise ProtocolViolation("received unencrypted data after SSL request")
        self.put(b"S")
        await self.flush()
        await self._writer.start_tls(tls)

    async def next(self) -> tuple[bytes, bytes]:
        """The letter and the body of the next message."""
        if self._next is not None:
            taken, self._next = self._next, None
            return taken
        return self._buffered() or await self._read()

    async def peek(self) -> bytes:
        """The letter of the next message, which stays the next one."""
        if self._next is None:
            self._next = await self.next()
        return self._next[0]

    async def gone(self) -> None:
        """Wait until the client has gone, which raises; messages that come meanwhile are kept for later."""
        while len(self._in) - self._at <= self.limit:
            await self._more()
        raise ProtocolViolation("too many messages while a result is sent", "54000")

    def _buffered(self) -> tuple[bytes, bytes] | None:
        """The next message if it is here whole."""
        there = len(self._in) - self._at
        if there < 5:
            return None
        letter, length = HEAD.unpack_from(self._in, self._at)
        if length < 4:
            raise ProtocolViolation("invalid message length")
        if length - 4 > self.limit:
            raise ProtocolViolation(f"a message of {length - 4} bytes is longer than {self.limit}", "54000")
        return None if there <= length else (letter, self._taken(5, length + 1))

    async def _read(self) -> tuple[bytes, bytes]:
        while (message := self._buffered()) is None:
            await self._more()
        return message

    async def _gather(self, count: int) -> None:
        while len(self._in) - self._at < count:
            await self._more()

    async def _more(self) -> None:
        data = await self._reader.read(CHUNK)
        if not data:
            raise ConnectionResetError("the client has gone")
        self._in += data

    def _taken(self, head: int, length: int) -> bytes:
        """The next bytes but for their head, which are then behind."""
        body = bytes(memoryview(self._in)[self._at + head : self._at + length])
        self._at += length
        if self._at == len(self._in):
            self._in.clear()
            self._at = 0
        elif self._at > CHUNK:
            del self._in[: self._at]
            self._at = 0
        return body

    # -- what goes

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
            data, self._out, self._size = b"".join(self._out), [], 0
            self._writer.write(data)
        if self._writer.transport.get_write_buffer_size() == 0:
            return
        try:
            async with asyncio.timeout(self._patience):
                await self._writer.drain()
        except TimeoutError:
            raise StalledClient("the client takes nothing") from None

    async def close(self) -> None:
        """End the stream; what a client does not take in a moment is dropped."""
        self._writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            try:
                async with asyncio.timeout(1):
                    await self._writer.wait_closed()
            except TimeoutError:
                self._writer.transport.abort()
