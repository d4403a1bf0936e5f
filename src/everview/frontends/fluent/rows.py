"""The rows that a query is computed from: its relation beside those that it joins, and of these what is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from everview.errors import QueryError, TypeMismatch
from everview.frontends.fluent.binding import bound
from everview.frontends.fluent.clauses import Asked, Clauses, Joined, Pairs
from everview.frontends.fluent.names import Entry, Scope
from everview.frontends.fluent.selection import is_records
from everview.frontends.fluent.shape import Record
from everview.plan.catalog import Readable
from everview.plan.conditions import conjunction
from everview.plan.node import Plan
from everview.plan.nodes import Filter, Join, Project
from everview.plan.typing import call
from everview.scalars.coercion import FRACTIONS, is_number
from everview.scalars.expressions import TRUE, Expression, columns_of
from everview.types import Type


@dataclass(frozen=True, slots=True)
class Beside:
    """A join that was made: which columns are equal; only if it is ``inner``, in every row."""

    lefts: tuple[int, ...]
    rights: tuple[int, ...]
    inner: bool


@dataclass(frozen=True, slots=True)
class Rows:
    """Flat rows, the relations that they are made of, and where each begins."""

    plan: Plan
    scope: Scope
    starts: tuple[int, ...]
    besides: tuple[Beside, ...] = ()

    def column(self, name: str) -> Expression:
        return self.plan.column(self.scope.column(name))

    def places(self, entry: int) -> range:
        """All columns of a relation, also those that are not shown."""
        ends = (*self.starts[1:], len(self.plan.schema))
        return range(self.starts[entry], ends[entry])

    def determined(self, by: Iterable[int]) -> frozenset[int]:
        """The columns whose values follow from those of others: by keys, and by the equalities of joins."""
        found: set[int] = set(by)
        while True:
            count = len(found)
            for at, entry in enumerate(self.scope.entries):
                if entry.follows(found):
                    found.update(self.places(at))
            for beside in self.besides:
                if found.issuperset(beside.lefts):
                    found.update(beside.rights)
                if beside.inner and found.issuperset(beside.rights):
                    found.update(beside.lefts)
            if len(found) == count:
                return frozenset(found)

    def key(self) -> tuple[int, ...] | None:
        """The columns that tell rows apart; None if nothing does."""
        found: tuple[int, ...] = ()
        for at, entry in enumerate(self.scope.entries):
            if self.determined(found).issuperset(self.places(at)):
                continue
            if entry.key is None:
                return None
            found += entry.key
        return found


def rows_of(query: Clauses, relations: Readable) -> Rows:
    """The rows that WHERE and EXISTS leave of the relation and what it joins."""
    base = scanned(query, relations)
    whole = _joined(base, query, relations)
    tests = [bound(condition, whole.column) for condition in query.where]
    width = len(base.plan.schema)
    own = [test for test in tests if all(at < width for at in columns_of(test))]
    if own:  # where it reads the first relation only, before anything is joined
        whole = _joined(_filtered(base, own), query, relations)
    found = _filtered(whole, [test for test in tests if test not in own])
    for asked in query.asked:
        found = _asked(found, asked, relations)
    return found


def scanned(query: Clauses, relations: Readable) -> Rows:
    """The relation that a query is of, as it is."""
    name = relations.find(query.relation)
    plan = relations.scan(name)
    record = Record(tuple((column, at) for at, column in enumerate(plan.schema.names)))
    key = relations.key(name)
    entry = Entry(query.alias, name, record, tuple(plan.schema.index(k) for k in key) if key else None)
    return Rows(plan, Scope((entry,)), (0,))


def _filtered(rows: Rows, tests: list[Expression]) -> Rows:
    test = conjunction(tests)
    if test is None:
        return rows
    return Rows(Filter(rows.plan, test), rows.scope, rows.starts, rows.besides)


def _joined(rows: Rows, query: Clauses, relations: Readable) -> Rows:
    for join in query.joins:
        rows = _beside(rows, join, relations)
    return rows


def _beside(rows: Rows, join: Joined, relations: Readable) -> Rows:
    from everview.frontends.fluent.flat import flat

    found = flat(join.query, relations, tuple(right for _, right in join.pairs)).whole(join.query)
    plan, record, width = found.plan, found.record, len(rows.plan.schema)
    if join.kind == "left":
        plan, record = _with_presence(plan, record)
    may_be_null = all(plan.schema.fields[at].nullable for at in found.key or ())
    presence = () if record.present is None or not may_be_null else (record.present,)
    lefts = tuple(rows.scope.column(left) for left, _ in join.pairs)
    test = equal(rows.plan, lefts, plan, found.places, join.pairs)
    entry = Entry(join.alias, relations.find(join.query.relation), record, found.key, presence).shifted(width)
    beside = Beside(lefts, tuple(at + width for at in found.places), join.kind == "inner")
    return Rows(
        Join(rows.plan, plan, join.kind, test),
        Scope((*rows.scope.entries, entry)),
        (*rows.starts, width),
        (*rows.besides, beside),
    )


def _with_presence(plan: Plan, record: Record) -> tuple[Plan, Record]:
    """With a column that is never NULL, so that it is NULL only where there is no partner."""
    at = next((at for at, field in enumerate(plan.schema.fields) if not field.nullable), None)
    if at is None:
        at = len(plan.schema)
        plan = Project(plan, (*plan.columns, TRUE), (*plan.schema.names, "is there"))
    return plan, Record(record.fields, at)


def _asked(rows: Rows, asked: Asked, relations: Readable) -> Rows:
    from everview.frontends.fluent.flat import flat

    found = flat(asked.query, relations, tuple(right for _, right in asked.pairs)).whole(asked.query)
    lefts = tuple(rows.scope.column(left) for left, _ in asked.pairs)
    test = equal(rows.plan, lefts, found.plan, found.places, asked.pairs)
    return Rows(Join(rows.plan, found.plan, asked.kind, test), rows.scope, rows.starts, rows.besides)


def equal(
    left: Plan, lefts: tuple[int, ...], right: Plan, rights: tuple[int, ...], pairs: Pairs, *, nulls: bool = False
) -> Expression | None:
    """That columns of two plans are equal, side by side; with ``nulls`` NULL equals NULL."""
    width, tests = len(left.schema), list[Expression]()
    for a, b, (name, other) in zip(lefts, rights, pairs, strict=True):
        x, y = left.column(a), right.column(b)
        if not joinable(x.type, y.type):
            raise TypeMismatch(
                f"{name} of type {x.type} is compared with {other} of type {y.type}",
                hint="columns that are to be equal are of one type",
            )
        moved = type(y)(b + width, y.name, y.type, y.nullable)
        null_safe = nulls and x.nullable and y.nullable
        tests.append(call("null_safe_equal" if null_safe else "equal", x, moved))
    return conjunction(tests)


def joinable(a: Type, b: Type) -> bool:
    """Whether values of two types are equal as they are: of one type, or both exact numbers, or both not."""
    return a == b or (is_number(a) and is_number(b) and (a in FRACTIONS) == (b in FRACTIONS))


def refuse_nested(query: Clauses, what: str) -> None:
    """A query that is joined or asked is one of flat rows."""
    if query.related or any(is_records(one.what) for one in query.selected):
        raise QueryError(
            f"a query with related rows cannot be {what}", hint="relate them to the outer query, or leave them out"
        )
