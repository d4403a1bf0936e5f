"""Lookups: queries that only ask for rows of one relation by equality with parameters, told by their trees.

Such a query needs no plan: the relation's own index answers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

# The parts of a SELECT that a lookup may have; their order in the tree says nothing.
_ALLOWED: Final = frozenset({"expressions", "from_", "from", "where", "kind", "operation_modifiers"})


@dataclass(frozen=True, slots=True)
class TableLookup:
    """``SELECT columns FROM relation WHERE column = $1 AND …``; no columns stand for all of them."""

    relation: str
    columns: tuple[str, ...]
    values: tuple[tuple[str, int], ...]  # a column, and the number of the parameter that it equals


def lookup_of(tree: exp.Expr) -> TableLookup | None:
    """The lookup that a query is; None if it is anything else.

    >>> import sqlglot
    >>> lookup_of(sqlglot.parse_one("SELECT a FROM t WHERE k = $1", dialect="postgres"))
    TableLookup(relation='t', columns=('a',), values=(('k', 1),))
    >>> lookup_of(sqlglot.parse_one("SELECT a FROM t WHERE k = $1 LIMIT 1", dialect="postgres"))
    """
    if not isinstance(tree, exp.Select) or any(part for name, part in tree.args.items() if name not in _ALLOWED):
        return None
    relation = _relation(tree.args.get("from_") or tree.args.get("from"))
    columns = _columns(tree.expressions)
    values = _values(tree.args.get("where"))
    return None if relation is None or columns is None or values is None else TableLookup(relation, columns, values)


def _relation(source: exp.Expr | None) -> str | None:
    table = None if source is None else source.this
    if not isinstance(table, exp.Table) or any(part for name, part in table.args.items() if name != "this"):
        return None
    return table.this.this if isinstance(table.this, exp.Identifier) else None


def _columns(written: list[exp.Expr]) -> tuple[str, ...] | None:
    if len(written) == 1 and isinstance(written[0], exp.Star) and not any(written[0].args.values()):
        return ()
    names = [_column(part) for part in written]
    return None if not names or None in names else tuple(name for name in names if name is not None)


def _column(part: exp.Expr) -> str | None:
    """The name of a column that stands alone, or under its own name."""
    if isinstance(part, exp.Alias) and part.alias == part.this.name:
        part = part.this
    plain = isinstance(part, exp.Column) and not any(value for name, value in part.args.items() if name != "this")
    return part.this.this if plain and isinstance(part.this, exp.Identifier) else None


def _values(where: exp.Expr | None) -> tuple[tuple[str, int], ...] | None:
    if where is None:
        return None
    places: dict[str, int] = {}
    for part in where.this.flatten() if isinstance(where.this, exp.And) else (where.this,):
        if not isinstance(part, exp.EQ):
            return None
        column, number = _column(part.this), _number(part.expression)
        if column is None or number is None or column in places:
            return None
        places[column] = number
    return tuple(places.items())


def _number(part: exp.Expr) -> int | None:
    if isinstance(part, (exp.Parameter, exp.Placeholder)):
        said = part.name.lstrip("?")
        return int(said) if said.isdecimal() else None
    return None
