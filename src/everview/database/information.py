"""What a database has defined, as rows of information_schema and as statements that would define it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from everview.database.catalog import Catalog
from everview.database.definitions import TableDefinition, ViewDefinition
from everview.frontends.sql.constraints import CheckRows, ForeignKey, TableConstraint, UniqueColumns
from everview.frontends.sql.schemas import DEFAULT, split_name
from everview.plan.timed import Watermark
from everview.plan.typing import literal
from everview.scalars.expressions import Now
from everview.scalars.kinds import DAY_TIME
from everview.scalars.text import sql
from everview.types.names import quoted

Rows = Sequence[tuple[Any, ...]]
C = TypeVar("C", CheckRows, UniqueColumns, ForeignKey)


def information_of(catalog: Catalog, name: str) -> Rows:
    """The rows of a relation of information_schema."""
    return list(_RELATIONS[name](catalog))


def _relations(catalog: Catalog) -> Iterator[tuple[str, str, TableDefinition | ViewDefinition]]:
    """The relations that people see, by schema and name."""
    for name, relation in catalog.relations.items():
        hidden = name in catalog.guards or (isinstance(relation, TableDefinition) and relation.internal)
        if not hidden and name not in catalog.shown:
            yield *split_name(name, catalog.schemas), relation


def _schemata(catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    yield from ((name,) for name in (DEFAULT, *catalog.schemas))


def _kind(relation: TableDefinition | ViewDefinition) -> str:
    if isinstance(relation, TableDefinition):
        return "BASE TABLE"
    if relation.materialized:
        return "MATERIALIZED VIEW"
    return "TEMPORARY VIEW" if relation.temporary else "VIEW"


def _tables(catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for schema, name, relation in _relations(catalog):
        yield schema, name, _kind(relation), relation.comments.get("")


def _columns(catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for schema, name, relation in _relations(catalog):
        defaults: Mapping[str, Any] = relation.defaults if isinstance(relation, TableDefinition) else {}
        generated: Mapping[str, str] = relation.generated if isinstance(relation, TableDefinition) else {}
        for place, f in enumerate(relation.schema, 1):
            default = _constant(defaults[f.name]) if f.name in defaults else None
            null, computed = "YES" if f.nullable else "NO", "ALWAYS" if f.name in generated else "NEVER"
            said = relation.comments.get(f.name)
            yield schema, name, f.name, place, default, null, f.type.sql, computed, generated.get(f.name), said


def _constant(value: Any) -> str:
    return str(value) if isinstance(value, Now) else sql(literal(value))


def _views(catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for schema, name, relation in _relations(catalog):
        if isinstance(relation, ViewDefinition):
            yield schema, name, relation.text, relation.materialized


def _constraints(catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for schema, name, relation in _relations(catalog):
        if not isinstance(relation, TableDefinition):
            continue
        if relation.key:
            yield schema, name, f"{relation.name}_pkey", "PRIMARY KEY", f"PRIMARY KEY ({_listed(relation.key)})"
        for constraint in relation.constraints:
            text = constraint_text(constraint)
            if text is not None:
                yield schema, name, constraint.name, text.partition(" (")[0], text


def _key_columns(catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    """The columns of primary keys, of UNIQUE columns, and of foreign keys with the place of what each refers to."""
    for schema, name, relation in _relations(catalog):
        if not isinstance(relation, TableDefinition):
            continue
        keys = [(f"{relation.name}_pkey", relation.key, False)] if relation.key else []
        for constraint in relation.constraints:
            if not isinstance(constraint, CheckRows):
                keys.append((constraint.name, constraint.columns, isinstance(constraint, ForeignKey)))
        for key, columns, refers in keys:
            for place, column in enumerate(columns, 1):
                yield schema, name, key, column, place, place if refers else None


def _references(catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for schema, constraint in _constraints_of(catalog, ForeignKey):
        other = catalog.tables[constraint.table]
        uniques = {c.columns: c.name for c in other.constraints if isinstance(c, UniqueColumns)}
        key = f"{other.name}_pkey" if {*other.key} == {*constraint.others} else uniques.get(constraint.others)
        there = split_name(constraint.table, catalog.schemas)[0]
        yield schema, constraint.name, there, key, "NONE", "NO ACTION", "NO ACTION"


def _checks(catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    for schema, constraint in _constraints_of(catalog, CheckRows):
        if not constraint.column:
            yield schema, constraint.name, constraint.text


def _constraints_of(catalog: Catalog, kind: type[C]) -> Iterator[tuple[str, C]]:
    """The constraints of one kind, each with the schema of its table."""
    for schema, _, relation in _relations(catalog):
        for constraint in relation.constraints if isinstance(relation, TableDefinition) else ():
            if isinstance(constraint, kind):
                yield schema, constraint


def _routines(catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    yield from ((function.name, function.text) for function in catalog.functions.values())


_RELATIONS: Final[dict[str, Callable[[Catalog], Iterator[tuple[Any, ...]]]]] = {
    "schemata": _schemata,
    "tables": _tables,
    "columns": _columns,
    "views": _views,
    "table_constraints": _constraints,
    "key_column_usage": _key_columns,
    "referential_constraints": _references,
    "check_constraints": _checks,
    "routines": _routines,
}


# -- statements


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(quoted, columns))


def constraint_text(constraint: TableConstraint) -> str | None:
    """A constraint as CREATE TABLE says it; None for what a generated column says."""
    match constraint:
        case CheckRows(_, text, ""):
            return f"CHECK ({text})"
        case CheckRows():
            return None
        case UniqueColumns(_, columns):
            return f"UNIQUE ({_listed(columns)})"
        case ForeignKey(_, columns, table, others):
            return f"FOREIGN KEY ({_listed(columns)}) REFERENCES {_name(table)} ({_listed(others)})"


def _name(stored: str) -> str:
    return ".".join(map(quoted, stored.split(".", 1)))


def statement_of(catalog: Catalog, name: str) -> str:
    """The CREATE statement of a relation: as it was written for a view, and put together anew for a table."""
    relation = catalog.relations[catalog.find(name)]
    if isinstance(relation, ViewDefinition):
        return relation.text or f"-- view {name} is made by a Python function"
    lines = [_column(relation, place) for place in range(len(relation.schema))]
    if relation.key:
        lines.append(f"PRIMARY KEY ({_listed(relation.key)})")
    for constraint in relation.constraints:
        text = constraint_text(constraint)
        if text is not None:
            lines.append(f"CONSTRAINT {quoted(constraint.name)} {text}")
    if relation.watermark is not None:
        lines += _watermark(relation.watermark)
    said = relation.comments.get("")
    comment = "" if said is None else f" COMMENT {sql(literal(said))}"
    return f"CREATE TABLE {_name(relation.name)} (\n  " + ",\n  ".join(lines) + f"\n){comment}"


def _watermark(watermark: Watermark) -> Iterator[str]:
    column, delay = quoted(watermark.column), watermark.delay
    earlier = f" - {sql(literal(delay, DAY_TIME))}" if delay else ""
    yield f"WATERMARK FOR {column} AS {column}{earlier}"
    if watermark.ttl is not None:
        yield f"TTL {sql(literal(watermark.ttl, DAY_TIME))}"


def _column(table: TableDefinition, place: int) -> str:
    f = table.schema.fields[place]
    parts = [quoted(f.name), f.type.sql]
    if not f.nullable and f.name not in table.key:
        parts.append("NOT NULL")
    if f.name in table.defaults:
        parts.append(f"DEFAULT {_constant(table.defaults[f.name])}")
    if f.name in table.generated:
        parts.append(f"GENERATED ALWAYS AS ({table.generated[f.name]})")
    if f.name in table.comments:
        parts.append(f"COMMENT {sql(literal(table.comments[f.name]))}")
    return " ".join(parts)
