"""Branches of a tree: the parents of each row, the order of children, and the columns to show.

A branch has the rows of one feed. A row is a child of every row of the branch above that has the same values in the
columns that correlate the two; NULL matches NULL. The `Part` of a fluent query has the same attributes.

>>> from everview.types import Schema
>>> schemas = {"artist": Schema.parse("id BIGINT, name STRING"), "track": Schema.parse("artist BIGINT, n BIGINT")}
>>> tree = branch("artist", schemas, [Related("tracks", "track", on=("id", "artist"), by="n desc", show=["n"])])
>>> [name for name, _ in walk("artist", tree)], tree.children[0].order
(['artist', 'artist.tracks'], ((1, 'desc'), (0, 'asc')))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from everview.doors import doors
from everview.errors import ShapeError
from everview.types import Schema, unknown_name
from everview.views.order import By, Order, complete, order_of


class ShownFields(Protocol):
    """The fields that show of a row: for each name a column, or further fields; see `Record` of fluent queries."""

    @property
    def fields(self) -> tuple[tuple[str, Any], ...]: ...

    @property
    def present(self) -> int | None: ...


class Branch(Protocol):
    """One feed of a tree, and the branches beneath."""

    @property
    def name(self) -> str: ...
    @property
    def record(self) -> ShownFields: ...
    @property
    def order(self) -> Order: ...
    @property
    def one(self) -> bool: ...
    @property
    def scalar(self) -> bool: ...
    @property
    def parent(self) -> tuple[int, ...]: ...
    @property
    def child(self) -> tuple[int, ...]: ...
    @property
    def children(self) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a branch made by hand: columns under names."""

    fields: tuple[tuple[str, int], ...]
    present: int | None = None


@dataclass(frozen=True, slots=True)
class Nested:
    """A branch made by hand, with `Related`."""

    name: str
    record: Fields
    order: Order
    one: bool = False
    scalar: bool = False
    parent: tuple[int, ...] = ()
    child: tuple[int, ...] = ()
    children: tuple[Nested, ...] = ()


@doors()
@dataclass(frozen=True, slots=True)
class Related:
    """Rows of a view beneath those of another, as ``name``: ``Related("tracks", "track", on=("id", "artist_id"))``.

    ``on`` is a column that both have, a pair (column above, column of the view), or several of these. ``one`` shows the
    first of them, or None, instead of all.
    """

    name: str
    view: str
    on: str | tuple[str, str] | Sequence[str | tuple[str, str]] = field(default=(), kw_only=True)
    by: By | Sequence[By] = field(default=(), kw_only=True)
    one: bool = field(default=False, kw_only=True)
    show: Sequence[str] | None = field(default=None, kw_only=True)
    related: Sequence[Related] = field(default=(), kw_only=True)


def branch(
    view: str,
    schemas: Mapping[str, Schema],
    related: Sequence[Related] = (),
    *,
    by: By | Sequence[By] = (),
    show: Sequence[str] | None = None,
    one: bool = False,
) -> Nested:
    """The branch of a view at the root, with the branches beneath."""
    return _branch(Related("", view, by=by, show=show, one=one, related=related), None, schemas)


def _branch(given: Related, above: Schema | None, schemas: Mapping[str, Schema]) -> Nested:
    schema = _schema(given.view, schemas)
    shown = schema.names if given.show is None else tuple(given.show)
    _check_names([*shown, *(each.name for each in given.related)])
    parent, child = ((), ()) if above is None else _correlated(given, above, schema)
    return Nested(
        *(given.name, Fields(tuple((name, schema.index(name)) for name in shown))),
        order=complete(schema, order_of(schema, given.by)),
        one=given.one,
        parent=parent,
        child=child,
        children=tuple(_branch(each, schema, schemas) for each in given.related),
    )


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ShapeError(f'"{name}" would be there twice', hint="give what is beneath a name of its own")


def _correlated(given: Related, above: Schema, schema: Schema) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The columns of the branch above, and the view's columns that equal them."""
    pairs = [(pair, pair) if isinstance(pair, str) else pair for pair in _pairs(given.on)]
    if not pairs:
        raise ShapeError(f"nothing says whose {given.name} are whose", hint='write on=("id", "artist_id")')
    return tuple(above.index(up) for up, _ in pairs), tuple(schema.index(down) for _, down in pairs)


def _pairs(on: Any) -> Iterable[str | tuple[str, str]]:
    if isinstance(on, str):
        return [on]
    both = isinstance(on, tuple) and len(on) == 2 and all(isinstance(each, str) for each in on)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return [on] if both else on


def _schema(view: str, schemas: Mapping[str, Schema]) -> Schema:
    if view not in schemas:
        raise unknown_name("view", view, schemas)
    return schemas[view]


def walk(name: str, top: Branch) -> Iterator[tuple[str, Branch]]:
    """A branch and all branches beneath, each with its path: ``artist``, ``artist.tracks``."""
    yield name, top
    for each in top.children:
        yield from walk(f"{name}.{each.name}", each)
