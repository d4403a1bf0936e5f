"""Defining: the tables and views of a database, and how their definitions change, all or nothing.

Every change of definitions makes another circuit, which takes over the traces that both circuits have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from everview.circuit.program import Program
from everview.codes import encode_rows
from everview.codes.dictionary import Dictionary
from everview.database.carried import Carried
from everview.database.catalog import Assembled, Catalog
from everview.database.clock import first_rows_of, with_clock
from everview.database.definitions import Build, TableDefinition, ViewDefinition, check_name, find_name
from everview.errors import DefinitionError, EverviewError, TransactionError
from everview.later import Later
from everview.plan.catalog import StoredFunction
from everview.plan.timed import CLOCK, CLOCK_SCHEMA, check_timeless, is_companion, tells_time
from everview.runtimes.embedded.relation import KeptTable
from everview.runtimes.embedded.runtime import FirstRows
from everview.runtimes.loops import Cells
from everview.runtimes.state import ProgramState
from everview.types.words import Matrix
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.database.guards import guarded, judge_of
    from everview.database.watermarks import with_watermarks
else:
    with_watermarks = Later("everview.database.watermarks", "with_watermarks")
    guarded = Later("everview.database.guards", "guarded")
    judge_of = Later("everview.database.guards", "judge_of")

DESCRIPTION = "database"  # what a state directory says of its definitions, by this name


class Definitions:
    """The definitions in force, the objects made from them for every tick, and the acts to change them."""

    def __init__(self, core: Core, catalog: Catalog, assembled: Assembled) -> None:
        self._core = core
        self.take(catalog, assembled)

    def take(self, catalog: Catalog, assembled: Assembled) -> None:
        """Use these definitions from now on. Repeating the call is harmless."""
        run = self._core.run
        self.catalog, self.assembled = catalog, assembled
        self.relations = {
            name: KeptTable.of(run.program, name, table, run.dictionary) for name, table in catalog.keys.items()
        }
        self.carried = Carried(run, catalog, self.relations)
        free = [
            table for table in catalog.tables.values() if not (table.carries or table.fed or tells_time(table.name))
        ]
        self.free = {table.name: (table, self.relations[table.name]) for table in free}  # for everyone to change
        self.edits = bool(catalog.guards or catalog.watermarked or catalog.shown)  # what users see of a tick
        run.judge = judge_of(catalog) if catalog.guards else None

    @contextmanager
    def changing(self) -> Generator[None]:
        """A block in which definitions change; refused inside a transaction."""
        core = self._core
        with core.still.writing():
            core.access.ready_to_write()
            core.access.require_open()
            if core.access.open is not None:
                raise TransactionError(
                    "definitions do not change inside a transaction", hint="define tables and views before or after it"
                )
            yield
            core.telling.tell_of_ends()
            core.telling.listeners.tell()

    def define_table(
        self, table: TableDefinition, rows: Callable[[Dictionary], Matrix] | None = None, *, replace: bool = False
    ) -> None:
        """Define a table; with ``replace`` in place of the one of that name, which nobody may read.

        Its first ``rows`` are given as words of the database's dictionary. They and the definition are one act: should
        the rows not fit, or the process end, all is as it was before.
        """
        with self.changing():
            if table.name == CLOCK and table.schema != CLOCK_SCHEMA:
                raise DefinitionError(f'"{CLOCK}" is the clock of views', hint="give the table another name")
            if is_companion(table.name):
                hint = "give the table another name"
                raise DefinitionError(f'"{table.name}" is a name that goes with a watermark', hint=hint)
            known = replace and table.name in self.catalog.tables
            without = self.catalog.without(table.name) if known else self.catalog
            wanted = without.with_table(table)
            wanted = guarded(wanted, table) if table.constraints else wanted
            first = None if rows is None else partial(self._first_rows, wanted, table.name, rows)
            # No trace of the old one is taken for the new one's.
            self._turn(wanted, keeping=without if known else None, first=first)

    def alter_table(
        self, old: str, catalog: Catalog, rows: Mapping[str, Callable[[Dictionary], Matrix]] | None
    ) -> None:
        """Go on with a catalog that has a table in place of the old one.

        If its columns are others, ``rows`` has the rows of the table, and of what goes with its watermark.
        """
        if rows is None:
            self._turn(catalog)
            return
        keeping = self.catalog.without(old, cascade=True)  # no trace of the old one, or of what reads it
        readers = [name for name in self.catalog.views if name not in keeping.views]
        first = partial(self._first_rows_of_several, catalog, rows)
        self._turn(catalog, before=self._core.telling.held(readers), keeping=keeping, first=first)

    def _first_rows_of_several(
        self,
        catalog: Catalog,
        rows: Mapping[str, Callable[[Dictionary], Matrix]],
        program: Program,
        state: ProgramState,
    ) -> Cells:
        """The rows of several new tables, where they arrive in a program."""
        several = [self._first_rows(catalog, name, made, program, state) for name, made in rows.items()]
        return [
            {place: cell for cells in parts for place, cell in cells.items()} for parts in zip(*several, strict=True)
        ]

    def _first_rows(
        self, catalog: Catalog, name: str, rows: Callable[[Dictionary], Matrix], program: Program, state: ProgramState
    ) -> Cells:
        """The rows of a new table, checked as every change is, where they arrive in a program."""
        dictionary = self._core.run.dictionary
        relation = KeptTable.of(program, name, catalog.keys[name], dictionary)
        pending = relation.add(rows(dictionary), state, relation.nothing)
        return [relation.resolver.cells(part) if len(part) else {} for part in pending]

    def create_view(self, name: str, build: Build, *, replace: bool, if_not_exists: bool, materialized: bool) -> None:
        """See `Database.create_view`."""
        with self.changing():
            if if_not_exists and name in self.catalog.views:
                return
            self.define(self.catalog.view(name, build, materialized=materialized), replace=replace)

    def define(self, view: ViewDefinition, *, replace: bool = False) -> None:
        """Define a view; with ``replace`` in place of the one of that name."""
        with self.changing():
            check_name("view", view.name)
            known = self.catalog.views.get(view.name)
            if known is None or not replace:
                self._turn(self.catalog.with_view(view))
                return
            changed = _read_anew(self.catalog.with_other(view), view.name)
            self.redefine(changed, [view.name, *changed.readers(view.name)])

    def drop(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """See `Database.drop`."""
        with self.changing():
            if if_exists and name not in self.catalog.relations:
                return
            name = find_name("table or view", name, self.catalog.relations)
            self._turn(self.catalog.without(name, cascade=cascade))

    def comment(self, name: str, column: str, said: str | None) -> None:
        """Set what is said of a relation, or of a column of it."""
        with self.changing():
            catalog = self.catalog
            relation = catalog.relations[name]
            rest = {key: value for key, value in relation.comments.items() if key != column}
            comments = rest if said is None else {**rest, column: said}
            if isinstance(relation, TableDefinition):
                table = replace(relation, comments=comments)
                self._turn(replace(catalog, tables={**catalog.tables, name: table}))
            else:
                view = replace(relation, comments=comments)
                self._turn(replace(catalog, views={**catalog.views, name: view}))

    def add_schema(self, name: str) -> None:
        """Add a name space."""
        with self.changing():
            self._turn(replace(self.catalog, schemas=(*self.catalog.schemas, name)))

    def drop_schema(self, name: str, cascade: bool) -> None:
        """Drop a name space; with ``cascade`` also the relations in it, and their readers."""
        with self.changing():
            catalog = self.catalog
            held = [relation for relation in catalog.relations if relation.startswith(f"{name}.")]
            if held and not cascade:
                raise DefinitionError(f"schema {name} holds {', '.join(held)}", hint="drop them first, or use CASCADE")
            for relation in held:
                if relation in catalog.relations:
                    catalog = catalog.without(relation, cascade=True)
            self._turn(replace(catalog, schemas=tuple(known for known in catalog.schemas if known != name)))

    def define_function(self, function: StoredFunction, *, replaces: bool = False) -> None:
        """Define a function of SQL; with ``replaces``, views that call the old one are made anew."""
        with self.changing():
            known = self.catalog.functions
            if function.name in known and not replaces:
                hint = "give it another name, or write CREATE OR REPLACE FUNCTION"
                raise DefinitionError(f'there is a function "{function.name}" already', hint=hint)
            self._with_functions({**known, function.name: function}, function.name)

    def drop_function(self, name: str) -> None:
        """Drop a function of SQL, which no view may call."""
        with self.changing():
            self._with_functions({n: f for n, f in self.catalog.functions.items() if n != name}, name)

    def _with_functions(self, functions: Mapping[str, StoredFunction], changed: str) -> None:
        """Go on with other functions: views whose plans change with them are made anew."""
        catalog, anew = replace(self.catalog, functions=functions), list[str]()
        callers = _calling(changed, functions)
        if changed not in functions and len(callers) > 1:
            others = ", ".join(sorted(callers - {changed}))
            raise DefinitionError(f"function {changed} is called by {others}", hint="drop what calls it first")
        for view in self.catalog.ordered():
            if view.text is None or not any(name in view.text.lower() for name in callers):
                continue
            try:
                bound = catalog.anew(view)
            except EverviewError as error:
                raise DefinitionError(
                    f"view {view.name} calls {changed}, and would fail: {error.message}", hint=f"drop {view.name} first"
                ) from None
            if bound.plan != view.plan:
                catalog = _read_anew(catalog.with_other(bound), view.name)
                anew += [view.name, *catalog.readers(view.name)]
        self.redefine(catalog, anew)

    def redefine(self, catalog: Catalog, anew: Collection[str]) -> None:
        """Go on with other definitions; listeners of views that are made anew are told how these differ."""
        self._turn(catalog, anew, before=self._core.telling.held(anew))

    def _turn(
        self,
        catalog: Catalog,
        anew: Collection[str] = (),
        *,
        before: Mapping[str, Batch] | None = None,
        keeping: Catalog | None = None,
        first: FirstRows | None = None,
    ) -> None:
        """Go on with other definitions: all of it, or nothing.

        Listeners of views that held some rows ``before`` are told how they differ. If the catalog ``keeping`` is given,
        only traces that it has, too, are taken over. ``first`` gives the rows of new tables.
        """
        core = self._core
        core.attached.require_apart(catalog)
        self._check_timeless(catalog)
        catalog = with_clock(catalog)
        catalog = with_watermarks(catalog) if catalog.watermarked else catalog
        if first is None and (clock := first_rows_of(catalog, self.catalog.tables)) is not None:
            first = partial(self._first_rows, catalog, CLOCK, partial(encode_rows, CLOCK_SCHEMA, clock))
        known = self.assembled if keeping is None else Assembled.of(keeping, self.assembled)
        assembled = Assembled.of(catalog, known, anew)
        kept = None if keeping is None else (known.circuit, keeping.keys)

        def turned() -> None:
            self.take(catalog, assembled)
            core.telling.note_turn(before or {})

        says = {DESCRIPTION: catalog.to_json()}
        core.run.turn(assembled.circuit, tables=catalog.keys, says=says, keeping=kept, first=first, done=turned)
        core.telling.tell_of_ends()

    def _check_timeless(self, catalog: Catalog) -> None:
        """Refuse new views by Python functions over plain views that read the current time."""
        for name, view in catalog.views.items():
            if view.materialized and view.plan is None and self.catalog.views.get(name) is not view:
                for plan in catalog.plans(view):
                    check_timeless(name, plan)


def _calling(name: str, functions: Mapping[str, StoredFunction]) -> set[str]:
    """The names of a function and of all functions whose texts name it, directly or by way of others."""
    reached = {name}
    while True:
        more = {
            f.name for f in functions.values() if f.name not in reached and any(n in f.text.lower() for n in reached)
        }
        if not more:
            return reached
        reached |= more


def _read_anew(catalog: Catalog, name: str) -> Catalog:
    """The catalog with the readers of a relation bound again, as its columns may have changed."""
    for reader in catalog.readers(name):
        catalog = catalog.with_other(catalog.anew(catalog.views[reader]))
    return catalog
