"""Rules that reach into the next tick: what they derive in one is handed to the next, with the rows that come then.

A head with inductive rules reads a table of what they derived a tick ago. That table moves on by itself: at every tick
it changes by what the tick before changed of the view of the next one, as a part of the tick, so both happen or
neither. What was derived is a row of a table, and no function of the others, so it stays when definitions change, and
when a state directory is opened again.
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
from everview.frontends.rules.compile import columns_of
from everview.frontends.rules.induction import before_name, check_induction, inductive, next_name, timeless
from everview.frontends.rules.program import RuleProgram
from everview.operators.linear import Recode
from everview.operators.operator import Context, Layout
from everview.runtimes.embedded import Embedded
from everview.runtimes.embedded.relation import KeptTable
from everview.types import Schema
from everview.types.words import Matrix
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database.transaction import OpenTransaction


class Carried:
    """What the tables of the tick before have yet to be given."""

    def __init__(self, run: Embedded, catalog: Catalog, relations: Mapping[str, KeptTable]) -> None:
        """As the views and tables of a database say, when its definitions have changed or it is opened."""
        self._views = {table.carries: table for table in catalog.tables.values() if table.carries in run.views}
        self._waiting: dict[str, Matrix] = {}
        for view, table in self._views.items():
            held = relations[table.name].rows(run.state)
            self._waiting[view] = (self._as_carried(run.views[view].held(), table) - held).rows

    def hand_to(self, tx: OpenTransaction) -> None:
        """Let a transaction that is about to end carry on what waits."""
        for view, rows in self._waiting.items():
            if len(rows):
                tx.carry(self._views[view].name, rows)

    def note(self, changes: Mapping[str, Batch]) -> None:
        """After a tick: what it changed is what the next one hands on."""
        self._waiting |= {view: self._as_carried(changes[view], table).rows for view, table in self._views.items()}

    def _as_carried(self, rows: Batch, table: TableDefinition) -> Batch:
        """Rows of a view in the words of its table, which allows NULL where any rule of the head does."""
        if rows.schema.fields == table.schema.fields:
            return rows
        recode = Recode(Layout(rows.schema), table.schema)
        found = recode.step([rows.rows], (), Context(rows.dictionary, {})).out
        return Batch.consolidated(table.schema, found, rows.dictionary)


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
    """Whether what is derived can be carried as what was: the same columns and types, NULL only where it may be."""
    if set(old.names) != set(new.names):
        return False
    return all(old[f.name].type == f.type and (old[f.name].nullable or not f.nullable) for f in new.fields)


def without_unused(catalog: Catalog) -> Catalog:
    """The catalog without tables that carry what no rule derives any more."""
    used = {name: t for name, t in catalog.tables.items() if not t.carries or t.carries in catalog.views}
    return catalog if len(used) == len(catalog.tables) else replace(catalog, tables=used)
