"""Programs of PomoRA in a database: every relation that one assigns to is a view.

All views of a program are defined in one turn, or none. Each is stored with the whole text, of which it is one result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from everview.database.catalog import Catalog
from everview.database.definitions import ViewDefinition, check_name
from everview.database.derived import Readable, optimized
from everview.database.rules import POMORA, require_text
from everview.frontends.pomora.algebra import about
from everview.frontends.pomora.compile import compile_program
from everview.frontends.pomora.parse import parse
from everview.plan.node import Plan
from everview.plan.nodes import scans

if TYPE_CHECKING:
    from everview.database.core import Core


class Assigned:
    """The views of one program. Made by `Database.datalog`."""

    def __init__(self, database: Core, text: str, heads: Iterable[str]) -> None:
        self._database = database
        self.text, self.dialect, self.heads = text, POMORA, tuple(heads)

    def remove(self) -> None:
        """Drop them all; refused while others read them."""
        catalog = self._database.catalog
        with self._database.definitions.changing():
            for name in reversed(self.heads):
                catalog = catalog.without(name)
            self._database.definitions.redefine(catalog, [])

    def __repr__(self) -> str:
        return f"<program for {', '.join(self.heads) or 'nothing'}>"


def add_program(database: Core, text: str) -> Assigned:
    """The views of a program, in one turn."""
    catalog = database.catalog
    made = views_of(catalog, require_text(text))
    for view in made.values():
        check_name("view", view.name)
        catalog = catalog.with_view(view)
    database.definitions.redefine(catalog, [])
    return Assigned(database, text, made)


def views_of(catalog: Catalog, text: str, only: str | None = None) -> dict[str, ViewDefinition]:
    """The views of a program, by their names, each after those that it reads; or ``only`` one and what it needs."""
    block = parse(text) if only is None else about(only, parse(text))
    plans = compile_program(block, Readable(catalog))
    better = optimized(plans)
    return {
        name: ViewDefinition(
            name,
            plan.schema,
            partial(_build, plan, better[name]),
            scans(plan),
            text,
            POMORA,
            plan,
            optimized=better[name],
        )
        for name, plan in plans.items()
    }


def _build(plan: Plan, better: Plan, relations: Any) -> Any:
    return relations.of_plan(better).under(plan.schema)


def read_program(catalog: Catalog, name: str, text: str) -> ViewDefinition:
    """One view of a program that was read before, with the relations as they are now."""
    others = {other: view for other, view in catalog.views.items() if view.dialect != POMORA or view.text != text}
    return views_of(replace(catalog, views=others), text, name)[name]
