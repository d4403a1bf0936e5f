"""Views of a pipeline by EDN queries: sources are attributes, by their keys and columns, or by their two columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from everview.frontends.edn.arguments import as_arguments
from everview.frontends.edn.attributes import Attributes
from everview.frontends.edn.compile import compile_query
from everview.frontends.edn.parse import parse_query
from everview.frontends.edn.reader import read

if TYPE_CHECKING:
    from everview.spark.queries import Queries


def define_query(
    queries: Queries, keys: Mapping[str, tuple[str, ...]], text: str, name: str, args: Iterable[Any]
) -> None:
    """Add the view that a query defines."""
    attributes = Attributes(queries.readable(keys))
    compiled = compile_query(parse_query(read(text)), as_arguments(args), attributes)
    queries.define([compiled.named(name)])
