"""A pipeline as its state describes it: its sources and its views as they were written, in a database without rows.

The circuit of this database is what the explorer draws, and the plans of its views lead explanations of rows down to
the sources. A view without a text, such as one that a DataFrame defines, or one that reads what only the pipeline's
process knows, such as a function of Python, ends at its own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from everview.circuit.nodes import Apply
from everview.circuit.program import Program, Spent
from everview.database import Database, connect
from everview.database.catalog import Assembled
from everview.database.snapshots import core_of
from everview.errors import EverviewError
from everview.frontends.dialects import is_sql
from everview.plan.catalog import Tables
from everview.plan.node import Plan
from everview.plan.nodes import scans
from everview.plan.timed import is_companion
from everview.runtimes.embedded.prepare import prepared
from everview.runtimes.spark.stored import KEYS, ZONE, StoredDefinition, definitions, shards
from everview.runtimes.tables import Table
from everview.scalars.session_zone import UTC
from everview.serve.explorer.work import CircuitWork
from everview.serve.written_views import read_views, with_views
from everview.types import Schema
from everview.types.names import quoted

if TYPE_CHECKING:
    from everview.database.catalog import Catalog
    from everview.database.definitions import ViewDefinition
    from everview.runtimes.embedded.history import StateReader
    from everview.serve.timeline import EpochSeen

HOME: Final = "pipeline"  # the schema of the tables behind views
UNWRITTEN: Final = "the state does not say how this view was written, so the rows behind it are not known"


def plain_name(name: str) -> str:
    """The name of a relation of a pipeline in a database."""
    return name.replace(".", "_")


def shown_as_kept(database: Database, name: str, schema: Schema) -> None:
    """Define a view that shows the rows of the table behind it."""
    database.create_table(f"{HOME}.{plain_name(name)}", schema)
    columns = ", ".join(map(quoted, schema.names))
    source = f"{HOME}.{quoted(plain_name(name))}"
    database.sql(f"CREATE MATERIALIZED VIEW {quoted(plain_name(name))} AS SELECT {columns} FROM {source}")


class PipelineModel:
    """The definitions of a pipeline at an epoch."""

    def __init__(
        self, state: StateReader, views: Mapping[str, Schema], noted: Callable[[], Mapping[str, Spent]]
    ) -> None:
        """Read the definitions of a state, for the views that the state keeps: ``views``, by name.

        ``noted`` gives the work of nodes by fingerprint, as the pipeline has noted it.
        """
        self._noted, self._untold, self._sets = noted, dict[str, str](), set[str]()
        meta = state.manifest.meta
        self._keys = {plain_name(name): tuple(key) for name, key in meta.get(KEYS, {}).items()}
        self._database = connect(timezone=meta.get(ZONE, UTC))
        core_of(self._database).sealed = True  # a text of the state reaches no file
        self._database.sql(f"CREATE SCHEMA {HOME}")
        for name, schema in meta.get("sources", {}).items():
            if not is_companion(name) and name not in views:
                self._database.create_table(plain_name(name), Schema.parse(schema))
        self._define(definitions(state), views)
        self.program = self._as_on_spark(state)
        self._names = {name: node for node, name in self.program.circuit.fingerprints().items()}

    def _define(self, written: Sequence[StoredDefinition], views: Mapping[str, Schema]) -> None:
        listed = {plain_name(each.name) for each in written}
        for each in written:
            if not each.text:
                self._untold[plain_name(each.name)] = f"it was defined {each.dialect}"
            elif plain_name(each.name) not in self.catalog.relations:
                try:
                    self._read(each, listed)
                except EverviewError:  # it reads what only the pipeline's process knows
                    continue
        for name, schema in views.items():
            if plain_name(name) not in self.catalog.relations:
                shown_as_kept(self._database, name, schema)

    def _read(self, each: StoredDefinition, listed: Collection[str]) -> None:
        """Define the views of a text, but for those that were dropped and are not ``listed``."""
        if is_sql(each.dialect):
            self._database.sql(each.text, dialect=each.dialect)
            return
        core = core_of(self._database)
        views = [named for named in read_views(each, self._tables(), plain_name) if named.name in listed]
        with core.definitions.changing():
            core.definitions.redefine(with_views(core.catalog, each, views), ())
        self._sets |= {named.name for named in views if named.is_set}

    def _tables(self) -> Tables:
        """The relations so far, as the pipeline's front ends have read them."""
        relations: dict[str, Schema | Plan] = {name: table.schema for name, table in self.catalog.tables.items()}
        for name, view in self.catalog.views.items():
            plain = view.plan if not view.materialized else None
            relations[name] = view.schema if plain is None else plain
        return Tables(relations, keys=self._keys, sets=self._sets)

    def _as_on_spark(self, state: StateReader) -> Program:
        """The program that the pipeline runs, with its shards and the exchanges between them."""
        meta = state.manifest.meta
        known, names = self.catalog.tables, map(plain_name, meta.get("tables", {}))
        kept = {name: Table(self._keys.get(name, ())) for name in names}
        tables = {name: Table() for name in known} | {name: table for name, table in kept.items() if name in known}
        circuit = Assembled.of(self.catalog).circuit
        return prepared(circuit, tables, shards(state), as_is=False, stored=False)

    @property
    def catalog(self) -> Catalog:
        """Its relations."""
        return core_of(self._database).catalog

    def explaining(self, kept: Catalog) -> Catalog:
        """The catalog of a mirror with the plans by which rows of its views are explained, where these are known.

        Where they are not, the table behind a view says why.
        """
        views, tables = dict(kept.views), dict(kept.tables)
        for name, view in kept.views.items():
            table = kept.tables.get(f"{HOME}.{name}")
            if table is None:
                continue
            written = self.catalog.views.get(name)
            reason = self._unknown(name, written, kept, view.schema)
            if reason or written is None:
                tables[table.name] = replace(table, comments={**table.comments, "": reason})
            else:
                said = {"text": written.text, "dialect": written.dialect, "plan": written.plan}
                views[name] = replace(view, **said, optimized=written.optimized)
        return replace(kept, views=views, tables=tables)

    def _unknown(self, name: str, written: ViewDefinition | None, kept: Catalog, schema: Schema) -> str:
        """Why rows of a view cannot be explained; nothing if they can."""
        plan = None if written is None else written.optimized
        if not isinstance(plan, Plan) or plan.schema.types != schema.types:
            return self._without_text(name)
        read = sorted({*scans(plan)})
        if any(relation.startswith(f"{HOME}.") for relation in read):
            return self._without_text(name)
        missing = next((relation for relation in read if relation not in kept.relations), None)
        return "" if missing is None else f"the rows behind it are not known: {missing} is not kept, as with keep=True"

    def _without_text(self, name: str) -> str:
        reason = self._untold.get(name)
        return (
            UNWRITTEN if reason is None else f"{reason}, so only the pipeline's process knows the rows behind it: p.why"
        )

    def work(self, mirror: Database, epochs: Iterable[EpochSeen]) -> CircuitWork:
        """The work of nodes as the pipeline has noted it, and the rows that are held.

        The rows of sources and views are those of the epochs, whatever the circuit was then.
        """
        circuit, run = self.program.circuit, core_of(mirror).run
        rows, steps, held = dict[str, int](), dict[str, int](), dict[str, int]()
        seconds = dict[str, float]()

        def count(node: int, said: int) -> None:
            rows[f"n{node}"] = rows.get(f"n{node}", 0) + said
            steps[f"n{node}"] = steps.get(f"n{node}", 0) + 1

        for epoch in epochs:
            for name, said in epoch.rows_in.items():
                if (node := self.program.table(plain_name(name))) is not None:
                    count(node, said)
            for name, said in epoch.rows_out.items():
                if (sink := circuit.sinks.get(plain_name(name))) is not None:
                    count(sink, said)
        for name, spent in self._noted().items():
            node = self._names.get(name)
            if node is not None and isinstance(circuit[node], Apply):
                at = f"n{node}"
                seconds[at] = spent.seconds
                rows.setdefault(at, spent.rows)
                steps.setdefault(at, spent.steps)
        for name in [*circuit.tables, *circuit.sinks]:
            own = self.program.table(name) if name in circuit.tables else self.program.contents(name)
            trace = _trace_of(run.program, name)
            if own is not None and trace is not None:
                held[f"n{own}"] = sum(len(each.before) for each in run.state.of(trace, ()))
        return CircuitWork(run.epoch, self.program, None, rows, steps, seconds, held)


def _trace_of(program: Program, relation: str) -> int | None:
    """The node of a mirror whose trace holds a relation."""
    circuit = program.circuit
    if relation in circuit.tables:
        return program.table(relation)
    return program.contents(relation) if relation in circuit.sinks else None
