"""The rows of information_schema, as the SQL standard and PostgreSQL have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from everview.serve.postgres.oids import PG_ARRAYS, PG_TYPES, oid_of
from everview.serve.postgres.system_rows import (
    PRIVILEGE_LETTERS,
    Row,
    SystemRelation,
    SystemRows,
    constraint_definition,
)
from everview.types import Decimal, Type

_KINDS: Final = {"p": "PRIMARY KEY", "u": "UNIQUE", "f": "FOREIGN KEY", "c": "CHECK"}
_TABLE_TYPES: Final = {"r": "BASE TABLE", "v": "VIEW"}
_BITS: Final = {21: 16, 23: 32, 20: 64, 700: 24, 701: 53}
_DATETIMES: Final = (1082, 1083, 1114, 1184, 1186)


@dataclass(frozen=True)
class InformationRows:
    """The rows of information_schema, of the same moment as the others.

    As in PostgreSQL, materialized views are not among its tables: clients add those of pg_class.
    """

    rows: SystemRows

    @property
    def _relations(self) -> list[SystemRelation]:
        return [r for r in self.rows.relations if r.kind != "m"]

    def _constraint(self, schema: str, name: str) -> dict[str, Any]:
        return {
            "constraint_catalog": self.rows.database, "constraint_schema": schema, "constraint_name": name,
            "table_catalog": self.rows.database, "table_schema": schema,
        }  # fmt: skip

    def schemata(self) -> Iterator[Row]:
        for name in self.rows.schemas:
            yield {"catalog_name": self.rows.database, "schema_name": name, "schema_owner": self.rows.user}

    def tables(self) -> Iterator[Row]:
        for r in self._relations:
            yield {
                "table_catalog": self.rows.database, "table_schema": r.schema, "table_name": r.name,
                "table_type": _TABLE_TYPES[r.kind], "is_insertable_into": "YES" if r.kind == "r" else "NO",
                "is_typed": "NO",
            }  # fmt: skip

    def columns(self) -> Iterator[Row]:
        for r in self._relations:
            generated: Mapping[str, str] = getattr(r.definition, "generated", {})
            for place, f in enumerate(r.definition.schema, 1):
                computed = f.name in generated
                yield {
                    "table_catalog": self.rows.database, "table_schema": r.schema, "table_name": r.name,
                    "column_name": f.name, "ordinal_position": place, "is_nullable": "YES" if f.nullable else "NO",
                    "column_default": None if computed else r.defaults.get(place), "is_self_referencing": "NO",
                    "is_identity": "NO", "is_generated": "ALWAYS" if computed else "NEVER",
                    "generation_expression": generated.get(f.name), "is_updatable": "YES" if r.kind == "r" else "NO",
                    "udt_catalog": self.rows.database, "udt_schema": "pg_catalog", **_type(f.type),
                }  # fmt: skip

    def views(self) -> Iterator[Row]:
        for r in self._relations:
            if r.kind != "r":
                yield {
                    "table_catalog": self.rows.database, "table_schema": r.schema, "table_name": r.name,
                    "view_definition": r.text, "check_option": "NONE", "is_updatable": "NO",
                    "is_insertable_into": "NO",
                }  # fmt: skip

    def table_constraints(self) -> Iterator[Row]:
        for r in self.rows.relations:
            for c in r.constraints:
                yield {
                    **self._constraint(r.schema, c.name), "table_name": r.name, "constraint_type": _KINDS[c.kind],
                    "is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES",
                }  # fmt: skip

    def key_column_usage(self) -> Iterator[Row]:
        for r in self.rows.relations:
            for c in r.constraints:
                for place, column in enumerate(c.columns, 1):
                    yield {
                        **self._constraint(r.schema, c.name), "table_name": r.name, "column_name": column,
                        "ordinal_position": place, "position_in_unique_constraint": place if c.kind == "f" else None,
                    }  # fmt: skip

    def constraint_column_usage(self) -> Iterator[Row]:
        by_name = {r.stored: r for r in self.rows.relations}
        for r in self.rows.relations:
            for c in r.constraints:
                target = by_name.get(c.text, r) if c.kind == "f" else r
                for column in c.others if c.kind == "f" else c.columns:
                    yield {
                        **self._constraint(target.schema, c.name), "constraint_schema": r.schema,
                        "table_name": target.name, "column_name": column,
                    }  # fmt: skip

    def referential_constraints(self) -> Iterator[Row]:
        by_name = {r.stored: r for r in self.rows.relations}
        for r in self.rows.relations:
            for c in r.constraints:
                if c.kind != "f" or c.text not in by_name:
                    continue
                target = by_name[c.text]
                unique = next((i.name for i in target.indexes if set(i.columns) == set(c.others)), None)
                yield {
                    "constraint_catalog": self.rows.database, "constraint_schema": r.schema,
                    "constraint_name": c.name, "unique_constraint_catalog": self.rows.database,
                    "unique_constraint_schema": target.schema, "unique_constraint_name": unique,
                    "match_option": "NONE", "update_rule": "NO ACTION", "delete_rule": "NO ACTION",
                }  # fmt: skip

    def check_constraints(self) -> Iterator[Row]:
        for r in self.rows.relations:
            for c in r.constraints:
                if c.kind == "c":
                    yield {
                        "constraint_catalog": self.rows.database, "constraint_schema": r.schema,
                        "constraint_name": c.name,
                        "check_clause": constraint_definition(r, c).removeprefix("CHECK "),
                    }  # fmt: skip

    def table_privileges(self) -> Iterator[Row]:
        granted = [name for name in PRIVILEGE_LETTERS if name in self.rows.privileges]
        for r in self._relations:
            for privilege in granted:
                yield {
                    **self._grant(r), "privilege_type": privilege.upper(),
                    "with_hierarchy": "YES" if privilege == "select" else "NO",
                }  # fmt: skip

    role_table_grants = table_privileges

    def column_privileges(self) -> Iterator[Row]:
        granted = [name for name in ("insert", "references", "select", "update") if name in self.rows.privileges]
        for r in self._relations:
            for f in r.definition.schema:
                for privilege in granted:
                    yield {**self._grant(r), "column_name": f.name, "privilege_type": privilege.upper()}

    def _grant(self, relation: SystemRelation) -> dict[str, Any]:
        user = self.rows.user
        return {
            "grantor": user, "grantee": user, "table_catalog": self.rows.database, "table_schema": relation.schema,
            "table_name": relation.name, "is_grantable": "YES" if self.rows.access is None else "NO",
        }  # fmt: skip

    def routines(self) -> Iterator[Row]:
        for function in self.rows.catalog.functions.values():
            yield {
                "specific_catalog": self.rows.database, "specific_schema": "public", "specific_name": function.name,
                "routine_catalog": self.rows.database, "routine_schema": "public", "routine_name": function.name,
                "routine_type": "FUNCTION", "routine_definition": function.text,
            }  # fmt: skip


def _type(type_: Type) -> dict[str, Any]:
    """What information_schema.columns says of a type."""
    oid = oid_of(type_)
    if oid in PG_ARRAYS:
        return {"data_type": "ARRAY", "udt_name": f"_{PG_ARRAYS[oid].name}"}
    said: dict[str, Any] = {"data_type": PG_TYPES[oid].shown, "udt_name": PG_TYPES[oid].name}
    if isinstance(type_, Decimal):
        said |= {"numeric_precision": type_.precision, "numeric_precision_radix": 10, "numeric_scale": type_.scale}
    elif oid in _BITS:
        said |= {"numeric_precision": _BITS[oid], "numeric_precision_radix": 2}
        said |= {} if oid in (700, 701) else {"numeric_scale": 0}
    elif oid in _DATETIMES:
        said |= {"datetime_precision": 0 if oid == 1082 else 6}
    return said
