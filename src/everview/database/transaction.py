"""Transactions: changes of several tables that count together, as one tick, or not at all.

Commands are checked when they are given, against the tables with what the transaction has changed so far. Views, and
reads of tables, show the state before the transaction until it ends.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import current_thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from everview.blocks import Block
from everview.codes import encode_pairs, encode_rows
from everview.codes.dictionary import Mark
from everview.codes.encode import encode_weighted
from everview.codes.frames import as_arrow, is_frame, python_rows
from everview.codes.ingest import as_rows, check_once
from everview.codes.tables import is_many, table_rows
from everview.database import facts
from everview.database.definitions import TableDefinition, find_name
from everview.database.outside import Outside
from everview.errors import DefinitionError, TransactionError, WrongArity, WrongType, shown
from everview.later import Later
from everview.plan.timed import CLOCK, is_watermark
from everview.runtimes.embedded.relation import KeptTable, Pending
from everview.runtimes.loops import Cells
from everview.scalars.expressions import Now
from everview.types import Schema, unknown_name
from everview.types.words import Matrix
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.database.generated import with_generated
    from everview.database.transactions import Transaction
else:
    with_generated = Later("everview.database.generated", "with_generated")

Savepoint = tuple[dict[str, Pending], Mapping[str, Any], Mark]
TABLES = pa.Table, pa.RecordBatch
NO_KEY = "a table without a key is changed by whole rows: insert and delete"


class Inner:
    """A transaction inside another: an exception in its block undoes its own changes."""

    def __init__(self, tx: OpenTransaction, block: Block[Any]) -> None:
        self._tx, self._block = tx, block
        self._savepoint = tx.savepoint()

    @property
    def alive(self) -> bool:
        """Whether its with-block is still running."""
        return self._block.alive

    def begin(self) -> OpenTransaction:
        """Set a savepoint, so that later changes can be undone by themselves."""
        self._tx.inner.append(self)
        return self._tx

    def end(self, error: BaseException | None) -> None:
        """Leave the changes to the outer transaction, or undo them after an error."""
        if error is not None:
            self.undo()
        if self in self._tx.inner:
            self._tx.inner.remove(self)

    def undo(self) -> None:
        """Forget the changes since the block began."""
        self._tx.back_to(self._savepoint)


class OpenTransaction:
    """A transaction under way, as the database has it; users see it as `Transaction`."""

    block: Block[Any] | None = None  # the with-statement that it is the transaction of
    counts = False  # whether its tick has happened
    feeding = False  # whether it is their sources that change tables which have one
    outside: Outside | None = None  # what is to change in sources that are not kept, if anything
    closed = False
    handle: Transaction | None = None  # by which users know it, once they do

    def __init__(self, database: Core, *, ticks: bool = False) -> None:
        """Begin a transaction; with ``ticks`` it lasts for one call, which holds the lock `Access.ticking`."""
        self._database, self._run, self.ticks = database, database.run, ticks
        self._dictionary = database.run.dictionary
        self.mark = self._dictionary.mark()
        self.thread = current_thread()
        self.inner: list[Inner] = []  # transactions inside of it that have not ended
        self._pending: dict[str, Pending] = {}
        self.changes: dict[str, Batch] = {}  # of each view, once it has been committed
        self.offsets: dict[str, Any] = {}  # how far sources have been read, to be kept with it

    def insert(self, table: str, rows: Any) -> int:
        """See `Transaction.insert`."""
        outside = self._outside(table)
        if outside is not None:
            return outside.changes.insert(table, rows)
        definition, relation = self._table(table)
        rows = self._filled(definition, rows)
        encoded = self._in_order(definition, relation, rows)
        if encoded is None:
            encoded = self._encoded(definition, definition.schema, rows)
            self._add(relation, encoded)
        else:
            self._add(relation.in_order, encoded)
        return int(encoded[:, -1].sum())

    def upsert(self, table: str, rows: Any) -> int:
        """See `Transaction.upsert`."""
        outside = self._outside(table)
        if outside is not None:
            return outside.changes.upsert(table, rows)
        definition, relation = self._keyed(table, "upsert")
        encoded = self._encoded(definition, definition.schema, self._filled(definition, rows))
        check_once(encoded[:, -1], "upsert")
        self._pending[relation.name] = relation.put(encoded, self._run.state, self._pending_of(relation))
        return encoded.shape[0]

    def delete(self, table: str, rows: Any) -> int:
        """See `Transaction.delete`."""
        outside = self._outside(table)
        if outside is not None:
            return outside.changes.delete(table, rows)
        definition, relation = self._table(table)
        if not definition.key:
            encoded = self._encoded(definition, definition.schema, rows)
            encoded[:, -1] *= -1
            self._add(relation, encoded)
            return -int(encoded[:, -1].sum())
        keys = encode_rows(relation.key_schema, _keys_of(definition, relation, rows), self._dictionary)
        before = self._pending_of(relation)
        after = relation.remove(keys, self._run.state, before)
        self._pending[relation.name] = after
        return _weight(before) - _weight(after)

    def update(self, table: str, rows: Any) -> int:
        """See `Transaction.update`."""
        outside = self._outside(table)
        if outside is not None:
            return outside.changes.update(table, rows)
        definition, relation = self._keyed(table, "update")
        groups = _by_columns(definition, rows)
        pending, changed = self._pending_of(relation), 0
        for columns, part in groups:
            schema = Schema((*relation.key_schema.fields, *(definition.schema[name] for name in columns)))
            encoded = encode_rows(schema, part, self._dictionary)
            changed += relation.count(encoded, self._run.state, pending)
            pending = relation.patch(encoded, columns, self._run.state, pending)
        self._pending[relation.name] = pending
        return changed

    def apply(self, changes: Mapping[str, Any], *, negative: bool = False) -> None:
        """See `Transaction.apply`."""
        pulls = self._database.attached.pulls
        for table, rows in changes.items():
            outside = self._outside(table) if pulls else None
            if outside is not None:
                outside.changes.apply({table: rows})
                continue
            definition, relation = self._table(table)
            if type(rows) is list:
                if not definition.facts and self._add_pairs(relation, rows, negative=negative):
                    continue
                encoded = None
            else:
                encoded = self._in_order(definition, relation, rows)
            if encoded is not None:
                self._add(relation.in_order, encoded, negative=negative)
                continue
            if definition.facts:
                encoded = facts.encoded(
                    partial(encode_pairs, definition.schema, dictionary=self._dictionary),
                    *(partial(facts.as_pairs, definition.schema), rows),
                )
            else:
                encoded = encode_pairs(definition.schema, rows, self._dictionary)
            self._add(relation, encoded, negative=negative)

    def add_rows(self, table: str, rows: pa.Table, weights: Matrix) -> int:
        """Add the rows of an Arrow table with these weights, and return the sum of the weights."""
        return self.exchange_rows(table, (rows, weights))

    def exchange_rows(self, table: str, *parts: tuple[pa.Table, Matrix]) -> int:
        """Replace the first rows by the second in one act; if there is only one part, add it."""
        definition, relation = self._table(table)
        signs = (1,) if len(parts) == 1 else (-1, 1)
        encoded = [
            encode_weighted(definition.schema, rows, sign * weights, self._dictionary)
            for sign, (rows, weights) in zip(signs, parts, strict=True)
        ]
        whole = encoded[0] if len(encoded) == 1 else np.concatenate(encoded)
        self._add(relation, whole)
        return int(encoded[-1][:, -1].sum())

    def overwrite(self, table: str, rows: pa.Table, weights: Matrix) -> None:
        """Replace the rows of a table by those of an Arrow table, with weights."""
        definition, relation = self._table(table)
        encoded = encode_weighted(definition.schema, rows, weights, self._dictionary)
        self._add(relation, np.concatenate([encoded, (-self.contents(relation)).rows]))

    def become(self, table: str, rows: Any) -> None:
        """Replace the rows of a table."""
        definition, relation = self._table(table)
        encoded = self._encoded(definition, definition.schema, rows)
        whole = np.concatenate([encoded, (-self.contents(relation)).rows])
        self._add(relation, whole)

    def carry(self, table: str, rows: Matrix) -> None:
        """Add rows to a table that moves on by itself."""
        relation = self._database.definitions.relations[table]
        self._add(relation, rows)

    @property
    def changing(self) -> tuple[str, ...]:
        """The tables that change."""
        return tuple(self._pending)

    def pending(self, relation: KeptTable) -> Pending:
        """The change of a table so far."""
        return self._pending_of(relation)

    def become_pending(self, relation: KeptTable, pending: Pending) -> None:
        """Let a table change in this way, and not as it was to."""
        self._pending[relation.name] = pending

    def contents(self, relation: KeptTable) -> Batch:
        """The rows of a table after this transaction's changes so far."""
        return relation.rows(self._run.state, self._pending.get(relation.name))

    def contents_of(self, table: str) -> Batch:
        """The rows of a table, by its name, after the changes so far."""
        return self.contents(self._table(table)[1])

    def rows_with(self, table: str, keys: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """The rows whose keys begin with some values, after the changes so far."""
        _, relation = self._keyed(table, "reading by key")
        if not keys:
            return []
        schema = Schema(relation.stored.fields[: len(keys[0])])
        wanted = encode_rows(schema, keys, self._dictionary)
        matched = relation.beginning_with(wanted, len(schema), self._run.state, self._pending_of(relation))
        return [dict(zip(relation.stored.names, row, strict=True)) for row in matched.elements()]

    # -- inside

    def _filled(self, table: TableDefinition, rows: Any) -> Any:
        whole = filled(table, rows)
        if not table.generated:
            return whole
        return with_generated(table, whole, self._dictionary, self._database.definitions.catalog.timezone)

    def _encoded(self, table: TableDefinition, schema: Schema, rows: Any) -> Matrix:
        encode = partial(encode_rows, schema, dictionary=self._dictionary)
        return facts.encoded(encode, partial(facts.as_values, schema), rows) if table.facts else encode(rows)

    def _in_order(self, table: TableDefinition, relation: KeptTable, rows: Any) -> Matrix | None:
        """The delta matrix of a large Arrow table with its words in the order of the table's trace, so that none move.

        None if it is none, or has a mistake.
        """
        if not isinstance(rows, TABLES) or not is_many(rows.num_rows) or table.facts:
            return None
        return table_rows(relation.stored, rows, self._dictionary)

    def _add(self, relation: KeptTable, rows: Matrix, *, negative: bool = False) -> None:
        pending = self._pending.get(relation.name, relation.nothing)
        self._pending[relation.name] = relation.add(rows, self._run.state, pending, negative=negative)

    def _add_pairs(self, relation: KeptTable, pairs: list[Any], *, negative: bool) -> bool:
        """Add a few pairs (row, weight) as they are; False if they must be encoded first."""
        pending = self._pending.get(relation.name, relation.nothing)
        after = relation.add_pairs(pairs, self._run.state, pending, negative=negative)
        if after is not None:
            self._pending[relation.name] = after
        return after is not None

    def _pending_of(self, relation: KeptTable) -> Pending:
        return self._pending.get(relation.name, relation.nothing)

    def _outside(self, name: str) -> Outside | None:
        """The changes of sources that are not kept; None if no such source has the name."""
        attached = self._database.attached
        if not attached.pulls or name not in attached.sources:
            return None
        self._require_open()
        if self.outside is None:
            self.outside = Outside(attached.pipeline)
        return self.outside

    def _table(self, name: str) -> tuple[TableDefinition, KeptTable]:
        if not self.ticks or self.inner:
            self._require_open()
        free = self._database.definitions.free.get(name)
        if free is not None:
            return free
        definition = self._database.definitions.catalog.tables.get(name)
        if definition is None:
            definition = self._misnamed(name)
        if definition.carries:
            raise DefinitionError(
                f'"{definition.name}" moves on by itself, with every tick', hint="change what its rules read"
            )
        if definition.name == CLOCK:
            raise DefinitionError(f'"{CLOCK}" is the clock of views', hint="db.advance(now=…) moves it")
        if is_watermark(definition.name):
            raise DefinitionError(f'"{definition.name}" moves by itself', hint="insert a later row into the table")
        if definition.fed and not self.feeding:
            raise DefinitionError(
                f'table "{definition.name}" follows a source', hint="change it there, and then db.poll()"
            )
        return definition, self._database.definitions.relations[definition.name]

    def _misnamed(self, name: str) -> TableDefinition:
        catalog = self._database.definitions.catalog
        if name in catalog.views:
            reads = ", ".join(catalog.views[name].reads) or "its tables"
            raise DefinitionError(f'"{name}" is a view, and views change with their tables', hint=f"change {reads}")
        return catalog.tables[find_name("table", name, catalog.tables)]

    def _keyed(self, name: str, what: str) -> tuple[TableDefinition, KeptTable]:
        definition, relation = self._table(name)
        if not definition.key:
            raise DefinitionError(f"{what}: table {definition.name} has no primary key", hint=NO_KEY)
        return definition, relation

    def _require_open(self) -> None:
        self._database.access.require_same_process()
        if self.closed:
            raise TransactionError("the transaction has ended", hint="begin another: with db.transaction() as tx")
        if self.thread is not current_thread():
            raise TransactionError("the transaction is another thread's", hint="begin one in this thread")
        if self.inner:
            self.settle()

    @property
    def by_sql(self) -> bool:
        """Whether BEGIN has begun the transaction, and COMMIT or ROLLBACK is to end it."""
        return self.block is None and not self.ticks

    @property
    def alive(self) -> bool:
        """Whether somebody can still end the transaction: its call, its with-block, or its thread if there is none."""
        if self.ticks:
            return self._database.access.ticking.locked()
        return self.thread.is_alive() if self.block is None else self.block.alive

    def settle(self) -> None:
        """Undo the changes of inner transactions whose ends an exception has cut short."""
        while self.inner and not self.inner[-1].alive:
            self.inner[-1].undo()
            self.inner.pop()

    @property
    def changed(self) -> bool:
        """Whether any row of any table is to change."""
        self.settle()
        return any(len(part) for pending in self._pending.values() for part in pending)

    def savepoint(self) -> Savepoint:
        """The changes so far, of tables and of sources that are not kept, to come back to."""
        outside = {} if self.outside is None else self.outside.savepoint()
        return dict(self._pending), outside, self._dictionary.mark()

    def back_to(self, savepoint: Savepoint) -> None:
        """Forget the changes since a savepoint."""
        pending, outside, mark = savepoint
        self._pending = dict(pending)
        if self.outside is not None:
            self.outside.back_to(outside)
        self._dictionary.rollback(mark)

    def cells(self) -> Cells:
        """The changes as cells of the circuit's sources."""
        if self.inner:
            self.settle()
        relations, shards = self._database.definitions.relations, self._run.program.shards
        if shards == 1 and len(self._pending) == 1:  # as is nearly always so
            ((name, (part,)),) = self._pending.items()
            return [relations[name].resolver.cells(part) if part.shape[0] else {}]
        cells: Cells = [{} for _ in range(shards)]
        for name, pending in self._pending.items():
            resolver = relations[name].resolver
            for of_shard, part in zip(cells, pending, strict=True):
                if part.shape[0]:
                    of_shard.update(resolver.cells(part))
        return cells


def _weight(pending: Pending) -> int:
    return sum(int(part[:, -1].sum()) for part in pending)


def filled(table: TableDefinition, rows: Any) -> Any:
    """The rows with defaults in the columns that they lack; tuples have all columns."""
    if not table.defaults:
        return rows
    table = replace(table, defaults={column: _now(value) for column, value in table.defaults.items()})
    given = as_arrow(rows)
    if given is not None:
        return _filled_table(table, given)
    if is_frame(rows):
        rows = python_rows(rows)
    rows = as_rows(rows)
    return [{**table.defaults, **row} if isinstance(row, Mapping) else row for row in rows]


def _now(value: Any) -> Any:
    if not isinstance(value, Now):
        return value
    now = dt.datetime.now(dt.UTC)
    return now.date() if value.kind == "date" else now


def _filled_table(table: TableDefinition, rows: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    for column, value in table.defaults.items():
        if column not in rows.schema.names:
            type_ = table.schema[column].type.arrow
            rows = rows.append_column(pa.field(column, type_), pa.array([value] * rows.num_rows, type_))
    return rows


def _keys_of(table: TableDefinition, relation: KeptTable, rows: Any) -> Any:
    """The keys of rows that are given whole, or as keys only."""
    given = as_arrow(rows)
    if given is not None:
        if not given.num_columns:
            return []
        _set_columns(table, given.schema.names)
        return given.select(list(table.key))
    if is_frame(rows):
        rows = python_rows(rows)
    if isinstance(rows, str | bytes | Mapping):
        raise WrongType(f"{shown(rows)} is no collection of rows", hint="write [row] for a single one")
    places = [table.schema.index(column) for column in table.key]
    return [_key_of(table, places, i, row) for i, row in enumerate(as_rows(rows))]


def _key_of(table: TableDefinition, places: list[int], i: int, row: Any) -> Any:
    if isinstance(row, Mapping):
        for column in row:
            if column not in table.schema:
                raise unknown_name("column", str(column), table.schema.names)
        lacking = [column for column in table.key if column not in row]
        if lacking:
            raise WrongArity(f"rows[{i}] has no {lacking[0]}", hint=f"the key is {', '.join(table.key)}")
        return tuple(row[column] for column in table.key)
    if not isinstance(row, tuple | list):
        return (row,)
    if len(row) == len(table.schema):
        return tuple(row[place] for place in places)
    return tuple(row)


def _by_columns(table: TableDefinition, rows: Any) -> list[tuple[tuple[str, ...], Any]]:
    """Rows for `update` by the columns that they set, in the order in which they come."""
    given = as_arrow(rows)
    if given is not None:
        return [(_set_columns(table, given.schema.names), given)] if given.num_columns else []
    groups: list[tuple[tuple[str, ...], list[Any]]] = []
    for i, row in enumerate(python_rows(rows) if is_frame(rows) else as_rows(rows)):
        if isinstance(row, tuple | list) and len(row) == len(table.schema):
            row = dict(zip(table.schema.names, row, strict=True))  # noqa: PLW2901
        if not isinstance(row, Mapping):
            hint = "update takes dicts, whole rows, or a table"
            raise WrongType(f"rows[{i}] is {shown(row)}, which names no columns", hint=hint)
        columns = _set_columns(table, list(row))
        if not groups or groups[-1][0] != columns:
            groups.append((columns, []))
        groups[-1][1].append(row)
    return groups


def _set_columns(table: TableDefinition, names: list[str]) -> tuple[str, ...]:
    for name in names:
        table.schema.index(name)
    for column in table.key:
        if column not in names:
            raise WrongArity(f"a row has no {column}", hint=f"the key is {', '.join(table.key)}")
    return tuple(name for name in table.schema.names if name in names and name not in table.key)
