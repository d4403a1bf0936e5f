"""Conditions taken apart: conjuncts, the equalities that join two sides, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from everview.operators.linear import recodes
from everview.plan.typing import call
from everview.scalars.expressions import TRUE, Call, Cast, Column, Expression, columns_of, moved, walk
from everview.scalars.kinds import INTERVALS
from everview.types import Field, Type


@dataclass(frozen=True, slots=True)
class Key:
    """An equality between a value of the left and one of the right, each over its own side's columns."""

    left: Expression
    right: Expression
    null_safe: bool = False  # NULL equals NULL


@dataclass(frozen=True, slots=True)
class Split:
    """The condition of a join: its keys, and what is left of it over the columns of both."""

    keys: tuple[Key, ...]
    rest: Expression | None


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The parts that must all be true."""
    if condition is None or condition == TRUE:
        return
    if isinstance(condition, Call) and condition.function == "and":
        for part in condition.arguments:
            yield from conjuncts(part)
    else:
        yield condition


def conjunction(parts: Iterable[Expression]) -> Expression | None:
    """The condition that all parts are true; None if there are none."""
    conjuncts_ = tuple(dict.fromkeys(parts))
    if not conjuncts_:
        return None
    return conjuncts_[0] if len(conjuncts_) == 1 else call("and", *conjuncts_)


def split(condition: Expression | None, width: int) -> Split:
    """Split the condition of a join whose left side has ``width`` columns."""
    keys: list[Key] = []
    rest: list[Expression] = []
    for part in conjuncts(condition):
        key = _key(part, width)
        if key is None:
            rest.append(part)
        elif key not in keys:
            keys.append(key)
    return Split(tuple(keys), conjunction(rest))


def _key(part: Expression, width: int) -> Key | None:
    if not (isinstance(part, Call) and part.function in ("equal", "null_safe_equal")):
        return None
    a, b = _stripped(*part.arguments)
    if _side(a, width) == 1 and _side(b, width) == 0:
        a, b = b, a
    if _side(a, width) != 0 or _side(b, width) != 1 or _is_computed_interval(part, a.type):
        return None
    return Key(a, moved(b, lambda column: column - width), part.function == "null_safe_equal")


def _is_computed_interval(part: Expression, type_: Type) -> bool:
    """Whether intervals are compared that no column holds, as ``a.at - a.since = b.at - b.since``: they are no keys."""
    return type_ in INTERVALS and not any(isinstance(e, Column) and e.type in INTERVALS for e in walk(part))


def _side(expression: Expression, width: int) -> int | None:
    """The side that an expression reads: 0 for the left only, 1 for the right only, else None."""
    sides = {int(column >= width) for column in columns_of(expression)}
    return sides.pop() if len(sides) == 1 else None


def _stripped(a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """Both operands without widening casts, if they then have one type."""
    x, y = _bare(a), _bare(b)
    return (x, y) if x.type == y.type else (a, b)


def _bare(expression: Expression) -> Expression:
    if isinstance(expression, Cast) and recodes(Field("", expression.argument.type), Field("", expression.type)):
        return _bare(expression.argument)
    return expression
