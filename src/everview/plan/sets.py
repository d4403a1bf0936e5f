"""Set operations as nodes of a plan: unions, intersections and differences of relations with the same columns."""

from __future__ import annotations

from collections.abc import Iterable

from everview.errors import SchemaError
from everview.plan.node import Binary, Derived, Plan, node
from everview.types import Field


class _Alike(Derived):
    """A node over inputs with columns of the same types; the first input gives the names."""

    def _check(self) -> None:
        first, *others = (i.schema for i in self.inputs)
        for other in others:
            if other.types != first.types:
                raise SchemaError(
                    f"{type(self).__name__} of ({first}) and ({other})", hint="cast the columns to common types"
                )

    def _fields(self) -> Iterable[Field]:
        schemas = [i.schema for i in self.inputs]
        for f, *others in zip(*(s.fields for s in schemas), strict=True):
            yield Field(f.name, f.type, f.nullable or any(o.nullable for o in others))


@node
class Union(_Alike):
    """The rows of all inputs, as often as they have them together."""

    inputs_: tuple[Plan, ...]

    def __post_init__(self) -> None:
        if not self.inputs_:
            raise SchemaError("a union of nothing", hint="give at least one input")
        self._check()

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return self.inputs_

    def with_inputs(self, *inputs: Plan) -> Union:
        return Union(inputs)


@node
class Intersect(_Alike, Binary):
    """The rows that both have; with ``all``, as often as the one that has fewer."""

    left: Plan
    right: Plan
    all: bool = False

    def __post_init__(self) -> None:
        self._check()


@node
class Except(_Alike, Binary):
    """The rows of the left that the right has not; with ``all``, as often as the left has more."""

    left: Plan
    right: Plan
    all: bool = False

    def __post_init__(self) -> None:
        self._check()
