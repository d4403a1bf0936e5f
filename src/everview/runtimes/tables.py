"""Tables: sources whose contents are kept, so that rows may arrive as puts and deletes by key.

What arrives for a table is a matrix of commands: the words of a row, two words that say which of several commands for
one key is the last (an order that the data gives, then the arrival), and a weight, positive for a put and negative
for a delete. `Resolver.change` turns commands into the change of the table, given what it holds:

- by key, the last put takes the place of the row that is there; a delete removes it, and one of nothing does nothing;
- a command whose order lies before that of the row it would replace comes too late, and is passed over;
- a snapshot says all that the table holds: the change is what it has more, less what it has no more;
- a table may remember deletes, in a table of `TOMBSTONES` beside it: then a put whose order lies before that of the
  last delete of its key comes too late as well, and does not bring the key back. Of more than `MOST_DELETES` on a
  shard half are forgotten, those of the least orders.

The rows of a change stand in the order of the table's trace, key first, and keep it: `Resolver.cells` hands them to the
index of the table as its output, so that nothing is sorted again, and to the source with their words put back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, inputs_of
from everview.circuit.program import Program
from everview.codes import Dictionary, encode
from everview.kernels.large import arrange, project, sort_order
from everview.kernels.linear import negated
from everview.kernels.merge import merge
from everview.kernels.probe import keys as distinct_keys
from everview.kernels.resolve import BY_WEIGHT, DELETES, NO_ORDER, PUTS, resolve
from everview.operators.index import Index
from everview.operators.operator import word_columns
from everview.traces.view import Batches, TraceView
from everview.types import BIGINT, Field, Schema
from everview.types.words import Matrix, Words

ORDER, ARRIVAL, WEIGHT = "_order", "_arrival", "_weight"
MANY = 10_000  # commands; from here on each step is an act of its own
COMMAND = (ORDER, ARRIVAL, WEIGHT)  # what follows the words of a row in a command


@dataclass(frozen=True, slots=True)
class Table:
    """The keeping of a source: by a key or as it is, perhaps with a column that orders the changes of a key."""

    key: tuple[str, ...] = ()
    order: str | None = None
    tombstones: bool = False  # whether deletes are remembered, with their order


MOST_DELETES = 1 << 20  # that a shard remembers of a table
TOMBSTONES = " (deleted)"  # what the name of a table that remembers the deletes of another ends in


def with_tombstones(circuit: Circuit, tables: Mapping[str, Table]) -> dict[str, Sequence[str]]:
    """The keys of all tables of a circuit; tables that remember deletes get a source of tombstones."""
    keys: dict[str, Sequence[str]] = {name: table.key for name, table in tables.items()}
    for name, table in tables.items():
        if table.tombstones:
            schema = circuit.layout(circuit.sources[name]).schema
            fields = [schema.fields[schema.index(column)] for column in table.key]
            if name + TOMBSTONES not in circuit.sources:
                circuit.source(name + TOMBSTONES, Schema([*fields, Field(ORDER, BIGINT, nullable=False)]))
            keys[name + TOMBSTONES] = table.key
    return keys


@dataclass(frozen=True, slots=True)
class Commands:
    """Rows for a table as they arrive: an Arrow table, perhaps with ``_weight``, ``_order`` and ``_arrival``.

    A ``whole`` one is a snapshot.
    """

    rows: Any
    whole: bool = False

    def encode(self, schema: Schema, dictionary: Dictionary) -> Matrix:
        """The matrix of commands."""
        rows = self.rows
        words = encode(schema, rows.select(schema.names), dictionary)
        given = {name: rows.column(name).to_numpy() for name in COMMAND if name in rows.schema.names}
        return followed_by(COMMAND, words, {ARRIVAL: np.arange(rows.num_rows), **given})


def followed_by(names: Sequence[str], words: Matrix, given: Mapping[str, Any]) -> Matrix:
    """Rows of words followed by columns for order, arrival and weight; a missing weight is 1, the others 0."""
    rows = np.empty((words.shape[0], words.shape[1] + len(names)), np.int64)
    rows[:, : words.shape[1]] = words
    for column, name in enumerate(names, words.shape[1]):
        rows[:, column] = given.get(name, name == WEIGHT)
    return rows


@dataclass(frozen=True)
class Resolver:
    """The words of a table: turns its commands into changes, on one shard."""

    source: int  # the node that rows of the table arrive at
    index: int  # the node that puts their key first
    trace: int  # the node whose trace holds the table, key first
    columns: tuple[int, ...]  # the words of a row of the source, in the order of the trace
    key: int  # words of the key; all of them if the table has none
    order: int | None = None  # the word of the trace that orders changes
    keyed: bool = True
    read: bool = True  # whether anything beside the table's index reads the source
    tombstones: Resolver | None = None  # of the table that remembers deletes: key, then order

    @classmethod
    def of(cls, program: Program, name: str, table: Table) -> Resolver:
        trace, source = program.table(name), program.circuit.sources[name]
        assert trace is not None, "a table is kept"
        schema = program.circuit.layout(source).schema
        layout = program.circuit.layout(trace)
        fields = tuple(schema.index(name) for name in layout.schema.names)
        # Of a nullable BIGINT the last word is the value; of all others that order anything, the only one.
        order = None if table.order is None else layout.schema.words(layout.schema.index(table.order)).stop - 1
        columns = tuple(word_columns(schema, fields).tolist())
        index = _index_of(program, trace, source)
        read = any(source in inputs_of(node) for node_id, node in enumerate(program.circuit) if node_id != index)
        graves = cls.of(program, name + TOMBSTONES, Table(table.key)) if table.tombstones else None
        return cls(source, index, trace, columns, layout.key_words, order, bool(table.key), read, graves)

    def resolve(self, commands: Matrix, before: Callable[[int], Any], *, whole: bool = False) -> dict[int, Matrix]:
        """The cells that commands make; ``before`` gives the traces as they are."""
        if self.tombstones is None or whole:
            return self.cells(self.change(commands, before(self.trace), whole=whole))
        commands, buried = self._bury(commands, self.tombstones, before(self.tombstones.trace))
        cells = self.cells(self.change(commands, before(self.trace), whole=whole))
        return cells | self.tombstones.cells(buried)

    def change(self, commands: Matrix, contents: TraceView, *, whole: bool = False) -> Matrix:
        """The change of the table, as a batch in the order of its trace."""
        if not self.keyed:
            rows = arrange(commands, self.words)
            return merge(rows, negated(contents.consolidated())) if whole else rows
        if not whole and commands.shape[0] < MANY and isinstance(contents, Batches):
            order = NO_ORDER if self.order is None else self.order
            return self._resolved(commands, self.words, self._by_order, contents, order, BY_WEIGHT)
        return self.change_of_many(commands, contents, whole=whole)

    def change_of_many(self, commands: Matrix, contents: TraceView, *, whole: bool = False) -> Matrix:
        """`change` of a table with a key, step by step: sorting and merging large matrices are acts of their own."""
        latest = self._latest(commands)
        if whole:
            return merge(self._puts(latest), negated(contents.consolidated()))
        keys = distinct_keys(latest, self.key)
        old = self.rows_of(keys, contents)
        if self.order is not None:
            latest, old = self._in_time(latest, old, contents.weights(keys, self.key) != 0)
        return merge(negated(old), self._puts(latest))

    def _bury(self, commands: Matrix, graves: Resolver, deletes: TraceView) -> tuple[Matrix, Matrix]:
        """The commands that do not come before a delete of their key, and the change of what is remembered of deletes.

        The last command of a key decides: a delete is remembered, and a put lets an earlier delete be forgotten.
        """
        if not commands.shape[0]:
            return commands, np.empty((0, self.key + 2), np.int64)
        keys = project(commands, self.words[: self.key])
        held = graves.rows_of(ones(arrange(ones(keys), np.arange(self.key))), deletes)
        if held.shape[0]:
            both = np.concatenate([held[:, : self.key], keys[:, : self.key]])
            ids = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
            last = np.full(ids.max() + 1, np.iinfo(np.int64).min)
            last[ids[: held.shape[0]]] = held[:, self.key]
            commands = commands[commands[:, -3] >= last[ids[held.shape[0] :]]]
        width = len(self.columns)
        latest = project(commands, np.array([*self.columns[: self.key], width, width + 1], np.int64))
        latest = last_of_key(latest, self.key, (self.key, self.key + 1))
        old = graves.rows_of(ones(project(latest, np.arange(self.key))), deletes)
        new = ones(project(latest[latest[:, -1] < 0], np.arange(self.key + 1)))
        return commands, self._forgetting(deletes, merge(negated(old), new))

    def _forgetting(self, deletes: TraceView, buried: Matrix) -> Matrix:
        """The change of a table's tombstones: new deletes come in, and beyond a bound the oldest go."""
        if len(deletes) + buried.shape[0] <= MOST_DELETES:
            return buried
        held = merge(deletes.consolidated(), buried)
        most = MOST_DELETES // 2  # so that this is done seldom
        if held.shape[0] <= MOST_DELETES:
            return buried
        oldest = np.argsort(held[:, self.key], kind="stable")[: held.shape[0] - most]
        return merge(buried, negated(held[np.sort(oldest)]))

    def put(self, rows: Matrix, contents: Batches) -> Matrix:
        """The change that puts rows in place of those of their keys; of one key the last counts."""
        if rows.shape[0] < MANY:
            return self._resolved(rows, self.words, self.words[: self.key], contents, NO_ORDER, PUTS)
        return self.replace(self.last_puts(rows), contents)

    def last_puts(self, rows: Matrix) -> Matrix:
        """Of rows to be put the last of each key, in the order of the trace."""
        return ones(last_of_key(project(rows, self.words), self.key))

    def replace(self, latest: Matrix, contents: TraceView) -> Matrix:
        """`put` of rows in the order of the trace, one a key."""
        return merge(negated(self.rows_of(distinct_keys(latest, self.key), contents)), latest)

    def remove(self, keys: Matrix, contents: Batches) -> Matrix:
        """The change that removes the rows of some keys."""
        places = np.arange(self.key)
        if keys.shape[0] < MANY:
            return self._resolved(keys, places, places, contents, NO_ORDER, DELETES)
        return negated(self.rows_of(ones(arrange(keys, places)), contents))

    def rows_of(self, keys: Matrix, contents: TraceView) -> Matrix:
        """The rows of some keys, in order."""
        rows = contents.group_rows(keys, self.key)
        return arrange(rows, np.arange(rows.shape[1] - 1))

    def cells(self, change: Matrix) -> dict[int, Matrix]:
        """A change of the table as a tick begins with it: for its index as it is, for the source as rows arrive."""
        if not self.read:
            return {self.index: change}
        return {self.index: change, self.source: change if self.in_place else self.as_source(change)}

    def as_source(self, rows: Matrix) -> Matrix:
        """Rows of the trace with their words as the source has them."""
        return rows if self.in_place else project(rows, self.back)

    def _resolved(
        self, commands: Matrix, columns: Words, by: Words, contents: Batches, order: int, mode: int
    ) -> Matrix:
        """The change of a few commands; see the kernel."""
        out = np.empty((2 * commands.shape[0], len(self.columns) + 1), np.int64)
        return out[: resolve(out, commands, columns, by, contents.table, self.key, order, mode)]

    @cached_property
    def _by_order(self) -> Words:
        """The words that sort commands: by key, order and arrival."""
        width = len(self.columns)
        return np.array([*self.columns[: self.key], width, width + 1], np.int64)

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """The columns of the trace, as an array of places in the source's rows."""
        return np.array(self.columns, np.int64)

    @cached_property
    def back(self) -> NDArray[np.int64]:
        """The inverse of `words`: the place in the trace of each word of the source."""
        back = np.empty_like(self.words)
        back[self.words] = np.arange(self.words.size)
        return back

    @cached_property
    def in_place(self) -> bool:
        """Whether the trace has the words of a row as the source has them."""
        return self.columns == tuple(range(len(self.columns)))

    def _latest(self, commands: Matrix) -> Matrix:
        """The last command of each key, sorted by key: the words of the trace, order, arrival, weight."""
        width = len(self.columns)
        rows = project(commands, np.array([*self.columns, width, width + 1], np.int64))
        return last_of_key(rows, self.key, (width, width + 1))

    def _in_time(self, latest: Matrix, old: Matrix, known: NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
        """Drop commands that come too late, and the rows that they would have replaced."""
        assert old.shape[0] == known.sum(), "one row a key"
        late = np.zeros(latest.shape[0], np.bool_)
        late[known] = latest[known, len(self.columns)] < old[:, self.order]
        return latest[~late], old[~late[known]]

    def _puts(self, latest: Matrix) -> Matrix:
        return ones(project(latest[latest[:, -1] > 0], np.arange(len(self.columns))))


def _index_of(program: Program, trace: int, source: int) -> int:
    """The node between a source and the trace of its table: it puts the key first, and does nothing else."""
    arranged = program.circuit[trace]
    assert isinstance(arranged, Apply), "a trace is an operator's"
    (index,) = arranged.inputs
    assert index is not None, "a program is connected"
    node = program.circuit[index]
    assert isinstance(node, Apply) and isinstance(node.operator, Index), "a table is indexed by its key"
    assert node.inputs == (source,) and not node.operator.order, "rows arrive where and as their table has them"
    return index


def last_of_key(rows: Matrix, key: int, by: Sequence[int] = ()) -> Matrix:
    """The last row of each key, sorted by key: the last by some further words, or else the one that comes last."""
    if rows.shape[0] < 2:
        return rows
    rows = rows[sort_order(rows, np.array([*range(key), *by], np.int64))]
    last = np.ones(rows.shape[0], np.bool_)
    last[:-1] = (rows[1:, :key] != rows[:-1, :key]).any(axis=1)
    return rows[last]


def ones(rows: Matrix) -> Matrix:
    """The same rows, each with weight one."""
    rows = rows.copy()
    rows[:, -1] = 1
    return rows


def resolvers(program: Program, tables: Mapping[str, Table]) -> dict[int, Resolver]:
    """The resolver of each table, by source node."""
    return {program.circuit.sources[name]: Resolver.of(program, name, table) for name, table in tables.items()}
