"""Which column a name means: the relations that a query reads, side by side in one flat row.

A bare name is a column of the relation that the query is of. Columns of joined ones are named with their alias before:
``artist.name``. A relation may also be called by the name it has in the database, if only one is called so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from everview.errors import EverviewError, QueryError, UnknownName
from everview.frontends.fluent.shape import Record
from everview.types import unknown_name

Path = tuple[str, ...]
STAR = "*"


@dataclass(frozen=True, slots=True)
class Entry:
    """A relation that a query reads: how it is called, and which columns of the flat row it has.

    ``key`` are columns that tell its rows apart, if any do. Where there may be no row at all, ``presence`` tells that
    apart from a row whose key is NULL.
    """

    alias: str
    relation: str  # its name in the database
    record: Record
    key: tuple[int, ...] | None
    presence: tuple[int, ...] = ()

    def follows(self, known: Collection[int]) -> bool:
        """Whether all its columns follow from known ones, by its key."""
        return self.key is not None and all(at in known for at in (*self.key, *self.presence))

    def column(self, path: str) -> int | None:
        """The column of a name, which may lead into a record; None if there is none."""
        return _column(self.record, path)

    def paths(self) -> Iterator[tuple[Path, int]]:
        """Names and columns, those of records beneath with all names that lead there."""
        yield from leaves(self.record)

    @property
    def names(self) -> list[str]:
        return [".".join(path) for path, _ in self.paths()]

    def shifted(self, by: int) -> Entry:
        key = None if self.key is None else tuple(at + by for at in self.key)
        presence = tuple(at + by for at in self.presence)
        return replace(self, record=shifted(self.record, by), key=key, presence=presence)


def leaves(record: Record, before: Path = ()) -> Iterator[tuple[Path, int]]:
    """The columns of a record and of those beneath, by path."""
    for name, found in record.fields:
        if isinstance(found, int):
            yield (*before, name), found
        else:
            yield from leaves(found, (*before, name))


def presents(record: Record, before: Path = ()) -> Iterator[tuple[Path, int]]:
    """Of the record and those beneath that may be missing, the column that says so."""
    if record.present is not None:
        yield before, record.present
    for name, found in record.fields:
        if isinstance(found, Record):
            yield from presents(found, (*before, name))


def shifted(record: Record, by: int) -> Record:
    """The record in rows in which its columns stand so many places later."""
    fields = tuple((name, at + by if isinstance(at, int) else shifted(at, by)) for name, at in record.fields)
    return Record(fields, None if record.present is None else record.present + by)


def _column(record: Record, path: str) -> int | None:
    for name, found in record.fields:
        if isinstance(found, int) and name == path:
            return found
        if isinstance(found, Record) and path.startswith(f"{name}."):
            return _column(found, path[len(name) + 1 :])
    return None


@dataclass(frozen=True, slots=True)
class Scope:
    """The relations of a query, the first of which it is of."""

    entries: tuple[Entry, ...]

    @property
    def own(self) -> Entry:
        return self.entries[0]

    def entry(self, name: str) -> Entry:
        """The relation of an alias, or of a name in the database that only one has."""
        for found in self.entries:
            if found.alias == name:
                return found
        called = [found for found in self.entries if found.relation == name]
        if len(called) > 1:
            aliases = ", ".join(found.alias for found in called)
            raise QueryError(f'"{name}" is read several times', hint=f"say which one is meant: {aliases}")
        if not called:
            raise unknown_name("relation", name, [found.alias for found in self.entries])
        return called[0]

    def column(self, name: str) -> int:
        """The column of a name; raises `UnknownName`."""
        found = self.own.column(name)
        if found is not None:
            return found
        if "." not in name:
            raise self._unknown(name)
        qualifier, rest = self.split(name)
        entry = self.entry(qualifier)
        found = entry.column(rest)
        if found is None:
            error = unknown_name("column", rest, entry.names)
            raise UnknownName(f'column "{name}" does not exist', hint=error.hint)
        return found

    def split(self, name: str) -> tuple[str, str]:
        """A name as that of a relation and that of a column of it, both of which may have dots."""
        known = {called for entry in self.entries for called in (entry.alias, entry.relation)}
        for qualifier in sorted(known, key=len, reverse=True):
            if name.startswith(f"{qualifier}."):
                return qualifier, name[len(qualifier) + 1 :]
        qualifier, _, rest = name.partition(".")
        return qualifier, rest

    def _unknown(self, name: str) -> EverviewError:
        for entry in self.entries[1:]:
            if entry.alias == name:
                return QueryError(
                    f'"{name}" is a joined relation, not a column', hint=f"name one of its columns: {_some(entry)}"
                )
        there = [f"{e.alias}.{name}" for e in self.entries[1:] if e.column(name) is not None]
        error = unknown_name("column", name, [n for e in self.entries for n in self._shown(e)])
        if there:
            return UnknownName(error.message, hint=f"did you mean {' or '.join(map(repr, there))}?")
        return error

    def _shown(self, entry: Entry) -> list[str]:
        return entry.names if entry is self.own else [f"{entry.alias}.{name}" for name in entry.names]


def _some(entry: Entry) -> str:
    return ", ".join(f"{entry.alias}.{name}" for name in entry.names[:5])
