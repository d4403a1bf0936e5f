"""Casts that no one wrote: of whole relations, of constants, and of NULLs without a type."""

from __future__ import annotations

import decimal

from everview.plan.node import Plan
from everview.plan.nodes import Project, Values
from everview.plan.typing import coerced
from everview.scalars.evaluate import fold
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import CALENDAR, VOID
from everview.types import COMPOSITE, DOUBLE, STRING, Array, Decimal, Field, MapType, Schema, Struct, Type


def as_types(plan: Plan, kinds: list[Type]) -> Plan:
    """The plan with the values of its columns cast to these types."""
    if all(f.type == type_ for f, type_ in zip(plan.schema.fields, kinds, strict=True)):
        return plan
    if isinstance(plan, Values):
        rows = [tuple(constant(v, type_) for v, type_ in zip(row, kinds, strict=True)) for row in plan.rows]
        if all(isinstance(v, Literal) for row in rows for v in row):
            fields = (Field(f.name, type_, f.nullable) for f, type_ in zip(plan.schema.fields, kinds, strict=True))
            return Values(tuple(rows), Schema(fields))  # pyright: ignore[reportArgumentType]
    columns = tuple(coerced(column, type_) for column, type_ in zip(plan.columns, kinds, strict=True))
    if isinstance(plan, Project):
        columns = tuple(coerced(e, type_) for e, type_ in zip(plan.expressions, kinds, strict=True))
        return Project(plan.input, columns, plan.names)
    return Project(plan, columns, plan.schema.names)


def constant(value: Expression, type_: Type) -> Expression:
    """A value as another type; a literal number, array, struct or map is converted at once where no digit is lost."""
    typed = coerced(value, type_)
    if not isinstance(value, Literal) or isinstance(typed, Literal):
        return typed
    if isinstance(value.type, COMPOSITE):
        return fold(typed)
    if isinstance(type_, Decimal) and isinstance(value.type, Decimal):
        with decimal.localcontext(decimal.Context(prec=80)):
            return Literal(value.value.quantize(decimal.Decimal(1).scaleb(-type_.scale)), type_)
    if type_ == DOUBLE and isinstance(value.value, (int, decimal.Decimal)) and not isinstance(value.value, bool):
        return Literal(float(value.value), type_)
    return typed


def untyped(value: Expression) -> Expression:
    """The value with STRING for the type of bare NULLs, also inside arrays and structs, as every column has a type."""
    return coerced(value, _with_text(value.type))


def _with_text(type_: Type) -> Type:
    """A type with STRING for the type of a bare NULL, and for an interval of months and days."""
    if type_ in (VOID, CALENDAR):
        return STRING
    if isinstance(type_, Array):
        return Array(_with_text(type_.element))
    if isinstance(type_, Struct):
        return Struct(Field(f.name, _with_text(f.type), f.nullable) for f in type_.fields)
    if isinstance(type_, MapType):
        return MapType(_with_text(type_.key), _with_text(type_.value))
    return type_
