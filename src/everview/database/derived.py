"""The views that a group of rules defines: compiled together, and built over one loop if they read each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from everview.database.catalog import Catalog
from everview.database.definitions import ViewDefinition
from everview.database.frontends import ReadableDatabase
from everview.database.groups import RelationGroup, groups_of
from everview.database.rules import derived_name, head_of
from everview.frontends.dialects import DATALOG
from everview.frontends.rules.induction import NEXT, before_name, with_next
from everview.frontends.rules.relations import given_name
from everview.plan.catalog import NamedPlan
from everview.plan.node import Plan, rewritten
from everview.plan.nodes import Distinct, Scan


def view_name(catalog: Catalog, head: str) -> str:
    """The name of the view that the rules of a relation define."""
    return derived_name(head) if head in catalog.tables else head


def views_of(catalog: Catalog, group: RelationGroup) -> dict[str, ViewDefinition]:
    """The views of a group of rules, by their names."""
    compiled = list(_compiled(catalog, group))
    given = [head for head in group.heads if head in catalog.tables]
    reads = tuple(dict.fromkeys((*map(catalog.seen, group.reads), *given)))
    names = [view_name(catalog, head) for head in group.heads]
    views = (_view(catalog, group, head, reads, names) for head in compiled)
    return {view.name: view for view in views}


def _view(
    catalog: Catalog, group: RelationGroup, head: NamedPlan, reads: tuple[str, ...], names: list[str]
) -> ViewDefinition:
    name = view_name(catalog, head.name)
    beside = tuple(other for other in names if other != name)
    named = replace(head, name=name, reads=reads, beside=beside, whole=_whole(catalog, head.name))
    text = "\n".join(map(str, group.rules_for(head.name))) or f".output {head.name}"
    return ViewDefinition.of_plan(named, text, DATALOG, read_rules)


def _whole(catalog: Catalog, head: str) -> str:
    """The view that a view is a part of: rows for the next tick belong to the relation that they are derived for."""
    about = head.removesuffix(NEXT)
    return view_name(catalog, about) if before_name(about) in catalog.tables else ""


def _compiled(catalog: Catalog, group: RelationGroup) -> Iterator[NamedPlan]:
    from everview.frontends.rules.compile import compile_program

    if not group.rules:
        (head,) = group.heads
        plan = Distinct(Scan(head, catalog.tables[head].schema))
        yield NamedPlan(head, plan, plan, is_set=True)
        return
    given = {given_name(head): head for head in group.heads if head in catalog.tables}
    known: dict[Plan, Plan] = {}
    program = with_next(group.program, {name: table.schema for name, table in catalog.tables.items()})
    for head in compile_program(program, ReadableDatabase(catalog, group.heads)).heads.values():
        plan, better = (_placed(p, given, known) for p in (head.plan, head.optimized))
        yield replace(head, plan=plan, optimized=better)


def _placed(plan: Plan, given: dict[str, str], known: dict[Plan, Plan]) -> Plan:
    """The plan with a scan of the table wherever a head's given rows are read."""
    if not given:
        return plan

    def named(part: Plan) -> Plan:
        return Scan(given[part.relation], part.schema) if isinstance(part, Scan) and part.relation in given else part

    return rewritten(plan, named, known)


def read_rules(catalog: Catalog, name: str, text: str = "", dialect: str = DATALOG) -> ViewDefinition:
    """A view by the rules that the catalog has now; its stored ``text`` is not read."""
    return views_of(catalog, groups_of(catalog.rules)[head_of(name)])[name]
