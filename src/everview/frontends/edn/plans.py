"""EDN as a front end: the text of a query to the plan of one view."""

from __future__ import annotations

from collections.abc import Sequence

from everview.frontends.edn.attributes import Attributes
from everview.frontends.edn.compile import compile_query
from everview.frontends.edn.forms import AnyForm, written
from everview.frontends.edn.parse import parse_query
from everview.frontends.edn.query import Aggregated, PulledEntity
from everview.frontends.edn.reader import read
from everview.frontends.edn.symbols import DATOMIC, in_dialect
from everview.optimize import optimize
from everview.plan.catalog import NamedPlan, Readable
from everview.plan.nodes import scans


def in_one_dialect(text: str, dialect: str) -> str:
    """The text of a query in a dialect as one in which variables begin with a question mark."""
    return text if dialect == DATOMIC else written(in_dialect(read(text), dialect))


def named_plan(name: str, text: str, arguments: Sequence[AnyForm], catalog: Readable) -> NamedPlan:
    """The view of a query with its arguments, under a name that the text does not say."""
    query = parse_query(read(text))
    compiled = compile_query(query, arguments, Attributes(catalog))
    reads = tuple(dict.fromkeys((*scans(compiled.plan), *compiled.open)))
    is_set = not query.with_ or any(isinstance(element, Aggregated) for element in query.find)
    is_set = is_set and not any(
        isinstance(element, PulledEntity) for element in query.find
    )  # entities may look the same
    return NamedPlan(name, compiled.plan, optimize(compiled.plan), reads, is_set=is_set)
