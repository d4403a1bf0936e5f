"""A call of an aggregate: which function, of which fields, and what it gives. Types are Spark's."""

from __future__ import annotations

from dataclasses import dataclass

from everview.errors import SchemaError
from everview.operators.index import Direction
from everview.types import BIGINT, BOOLEAN, DOUBLE, STRING, Array, Decimal, Field, Schema, Type

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
FLOATS = ("FLOAT", "DOUBLE")

VARIANCES = ("variance", "variance pop", "stddev", "stddev pop")
ADDED_UP = ("count", "sum", "avg", "avg double", *VARIANCES, "bool_and", "bool_or")
ENDS = ("min", "max", "first", "last")
PERCENTILES = ("percentile", "percentile discrete", "quantile")
COLLECTED = ("array", "string", "user")

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
        of = schema.fields[self.fields[0]]
        if self.function == "array":
            return Field(name, Array(of.type), nullable=False)
        if self.function in VARIANCES:
            return Field(name, _float(self.function, of))
        return Field(name, _result(self.function, of), of.nullable)


def is_number(of: Type) -> bool:
    return isinstance(of, Decimal) or of.sql in INTEGERS or of.sql in FLOATS


def _result(function: str, of: Field) -> Type:
    match function:
        case "sum" | "avg":
            return _number(function, of)
        case "percentile" | "avg double":
            return _float(function, of)
        case "percentile discrete":
            return DOUBLE if is_number(of.type) else of.type
        case "quantile" | "mode":
            return of.type
        case "bool_and" | "bool_or":
            return _only(function, of, BOOLEAN)
        case "string":
            return _only(function, of, STRING)
        case _:
            assert function in ENDS, f"no type for {function}"
            return of.type


def _number(function: str, of: Field) -> Type:
    match of.type:
        case Decimal(precision, scale) if function == "sum":
            return Decimal(min(38, precision + 10), scale)
        case Decimal(precision, scale):
            return Decimal(min(38, precision + 4), min(38, scale + 4))
        case _ if of.type.sql in INTEGERS:
            return BIGINT if function == "sum" else DOUBLE
        case _:
            return _float(function, of)


def _float(function: str, of: Field) -> Type:
    if not is_number(of.type):
        raise SchemaError(f"{function} of {of}", hint=f"{function} takes numbers")
    return DOUBLE


def _only(function: str, of: Field, wanted: Type) -> Type:
    if of.type != wanted:
        raise SchemaError(f"{function} of {of}", hint=f"{function} takes {wanted}")
    return wanted
