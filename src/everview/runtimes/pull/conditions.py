"""Conditions of plans as conditions of sources, where a source decides them exactly as the evaluator does.

>>> from everview.scalars.expressions import Column
>>> from everview.plan.typing import call, literal
>>> from everview.types import BIGINT, Schema
>>> rated = Schema.parse("id BIGINT, rating BIGINT")
>>> told(call("greater", Column(1, "rating", BIGINT), literal(3)), rated)
Compare(column='rating', operator='>', value=3)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from everview.codes.coerce import Unfit, coerce
from everview.runtimes.pull.demand import Among, Row, Sort
from everview.runtimes.pull.simple import plain, widening
from everview.scalars.expressions import Call, Cast, Column, Expression, Literal
from everview.sources.protocol import All, Any_, Compare, Condition, Not, Operator
from everview.types import BIGINT, BOOLEAN, DOUBLE, FLOAT, STRING, Schema

COMPARISONS: Final[dict[str, Operator]] = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
TURNED: Final[dict[str, str]] = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
MOST_PAIRS = 32  # keys of several columns that are written out


def told(expression: Expression, schema: Schema) -> Condition | None:
    """The expression as a condition that a source can decide; None if there is none."""
    match expression:
        case Column(index) if expression.type == BOOLEAN:
            return Compare(schema.names[index], "=", True)
        case Call("and" | "or" | "not" as name, arguments):
            parts = [told(argument, schema) for argument in arguments]
            return None if None in parts else _JOINED[name](tuple(part for part in parts if part is not None))
        case Call("is_null" | "is_not_null" as name, (Column(index),)):
            return Compare(schema.names[index], "is" if name == "is_null" else "is not", None)
        case Call("in", (value, *chosen)):
            return _in(value, chosen, schema)
        case Call("like", (Column(index), Literal(str() as pattern))) if "\\" not in pattern:
            return Compare(schema.names[index], "like", pattern) if schema.fields[index].type == STRING else None
        case Call(name, (a, b)) if name in COMPARISONS:
            return _against(name, a, b, schema) or _against(TURNED.get(name, name), b, a, schema)
        case _:
            return None


_JOINED: Final[dict[str, Callable[[tuple[Condition, ...]], Condition]]] = {
    "and": All,
    "or": Any_,
    "not": lambda conditions: Not(*conditions),
}


def _in(value: Expression, chosen: Sequence[Expression], schema: Schema) -> Condition | None:
    equalities = [_against("equal", value, c, schema) for c in chosen]
    known = [c for c in equalities if isinstance(c, Compare)]
    return Compare(known[0].column, "in", tuple(c.value for c in known)) if len(known) == len(chosen) else None


def _against(name: str, a: Expression, b: Expression, schema: Schema) -> Condition | None:
    """The comparison of a column with a constant that the column can hold; None if it is something else."""
    column = _bare(a)
    if not isinstance(column, Column) or not isinstance(b, Literal) or b.value is None:
        return None
    type_ = schema.fields[column.index].type
    if not plain(type_) or type_ == FLOAT or b.value != b.value:
        return None  # not every store has NaN, nor floats of one word
    try:
        value = coerce(type_, b.value)
    except Unfit:
        return None
    return Compare(schema.names[column.index], COMPARISONS[name], value)


def _bare(expression: Expression) -> Expression:
    """The expression without widening casts, which keep order and equality."""
    if not isinstance(expression, Cast) or widening(expression.argument.type, expression.type) is None:
        return expression
    rounds = expression.argument.type == BIGINT and expression.type == DOUBLE
    return expression if rounds else _bare(expression.argument)


# -- keys


def looked_up(among: Among, schema: Schema) -> tuple[Condition, bool]:
    """The condition that rows have one of some keys, and whether it is exact; if not, other rows may pass."""
    names = [schema.names[place] for place in among.columns]
    columns = [tuple(dict.fromkeys(key[place] for key in among.keys)) for place in range(len(names))]
    several = [place for place, values in enumerate(columns) if len(values) > 1]
    parts = tuple(_one_of(name, values) for name, values in zip(names, columns, strict=True))
    if len(several) <= 1:
        return (parts[0] if len(parts) == 1 else All(parts)), True
    if len(among.keys) > MOST_PAIRS:
        return All(parts), False
    pairs = tuple(All(tuple(_one_of(n, (v,)) for n, v in zip(names, key, strict=True))) for key in among.keys)
    return Any_(pairs), True


def _one_of(name: str, values: Sequence[Any]) -> Condition:
    known = tuple(value for value in values if value is not None)
    there = Compare(name, "=", known[0]) if len(known) == 1 else Compare(name, "in", known)
    if len(known) == len(values):
        return there
    null = Compare(name, "is", None)
    return Any_((there, null)) if known else null


def beyond(order: Sequence[Sort], after: Row, schema: Schema) -> Condition:
    """The condition of the rows after a place: later in the first column, or equal there and later in the others."""
    first, *others = order
    name, value = schema.names[first.column], after[0]
    further = _greater(name, value, first)
    if not others:
        return further
    same = Compare(name, "is", None) if value is None else Compare(name, "=", value)
    return Any_((further, All((same, beyond(others, after[1:], schema)))))


def _greater(name: str, value: Any, sort: Sort) -> Condition:
    """The condition of the rows that come later by one column."""
    if value is None:
        return Compare(name, "is not", None) if sort.nulls_first else Any_()
    further = Compare(name, "<" if sort.descends else ">", value)
    return further if sort.nulls_first else Any_((further, Compare(name, "is", None)))
