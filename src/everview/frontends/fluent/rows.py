"""The rows that a query is computed from: its relation, the joined ones beside it, filtered by WHERE and EXISTS."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from everview.errors import QueryError, TypeMismatch
from everview.frontends.fluent.binding import bound
from everview.frontends.fluent.clauses import Clauses, Joined, Pairs, PartnerQuery
from everview.frontends.fluent.names import FluentScope, ReadRelation
from everview.frontends.fluent.selection import is_records
from everview.frontends.fluent.shape import RecordShape
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
    """The pairs of columns that a join made equal: in every row if it is ``inner``, else where there is a partner."""

    lefts: tuple[int, ...]
    rights: tuple[int, ...]
    inner: bool


@dataclass(frozen=True, slots=True)
class FlatRows:
    """Flat rows: their plan, the relations side by side in them, and the first column of each."""

    plan: Plan
    scope: FluentScope
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
        known: set[int] = set(by)
        while True:
            count = len(known)
            for number, entry in enumerate(self.scope.entries):
                if entry.follows(known):
                    known.update(self.places(number))
            for beside in self.besides:
                if known.issuperset(beside.lefts):
                    known.update(beside.rights)
                if beside.inner and known.issuperset(beside.rights):
                    known.update(beside.lefts)
            if len(known) == count:
                return frozenset(known)

    def key(self) -> tuple[int, ...] | None:
        """The columns that tell rows apart; None if nothing does."""
        columns: tuple[int, ...] = ()
        for number, entry in enumerate(self.scope.entries):
            if self.determined(columns).issuperset(self.places(number)):
                continue
            if entry.key is None:
                return None
            columns += entry.key
        return columns


def rows_of(query: Clauses, relations: Readable) -> FlatRows:
    """The rows of a query after WHERE and EXISTS: of its relation, joined with the others."""
    base = scanned(query, relations)
    whole = _joined(base, query, relations)
    tests = [bound(condition, whole.column) for condition in query.where]
    width = len(base.plan.schema)
    own = [test for test in tests if all(column < width for column in columns_of(test))]
    if own:  # where it reads the first relation only, before anything is joined
        whole = _joined(_filtered(base, own), query, relations)
    rows = _filtered(whole, [test for test in tests if test not in own])
    for asked in query.asked:
        rows = _asked(rows, asked, relations)
    return rows


def scanned(query: Clauses, relations: Readable) -> FlatRows:
    """All rows of the relation that a query starts from."""
    name = relations.find(query.relation)
    plan = relations.scan(name)
    record = RecordShape(tuple((column, number) for number, column in enumerate(plan.schema.names)))
    key = relations.key(name)
    entry = ReadRelation(query.alias, name, record, tuple(plan.schema.index(k) for k in key) if key else None)
    return FlatRows(plan, FluentScope((entry,)), (0,))


def _filtered(rows: FlatRows, tests: list[Expression]) -> FlatRows:
    test = conjunction(tests)
    if test is None:
        return rows
    return FlatRows(Filter(rows.plan, test), rows.scope, rows.starts, rows.besides)


def _joined(rows: FlatRows, query: Clauses, relations: Readable) -> FlatRows:
    for join in query.joins:
        rows = _beside(rows, join, relations)
    return rows


def _beside(rows: FlatRows, join: Joined, relations: Readable) -> FlatRows:
    from everview.frontends.fluent.flat import flat

    other = flat(join.query, relations, tuple(right for _, right in join.pairs)).whole(join.query)
    plan, record, width = other.plan, other.record, len(rows.plan.schema)
    if join.kind == "left":
        plan, record = _with_presence(plan, record)
    may_be_null = all(plan.schema.fields[column].nullable for column in other.key or ())
    presence = () if record.present is None or not may_be_null else (record.present,)
    lefts = tuple(rows.scope.column(left) for left, _ in join.pairs)
    test = equal(rows.plan, lefts, plan, other.places, join.pairs)
    entry = ReadRelation(join.alias, relations.find(join.query.relation), record, other.key, presence).shifted(width)
    beside = Beside(lefts, tuple(column + width for column in other.places), join.kind == "inner")
    return FlatRows(
        Join(rows.plan, plan, join.kind, test),
        FluentScope((*rows.scope.entries, entry)),
        (*rows.starts, width),
        (*rows.besides, beside),
    )


def _with_presence(plan: Plan, record: RecordShape) -> tuple[Plan, RecordShape]:
    """The plan with a column that is never NULL: after a left join it is NULL exactly where there is no partner."""
    column = next((column for column, field in enumerate(plan.schema.fields) if not field.nullable), None)
    if column is None:
        column = len(plan.schema)
        plan = Project(plan, (*plan.columns, TRUE), (*plan.schema.names, "is there"))
    return plan, RecordShape(record.fields, column)


def _asked(rows: FlatRows, asked: PartnerQuery, relations: Readable) -> FlatRows:
    from everview.frontends.fluent.flat import flat

    other = flat(asked.query, relations, tuple(right for _, right in asked.pairs)).whole(asked.query)
    lefts = tuple(rows.scope.column(left) for left, _ in asked.pairs)
    test = equal(rows.plan, lefts, other.plan, other.places, asked.pairs)
    return FlatRows(Join(rows.plan, other.plan, asked.kind, test), rows.scope, rows.starts, rows.besides)


def equal(
    left: Plan, lefts: tuple[int, ...], right: Plan, rights: tuple[int, ...], pairs: Pairs, *, nulls: bool = False
) -> Expression | None:
    """The condition that columns of two plans are equal; with ``nulls`` NULL equals NULL."""
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
    """Refuse a query with rows beneath where only flat rows can be joined or tested."""
    if query.related or any(is_records(one.what) for one in query.selected):
        raise QueryError(
            f"a query with related rows cannot be {what}", hint="relate them to the outer query, or leave them out"
        )
