"""Content ids of rows that a relation has or might have, as ``C := relation(…)`` binds them in rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everview.codes import decode, encode_rows
from everview.codes.dictionary import Dictionary
from everview.frontends.rules.content_ids import content_id
from everview.plan.nodes import Scan
from everview.scalars.evaluate import Evaluate

if TYPE_CHECKING:
    from everview.database.core import Core


def content_ids(database: Core, relation: str, rows: Any) -> list[str]:
    """The ids of rows, in their order; whether the relation holds them does not matter."""
    name = database.catalog.find(relation)
    schema = database.holdings.schema_of(database.catalog.seen(name))
    dictionary = Dictionary()
    table = decode(schema, encode_rows(schema, rows, dictionary)[:, :-1], dictionary)
    made = content_id(name, schema.names, Scan(name, schema).columns)
    (ids,) = Evaluate((made,))(*(column.combine_chunks() for column in table.columns))
    return ids.to_pylist()
