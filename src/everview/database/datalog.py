"""Datalog at work: every relation that rules define is a view, and rules come and go while the database runs.

A text takes effect in one turn: the views of all groups of rules that are new or have changed, and the views that read
them, are made anew together, or none is. All other views stay as they are, with their traces.

A table that is declared ``.input`` may also have rules. Changes of rows by its name reach the table; readers by that
name see the view of given and derived rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from everview.database.carried import with_carried, without_unused
from everview.database.catalog import Catalog
from everview.database.definitions import TableDefinition, ViewDefinition
from everview.database.derived import view_name, views_of
from everview.database.groups import RelationGroup, groups_of
from everview.database.rules import (
    Ruleset,
    Rulesets,
    declarations_of,
    head_of,
    in_use,
    rules_of,
)
from everview.errors import DatalogError, DefinitionError
from everview.frontends.dialects import DATALOG, program_of, whole_text
from everview.frontends.rules.program import Declaration, Rule, RuleProgram
from everview.frontends.rules.resolve import check_directed

if TYPE_CHECKING:
    from everview.database.core import Core


# -- rules come and go


def add_rules(database: Core, text: str, dialect: str) -> Ruleset:
    """Add the rules of a text and the tables that it declares, all or nothing."""
    text = whole_text(text, dialect)
    catalog, program = database.catalog, program_of(text, dialect)
    check_directed(program, {*catalog.relations, *(rule.head.relation for rule in rules_of(catalog.rules))})
    number = 1 + max((ruleset.number for ruleset in catalog.rules), default=0)
    added = Ruleset(number, text, dialect)
    rulesets = (*catalog.rules, added)
    database.definitions.redefine(
        *with_rules(with_carried(_with_tables(catalog, program, rulesets), rulesets), rulesets)
    )
    return added


def remove_rules(database: Core, rules: Iterable[Rule], ruleset: Ruleset | None = None) -> None:
    """Remove rules, of one text or of all texts. The view of a relation that has no rule left is dropped."""
    catalog, gone = database.catalog, frozenset(rules)
    left = tuple(r.without(gone) if ruleset is None or r.number == ruleset.number else r for r in catalog.rules)
    database.definitions.redefine(*with_rules(catalog, in_use(left, _named(left, catalog))))


def living(catalog: Catalog, program: RuleProgram) -> tuple[Rule, ...]:
    """The rules of a program; refuses one that the catalog does not hold."""
    known = rules_of(catalog.rules)
    for rule in program.rules:
        if rule not in known:
            alike = [str(other) for other in known if other.head.relation == rule.head.relation]
            raise DatalogError(
                f"there is no rule {rule}",
                hint=f"rules of {rule.head.relation}: {' '.join(alike)}" if alike else "db.rules() shows all rules",
            )
    return program.rules


def _named(rulesets: Rulesets, catalog: Catalog) -> set[str]:
    """The relations that rules name, and the tables."""
    groups = groups_of(rulesets)
    return {*groups, *(name for group in groups.values() for name in group.reads), *catalog.tables}


# -- tables that are declared


def _with_tables(catalog: Catalog, program: RuleProgram, rulesets: Rulesets) -> Catalog:
    """The catalog with a table for every declared relation that no rule defines, or that is also given."""
    defined = {rule.head.relation for rule in rules_of(rulesets)}
    everything = declarations_of(rulesets)
    for declared in map(everything.__getitem__, dict.fromkeys(d.name for d in program.declarations)):
        if declared.name in catalog.relations:
            _check_known(catalog, declared)
        elif declared.input or declared.name not in defined:
            catalog = catalog.with_table(TableDefinition.of(declared.name, declared.schema, facts=True))
    return catalog


def _check_known(catalog: Catalog, declared: Declaration) -> None:
    """Refuse a declaration that contradicts the relation of its name."""
    name, known = declared.name, catalog.relations[declared.name]
    if known.schema.types != declared.schema.types and not _by_rules(catalog, name):
        raise DatalogError(
            f"{name} is declared as ({declared.schema}), and is ({known.schema})", hint="leave the declaration out"
        )
    if declared.input and name in catalog.views:
        raise DatalogError(
            f"{name} is a view, and cannot be given rows: it is declared .input",
            hint="declare it .input before it gets rules, or add rows by facts",
        )


def _by_rules(catalog: Catalog, name: str) -> bool:
    return name in catalog.views and catalog.views[name].dialect == DATALOG


# -- the catalog of other rules


def with_rules(catalog: Catalog, rulesets: Rulesets) -> tuple[Catalog, list[str]]:
    """The catalog with these rules in place of its own, and which views are to be made anew."""
    before, after = groups_of(catalog.rules), groups_of(rulesets)
    changed = {name: group for name, group in after.items() if before.get(name) != group}
    gone = [view_name(catalog, name) for name in before if name not in after]
    _check_heads(catalog, changed)
    old = catalog.views
    kept = {name: view for name, view in old.items() if name not in gone}
    catalog = replace(catalog, views=kept, rules=rulesets)
    made: dict[str, ViewDefinition] = {}
    for group in dict.fromkeys(changed.values()):
        if group.rules or group.heads[0] in catalog.tables:
            made |= views_of(catalog, group)
            catalog = replace(catalog, views={**catalog.views, **made})
    _check_names(catalog, made, old)
    catalog.require_order()
    _check_gone(catalog, gone)
    catalog, again = _read_anew(catalog, made, _other_relations(catalog, made, gone, old))
    return without_unused(catalog), _and_readers(catalog, {*made, *again})


def _check_heads(catalog: Catalog, changed: Mapping[str, RelationGroup]) -> None:
    """Refuse rules for a relation that is defined otherwise, except for tables that are declared as inputs."""
    for head, group in changed.items():
        declared = next((d for d in group.declarations if d.name == head), None)
        if group.rules and head in catalog.tables and not (declared and declared.input):
            raise DatalogError(
                f"{head} is a table, and rules cannot add to it",
                hint=f"give the rules another head, declare that it has both: .input {head}, or drop the table",
            )
        if head in catalog.views and catalog.views[head].dialect != DATALOG:
            raise DatalogError(f"{head} is a view that is defined otherwise", hint="give the rules another head")


def _check_names(catalog: Catalog, made: Iterable[str], old: Mapping[str, Any]) -> None:
    known = {name.casefold(): name for name in (*catalog.tables, *old)}
    for name in made:
        other = known.setdefault(name.casefold(), name)
        if other != name:
            raise DefinitionError(f'there is a relation "{other}" already', hint="names differ not only in case")


def _check_gone(catalog: Catalog, gone: Iterable[str]) -> None:
    """Refuse to drop relations without rules while views read them; a table remains without rules."""
    for name in gone:
        readers = [view.name for view in catalog.views.values() if name in view.reads]
        if readers and head_of(name) not in catalog.tables:
            raise DefinitionError(
                f"the last rule of {name} cannot go: {', '.join(readers)} read{'s' * (len(readers) == 1)} it",
                hint="remove what reads it first, or together with it",
            )


def _other_relations(
    catalog: Catalog, made: Mapping[str, ViewDefinition], gone: Iterable[str], old: Mapping[str, ViewDefinition]
) -> set[str]:
    """Relations that changed for their readers: other columns, or a table that has gained or lost its rules."""
    changed = {name for name, view in made.items() if name in old and old[name].schema != view.schema}
    for name in (*(name for name in made if name not in old), *gone):
        if head_of(name) in catalog.tables:
            changed |= {name, head_of(name)}
    return changed


def _read_anew(catalog: Catalog, made: Collection[str], others: set[str]) -> tuple[Catalog, set[str]]:
    """The catalog with the readers of changed relations bound again, and which views those are."""
    again: set[str] = set()
    for view in catalog.ordered() if others else ():
        stale = again if view.name in made else again | others
        if stale.intersection(view.reads):
            catalog = catalog.with_other(catalog.anew(view))
            again.add(view.name)
    return catalog, again


def _and_readers(catalog: Catalog, changed: set[str]) -> list[str]:
    """Some views, and all views that read them."""
    reached = set(changed)
    for view in catalog.ordered():
        if reached.intersection(view.reads):
            reached.add(view.name)
    return [name for name in catalog.views if name in reached]
