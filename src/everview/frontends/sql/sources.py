"""FROM: tables, views, subqueries, values and elements of arrays, under their names.

A relation is a plan and the scope that names its columns; `joins.py` joins relations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql import generators
from everview.frontends.sql.casts import as_types, untyped
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.expressions import POSTGRES, Site
from everview.frontends.sql.joins import beside_elements, joined_all, outer_elements
from everview.frontends.sql.names import Scope, file_named, fold, short
from everview.frontends.sql.rows import ONE_ROW, Elements, NamedRows
from everview.frontends.sql.schemas import is_information, stored_name
from everview.frontends.sql.sets import trimmed
from everview.frontends.sql.values import written
from everview.later import Later
from everview.plan.nodes import Project
from everview.types import unknown_name

if TYPE_CHECKING:
    from everview.frontends.sql import pivots, unpivots
    from everview.frontends.sql.as_of import as_of
    from everview.frontends.sql.event_windows import windowed_table
    from everview.frontends.sql.file_functions import file_rows
    from everview.frontends.sql.macros import expanded_table
    from everview.frontends.sql.series import SeriesCall
    from everview.frontends.sql.showing import information
else:
    SeriesCall = Later("everview.frontends.sql.series", "SeriesCall")
    as_of = Later("everview.frontends.sql.as_of", "as_of")
    pivots = Later("everview.frontends.sql.pivots")
    unpivots = Later("everview.frontends.sql.unpivots")
    file_rows = Later("everview.frontends.sql.file_functions", "file_rows")
    windowed_table = Later("everview.frontends.sql.event_windows", "windowed_table")
    expanded_table = Later("everview.frontends.sql.macros", "expanded_table")
    information = Later("everview.frontends.sql.showing", "information")

SERIES = ("generate_series", "generateseries", "range", "sequence")
FILE_READERS = (
    "read_csv", "read_csv_auto", "readcsv", "read_parquet", "readparquet", "read_json", "read_json_auto", "read_ndjson",
)  # fmt: skip
WINDOWING = ("tumble", "hop", "session")  # functions of a table that give each row with its window of time


def from_clause(node: exp.Select, context: QueryContext) -> NamedRows:
    """The rows that SELECT reads; without FROM, one row without columns."""
    start = node.args.get("from_")
    if start is None:
        return NamedRows(ONE_ROW, Scope((), context.outer))
    context.only(start, "this")
    rows = (
        _in_order(start.this, context) if _is_first_rows(node, start.this) else relation_of(start.this, context, None)
    )
    rows = joined_all(rows, node.args.get("joins") or [], context)
    for view in node.args.get("laterals") or []:
        rows = _lateral_view(view, rows, context)
    return rows


def _is_first_rows(node: exp.Select, start: exp.Expr) -> bool:
    """Whether a query takes some of the first rows of a subquery, in the subquery's order."""
    plain = isinstance(start, exp.Subquery) and isinstance(start.this, exp.Select) and not start.args.get("pivots")
    limited = node.args.get("limit") is not None or node.args.get("offset") is not None
    return plain and limited and node.args.get("order") is None and not start.args.get("joins")


def _in_order(node: exp.Subquery, context: QueryContext) -> NamedRows:
    """The rows of a subquery with its sort columns, which have no names."""
    from everview.frontends.sql.queries import complete

    context.only(node, "this", "alias", "joins", "pivots", "with_", "order", "limit", "offset")
    bound = complete(_bare(node), context.deeper(node))
    shown = Bound(trimmed(bound), bound.names)
    return NamedRows(bound.plan, named(shown, node.args.get("alias"), context).scope, order=bound.order)


def _bare(node: exp.Subquery) -> exp.Subquery:
    """A subquery without its alias."""
    return exp.Subquery(this=node.this, **{k: node.args.get(k) for k in ("with_", "order", "limit", "offset")})


# -- relations


def relation_of(node: exp.Expr, context: QueryContext, left: NamedRows | None) -> NamedRows:
    """One relation; `left` is the row that it may read, if any."""
    context = context.deeper(node)
    try:
        return _placed_relation(node, context, left)
    except EverviewError as error:
        context.source.locate(error, node)
        raise


def _placed_relation(node: exp.Expr, context: QueryContext, left: NamedRows | None) -> NamedRows:
    match node:
        case exp.Table():
            return _table(node, context, None if context.dialect == "spark" else left)
        case exp.Subquery():
            return _subquery(node, context)
        case exp.Values():
            context.only(node, "expressions", "alias")
            return named(values(node, context), node.args.get("alias"), context)
        case exp.Lateral():
            return _lateral(node, context, left)
        case exp.Unnest():
            return _elements(node, node.args.get("alias"), left, context)
        case exp.Paren():
            return relation_of(node.this, context, left)
        case _:
            raise context.unsupported(f"{node.key.upper()} in FROM", node)


def _table(node: exp.Table, context: QueryContext, left: NamedRows | None) -> NamedRows:
    """A table, a view or a function of rows; the latter reads the row of `left` without LATERAL, except in Spark."""
    if node.args.get("sample") is not None:
        hint = "a query has the same answer every time: choose rows by a value, as in WHERE hash(id) % 100 = 0"
        raise context.unsupported("TABLESAMPLE", node, hint)
    context.only(node, "this", "alias", "joins", "pivots", "db", "catalog", "version")
    if isinstance(node.this, exp.Func):
        rows = _table_function(node.this, node.args.get("alias"), context, left)
    else:
        rows = named(relation(node, context), node.args.get("alias"), context, node.name)
    for pivot in node.args.get("pivots") or []:
        rows = _pivoted(pivot, rows, node, context)
    return joined_all(rows, node.args.get("joins") or [], context)


def _pivoted(pivot: exp.Pivot, rows: NamedRows, node: exp.Expr, context: QueryContext) -> NamedRows:
    from everview.frontends.sql.queries import query

    if pivot.args.get("unpivot"):
        return named(unpivots.of_clause(pivot, rows, context), pivot.args.get("alias"), context, node.alias_or_name)
    bare = node.copy()
    bare.set("pivots", None)
    bare.set("joins", None)
    columns = [v.name for v in rows.scope.star()]
    bound = query(pivots.of_clause(pivot, bare, columns, context), context)
    return named(bound, pivot.args.get("alias"), context, node.alias_or_name)


def relation(node: exp.Table, context: QueryContext) -> Bound:
    """A common table expression, a table or a view, by its name."""
    if isinstance(node.this, (exp.Placeholder, exp.Parameter)):
        raise context.unsupported("a parameter as a relation", node, "a parameter is a value: write the name itself")
    if is_information(node):
        return information(node, context)
    cte = context.ctes.get(fold(node.name)) if node.args.get("db") is None else None
    if cte is not None:
        return cte
    name = stored_name(node, context)
    known = list(context.catalog.names())
    stored = name if name in known else next((k for k in known if fold(k) == fold(name)), None)
    version = node.args.get("version")
    if version is not None:
        plan = as_of(version, stored or name, context)  # it may have been dropped since
        return Bound(plan, plan.schema.names)
    if stored is None:
        available = [*known, *context.ctes] or ["none yet"]
        raise file_named(short(name)) or unknown_name("table or view", short(name), available)
    plan = context.catalog.scan(stored)
    return Bound(plan, plan.schema.names)


def _subquery(node: exp.Subquery, context: QueryContext) -> NamedRows:
    from everview.frontends.sql.queries import query

    if isinstance(node.this, (exp.Table, exp.Subquery)) and not isinstance(node.this.this, exp.Query):
        return _bracketed(node, context)
    context.only(node, "this", "alias", "joins", "pivots", "with_", "order", "limit", "offset")
    if isinstance(node.this, exp.Pivot) and node.this.args.get("unpivot"):
        bound = unpivots.of_statement(node.this, relation_of(node.this.this, context, None), context)
    elif isinstance(node.this, exp.Pivot):
        inner = pivots.of_statement(node.this, context, _columns_of(node.this, context))
        bound = query(inner, context)
    else:
        bound = query(_bare(node), context)
    rows = named(bound, node.args.get("alias"), context)
    for pivot in node.args.get("pivots") or []:
        rows = _pivoted(pivot, rows, node, context)
    return joined_all(rows, node.args.get("joins") or [], context)


def _columns_of(pivot: exp.Pivot, context: QueryContext) -> list[str]:
    return [v.name for v in relation_of(pivot.this, context, None).scope.star()]


def _bracketed(node: exp.Subquery, context: QueryContext) -> NamedRows:
    """``(a JOIN b ON …)``: names inside stay visible unless the brackets have one of their own."""
    context.only(node, "this", "alias", "joins")
    rows = relation_of(node.this, context, None)
    if node.args.get("alias") is not None:
        star = rows.scope.star()
        plan = Project(rows.plan, tuple(v.expression for v in star), tuple(v.name for v in star))
        rows = named(Bound(plan, tuple(v.name for v in star)), node.args["alias"], context)
    return joined_all(rows, node.args.get("joins") or [], context)


def named(bound: Bound, alias: exp.TableAlias | None, context: QueryContext, name: str | None = None) -> NamedRows:
    """Rows under an alias, which may rename columns, too."""
    names = bound.names
    if alias is not None:
        context.only(alias, "this", "columns")
        name = alias.name or name
        names = renamed(names, [c.name for c in alias.args.get("columns") or []], alias, context)
    return NamedRows(bound.plan, Scope.over(bound.plan, name, names, context.outer), order=bound.order)


def renamed(names: tuple[str, ...], new: list[str], node: exp.Expr, context: QueryContext) -> tuple[str, ...]:
    """The names with new ones for the first of them."""
    if len(new) > len(names):
        raise context.error(f"{len(new)} names for {len(names)} columns", node, f"the columns are {', '.join(names)}")
    return (*new, *names[len(new) :])


def values(node: exp.Values, context: QueryContext) -> Bound:
    """Rows that are written down."""
    bound = written(node, context)
    return Bound(as_types(bound.plan, [untyped(c).type for c in bound.plan.columns]), bound.names)


def _table_function(
    node: exp.Expr, alias: exp.TableAlias | None, context: QueryContext, left: NamedRows | None
) -> NamedRows:
    name = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
    if generators.name_of(node) is not None:
        return _elements(node, alias, left, context)
    if name in SERIES:
        return _series(node, alias, left, context)
    if name == "table" and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Func):
        return _table_function(node.expressions[0], alias, context, left)
    if name in WINDOWING:
        bound = windowed_table(node, context, lambda table, inner: relation_of(table, inner, None))
        return named(bound, alias, context, name)
    if name in FILE_READERS:
        return named(file_rows(node, context), alias, context, name)
    made = expanded_table(name, node.expressions, node, context) if context.catalog.stored_function(name) else None
    if made is not None:
        return named(made, alias, context, name)
    hint = "there are explode, posexplode, inline, stack, range, generate_series, read_csv, read_json, "
    hint += "read_parquet, TUMBLE, HOP and SESSION"
    raise context.unsupported(f"the table function {name}", node, hint)


def _series(node: exp.Expr, alias: exp.TableAlias | None, left: NamedRows | None, context: QueryContext) -> NamedRows:
    """The rows of `range` or `generate_series`, of which some may be made of the row beside them."""
    series = SeriesCall.of(node)
    called = series.name if alias is None else alias.name or series.name
    columns = None if alias is None else alias.args.get("columns")
    own = called if context.dialect in POSTGRES else series.name
    full = exp.TableAlias(this=exp.to_identifier(called), columns=columns or [exp.to_identifier(own)])
    written = series.rows(context) if context.dialect == "spark" or series.is_written_down() else None
    if written is not None:
        return named(written, full if context.dialect in POSTGRES else alias, context, series.name)
    return _elements(exp.Explode(this=node.copy()), full, left, context)


# -- lateral


def _lateral(node: exp.Lateral, context: QueryContext, left: NamedRows | None) -> NamedRows:
    """A subquery that may read the row of the left; the join sees from its plan whether it does."""
    from everview.frontends.sql.queries import query

    context.only(node, "this", "alias")
    if generators.name_of(node.this) is not None:
        return _elements(node.this, node.args.get("alias"), left, context)
    if isinstance(node.this, exp.Anonymous) and left is not None and context.catalog.stored_function(node.this.name):
        name = node.this.name.lower()
        made = expanded_table(name, node.this.expressions, node.this, context, left.scope)
        assert made is not None, "a function of SQL has that name"
        return named(made, node.args.get("alias"), context, name)
    if not isinstance(node.this, exp.Subquery):
        return _table_function(node.this, node.args.get("alias"), context, left)
    around = context.outer if left is None else left.scope
    bound = query(node.this, replace(context, outer=around))
    rows = named(bound, node.args.get("alias"), context)
    return NamedRows(rows.plan, rows.scope)


def _lateral_view(node: exp.Lateral, rows: NamedRows, context: QueryContext) -> NamedRows:
    """``LATERAL VIEW [OUTER] explode(array) t AS x``."""
    context.only(node, "this", "alias", "view", "outer")
    if generators.name_of(node.this) is None:
        hint = "there are explode, posexplode, inline and stack"
        raise context.unsupported(f"LATERAL VIEW {node.this.sql('spark')[:40]}", node, hint)
    elements = _elements(node.this, node.args.get("alias"), rows, context)
    if node.args.get("outer"):
        elements = outer_elements(elements)
    return beside_elements(rows, elements)


def _elements(node: exp.Expr, alias: exp.TableAlias | None, left: NamedRows | None, context: QueryContext) -> Elements:
    """The elements that a generator makes of each row of the left."""
    rows = left or NamedRows(ONE_ROW, Scope((), context.outer))
    generator = generators.bound(node, Site(context, rows.scope, "FROM"))
    relation_name = alias.name if alias is not None and alias.name else None
    given = [] if alias is None else [c.name for c in alias.args.get("columns") or []]
    ordinal = node.args.get("offset")
    if isinstance(ordinal, exp.Identifier):  # the last name of UNNEST(a) WITH ORDINALITY AS t(x, n)
        given.append(ordinal.name)
    names = generators.names(generator, given, node, context)
    if not given and context.dialect != "spark" and names == ("col",):
        names = (relation_name or "unnest",)
    return Elements.of(rows.plan, generator, relation_name, names, context.outer)
