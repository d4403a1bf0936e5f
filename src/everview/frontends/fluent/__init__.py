"""Fluent queries: methods that build a query step by step, and the plans that it becomes.

A query is immutable; every method gives another one, and refuses at once what cannot be. What it becomes is said in
`everview.frontends.fluent.shape`: one flat plan, or a tree of them where rows lie beneath rows.
"""

from everview.frontends.fluent import agg
from everview.frontends.fluent.clauses import Clauses
from everview.frontends.fluent.conditions import Condition, and_, col, not_, or_
from everview.frontends.fluent.home import Home, PreparedQuery
from everview.frontends.fluent.parts import named_plans, parts
from everview.frontends.fluent.query import Query
from everview.frontends.fluent.shape import Part, Record
from everview.frontends.fluent.stored import from_text, to_text
from everview.frontends.fluent.trees import trees

__all__ = [
    "Clauses",
    "Condition",
    "Home",
    "Part",
    "PreparedQuery",
    "Query",
    "Record",
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
