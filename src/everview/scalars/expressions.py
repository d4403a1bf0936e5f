"""Scalar expressions over the row of a plan: typed, immutable, hashable, and the same `repr` in every run.

An expression knows its type and whether it may be NULL from its construction; `everview.plan.typing` constructs
calls and casts by the rules of SQL. Values of literals are what Python has for the type: a `datetime.datetime` in
UTC for TIMESTAMP, a `decimal.Decimal` for DECIMAL, a tuple for ARRAY; an interval is a number of months or of
microseconds.

>>> from everview.types import BIGINT
>>> from everview.plan.typing import call, literal
>>> total = call("add", Column(0, "x", BIGINT, nullable=False), literal(1))
>>> total.type, total.nullable, str(total)
(BIGINT, False, 'x + 1L')
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from typing import Literal as Either

from everview.scalars.kinds import VOID
from everview.types import BOOLEAN, DATE, TIMESTAMP, VARIANT, Type

TRY: Final = "try_"  # functions of that prefix give NULL where the others raise


class Expression:
    """A function of a row: a value of `type`, NULL only if `nullable`."""

    __slots__ = ()

    type: Type
    nullable: bool

    @property
    def children(self) -> tuple[Expression, ...]:
        """The direct parts of an expression, over the same row."""
        return ()

    def with_children(self, children: Sequence[Expression]) -> Expression:
        """The same expression with other children of the same types."""
        assert not children
        return self

    def __str__(self) -> str:
        from everview.scalars.text import sql

        return sql(self)


def _tell(expression: Expression, **fields: Any) -> None:
    for name, value in fields.items():
        object.__setattr__(expression, name, value)


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """A field of the row, by position; the name is for people."""

    index: int
    name: str
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A constant; None is the NULL of its type."""

    value: Any
    type: Type
    nullable: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _tell(self, nullable=self.value is None)


NULL: Final = Literal(None, VOID)
TRUE: Final = Literal(True, BOOLEAN)
FALSE: Final = Literal(False, BOOLEAN)


class OverArguments(Expression):
    """The base of expressions whose children are their arguments."""

    __slots__ = ()
    arguments: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_children(self, children: Sequence[Expression]) -> Expression:
        return replace(self, arguments=tuple(children))  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, slots=True)
class Call(OverArguments):
    """A scalar function by its name in `everview.scalars.functions`; its arguments have the types that it takes."""

    function: str
    arguments: tuple[Expression, ...]
    type: Type
    nullable: bool


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """A value as another type; a value that does not fit raises, or becomes NULL with `try_`."""

    argument: Expression
    type: Type
    try_: bool = False
    nullable: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        null_inside = self.argument.type == VARIANT  # a null of a variant is NULL of another type
        _tell(self, nullable=self.try_ or self.argument.nullable or null_inside)

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.argument,)

    def with_children(self, children: Sequence[Expression]) -> Expression:
        (argument,) = children
        return replace(self, argument=argument)


@dataclass(frozen=True, slots=True)
class UserCall(OverArguments):
    """A user's function by its registered name."""

    name: str
    arguments: tuple[Expression, ...]
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Now(Expression):
    """The moment of the tick, or its day: the same for all rows of a tick."""

    kind: Either["timestamp", "date"] = "timestamp"
    type: Type = field(init=False, repr=False, compare=False)
    nullable: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _tell(self, type=TIMESTAMP if self.kind == "timestamp" else DATE, nullable=False)


@dataclass(frozen=True, slots=True)
class GivenValue(Expression):
    """The value of a parameter of a query that is planned once for all values: see `giving`."""

    number: int
    type: Type
    nullable: bool = field(default=False, init=False, repr=False, compare=False)


# -- Functions of arrays that take functions.


@dataclass(frozen=True, slots=True)
class LambdaVariable(Expression):
    """A variable of a lambda function; no other variable around it has its number."""

    number: int
    name: str
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class LambdaCall(Expression):
    """A function of arrays that applies others to elements: ``transform(array, x -> x + 1)``.

    Each body is over the row around it, and over its `variables`.
    """

    function: str
    arguments: tuple[Expression, ...]
    bodies: tuple[Expression, ...]
    variables: tuple[tuple[LambdaVariable, ...], ...]
    type: Type
    nullable: bool

    @property
    def children(self) -> tuple[Expression, ...]:
        return (*self.arguments, *self.bodies)

    def with_children(self, children: Sequence[Expression]) -> Expression:
        count = len(self.arguments)
        return replace(self, arguments=tuple(children[:count]), bodies=tuple(children[count:]))


# -- Subqueries, which decorrelation turns into joins. Their plans are `everview.plan.node.Plan`.


@dataclass(frozen=True, slots=True)
class Outer(Expression):
    """A column of the row of an enclosing query; depth 1 is the nearest."""

    index: int
    depth: int
    name: str
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Exists(Expression):
    """Whether the plan has any row."""

    plan: Any
    negated: bool = False
    type: Type = field(init=False, repr=False, compare=False)
    nullable: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _tell(self, type=BOOLEAN, nullable=False)


@dataclass(frozen=True, slots=True)
class InQuery(OverArguments):
    """Whether the tuple of arguments is a row of the plan; NULL if no row equals it, but a NULL might."""

    arguments: tuple[Expression, ...]
    plan: Any
    negated: bool = False
    type: Type = field(init=False, repr=False, compare=False)
    nullable: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        unknown = any(a.nullable for a in self.arguments) or any(f.nullable for f in self.plan.schema.fields)
        _tell(self, type=BOOLEAN, nullable=unknown)


@dataclass(frozen=True, slots=True)
class Scalar(Expression):
    """The one value of the plan's one row; NULL when it has none, an error when it has more."""

    plan: Any
    type: Type = field(init=False, repr=False, compare=False)
    nullable: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _tell(self, type=self.plan.schema.fields[0].type, nullable=True)


# -- Calls over many rows, which only Aggregate and Window hold.

Order = tuple[tuple[Expression, str], ...]  # (by what, "asc | desc [nulls first | nulls last]")


USER: Final = "user:"  # before the name of a user's aggregate


@dataclass(frozen=True, slots=True)
class AggregateCall(Expression):
    """An aggregate function over the rows of a group for which `filter` holds; a user's is called ``user:name``."""

    function: str
    arguments: tuple[Expression, ...]
    distinct: bool
    filter: Expression | None
    order: Order
    type: Type
    nullable: bool

    @property
    def children(self) -> tuple[Expression, ...]:
        kept = () if self.filter is None else (self.filter,)
        return (*self.arguments, *kept, *(by for by, _ in self.order))

    def with_children(self, children: Sequence[Expression]) -> Expression:
        rest = iter(children)
        arguments = _next(rest, self.arguments)
        kept = None if self.filter is None else next(rest)
        return replace(self, arguments=arguments, filter=kept, order=_reordered(self.order, rest))


@dataclass(frozen=True, slots=True)
class Frame:
    """Which rows around the current one a window function sees.

    `unit` is "rows", "groups" of peers, or "range"; a bound is None for unbounded, else an offset: 0 is the current row
    or its peers, -1 the one before. In a range other offsets are distances of the sort key: numbers, or literals of
    intervals.
    """

    unit: Either["rows", "range", "groups"]
    start: Any
    end: Any


@dataclass(frozen=True, slots=True)
class ExcludingFrame(Frame):
    """A frame without some of its rows: the current row, its peers ("group"), or its peers without itself ("ties")."""

    exclude: Either["current row", "group", "ties"] = "current row"


@dataclass(frozen=True, slots=True)
class WindowCall(Expression):
    """A window function over the rows of a partition, in order; `frame` None is the default of SQL."""

    function: str
    arguments: tuple[Expression, ...]
    partition: tuple[Expression, ...]
    order: Order
    frame: Frame | None
    type: Type
    nullable: bool
    filter: Expression | None = None

    @property
    def children(self) -> tuple[Expression, ...]:
        kept = () if self.filter is None else (self.filter,)
        return (*self.arguments, *kept, *self.partition, *(by for by, _ in self.order))

    def with_children(self, children: Sequence[Expression]) -> Expression:
        rest = iter(children)
        arguments = _next(rest, self.arguments)
        kept = None if self.filter is None else next(rest)
        partition = _next(rest, self.partition)
        order = _reordered(self.order, rest)
        return replace(self, arguments=arguments, filter=kept, partition=partition, order=order)


@dataclass(frozen=True, slots=True)
class AggregateWindowCall(WindowCall):
    """An aggregate of a frame's values in an order of their own, or of the different ones among them."""

    distinct: bool = False
    inner: Order = ()

    @property
    def children(self) -> tuple[Expression, ...]:
        return (*super(AggregateWindowCall, self).children, *(by for by, _ in self.inner))

    def with_children(self, children: Sequence[Expression]) -> Expression:
        count = len(children) - len(self.inner)
        outer = super(AggregateWindowCall, self).with_children(children[:count])
        assert isinstance(outer, AggregateWindowCall), "the same call with other children"
        return replace(outer, inner=_reordered(self.inner, iter(children[count:])))


def _next(rest: Iterator[Expression], old: tuple[Expression, ...]) -> tuple[Expression, ...]:
    return tuple(next(rest) for _ in old)


def _reordered(order: Order, rest: Iterator[Expression]) -> Order:
    return tuple((next(rest), direction) for _, direction in order)


# -- Walking


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all its parts, from the outside in; not the plans of subqueries.

    >>> from everview.plan.typing import call, literal
    >>> [str(e) for e in walk(call("add", literal(1), literal(2)))]
    ['1 + 2', '1', '2']
    """
    yield expression
    for child in expression.children:
        yield from walk(child)


def rewritten(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with `change` applied to every part, from the inside out."""
    children = expression.children
    if children:
        changed = tuple(rewritten(child, change) for child in children)
        if any(new is not old for new, old in zip(changed, children, strict=True)):
            expression = expression.with_children(changed)
    return change(expression)


def columns_of(expression: Expression) -> frozenset[int]:
    """The positions of the columns that an expression reads.

    >>> from everview.types import BIGINT
    >>> columns_of(Cast(Column(3, "x", BIGINT), BIGINT))
    frozenset({3})
    """
    return frozenset(e.index for e in walk(expression) if isinstance(e, Column))


def moved(expression: Expression, places: Callable[[int], int]) -> Expression:
    """The expression over a row whose columns stand elsewhere: `places` says where."""

    def move(e: Expression) -> Expression:
        return replace(e, index=places(e.index)) if isinstance(e, Column) else e

    return rewritten(expression, move)
