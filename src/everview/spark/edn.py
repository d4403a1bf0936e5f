"""Views of a pipeline by EDN queries: sources are attributes, by their keys and columns, or by their two columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from everview.frontends.edn.arguments import as_arguments
from everview.frontends.edn.attributes import Attributes
from everview.frontends.edn.compile import compile_query
from everview.frontends.edn.parse import parse_query
from everview.frontends.edn.query import Aggregated
from everview.frontends.edn.reader import read
from everview.optimize import optimize
from everview.plan.node import Plan
from everview.runtimes.embedded.rehearse import rehearse_plans
from everview.types import Schema

if TYPE_CHECKING:
    from everview.spark.queries import Queries


class Readable:
    """What queries are told of a pipeline: its sources and views, and the keys of sources."""

    def __init__(self, queries: Queries, keys: Mapping[str, tuple[str, ...]]) -> None:
        self._relations, self._keys = queries.relations(), keys

    def names(self) -> Iterable[str]:
        return self._relations

    def relation(self, name: str) -> Schema | Plan:
        return self._relations[name]

    def key(self, name: str) -> tuple[str, ...]:
        return tuple(self._keys.get(name, ()))


def define_query(
    queries: Queries, keys: Mapping[str, tuple[str, ...]], text: str, name: str, args: Iterable[Any]
) -> None:
    """Add the view that a query defines."""
    query = parse_query(read(text))
    compiled = compile_query(query, as_arguments(args), Attributes(Readable(queries, keys)))
    queries.require_free(name)
    is_set = not query.with_ or any(isinstance(found, Aggregated) for found in query.find)
    better = optimize(compiled.plan)
    rehearse_plans([better])
    queries.add(name, compiled.plan, better, None, is_set=is_set)
