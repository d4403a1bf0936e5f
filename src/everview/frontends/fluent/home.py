"""The home of fluent queries: a database, a pipeline or a set of sources; and queries that are planned there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from everview.frontends.fluent.shape import Part
from everview.optimize import optimize
from everview.plan.catalog import NamedPlan, Readable
from everview.plan.node import Plan

if TYPE_CHECKING:
    from everview.frontends.fluent.query import Query


class Home(Protocol):
    """Where a query was begun: what it may read there, and what is done with it."""

    @property
    def catalog(self) -> Readable:
        """What a query may read."""
        ...

    @property
    def definitions(self) -> object:
        """What plans rest on: another object as soon as a plan made before may not hold any more."""
        ...

    def same(self, other: Home) -> bool:
        """Whether queries of both may be joined."""
        ...

    def run(self, query: Query, prepared: PreparedQuery | None = None) -> Any:
        """What a query gives now; by its plans if they were ``prepared`` and still hold."""
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
    part: Part
    definitions: object  # of its home, when it was planned

    @classmethod
    def of(cls, query: Query) -> PreparedQuery:
        definitions = query.home.definitions  # first: if others come meanwhile, the plans are taken to be old
        return cls(query, query.parts(), definitions)

    def run(self) -> Any:
        """What it gives now; see `Query.run`. If definitions have changed since, it is planned anew."""
        return self.query.home.run(self.query, self)

    def materialize(self, name: str | None = None) -> Any:
        """A view of it; see `Query.materialize`."""
        return self.query.materialize(name)

    def explain(self) -> str:
        """The plan of every part, as it would be computed."""
        home = self.query.home
        named = self.part.walk(self.query.said.relation)
        return "\n\n".join(f"{name}\n{home.computed(part.plan)}" for name, part in named)


def named_plans(part: Part, name: str, reads: tuple[str, ...] = ()) -> tuple[NamedPlan, ...]:
    """The views of a query's parts, each after the one above it; ``reads`` are the relations that the query names."""
    return tuple(_named(name, view, one, reads) for view, one in part.walk(name))


def _named(whole: str, view: str, part: Part, reads: tuple[str, ...]) -> NamedPlan:
    above = () if view == whole else (view[: -len(part.name) - 1],)
    order = tuple((part.plan.column(at), way) for at, way in part.order) if part.ordered else ()
    return NamedPlan(view, part.plan, optimize(part.plan), (*above, *reads), order, whole=whole)
