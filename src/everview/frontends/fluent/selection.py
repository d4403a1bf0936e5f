"""The outputs of a query: each has a path, and an *item* over the rows, which is a column or an aggregate.

Columns of the query's own relation stand at the top; those of a joined one beneath its name, as it was written. A
column that is given a name stands at the top under that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from everview.errors import QueryError
from everview.frontends.fluent.agg import Agg
from everview.frontends.fluent.clauses import Clauses, Selected
from everview.frontends.fluent.names import STAR, FluentScope, Path, leaves, presents
from everview.frontends.fluent.shape import RecordShape


@dataclass(frozen=True, slots=True)
class Partner:
    """An item of a grouped selection: whether any row of the group has a partner, as marked in ``column``."""

    column: int


Item = int | Agg | Partner


def is_records(what: str | Agg) -> bool:
    """Whether a selected item is an array of records, which becomes a part of its own."""
    return isinstance(what, Agg) and what.function == "array" and what.column.endswith(STAR)


@dataclass(frozen=True, slots=True)
class Selection:
    """The outputs by path, the columns that mark missing records, and the arrays of records by name."""

    scope: FluentScope
    shown: Mapping[Path, Item]
    present: Mapping[Path, int]
    records: tuple[Agg, ...]

    def item(self, name: str) -> Item:
        """The item that a name means after SELECT: an output, else a column of the rows."""
        for path, item in self.shown.items():
            if ".".join(path) == name:
                return item
        if any(array.name == name for array in self.records):
            raise QueryError(f'"{name}" is an array of records, not a column', hint="name a column")
        return self.scope.column(name)

    def name(self, item: Item) -> str:
        """The name of the column for an item that is not shown."""
        match item:
            case Agg():
                return item.name
            case Partner(column):
                return name_of(self.scope, column)
            case _:
                return name_of(self.scope, item)


def name_of(scope: FluentScope, column: int) -> str:
    """The full name of a column of the rows."""
    for entry in scope.entries:
        before = () if entry is scope.own else (entry.alias,)
        for path, place in leaves(entry.record, before):
            if place == column:
                return ".".join(path)
    return f"column {column}"  # one that only says whether a partner is there


def selection(query: Clauses, scope: FluentScope) -> Selection:
    """The outputs of a query; raises if two have one name."""
    shown: dict[Path, Item] = {}
    present: dict[Path, int] = {}
    records: list[Agg] = []
    for one in query.selected or tuple(_by_default(query, scope)):
        if isinstance(one.what, Agg):
            _add_aggregate(one.what, scope, shown, records)
            continue
        for path, item in _columns(one, scope):
            _add(shown, path, item)
        if one.name is None:
            present.update(_missing(one.what, scope))
    kept = {path: column for path, column in present.items() if any(p[: len(path)] == path for p in shown)}
    _check_names(query, shown, records)
    return Selection(scope, shown, kept, tuple(records))


def _by_default(query: Clauses, scope: FluentScope) -> Iterator[Selected]:
    """All columns; of groups, what they are grouped by."""
    if query.groups is not None:
        yield from map(Selected, query.groups)
        return
    for entry in scope.entries:
        yield Selected(f"{entry.alias}.*")


def _add_aggregate(what: Agg, scope: FluentScope, shown: dict[Path, Item], records: list[Agg]) -> None:
    if is_records(what):
        if what.column != STAR:
            scope.entry(what.column.removesuffix(".*"))
        records.append(what)
        return
    if what.column.endswith(STAR) and (what.column != STAR or what.function != "count"):
        raise QueryError(
            f"{what.function} of {what.column}", hint="name a column; only count and array take all of them"
        )
    if what.column != STAR:
        scope.column(what.column)
    _add(shown, (what.name,), what)


def _columns(one: Selected, scope: FluentScope) -> Iterator[tuple[Path, int]]:
    assert isinstance(one.what, str)
    if one.what == STAR:
        for entry in scope.entries:
            yield from leaves(entry.record, () if entry is scope.own else (entry.alias,))
        return
    if one.what.endswith(f".{STAR}"):
        if one.name is not None:
            raise QueryError(f"{one.what} cannot be named {one.name}", hint="name columns one by one")
        yield from leaves(*_entry(one.what.removesuffix(".*"), scope))
        return
    column = scope.column(one.what)
    yield (one.name,) if one.name is not None else _path(one.what, column, scope), column


def _entry(name: str, scope: FluentScope) -> tuple[RecordShape, Path]:
    entry = scope.entry(name)
    return entry.record, () if entry is scope.own else (name,)


def _path(name: str, place: int, scope: FluentScope) -> Path:
    for path, column in leaves(scope.own.record):
        if column == place:
            return path
    qualifier, _ = scope.split(name)
    return next(path for path, column in leaves(*_entry(qualifier, scope)) if column == place)


def _missing(what: str, scope: FluentScope) -> Iterator[tuple[Path, int]]:
    """The records that a selected name leads into and that may be missing, each with its mark column."""
    if what == STAR:
        for entry in scope.entries:
            yield from presents(entry.record, () if entry is scope.own else (entry.alias,))
        return
    if scope.own.column(what) is not None:
        yield from presents(scope.own.record)
        return
    yield from presents(*_entry(scope.split(what)[0], scope))


def _add(shown: dict[Path, Item], path: Path, item: Item) -> None:
    if shown.setdefault(path, item) != item:
        raise QueryError(f'two columns are called "{".".join(path)}"', hint="name one of them: select(other=…)")


def _check_names(query: Clauses, shown: Mapping[Path, Item], records: list[Agg]) -> None:
    """A field is a column or a record, not both, and every name leads to one thing."""
    for path in shown:
        for end in range(1, len(path)):
            if path[:end] in shown:
                name = ".".join(path[:end])
                raise QueryError(f'"{name}" would be a column and a record', hint="give the column another name")
    taken = {path[0] for path in shown}
    for name in (*(array.name for array in records), *(related.name for related in query.related)):
        if name in taken:
            raise QueryError(f'there is a field "{name}" already', hint="give what is beneath another name")
        if "." in name:  # the views of a query are named by the names that lead to them
            raise QueryError(f'"{name}" has a dot', hint="give what is beneath a name without one")
        taken.add(name)
