"""Questions to a system catalog: relations of pg_catalog and information_schema, and functions that read them.

Clients of PostgreSQL ask what there is by queries. Here the tree of such a query is rewritten by rules that know names
of relations, functions and types, and no query as a whole: relations get the names under which they are given as rows,
a function of the catalog becomes a look-up in a map of its results at this moment, ``'t'::regclass`` a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlglot import exp

from everview.errors import UnknownName
from everview.frontends.sql.names import fold
from everview.frontends.sql.postgresql import REGISTERED, SYSTEM_NUMBERS, as_bindable, upwards

INFORMATION: Final = "information_schema"
PG_CATALOG: Final = "pg_catalog"
_WORDS: Final = {  # functions that sqlglot has classes for, by the names of those
    "currentschema": "current_schema", "currentschemas": "current_schemas", "currentuser": "current_user",
    "sessionuser": "session_user", "currentcatalog": "current_catalog", "currentdatabase": "current_database",
    "currentversion": "version", "version": "version", "currentrole": "current_role",
}  # fmt: skip
_ARRAY: Final = re.compile(r"\{\d+(,\d+)*\}")
_VECTORS: Final = ("indkey", "indoption", "indclass", "indcollation", "proargtypes", "tgattr", "stxkeys", "partattrs")
_WITHOUT_PARENTHESES: Final = ("session_user", "current_role", "current_catalog", "user")


@dataclass(frozen=True)
class SystemFacts:
    """All that the functions of a system catalog answer from.

    `relations` are the columns of the relations by name; `empty` names those that never have a row; `constants` are
    results that no argument changes; `lookups` are results by the arguments, as texts with commas between them, of as
    many arguments as `arity` says; `objects` are OIDs by name and `names` the reverse, for each type such as
    ``regclass``; `settings` are the values of run-time parameters.
    """

    relations: Mapping[str, Sequence[str]]
    empty: Collection[str] = ()
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lookups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    arity: Mapping[str, int] = field(default_factory=dict[str, int])
    objects: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    names: Mapping[str, Mapping[int, str]] = field(default_factory=dict[str, Mapping[int, str]])
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    configure: Callable[[str, str, bool], None] | None = None  # what set_config does
    privileges: Collection[str] = ()  # that the user has on every object, in lower case


def system_relation(node: exp.Table, facts: SystemFacts) -> str | None:
    """The relation of a system catalog that a table names, or a function without arguments; None for all others."""
    is_call = isinstance(node.this, exp.Anonymous) and not node.this.expressions
    if not is_call and not isinstance(node.this, exp.Identifier):
        return None
    schema, name = fold(node.db), fold(node.this.name)
    if is_call:
        return name if name in facts.relations else None
    if schema == INFORMATION:
        return f"{INFORMATION}.{name}"
    if schema in ("", PG_CATALOG) and name in facts.relations:
        return name
    return f"{PG_CATALOG}.{name}" if schema == PG_CATALOG else None


def asks_system(tree: exp.Expr, facts: SystemFacts, known: Collection[str]) -> bool:
    """Whether a query reads relations of a system catalog; ``known`` are other relations, folded, that come first."""
    if not isinstance(tree, (exp.Query, exp.Values)):
        return False
    own = {*known, *(fold(cte.alias) for cte in tree.find_all(exp.CTE))}
    return any(
        system_relation(table, facts) is not None and (table.db or fold(table.name) not in own)
        for table in tree.find_all(exp.Table)
    )


def with_system_relations(tree: exp.Expr, facts: SystemFacts) -> exp.Expr:
    """The tree with every relation of a system catalog under the one name that it is given by."""
    ctes = {fold(cte.alias) for cte in tree.find_all(exp.CTE)}
    if isinstance(tree, exp.Select):
        shown = [part for column in tree.expressions for part in _columns_of(column, tree, facts)]
        tree.set("expressions", [_shown_vector(column) for column in shown])
    for select in list(tree.find_all(exp.Select)):
        if _reads_nothing(select, facts, ctes):
            _become_empty(select)
    for table in list(tree.find_all(exp.Table)):
        name = system_relation(table, facts)
        if name is None or (not table.db and fold(table.name) in ctes):
            continue
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.this.name)))
        table.set("this", exp.to_identifier(name, quoted=True))
        table.set("db", None)
    for column in tree.find_all(exp.Column):
        if fold(column.db) in (PG_CATALOG, INFORMATION):
            column.set("db", None)
    return tree


def _columns_of(column: exp.Expr, select: exp.Select, facts: SystemFacts) -> Iterator[exp.Expr]:
    """The columns that ``t.*`` stands for, if t is a relation of a system catalog; else the column itself."""
    name = column.table if isinstance(column, exp.Column) and column.is_star else ""
    relation = next((t for t in _tables_of(select) if name and fold(t.alias_or_name) == fold(name)), None)
    known = None if relation is None else facts.relations.get(system_relation(relation, facts) or "")
    if known is None:
        yield column
        return
    for part in known:
        yield exp.column(part, table=exp.to_identifier(name))


def _tables_of(select: exp.Select) -> Iterator[exp.Table]:
    """The tables in FROM of a query, those of its subqueries not among them."""
    start = select.args.get("from_")
    parts = [*([] if start is None else [start.this]), *(join.this for join in select.args.get("joins") or [])]
    yield from (part for part in parts if isinstance(part, exp.Table))


def _shown_vector(column: exp.Expr) -> exp.Expr:
    """A column of the type int2vector, which is shown as numbers with blanks between them."""
    inner = column.this if isinstance(column, exp.Alias) else column
    if not isinstance(inner, exp.Column) or fold(inner.name) not in _VECTORS:
        return column
    joined = exp.Anonymous(this="array_join", expressions=[inner, exp.Literal.string(" ")])
    return exp.Alias(this=joined, alias=exp.to_identifier(column.output_name, quoted=True))


def _reads_nothing(select: exp.Select, facts: SystemFacts, ctes: Collection[str]) -> bool:
    """Whether a query has no rows because it joins a relation that never has any."""
    start = select.args.get("from_")
    if start is None or select.is_star:
        return False
    if any(part.find_ancestor(exp.Select) is select for part in select.find_all(exp.AggFunc)):
        return False  # of no rows, too, there is one count
    inner = [join.this for join in select.args.get("joins") or [] if not join.side]
    tables = [table for table in (start.this, *inner) if isinstance(table, exp.Table)]
    return any(system_relation(table, facts) in facts.empty and fold(table.name) not in ctes for table in tables)


def _become_empty(select: exp.Select) -> None:
    """Turn a query into one that has its columns, and no rows."""
    bare = isinstance(select.parent, exp.SetOperation)
    for column in select.expressions:
        name = column.output_name or "?column?"
        nothing = exp.null() if bare else exp.cast(exp.null(), "text")
        column.replace(exp.Alias(this=nothing, alias=exp.to_identifier(name, quoted=True)))
    for part in ("from_", "joins", "group", "having", "order", "distinct", "laterals"):
        select.set(part, None)
    select.set("where", exp.Where(this=exp.false()))


def with_system_functions(tree: exp.Expr, facts: SystemFacts) -> exp.Expr:
    """The tree with the functions and types of a system catalog as values, maps and numbers."""
    if isinstance(tree, exp.Create):  # a view outlives the answers of this moment
        return tree
    return as_bindable(upwards(tree, lambda node: _answered(node, facts)))


def _answered(node: exp.Expr, facts: SystemFacts) -> exp.Expr:
    if isinstance(node, exp.Cast):
        return _cast(node, facts)
    if isinstance(node, (exp.EQ, exp.NEQ)):
        return _with_array(node)
    if isinstance(node, exp.Column):
        plain = not node.table and not node.this.args.get("quoted") if isinstance(node.this, exp.Identifier) else False
        name = fold(node.name)
        return _literal(facts.constants[name]) if plain and name in _WITHOUT_PARENTHESES else node
    if not isinstance(node, exp.Func):
        return node
    name = node.name.lower() if isinstance(node, exp.Anonymous) else _WORDS.get(node.key, node.sql_name().lower())
    given = _arguments(node)
    if name in facts.constants:
        return _literal(facts.constants[name])
    if name in facts.lookups:
        return _looked_up(facts.lookups[name], given[: facts.arity.get(name, 1)])
    rewrite = _FUNCTIONS.get(name)
    return node if rewrite is None else rewrite(given, facts, node)


def _with_array(node: exp.Expr) -> exp.Expr:
    """A comparison of numbers in an array with ``'{1,2}'``, which is such an array."""
    right = node.args["expression"]
    if isinstance(right, exp.Literal) and right.is_string and _ARRAY.fullmatch(right.name):
        parts = [exp.Literal.number(part) for part in right.name.strip("{}").split(",") if part]
        node.set("expression", exp.Array(expressions=parts))
    return node


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [part for value in node.args.values() for part in (value if isinstance(value, list) else [value]) if part]


def _literal(value: Any) -> exp.Expr:
    """A constant as a tree."""
    match value:
        case None:
            return exp.cast(exp.null(), "text")
        case bool():
            return exp.Boolean(this=value)
        case int():
            return exp.Literal.number(value)
        case list():
            return exp.Array(expressions=[_literal(part) for part in value])
        case _:
            return exp.Literal.string(str(value))


def _looked_up(results: Mapping[str, Any], given: list[exp.Expr]) -> exp.Expr:
    """The result for arguments, from a map of all results; NULL for arguments that it does not have."""
    if not results:
        return _literal(None)
    keys = [exp.func("coalesce", exp.cast(part, "text"), exp.Literal.string("")) for part in given]
    key = keys[0]
    for other in keys[1:]:
        key = exp.DPipe(this=exp.DPipe(this=key, expression=exp.Literal.string(",")), expression=other)
    constant = _constant_key(given)
    if constant is not None:
        return _literal(results.get(constant))
    pairs = [_literal(part) for pair in results.items() for part in pair]
    return exp.Anonymous(this="try_element_at", expressions=[exp.Anonymous(this="map", expressions=pairs), key])


def _constant_key(given: list[exp.Expr]) -> str | None:
    """The key of arguments that are all constants."""
    parts: list[str] = []
    for argument in given:
        part = argument
        while isinstance(part, (exp.Paren, exp.Cast)):
            part = part.this
        if isinstance(part, exp.Literal):
            parts.append(part.name)
        elif isinstance(part, exp.Null):
            parts.append("")
        elif isinstance(part, exp.Neg) and isinstance(part.this, exp.Literal):
            parts.append(f"-{part.this.name}")
        else:
            return None
    return ",".join(parts)


# -- types


def _cast(node: exp.Cast, facts: SystemFacts) -> exp.Expr:
    """A cast to a type of the catalog: names of objects become OIDs, and OIDs the names of objects."""
    to = node.to
    if not isinstance(to, exp.ObjectIdentifier):
        return node
    kind = str(to.this).lower()
    if kind in SYSTEM_NUMBERS:
        return exp.cast(node.this, "bigint")
    if kind not in REGISTERED:
        return node
    value = node.this
    while isinstance(value, exp.Paren):
        value = value.this
    if kind in ("regproc", "regprocedure"):  # functions are told by their names
        return exp.Literal.string(_function_name(value.name)) if isinstance(value, exp.Literal) else node.this
    if isinstance(value, exp.Literal) and value.is_string:
        return exp.Literal.number(int(value.name) if value.name.isdigit() else _oid(kind, value.name, facts))
    if isinstance(value, (exp.Parameter, exp.Placeholder)) or _is_text(value):
        return exp.cast(_looked_up(facts.objects.get(kind, {}), [value]), "bigint")
    if isinstance(node.parent, exp.Cast) and not _to_text(node.parent):
        return node.this
    names = {str(oid): name for oid, name in facts.names.get(kind, {}).items()}
    return _looked_up(names, [node.this]) if names else exp.cast(node.this, "text")


def _function_name(written: str) -> str:
    """The name of a function without its schema and the types of its arguments."""
    return unquoted(written.partition("(")[0]).removeprefix(f"{PG_CATALOG}.")


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, (exp.DPipe, exp.Concat)) or (isinstance(node, exp.Cast) and _to_text(node))


def _to_text(node: exp.Cast) -> bool:
    return node.to.this in (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR, exp.DataType.Type.CHAR)


def _oid(kind: str, written: str, facts: SystemFacts) -> int:
    """The OID of an object by its name, which may be quoted and have a schema."""
    name = unquoted(written)
    known = facts.objects.get(kind, {})
    oid = known.get(name, known.get(fold(name)))
    if oid is None:
        what = {"regclass": "relation", "regtype": "type", "regnamespace": "schema"}.get(kind, "object")
        raise UnknownName(f'{what} "{written}" does not exist', hint="is it in another schema?")
    return oid


def unquoted(written: str) -> str:
    """A name without its quotes: ``"sales"."Orders"`` to ``sales.Orders``."""
    parts: list[str] = []
    for part in written.strip().split("."):
        quoted = len(part) > 1 and part.startswith('"') and part.endswith('"')
        parts.append(part[1:-1].replace('""', '"') if quoted else part.lower())
    return ".".join(parts)


# -- functions that say something of their arguments

Rewrite = Callable[[list[exp.Expr], SystemFacts, exp.Expr], exp.Expr]


def _first(given: list[exp.Expr], facts: SystemFacts, node: exp.Expr) -> exp.Expr:
    return given[0]


def _setting(given: list[exp.Expr], facts: SystemFacts, node: exp.Expr) -> exp.Expr:
    if not given:
        return node
    if not isinstance(given[0], exp.Literal):
        return _looked_up(facts.settings, given[:1])
    name = given[0].name.lower()
    if name not in facts.settings and len(given) < 2:
        raise UnknownName(f'unrecognized configuration parameter "{name}"', hint="SHOW ALL shows them")
    return _literal(facts.settings.get(name))


def _schemas_in_path(given: list[exp.Expr], facts: SystemFacts, node: exp.Expr) -> exp.Expr:
    """``current_schemas(implicit)``: the schemas of the search path; ``pg_catalog``, too, if ``implicit`` is true."""
    implicit = not given or not isinstance(given[0], exp.Boolean) or given[0].this
    return _literal([*([PG_CATALOG] if implicit else []), facts.constants["current_schema"]])


def _configured(given: list[exp.Expr], facts: SystemFacts, node: exp.Expr) -> exp.Expr:
    """``set_config('name', 'value', is_local)``, which changes a parameter when the statement is read."""
    if len(given) < 2 or facts.configure is None or not all(isinstance(part, exp.Literal) for part in given[:2]):
        return node
    local = len(given) > 2 and isinstance(given[2], exp.Boolean) and bool(given[2].this)
    facts.configure(given[0].name, given[1].name, local)
    return _literal(given[1].name)


def _privilege(given: list[exp.Expr], facts: SystemFacts, node: exp.Expr) -> exp.Expr:
    """``has_table_privilege(…, 'SELECT')``: whether the user has one of some privileges on every object."""
    asked = given[-1].name.lower() if given and isinstance(given[-1], exp.Literal) else "usage"
    wanted = [each.strip().removesuffix(" with grant option") for each in asked.split(",")]
    return exp.Boolean(this=any(each in facts.privileges for each in wanted))


def _to_object(kind: str) -> Rewrite:
    def rewrite(given: list[exp.Expr], facts: SystemFacts, node: exp.Expr) -> exp.Expr:
        known = facts.objects.get(kind, {})
        if isinstance(given[0], exp.Literal):
            name = unquoted(given[0].name)
            oid = known.get(name, known.get(fold(name)))
            return exp.cast(exp.null(), "bigint") if oid is None else exp.Literal.number(oid)
        return exp.cast(_looked_up(known, given[:1]), "bigint")

    return rewrite


def _renamed(name: str) -> Rewrite:
    def rewrite(given: list[exp.Expr], facts: SystemFacts, node: exp.Expr) -> exp.Expr:
        return exp.Anonymous(this=name, expressions=given)

    return rewrite


def _json_object(given: list[exp.Expr], facts: SystemFacts, node: exp.Expr) -> exp.Expr:
    """``json_build_object(key, value, …)``, with values as texts."""
    parts = [exp.cast(part, "text") for part in given]
    return exp.Anonymous(this="to_json", expressions=[exp.Anonymous(this="map", expressions=parts)])


PRIVILEGED: Final = (
    "table", "schema", "database", "column", "any_column", "function", "sequence", "tablespace", "type", "language",
    "server", "foreign_data_wrapper",
)  # fmt: skip
_FUNCTIONS: Final[dict[str, Rewrite]] = {
    "pg_get_expr": _first,
    "pg_partition_ancestors": _first,
    "pg_partition_root": _first,
    "current_setting": _setting,
    "current_schemas": _schemas_in_path,
    "set_config": _configured,
    "to_regclass": _to_object("regclass"),
    "to_regtype": _to_object("regtype"),
    "to_regnamespace": _to_object("regnamespace"),
    "array_to_string": _renamed("array_join"),
    "json_build_object": _json_object,
    **{f"has_{what}_privilege": _privilege for what in PRIVILEGED},
}
