"""Lookup of names: the relations that a query reads, side by side in one flat row.

A bare name is a column of the relation that the query starts from. Columns of joined relations are named with the
alias before: ``artist.name``. A relation may also be called by its name in the database, if only one has that name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from everview.errors import EverviewError, QueryError, UnknownName
from everview.frontends.fluent.shape import RecordShape
from everview.types import unknown_name

Path = tuple[str, ...]
STAR = "*"


@dataclass(frozen=True, slots=True)
class ReadRelation:
    """A relation that a query reads: its names, and its columns in the flat row.

    ``key`` are columns that tell its rows apart, if any do. Where there may be no row at all, ``presence`` tells that
    apart from a row whose key is NULL.
    """

    alias: str
    relation: str  # its name in the database
    record: RecordShape
    key: tuple[int, ...] | None
    presence: tuple[int, ...] = ()

    def follows(self, known: Collection[int]) -> bool:
        """Whether all its columns follow from known ones, by its key."""
        return self.key is not None and all(column in known for column in (*self.key, *self.presence))

    def column(self, path: str) -> int | None:
        """The column of a name, which may lead into a record; None if there is none."""
        return _column(self.record, path)

    def paths(self) -> Iterator[tuple[Path, int]]:
        """Names and columns, those of records beneath with all names that lead there."""
        yield from leaves(self.record)

    @property
    def names(self) -> list[str]:
        return [".".join(path) for path, _ in self.paths()]

    def shifted(self, by: int) -> ReadRelation:
        key = None if self.key is None else tuple(column + by for column in self.key)
        presence = tuple(column + by for column in self.presence)
        return replace(self, record=shifted(self.record, by), key=key, presence=presence)


def leaves(record: RecordShape, before: Path = ()) -> Iterator[tuple[Path, int]]:
    """The columns of a record and of those beneath, by path."""
    for name, shown in record.fields:
        if isinstance(shown, int):
            yield (*before, name), shown
        else:
            yield from leaves(shown, (*before, name))


def presents(record: RecordShape, before: Path = ()) -> Iterator[tuple[Path, int]]:
    """The columns that mark missing records, of the record and of those beneath, by path."""
    if record.present is not None:
        yield before, record.present
    for name, shown in record.fields:
        if isinstance(shown, RecordShape):
            yield from presents(shown, (*before, name))


def shifted(record: RecordShape, by: int) -> RecordShape:
    """The record in rows in which its columns stand so many places later."""
    fields = tuple(
        (name, shown + by if isinstance(shown, int) else shifted(shown, by)) for name, shown in record.fields
    )
    return RecordShape(fields, None if record.present is None else record.present + by)


def _column(record: RecordShape, path: str) -> int | None:
    for name, shown in record.fields:
        if isinstance(shown, int) and name == path:
            return shown
        if isinstance(shown, RecordShape) and path.startswith(f"{name}."):
            return _column(shown, path[len(name) + 1 :])
    return None


@dataclass(frozen=True, slots=True)
class FluentScope:
    """The relations that a query reads; the first is the one it starts from."""

    entries: tuple[ReadRelation, ...]

    @property
    def own(self) -> ReadRelation:
        return self.entries[0]

    def entry(self, name: str) -> ReadRelation:
        """The relation of an alias, or of a name in the database that only one has."""
        for entry in self.entries:
            if entry.alias == name:
                return entry
        called = [entry for entry in self.entries if entry.relation == name]
        if len(called) > 1:
            aliases = ", ".join(entry.alias for entry in called)
            raise QueryError(f'"{name}" is read several times', hint=f"say which one is meant: {aliases}")
        if not called:
            raise unknown_name("relation", name, [entry.alias for entry in self.entries])
        return called[0]

    def column(self, name: str) -> int:
        """The column of a name; raises `UnknownName`."""
        column = self.own.column(name)
        if column is not None:
            return column
        if "." not in name:
            raise self._unknown(name)
        qualifier, rest = self.split(name)
        entry = self.entry(qualifier)
        column = entry.column(rest)
        if column is None:
            error = unknown_name("column", rest, entry.names)
            raise UnknownName(f'column "{name}" does not exist', hint=error.hint)
        return column

    def split(self, name: str) -> tuple[str, str]:
        """Split a qualified name into the name of a relation and the name of its column; both may have dots."""
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

    def _shown(self, entry: ReadRelation) -> list[str]:
        return entry.names if entry is self.own else [f"{entry.alias}.{name}" for name in entry.names]


def _some(entry: ReadRelation) -> str:
    return ", ".join(f"{entry.alias}.{name}" for name in entry.names[:5])
