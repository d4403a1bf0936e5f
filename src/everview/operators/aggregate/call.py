"""A call of an aggregate: the function, its fields, and its result. Types are Spark's."""

from __future__ import annotations

from dataclasses import dataclass

from everview.operators.aggregate.registry import computed, computed_under
from everview.operators.index import Direction
from everview.types import BIGINT, Field, Schema

ADDED_UP = computed_under("linear")

FieldOrder = tuple[tuple[int, Direction], ...]


@dataclass(frozen=True)
class Call:
    """One aggregate of some fields of the rows; ``count`` of none counts rows.

    ``distinct`` counts every different value once. ``order`` is that of the values, as fields of the rows with their
    directions; ties are in the order of the values themselves. ``nulls`` says that rows with a NULL argument are
    among them. The others are what some functions take besides.
    """

    function: str
    fields: tuple[int, ...] = ()
    distinct: bool = False
    order: FieldOrder = ()
    nulls: bool = False
    fraction: float = 0.5  # which percentile
    separator: str = ""  # between texts
    user: str = ""  # the name of a user's function
    returns: Field | None = None  # and what it gives

    @property
    def field(self) -> int | None:
        """The first argument."""
        return self.fields[0] if self.fields else None

    @property
    def ordered(self) -> bool:
        """Whether it reads the rows of a group in an order, instead of something added up."""
        return self.function not in ADDED_UP

    def result(self, schema: Schema, name: str) -> Field:
        """The field it fills, with Spark's result types; NULL only if the argument may be."""
        if self.function == "count":
            return Field(name, BIGINT, nullable=False)
        if self.returns is not None:
            return Field(name, self.returns.type, self.returns.nullable)
        line, argument = computed(self.function), schema.fields[self.fields[0]]
        nullable = argument.nullable if line.nullable is None else line.nullable
        return Field(name, line.gives(self.function, argument), nullable)
