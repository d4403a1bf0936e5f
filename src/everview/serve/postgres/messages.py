"""Messages of PostgreSQL's protocol, version 3: how their bodies are read, and how answers are put together.

Every message but the first of a connection is a letter, a length that counts itself, and that many bytes. Nothing here
knows what a message means; a message that is cut off or too long raises `ProtocolViolation`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

PROTOCOL_3_0: Final = 196608
CANCEL_REQUEST: Final = 80877102
SSL_REQUEST: Final = 80877103
GSS_REQUEST: Final = 80877104
STARTUP_LIMIT: Final = 10_000  # bytes of a first message, as PostgreSQL has it
PASSWORD_LIMIT: Final = 65_536

_HEAD: Final = struct.Struct("!cI")
_INT32: Final = struct.Struct("!i")
_INT16: Final = struct.Struct("!h")
_UNSIGNED16: Final = struct.Struct("!H")
NULL_LENGTH: Final = _INT32.pack(-1)


class ProtocolViolation(Exception):
    """A message that breaks the protocol: the connection is told, and ends."""

    def __init__(self, message: str, state: str = "08P01") -> None:
        super().__init__(message)
        self.state = state


# -- reading


@dataclass(slots=True)
class MessageBody:
    """The body of a message, read from its start to its end."""

    data: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        """The next bytes."""
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise ProtocolViolation("insufficient data left in message")
        part, self.at = self.data[self.at : end], end
        return part

    def int16(self) -> int:
        return _INT16.unpack(self.take(2))[0]

    def count(self) -> int:
        """A number of things that follow, from 0 to 65,535."""
        return _UNSIGNED16.unpack(self.take(2))[0]

    def int32(self) -> int:
        return _INT32.unpack(self.take(4))[0]

    def oid(self) -> int:
        return self.int32() & 0xFFFFFFFF

    def text(self) -> str:
        """Text up to its closing zero byte."""
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise ProtocolViolation("invalid string in message")
        raw, self.at = self.data[self.at : end], end + 1
        return decoded_text(raw)

    def value(self) -> bytes | None:
        """Bytes with their length before them; None for NULL."""
        length = self.int32()
        return None if length == -1 else self.take(length)

    def end(self) -> None:
        """Raise unless everything has been read."""
        if self.at != len(self.data):
            raise ProtocolViolation("invalid message format")


def decoded_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ProtocolViolation('invalid byte sequence for encoding "UTF8"', "22021") from None


def startup_parameters(body: MessageBody) -> dict[str, str]:
    """The pairs of names and values that a client sends first."""
    given: dict[str, str] = {}
    while name := body.text():
        given[name] = body.text()
    body.end()
    return given


# -- writing


def message(letter: bytes, body: bytes = b"") -> bytes:
    """A message: the letter, the length, the body.

    >>> message(b"Z", b"I")
    b'Z\\x00\\x00\\x00\\x05I'
    """
    return _HEAD.pack(letter, len(body) + 4) + body


def c_string(text: str) -> bytes:
    """Text with a closing zero byte; zero bytes inside would end it, and are left out."""
    return text.replace("\0", "").encode(errors="replace") + b"\0"


def authentication(kind: int, more: bytes = b"") -> bytes:
    return message(b"R", _INT32.pack(kind) + more)


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", c_string(name) + c_string(value))


def backend_key(process: int, secret: int) -> bytes:
    return message(b"K", struct.pack("!iI", process, secret))


def ready(status: bytes) -> bytes:
    return message(b"Z", status)


def command_complete(tag: str) -> bytes:
    return message(b"C", c_string(tag))


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """A column of a result as clients are told of it."""

    name: str
    oid: int
    size: int
    modifier: int = -1
    format: int = 0
    table: int = 0
    place: int = 0


def row_description(columns: Sequence[ColumnDescription]) -> bytes:
    parts = [_UNSIGNED16.pack(len(columns))]
    for c in columns:
        parts += [c_string(c.name), struct.pack("!IhIhih", c.table, c.place, c.oid, c.size, c.modifier, c.format)]
    return message(b"T", b"".join(parts))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", _UNSIGNED16.pack(len(oids)) + b"".join(struct.pack("!I", oid) for oid in oids))


def data_rows(columns: Sequence[Sequence[bytes | None]], count: int) -> bytes:
    """The messages of rows, given by columns: the bytes of each value, None for NULL."""
    head = _UNSIGNED16.pack(len(columns))
    if not columns:
        return message(b"D", head) * count
    framed = [
        [NULL_LENGTH if value is None else _INT32.pack(len(value)) + value for value in column] for column in columns
    ]
    return b"".join(message(b"D", head + b"".join(row)) for row in zip(*framed, strict=True))


def copy_response(letter: bytes, columns: int, *, binary: bool) -> bytes:
    """The message that begins a COPY, all of whose columns are in text or in binary."""
    return message(letter, bytes([binary]) + _UNSIGNED16.pack(columns) + bytes([0, binary]) * columns)


def report(letter: bytes, fields: Iterable[tuple[str, str]]) -> bytes:
    """An error or a notice: fields by their letters."""
    return message(letter, b"".join(code.encode() + c_string(text) for code, text in fields) + b"\0")


PARSE_COMPLETE: Final = message(b"1")
BIND_COMPLETE: Final = message(b"2")
CLOSE_COMPLETE: Final = message(b"3")
NO_DATA: Final = message(b"n")
EMPTY_QUERY: Final = message(b"I")
PORTAL_SUSPENDED: Final = message(b"s")
COPY_DONE: Final = message(b"c")
