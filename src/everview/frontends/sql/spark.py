"""A view's query as Spark reads it, whatever dialect it was written in."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from everview.frontends.sql.statements import CreateView


def spark_query(view: CreateView) -> str:
    """The query behind ``CREATE VIEW … AS``.

    >>> from everview.frontends.sql import Tables, bind
    >>> (view,) = bind("CREATE MATERIALIZED VIEW v AS SELECT 1 AS one", Tables({}))
    >>> spark_query(view)
    'SELECT 1 AS one'
    """
    created = sqlglot.parse_one(view.text, read=view.dialect)
    assert isinstance(created, exp.Create), "a view is created by a statement"
    return created.expression.sql("spark")
