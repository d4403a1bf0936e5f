"""SQL in Spark's dialect, or in another, to statements whose queries are plans.

`bind` reads a text against a catalog of relations, columns and types. A mistake, or a query that cannot be maintained,
is refused with its place in the text. How a plan is computed is decided elsewhere.
"""

from __future__ import annotations

from everview.frontends.sql.bind import bind, bind_query
from everview.frontends.sql.statements import (
    AlterTable,
    Begin,
    CommentOn,
    Commit,
    CopyFrom,
    CopyTo,
    CreateFunction,
    CreateSchema,
    CreateTable,
    CreateView,
    Deallocate,
    DeleteRows,
    Drop,
    DropFunction,
    DropSchema,
    Execute,
    Explain,
    InsertRows,
    Merge,
    Prepare,
    Rollback,
    Select,
    Statement,
    UpdateRows,
    Use,
)
from everview.plan.catalog import CatalogFunction, Tables

__all__ = [
    "AlterTable",
    "Begin",
    "CatalogFunction",
    "CommentOn",
    "Commit",
    "CopyFrom",
    "CopyTo",
    "CreateFunction",
    "CreateSchema",
    "CreateTable",
    "CreateView",
    "Deallocate",
    "DeleteRows",
    "Drop",
    "DropFunction",
    "DropSchema",
    "Execute",
    "Explain",
    "InsertRows",
    "Merge",
    "Prepare",
    "Rollback",
    "Select",
    "Statement",
    "Tables",
    "UpdateRows",
    "Use",
    "bind",
    "bind_query",
]
