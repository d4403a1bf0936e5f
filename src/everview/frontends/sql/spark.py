"""A view's query as Spark reads it, whatever dialect it was written in."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from everview.errors import SqlError
from everview.frontends.sql.comparisons import COMPARISONS
from everview.frontends.sql.dialect import Plain
from everview.frontends.sql.foreign_functions import is_foreign
from everview.frontends.sql.parameters import MARK
from everview.frontends.sql.parse import parse
from everview.frontends.sql.sketches import OF_SKETCHES
from everview.frontends.sql.sources import WINDOWING
from everview.frontends.sql.statements import CreateView
from everview.scalars.text import sql


def spark_query(view: CreateView) -> str | None:
    """The query behind ``CREATE VIEW … AS``: in Spark's own dialect as it was written, in another one translated.

    None if it has clauses or table functions that Spark does not read.

    >>> from everview.frontends.sql import Tables, bind
    >>> (view,) = bind("CREATE MATERIALIZED VIEW v (a) AS SELECT 1 | 2 << 1", Tables({}))
    >>> spark_query(view)
    'SELECT 1 | 2 << 1'
    """
    if _beyond_spark(view):
        return None
    if view.dialect == "spark":
        return _with_values(view)[_query_start(view.text) :]
    created = sqlglot.parse_one(view.text, read=view.dialect)
    assert isinstance(created, exp.Create), "a view is created by a statement"
    if view.parameters:
        hint = "write the query in Spark's dialect, or the values into the text"
        raise SqlError(f"view {view.name}: parameters in the dialect {view.dialect} of a pipeline", hint=hint)
    return created.expression.sql("spark")


_CLAUSES = (exp.SetOperation, exp.LimitOptions, exp.WindowSpec, exp.SimilarTo, exp.Slice, exp.Comprehension, exp.In)


def _beyond_spark(view: CreateView) -> bool:
    """Whether a view has clauses or calls that Spark does not have: UNION BY NAME, WITH TIES, GROUPS, EXCLUDE, TUMBLE,
    HOP, SESSION, OVERLAPS, ANY and ALL, IN of a list that is a value, distinct values over a window, sketches, whose
    format is our own, and functions and tuples to which another dialect gives a meaning of its own.
    """
    (parsed,), _ = parse(view.text, view.dialect)
    if any(_is_no_comparison_of_spark(node, view.dialect) for node in parsed.tree.find_all(*_COMPARED)):
        return True
    if any(window.this.find(exp.Distinct) is not None for window in parsed.tree.find_all(exp.Window)):
        return True
    for node in parsed.tree.find_all(*_CLAUSES, exp.Func):
        groups = str(node.args.get("kind") or "").upper() == "GROUPS"
        if groups or any(node.args.get(clause) for clause in ("by_name", "with_ties", "exclude", "field")):
            return True
        if isinstance(node, exp.Anonymous) and (node.name in WINDOWING or node.name.lower() in OF_SKETCHES):
            return True
        if is_foreign(node, view.dialect):
            return True
    return False


_COMPARED = (exp.Overlaps, exp.Any, exp.All, exp.Tuple, exp.Anonymous)


def _is_no_comparison_of_spark(node: exp.Expr, dialect: str) -> bool:
    """Whether Spark cannot read a comparison, with ANY or ALL, or means another one, of tuples."""
    if isinstance(node, exp.Anonymous):
        return node.name.upper() == "ALL"
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    if isinstance(node, (exp.Any, exp.All)):
        return isinstance(around, tuple(COMPARISONS))
    if isinstance(node, exp.Tuple):
        return dialect != "spark" and isinstance(around, (*COMPARISONS, exp.In, exp.Between))
    return True


def _with_values(view: CreateView) -> str:
    r"""The text of a view with its parameters' values written in their places, from the last to the first.

    >>> from everview.frontends.sql import Tables, bind
    >>> from everview.frontends.sql.parameters import ParameterValues
    >>> given = ParameterValues.of(["it's", 2])
    >>> (view,) = bind("CREATE VIEW v AS SELECT ? AS a, ? AS b", Tables({}), given=given)
    >>> spark_query(view)
    "SELECT 'it\\'s' AS a, 2 AS b"
    """
    if not view.parameters:
        return view.text
    (parsed,), _ = parse(view.text)
    text = view.text
    for mark in reversed(parsed.marks):
        length = 1 if mark.name.startswith(MARK) else 1 + len(mark.name)
        text = text[: mark.offset] + sql(view.parameters[mark.name]) + text[mark.offset + length :]
    return text


def _query_start(text: str) -> int:
    """Where the query begins: after the first AS that stands in no brackets."""
    depth = 0
    for token in Plain().tokenize(text):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if token.token_type == TokenType.ALIAS and depth == 0:
            return token.end + 1 + (text[token.end + 1 : token.end + 2] == " ")
    raise AssertionError("a view has a query")
