"""The system catalog that clients ask: relations as rows of this moment, and what its functions answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

import pyarrow as pa

from everview.codes.ingest import ingest
from everview.database.catalog import Catalog
from everview.database.core import Core
from everview.database.frontends import ReadableDatabase
from everview.frontends.sql.system import SystemFacts
from everview.plan.node import Plan
from everview.serve.postgres.oids import PG_ARRAYS, PG_NAMES, PG_TYPES, modifier_of, oid_of, shown_type
from everview.serve.postgres.settings import SERVER_VERSION
from everview.serve.postgres.system_columns import SYSTEM_DEFAULTS, SYSTEM_SCHEMAS
from everview.serve.postgres.system_information import InformationRows
from everview.serve.postgres.system_rows import (
    CLASS_OIDS,
    PUBLIC,
    Row,
    SystemRows,
    constraint_definition,
    index_text,
    quoted_name,
)
from everview.serve.roles import Role
from everview.types import Schema

INFORMATION: Final = "information_schema."
TRUE_FUNCTIONS: Final = (
    "pg_table_is_visible", "pg_type_is_visible", "pg_function_is_visible", "pg_operator_is_visible",
    "pg_collation_is_visible", "pg_opclass_is_visible", "pg_opfamily_is_visible", "pg_conversion_is_visible",
    "pg_ts_config_is_visible", "pg_statistics_obj_is_visible", "pg_has_role",
)  # fmt: skip
FALSE_FUNCTIONS: Final = (
    "pg_is_in_recovery", "pg_is_other_temp_schema", "pg_relation_is_publishable", "pg_is_wal_replay_paused",
)  # fmt: skip
NULL_FUNCTIONS: Final = (
    "pg_get_partkeydef", "pg_get_triggerdef", "pg_get_ruledef", "pg_get_serial_sequence", "shobj_description",
    "pg_get_function_result", "pg_get_function_arguments", "pg_get_function_identity_arguments",
    "pg_get_statisticsobjdef_columns", "pg_get_statisticsobjdef", "inet_server_addr", "inet_client_addr",
    "pg_advisory_unlock_all", "pg_my_temp_schema", "pg_get_function_sqlbody", "pg_tablespace_location",
)  # fmt: skip
ZERO_FUNCTIONS: Final = (
    "pg_relation_size", "pg_total_relation_size", "pg_table_size", "pg_indexes_size", "pg_database_size",
    "pg_tablespace_size", "age", "pg_stat_get_numscans", "pg_stat_get_live_tuples", "pg_stat_get_dead_tuples",
)  # fmt: skip


READ_PRIVILEGES: Final = frozenset(("select", "usage", "connect", "execute", "set", "member"))
WRITE_PRIVILEGES: Final = READ_PRIVILEGES | {"insert", "update", "delete", "truncate"}
ADMIN_PRIVILEGES: Final = WRITE_PRIVILEGES | {"create", "references", "trigger", "temporary", "temp", "maintain"}
PRIVILEGES: Final = {Role.READ: READ_PRIVILEGES, Role.WRITE: WRITE_PRIVILEGES, Role.ADMIN: ADMIN_PRIVILEGES}


def _has_rows(name: str) -> bool:
    """Whether a relation may have rows."""
    if name.startswith(INFORMATION):
        return hasattr(InformationRows, name.removeprefix(INFORMATION))
    return name == "pg_settings" or hasattr(SystemRows, name)


@cache
def system_oids() -> dict[str, int]:
    """The OIDs of the system relations themselves: PostgreSQL's own for those that clients know, numbers for others."""
    named = [name for name in SYSTEM_SCHEMAS if name not in CLASS_OIDS]
    return {**CLASS_OIDS, **{name: 12000 + place for place, name in enumerate(named)}}


@dataclass(frozen=True)
class SystemCatalog:
    """What a catalog of definitions says of itself to one client."""

    catalog: Catalog
    database: str
    user: str
    process: int
    settings: Mapping[str, str]
    configure: Callable[[str, str, bool], None] | None = None
    role: Role = Role.ADMIN

    @cached_property
    def rows(self) -> SystemRows:
        """The rows of pg_catalog."""
        return SystemRows(self.catalog, self.database, self.user, PRIVILEGES[self.role])

    def table(self, name: str) -> pa.Table:
        """A relation of the catalog as a table."""
        schema, defaults = SYSTEM_SCHEMAS[name], SYSTEM_DEFAULTS[name]
        rows = [tuple(({**defaults, **row}).values()) for row in self._rows_of(name)]
        return ingest(schema, rows)[0]

    def _rows_of(self, name: str) -> Iterable[Row]:
        if name == "pg_settings":
            return self._settings()
        if name.startswith(INFORMATION):
            given = getattr(InformationRows(self.rows), name.removeprefix(INFORMATION), None)
        else:
            given = getattr(self.rows, name, None)
        return () if given is None else given()

    def _settings(self) -> Iterator[Row]:
        for name, value in self.settings.items():
            yield {"name": name, "setting": value, "category": "Everview", "context": "user", "vartype": "string"}

    # -- functions

    @cached_property
    def facts(self) -> SystemFacts:
        """All that functions and casts answer from."""
        return SystemFacts(
            {name: schema.names for name, schema in SYSTEM_SCHEMAS.items()},
            frozenset(name for name in SYSTEM_SCHEMAS if not _has_rows(name)),
            self._constants(),
            self._lookups(),
            {"format_type": 2, "col_description": 2, "pg_get_indexdef": 2},
            self._objects(),
            self._names(),
            self.settings,
            self.configure,
            PRIVILEGES[self.role],
        )

    def _constants(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "version": f"PostgreSQL {SERVER_VERSION} (Everview)", "current_database": self.database,
            "current_catalog": self.database, "current_schema": PUBLIC,
            "current_user": self.user, "session_user": self.user, "current_role": self.user, "user": self.user,
            "pg_backend_pid": self.process, "pg_get_userbyid": self.user, "pg_encoding_to_char": "UTF8",
            "pg_char_to_encoding": 6, "pg_size_pretty": "0 bytes", "getdatabaseencoding": "UTF8",
        }  # fmt: skip
        said |= dict.fromkeys(TRUE_FUNCTIONS, True) | dict.fromkeys(FALSE_FUNCTIONS, False)
        return said | dict.fromkeys(NULL_FUNCTIONS, None) | dict.fromkeys(ZERO_FUNCTIONS, 0)

    def _lookups(self) -> dict[str, dict[str, Any]]:
        relations = self.rows.relations
        constraints = {str(c.oid): constraint_definition(r, c) for r in relations for c in r.constraints}
        indexes: dict[str, Any] = {}
        for r in relations:
            for index in r.indexes:
                indexes |= {f"{index.oid}{more}": index_text(r, index) for more in ("", ",0")}
                indexes |= {f"{index.oid},{place}": column for place, column in enumerate(index.columns, 1)}
        views = {str(r.oid): r.text for r in relations if r.text is not None}
        comments = {f"{r.oid},{place}": text for r in relations for place, text in r.comments.items()}
        return {
            "format_type": self._types(),
            "pg_get_constraintdef": constraints,
            "pg_get_indexdef": indexes,
            "pg_get_viewdef": views,
            "obj_description": {key.removesuffix(",0"): text for key, text in comments.items() if key.endswith(",0")},
            "col_description": comments,
            "pg_get_functiondef": {str(row["oid"]): row["prosrc"] for row in self.rows.pg_proc()},
        }

    def _types(self) -> dict[str, Any]:
        pairs = {(oid, modifier) for oid in (*PG_TYPES, *PG_ARRAYS) for modifier in (None, -1)}
        pairs |= {(oid_of(f.type), modifier_of(f.type)) for r in self.rows.relations for f in r.definition.schema}
        shown = {(oid, modifier): shown_type(oid, modifier) for oid, modifier in pairs}
        return {f"{oid},{'' if modifier is None else modifier}": said for (oid, modifier), said in shown.items()}

    def _objects(self) -> dict[str, dict[str, int]]:
        relations = {name: oid for stored, oid in self.rows.oids.items() for name in (stored, f"{PUBLIC}.{stored}")}
        system = {name: oid for base, oid in system_oids().items() for name in (base, f"pg_catalog.{base}")}
        folded = {name.lower(): oid for name, oid in relations.items()}
        quoted = {".".join(map(quoted_name, name.split("."))): oid for name, oid in relations.items()}
        quoted |= {".".join(f'"{part}"' for part in name.split(".")): oid for name, oid in relations.items()}
        types = {t.name: t.oid for t in PG_TYPES.values()} | {t.shown: t.oid for t in PG_TYPES.values()}
        types |= {
            "int": 23,
            "string": 25,
            "decimal": 1700,
            **{f"{n}[]": t.array for n, t in PG_NAMES.items() if t.array},
        }
        return {
            "regclass": {**system, **quoted, **folded, **relations},
            "regtype": {**{f"pg_catalog.{name}": oid for name, oid in types.items()}, **types},
            "regnamespace": self.rows.schemas,
            "regrole": {self.user: 10},
        }

    def _names(self) -> dict[str, dict[int, str]]:
        relations = {
            r.oid: quoted_name(r.name) if r.schema == PUBLIC else f"{quoted_name(r.schema)}.{quoted_name(r.name)}"
            for r in self.rows.relations
        }
        indexes = {index.oid: quoted_name(index.name) for r in self.rows.relations for index in r.indexes}
        system = {oid: name for name, oid in system_oids().items()}
        types = {oid: str(shown_type(oid)) for oid in (*PG_TYPES, *PG_ARRAYS)}
        schemas = {oid: name for name, oid in self.rows.schemas.items()}
        return {"regclass": {**system, **relations, **indexes}, "regtype": types, "regnamespace": schemas}


class SystemReadable(ReadableDatabase):
    """The relations of a database together with those of its system catalog, for a query that is answered once."""

    def __init__(self, core: Core, system: SystemCatalog) -> None:
        super().__init__(core.catalog, core=core)
        self._system, self._files = system, core.files

    def names(self) -> Iterable[str]:
        return [*super().names(), *SYSTEM_SCHEMAS]

    def relation(self, name: str) -> Schema | Plan:
        if name not in SYSTEM_SCHEMAS:
            return super().relation(name)
        if name not in self._files:
            self._files[name] = SYSTEM_SCHEMAS[name], self._system.table(name)
        return SYSTEM_SCHEMAS[name]

    def is_set(self, name: str) -> bool:
        return name not in SYSTEM_SCHEMAS and super().is_set(name)

    def key(self, name: str) -> tuple[str, ...]:
        return () if name in SYSTEM_SCHEMAS else super().key(name)
