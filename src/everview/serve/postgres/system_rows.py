"""The rows of pg_catalog and information_schema: what a database has defined at one moment, as PostgreSQL would say it.

OIDs come from names by a hash, so that a relation keeps its OID for as long as its name, in every connection.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from everview.database.catalog import Catalog
from everview.database.definitions import TableDefinition, ViewDefinition
from everview.database.information import constraint_text
from everview.frontends.dialects import is_sql
from everview.frontends.sql.constraints import CheckRows, ForeignKey, TableConstraint, UniqueColumns
from everview.frontends.sql.parse import query_of_view
from everview.frontends.sql.postgresql_quoting import keywords
from everview.frontends.sql.schemas import split_name
from everview.plan.typing import literal
from everview.scalars.expressions import Now
from everview.scalars.text import sql
from everview.serve.ingests import KEYS
from everview.serve.postgres.oids import PG_ARRAYS, PG_TYPES, modifier_of, oid_of, shown_type, size_of

FIRST_OID: Final = 16384
PUBLIC: Final = "public"
PUBLIC_OID: Final = 2200
CATALOG_OID: Final = 11
INFORMATION_OID: Final = 13000
OWNER_OID: Final = 10
DATABASE_OID: Final = 5
HEAP: Final = 2
BTREE: Final = 403
OPCLASS: Final = 10000
DEFAULT_COLLATION: Final = 100
CLASS_OIDS: Final = {"pg_class": 1259, "pg_namespace": 2615, "pg_type": 1247, "pg_constraint": 2606, "pg_proc": 1255}
PRIVILEGE_LETTERS: Final = {
    "insert": "a", "select": "r", "update": "w", "delete": "d", "truncate": "D", "references": "x", "trigger": "t",
}  # fmt: skip
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SystemIndex:
    """The index that PostgreSQL would have for a key or UNIQUE; here it is a name only."""

    oid: int
    name: str
    columns: tuple[str, ...]
    primary: bool


@dataclass(frozen=True, slots=True)
class SystemConstraint:
    """A constraint of a table with its OID."""

    oid: int
    name: str
    kind: str  # as pg_constraint.contype has it
    columns: tuple[str, ...]
    text: str
    index: int = 0
    table: int = 0  # that a foreign key refers to
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class SystemRelation:
    """A table or view with its OID and its parts."""

    oid: int
    schema: str
    name: str
    stored: str
    definition: TableDefinition | ViewDefinition
    row_type: int  # the OID of the type of its rows
    indexes: tuple[SystemIndex, ...] = ()
    constraints: tuple[SystemConstraint, ...] = ()

    @property
    def kind(self) -> str:
        """As pg_class.relkind has it."""
        if isinstance(self.definition, TableDefinition):
            return "r"
        return "m" if self.definition.materialized else "v"

    @property
    def defaults(self) -> dict[int, str]:
        """The defaults and generating expressions of columns, by their places."""
        definition = self.definition
        if not isinstance(definition, TableDefinition):
            return {}
        texts = {name: _constant(value) for name, value in definition.defaults.items()} | dict(definition.generated)
        return {place: texts[f.name] for place, f in enumerate(definition.schema, 1) if f.name in texts}

    @property
    def comments(self) -> dict[int, str]:
        """Comments by the places of columns; that of the relation by 0."""
        said = self.definition.comments
        places = {f.name: place for place, f in enumerate(self.definition.schema, 1)}
        return {0 if not name else places[name]: text for name, text in said.items() if not name or name in places}

    def places(self, columns: tuple[str, ...]) -> list[int]:
        """The places of columns, from 1 on."""
        return [self.definition.schema.index(column) + 1 for column in columns]

    def index_of(self, columns: tuple[str, ...]) -> int:
        """The OID of the index of a key with some columns; 0 if there is none."""
        return next((index.oid for index in self.indexes if set(index.columns) == set(columns)), 0)

    @property
    def text(self) -> str | None:
        """The query of a view."""
        view = self.definition
        if not isinstance(view, ViewDefinition):
            return None
        if view.text is None or not is_sql(view.dialect):
            return view.text
        return query_of_view(view.text, view.dialect, ", ".join(map(quoted_name, view.schema.names)))


def _constant(value: Any) -> str:
    return str(value) if isinstance(value, Now) else sql(literal(value))


@dataclass
class OidSource:
    """OIDs by names: the same name has the same OID, and two names never share one."""

    taken: dict[int, str] = field(default_factory=dict[int, str])

    def of(self, *parts: str) -> int:
        """The OID of a name of some kind."""
        name = "\0".join(parts)
        oid = FIRST_OID + zlib.crc32(name.encode()) % (2**31 - 2 * FIRST_OID)
        while self.taken.setdefault(oid, name) != name:
            oid += 1
        return oid


@dataclass(frozen=True)
class SystemRows:
    """The rows of all system relations of a catalog."""

    catalog: Catalog
    database: str
    user: str
    privileges: Collection[str] = ()  # that the user has on every table

    @cached_property
    def access(self) -> list[str] | None:
        """What pg_class.relacl says of a table: the letters of the user's privileges; None for all of them."""
        letters = "".join(letter for name, letter in PRIVILEGE_LETTERS.items() if name in self.privileges)
        return None if len(letters) in (0, len(PRIVILEGE_LETTERS)) else [f"{self.user}={letters}/{self.user}"]

    @cached_property
    def schemas(self) -> dict[str, int]:
        """The schemas by name, with their OIDs."""
        oids = OidSource()
        named = {name: oids.of("schema", name) for name in self.catalog.schemas}
        return {"pg_catalog": CATALOG_OID, "information_schema": INFORMATION_OID, PUBLIC: PUBLIC_OID, **named}

    @cached_property
    def relations(self) -> list[SystemRelation]:
        """The relations that people see, in the order of their names."""
        catalog, oids, made = self.catalog, OidSource(), list[SystemRelation]()
        for stored, relation in sorted(catalog.relations.items()):
            hidden = stored in catalog.guards or (isinstance(relation, TableDefinition) and relation.internal)
            if hidden or stored in catalog.shown or stored == KEYS:
                continue
            schema, name = split_name(stored, catalog.schemas)
            schema = schema if schema in catalog.schemas else PUBLIC
            row = SystemRelation(oids.of("relation", stored), schema, name, stored, relation, oids.of("type", stored))
            made.append(_with_parts(row, oids) if isinstance(relation, TableDefinition) else row)
        return made

    @cached_property
    def oids(self) -> dict[str, int]:
        """The OIDs of relations, and of indexes, by stored name."""
        return {r.stored: r.oid for r in self.relations} | {i.name: i.oid for r in self.relations for i in r.indexes}

    # -- pg_catalog

    def pg_namespace(self) -> Iterator[Row]:
        for name, oid in self.schemas.items():
            yield {"oid": oid, "nspname": name, "nspowner": OWNER_OID}

    def pg_class(self) -> Iterator[Row]:
        watched = {r.oid for r in self.relations if any(c.kind == "f" for c in r.constraints)}
        watched |= {self.oids.get(c.text, 0) for r in self.relations for c in r.constraints if c.kind == "f"}
        for r in self.relations:
            yield {
                "oid": r.oid, "relname": r.name, "relnamespace": self.schemas[r.schema], "reltype": r.row_type,
                "relowner": OWNER_OID, "relam": 0 if r.kind == "v" else HEAP, "reltuples": -1.0,
                "relhasindex": bool(r.indexes), "relpersistence": "p", "relkind": r.kind,
                "relnatts": len(r.definition.schema), "relchecks": sum(c.kind == "c" for c in r.constraints),
                "relispopulated": True, "relreplident": "d",
                "relhasrules": r.kind != "r", "relhastriggers": r.oid in watched,
                "relacl": self.access,
            }  # fmt: skip
            for index in r.indexes:
                yield {
                    "oid": index.oid, "relname": index.name, "relnamespace": self.schemas[r.schema],
                    "relowner": OWNER_OID, "relam": BTREE, "relpersistence": "p", "relkind": "i",
                    "relnatts": len(index.columns), "relispopulated": True, "relreplident": "n",
                }  # fmt: skip

    def pg_attribute(self) -> Iterator[Row]:
        for r in self.relations:
            generated: Mapping[str, str] = r.definition.generated if isinstance(r.definition, TableDefinition) else {}
            for place, f in enumerate(r.definition.schema, 1):
                oid = oid_of(f.type)
                yield {
                    "attrelid": r.oid, "attname": f.name, "atttypid": oid, "attlen": size_of(oid), "attnum": place,
                    "attndims": int(oid in PG_ARRAYS), "atttypmod": modifier_of(f.type), "attnotnull": not f.nullable,
                    "atthasdef": place in r.defaults, "attislocal": True, "attstorage": "p", "attalign": "i",
                    "attstattarget": -1, "attgenerated": "s" if f.name in generated else "",
                    "attcollation": DEFAULT_COLLATION if oid == 25 else 0,
                }  # fmt: skip
            for index in r.indexes:
                for place, column in enumerate(index.columns, 1):
                    f = r.definition.schema[column]
                    oid = oid_of(f.type)
                    yield {
                        "attrelid": index.oid, "attname": column, "atttypid": oid, "attlen": size_of(oid),
                        "attnum": place, "atttypmod": modifier_of(f.type), "attislocal": True, "attstorage": "p",
                        "attalign": "i", "attstattarget": -1,
                    }  # fmt: skip

    def pg_type(self) -> Iterator[Row]:
        common = {"typnamespace": CATALOG_OID, "typowner": OWNER_OID, "typisdefined": True, "typdelim": ","}
        for t in PG_TYPES.values():
            yield {
                **common, "oid": t.oid, "typname": t.name, "typlen": t.size, "typbyval": 0 < t.size <= 8,
                "typtype": "p" if t.category == "P" else "b", "typcategory": t.category, "typarray": t.array,
                "typinput": f"{t.function}in", "typoutput": f"{t.function}out", "typreceive": f"{t.function}recv",
                "typsend": f"{t.function}send", "typalign": "i", "typstorage": "p", "typtypmod": -1,
                "typispreferred": t.name in ("text", "bool", "float8", "timestamptz", "interval"),
                "typcollation": DEFAULT_COLLATION if t.category == "S" else 0,
            }  # fmt: skip
            if t.array:
                yield {
                    **common, "oid": t.array, "typname": f"_{t.name}", "typlen": -1, "typtype": "b",
                    "typcategory": "A", "typelem": t.oid, "typinput": "array_in", "typoutput": "array_out",
                    "typreceive": "array_recv", "typsend": "array_send", "typalign": "i", "typstorage": "x",
                    "typtypmod": -1, "typsubscript": "array_subscript_handler",
                }  # fmt: skip
        for r in self.relations:
            yield {
                **common, "oid": r.row_type, "typname": r.name, "typnamespace": self.schemas[r.schema], "typlen": -1,
                "typtype": "c", "typcategory": "C", "typrelid": r.oid, "typinput": "record_in",
                "typoutput": "record_out", "typreceive": "record_recv", "typsend": "record_send", "typalign": "d",
                "typstorage": "x", "typtypmod": -1,
            }  # fmt: skip

    def pg_attrdef(self) -> Iterator[Row]:
        oids = OidSource()
        for r in self.relations:
            for place, text in r.defaults.items():
                yield {"oid": oids.of("default", r.stored, str(place)), "adrelid": r.oid, "adnum": place, "adbin": text}

    def pg_constraint(self) -> Iterator[Row]:
        by_oid = {r.oid: r for r in self.relations}
        for r in self.relations:
            for c in r.constraints:
                other = by_oid.get(self.oids.get(c.text, 0)) if c.kind == "f" else None
                index = c.index if other is None else other.index_of(c.others)
                yield {
                    "oid": c.oid, "conname": c.name, "connamespace": self.schemas[r.schema], "contype": c.kind,
                    "convalidated": True, "conrelid": r.oid, "conindid": index, "conislocal": True,
                    "connoinherit": c.kind != "c", "conkey": r.places(c.columns) if c.columns else None,
                    "confrelid": 0 if other is None else other.oid,
                    "confkey": None if other is None else other.places(c.others),
                    "confupdtype": "a" if c.kind == "f" else " ", "confdeltype": "a" if c.kind == "f" else " ",
                    "confmatchtype": "s" if c.kind == "f" else " ",
                }  # fmt: skip

    def pg_index(self) -> Iterator[Row]:
        for r in self.relations:
            for index in r.indexes:
                count = len(index.columns)
                yield {
                    "indexrelid": index.oid, "indrelid": r.oid, "indnatts": count, "indnkeyatts": count,
                    "indisunique": True, "indisprimary": index.primary, "indimmediate": True, "indisvalid": True,
                    "indisready": True, "indislive": True, "indkey": r.places(index.columns),
                    "indcollation": [0] * count, "indclass": [OPCLASS] * count, "indoption": [0] * count,
                }  # fmt: skip

    def pg_description(self) -> Iterator[Row]:
        for r in self.relations:
            for place, text in r.comments.items():
                yield {
                    "objoid": r.oid, "classoid": CLASS_OIDS["pg_class"], "objsubid": place, "description": text,
                }  # fmt: skip

    def pg_proc(self) -> Iterator[Row]:
        oids = OidSource()
        for function in self.catalog.functions.values():
            yield {
                "oid": oids.of("function", function.name), "proname": function.name, "pronamespace": PUBLIC_OID,
                "proowner": OWNER_OID, "prolang": 14, "prokind": "f", "provolatile": "i", "proparallel": "s",
                "prorettype": 25, "prosrc": function.text,
            }  # fmt: skip

    def pg_database(self) -> Iterator[Row]:
        yield {
            "oid": DATABASE_OID, "datname": self.database, "datdba": OWNER_OID, "encoding": 6, "datlocprovider": "c",
            "datallowconn": True, "datconnlimit": -1, "dattablespace": 1663, "datcollate": "C", "datctype": "C",
        }  # fmt: skip

    def pg_roles(self) -> Iterator[Row]:
        yield {
            "oid": OWNER_OID, "rolname": self.user, "rolinherit": True, "rolcanlogin": True, "rolconnlimit": -1,
        }  # fmt: skip

    def pg_user(self) -> Iterator[Row]:
        yield {"usename": self.user, "usesysid": OWNER_OID}

    def pg_am(self) -> Iterator[Row]:
        yield {"oid": HEAP, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}
        yield {"oid": BTREE, "amname": "btree", "amhandler": "bthandler", "amtype": "i"}

    def pg_collation(self) -> Iterator[Row]:
        for oid, name in ((DEFAULT_COLLATION, "default"), (950, "C")):
            yield {
                "oid": oid, "collname": name, "collnamespace": CATALOG_OID, "collowner": OWNER_OID,
                "collprovider": "c", "collisdeterministic": True, "collencoding": -1,
            }  # fmt: skip

    def pg_opclass(self) -> Iterator[Row]:
        yield {
            "oid": OPCLASS, "opcmethod": BTREE, "opcname": "default_ops", "opcnamespace": CATALOG_OID,
            "opcowner": OWNER_OID, "opcdefault": True,
        }  # fmt: skip

    def pg_language(self) -> Iterator[Row]:
        yield {"oid": 14, "lanname": "sql", "lanowner": OWNER_OID, "lanpltrusted": True}

    def pg_tablespace(self) -> Iterator[Row]:
        yield {"oid": 1663, "spcname": "pg_default", "spcowner": OWNER_OID}

    def pg_get_keywords(self) -> Iterator[Row]:
        for word, reserved in sorted(keywords().items()):
            yield {
                "word": word, "catcode": "R" if reserved else "U", "barelabel": not reserved,
                "catdesc": "reserved" if reserved else "unreserved",
                "baredesc": "requires AS" if reserved else "can be bare label",
            }  # fmt: skip

    def pg_tables(self) -> Iterator[Row]:
        for r in self.relations:
            if r.kind == "r":
                yield {
                    "schemaname": r.schema, "tablename": r.name, "tableowner": self.user,
                    "hasindexes": bool(r.indexes),
                }  # fmt: skip

    def pg_views(self) -> Iterator[Row]:
        for r in self.relations:
            if r.kind == "v":
                yield {"schemaname": r.schema, "viewname": r.name, "viewowner": self.user, "definition": r.text}

    def pg_matviews(self) -> Iterator[Row]:
        for r in self.relations:
            if r.kind == "m":
                yield {
                    "schemaname": r.schema, "matviewname": r.name, "matviewowner": self.user, "ispopulated": True,
                    "definition": r.text,
                }  # fmt: skip

    def pg_indexes(self) -> Iterator[Row]:
        for r in self.relations:
            for index in r.indexes:
                yield {
                    "schemaname": r.schema, "tablename": r.name, "indexname": index.name,
                    "indexdef": index_text(r, index),
                }  # fmt: skip


def _with_parts(relation: SystemRelation, oids: OidSource) -> SystemRelation:
    """A table with its indexes and constraints."""
    table = relation.definition
    assert isinstance(table, TableDefinition), "views have no constraints"
    indexes, constraints = list[SystemIndex](), list[SystemConstraint]()

    def unique(name: str, columns: tuple[str, ...], *, primary: bool) -> None:
        index = SystemIndex(oids.of("relation", f"{relation.stored}.{name}"), name, columns, primary)
        indexes.append(index)
        text = f"{'PRIMARY KEY' if primary else 'UNIQUE'} ({_listed(columns)})"
        oid = oids.of("constraint", relation.stored, name)
        constraints.append(SystemConstraint(oid, name, "p" if primary else "u", columns, text, index.oid))

    if table.key:
        unique(f"{relation.name}_pkey", table.key, primary=True)
    for constraint in table.constraints:
        if isinstance(constraint, UniqueColumns):
            unique(constraint.name, constraint.columns, primary=False)
        elif constraint_text(constraint) is not None:
            constraints.append(_other_constraint(relation, constraint, oids))
    return replace(relation, indexes=tuple(indexes), constraints=tuple(constraints))


def _other_constraint(relation: SystemRelation, constraint: TableConstraint, oids: OidSource) -> SystemConstraint:
    oid = oids.of("constraint", relation.stored, constraint.name)
    match constraint:
        case ForeignKey(name, columns, table, others):
            return SystemConstraint(oid, name, "f", columns, table, others=others)
        case CheckRows(name, text):
            return SystemConstraint(oid, name, "c", (), f"CHECK ({text})")
        case UniqueColumns(name, columns):
            return SystemConstraint(oid, name, "u", columns, f"UNIQUE ({_listed(columns)})")


def _listed(columns: tuple[str, ...]) -> str:
    return ", ".join(map(quoted_name, columns))


def quoted_name(name: str) -> str:
    """A name as PostgreSQL writes it: in quotes unless it is a plain word in lower case."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and name == name.lower() and not name[:1].isdigit()
    return name if plain else '"' + name.replace('"', '""') + '"'


def constraint_definition(relation: SystemRelation, constraint: SystemConstraint) -> str:
    """What pg_get_constraintdef says of a constraint."""
    if constraint.kind != "f":
        return constraint.text
    target = ".".join(map(quoted_name, constraint.text.split(".")))
    return f"FOREIGN KEY ({_listed(constraint.columns)}) REFERENCES {target}({_listed(constraint.others)})"


def index_text(relation: SystemRelation, index: SystemIndex) -> str:
    """What pg_get_indexdef says of an index."""
    table = f"{quoted_name(relation.schema)}.{quoted_name(relation.name)}"
    return f"CREATE UNIQUE INDEX {quoted_name(index.name)} ON {table} USING btree ({_listed(index.columns)})"


__all__ = ["CLASS_OIDS", "PUBLIC", "SystemRelation", "SystemRows", "constraint_definition", "index_text", "shown_type"]
