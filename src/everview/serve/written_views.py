"""The views of a pipeline in languages other than SQL, read again from the texts in its state.

Each text is read by the front end that the pipeline has used, over the same relations, keys and sets, so that its plans
are the pipeline's own. What a state cannot say, since only the pipeline's process has it, has a reason instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from everview.database.definitions import ViewDefinition
from everview.database.fluent import whole_of
from everview.frontends.dialects import DIALECTS, EDN, LANGUAGES
from everview.frontends.edn.plans import named_plan as edn_plan
from everview.frontends.fluent import named_plans as fluent_plans
from everview.frontends.fluent import parts
from everview.frontends.rules.induction import inductive, unfolded
from everview.plan.catalog import NamedPlan, Tables
from everview.runtimes.spark.stored import StoredDefinition

if TYPE_CHECKING:
    from everview.database.catalog import Catalog


def read_views(each: StoredDefinition, tables: Tables, called: Callable[[str], str]) -> list[NamedPlan]:
    """The views of a text by their names in a database; a text of rules gives all of its views at once."""
    if each.dialect in LANGUAGES:
        views = list(LANGUAGES[each.dialect](each.text, tables))
    elif each.dialect in DIALECTS:
        views = _rules(each, tables)
    else:
        views = _edn(each, tables) if each.dialect == EDN else _fluent(each, tables)
    return [replace(named, name=called(named.name)) for named in views]


def with_views(catalog: Catalog, each: StoredDefinition, views: list[NamedPlan]) -> Catalog:
    """The catalog with views that a text defines."""
    for named in views:
        catalog = catalog.with_view(ViewDefinition.of_plan(named, each.text, each.dialect, _never_read))
    return catalog


def _rules(each: StoredDefinition, tables: Tables) -> list[NamedPlan]:
    from everview.frontends.rules.compile import compile_program

    program = DIALECTS[each.dialect](each.text)  # which, unlike `program_of`, opens no file
    assert not inductive(program), "what depends on the epoch before has no text"
    return list(compile_program(unfolded(program), tables).heads.values())


def _edn(each: StoredDefinition, tables: Tables) -> list[NamedPlan]:
    return [edn_plan(each.name, each.text, (), tables)]


def _fluent(each: StoredDefinition, tables: Tables) -> list[NamedPlan]:
    whole, query = whole_of(each.name, each.text)
    return [named for named in fluent_plans(parts(query, tables, whole), whole) if named.name == each.name]


def _never_read(*_: Any) -> ViewDefinition:
    raise AssertionError("a model is made anew, and never opened again")
