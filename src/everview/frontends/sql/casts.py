"""Values as other types: whole relations, constants, and NULLs without a type."""

from __future__ import annotations

import decimal

from everview.plan.node import Plan
from everview.plan.nodes import Project, Values
from everview.plan.typing import coerced
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import INTERVALS, VOID
from everview.types import DOUBLE, STRING, Array, Decimal, Field, Schema, Struct, Type


def as_types(plan: Plan, kinds: list[Type]) -> Plan:
    """The same rows, their values cast."""
    if all(f.type == of for f, of in zip(plan.schema.fields, kinds, strict=True)):
        return plan
    if isinstance(plan, Values):
        rows = [tuple(constant(v, of) for v, of in zip(row, kinds, strict=True)) for row in plan.rows]
        if all(isinstance(v, Literal) for row in rows for v in row):
            fields = (Field(f.name, of, f.nullable) for f, of in zip(plan.schema.fields, kinds, strict=True))
            return Values(tuple(rows), Schema(fields))  # pyright: ignore[reportArgumentType]
    columns = tuple(coerced(column, of) for column, of in zip(plan.columns, kinds, strict=True))
    if isinstance(plan, Project):
        columns = tuple(coerced(e, of) for e, of in zip(plan.expressions, kinds, strict=True))
        return Project(plan.input, columns, plan.names)
    return Project(plan, columns, plan.schema.names)


def constant(value: Expression, of: Type) -> Expression:
    """A value as another type; a number that is written down is turned at once, where nothing of it is lost."""
    found = coerced(value, of)
    if not isinstance(value, Literal) or isinstance(found, Literal):
        return found
    if isinstance(of, Decimal) and isinstance(value.type, Decimal):
        with decimal.localcontext(decimal.Context(prec=80)):
            return Literal(value.value.quantize(decimal.Decimal(1).scaleb(-of.scale)), of)
    if of == DOUBLE and isinstance(value.value, (int, decimal.Decimal)) and not isinstance(value.value, bool):
        return Literal(float(value.value), of)
    return found


def untyped(found: Expression) -> Expression:
    """A bare NULL as text, also inside of arrays and structs, for a column has a type. Intervals stay as they are."""
    return coerced(found, _with_text(found.type))


def _with_text(of: Type) -> Type:
    """A type with STRING for the type of a bare NULL."""
    if of == VOID:
        return STRING
    if isinstance(of, Array):
        return Array(_with_text(of.element))
    if isinstance(of, Struct):
        return Struct(Field(f.name, _with_text(f.type), f.nullable) for f in of.fields)
    return of


def holds_interval(of: Type) -> bool:
    """Whether values of a type are intervals, or have one inside of them."""
    if isinstance(of, Array):
        return holds_interval(of.element)
    if isinstance(of, Struct):
        return any(holds_interval(f.type) for f in of.fields)
    return of in INTERVALS
