"""Fluent queries: methods to build a query step by step, and the plans made from a query.

A query is immutable; every method returns another query, and refuses mistakes at once. What a query becomes is told in
`everview.frontends.fluent.shape`: one flat plan, or a tree of flat plans where rows lie beneath rows.
"""

from everview.frontends.fluent import agg
from everview.frontends.fluent.clauses import Clauses
from everview.frontends.fluent.conditions import Condition, and_, col, not_, or_
from everview.frontends.fluent.home import Home, PreparedQuery
from everview.frontends.fluent.parts import named_plans, parts
from everview.frontends.fluent.query import Query
from everview.frontends.fluent.shape import QueryPart, RecordShape
from everview.frontends.fluent.stored import from_text, to_text
from everview.frontends.fluent.trees import trees

__all__ = [
    "Clauses",
    "Condition",
    "Home",
    "PreparedQuery",
    "Query",
    "QueryPart",
    "RecordShape",
    "agg",
    "and_",
    "col",
    "from_text",
    "named_plans",
    "not_",
    "or_",
    "parts",
    "to_text",
    "trees",
]
