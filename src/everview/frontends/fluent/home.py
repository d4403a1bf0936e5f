"""The home of fluent queries: a database, a pipeline or a set of sources; and queries that are planned there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from everview.frontends.fluent.shape import QueryPart
from everview.optimize import optimize
from everview.plan.catalog import Readable
from everview.plan.node import Plan

if TYPE_CHECKING:
    from everview.frontends.fluent.query import Query


class Home(Protocol):
    """The database, pipeline or set of sources in which a query is planned and run."""

    @property
    def catalog(self) -> Readable:
        """The relations and functions that a query may name."""
        ...

    @property
    def definitions(self) -> object:
        """A token of the definitions that plans rest on; another object once earlier plans may be out of date."""
        ...

    def same(self, other: Home) -> bool:
        """Whether queries of both may be joined."""
        ...

    def run(self, query: Query, prepared: PreparedQuery | None = None) -> Any:
        """The result of a query now; plans that were ``prepared`` are used if they still hold."""
        ...

    def materialize(self, query: Query, name: str | None) -> Any:
        """A view of a query."""
        ...

    def computed(self, plan: Plan) -> Plan:
        """A plan as it would be computed here."""
        return optimize(plan)


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query that has been checked as a whole, and planned."""

    query: Query
    part: QueryPart
    definitions: object  # of its home, when it was planned

    @classmethod
    def of(cls, query: Query) -> PreparedQuery:
        definitions = query.home.definitions  # first: if others come meanwhile, the plans are taken to be old
        return cls(query, query.parts(), definitions)

    def run(self) -> Any:
        """The result now, as `Query.run` gives it; the query is planned anew if definitions have changed."""
        return self.query.home.run(self.query, self)

    def materialize(self, name: str | None = None) -> Any:
        """A view of the query; see `Query.materialize`."""
        return self.query.materialize(name)

    def explain(self) -> str:
        """The plan of every part, as it would be computed."""
        home = self.query.home
        named = self.part.walk(self.query.said.relation)
        return "\n\n".join(f"{name}\n{home.computed(part.plan)}" for name, part in named)
