"""The nodes of a logical plan: relations as bags of rows, each node a frozen value that knows its schema.

A plan says what, not how: `everview.lowering.lower` makes a circuit of it, `everview.oracle.plans` evaluates it from
scratch.

>>> from everview.scalars.expressions import Column
>>> from everview.types import BIGINT
>>> edge = Scan("edge", Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL"))
>>> starts = Distinct(Project(edge, (edge.column(0),), ("start",)))
>>> print(starts.schema)
start BIGINT NOT NULL
>>> print(starts)
Distinct
  Project a AS start
    Scan edge
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, cast

from everview.errors import SchemaError
from everview.operators.window import NEVER_NULL
from everview.plan.aggregates import of_nothing
from everview.plan.node import (
    Binary,
    Derived,
    Plan,
    UnaryPlan,
    beside,
    check_count,
    check_predicate,
    field_of,
    named,
    node,
    walk,
)
from everview.plan.sets import Except, Intersect, Union
from everview.scalars.expressions import AggregateCall, Expression, Order, WindowCall
from everview.scalars.expressions import Literal as Constant
from everview.types import INTEGER, Array, Field, Schema

JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]
JOIN_KINDS: tuple[JoinKind, ...] = ("inner", "left", "right", "full", "semi", "anti")


# -- leaves


@node
class Scan(Plan):
    """All rows of a table or another view."""

    relation: str
    schema: Schema


@node
class Values(Plan):
    """A relation of literal rows; a row that is listed twice is there twice."""

    rows: tuple[tuple[Constant, ...], ...]
    schema: Schema

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.schema):
                raise SchemaError(
                    f"a row of {len(row)} values for ({self.schema})", hint="give all rows as many values"
                )


@node
class Reference(Plan):
    """The rows that a recursive binding holds so far, inside `Recursive`."""

    name: str
    schema: Schema


# -- one input


@node
class Project(UnaryPlan):
    """The values of some expressions for every row; as many rows as before."""

    input: Plan
    expressions_: tuple[Expression, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        check_count("a projection", self.expressions_, self.names)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return self.expressions_

    def with_expressions(self, *expressions: Expression) -> Project:
        return replace(self, expressions_=expressions)

    def _fields(self) -> Iterable[Field]:
        return named(self.names, (field_of(e, self.input.schema) for e in self.expressions_))


@node
class Filter(UnaryPlan):
    """The rows for which a predicate is true; neither false nor NULL."""

    input: Plan
    predicate: Expression

    def __post_init__(self) -> None:
        check_predicate("a filter", self.predicate)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.predicate,)

    def with_expressions(self, *expressions: Expression) -> Filter:
        (predicate,) = expressions
        return replace(self, predicate=predicate)


@node
class Aggregate(UnaryPlan):
    """One row for each group: the values of the grouping expressions, then the results of the calls.

    Without groups there is always one row, also over no rows. ``names`` are those of groups and calls.
    """

    input: Plan
    groups: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        check_count("an aggregate", (*self.groups, *self.calls), self.names)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*self.groups, *self.calls)

    def with_expressions(self, *expressions: Expression) -> Aggregate:
        count = len(self.groups)
        calls = tuple(e for e in expressions[count:] if isinstance(e, AggregateCall))
        return replace(self, groups=expressions[:count], calls=calls)

    def _fields(self) -> Iterable[Field]:
        groups = [field_of(e, self.input.schema) for e in self.groups]
        calls = [Field("", c.type, c.nullable or not (self.groups or of_nothing(c) is not None)) for c in self.calls]
        return named(self.names, [*groups, *calls])


@node
class Distinct(UnaryPlan):
    """One of each row."""

    input: Plan


@node
class Top(UnaryPlan):
    """The rows at places ``offset`` to ``offset + limit`` in an order, of each partition if there are columns of one.

    Ties are broken by the values of all columns, so the result is a function of the rows.
    """

    input: Plan
    order: Order
    limit: int | None
    offset: int = 0
    partition: tuple[int, ...] = ()

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(by for by, _ in self.order)

    def with_expressions(self, *expressions: Expression) -> Top:
        order = tuple((new, how) for new, (_, how) in zip(expressions, self.order, strict=True))
        return replace(self, order=order)


@node
class Window(UnaryPlan):
    """Every row with the results of window functions after its own columns."""

    input: Plan
    calls: tuple[WindowCall, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        check_count("a window", self.calls, self.names)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return self.calls

    def with_expressions(self, *expressions: Expression) -> Window:
        return replace(self, calls=tuple(e for e in expressions if isinstance(e, WindowCall)))

    def _fields(self) -> Iterable[Field]:
        own = self.input.schema
        calls = [Field("", c.type, c.function not in NEVER_NULL) for c in self.calls]
        return named((*own.names, *self.names), [*own.fields, *calls])


@node
class Explode(UnaryPlan):
    """Every row once for each element of an array, with the element after its own columns.

    A row whose array is empty or NULL is not there; with ``outer`` it is, once, with NULL. With ``place`` the place of
    the element, counted from 0, is a column of that name before the element.
    """

    input: Plan
    array: Expression
    name: str
    outer: bool = False
    place: str | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.array,)

    def with_expressions(self, *expressions: Expression) -> Explode:
        (array,) = expressions
        return replace(self, array=array)

    def _fields(self) -> Iterable[Field]:
        own = self.input.schema
        assert isinstance(self.array.type, Array), "only arrays have elements"
        element = Field("", self.array.type.element)
        if self.place is None:
            return named((*own.names, self.name), [*own.fields, element])
        place = Field("", INTEGER, self.outer)
        return named((*own.names, self.place, self.name), [*own.fields, place, element])


# -- two inputs and more


@node
class Join(Binary):
    """Pairs of rows for which a condition over the columns of both is true; without one, all pairs.

    Outer joins keep rows without a partner, padded with NULL. Semi and anti joins give the rows of the left that
    have a partner, or none.
    """

    left: Plan
    right: Plan
    kind: JoinKind
    condition: Expression | None = None

    def __post_init__(self) -> None:
        if self.kind not in JOIN_KINDS:
            raise SchemaError(f"there is no {self.kind} join", hint=f"one of {', '.join(JOIN_KINDS)}")
        if self.condition is not None:
            check_predicate("a join", self.condition)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return () if self.condition is None else (self.condition,)

    def with_expressions(self, *expressions: Expression) -> Join:
        return replace(self, condition=expressions[0] if expressions else None)

    @cached_property
    def both(self) -> Schema:
        """The columns that the condition reads: of the left, then of the right."""
        return Schema(named(*beside(self.left.schema, self.right.schema)))

    def _fields(self) -> Iterable[Field]:
        if self.kind in ("semi", "anti"):
            return self.left.schema.fields
        count = len(self.left.schema)
        padded = (self.kind in ("right", "full"), self.kind in ("left", "full"))
        return [
            Field(f.name, f.type, f.nullable or padded[column >= count]) for column, f in enumerate(self.both.fields)
        ]


@node
class Asof(Binary):
    """Each row of the left with the row of the right that is in force at its time; see `Stream.asof_join`.

    ``keys`` and ``at`` are columns of the left and the right.
    """

    left: Plan
    right: Plan
    keys: tuple[tuple[int, int], ...]
    at: tuple[int, int]
    direction: Literal["backward", "forward", "nearest"] = "backward"
    tolerance: Any = None
    strict: bool = False
    how: Literal["inner", "left"] = "inner"

    def _fields(self) -> Iterable[Field]:
        count = len(self.left.schema)
        padded = self.how == "left"
        both = named(*beside(self.left.schema, self.right.schema))
        return [Field(f.name, f.type, f.nullable or (padded and column >= count)) for column, f in enumerate(both)]


@node
class During(Binary):
    """The rows of the left whose time it is: from ``since`` on and before ``until``, which are moments of each row.

    The current time is the latest in the right, a relation of one column; if that is empty, no row is there. A bound
    that is None is none, and neither is ever NULL.
    """

    left: Plan
    right: Plan
    since: Expression | None = None
    until: Expression | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(bound for bound in (self.since, self.until) if bound is not None)

    def with_expressions(self, *expressions: Expression) -> During:
        given = iter(expressions)
        since = None if self.since is None else next(given)
        return replace(self, since=since, until=None if self.until is None else next(given))

    def _fields(self) -> Iterable[Field]:
        return self.left.schema.fields


@node
class Lateral(Binary):
    """Each row of the left with the rows of the right for it: the right reads the left row as `Outer` of depth 1.

    A left lateral join keeps rows for which the right has none. Decorrelation turns it into joins.
    """

    left: Plan
    right: Plan
    kind: Literal["inner", "left"] = "inner"

    def _fields(self) -> Iterable[Field]:
        count = len(self.left.schema)
        both = named(*beside(self.left.schema, self.right.schema))
        return [
            Field(f.name, f.type, f.nullable or (self.kind == "left" and column >= count))
            for column, f in enumerate(both)
        ]


@node
class Recursive(Derived):
    """A body over relations that are defined by themselves: the least sets that their plans allow.

    The plans and the body read them by `Reference`; set semantics, so a fixed point ends when nothing new comes. The
    relations named in ``bags`` keep every row as often as their plan derives it: ``R = plan(R)`` with weights, which
    is Σᵢ stepⁱ(start) where the plan is linear (see `references.not_linear`). On data with a cycle that sum has no
    end, and the loop's bounds notice it.

    With a ``level``, more steps than that are an error. It bounds an answer that is computed once. No view has it, for
    a change takes fewer steps than the whole.

    One that ``inflates`` keeps the rows of every round in the next, by its plans, and so may also ask what is not there
    yet: its result is that of the rounds from nothing, and no least set.
    """

    bindings: tuple[tuple[str, Plan], ...]
    body: Plan
    bags: tuple[str, ...] = ()
    inflates: bool = False
    level: int | None = None

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (*(plan for _, plan in self.bindings), self.body)

    def with_inputs(self, *inputs: Plan) -> Recursive:
        bindings = tuple((name, plan) for (name, _), plan in zip(self.bindings, inputs[:-1], strict=True))
        return replace(self, bindings=bindings, body=inputs[-1])

    def _fields(self) -> Iterable[Field]:
        return self.body.schema.fields


@node
class Multiway(Derived):
    """The natural join of many relations: a row for every binding of the variables that all of them hold.

    ``variables`` numbers the variable in each column of each input, None for one that nobody reads; NULL binds
    nothing that two inputs share, unless the join is ``null_safe``: then it is a value like any other. ``select`` are
    the variables of a result; ``order``, if given, is the one in which all of them are to be bound.
    """

    inputs_: tuple[Plan, ...]
    variables: tuple[tuple[int | None, ...], ...]
    select: tuple[int, ...]
    names: tuple[str, ...]
    order: tuple[int, ...] | None = None
    null_safe: bool = False

    def __post_init__(self) -> None:
        check_count("a multiway join", self.select, self.names)
        for plan, terms in zip(self.inputs_, self.variables, strict=True):
            check_count("an input of a multiway join", plan.schema.fields, terms)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return self.inputs_

    def with_inputs(self, *inputs: Plan) -> Multiway:
        return replace(self, inputs_=inputs)

    @cached_property
    def shared(self) -> frozenset[int]:
        """The variables of the join: each stands in several columns."""
        seen = [v for terms in self.variables for v in terms if v is not None]
        return frozenset(v for v in seen if seen.count(v) > 1)

    def _fields(self) -> Iterable[Field]:
        fields: dict[int, Field] = {}
        for plan, terms in zip(self.inputs_, self.variables, strict=True):
            for variable, field in zip(terms, plan.schema.fields, strict=True):
                if variable is not None:
                    known = fields.setdefault(variable, field)
                    if variable in self.shared:
                        nullable = self.null_safe and (known.nullable or field.nullable)
                        fields[variable] = Field(known.name, known.type, nullable)
        return named(self.names, (fields[v] for v in self.select))


# -- all nodes: a match over one of these unions can be checked to be complete

Leaf = Scan | Values | Reference
OverOne = Project | Filter | Explode | Aggregate | Distinct | Top | Window
OverSeveral = Join | Asof | During | Lateral | Multiway | Union | Intersect | Except | Recursive
PlanNode = Leaf | OverOne | OverSeveral


def closed(plan: Plan) -> PlanNode:
    """The plan, known to be one of the nodes of this module."""
    return cast(PlanNode, plan)


def scans(plan: Plan) -> tuple[str, ...]:
    """The relations that a plan reads, once each."""
    return tuple(dict.fromkeys(p.relation for p in walk(plan) if isinstance(p, Scan)))
