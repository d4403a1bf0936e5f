"""Expressions as trees that can be written for Spark and for DuckDB; `clauses` has the queries around them.

Every node is a frozen dataclass. `text("spark")` is what Everview and Spark read; it has only the parentheses that
Spark's grammar needs. `text("duckdb")` says the same to DuckDB, with parentheses everywhere, so the two texts do not
share a mistake about precedence. A part that DuckDB cannot say raises `NotThere`; such a query is compared with Spark
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Literal as OneOf

if TYPE_CHECKING:
    from torture.random_sql.clauses import Query

Engine = OneOf["spark", "duckdb"]

# How tightly Spark's operators bind, loosest first.
ANYTHING, OR, AND, NOT, PREDICATE, COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, PRIMARY = range(14)

INT, DOUBLE, DEC, STR, BOOL, DATE, TIME, ARRAY = "INT", "DOUBLE", "DEC", "STR", "BOOL", "DATE", "TIME", "ARRAY"
TYPES = (INT, DOUBLE, DEC, STR, BOOL, DATE, TIME, ARRAY)

SPARK_TYPES = {
    INT: "INT",
    DOUBLE: "DOUBLE",
    DEC: "DECIMAL(12,2)",
    STR: "STRING",
    BOOL: "BOOLEAN",
    DATE: "DATE",
    TIME: "TIMESTAMP",
    ARRAY: "ARRAY<INT>",
}
DUCKDB_TYPES = {**SPARK_TYPES, STR: "VARCHAR", ARRAY: "INT[]"}


class NotThere(Exception):
    """DuckDB has no way to say it."""


@dataclass(frozen=True)
class Node:
    """Any part of a query."""

    def text(self, engine: Engine) -> str:
        raise NotImplementedError


# -- expressions


@dataclass(frozen=True)
class Expr(Node):
    """An expression of a type; `level` is how tightly its outermost operator binds in Spark's text."""

    type: str

    @property
    def level(self) -> int:
        return PRIMARY


@dataclass(frozen=True)
class Name(Expr):
    """A column, with the alias of its relation unless a join by USING has merged it."""

    alias: str | None
    name: str

    def text(self, engine: Engine) -> str:
        return self.name if self.alias is None else f"{self.alias}.{self.name}"


@dataclass(frozen=True)
class Constant(Expr):
    """A literal as each engine writes it."""

    spark: str
    duckdb: str

    @property
    def level(self) -> int:
        return UNARY if self.spark.startswith("-") else PRIMARY

    def text(self, engine: Engine) -> str:
        return self.spark if engine == "spark" else self.duckdb


@dataclass(frozen=True)
class Form:
    """How an operator or a function is written; `{0}` is its first operand, `needs` how tightly operands must bind."""

    spark: str
    duckdb: str | None
    level: int = PRIMARY
    needs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Call(Expr):
    """An operator or a function with its operands; aggregates and windows are written so, too."""

    form: Form
    args: tuple[Expr, ...]

    @property
    def level(self) -> int:
        return self.form.level

    def text(self, engine: Engine) -> str:
        if engine == "duckdb":
            if self.form.duckdb is None:
                raise NotThere(self.form.spark)
            return "(" + self.form.duckdb.format(*(arg.text(engine) for arg in self.args)) + ")"
        needs = self.form.needs + (ANYTHING,) * len(self.args)
        return self.form.spark.format(
            *(_in_parentheses(arg, arg.level < need) for arg, need in zip(self.args, needs, strict=False))
        )


def _in_parentheses(arg: Expr, needed: bool) -> str:
    return f"({arg.text('spark')})" if needed else arg.text("spark")


@dataclass(frozen=True)
class Scalar(Expr):
    """A subquery of one row and one column, as a value."""

    query: Query

    def text(self, engine: Engine) -> str:
        return f"({self.query.text(engine)})"


@dataclass(frozen=True)
class Exists(Expr):
    """Whether a subquery has a row."""

    query: Query
    negated: bool = False

    @property
    def level(self) -> int:
        return NOT  # to Spark's grammar a condition, and no operand

    def text(self, engine: Engine) -> str:
        text = f"{'NOT ' * self.negated}EXISTS ({self.query.text(engine)})"
        return text if engine == "spark" else f"({text})"


@dataclass(frozen=True)
class Among(Expr):
    """Whether a subquery of one column has a value."""

    value: Expr
    query: Query
    negated: bool = False

    @property
    def level(self) -> int:
        return PREDICATE

    def text(self, engine: Engine) -> str:
        if engine == "duckdb":
            return f"({self.value.text(engine)} {'NOT ' * self.negated}IN ({self.query.text(engine)}))"
        value = _in_parentheses(self.value, self.value.level < COMPARISON)
        return f"{value} {'NOT ' * self.negated}IN ({self.query.text(engine)})"
