"""Verifying: views of a database computed from scratch by the oracle, and compared with what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.database.catalog import Catalog
from everview.verify import Verdict, verify, verify_plans

if TYPE_CHECKING:
    from everview.database.core import Core


def verified(core: Core, name: str | None) -> Verdict:
    """See `Database.verify`."""
    with core.still:
        core.access.ready()
        catalog, contents_of = core.catalog, core.holdings.contents_of
        names = [n for n in core.run.views if n in catalog.views] if name is None else [catalog.find_materialized(name)]
        tables = {table: contents_of(table) for table in core.definitions.relations}
        held = {view: contents_of(view) for view in names}
        wanted = {view: held[view] for view in names if not _by_plans(catalog, view)}
        by_circuit = verify(core.definitions.assembled.circuit, tables, wanted)
        read = _read_by(catalog, names)
        ordered = [v for v in catalog.ordered() if v.materialized and v.name in read]
        plans = {v.name: v.plan for v in ordered if _by_plans(catalog, v.name)}
        by_plans = verify_plans(plans, tables, {view: held[view] for view in names if view in plans})
        both = {**by_circuit.views, **by_plans.views}
        shown = catalog.shown
        return Verdict({shown.get(view, view): both[view] for view in names}, by_circuit.seconds + by_plans.seconds)


def _read_by(catalog: Catalog, names: list[str]) -> set[str]:
    """The views of these names, and all views that they read, directly or through others."""
    reached, waiting = set[str](), list(names)
    while waiting:
        view = catalog.views.get(waiting.pop())
        if view is not None and view.name not in reached:
            reached.add(view.name)
            waiting.extend(view.reads)
    return reached


def _by_plans(catalog: Catalog, name: str) -> bool:
    """Whether a view and all that it reads come from plans."""
    view = catalog.views.get(name)
    return view is None or (view.plan is not None and all(_by_plans(catalog, read) for read in view.reads))
