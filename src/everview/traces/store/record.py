r"""Records: the framing of a log, made so that a torn tail and damage are told apart.

A record is a header (with a checksum of its own, so its lengths can be trusted), a JSON document, the bytes
of the slices that travel inline, and an end mark. A log is written record by record, and with a sync after
each, a record is begun only when the one before it is on disk. So

- a last record of which **the end or a whole sector was never written** was torn by a crash: that commit was
  never acknowledged, and the log ends where the record began;
- **anything else** that does not check is damage, be it in the middle or in the last record: a record that is
  complete may have been acknowledged, and to drop it silently would lose an epoch. A record that follows proves
  that all before it were acknowledged, so only the last one may be torn.

Records are written over room that the log has made for them (see `everview.traces.store.log`). Room is full of
`BLANK`, a byte of which no record consists for a whole sector and with which none ends. A disk writes a sector
whole or not at all: what is still blank was never written, whatever sectors before or after it were.

A filesystem may also, after a power failure, show the length of an append but zeros for sectors that it never
wrote. A record never ends in zeros, so whole sectors of zeros at the end of the file count as not written, too.
Other remains of an unsynced append (old contents of the disk, or a hole followed by data, which several
unsynced records can leave) cannot be told from damage and are reported as such; `Store.rewind` then goes
back by choice.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from everview.errors import CorruptState
from everview.traces.store.slices import checksum, damaged

HEADER = struct.Struct("<4sB3xQQQI")  # mark, kind, epoch, length of document and of data, checksum of both
HEADER_SUM = struct.Struct("<I")
HEAD = HEADER.size + HEADER_SUM.size
MARK = b"EVR1"
END = b"END\n"
SECTOR = 512
BLANK = b"\xee"

to_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class RecordKind(IntEnum):
    SNAPSHOT = 1
    COMMIT = 2


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A verified record: its contents, and where in the file its inline data and its end are."""

    kind: RecordKind
    epoch: int
    text: bytes
    data_at: int
    end: int

    @property
    def document(self) -> Any:
        return json.loads(self.text)


def encode(kind: RecordKind, epoch: int, document: Mapping[str, Any], data: bytes = b"") -> bytes:
    r"""The bytes of one record.

    >>> record = encode(RecordKind.COMMIT, 7, {"offsets": {"a": 1}}, b"\0" * 8)
    >>> [(r.epoch, r.document, r.data_at, r.end) for r in scan(record, Path("a.log"))]
    [(7, {'offsets': {'a': 1}}, 59, 71)]
    >>> list(scan(record[:-1], Path("a.log")))  # torn
    []
    """
    return framed(kind, epoch, to_json(document).encode(), [memoryview(data)])


def framed(kind: RecordKind, epoch: int, text: bytes, data: Sequence[memoryview]) -> bytes:
    """The bytes of a record whose document is JSON already, and whose data come in pieces."""
    size, total = 0, crc32(text)
    for piece in data:
        size += piece.nbytes
        total = crc32(piece, total)
    header = HEADER.pack(MARK, kind, epoch, len(text), size, total)
    return b"".join((header, HEADER_SUM.pack(crc32(header)), text, *data, END))


def scan(data: bytes, path: Path, start: int = 0) -> Iterator[LogRecord]:
    """The records of a log in order, up to a torn tail; damage raises when it is reached.

    The data begin with a sector, and the first record with byte `start` of them.
    """
    size = written_size(data)
    while start < size:
        record = _record_at(data, start, size, path)
        if record is None:
            return
        yield record
        start = record.end


def written_size(data: bytes) -> int:
    r"""How much of a log was written: all but the room, or whole sectors of zeros, at its end.

    >>> [written_size(b"x" * 100 + end) for end in (bytes(50), bytes(1000), BLANK * 1000)]
    [150, 512, 100]
    """
    used = len(data.rstrip(BLANK + b"\0"))
    return min(len(data.rstrip(BLANK)), used + -used % SECTOR)


def first_epoch(path: Path) -> int:
    """The epoch of a log's first record, without reading the rest of it."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    if len(head) < HEAD:
        raise _damage(path, "it is cut short")
    return _header(head, 0, path).epoch


class _Header(NamedTuple):
    mark: bytes
    kind: int
    epoch: int
    text: int
    data: int
    checksum: int


def _header(data: bytes, start: int, path: Path) -> _Header:
    packed = data[start : start + HEADER.size]
    header = _Header(*HEADER.unpack(packed))
    (expected,) = HEADER_SUM.unpack(data[start + HEADER.size : start + HEAD])
    if header.mark != MARK or checksum(packed) != expected:
        raise _damage(path, f"no record begins at byte {start}")
    return header


def _record_at(data: bytes, start: int, size: int, path: Path) -> LogRecord | None:
    """The record that begins here, or None if it is the last, and torn."""
    try:
        return _whole_record(data, start, size, path)
    except CorruptState:
        if _is_torn(data, start, size, path):
            return None
        raise


def _whole_record(data: bytes, at: int, size: int, path: Path) -> LogRecord | None:
    """The record that begins here, or None if what was written ends first."""
    start = at + HEAD
    if start > size:
        return None
    header = _header(data, at, path)
    data_at = start + header.text
    data_end = data_at + header.data
    end = data_end + len(END)
    if end > size:
        return None
    if data[data_end:end] != END or checksum(data[start:data_end]) != header.checksum:
        raise _damage(path, f"the record of epoch {header.epoch} at byte {at} has a wrong checksum")
    return LogRecord(RecordKind(header.kind), header.epoch, data[start:data_at], data_at, end)


def _is_torn(data: bytes, start: int, size: int, path: Path) -> bool:
    """Whether a sector of this record was never written, and no record follows."""
    try:
        header = _header(data, start, path)
    except CorruptState:
        return _has_blank_sector(data, start, start + HEAD) and not _has_record(data, start + 1, size, path)
    end = start + HEAD + header.text + header.data + len(END)
    return size <= end and _has_blank_sector(data, start, end)


def _has_blank_sector(data: bytes, start: int, end: int) -> bool:
    """Whether one of the sectors between `start` and `end` is blank, as far as it comes after `start`."""
    sectors = range(start - start % SECTOR, end, SECTOR)
    return any(not data[max(sector, start) : sector + SECTOR].strip(BLANK) for sector in sectors)


def _has_record(data: bytes, start: int, size: int, path: Path) -> bool:
    """Whether a whole record begins anywhere from `start` on."""
    mark = data.find(MARK, start, size)
    while mark >= 0:
        with suppress(CorruptState):
            if _whole_record(data, mark, size, path) is not None:
                return True
        mark = data.find(MARK, mark + 1, size)
    return False


def _damage(path: Path, what: str) -> CorruptState:
    return damaged(
        path,
        what,
        hint="restore the file from a copy, or go back to an epoch before the damage with Store.rewind "
        "(Store.attach reads it without changing anything)",
    )
