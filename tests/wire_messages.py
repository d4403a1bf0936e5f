"""A client of PostgreSQL's protocol that says what it is told to say, right or wrong, and keeps the SQLSTATEs."""

from __future__ import annotations

import socket
import struct

from wire_fuzz import STARTUP, message


def parse(text: str, name: bytes = b"") -> bytes:
    return message(b"P", name + b"\0" + text.encode() + b"\0\0\0")


def bind(*values: bytes) -> bytes:
    body = b"".join(struct.pack("!i", len(value)) + value for value in values)
    return message(b"B", b"\0\0\0\0" + struct.pack("!H", len(values)) + body + b"\0\0")


def describe() -> bytes:
    return message(b"D", b"S\0")


class Wire:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._stream = self._socket.makefile("rb")
        self._socket.sendall(struct.pack("!i", len(STARTUP) + 4) + STARTUP)
        self._until_ready()

    def states(self, *messages: bytes) -> list[str]:
        """The SQLSTATEs of the errors that some messages lead to."""
        self._socket.sendall(b"".join(messages) + message(b"S", b""))
        return self._until_ready()

    def _until_ready(self) -> list[str]:
        found: list[str] = []
        while True:
            head = self._stream.read(5)
            assert len(head) == 5, "the server has ended the connection"
            body = self._stream.read(struct.unpack("!i", head[1:])[0] - 4)
            if head[:1] == b"E":
                found += [part[1:].decode() for part in body.split(b"\0") if part[:1] == b"C"]
            if head[:1] == b"Z":
                return found

    def close(self) -> None:
        self._stream.close()
        self._socket.close()
