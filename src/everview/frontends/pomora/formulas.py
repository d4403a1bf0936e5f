"""Formulas over attributes as conditions of a plan; a comparison with NULL holds for no row, negated or not.

>>> from everview.plan.nodes import Scan
>>> from everview.types import Schema
>>> plan = Scan("users", Schema.parse("region STRING, ok BOOLEAN"))
>>> formula = Connected("not", (Compared("=", Attribute("region"), Constant("Europe")),))
>>> print(condition(formula, Columns.of(plan)))
NOT region = 'Europe'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from everview.errors import TypeConflict, UnknownName
from everview.frontends.pomora.algebra import Attribute, Compared, Connected, Formula
from everview.frontends.rules.faults import fault, placed
from everview.frontends.rules.meeting import alike, literal
from everview.frontends.rules.program import NOWHERE, Constant, Place
from everview.plan.node import Plan
from everview.plan.typing import call
from everview.scalars.expressions import Column, Expression
from everview.types import unknown_name

COMPARISONS: Final = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


@dataclass(frozen=True, slots=True)
class Columns:
    """The attributes that a formula may name."""

    by_name: Mapping[str, Column]
    place: Place = NOWHERE

    @classmethod
    def of(cls, plan: Plan, place: Place = NOWHERE) -> Columns:
        return cls(dict(zip(plan.schema.names, plan.columns, strict=True)), place)

    def __getitem__(self, name: str) -> Column:
        if name not in self.by_name:
            error = unknown_name("attribute", name, self.by_name)
            raise UnknownName(error.message + placed("", self.place), hint=error.hint)
        return self.by_name[name]


def condition(formula: Formula, columns: Columns) -> Expression:
    """The condition that a formula is for rows with these attributes."""
    match formula:
        case Compared(operator, left, right):
            a, b = _value(left, columns), _value(right, columns)
            pair = alike(a, b)
            if pair is None:
                problem = f"{formula} compares {a.type} and {b.type}"
                raise fault(TypeConflict, problem, None, "compare values of one type", columns.place)
            return call(COMPARISONS[operator], *pair)
        case Connected("not", (part,)):
            return call("not", condition(part, columns))
        case Connected(connective, parts):
            return call(connective, *(condition(part, columns) for part in parts))


def _value(side: Attribute | Constant, columns: Columns) -> Expression:
    return columns[side.name] if isinstance(side, Attribute) else literal(side.value)


def comparisons(formula: Formula) -> Iterator[Compared]:
    """The comparisons that a formula is made of."""
    match formula:
        case Compared():
            yield formula
        case Connected(_, parts):
            for part in parts:
                yield from comparisons(part)
