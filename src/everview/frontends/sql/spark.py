"""A view's query as Spark reads it, whatever dialect it was written in."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from everview.frontends.sql.dialect import Plain
from everview.frontends.sql.statements import CreateView


def spark_query(view: CreateView) -> str:
    """The query behind ``CREATE VIEW … AS``: in Spark's own dialect as it was written, in another one translated.

    >>> from everview.frontends.sql import Tables, bind
    >>> (view,) = bind("CREATE MATERIALIZED VIEW v (a) AS SELECT 1 | 2 << 1", Tables({}))
    >>> spark_query(view)
    'SELECT 1 | 2 << 1'
    """
    if view.dialect == "spark":
        return view.text[_query_start(view.text) :]
    created = sqlglot.parse_one(view.text, read=view.dialect)
    assert isinstance(created, exp.Create), "a view is created by a statement"
    return created.expression.sql("spark")


def _query_start(text: str) -> int:
    """Where the query begins: after the first AS that stands in no brackets."""
    depth = 0
    for token in Plain().tokenize(text):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if token.token_type == TokenType.ALIAS and depth == 0:
            return token.end + 1 + (text[token.end + 1 : token.end + 2] == " ")
    raise AssertionError("a view has a query")
