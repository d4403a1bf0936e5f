"""Messages of PostgreSQL's ``pgoutput``: what logical replication says of transactions, tables and rows, as values.

>>> read_message(b"B" + bytes(7) + b"\\x05" + bytes(8) + bytes(4))
Begun(at=5)
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import unpack_from
from typing import Final


class Unchanged:
    """A large value, stored apart, that PostgreSQL does not send because the update left it unchanged."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
Told = bytes | None | Unchanged  # a value as text, NULL, or not told


@dataclass(frozen=True, slots=True)
class Begun:
    """A transaction begins, which was committed at a place of the log."""

    at: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A transaction ends; the log goes on after it at a place."""

    next: int


@dataclass(frozen=True, slots=True)
class Described:
    """A table as it is from here on: the names and types of its columns."""

    relation: int
    name: str
    columns: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """A row that came, went or changed: the old one, whole or its key, and the new one."""

    relation: int
    old: tuple[Told, ...] | None
    new: tuple[Told, ...] | None
    whole: bool  # whether all of the old row is told


@dataclass(frozen=True, slots=True)
class Emptied:
    """Tables that were truncated."""

    relations: tuple[int, ...]


Message = Begun | Ended | Described | Changed | Emptied | None


def read_message(data: bytes) -> Message:
    """A message; None for those that say nothing of rows."""
    match data[:1]:
        case b"B":
            return Begun(unpack_from(">q", data, 1)[0])
        case b"C":
            return Ended(unpack_from(">q", data, 10)[0])
        case b"R":
            return _described(data)
        case b"I" | b"U" | b"D":
            return _changed(data)
        case b"T":
            (count,) = unpack_from(">i", data, 1)
            return Emptied(unpack_from(f">{count}I", data, 6))
        case _:
            return None


def _described(data: bytes) -> Described:
    (relation,) = unpack_from(">I", data, 1)
    _, place = _text(data, 5)
    name, place = _text(data, place)
    (count,) = unpack_from(">h", data, place + 1)
    place += 3
    columns: list[tuple[str, int]] = []
    for _ in range(count):
        column, place = _text(data, place + 1)
        columns.append((column, unpack_from(">I", data, place)[0]))
        place += 8
    return Described(relation, name, tuple(columns))


def _text(data: bytes, place: int) -> tuple[str, int]:
    end = data.index(b"\0", place)
    return data[place:end].decode(), end + 1


def _changed(data: bytes) -> Changed:
    (relation,) = unpack_from(">I", data, 1)
    rows: dict[bytes, tuple[Told, ...]] = {}
    place = 5
    while place < len(data):
        kind = data[place : place + 1]
        rows[kind], place = _row(data, place + 1)
    return Changed(relation, rows.get(b"O", rows.get(b"K")), rows.get(b"N"), b"O" in rows)


def _row(data: bytes, place: int) -> tuple[tuple[Told, ...], int]:
    (count,) = unpack_from(">h", data, place)
    place += 2
    values: list[Told] = []
    for _ in range(count):
        kind = data[place : place + 1]
        place += 1
        if kind == b"t":
            (size,) = unpack_from(">i", data, place)
            values.append(data[place + 4 : place + 4 + size])
            place += 4 + size
        else:
            values.append(None if kind == b"n" else UNCHANGED)
    return tuple(values), place
