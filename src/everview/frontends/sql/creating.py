"""CREATE TABLE: columns, keys, defaults, generated columns, constraints and comments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from everview.frontends.sql import statements as st
from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.dialect import LatenessOf, TimeToLive, WatermarkOf
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.names import Scope, fold
from everview.frontends.sql.queries import query
from everview.frontends.sql.schemas import stored_name
from everview.frontends.sql.types import digits_of_time, longest_text, type_of
from everview.later import Later
from everview.plan.node import unique
from everview.plan.timed import Watermark
from everview.plan.typing import cast
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import DAY, DAY_TIME, MICROS
from everview.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, Field, Schema, Type, unknown_name

if TYPE_CHECKING:
    from everview.frontends.sql.constraints import (
        CheckRows,
        ConstrainedTable,
        TableConstraint,
        UniqueColumns,
        check_generated,
        check_of,
        length_check,
        reference_of,
        rendered,
        settled,
        time_check,
        unique_of,
    )
else:
    CheckRows = Later("everview.frontends.sql.constraints", "CheckRows")
    ConstrainedTable = Later("everview.frontends.sql.constraints", "ConstrainedTable")
    UniqueColumns = Later("everview.frontends.sql.constraints", "UniqueColumns")
    check_generated = Later("everview.frontends.sql.constraints", "check_generated")
    check_of = Later("everview.frontends.sql.constraints", "check_of")
    length_check = Later("everview.frontends.sql.constraints", "length_check")
    reference_of = Later("everview.frontends.sql.constraints", "reference_of")
    rendered = Later("everview.frontends.sql.constraints", "rendered")
    settled = Later("everview.frontends.sql.constraints", "settled")
    time_check = Later("everview.frontends.sql.constraints", "time_check")
    unique_of = Later("everview.frontends.sql.constraints", "unique_of")

OF_COLUMNS = "there are PRIMARY KEY, NOT NULL, DEFAULT, CHECK, UNIQUE, REFERENCES, GENERATED ALWAYS AS and COMMENT"
OF_TABLES = (
    "there are PRIMARY KEY (a, b), UNIQUE (a, b), CHECK (…), FOREIGN KEY (a) REFERENCES t (a), "
    "WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES and TTL INTERVAL 1 DAY"
)
NO_SEQUENCE = "number the rows where they come from: a view must give the same answer when rows go and come again"


def relation_name(node: exp.Expr, context: QueryContext) -> str:
    """The name of a relation that is created or dropped."""
    table = node.this if isinstance(node, exp.Schema) else node
    if not isinstance(table, exp.Table):
        raise context.unsupported(f"the name {node.sql('spark')[:60]}", node, "write a name, or schema.name")
    context.only(table, "this", "db", "catalog")
    if not table.name.strip() or "\x00" in table.name:
        raise context.error(f"{table.name!r} is no name", node)
    return stored_name(table, context)


def properties_of(node: exp.Create, context: QueryContext, *known: type[exp.Expr]) -> list[exp.Expr]:
    """The properties beside a definition; raises for one that is not among the known."""
    properties = node.args.get("properties")
    for part in [] if properties is None else properties.expressions:
        if not isinstance(part, known):
            hint = "leave it out"
            raise context.unsupported(f"{part.sql('spark')[:60]} in CREATE", node, hint)
    return [] if properties is None else properties.expressions


@dataclass
class NewTable:
    """A table while its definition is read."""

    table: str
    constraints: list[TableConstraint]
    generated: dict[str, str]
    fields: list[Field] = field(default_factory=list[Field])
    keys: list[list[str]] = field(default_factory=list[list[str]])
    defaults: dict[str, Expression] = field(default_factory=dict[str, Expression])
    comments: dict[str, str] = field(default_factory=dict[str, str])  # of columns; that of the table by ""
    watermark: exp.Expr | None = None
    ttl: exp.Expr | None = None

    @property
    def base(self) -> str:
        """The name of the table without its schema."""
        return self.table.rpartition(".")[2]

    def add(self, constraint: TableConstraint) -> None:
        """Take in a constraint, under a name that no other has."""
        names = {fold(c.name) for c in self.constraints}
        name, count = constraint.name, 1
        while fold(name) in names:
            count += 1
            name = f"{constraint.name}{count}"
        self.constraints.append(replace(constraint, name=name))


def create_table(node: exp.Create, text: str, context: QueryContext) -> st.CreateTable:
    """``CREATE TABLE name (columns and constraints)``, or ``… AS query``."""
    name = relation_name(node.this, context)
    said = properties_of(node, context, exp.FileFormatProperty, exp.SchemaCommentProperty, exp.LikeProperty)
    flags = bool(node.args.get("exists")), bool(node.args.get("replace"))
    like = next((part for part in said if isinstance(part, exp.LikeProperty)), None)
    if like is not None:
        return _like(like, st.CreateTable(text, name, Schema(()), (), {}, *flags), node, context)
    comment = next((part.name for part in said if isinstance(part, exp.SchemaCommentProperty)), None)
    comments = {} if comment is None else {"": comment}
    if node.expression is not None:
        keys = _keys_beside_query(node.this, context)
        bound = query(node.expression, context)
        fields = [Field(n, f.type, f.nullable) for n, f in zip(unique(bound.names), bound.plan.schema, strict=True)]
        schema, key = keyed(fields, keys, node, context)
        return st.CreateTable(text, name, schema, key, {}, *flags, bound.plan, comments=comments)
    if not isinstance(node.this, exp.Schema):
        raise context.error("a table of which columns?", node, "write CREATE TABLE t (id BIGINT PRIMARY KEY)")
    table = NewTable(name, [], {}, comments=comments)
    for part in node.this.expressions:
        if isinstance(part, exp.ColumnDef):
            column_of_table(part, table, context)
        else:
            constraint_of_table(part, table, context)
    if len(table.keys) > 1:
        raise context.error("two primary keys", node, "write PRIMARY KEY (a, b)")
    schema, key = keyed(table.fields, table.keys, node, context)
    made = st.CreateTable(text, name, schema, key, table.defaults, *flags, comments=table.comments)
    if table.watermark is not None:
        made = replace(made, watermark=watermark(table.watermark, table.ttl, schema, context))
    elif table.ttl is not None:
        hint = "a table forgets by its own time: WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES"
        raise context.error("a TTL without a watermark", node, hint)
    return constrained(made, table, node, context)


def _like(like: exp.LikeProperty, made: st.CreateTable, node: exp.Create, context: QueryContext) -> st.CreateTable:
    """``CREATE TABLE name LIKE other``: the columns of a table or view, and all else that a table says of its own."""
    context.only(like, "this")
    if isinstance(node.this, exp.Schema) or node.expression is not None:
        raise context.error("columns beside LIKE", node, "write CREATE TABLE t LIKE other, and then ALTER TABLE t ADD")
    other = known_name(relation_name(like.this, context), context)
    found = context.catalog.relation(other)
    fields = (found if isinstance(found, Schema) else found.schema).fields
    return replace(made, schema=Schema(fields), primary_key=context.catalog.key(other), like=other)


def known_name(name: str, context: QueryContext) -> str:
    """The name of a relation that is there, as the catalog spells it."""
    known = list(context.catalog.names())
    for other in (name, *known):
        if other in known and fold(other) == fold(name):
            return other
    raise unknown_name("table or view", name, known)


def watermark(node: exp.Expr, ttl: exp.Expr | None, schema: Schema, context: QueryContext) -> Watermark:
    """``WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES``: a column of moments, and how late they may be."""
    by_name = {fold(f.name): f for f in schema}
    if fold(node.name) not in by_name:
        raise unknown_name("column", node.name, schema.names)
    time, value = by_name[fold(node.name)], node.expression
    if time.type not in (TIMESTAMP, TIMESTAMP_NTZ, DATE):
        raise context.error(
            f"a watermark for {time.name}, which is {time.type}", node, "it is for TIMESTAMP, TIMESTAMP_NTZ or DATE"
        )
    moment, delay = (value.this, value.expression) if isinstance(value, exp.Sub) else (value, None)
    if not isinstance(moment, exp.Column) or fold(moment.name) != fold(time.name):
        raise context.error(
            "a watermark is the column, or earlier by a constant", node, f"write {time.name} - INTERVAL 5 MINUTES"
        )
    late = 0 if delay is None else _delay(delay, node, context)
    if time.type == DATE and late % MICROS["day"]:
        raise context.error("the watermark of a DATE is whole days earlier", node, "write INTERVAL 1 DAY")
    kept = None if ttl is None else _delay(ttl.this, ttl, context)
    if time.type == DATE and (kept or 0) % MICROS["day"]:
        raise context.error("the TTL of a DATE is in whole days", node, "write TTL INTERVAL 30 DAYS")
    return Watermark(time.name, late, kept)


def _delay(node: exp.Expr, around: exp.Expr, context: QueryContext) -> int:
    given = expression(node, Site(context, Scope(), "WATERMARK"))
    if not isinstance(given, Literal) or given.type not in (DAY, DAY_TIME) or given.value < 0:
        raise context.error("how late rows may be is written down", around, "as in INTERVAL 5 MINUTES; months vary")
    return int(given.value)


def constrained(made: st.CreateTable, table: NewTable, node: exp.Expr, context: QueryContext) -> st.CreateTable:
    """The table with its constraints, all of them checked."""
    if not table.constraints and not table.generated:
        return made
    check_generated(table.generated, made.schema, node, context)
    for column, text in table.generated.items():
        table.add(CheckRows(f"{made.name}_{column}_generated", text, column))
    uniques = tuple(c.columns for c in table.constraints if isinstance(c, UniqueColumns))
    checked = ConstrainedTable(made.name, made.schema, made.primary_key, uniques, node, context)
    constraints = tuple(settled(constraint, checked) for constraint in table.constraints)
    return replace(made, constraints=constraints, generated=table.generated)


def _keys_beside_query(named: exp.Expr, context: QueryContext) -> list[list[str]]:
    """The key of a table that is made from a query, which gives its columns: ``t (PRIMARY KEY (id)) AS SELECT …``."""
    parts = named.expressions if isinstance(named, exp.Schema) else []
    for part in parts:
        if isinstance(part, exp.ColumnDef | exp.Identifier):
            hint = "name and cast columns in the query; a key is written as t (PRIMARY KEY (id)) AS SELECT …"
            raise context.error("columns are declared beside a query that gives them", part, hint)
    if len(parts) > 1:
        raise context.error("two primary keys", named, "write PRIMARY KEY (a, b)")
    table = NewTable("", [], {})
    for part in parts:
        constraint_of_table(part, table, context)
        if table.constraints or table.watermark is not None or table.ttl is not None:
            hint = "make the table first, and then INSERT INTO it what the query gives"
            raise context.unsupported(f"{part.sql('spark')[:60]} beside a query", part, hint)
    return table.keys


def keyed(
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


def column_of_table(node: exp.ColumnDef, table: NewTable, context: QueryContext) -> None:
    """Take in a column and what is said of it."""
    context.only(node, "this", "kind", "constraints", "exists")
    if node.args.get("kind") is None:
        raise context.error(f'column "{node.name}" of which type?', node, f"write {node.name} BIGINT")
    type_, nullable = type_of(node.args["kind"], context), True
    for said in node.args.get("constraints") or []:
        kind = getattr(said, "kind", None)
        if isinstance(kind, exp.NotNullColumnConstraint):
            nullable = bool(kind.args.get("allow_null"))
        else:
            _said_of_column(node.name, type_, said, kind, table, context)
    table.fields.append(Field(node.name, type_, nullable))
    digits = digits_of_time(node.args["kind"])
    if digits is not None:
        time_check(node.name, digits, table)
    letters = longest_text(node.args["kind"], context)
    if letters is not None:
        length_check(node.name, letters, table)


def _said_of_column(
    column: str, type_: Type, said: exp.Expr, kind: Any, table: NewTable, context: QueryContext
) -> None:
    name = said.this.name if isinstance(said.this, exp.Identifier) else ""
    match kind:
        case exp.PrimaryKeyColumnConstraint():
            context.only(kind)
            table.keys.append([column])
        case exp.DefaultColumnConstraint():
            table.defaults[column] = default_value(kind.this, type_, context)
        case exp.CommentColumnConstraint():
            table.comments[column] = kind.name
        case exp.CheckColumnConstraint():
            check_of(kind, name, column, table, context)
        case exp.UniqueColumnConstraint():
            unique_of(kind, name, [column], table, context)
        case exp.Reference():
            reference_of(kind, name, [column], table, context)
        case exp.ComputedColumnConstraint():
            context.only(kind, "this", "persisted")
            inner = kind.this.this if isinstance(kind.this, exp.Paren) else kind.this
            table.generated[column] = rendered(inner, context)
        case LatenessOf():
            at = exp.column(exp.to_identifier(column, quoted=True))
            promise = WatermarkOf(this=at.this.copy(), expression=exp.Sub(this=at, expression=kind.this.copy()))
            constraint_of_table(promise, table, context)
        case exp.GeneratedAsIdentityColumnConstraint() | exp.AutoIncrementColumnConstraint():
            raise context.unsupported(f"{said.sql('spark')[:60]} of a column", said.parent or said, NO_SEQUENCE)
        case _:
            raise context.unsupported(f"{said.sql('spark')[:60]} of a column", said.parent or said, OF_COLUMNS)


def default_value(node: exp.Expr, type_: Type, context: QueryContext) -> Expression:
    """The value of DEFAULT, in the type of its column."""
    return cast(expression(node, Site(context, Scope(), "DEFAULT")), type_)


def constraint_of_table(node: exp.Expr, table: NewTable, context: QueryContext) -> None:
    """Take in a constraint that stands beside the columns."""
    inner: Any = node
    name = ""
    if isinstance(node, exp.Constraint) and len(node.expressions) == 1:
        inner, name = node.expressions[0], node.name
    match inner:
        case WatermarkOf():
            if table.watermark is not None:
                raise context.error("two watermarks of a table", node, "one column is the time of its rows")
            table.watermark = inner
        case TimeToLive():
            table.ttl = inner
        case exp.PrimaryKey():
            context.only(inner, "expressions", "include")
            table.keys.append([part.name for part in inner.expressions])
        case exp.CheckColumnConstraint():
            check_of(inner, name, "", table, context)
        case exp.UniqueColumnConstraint():
            columns = inner.this.expressions if isinstance(inner.this, exp.Schema) else []
            unique_of(inner, name, [column.name for column in columns], table, context)
        case exp.ForeignKey():
            context.only(inner, "expressions", "reference")
            columns = [column.name for column in inner.expressions]
            reference_of(inner.args["reference"], name, columns, table, context)
        case exp.Identifier() | exp.Column():
            raise context.error(f"column {node.name} has no type", node, f"write {node.name} BIGINT, or another type")
        case _:
            raise context.unsupported(f"{node.sql('spark')[:60]} of a table", node, OF_TABLES)
