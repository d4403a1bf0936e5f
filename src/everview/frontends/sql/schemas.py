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
        return _in_current(node, context) if context.schema else node.name
    known = {fold(name): name for name in context.catalog.schemas()}
    if fold(schema.name) in known:
        return f"{known[fold(schema.name)]}.{node.name}"
    if fold(schema.name) in DEFAULTS:
        return node.name
    named = file_named(f"{schema.name}.{node.name}")
    error = named or unknown_name("schema", schema.name, [DEFAULT, *known.values(), INFORMATION])
    context.source.locate(error, node)
    raise error


def _in_current(node: exp.Table, context: QueryContext) -> str:
    """The stored name of a relation without a schema, in the schema that USE named."""
    if context.schema not in context.catalog.schemas():  # it was dropped since
        error = unknown_name("schema", context.schema, [DEFAULT, *context.catalog.schemas()])
        context.source.locate(error, node)
        raise error
    context.unqualified.append(node.this)
    return f"{context.schema}.{node.name}"


def qualified(text: str, start: int, context: QueryContext) -> str:
    """A statement's text, which begins at ``start``, with the current schema before each name that was found there.

    So the text means the same under every current schema.
    """
    places = {node.meta["start"] - start for node in context.unqualified if "start" in node.meta}
    prefix = exp.to_identifier(context.schema).sql(context.dialect) + "."
    for place in sorted(places, reverse=True):
        text = text[:place] + prefix + text[place:]
    return text


def use(node: exp.Use, text: str, context: QueryContext) -> st.Use:
    """``USE [SCHEMA | DATABASE] name``: relations without a schema are of this one from now on."""
    context.only(node, "this", "kind")
    kind = "" if node.args.get("kind") is None else node.args["kind"].name.upper()
    if kind not in ("", "SCHEMA", "DATABASE", "NAMESPACE") or node.this is None:
        raise context.unsupported(f"USE {kind}".strip(), node, "write USE sales, with the name of a schema")
    name = _schema_name(node.this, context)
    known = {fold(known): known for known in context.catalog.schemas()}
    if fold(name) in known:
        return st.Use(text, known[fold(name)])
    if fold(name) in DEFAULTS:
        return st.Use(text, "")
    error = unknown_name("schema", name, [DEFAULT, *known.values()])
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
