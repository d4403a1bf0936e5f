"""The context in which a query is bound: the catalog, the text, common table expressions, and the row around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from everview.errors import SqlError
from everview.frontends.sql.names import Scope
from everview.frontends.sql.places import SqlText
from everview.plan.catalog import Readable
from everview.plan.node import Plan
from everview.scalars.expressions import Expression

DEEPEST = 120  # levels of queries and expressions inside each other


@dataclass(frozen=True, slots=True)
class Bound:
    """A query that is bound: its plan, and the names of its columns as written.

    `plan.schema` has the same names, numbered where two are the same. `order` is what ORDER BY asked for, over the
    columns of the plan; of these the first `len(names)` are the query's, the others are only to sort by.
    """

    plan: Plan
    names: tuple[str, ...]
    order: tuple[tuple[Expression, str], ...] = ()


@dataclass(frozen=True)
class QueryContext:
    """Everything that a query may name, except the columns of its own rows."""

    catalog: Readable
    source: SqlText
    dialect: str = "spark"
    ctes: Mapping[str, Bound] = field(default_factory=dict[str, Bound])
    outer: Scope | None = None  # the row around, for subqueries
    depth: int = 0
    parameters: Mapping[str, Expression] = field(default_factory=dict[str, Expression])  # values, by name
    schema: str = ""  # that of relations whose names have none; empty is the default schema
    unqualified: list[exp.Expr] = field(default_factory=list[exp.Expr])  # names that were found in that schema

    def deeper(self, node: exp.Expr) -> QueryContext:
        """The context one level further in; refuses nesting that no stack could hold."""
        if self.depth >= DEEPEST:
            raise self.too_deep(node)
        return replace(self, depth=self.depth + 1)

    def too_deep(self, node: exp.Expr) -> SqlError:
        hint = "name the inner parts in a WITH clause, or in views"
        return self.source.error("the statement is nested too deeply", node, hint=hint)

    def error(self, message: str, node: exp.Expr, hint: str | None = None) -> SqlError:
        return self.source.error(message, node, hint=hint)

    def unsupported(self, what: str, node: exp.Expr, hint: str | None = None) -> SqlError:
        return self.source.error(f"{what} is not supported", node, hint=hint)

    def only(self, node: exp.Expr, *known: str) -> None:
        """Refuse a node with arguments other than the known ones, so that nothing written is ignored."""
        for name, value in node.args.items():
            if name in known or value is None or value is False or value == []:
                continue
            what = name.rstrip("_").replace("_", " ").upper()
            said = _short(value)
            raise self.unsupported(f"{what} in {node.key.upper()}", node, f"it says {said}" if said else "leave it out")


def _short(value: object) -> str:
    if isinstance(value, list):
        value = value[0] if value else ""
    try:
        ignore = ErrorLevel.IGNORE  # else sqlglot writes to the log what Spark does not have
        text = value.sql("spark", unsupported_level=ignore) if isinstance(value, exp.Expr) else str(value)
    except (RecursionError, ValueError):
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:60]}…"
