"""Formulas over attributes as conditions of a plan; a comparison with NULL holds for no row, negated or not.

>>> from everview.plan.nodes import Scan
>>> from everview.types import Schema
>>> plan = Scan("users", Schema.parse("region STRING, ok BOOLEAN"))
>>> formula = Connected("not", (AttributeComparison("=", AttributeName("region"), Constant("Europe")),))
>>> print(condition(formula, AttributeColumns.of(plan)))
NOT region = 'Europe'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from everview.errors import TypeConflict, UnknownName
from everview.frontends.pomora.algebra import AttributeComparison, AttributeName, Connected, Formula
from everview.frontends.rules.faults import fault, placed
from everview.frontends.rules.meeting import alike, literal
from everview.frontends.rules.program import NOWHERE, Constant, TextPlace
from everview.frontends.rules.terms import COMPARISONS
from everview.plan.node import Plan
from everview.plan.typing import call
from everview.scalars.expressions import Column, Expression
from everview.types import unknown_name


@dataclass(frozen=True, slots=True)
class AttributeColumns:
    """The attributes that a formula may name."""

    by_name: Mapping[str, Column]
    place: TextPlace = NOWHERE

    @classmethod
    def of(cls, plan: Plan, place: TextPlace = NOWHERE) -> AttributeColumns:
        return cls(dict(zip(plan.schema.names, plan.columns, strict=True)), place)

    def __getitem__(self, name: str) -> Column:
        if name not in self.by_name:
            error = unknown_name("attribute", name, self.by_name)
            raise UnknownName(error.message + placed("", self.place), hint=error.hint)
        return self.by_name[name]


def condition(formula: Formula, columns: AttributeColumns) -> Expression:
    """The condition of a formula on rows with these attributes."""
    match formula:
        case AttributeComparison(operator, left, right):
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


def _value(side: AttributeName | Constant, columns: AttributeColumns) -> Expression:
    return columns[side.name] if isinstance(side, AttributeName) else literal(side.value)


def comparisons(formula: Formula) -> Iterator[AttributeComparison]:
    """All comparisons in a formula."""
    match formula:
        case AttributeComparison():
            yield formula
        case Connected(_, parts):
            for part in parts:
                yield from comparisons(part)
