"""Inductive rules: rows that they derive in one tick are handed to the next one, with the rows that come then.

A head with inductive rules has a view of what they derive for the next tick, and a table of what they derived for this
one. As a part of every tick the table changes by the previous change of the view. The table is state, and no function
of the other tables: its rows stay when definitions change, and when a state directory is opened again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from everview.database.catalog import Catalog
from everview.database.definitions import TableDefinition
from everview.database.frontends import ReadableDatabase
from everview.database.rules import Rulesets, declarations_of, rules_of
from everview.errors import DatalogError
from everview.later import Later
from everview.operators.linear import Recode
from everview.operators.operator import Context, Layout
from everview.runtimes.embedded import Embedded
from everview.runtimes.embedded.relation import KeptTable
from everview.types import Schema
from everview.types.words import Matrix
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database.transaction import OpenTransaction
    from everview.frontends.rules.compile import columns_of
    from everview.frontends.rules.induction import before_name, check_induction, inductive, next_name, timeless
    from everview.frontends.rules.program import RuleProgram
else:
    columns_of = Later("everview.frontends.rules.compile", "columns_of")
    before_name = Later("everview.frontends.rules.induction", "before_name")
    check_induction = Later("everview.frontends.rules.induction", "check_induction")
    inductive = Later("everview.frontends.rules.induction", "inductive")
    next_name = Later("everview.frontends.rules.induction", "next_name")
    timeless = Later("everview.frontends.rules.induction", "timeless")
    RuleProgram = Later("everview.frontends.rules.program", "RuleProgram")


class Carried:
    """Changes of views of inductive rules that wait to be handed to their tables in the next tick."""

    def __init__(self, run: Embedded, catalog: Catalog, relations: Mapping[str, KeptTable]) -> None:
        """Compute what waits from the views and tables of a database that is opened or has new definitions."""
        self.views = {table.carries: table for table in catalog.tables.values() if table.carries in run.views}
        self._waiting: dict[str, Matrix] = {}
        for view, table in self.views.items():
            held = relations[table.name].rows(run.state)
            self._waiting[view] = (self._as_carried(run.views[view].held(), table) - held).rows

    def hand_to(self, tx: OpenTransaction) -> None:
        """Add what waits to a transaction that is about to end."""
        for view, rows in self._waiting.items():
            if len(rows):
                tx.carry(self.views[view].name, rows)

    def note(self, changes: Mapping[str, Batch]) -> None:
        """Keep the changes of a tick for the next one."""
        self._waiting |= {view: self._as_carried(changes[view], table).rows for view, table in self.views.items()}

    def _as_carried(self, rows: Batch, table: TableDefinition) -> Batch:
        """Rows of a view, encoded as in its table, where a column allows NULL if any rule of the head does."""
        if rows.schema.fields == table.schema.fields:
            return rows
        recode = Recode(Layout(rows.schema), table.schema)
        recoded = recode.step([rows.rows], (), Context(rows.dictionary, {})).out
        return Batch.consolidated(table.schema, recoded, rows.dictionary)


# -- definitions


def with_carried(catalog: Catalog, rulesets: Rulesets) -> Catalog:
    """The catalog with a table for every head that has inductive rules."""
    program = RuleProgram(rules_of(rulesets), tuple(declarations_of(rulesets).values()))
    heads = inductive(program)
    if not heads:
        return catalog
    check_induction(program)
    columns = columns_of(timeless(program), ReadableDatabase(catalog, program.heads))
    for head in heads:
        name = before_name(head)
        if name not in catalog.tables:
            catalog = catalog.with_table(TableDefinition.of(name, columns[head], carries=next_name(head)))
        elif not _holds(catalog.tables[name].schema, columns[head]):
            raise DatalogError(
                f"{head} carries rows ({catalog.tables[name].schema}), and would be ({columns[head]})",
                hint="drop it first, or keep the types of its columns",
            )
    return catalog


def _holds(old: Schema, new: Schema) -> bool:
    """Whether rows of the new schema fit a table of the old one: equal columns and types, NULL only where allowed."""
    if set(old.names) != set(new.names):
        return False
    return all(old[f.name].type == f.type and (old[f.name].nullable or not f.nullable) for f in new.fields)


def without_unused(catalog: Catalog) -> Catalog:
    """The catalog without the carrying tables of heads that have no inductive rules any more."""
    used = {name: t for name, t in catalog.tables.items() if not t.carries or t.carries in catalog.views}
    return catalog if len(used) == len(catalog.tables) else replace(catalog, tables=used)
