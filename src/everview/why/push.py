"""Known values of columns, pushed through a node of a plan to the rows that it reads.

A *wanted* maps columns to the values that they must have; NULL is a value like any other. Whatever cannot be pushed is
left out: rows that are found by less are looked at once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from everview.oracle.values import inward, outward
from everview.plan.conditions import conjuncts
from everview.plan.nodes import Aggregate, Distinct, Explode, Filter, OverOne, Project, Top, Window
from everview.scalars.expressions import Call, Column, Expression, Literal
from everview.types import Schema, Type

Row = tuple[Any, ...]
Entry = tuple[Row, int]
Wanted = Mapping[int, Any]


def same(a: Any, b: Any) -> bool:
    """Equality in which NaN equals NaN, of which there is one object."""
    return a is b or a == b


def agrees(row: Row, wanted: Wanted) -> bool:
    """Whether a row has the wanted values."""
    return all(same(row[column], value) for column, value in wanted.items())


def parted(wanted: Wanted, width: int) -> tuple[dict[int, Any], dict[int, Any]]:
    """What is wanted of the two sides of a join, of which the left has so many columns."""
    left = {column: value for column, value in wanted.items() if column < width}
    right = {column - width: value for column, value in wanted.items() if column >= width}
    return left, right


def pushed(plan: OverOne, wanted: Wanted) -> Wanted | None:
    """What the input's rows must have for the node's rows to have what is wanted; None if no row can."""
    match plan:
        case Project(_, expressions, _):
            return _through(expressions, wanted)
        case Filter(_, predicate):
            return _both(wanted, constants(predicate))
        case Distinct():
            return wanted
        case Aggregate(_, groups, _, _):
            return _through(groups, {c: v for c, v in wanted.items() if c < len(groups)})
        case Top(partition=partition):
            return {c: v for c, v in wanted.items() if c in partition}
        case Window(input_, calls, _):
            shared = [{e.index for e in call.partition if isinstance(e, Column)} for call in calls]
            kept = set.intersection(*shared) if shared else set(range(len(input_.schema)))
            return {c: v for c, v in wanted.items() if c in kept}
        case Explode(input_):
            return {c: v for c, v in wanted.items() if c < len(input_.schema)}


def constants(predicate: Expression | None) -> dict[int, Any]:
    """The columns that a condition compares with constants for equality, and the constants."""
    known: dict[int, Any] = {}
    for part in conjuncts(predicate):
        match part:
            case Call("equal", (Column(index) as column, Literal(value) as constant)) if value is not None:
                if column.type == constant.type:
                    known[index] = inside(constant.type, value)
            case _:
                pass
    return known


def is_exact(expressions: Iterable[Expression]) -> bool:
    """Whether all expressions are plain columns, so that every wanted value can be pushed down."""
    return all(isinstance(e, Column) for e in expressions)


def _through(expressions: Iterable[Expression], wanted: Wanted) -> Wanted | None:
    known: dict[int, Any] = {}
    for column, expression in enumerate(expressions):
        if column not in wanted:
            continue
        value = wanted[column]
        match expression:
            case Column(index):
                if not same(known.setdefault(index, value), value):
                    return None
            case Literal(constant, type_):
                if not same(inside(type_, constant), value):
                    return None
            case _:
                pass
    return known


def _both(a: Wanted, b: Wanted) -> Wanted | None:
    if any(column in a and not same(a[column], value) for column, value in b.items()):
        return None
    return {**a, **b}


# -- values inside explanations, which can be compared and hashed, and as people see them


def inside(type_: Type, value: Any) -> Any:
    """A value as explanations hold it."""
    return _changed(inward, type_, value)


def outside(schema: Schema, row: Row) -> Row:
    """A row as people see it."""
    return tuple(_changed(outward, type_, value) for type_, value in zip(schema.types, row, strict=True))


def _changed(how: Callable[[Type], Any], type_: Type, value: Any) -> Any:
    change = how(type_) if value is not None else None
    return value if change is None else change(value)
