"""Schemas: name spaces of relations. A relation of a schema has a name with a dot; others are in the default schema."""

from __future__ import annotations

from sqlglot import exp

from everview.frontends.sql import statements as st
from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.names import file_named, fold
from everview.types import unknown_name

DEFAULT = "default"
DEFAULTS = (DEFAULT, "main", "public")  # by which dialects call the schema of relations without one
INFORMATION = "information_schema"


def stored_name(node: exp.Table, context: QueryContext) -> str:
    """The name that a relation is stored by: ``schema.name``, or the name alone in the default schema.

    Whether the schema exists is checked; whether the relation does is not.
    """
    if node.args.get("catalog") is not None:
        raise context.unsupported(f"the catalog in {node.sql('spark')[:60]}", node, "write schema.name")
    schema = node.args.get("db")
    if schema is None:
        return node.name
    known = {fold(name): name for name in context.catalog.schemas()}
    if fold(schema.name) in known:
        return f"{known[fold(schema.name)]}.{node.name}"
    if fold(schema.name) in DEFAULTS:
        return node.name
    named = file_named(f"{schema.name}.{node.name}")
    error = named or unknown_name("schema", schema.name, [DEFAULT, *known.values(), INFORMATION])
    context.source.locate(error, node)
    raise error


def is_information(node: exp.Table) -> bool:
    """Whether a relation is one of information_schema."""
    schema = node.args.get("db")
    return schema is not None and fold(schema.name) == INFORMATION


def split_name(stored: str, schemas: tuple[str, ...]) -> tuple[str, str]:
    """The schema and the name of a stored relation."""
    schema, dot, name = stored.partition(".")
    return (schema, name) if dot and schema in schemas else (DEFAULT, stored)


def _schema_name(node: exp.Expr, context: QueryContext) -> str:
    named = (node.args.get("db") or node.this) if isinstance(node, exp.Table) else node
    if named is None or not named.name or "." in named.name:
        raise context.error(f"{node.sql('spark')[:60]} is no name of a schema", node, "write CREATE SCHEMA sales")
    return named.name


def create_schema(node: exp.Create, text: str, context: QueryContext) -> st.CreateSchema:
    """``CREATE SCHEMA [IF NOT EXISTS] name``."""
    context.only(node, "this", "kind", "exists")
    name = _schema_name(node.this, context)
    taken = fold(name) in (*DEFAULTS, INFORMATION) or fold(name) in map(fold, context.catalog.schemas())
    exists = bool(node.args.get("exists"))
    if taken and not exists:
        raise context.error(f'there is a schema "{name}" already', node, "give it another name, or IF NOT EXISTS")
    return st.CreateSchema(text, name, there=taken)


def drop_schema(node: exp.Drop, text: str, context: QueryContext) -> st.DropSchema:
    """``DROP SCHEMA [IF EXISTS] name [CASCADE]``."""
    table = (node.args.get("tables") or [node.this])[0]
    name = _schema_name(table, context)
    known = {fold(known): known for known in context.catalog.schemas()}
    if fold(name) not in known:
        if node.args.get("exists"):
            return st.DropSchema(text, name, missing=True)
        raise unknown_name("schema", name, known.values())
    return st.DropSchema(text, known[fold(name)], cascade=bool(node.args.get("cascade")))
