"""Lookups by key, answered from the index of a table or a view without a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from everview.database.lookup import rows_with
from everview.runtimes.embedded.relation import KeptTable
from everview.types import BIGINT, INTEGER, SMALLINT, STRING, Schema, Type

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.frontends.sql.lookups import TableLookup
    from everview.scalars.expressions import Literal

_BITS: Final[dict[Type, int]] = {SMALLINT: 15, INTEGER: 31, BIGINT: 63}


def looked_up(core: Core, lookup: TableLookup, values: Sequence[Literal]) -> tuple[Schema, pa.Table] | None:
    """The rows that a lookup asks for; None if no index has them, and the query has to be planned."""
    name = lookup.relation
    schema = _indexed(core, name, [column for column, _ in lookup.values])
    if schema is None or not {*lookup.columns}.issubset(schema.names):
        return None
    wanted: dict[str, Any] = {}
    for column, number in lookup.values:
        given = values[number - 1] if number <= len(values) else None
        if given is None or not _fits(given, schema[column].type):
            return None
        wanted[column] = given.value
    rows = rows_with(core, name, wanted)
    names = lookup.columns or schema.names
    shown = Schema(schema[column] for column in names)
    places = [schema.index(column) for column in names]
    arrays = [pa.array([row[place] for row in rows], f.type.arrow) for place, f in zip(places, shown, strict=True)]
    return shown, pa.Table.from_arrays(arrays, names=list(names))


def _indexed(core: Core, name: str, columns: Sequence[str]) -> Schema | None:
    """The first columns in the sort order of a relation; None for a relation without such an order."""
    catalog = core.catalog
    if name in catalog.tables:
        relation = core.definitions.relations.get(name)
        stored = relation.stored if isinstance(relation, KeptTable) and not catalog.tables[name].internal else None
    else:
        stored = core.run.views[name].schema if name in catalog.views and name in core.run.views else None
    if stored is None or {*stored.names[: len(columns)]} != {*columns}:
        return None
    return core.holdings.schema_of(name)


def _fits(given: Literal, type_: Type) -> bool:
    """Whether a value is one of a column's own values, so that equality is a search for it."""
    if given.type == STRING and type_ == STRING:
        return isinstance(given.value, str)
    whole = given.type in _BITS and type_ in _BITS and isinstance(given.value, int)
    return whole and -(1 << _BITS[type_]) < given.value < 1 << _BITS[type_]
