"""The base of all plan nodes: schema, inputs and expressions, and functions that walk and rewrite plans.

A node is a frozen value. Columns are positions; names are for people, and where two would be the same the later one
gets a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, TypeVar, dataclass_transform

from everview.errors import SchemaError
from everview.scalars.expressions import Column, Expression, Literal
from everview.types import BOOLEAN, Field, Schema

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def node(cls: type[T]) -> type[T]:
    """A frozen dataclass that computes its hash once: plans share parts, and are looked up all the time."""
    made: Any = dataclass(frozen=True, repr=True)(cls)
    by_fields = made.__hash__

    def cached(self: Any) -> int:
        value = self.__dict__.get("_hash")
        if value is None:
            value = self.__dict__["_hash"] = by_fields(self)
        return value

    made.__hash__ = cached
    return made


class Plan:
    """A relation: a bag of rows under a schema."""

    schema: Schema

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The plans that this one is computed from; not those inside its expressions."""
        return ()

    def with_inputs(self, *inputs: Plan) -> Plan:
        """The same node over other inputs."""
        assert not inputs
        return self

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that the node evaluates on rows of its inputs."""
        return ()

    def with_expressions(self, *expressions: Expression) -> Plan:
        """The same node with other expressions."""
        assert not expressions
        return self

    def column(self, index: int) -> Column:
        """The expression that reads one of the plan's columns."""
        field = self.schema.fields[index]
        return Column(index, field.name, field.type, field.nullable)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The expressions that read the plan's columns, in order."""
        return tuple(self.column(index) for index in range(len(self.schema)))

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # pyright: ignore[reportArgumentType]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)  # hashes of text differ between processes, so they are not kept

    def __str__(self) -> str:
        from everview.plan.tree import explain

        return explain(self)


class Derived(Plan):
    """A plan whose columns follow from its inputs."""

    @cached_property
    def schema(self) -> Schema:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The columns of the plan's rows."""
        return Schema(self._fields())

    def _fields(self) -> Iterable[Field]:
        raise NotImplementedError


class UnaryPlan(Derived):
    input: Plan

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)

    def with_inputs(self, *inputs: Plan) -> Self:
        (input_,) = inputs
        return replace(self, input=input_)  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownVariableType]

    def _fields(self) -> Iterable[Field]:
        return self.input.schema.fields


class Binary(Derived):
    left: Plan
    right: Plan

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return self.left, self.right

    def with_inputs(self, *inputs: Plan) -> Self:
        left, right = inputs
        return replace(self, left=left, right=right)  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownVariableType]


# -- fields


def field_of(expression: Expression, schema: Schema) -> Field:
    """The field that an expression fills; a column keeps the field of the input."""
    if isinstance(expression, Column):
        return schema.fields[expression.index]
    return Field("", expression.type, expression.nullable)


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """The names, made unique by a number after repeated ones.

    >>> unique(["id", "name", "id"])
    ('id', 'name', 'id_2')
    """
    taken: dict[str, None] = {}
    for name in names:
        candidate, number = name, 2
        while candidate in taken:
            candidate, number = f"{name}_{number}", number + 1
        taken[candidate] = None
    return tuple(taken)


def named(names: Sequence[str], fields: Iterable[Field]) -> tuple[Field, ...]:
    return tuple(Field(name, f.type, f.nullable) for name, f in zip(unique(names), fields, strict=True))


def beside(left: Schema, right: Schema) -> tuple[tuple[str, ...], tuple[Field, ...]]:
    return (*left.names, *right.names), (*left.fields, *right.fields)


def check_count(what: str, given: Sequence[Any], names: Sequence[Any]) -> None:
    if len(given) != len(names):
        raise SchemaError(f"{what} has {len(given)} columns and {len(names)} names", hint="name every column")


def check_predicate(what: str, predicate: Expression) -> None:
    if predicate.type != BOOLEAN and not (isinstance(predicate, Literal) and predicate.value is None):
        raise SchemaError(f"{what} by {predicate} of type {predicate.type}", hint="a condition is BOOLEAN")


# -- walking


def walk(plan: Plan) -> Iterator[Plan]:
    """The plan and all its parts, from the top; a shared part comes once."""
    seen: set[Plan] = set()
    waiting = [plan]
    while waiting:
        node_ = waiting.pop()
        if node_ not in seen:
            seen.add(node_)
            yield node_
            waiting.extend(reversed(node_.inputs))


def rewritten(plan: Plan, change: Callable[[Plan], Plan], known: dict[Plan, Plan] | None = None) -> Plan:
    """The plan with ``change`` applied to every part, from the bottom; a part that is shared stays so."""
    known = {} if known is None else known
    if plan not in known:
        inputs = tuple(rewritten(i, change, known) for i in plan.inputs)
        same = all(new is old for new, old in zip(inputs, plan.inputs, strict=True))
        known[plan] = change(plan if same else plan.with_inputs(*inputs))
    return known[plan]
