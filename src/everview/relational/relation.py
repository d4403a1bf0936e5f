"""A relation of the kernel: its schema, and by default the tuples it holds.

The held tuples turn any delta into an exact one: adding a tuple that is there, or removing one that is not, changes
nothing. Tuples are kept as a table whose key is all of its columns, whose commands mean just that. A relation whose
host vouches for exact deltas keeps nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from everview.circuit.circuit import Circuit
from everview.codes import ingest, to_rows
from everview.errors import EverviewError, GraphError, WrongArity, WrongType
from everview.frontends.graphspec.check import RelationShape as Shape
from everview.frontends.graphspec.check import check_columns
from everview.frontends.graphspec.tuples import Order, Tuples
from everview.plan.nullary import NULLARY, ONE_ROW
from everview.relational.delta import Delta, is_table
from everview.relational.predicates import Predicate, check_value
from everview.relational.ticking import SharedVerdict, run_tick
from everview.runtimes.embedded import Embedded
from everview.runtimes.tables import WEIGHT, Commands, Table
from everview.types import ANY, Field, Schema
from everview.zset.batch import Batch

HELD = "held"
FEW = 64  # values; beyond them a change goes on as an Arrow table


def anonymous(columns: int) -> Schema:
    """A schema of so many columns of atoms, with names that clash with no others."""
    if not columns:
        return NULLARY
    return Schema(Field(f"c{place}", ANY, nullable=False) for place in range(columns))


def commands(schema: Schema, delta: Delta) -> Commands:
    """A delta as commands of a table: puts and deletes of whole tuples."""
    rows = stored_rows([*delta.removes.unordered, *delta.adds.unordered])
    table, _ = ingest(schema, rows)
    weights = pa.array([-1] * len(delta.removes) + [1] * len(delta.adds), pa.int64())
    return Commands(table.append_column(WEIGHT, weights))


def stored_rows(rows: Sequence[Any]) -> Sequence[Any]:
    """Tuples as rows of the engine; the empty tuple becomes a row that says `holds`."""
    return rows if not rows or rows[0] else [ONE_ROW] * len(rows)


def shown_rows(rows: list[tuple[Any, ...]], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows of the engine as tuples of a relation with these columns."""
    return rows if columns else [()] * len(rows)


def change_of(batch: Batch) -> Any:
    """A change in a form that another dictionary encodes without a detour."""
    return list(batch) if len(batch) * len(batch.schema) <= FEW else batch.to_arrow()


class KernelRelation:
    """A named relation of the kernel."""

    def __init__(
        self, name: str, columns: Sequence[str], types: Sequence[tuple[str, Predicate]], *, exact: bool
    ) -> None:
        check_columns(f'relation "{name}"', columns)
        self.name = name
        self.columns = tuple(columns)
        self.exact = exact
        self.pushed = False  # whether an exact relation, which keeps nothing, has had tuples
        self.shape = Shape(name, self.columns, tuple(type_ for type_, _ in types))
        self._types = [(type_, predicate) for type_, predicate in types]
        self._named = Schema(Field(column, ANY, nullable=False) for column in columns)
        self.schema = anonymous(len(columns))
        self.run = None if exact else self._kept()

    def _kept(self) -> Embedded:
        circuit = Circuit()
        circuit.source(HELD, self.schema).sink(HELD)
        return Embedded(circuit, tables={HELD: Table(self.schema.names)})

    # -- checking

    def delta(self, given: Any, *, check_types: bool) -> Delta:
        """The delta in what a host has given, checked and normalised."""
        try:
            raw = Delta.of(given)
        except EverviewError as error:
            raise self._told(error) from None
        adds, removes = (self.tuples(rows, check_types=check_types) for rows in (raw.adds, raw.removes))
        return Delta(adds, removes).normalized()

    def tuples(self, rows: Any, *, check_types: bool) -> Tuples:
        """The set of tuples in rows of any form."""
        try:
            tuples = rows if isinstance(rows, Tuples) else self._ingested(rows)
        except EverviewError as error:
            raise self._told(error) from None
        for row in tuples.unordered:
            self._check(row, check_types)
        return tuples

    def _ingested(self, rows: Any) -> Tuples:
        if not self.columns and isinstance(rows, list):
            return Tuples(tuple(row) for row in rows)
        if not is_table(rows) and not isinstance(rows, list):
            return Tuples(rows)
        table, weights = ingest(self._named, rows)
        if (weights != 1).any():
            raise WrongType("tuples of a set have no weights", hint="give them as adds, or as removes")
        return Tuples(to_rows(self._named, table))

    def _check(self, row: tuple[Any, ...], check_types: bool) -> None:
        if len(row) != len(self.columns):
            raise WrongArity(
                f'relation "{self.name}": {row!r} has {len(row)} values, not {len(self.columns)}',
                hint=f"the columns are {', '.join(self.columns)}" if self.columns else "its one tuple is ()",
            )
        if check_types:
            for column, (type_, predicate), value in zip(self.columns, self._types, row, strict=True):
                check_value(f'relation "{self.name}", column "{column}"', type_, predicate, value)

    def _told(self, error: EverviewError) -> EverviewError:
        return type(error)(f'relation "{self.name}": {error.message}', hint=error.hint)

    # -- changing

    def apply(self, delta: Delta, verdict: SharedVerdict) -> Any:
        """The exact change, as a source takes it, which counts if the verdict is so."""
        if self.run is None:
            gone, come = (stored_rows([*part.unordered]) for part in (delta.removes, delta.adds))
            return [(row, -1) for row in gone] + [(row, 1) for row in come]
        out = run_tick(self.run, {HELD: commands(self.schema, delta)}, verdict)
        return change_of(out[HELD])

    def end(self, verdict: SharedVerdict) -> None:
        """What was applied counts, or is undone. It may be repeated."""
        if self.run is not None:
            self.run.recover()
        if verdict.counts:
            self.pushed = True

    def contents(self, order: Order) -> Tuples:
        """The tuples that the relation holds, in order."""
        return Tuples.of_rows(shown_rows(self._held().elements(), self.columns), order)

    def whole(self) -> Any:
        """All tuples that the relation holds, as a change of a source."""
        return change_of(self._held())

    def _held(self) -> Batch:
        if self.run is None:
            raise GraphError(
                f'relation "{self.name}" takes exact deltas and keeps nothing',
                hint="define it without exact=True, or give its tuples in the bootstrap batch",
            )
        return self.run.view(HELD).contents()

    def vacuum(self) -> None:
        if self.run is not None:
            self.run.vacuum()


def same_shape(relation: KernelRelation, shape: Shape) -> bool:
    """Whether a graph declares a relation with the columns that it has."""
    return relation.columns == shape.columns and relation.shape.types == shape.types


def shapes(relations: Mapping[str, KernelRelation]) -> dict[str, Shape]:
    """The relations as graphs see them."""
    return {name: relation.shape for name, relation in relations.items()}
