"""The views that a group of rules defines: compiled together, and built over one loop if they read each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from everview.database.catalog import Catalog
from everview.database.definitions import ViewDefinition
from everview.database.groups import Group
from everview.database.known import Known
from everview.database.rules import DATALOG, POMORA, derived_name
from everview.frontends.rules.induction import NEXT, before_name, with_next
from everview.frontends.rules.relations import given_name
from everview.optimize import optimize
from everview.plan.node import Plan, rewritten
from everview.plan.nodes import Distinct, Recursive, Scan


class Readable(Known):
    """What rules are told of a catalog: all but the views that they define themselves, by the names of their heads."""

    def __init__(self, catalog: Catalog, heads: Iterable[str] = ()) -> None:
        super().__init__(catalog)
        self._heads = tuple(heads)

    def names(self) -> Iterable[str]:
        own = {*self._heads, *map(derived_name, self._heads)} - self._catalog.tables.keys()
        return [name for name in self._catalog.relations if name not in own]

    def is_set(self, name: str) -> bool:
        """Whether no row is there twice: by a key, or because rules say what is there."""
        seen = self._catalog.seen(name)
        table = self._catalog.tables.get(seen)
        if table is not None:
            return bool(table.key or table.carries)
        return self._catalog.views[seen].dialect in (DATALOG, POMORA)


@dataclass(frozen=True, slots=True)
class Derived:
    """A relation and its plan, as compiled and as it is to run."""

    head: str
    plan: Plan
    optimized: Plan


def view_name(catalog: Catalog, head: str) -> str:
    """The view that rules of a relation define."""
    return derived_name(head) if head in catalog.tables else head


def views_of(catalog: Catalog, group: Group) -> dict[str, ViewDefinition]:
    """The views of a group of rules, by their names."""
    compiled = list(_compiled(catalog, group))
    given = [head for head in group.heads if head in catalog.tables]
    reads = tuple(dict.fromkeys((*map(catalog.seen, group.reads), *given)))
    names = [view_name(catalog, head) for head in group.heads]
    views = (_view(catalog, group, found, reads, names) for found in compiled)
    return {view.name: view for view in views}


def _view(catalog: Catalog, group: Group, found: Derived, reads: tuple[str, ...], names: list[str]) -> ViewDefinition:
    name, plan, better = view_name(catalog, found.head), found.plan, found.optimized
    return ViewDefinition(
        name,
        plan.schema,
        partial(_build, plan, better),
        reads,
        "\n".join(map(str, group.rules_for(found.head))) or f".output {found.head}",
        DATALOG,
        plan,
        optimized=better,
        beside=tuple(other for other in names if other != name),
        whole=_whole(catalog, found.head),
    )


def _whole(catalog: Catalog, head: str) -> str:
    """The view that one is dropped with: what inductive rules derive goes with what they are about."""
    about = head.removesuffix(NEXT)
    return view_name(catalog, about) if before_name(about) in catalog.tables else ""


def _build(plan: Plan, better: Plan, relations: Any) -> Any:
    return relations.of_plan(better).under(plan.schema)


def _compiled(catalog: Catalog, group: Group) -> Iterator[Derived]:
    from everview.frontends.rules.compile import compile_program

    if not group.rules:
        (head,) = group.heads
        plan = Distinct(Scan(head, catalog.tables[head].schema))
        yield Derived(head, plan, plan)
        return
    given = {given_name(head): head for head in group.heads if head in catalog.tables}
    known: dict[Plan, Plan] = {}
    program = with_next(group.program, {name: table.schema for name, table in catalog.tables.items()})
    for head in compile_program(program, Readable(catalog, group.heads)).heads.values():
        plan, better = (_placed(p, given, known) for p in (head.plan, head.optimized))
        yield Derived(head.name, plan, better)


def optimized(plans: Mapping[str, Plan]) -> dict[str, Plan]:
    """Plans, made better; bindings that several have around them, once."""
    found: dict[str, Plan] = {}
    known: dict[tuple[tuple[str, Plan], ...], Plan] = {}
    for name, plan in plans.items():
        around = known.get(plan.bindings) if isinstance(plan, Recursive) else None
        if isinstance(plan, Recursive) and isinstance(around, Recursive):
            found[name] = replace(around, body=plan.body)
            continue
        found[name] = optimize(plan)
        if isinstance(plan, Recursive):
            known[plan.bindings] = found[name]
    return found


def _placed(plan: Plan, given: dict[str, str], known: dict[Plan, Plan]) -> Plan:
    """The plan with the rows that a head is given by the name of their table."""
    if not given:
        return plan

    def named(part: Plan) -> Plan:
        return Scan(given[part.relation], part.schema) if isinstance(part, Scan) and part.relation in given else part

    return rewritten(plan, named, known)
