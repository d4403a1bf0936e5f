"""The query builder: every method returns another query, and refuses mistakes at once.

>>> from everview import connect
>>> db = connect()
>>> db.create_table("track", "id BIGINT, name STRING, rating BIGINT", key="id")
>>> db.query("track").where("ratign", ">", 3)
Traceback (most recent call last):
everview.errors.UnknownName: column "ratign" does not exist
  hint: did you mean "rating"? available: id, name, rating
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from everview.errors import QueryError, Ungrouped, shown
from everview.frontends.fluent.agg import Agg
from everview.frontends.fluent.clauses import Clauses, Joined, Pairs, PartnerQuery, RelatedQuery, Selected
from everview.frontends.fluent.conditions import (
    Condition,
    and_,
    column_name,
    condition,
    not_,
    or_,
    relation_name,
    valid_text,
)
from everview.frontends.fluent.home import Home, PreparedQuery
from everview.frontends.fluent.keyset import check_row
from everview.frontends.fluent.parts import parts
from everview.frontends.fluent.rows import refuse_nested
from everview.frontends.fluent.shape import Direction, QueryPart


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A query under construction, which never changes: methods give others. Made by ``db.query("track")``."""

    home: Home
    said: Clauses

    @classmethod
    def of(cls, home: Home, relation: str, alias: str | None) -> Self:
        """All rows of a relation, which is called by its name or by another."""
        return cls(home, Clauses(relation, relation if alias is None else relation_name(alias)))

    # -- which rows

    def where(self, column: Any, *rest: Any) -> Self:
        """Only rows of which a condition is true: ``where("rating", ">", 3)``, or ``where(col("rating") > 3)``.

        Operators are = != < <= > >= in, not in, like, not like, ilike, is, is not, between, not between. With two
        arguments it is equality. Several conditions must all be true.
        """
        return self._with(where=(*self.said.where, condition(column, *rest)))

    and_ = staticmethod(and_)
    or_ = staticmethod(or_)
    not_ = staticmethod(not_)

    def join(
        self, other: Query, as_: str | None = None, left: str | None = None, right: str | None = None, *, on: Any = None
    ) -> Self:
        """A row for each pair of rows whose columns are equal: ``join(db.query("artist"), on=("artist_id", "id"))``.

        The partner lies in the result under the name ``as_``, by default that of its relation.
        """
        return self._joined("inner", other, as_, _on(on, left, right))

    def left_join(
        self, other: Query, as_: str | None = None, left: str | None = None, right: str | None = None, *, on: Any = None
    ) -> Self:
        """As `join`, and also the rows without a partner: it is None there.

        ``left_join(db.query("artist"), "artists", "track.artist_id", "id")`` is another way to write it.
        """
        return self._joined("left", other, as_, _on(on, left, right))

    def exists(self, other: Query, *, on: Any = None) -> Self:
        """Only rows that have a partner in another query."""
        return self._asked("semi", other, on)

    def not_exists(self, other: Query, *, on: Any = None) -> Self:
        """Only rows that have no partner in another query."""
        return self._asked("anti", other, on)

    # -- what of them

    def select(self, *columns: str | Agg, **named: str | Agg) -> Self:
        """The columns and aggregates to show: ``select("name", "artist.*", agg.count(), stars="rating")``.

        Without it, all columns are shown, or those of `group_by`. Selecting again shows more.
        """
        selected = [Selected(c if isinstance(c, Agg) else column_name(c)) for c in columns]
        for name, what in named.items():
            valid_text(name)
            selected.append(Selected(what.named(name)) if isinstance(what, Agg) else Selected(column_name(what), name))
        return self._with(selected=(*self.said.selected, *selected))

    def group_by(self, *columns: str) -> Self:
        """One row for each different value of some columns; what follows from them by keys may be selected, too."""
        if not columns:
            raise QueryError("group_by of nothing", hint="name columns; without group_by, an aggregate is of all rows")
        names = tuple(map(column_name, columns))
        return self._with(groups=(*(self.said.groups or ()), *names))

    def having(self, column: Any, *rest: Any) -> Self:
        """Only groups of which a condition is true; it may read aggregates, by their names."""
        if not self.said.aggregates:
            raise QueryError("having without group_by", hint="group first; rows are chosen by where")
        return self._with(having=(*self.said.having, condition(column, *rest)))

    def distinct(self) -> Self:
        """Every row once."""
        return self._with(distinct=True)

    def related_one(self, name: str, other: Query, *, on: Any = None) -> Self:
        """Beneath every row, the first partner in another query, or None."""
        return self._related(name, other, on, one=True)

    def related_many(self, name: str, other: Query, *, on: Any = None) -> Self:
        """Beneath every row, the list of its partners in another query, in that one's order and to its limit."""
        return self._related(name, other, on, one=False)

    # -- in which order, and how many

    def order_by(self, *columns: str) -> Self:
        """In the order of columns, each followed by "desc" where it is to be descending.

        ``order_by("rating", "desc", "name")`` or ``order_by("rating desc", "name")``. NULL comes first ascending, last
        descending. Ties are in the order of the primary key.
        """
        return self._with(order=(*self.said.order, *_ordered(columns, self.said)))

    def limit(self, count: int) -> Self:
        """At most so many rows: the first."""
        if isinstance(count, bool) or not isinstance(count, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise QueryError(f"limit({shown(count)})", hint="a limit is a whole number")
        if not 0 <= count < 1 << 63:
            raise QueryError(f"limit({count})", hint="a limit is 0 or more, and less than 2^63")
        return self._with(limit=count)

    def start_after(self, row: Any) -> Self:
        """Only rows that come after a given one in the order; it is a dict of at least the columns of the order."""
        check_row(row)
        return self._with(after=dict(row) if isinstance(row, Mapping) else tuple(row))  # pyright: ignore[reportUnknownArgumentType]

    def one(self) -> Self:
        """The first row alone, or None, instead of a list."""
        return self._with(one=True)

    # -- what is done with it

    def prepare(self) -> PreparedQuery:
        """The query, checked as a whole, and planned."""
        return PreparedQuery.of(self)

    def run(self) -> Any:
        """The query's answer now: a list of dicts, one dict or None after `one`, or a value. Nothing is kept."""
        return self.home.run(self)

    def materialize(self, name: str | None = None) -> Any:
        """A view of the query, which stays right as rows change; under a name, it can be found again."""
        return self.home.materialize(self, name)

    def parts(self, view: str | None = None) -> QueryPart:
        """The plans of the query; see `everview.frontends.fluent.shape`."""
        return parts(self.said, self.home.catalog, view)

    def __repr__(self) -> str:
        return f"<query of {self.said.relation}>"

    # -- inside

    def _with(self, **changes: Any) -> Self:
        changed = replace(self, said=replace(self.said, **changes))
        with suppress(Ungrouped):  # until the query is used: group_by may follow
            changed.parts()
        return changed

    def _other(self, other: Any, what: str) -> Query:
        if not isinstance(other, Query):
            raise QueryError(f"{shown(other)} is no query", hint=f'write {what}(db.query("artist"), …)')
        if not self.home.same(other.home):
            raise QueryError(
                "the queries are at home in different places",
                hint="a query reads one database; of sources that are not kept, only such sources",
            )
        return other

    def _joined(self, kind: Any, other: Query, as_: str | None, on: Pairs) -> Self:
        inner = self._other(other, "join").said
        refuse_nested(inner, "joined")
        alias = inner.alias if as_ is None else relation_name(as_)
        if alias in (self.said.alias, *(join.alias for join in self.said.joins)):
            raise QueryError(
                f'there is a relation called "{alias}" in the query already', hint="give it another: as_=…"
            )
        if alias in self._columns():
            raise QueryError(
                f'"{alias}" is a column of {self.said.relation}', hint="give the partner another name: as_=…"
            )
        pairs = tuple((left, right.removeprefix(f"{alias}.")) for left, right in on)
        return self._with(joins=(*self.said.joins, Joined(kind, inner, alias, pairs)))

    def _columns(self) -> tuple[str, ...]:
        """The columns of the relation that the query starts from."""
        catalog = self.home.catalog
        return catalog.scan(catalog.find(self.said.relation)).schema.names

    def _asked(self, kind: Any, other: Query, on: Any) -> Self:
        inner = self._other(other, "exists").said
        refuse_nested(inner, "asked for matches")
        return self._with(asked=(*self.said.asked, PartnerQuery(kind, inner, _on(on))))

    def _related(self, name: str, other: Query, on: Any, *, one: bool) -> Self:
        inner = self._other(other, "related_many").said
        relation_name(name)
        inner = replace(inner, one=True) if one else inner
        if inner.one and not one:
            raise QueryError(f'"{name}" is to be many, and its query gives one', hint="write related_one")
        return self._with(related=(*self.said.related, RelatedQuery(name, inner, _on(on), one)))


def _on(on: Any, left: str | None = None, right: str | None = None) -> Pairs:
    """Which columns are to be equal: a pair, one name that both have, several pairs, or a dict."""
    if left is not None and right is not None and on is None:
        return ((column_name(left), column_name(right)),)
    if left is not None or right is not None or on is None:
        raise QueryError("which columns are to be equal?", hint='write on=("artist_id", "id")')
    if isinstance(on, str):
        return ((on, on),)
    if isinstance(on, Mapping):
        on = list(on.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    match on:
        case (str() as a, str() as b) if isinstance(on, tuple):
            return ((a, b),)
        case tuple() | list() if on:
            return tuple(_pair(pair) for pair in on)  # pyright: ignore[reportUnknownVariableType]
        case _:
            raise QueryError(f"on={shown(on)}", hint='write on=("artist_id", "id"), or a list of such pairs')


def _pair(given: Any) -> tuple[str, str]:
    match given:
        case str():
            return given, given
        case (str() as a, str() as b):
            return a, b
        case _:
            raise QueryError(f"{shown(given)} is no pair of columns", hint='write ("artist_id", "id")')


def _ordered(columns: Iterable[Any], said: Clauses) -> list[tuple[str, Direction]]:
    items: list[tuple[str, Direction]] = []
    for given in columns:
        if isinstance(given, tuple) and len(given) == 2:  # pyright: ignore[reportUnknownArgumentType]
            items += _ordered(given, said)
        elif isinstance(given, str) and given in ("asc", "desc") and items:
            items[-1] = (items[-1][0], given)
        elif isinstance(given, str) and given.endswith((" asc", " desc")):
            items += _ordered(given.rsplit(" ", 1), said)
        else:
            items.append((_sortable(column_name(given), said), "asc"))
    if not items:
        raise QueryError("order_by of nothing", hint='name columns: order_by("rating", "desc", "name")')
    return items


def _sortable(name: str, said: Clauses) -> str:
    for related in said.related:
        if name.partition(".")[0] == related.name:
            raise QueryError(
                f'"{name}" lies beneath: rows are not ordered by what is related to them',
                hint=f'order it inside: the query of "{related.name}" takes order_by; or join it instead',
            )
    return name


__all__ = ["Condition", "Query"]
