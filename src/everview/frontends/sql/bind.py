"""Bind the statements of a text: parse each, and look its names up in the catalog."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from everview.errors import EverviewError, SqlError
from everview.frontends.sql import comparisons, functions, subqueries, windows
from everview.frontends.sql import statements as st
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.names import Scope, fold
from everview.frontends.sql.parameters import NOTHING_GIVEN, ParameterValues
from everview.frontends.sql.parse import Parsed, parse, slip_in
from everview.frontends.sql.prepared import prepared
from everview.frontends.sql.queries import complete, query
from everview.frontends.sql.slips import INSTEAD, OURS
from everview.frontends.sql.sources import renamed
from everview.frontends.sql.types import type_of
from everview.plan.catalog import CatalogFunction, Readable
from everview.plan.node import Plan, unique
from everview.plan.nodes import Project, Scan
from everview.plan.typing import cast
from everview.scalars.expressions import Expression, columns_of
from everview.types import Field, Schema, unknown_name

# Modules that say how kinds of expressions are bound.
HANDLERS = (comparisons, functions, subqueries, windows)


class With(Readable):
    """Another catalog, and the relations that earlier statements of the same text create."""

    def __init__(self, catalog: Readable) -> None:
        self.catalog = catalog
        self.made: dict[str, Schema | Plan] = {}
        self.gone: set[str] = set()
        self.defaults: dict[str, dict[str, Expression]] = {}

    def names(self) -> Iterable[str]:
        made = {fold(name) for name in self.made}
        before = [n for n in self.catalog.names() if fold(n) not in made and fold(n) not in self.gone]
        return [*before, *self.made]

    def relation(self, name: str) -> Schema | Plan:
        return self.made[name] if name in self.made else self.catalog.relation(name)

    def given(self, scan: Scan) -> Scan:
        return self.catalog.given(scan)

    def function(self, name: str) -> CatalogFunction | None:
        return self.catalog.function(name)

    def default(self, table: str, column: str) -> Expression | None:
        if table in self.defaults:
            return self.defaults[table].get(column)
        return self.catalog.default(table, column)

    def after(self, statement: st.Statement) -> None:
        """Add or drop the relations that a statement creates or drops."""
        match statement:
            case st.CreateTable(_, name, schema, _, defaults):
                self.made[name], self.defaults[name] = schema, defaults
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
    dialect = "spark" if dialect == "databricks" else dialect
    for statement, share in zip(parsed, given.shared(parsed, source), strict=True):
        context = QueryContext(known, source, dialect, parameters=share.by_name)
        try:
            bound = _statement(statement.tree, statement, context)
        except RecursionError:
            raise context.too_deep(statement.tree) from None
        except EverviewError as error:
            source.locate(error, statement.tree)
            raise
        statements.append(st.Explain(statement.text, bound) if statement.explain else bound)
        if not statement.explain:
            known.after(bound)
    return statements


def bind_query(text: str, catalog: Readable, dialect: str = "spark") -> st.Select:
    """The one query of a text."""
    statements = bind(text, catalog, dialect)
    if len(statements) != 1 or not isinstance(statements[0], st.Select):
        raise SqlError("one query is expected", hint="write SELECT …")
    return statements[0]


def _statement(node: exp.Expr, parsed: Parsed, context: QueryContext) -> st.Statement:
    text = parsed.text
    match node:
        case exp.Create():
            return _create(node, text, context)
        case exp.Drop():
            return _drop(node, text, context)
        case exp.Insert() | exp.Update() | exp.Delete() | exp.Merge() | exp.TruncateTable():
            from everview.frontends.sql.changes import change

            return change(node, text, context)
        case exp.Query() | exp.Values():
            bound = complete(node, context)
            return st.Select(text, bound.plan, bound.names, bound.order)
        case exp.Transaction():
            context.only(node)
            return st.Begin(text)
        case exp.Commit():
            context.only(node)
            return st.Commit(text)
        case exp.Rollback():
            context.only(node)
            return st.Rollback(text)
        case _:
            kept = prepared(parsed, context)
            if kept is not None:
                return kept
            slip = slip_in(text, parsed.start, context.dialect, context.source)
            if slip is not None:
                raise slip
            words = " ".join(text.split()[:2])[:40]
            hint = INSTEAD.get(words.split()[0].upper(), OURS)
            raise context.source.error(f"the statement {words!r} is not supported", parsed.start, hint=hint)


# -- CREATE


def _create(node: exp.Create, text: str, context: QueryContext) -> st.Statement:
    context.only(node, "this", "kind", "replace", "expression", "exists", "properties")
    kind = str(node.args["kind"]).upper()
    if kind == "VIEW":
        return _create_view(node, text, context)
    if kind == "TABLE":
        return _create_table(node, text, context)
    raise context.unsupported(f"CREATE {kind}", node, "there are CREATE TABLE and CREATE [MATERIALIZED] VIEW")


def _name(node: exp.Expr, context: QueryContext) -> str:
    table = node.this if isinstance(node, exp.Schema) else node
    if not isinstance(table, exp.Table) or table.args.get("db") is not None:
        raise context.unsupported(f"the name {node.sql('spark')[:60]}", node, "relations have one name")
    context.only(table, "this")
    if not table.name.strip() or "\x00" in table.name:
        raise context.error(f"{table.name!r} is no name", node)
    return table.name


def _properties(node: exp.Create, context: QueryContext, *known: type[exp.Expr]) -> list[exp.Expr]:
    properties = node.args.get("properties")
    for part in [] if properties is None else properties.expressions:
        if not isinstance(part, known):
            hint = "leave it out"
            raise context.unsupported(f"{part.sql('spark')[:60]} in CREATE", node, hint)
    return [] if properties is None else properties.expressions


def _create_view(node: exp.Create, text: str, context: QueryContext) -> st.CreateView:
    name = _name(node.this, context)
    properties = _properties(node, context, exp.MaterializedProperty)
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
    made = st.CreateView(text, name, plan, bool(properties), replaces, exists, order, context.dialect)
    return replace(made, parameters=dict(context.parameters))


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


def _create_table(node: exp.Create, text: str, context: QueryContext) -> st.CreateTable:
    name = _name(node.this, context)
    _properties(node, context, exp.FileFormatProperty)
    flags = bool(node.args.get("exists")), bool(node.args.get("replace"))
    if node.expression is not None:
        keys = _keys_beside_query(node.this, context)
        bound = query(node.expression, context)
        fields = [Field(n, f.type, f.nullable) for n, f in zip(unique(bound.names), bound.plan.schema, strict=True)]
        return st.CreateTable(text, name, *_keyed(fields, keys, node, context), {}, *flags, bound.plan)
    if not isinstance(node.this, exp.Schema):
        raise context.error("a table of which columns?", node, "write CREATE TABLE t (id BIGINT PRIMARY KEY)")
    fields, keys, defaults = list[Field](), list[list[str]](), dict[str, Expression]()
    for part in node.this.expressions:
        if isinstance(part, exp.ColumnDef):
            field, key, default = _column(part, context)
            fields.append(field)
            keys += [[field.name]] if key else []
            if default is not None:
                defaults[field.name] = default
        else:
            keys.append(_constraint(part, context))
    if len(keys) > 1:
        raise context.error("two primary keys", node, "write PRIMARY KEY (a, b)")
    return st.CreateTable(text, name, *_keyed(fields, keys, node, context), defaults, *flags)


def _keys_beside_query(named: exp.Expr, context: QueryContext) -> list[list[str]]:
    """The key of a table that is made from a query, which gives its columns: ``t (PRIMARY KEY (id)) AS SELECT …``."""
    parts = named.expressions if isinstance(named, exp.Schema) else []
    for part in parts:
        if isinstance(part, exp.ColumnDef | exp.Identifier):
            hint = "name and cast columns in the query; a key is written as t (PRIMARY KEY (id)) AS SELECT …"
            raise context.error("columns are declared beside a query that gives them", part, hint)
    if len(parts) > 1:
        raise context.error("two primary keys", named, "write PRIMARY KEY (a, b)")
    return [_constraint(part, context) for part in parts]


def _keyed(
    fields: list[Field], keys: list[list[str]], node: exp.Expr, context: QueryContext
) -> tuple[Schema, tuple[str, ...]]:
    """The schema, in which key columns are not nullable, and the names of the key columns."""
    by_name = {fold(f.name): f.name for f in fields}
    if len(by_name) < len(fields):
        names = [fold(f.name) for f in fields]
        twice = next(n for n in names if names.count(n) > 1)
        raise context.error(f'a table with two columns "{twice}"', node, "names do not look at case")
    for part in keys[0] if keys else []:
        if fold(part) not in by_name:
            raise unknown_name("column", part, by_name.values())
    key = tuple(by_name[fold(part)] for part in (keys[0] if keys else []))
    return Schema(replace(f, nullable=False) if f.name in key else f for f in fields), key


def _column(node: exp.ColumnDef, context: QueryContext) -> tuple[Field, bool, Expression | None]:
    """A column, whether it is the primary key, and its default."""
    context.only(node, "this", "kind", "constraints")
    if node.args.get("kind") is None:
        raise context.error(f'column "{node.name}" of which type?', node, f"write {node.name} BIGINT")
    type_ = type_of(node.args["kind"], context)
    nullable, key, default = True, False, None
    for constraint in node.args.get("constraints") or []:
        match getattr(constraint, "kind", None):
            case exp.NotNullColumnConstraint():
                nullable = bool(constraint.kind.args.get("allow_null"))
            case exp.PrimaryKeyColumnConstraint():
                context.only(constraint.kind)
                key = True
            case exp.DefaultColumnConstraint():
                value = expression(constraint.kind.this, Site(context, Scope(), "DEFAULT"))
                default = cast(value, type_)
            case exp.CommentColumnConstraint():
                pass
            case _:
                what = constraint.sql("spark")[:60]
                raise context.unsupported(f"{what} of a column", node, "there are PRIMARY KEY, NOT NULL and DEFAULT")
    return Field(node.name, type_, nullable), key, default


def _constraint(node: exp.Expr, context: QueryContext) -> list[str]:
    inner: Any = node
    if isinstance(node, exp.Constraint) and len(node.expressions) == 1:
        inner = node.expressions[0]
    if not isinstance(inner, exp.PrimaryKey):
        if isinstance(node, exp.Identifier | exp.Column):
            raise context.error(f"column {node.name} has no type", node, f"write {node.name} BIGINT, or another type")
        raise context.unsupported(f"{node.sql('spark')[:60]} of a table", node, "there is PRIMARY KEY (a, b)")
    context.only(inner, "expressions", "include")
    return [part.name for part in inner.expressions]


# -- DROP


def _drop(node: exp.Drop, text: str, context: QueryContext) -> st.Drop:
    context.only(node, "this", "tables", "kind", "exists", "materialized", "cascade", "restrict")
    kind = str(node.args["kind"]).upper()
    if kind not in ("TABLE", "VIEW"):
        raise context.unsupported(f"DROP {kind}", node, "there are DROP TABLE and DROP VIEW")
    tables = node.args.get("tables") or [node.this]
    names = [_stored(_name(table, context), context) for table in tables]
    dropped: Any = kind.lower()
    return st.Drop(text, dropped, tuple(names), bool(node.args.get("exists")), bool(node.args.get("cascade")))


def _stored(name: str, context: QueryContext) -> str:
    """The name as the catalog spells it; an unknown name stays as written, for the database to judge."""
    known = list(context.catalog.names())
    return name if name in known else next((k for k in known if fold(k) == fold(name)), name)
