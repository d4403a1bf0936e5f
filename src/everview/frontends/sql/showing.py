"""SHOW, DESCRIBE and information_schema: what is defined, as rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlglot import exp

from everview.frontends.sql import statements as st
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.creating import relation_name
from everview.frontends.sql.functions import unknown_function
from everview.frontends.sql.names import fold
from everview.frontends.sql.parse import Parsed
from everview.frontends.sql.queries import complete
from everview.frontends.sql.schemas import DEFAULT
from everview.frontends.sql.sources import relation
from everview.frontends.sql.written import NAMES, RANKS
from everview.plan.catalog import INFORMATION
from everview.plan.nodes import Values
from everview.scalars.expressions import Literal
from everview.scalars.signatures import ALIASES, INTERNAL, SIGNATURES
from everview.types import BOOLEAN, INTEGER, STRING, Field, Schema, unknown_name

_NAME = r"(?P<name>[\w.]+|`[^`]+`)"
_LIKE = r"(?:\s+(?:LIKE\s+)?'(?P<like>[^']*)')?"
_IN = r"(?:\s+(?:IN|FROM)\s+(?P<schema>\w+))?"
_FORMS = {
    "tables": re.compile(rf"SHOW\s+TABLES{_IN}{_LIKE}", re.IGNORECASE),
    "views": re.compile(rf"SHOW\s+(?:MATERIALIZED\s+)?VIEWS{_IN}{_LIKE}", re.IGNORECASE),
    "columns": re.compile(rf"SHOW\s+COLUMNS\s+(?:IN|FROM)\s+{_NAME}", re.IGNORECASE),
    "functions": re.compile(rf"SHOW\s+(?:(?P<whose>ALL|USER|SYSTEM)\s+)?FUNCTIONS{_LIKE}", re.IGNORECASE),
    "schemas": re.compile(rf"SHOW\s+(?:SCHEMAS|DATABASES|NAMESPACES){_LIKE}", re.IGNORECASE),
    "catalogs": re.compile(rf"SHOW\s+CATALOGS{_LIKE}", re.IGNORECASE),
    "current": re.compile(r"SHOW\s+CURRENT\s+(?:SCHEMA|DATABASE|NAMESPACE)", re.IGNORECASE),
    "properties": re.compile(rf"SHOW\s+TBLPROPERTIES\s+{_NAME}(?:\s*\(.*\))?", re.IGNORECASE | re.DOTALL),
    "create": re.compile(rf"SHOW\s+CREATE\s+(?:TABLE|(?:MATERIALIZED\s+)?VIEW)\s+{_NAME}", re.IGNORECASE),
}
HINT = (
    "there are SHOW TABLES, VIEWS, COLUMNS IN t, FUNCTIONS, SCHEMAS, CATALOGS, CURRENT SCHEMA, TBLPROPERTIES t and "
    "SHOW CREATE TABLE t"
)
CATALOG = "everview"  # the name of the one catalog that there is


def rows_of(fields: Iterable[Field], rows: Iterable[Sequence[Any]]) -> Values:
    """Rows that are known now, as a plan."""
    schema = Schema(fields)
    kinds = schema.types
    literals = (tuple(Literal(value, type_) for value, type_ in zip(row, kinds, strict=True)) for row in rows)
    return Values(tuple(literals), schema)


def in_order(text: str, shown: Values) -> st.Select:
    """The statement that gives rows in the order in which they stand."""
    place = Field("place", INTEGER, nullable=False)
    rows = tuple((*row, Literal(number, INTEGER)) for number, row in enumerate(shown.rows))
    plan = Values(rows, Schema((*shown.schema.fields, place)))
    return st.Select(text, plan, shown.schema.names, ((plan.column(len(shown.schema)), "asc"),))


def _texts(*names: str) -> list[Field]:
    return [Field(name, STRING, nullable=False) for name in names]


# -- information_schema


def information(node: exp.Table, context: QueryContext) -> Bound:
    """A relation of information_schema, with what is defined now."""
    name = fold(node.name)
    if name not in INFORMATION:
        error = unknown_name("relation of information_schema", node.name, list(INFORMATION))
        context.source.locate(error, node)
        raise error
    rows = context.catalog.information(name)
    if rows is None:
        raise context.unsupported("information_schema here", node, "ask a database: db.sql(…)")
    schema = INFORMATION[name]
    return Bound(rows_of(schema.fields, rows), schema.names)


def _information(name: str, context: QueryContext) -> list[dict[str, Any]]:
    rows = context.catalog.information(name)
    names = INFORMATION[name].names
    return [dict(zip(names, row, strict=True)) for row in rows or ()]


# -- SHOW


def show(parsed: Parsed, context: QueryContext) -> st.Select | None:
    """The query that answers a SHOW statement; None for every other statement."""
    text = parsed.text.strip()
    if isinstance(parsed.tree, exp.Command) and parsed.tree.name == "DESCRIBE":
        return describe_column(parsed, context)
    if text.split(None, 1)[0].upper() != "SHOW":
        return None
    for kind, form in _FORMS.items():
        match = form.fullmatch(text)
        if match is not None:
            return in_order(text, _SHOWN[kind](match, context))
    words = " ".join(text.split()[:2])[:40]
    raise context.source.error(f"the statement {words!r} is not supported", parsed.start, hint=HINT)


def _liked(names: Iterable[str], match: re.Match[str]) -> list[str]:
    """The names that fit the pattern of LIKE, in which ``*`` and ``%`` stand for anything and ``|`` means or."""
    pattern = match["like"]
    if pattern is None:
        return list(names)
    parts = [re.escape(part).replace(r"\*", ".*").replace("%", ".*") for part in pattern.split("|")]
    return [name for name in names if re.fullmatch("|".join(parts), name, re.IGNORECASE)]


def _relations(kinds: tuple[str, ...], match: re.Match[str], context: QueryContext) -> list[tuple[str, str, str]]:
    every = [(r["table_schema"], r["table_name"], r["table_type"]) for r in _information("tables", context)]
    wanted = match["schema"]
    shown = [r for r in every if r[2] in kinds and (wanted is None or fold(r[0]) == fold(wanted))]
    names = set(_liked([name for _, name, _ in shown], match))
    return sorted(r for r in shown if r[1] in names)


_VIEWS: Final = ("VIEW", "MATERIALIZED VIEW", "TEMPORARY VIEW")


def _tables(match: re.Match[str], context: QueryContext) -> Values:
    tables = _relations(("BASE TABLE", *_VIEWS), match, context)
    fields = [*_texts("namespace", "tableName"), Field("isTemporary", BOOLEAN, nullable=False)]
    return rows_of(fields, [(schema, name, kind == "TEMPORARY VIEW") for schema, name, kind in tables])


def _views(match: re.Match[str], context: QueryContext) -> Values:
    views = _relations(_VIEWS, match, context)
    kinds = (Field(name, BOOLEAN, nullable=False) for name in ("isTemporary", "isMaterialized"))
    rows = [(schema, name, kind == "TEMPORARY VIEW", kind == "MATERIALIZED VIEW") for schema, name, kind in views]
    return rows_of([*_texts("namespace", "viewName"), *kinds], rows)


def _named(match: re.Match[str], context: QueryContext) -> str:
    """The stored name of the relation that is asked for."""
    written = match["name"].strip("`")
    known = {fold(known): known for known in context.catalog.names()}
    name = written.removeprefix(f"{DEFAULT}.")
    if context.schema and "." not in written:
        name = f"{context.schema}.{name}"
    if fold(name) not in known:
        raise unknown_name("table or view", name, known.values())
    return known[fold(name)]


def _columns(match: re.Match[str], context: QueryContext) -> Values:
    plan = context.catalog.scan(_named(match, context))
    return rows_of(_texts("col_name"), [(name,) for name in plan.schema.names])


def _functions(match: re.Match[str], context: QueryContext) -> Values:
    own = [r["routine_name"] for r in _information("routines", context)]
    system = {*SIGNATURES, *(alias for alias in ALIASES if alias.isidentifier()), *NAMES, *RANKS}
    whose = (match["whose"] or "ALL").upper()
    names = {*(() if whose == "USER" else system), *(() if whose == "SYSTEM" else own)}
    return rows_of(_texts("function"), [(name,) for name in sorted(_liked(sorted(names), match))])


def _schemas(match: re.Match[str], context: QueryContext) -> Values:
    return rows_of(_texts("namespace"), [(n,) for n in _liked([DEFAULT, *context.catalog.schemas()], match)])


def _catalogs(match: re.Match[str], context: QueryContext) -> Values:
    return rows_of(_texts("catalog"), [(name,) for name in _liked([CATALOG], match)])


def _current(match: re.Match[str], context: QueryContext) -> Values:
    return rows_of(_texts("catalog", "namespace"), [(CATALOG, context.schema or DEFAULT)])


def _properties(match: re.Match[str], context: QueryContext) -> Values:
    """The properties of a relation, which has none but its comment."""
    name = _named(match, context)
    comments = _comments_of(name, context)
    return rows_of(_texts("key", "value"), [("comment", comments)] if comments is not None else [])


def _comments_of(name: str, context: QueryContext) -> str | None:
    schema, _, base = name.rpartition(".")
    wanted = (fold(schema or DEFAULT), fold(base))
    rows = _information("tables", context)
    return next((r["comment"] for r in rows if (fold(r["table_schema"]), fold(r["table_name"])) == wanted), None)


def _created(match: re.Match[str], context: QueryContext) -> Values:
    name = _named(match, context)
    text = context.catalog.created(name)
    return rows_of(_texts("createtab_stmt"), [(text,)])


_SHOWN = {
    "tables": _tables,
    "views": _views,
    "columns": _columns,
    "functions": _functions,
    "schemas": _schemas,
    "catalogs": _catalogs,
    "current": _current,
    "properties": _properties,
    "create": _created,
}


# -- DESCRIBE


def describe(node: exp.Describe, text: str, context: QueryContext) -> st.Select:
    """``DESCRIBE [TABLE] name``, ``DESCRIBE query``: columns, their types and comments."""
    if node.args.get("as_json"):
        hint = "DESCRIBE gives a row for each column; information_schema has them for queries"
        raise context.unsupported("DESCRIBE … AS JSON", node.this, hint)
    context.only(node, "this", "kind", "style", "as_json")
    kind = str(node.args.get("kind") or "").upper()
    if kind in ("SCHEMA", "DATABASE", "NAMESPACE"):
        return _described_schema(node, text, context)
    if kind == "FUNCTION":
        return _described_function(node, text, context)
    if kind not in ("", "TABLE", "VIEW", "QUERY"):
        raise context.unsupported(
            f"DESCRIBE {kind}", node, "there are DESCRIBE t, SCHEMA s, FUNCTION f and DESCRIBE SELECT …"
        )
    style = str(node.args.get("style") or "").upper()
    if style == "HISTORY":
        raise context.unsupported(
            "DESCRIBE HISTORY", node, "read an epoch of it: SELECT … FROM t VERSION AS OF 3; db.epoch is the last one"
        )
    if isinstance(node.this, exp.Table):
        bound = relation(node.this, context)
        schema, names = bound.plan.schema, tuple(bound.names)
        comments = _comments(node.this, context)
    else:
        query = complete(node.this, context)
        schema, names, comments = query.plan.schema, query.names, dict[str, str]()
    fields = [*_texts("col_name", "data_type"), Field("nullable", BOOLEAN, nullable=False), Field("comment", STRING)]
    rows = [(name, f.type.sql, f.nullable, comments.get(name)) for name, f in zip(names, schema.fields, strict=False)]
    return in_order(text, rows_of(fields, rows))


def describe_column(parsed: Parsed, context: QueryContext) -> st.Select | None:
    """``DESCRIBE t column``: its name, type and comment; None for every other statement."""
    match = _COLUMN.fullmatch(parsed.text.strip())
    if match is None:
        return None
    name, column = _named(match, context), match["column"].strip("`")
    fields = {fold(f.name): f for f in context.catalog.scan(name).schema}
    if fold(column) not in fields:
        raise unknown_name("column", column, [f.name for f in fields.values()])
    field = fields[fold(column)]
    schema, _, base = name.rpartition(".")
    table = exp.table_(base, db=schema or None)
    rows = [("col_name", field.name), ("data_type", field.type.sql)]
    rows.append(("comment", _comments(table, context).get(field.name or "", "NULL")))
    return in_order(parsed.text, rows_of(_texts("info_name", "info_value"), rows))


_COLUMN = re.compile(
    rf"(?:DESCRIBE|DESC)\s+(?:TABLE\s+)?(?:EXTENDED\s+)?{_NAME}\s+(?P<column>\w+|`[^`]+`)", re.IGNORECASE
)


def _described_schema(node: exp.Describe, text: str, context: QueryContext) -> st.Select:
    name = node.this.name
    known = {fold(known): known for known in (DEFAULT, *context.catalog.schemas())}
    if fold(name) not in known:
        raise unknown_name("schema", name, known.values())
    rows = [("Catalog Name", CATALOG), ("Namespace Name", known[fold(name)])]
    return in_order(text, rows_of(_texts("info_name", "info_value"), rows))


def _described_function(node: exp.Describe, text: str, context: QueryContext) -> st.Select:
    """The description of a function: the statement that made it, or its arguments."""
    name = str(node.this.name).lower()
    own = context.catalog.stored_function(name)
    known, aggregate = SIGNATURES.get(ALIASES.get(name, name)), NAMES.get(name)
    if own is not None:
        said = own.text
    elif aggregate is not None:
        said = f"an aggregate: {aggregate.written or f'{name}(x)'} {aggregate.says}".strip()
    elif known is not None and name not in INTERNAL:
        said = f"{name}({known.arguments})" + (f": {known.note}" if known.note else "")
    else:
        raise unknown_function(name)
    return in_order(text, rows_of(_texts("function_desc"), [(f"Function: {name}",), (f"Usage: {said}",)]))


def _comments(node: exp.Table, context: QueryContext) -> dict[str, str]:
    schema = fold(node.args["db"].name if node.args.get("db") is not None else context.schema or DEFAULT)
    return {
        row["column_name"]: row["comment"]
        for row in _information("columns", context)
        if (fold(row["table_schema"]), fold(row["table_name"])) == (schema, fold(node.name))
        and row["comment"] is not None
    }


# -- COMMENT


def comment(node: exp.Comment, text: str, context: QueryContext) -> st.CommentOn:
    """``COMMENT ON TABLE | VIEW | COLUMN name IS 'text'``; an empty text takes a comment away."""
    context.only(node, "this", "kind", "expression", "materialized")
    kind, said = str(node.args["kind"]).upper(), node.expression.name
    if kind == "COLUMN":
        column = node.this
        table = exp.Table(this=column.args.get("table"), db=column.args.get("db"))
        name = column.name
    else:
        table, name = node.this, ""
    if kind not in ("TABLE", "VIEW", "COLUMN") or table.this is None:
        raise context.unsupported(f"COMMENT ON {kind}", node, "write COMMENT ON TABLE t IS '…', or ON COLUMN t.a")
    wanted = relation_name(table, context)
    known = {fold(known): known for known in context.catalog.names()}
    if fold(wanted) not in known:
        raise unknown_name("table or view", wanted, known.values())
    stored = known[fold(wanted)]
    if name:
        names = {fold(n): n for n in context.catalog.scan(stored).schema.names}
        if fold(name) not in names:
            raise unknown_name("column", name, names.values())
        name = names[fold(name)]
    return st.CommentOn(text, stored, name, said or None)
