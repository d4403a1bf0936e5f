"""``/v1/views/{name}/plan`` and ``/v1/views/{name}/why``: what a view was asked to be, and why it has a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from everview.codes import to_rows
from everview.database.snapshots import core_of
from everview.errors import BadRows, UnknownName
from everview.serve.http.answering import NotFound
from everview.serve.http.formats import JSON, columns_of, dumped, json_value, rows_in
from everview.serve.pipeline_model import HOME

if TYPE_CHECKING:
    from everview.database import Database
    from everview.database.catalog import Catalog
    from everview.why import Why

WHY_SECONDS: Final = 5.0
WHY_ROWS: Final = 20  # below each node
WHY_NODES: Final = 2_000


def plan_of(database: Database, name: str) -> dict[str, Any]:
    """The columns of a relation, and of a view its text and its plans."""
    catalog = core_of(database).catalog
    try:
        found = catalog.find(name)
    except UnknownName as error:
        raise NotFound(error.message, hint=error.hint) from None
    relation = catalog.relations[found]
    told: dict[str, Any] = {"name": catalog.shown.get(found, found), "columns": columns_of(relation.schema)}
    view = catalog.views.get(found)
    if view is None:
        return {**told, "kind": "table", "key": list(catalog.tables[found].key)}
    plans = {"plan": view.plan, "optimized": view.optimized}
    told |= {"kind": "view", "materialized": view.materialized, "text": view.text, "dialect": view.dialect}
    return told | {name: None if plan is None else str(plan) for name, plan in plans.items()}


def why_of(database: Database, name: str, given: Any, seconds: float) -> dict[str, Any]:
    """Why a view has a row, which is given as its rows are told: an object of values of JSON by column."""
    catalog = core_of(database).catalog
    try:
        view = catalog.find_view(name)
    except UnknownName as error:
        raise NotFound(error.message, hint=error.hint) from None
    schema = catalog.views[view].schema
    if not isinstance(given, dict) or {*given} != {*schema.names}:
        raise BadRows(f"a row of {name} has the columns {', '.join(schema.names)}", hint="give each its value")
    (row,) = to_rows(schema, rows_in(schema, dumped([given]), JSON).select(list(schema.names)))
    return _told(database.why(name, tuple(row), rows=WHY_ROWS, seconds=seconds), catalog)


def _told(why: Why, catalog: Catalog) -> dict[str, Any]:
    """A tree as objects of JSON, from the leaves up, and of a bounded size.

    A row of the table behind a view of a pipeline has the reason why nothing further is known.
    """
    nodes = list(why.walk())[:WHY_NODES]
    made: dict[int, dict[str, Any]] = {}
    for node in reversed(nodes):
        below = [made[id(child)] for child in node.children if id(child) in made]
        row = None if node.row is None else [json_value(value) for value in node.row]
        behind = catalog.tables.get(node.table) if node.table.startswith(f"{HOME}.") else None
        note = node.note or ("" if behind is None else behind.comments.get("", ""))
        more = {"table": node.table, "times": node.times, "note": note, "ways": node.ways, "again": node.again}
        made[id(node)] = {
            "node": node.node,
            "columns": list(node.columns),
            "row": row,
            "because": below,
            "more": node.more + len(node.children) - len(below),
            **more,
        }
    return made[id(why)]
