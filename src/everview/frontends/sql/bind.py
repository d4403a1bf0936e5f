"""Bind the statements of a text: parse each, and look its names up in the catalog."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from everview.errors import EverviewError, SqlError
from everview.frontends.sql import comparisons, functions, leaves, own_syntax, subqueries, windows
from everview.frontends.sql import statements as st
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.creating import NO_SEQUENCE, create_table, properties_of, relation_name
from everview.frontends.sql.names import fold
from everview.frontends.sql.parameters import NOTHING_GIVEN, ParameterValues
from everview.frontends.sql.parse import Parsed, parse, slip_in
from everview.frontends.sql.places import SqlText
from everview.frontends.sql.queries import complete
from everview.frontends.sql.rewrite import all_plans
from everview.frontends.sql.schemas import DEFAULT, create_schema, drop_schema, is_information, qualified, use
from everview.frontends.sql.slips import INSTEAD, OURS
from everview.frontends.sql.sources import renamed
from everview.later import Later
from everview.plan.catalog import CatalogFunction, Readable, StoredFunction
from everview.plan.node import Plan, unique
from everview.plan.nodes import Project, Recursive, Scan
from everview.scalars.expressions import Expression, columns_of
from everview.scalars.session_zone import session_zone
from everview.types import Schema, unknown_name

if TYPE_CHECKING:
    from everview.frontends.sql.altering import alter
    from everview.frontends.sql.changes import change
    from everview.frontends.sql.constraints import UniqueColumns
    from everview.frontends.sql.copying import copy
    from everview.frontends.sql.file_functions import in_a_view
    from everview.frontends.sql.macros import create_function, drop_function
    from everview.frontends.sql.prepared import immediate, prepared
    from everview.frontends.sql.showing import comment, describe, show
else:
    alter = Later("everview.frontends.sql.altering", "alter")
    change = Later("everview.frontends.sql.changes", "change")
    UniqueColumns = Later("everview.frontends.sql.constraints", "UniqueColumns")
    copy = Later("everview.frontends.sql.copying", "copy")
    in_a_view = Later("everview.frontends.sql.file_functions", "in_a_view")
    create_function = Later("everview.frontends.sql.macros", "create_function")
    drop_function = Later("everview.frontends.sql.macros", "drop_function")
    immediate = Later("everview.frontends.sql.prepared", "immediate")
    prepared = Later("everview.frontends.sql.prepared", "prepared")
    comment = Later("everview.frontends.sql.showing", "comment")
    describe = Later("everview.frontends.sql.showing", "describe")
    show = Later("everview.frontends.sql.showing", "show")

# Modules that say how kinds of expressions are bound.
HANDLERS = (comparisons, functions, leaves, own_syntax, subqueries, windows)


_OF_SESSION = re.compile(r"\bcurrent_(schema|database)\b", re.IGNORECASE)


class With(Readable):
    """Another catalog, and the relations that earlier statements of the same text create."""

    def __init__(self, catalog: Readable) -> None:
        self.catalog = catalog
        self.made: dict[str, Schema | Plan] = {}
        self.gone: set[str] = set()
        self.tables: dict[str, st.CreateTable] = {}

    def names(self) -> Iterable[str]:
        made = {fold(name) for name in self.made}
        before = [n for n in self.catalog.names() if fold(n) not in made and fold(n) not in self.gone]
        return [*before, *self.made]

    def relation(self, name: str) -> Schema | Plan:
        return self.made[name] if name in self.made else self.catalog.relation(name)

    def as_of(self, name: str, when: int | datetime) -> Plan:
        return self.catalog.as_of(name, when)

    def files(self, format_: str, paths: Sequence[str], options: Mapping[str, Any]) -> Plan:
        return self.catalog.files(format_, paths, options)

    def given(self, scan: Scan) -> Scan:
        return self.catalog.given(scan)

    def function(self, name: str) -> CatalogFunction | None:
        return self.catalog.function(name)

    def key(self, name: str) -> tuple[str, ...]:
        return self.tables[name].primary_key if name in self.tables else self.catalog.key(name)

    def is_set(self, name: str) -> bool:
        return bool(self.key(name)) if name in self.made else self.catalog.is_set(name)

    def stored_function(self, name: str) -> StoredFunction | None:
        return self.catalog.stored_function(name)

    def default(self, table: str, column: str) -> Expression | None:
        if table in self.tables:
            return self.tables[table].defaults.get(column)
        return self.catalog.default(table, column)

    def generated(self, table: str) -> Mapping[str, str]:
        return self.tables[table].generated if table in self.tables else self.catalog.generated(table)

    @property
    def timezone(self) -> str:
        return self.catalog.timezone

    @property
    def current_schema(self) -> str:
        return self.catalog.current_schema

    def schemas(self) -> Iterable[str]:
        return self.catalog.schemas()

    def information(self, name: str) -> Sequence[tuple[Any, ...]] | None:
        return self.catalog.information(name)

    def created(self, name: str) -> str:
        return self.catalog.created(name)

    def named_uniques(self, table: str) -> Mapping[str, tuple[str, ...]]:
        if table not in self.tables:
            return self.catalog.named_uniques(table)
        return {c.name: c.columns for c in self.tables[table].constraints if isinstance(c, UniqueColumns)}

    def after(self, statement: st.Statement) -> None:
        """Add or drop the relations that a statement creates or drops."""
        match statement:
            case st.CreateTable(_, name, schema):
                self.made[name], self.tables[name] = schema, statement
            case st.CreateView(_, name, plan, materialized):
                self.made[name] = plan.schema if materialized else plan
            case st.Drop(_, _, names):
                for name in names:
                    self.made.pop(name, None)
                    self.gone.add(fold(name))
            case _:
                pass


def bind(
    text: str, catalog: Readable, dialect: str = "spark", given: ParameterValues = NOTHING_GIVEN
) -> list[st.Statement]:
    """Bind the statements of a text, in Spark's dialect or another; each sees the definitions before it.

    ``given`` has the values of parameters.

    >>> from everview.frontends.sql import Tables
    >>> create, view = bind("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a + 1 AS b FROM t", Tables({}))
    >>> print(view.plan)
    Project a + 1 AS b
      Scan t
    """
    known, statements = With(catalog), list[st.Statement]()
    dialect = dialect.lower() or "spark"
    parsed, source = parse(text, dialect)
    for statement, share in zip(parsed, given.shared(parsed, source), strict=True):
        bound = bind_parsed(statement, source, known, dialect, share)
        statements.append(bound)
        if not isinstance(bound, st.Explain):
            known.after(bound)
    return statements


def bind_parsed(
    parsed: Parsed, source: SqlText, catalog: Readable, dialect: str, given: ParameterValues = NOTHING_GIVEN
) -> st.Statement:
    """Bind one statement of a text that has been parsed; ``given`` has the values of this statement's parameters."""
    dialect = "spark" if dialect == "databricks" else dialect
    if _is_new_query(parsed.tree):
        parsed, source = _as_created(parsed, source, catalog, dialect)
    context = QueryContext(catalog, source, dialect, parameters=given.by_name, schema=catalog.current_schema)
    try:
        with session_zone(catalog.timezone):
            bound = _statement(parsed.tree, parsed, context)
    except RecursionError:
        raise context.too_deep(parsed.tree) from None
    except EverviewError as error:
        source.locate(error, parsed.tree)
        raise
    if context.unqualified and isinstance(bound, st.CreateView):
        bound = replace(bound, text=qualified(bound.text, source.text.index(bound.text, parsed.start), context))
    return st.Explain(parsed.text, bound) if parsed.explain else bound


def _is_new_query(node: exp.Expr) -> bool:
    """Whether a statement is ``ALTER VIEW v AS SELECT …``."""
    return isinstance(node, exp.Alter) and any(isinstance(action, exp.Query) for action in node.args["actions"])


def _as_created(parsed: Parsed, source: SqlText, catalog: Readable, dialect: str) -> tuple[Parsed, SqlText]:
    """``ALTER VIEW v AS query`` as CREATE OR REPLACE: a materialized view stays materialized."""
    node, context = parsed.tree, QueryContext(catalog, source, dialect, schema=catalog.current_schema)
    name = relation_name(node.this, context)
    views = catalog.information("views") or ()
    known = {fold(f"{row[0]}.{row[1]}".removeprefix(f"{DEFAULT}.")): row[-1] for row in views}
    if fold(name) not in known:
        raise unknown_name("view", name, known)
    query = _ALTER_AS.sub("", parsed.text, count=1)
    kept = "MATERIALIZED " if known[fold(name)] else ""
    text = f"CREATE OR REPLACE {kept}VIEW {node.this.sql(dialect)} AS {query}"
    (made,), source = parse(text, dialect)
    return replace(made, explain=parsed.explain), source


_ALTER_AS: Final = re.compile(r"ALTER\s+(?:MATERIALIZED\s+)?VIEW\s+.*?\bAS\b\s*", re.IGNORECASE | re.DOTALL)


def bind_query(text: str, catalog: Readable, dialect: str = "spark") -> st.Select:
    """The one query of a text."""
    statements = bind(text, catalog, dialect)
    if len(statements) != 1 or not isinstance(statements[0], st.Select):
        raise SqlError("one query is expected", hint="write SELECT …")
    return statements[0]


_OF_TRANSACTIONS: Final[dict[type[exp.Expr], Callable[[str], st.Statement]]] = {
    exp.Transaction: st.Begin,
    exp.Commit: st.Commit,
    exp.Rollback: st.Rollback,
}


def _statement(node: exp.Expr, parsed: Parsed, context: QueryContext) -> st.Statement:
    text = parsed.text
    match node:
        case exp.Create():
            return _create(node, text, context)
        case exp.Drop():
            return _drop(node, text, context)
        case exp.Insert() | exp.Update() | exp.Delete() | exp.Merge() | exp.TruncateTable():
            return change(node, text, context)
        case exp.Alter():
            return alter(node, text, context)
        case exp.Copy():
            return copy(node, text, context)
        case exp.Describe():
            return describe(node, text, context)
        case exp.Comment():
            return comment(node, text, context)
        case exp.Use():
            return use(node, text, context)
        case exp.Pivot() | exp.Query() | exp.Values():
            whole = exp.select("*").from_(exp.Subquery(this=node)) if isinstance(node, exp.Pivot) else node
            bound = complete(whole, context)
            return st.Select(text, bound.plan, bound.names, bound.order)
        case exp.Transaction() | exp.Commit() | exp.Rollback():
            context.only(node)
            return _OF_TRANSACTIONS[type(node)](text)
        case _:
            at_once = immediate(parsed, context)
            if at_once is not None:
                return _immediate(*at_once, parsed, context)
            other = prepared(parsed, context) or show(parsed, context)
            if other is not None:
                return other
            slip = slip_in(text, parsed.start, context.dialect, context.source)
            if slip is not None:
                raise slip
            words = " ".join(text.split()[:2])[:40]
            hint = INSTEAD.get(words.split()[0].upper(), OURS)
            raise context.source.error(f"the statement {words!r} is not supported", parsed.start, hint=hint)


def _immediate(text: str, given: ParameterValues, parsed: Parsed, context: QueryContext) -> st.Statement:
    """The one statement of a text that EXECUTE IMMEDIATE runs."""
    statements = bind(text, context.catalog, context.dialect, given)
    if len(statements) != 1:
        raise context.source.error("EXECUTE IMMEDIATE takes one statement", parsed.start, hint="write them one by one")
    return statements[0]


# -- CREATE


def _create(node: exp.Create, text: str, context: QueryContext) -> st.Statement:
    context.only(node, "this", "kind", "replace", "expression", "exists", "properties")
    kind = str(node.args["kind"]).upper()
    if kind in ("SCHEMA", "DATABASE", "NAMESPACE"):
        return create_schema(node, text, context)
    if kind in ("FUNCTION", "MACRO"):
        return create_function(node, text, context)
    if kind == "SEQUENCE":
        raise context.unsupported("CREATE SEQUENCE", node, NO_SEQUENCE)
    if kind == "VIEW":
        return _create_view(node, text, context)
    if kind == "TABLE":
        return create_table(node, text, context)
    if kind == "INDEX":
        raise context.unsupported("CREATE INDEX", node, "leave it out: views keep the keys by which they look rows up")
    raise context.unsupported(f"CREATE {kind}", node, "there are CREATE TABLE and CREATE [MATERIALIZED] VIEW")


def _create_view(node: exp.Create, text: str, context: QueryContext) -> st.CreateView:
    name = relation_name(node.this, context)
    properties = properties_of(
        node, context, exp.MaterializedProperty, exp.TemporaryProperty, exp.SchemaCommentProperty
    )
    temporary = any(isinstance(part, exp.TemporaryProperty) for part in properties)
    said = next((part.name for part in properties if isinstance(part, exp.SchemaCommentProperty)), None)
    _only_follows_tables(node, text, context)
    if node.expression is None:
        raise context.error("a view of what?", node, "write CREATE VIEW v AS SELECT …")
    bound = complete(node.expression, context)
    names = _view_names(node.this, bound, context)
    count = len(names)
    plan = bound.plan
    if plan.schema.names != names:
        plan = Project(plan, plan.columns[:count], names)
    kept = all(max(columns_of(by), default=0) < count for by, _ in bound.order)
    order = bound.order if kept else ()
    replaces, exists = bool(node.args.get("replace")), bool(node.args.get("exists"))
    kept = any(isinstance(part, exp.MaterializedProperty) for part in properties)
    if kept and temporary:
        raise context.error("a materialized view that is temporary", node, "keep its rows, or leave MATERIALIZED out")
    made = st.CreateView(
        text, name, plan, kept, replaces, exists, order, context.dialect, comment=said, temporary=temporary
    )
    emits = bool(node.expression.meta.get("emit"))
    if made.materialized and any(isinstance(part, Recursive) and part.level is not None for part in all_plans(plan)):
        hint = (
            "a change takes fewer steps than an answer from the beginning: count them in a column, and filter by that"
        )
        raise context.unsupported("MAX RECURSION LEVEL in a kept view", node, hint)
    if emits and not made.materialized:
        raise context.error("a plain view emits nothing", node, "write CREATE MATERIALIZED VIEW")
    return replace(made, parameters=dict(context.parameters), on_close=emits)


def _only_follows_tables(node: exp.Create, text: str, context: QueryContext) -> None:
    """Refuse a view of what may change although no table changes."""
    if any(is_information(table) for table in node.find_all(exp.Table)):
        hint = "definitions change without a change of any table; ask by SELECT"
        raise context.unsupported("information_schema in a view", node, hint)
    if any(table.args.get("version") is not None for table in node.find_all(exp.Table)):
        hint = "a view follows its tables as they change; ask by SELECT, or CREATE TABLE … AS SELECT"
        raise context.unsupported("AS OF in a view", node, hint)
    if context.schema and _OF_SESSION.search(text):
        hint = "a view means the same under every USE: write the name of the schema"
        raise context.unsupported("current_schema() in a view", node, hint)
    if "read_" in text.lower():
        in_a_view(node, context)


def _view_names(node: exp.Expr, bound: Bound, context: QueryContext) -> tuple[str, ...]:
    names = bound.names
    if isinstance(node, exp.Schema):
        given = [_column_name(part, context) for part in node.expressions]
        if len(given) != len(names):
            raise context.error(f"{len(given)} names for {len(names)} columns", node, f"they are {', '.join(names)}")
        names = renamed(names, given, node, context)
    return unique(names)


def _column_name(node: exp.Expr, context: QueryContext) -> str:
    if isinstance(node, exp.ColumnDef):
        context.only(node, "this")
    return node.name


# -- DROP


def _drop(node: exp.Drop, text: str, context: QueryContext) -> st.Statement:
    context.only(node, "this", "tables", "kind", "exists", "materialized", "cascade", "restrict")
    kind = str(node.args["kind"]).upper()
    if kind == "SEQUENCE":
        raise context.unsupported("DROP SEQUENCE", node, f"there are none: {NO_SEQUENCE}")
    if kind in ("SCHEMA", "DATABASE", "NAMESPACE"):
        return drop_schema(node, text, context)
    if kind in ("FUNCTION", "MACRO"):
        return drop_function(node, text, context)
    if kind not in ("TABLE", "VIEW"):
        raise context.unsupported(f"DROP {kind}", node, "there are DROP TABLE and DROP VIEW")
    tables = node.args.get("tables") or [node.this]
    names = [_stored(relation_name(table, context), context) for table in tables]
    dropped: Any = kind.lower()
    return st.Drop(text, dropped, tuple(names), bool(node.args.get("exists")), bool(node.args.get("cascade")))


def _stored(name: str, context: QueryContext) -> str:
    """The name as the catalog spells it; an unknown name stays as written, for the database to judge."""
    known = list(context.catalog.names())
    return name if name in known else next((k for k in known if fold(k) == fold(name)), name)
