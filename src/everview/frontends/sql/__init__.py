"""SQL in Spark's dialect, or in another, to statements whose queries are plans.

`bind` reads a text against a catalog. It knows relations, columns and types, and refuses with the place in the text
what is wrong or cannot be maintained; how a plan is computed is not its concern.
"""

from __future__ import annotations

from everview.frontends.sql.bind import bind, bind_query
from everview.frontends.sql.statements import (
    Begin,
    Commit,
    CreateTable,
    CreateView,
    Delete,
    Drop,
    Explain,
    Insert,
    Merge,
    Rollback,
    Select,
    Statement,
    Update,
)
from everview.plan.catalog import CatalogFunction, Tables

__all__ = [
    "Begin",
    "CatalogFunction",
    "Commit",
    "CreateTable",
    "CreateView",
    "Delete",
    "Drop",
    "Explain",
    "Insert",
    "Merge",
    "Rollback",
    "Select",
    "Statement",
    "Tables",
    "Update",
    "bind",
    "bind_query",
]
