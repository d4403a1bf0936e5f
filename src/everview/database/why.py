"""Why a view has a row, and why it has not: questions to a database, answered from what its relations hold."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from everview.errors import QueryError
from everview.plan.node import Plan
from everview.types import Schema
from everview.why import Why, WhyAsked
from everview.why.held import Answer, HeldByRun

if TYPE_CHECKING:
    from everview.database.core import Core


def why(core: Core, view: str, row: Any, *, rows: int, seconds: float) -> Why:
    """See `Database.why`."""
    with _asking(core, view, rows, seconds) as asked:
        return asked.why(row)


def why_not(core: Core, view: str, row: Any, *, rows: int, seconds: float) -> Why:
    """See `Database.why_not`."""
    with _asking(core, view, rows, seconds) as asked:
        return asked.why_not(row)


@contextmanager
def _asking(core: Core, view: str, rows: int, seconds: float) -> Generator[WhyAsked]:
    """Questions about a view, of which nothing changes meanwhile."""
    with core.still:
        core.access.ready()
        core.access.require_open()
        name = core.catalog.find_view(view)
        if core.catalog.views[name].plan is None:
            raise QueryError(
                f"view {view} is made by a function, which cannot be looked into",
                hint="define it in SQL, Datalog, EDN or step by step",
            )
        yield WhyAsked(HeldByDatabase(core), name, rows=rows, seconds=seconds, asked="db")


class HeldByDatabase(HeldByRun):
    """The rows and plans of a database, as explanations read them."""

    def __init__(self, core: Core) -> None:
        super().__init__(core.run)
        self._core, self._catalog = core, core.catalog

    def schema_of(self, relation: str) -> Schema:
        """The columns of a relation."""
        return self._catalog.relations[relation].schema

    def plan_of(self, relation: str) -> Plan | None:
        """The plan of a view; None for a table, and for a view that a function makes."""
        view = self._catalog.views.get(relation)
        return None if view is None else view.optimized

    def keeps(self, relation: str) -> bool:
        """Whether the rows of a relation are held."""
        views = self._catalog.views
        return relation in self._catalog.tables or (relation in views and views[relation].materialized)

    def is_table(self, relation: str) -> bool:
        """Whether a relation is a table."""
        return relation in self._catalog.tables

    def kept_views(self) -> Iterable[str]:
        """The materialized views."""
        return [view.name for view in self._catalog.views.values() if view.materialized]

    def shown(self, relation: str) -> str:
        """The name by which people know a relation."""
        return self._catalog.shown.get(relation, relation)

    def answer(self, plan: Plan) -> Answer:
        """The rows of a plan now, as a query gives them."""
        return self._core.holdings.answered(plan)
