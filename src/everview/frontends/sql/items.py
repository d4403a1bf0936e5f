"""Expressions as texts over rows that are given: what frames are made of, bound as the clauses of a SELECT are.

A column that is written ```mark#3`.`name` `` is one of a certain frame; ``known`` says which of the rows' it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from everview.errors import EverviewError, QueryError
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.expressions import Site, condition
from everview.frontends.sql.names import Scope, Visible
from everview.frontends.sql.parse import parse
from everview.frontends.sql.pivots import Cells, absent_cells
from everview.frontends.sql.queries import complete, over_rows
from everview.frontends.sql.rows import NamedRows
from everview.frontends.sql.written import ordering
from everview.plan.catalog import Readable
from everview.plan.node import Plan
from everview.scalars.expressions import Column, Expression, Order

Known = Callable[[str, str], Column | None]  # of a mark and a name: the column, or None if it is no mark


@dataclass(frozen=True)
class GivenRows:
    """Rows, the names of their columns, and the columns of certain frames among them."""

    plan: Plan
    scope: Scope
    known: Known
    catalog: Readable

    def select(self, items: Sequence[str], keys: Sequence[str] = (), grouping: str = "") -> Bound:
        """The items over the rows; with ``keys``, over groups by them, or by their ROLLUP or CUBE."""
        node, context = self._parsed(_select_text(items, keys, grouping), len(items))
        return over_rows(node, NamedRows(self.plan, self._scope(node)), context)

    def condition(self, text: str, clause: str) -> Expression:
        """A condition on the rows."""
        node, context = self._parsed(f"SELECT {text}", 1)
        site = Site(context, self._scope(node), clause)
        return condition(node.expressions[0], site)

    def order(self, by: Sequence[str]) -> Order:
        """The keys of an order of the rows."""
        text = f"SELECT 1\nORDER BY {_listed(by)}"
        node, context = self._parsed(text, 1, "order")
        site = Site(context, self._scope(node), "ORDER BY")
        return ordering(node.args["order"].expressions, site)

    def pivot(self, keys: Sequence[str], column: str, values: Sequence[str], calls: Sequence[str]) -> Bound:
        """Groups by keys, with the aggregates of each value of a column beside each other."""
        said = [*keys, column, *values, *calls]
        node, context = self._parsed(_select_text(said, ()), len(said))
        trees = node.expressions
        by, listed = trees[len(keys)], trees[len(keys) + 1 : -len(calls)]
        aggregates = trees[-len(calls) :]
        plain = exp.select(*(a.this.copy() if isinstance(a, exp.Alias) else a.copy() for a in aggregates))
        rows = NamedRows(self.plan, self._scope(node))
        cells = Cells(by, len(calls), absent_cells(over_rows(plain, rows, context).plan), context)
        picked = [cells.of(value, aggregate) for value in listed for aggregate in aggregates]
        groups = [
            exp.Paren(this=key.this.copy() if isinstance(key, exp.Alias) else key.copy()) for key in trees[: len(keys)]
        ]
        made = exp.Select(expressions=[*trees[: len(keys)], *picked])
        if groups:
            made.set("group", exp.Group(expressions=groups))
        return over_rows(made, rows, context)

    def _parsed(self, text: str, count: int, *clauses: str) -> tuple[exp.Select, QueryContext]:
        statements, source = parse(text)
        node = statements[0].tree if len(statements) == 1 else None
        others = () if node is None else {name for name, value in node.args.items() if value}
        hint = "give each expression as an argument of its own"
        if not isinstance(node, exp.Select) or not {"expressions", "group", *clauses}.issuperset(others):
            raise source.error("an expression goes on as a query", hint=hint)
        if len(node.expressions) != count:
            raise source.error("several expressions where one is expected", hint=hint)
        return node, QueryContext(self.catalog, source)

    def _scope(self, node: exp.Expr) -> Scope:
        """The scope, with the columns of certain frames that the texts name."""
        marked = {(c.table, c.name) for c in node.find_all(exp.Column) if "#" in c.table}
        more: list[Visible] = []
        for mark, name in sorted(marked):
            column = self.known(mark, name)
            if column is not None:
                more.append(Visible(mark, name, column, bare=False))
        return replace(self.scope, visible=(*self.scope.visible, *more))


def _select_text(items: Sequence[str], keys: Sequence[str], grouping: str = "") -> str:
    text = f"SELECT {_listed(items)}"
    if not keys:
        return text
    inside = _listed([f"({key})" for key in keys])
    return f"{text}\nGROUP BY {f'{grouping}({inside})' if grouping else inside}"


def _listed(texts: Sequence[str]) -> str:
    return "\n, ".join(texts)  # a comment at the end of one does not hide the next


def set_operation(kind: str, left: Bound, right: Bound, catalog: Readable) -> Bound:
    """The rows of two sides by UNION, INTERSECT or EXCEPT, with ALL, DISTINCT or BY NAME behind it."""
    statements, source = parse(f"SELECT * FROM `left` {kind} SELECT * FROM `right`")
    context = QueryContext(catalog, source, ctes={"left": left, "right": right})
    try:
        return complete(statements[0].tree, context)
    except EverviewError as error:  # of a text that the user has not written
        raise QueryError(error.message.splitlines()[0], hint=error.hint) from None
