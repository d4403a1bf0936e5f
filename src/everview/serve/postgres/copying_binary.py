r"""COPY in binary: a signature, rows of values as the protocol sends them in binary, and an end that counts -1 columns.

>>> b"".join(copied_binary([[b"\0\1", None]], first=True))[19:]
b'\x00\x01\x00\x00\x00\x02\x00\x01\x00\x01\xff\xff\xff\xff'
>>> list(rows_of_binary(SIGNATURE + bytes(8) + b"\0\1\xff\xff\xff\xff" + END, 1))
[[None]]
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from everview.serve.postgres.states import ClientError

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
HEAD: Final = SIGNATURE + bytes(8)  # without flags, and without an extension
END: Final = b"\xff\xff"
_COUNT, _SIZE = struct.Struct("!h"), struct.Struct("!i")
_CRITICAL: Final = 0xFFFF0000  # flags that a reader has to know


def copied_binary(columns: Sequence[Sequence[bytes | None]], *, first: bool) -> Iterator[bytes]:
    """Rows, given by columns of encoded values; the first of all begins with the head."""
    count = _COUNT.pack(len(columns))
    for number, row in enumerate(zip(*columns, strict=True)):
        parts = [_SIZE.pack(-1) if value is None else _SIZE.pack(len(value)) + value for value in row]
        yield b"".join((HEAD if first and not number else b"", count, *parts))


def rows_of_binary(data: bytes, columns: int) -> Iterator[list[bytes | None]]:
    """The values of the rows that a client has sent."""
    if not data.startswith(SIGNATURE):
        raise _broken("COPY file signature not recognized")
    flags, extension = struct.unpack("!Ii", _taken(data, len(SIGNATURE), 8))
    if flags & _CRITICAL or extension < 0:
        raise _broken("invalid COPY file header")
    at = len(HEAD) + len(_taken(data, len(HEAD), extension))
    while at < len(data):
        if data[at : at + 2] == END:
            if len(data) > at + 2:
                raise _broken("received copy data after EOF marker")
            return
        (count,) = _COUNT.unpack(_taken(data, at, 2))
        if count != columns:
            raise _broken(f"row field count is {count}, expected {columns}")
        at, row = at + 2, list[bytes | None]()
        for _ in range(count):
            (size,) = _SIZE.unpack(_taken(data, at, 4))
            if size < -1:
                raise _broken("invalid field size")
            at += 4
            row.append(None if size < 0 else _taken(data, at, size))
            at += max(size, 0)
        yield row


def _taken(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise _broken("unexpected EOF in COPY data")
    return data[at : at + size]


def _broken(said: str) -> ClientError:
    return ClientError(said, "22P04", hint="send rows as COPY … TO STDOUT (FORMAT binary) gives them")
