"""Tables: sources whose contents are kept, so that rows may arrive as puts and deletes by key.

What arrives for a table is a matrix of commands: the words of a row, two words that say which of several commands for
one key is the last (an order that the data gives, then the arrival), and a weight, positive for a put and negative
for a delete. `change` turns them into the change of the table, given what it holds:

- by key, the last put takes the place of the row that is there; a delete removes it, and one of nothing does nothing;
- a command whose order lies before that of the row it would replace comes too late, and is passed over;
- a snapshot says all that the table holds: the change is what it has more, less what it has no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everview.circuit.program import Program
from everview.codes import Dictionary, encode
from everview.kernels.linear import negated, project
from everview.kernels.sort import arrange, sort_order
from everview.operators.operator import word_columns
from everview.traces.view import View
from everview.types import Schema

Matrix = NDArray[np.int64]
ORDER, ARRIVAL, WEIGHT = "_order", "_arrival", "_weight"


@dataclass(frozen=True, slots=True)
class Table:
    """How a source is kept: by a key or as it is, perhaps with a column that orders the changes of a key."""

    key: tuple[str, ...] = ()
    order: str | None = None


@dataclass(frozen=True, slots=True)
class Commands:
    """Rows for a table as they arrive: an Arrow table, perhaps with ``_weight``, ``_order`` and ``_arrival``.

    A ``whole`` one is a snapshot.
    """

    rows: Any
    whole: bool = False

    def encode(self, schema: Schema, dictionary: Dictionary) -> Matrix:
        """The matrix of commands."""
        rows, names = self.rows, set(self.rows.schema.names)
        found = np.empty((rows.num_rows, schema.width + 3), np.int64)
        found[:, : schema.width] = encode(schema, rows.select(schema.names), dictionary)
        arrival = np.arange(rows.num_rows)
        for at, name, default in ((-3, ORDER, 0), (-2, ARRIVAL, arrival), (-1, WEIGHT, 1)):
            found[:, at] = rows.column(name).to_numpy() if name in names else default
        return found


@dataclass(frozen=True, slots=True)
class Resolver:
    """A table in terms of words: what turns its commands into changes, on one shard."""

    trace: int  # the node whose trace holds the table, key first
    columns: tuple[int, ...]  # the words of a row of the source, in the order of the trace
    key: int  # words of the key; all of them if the table has none
    order: int | None = None  # the word of the trace that orders changes
    keyed: bool = True

    @classmethod
    def of(cls, program: Program, source: str, table: Table) -> Resolver:
        trace = program.table(source)
        assert trace is not None, "a table is kept"
        schema = program.circuit.layout(program.circuit.sources[source]).schema
        layout = program.circuit.layout(trace)
        fields = tuple(schema.index(name) for name in layout.schema.names)
        # Of a nullable BIGINT the last word is the value; of all others that order anything, the only one.
        order = None if table.order is None else layout.schema.words(layout.schema.index(table.order)).stop - 1
        columns = tuple(word_columns(schema, fields).tolist())
        return cls(trace, columns, layout.key_words, order, bool(table.key))

    def change(self, commands: Matrix, contents: View, *, whole: bool = False) -> Matrix:
        """The change of the table, as a batch of the source's rows."""
        if not self.keyed:
            rows = project(commands, np.arange(len(self.columns)))
            gone = negated(self._as_source(contents.consolidated())) if whole else rows[:0]
            return _batch(np.concatenate([rows, gone]))
        latest = self._latest(commands)
        if whole:
            puts = self._puts(latest)
            return _batch(np.concatenate([self._as_source(puts), negated(self._as_source(contents.consolidated()))]))
        groups = latest[:, : self.key + 1].copy()
        groups[:, -1] = 1
        old = _batch(contents.group_rows(groups, self.key))
        if self.order is not None:
            latest, old = self._in_time(latest, old, contents.weights(groups, self.key) != 0)
        return _batch(self._as_source(np.concatenate([negated(old), self._puts(latest)])))

    def _latest(self, commands: Matrix) -> Matrix:
        """The last command of each key, sorted by key: the words of the trace, order, weight."""
        width = len(self.columns)
        rows = project(commands, np.array([*self.columns, width, width + 1], np.int64))
        rows = rows[sort_order(rows, np.array([*range(self.key), width, width + 1], np.int64))]
        keys = rows[:, : self.key]
        last = np.ones(rows.shape[0], np.bool_)
        last[:-1] = (keys[1:] != keys[:-1]).any(axis=1)
        return rows[last]

    def _in_time(self, latest: Matrix, old: Matrix, known: NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
        """Without the commands that come too late, and without the rows they would have replaced."""
        assert old.shape[0] == known.sum(), "one row a key"
        width = len(self.columns)
        late = np.zeros(latest.shape[0], np.bool_)
        late[known] = latest[known, width] < old[:, self.order]
        return latest[~late], old[~late[known]]

    def _puts(self, latest: Matrix) -> Matrix:
        rows = project(latest[latest[:, -1] > 0], np.arange(len(self.columns)))
        rows[:, -1] = 1
        return rows

    def _as_source(self, rows: Matrix) -> Matrix:
        """Rows of the trace with their words as the source has them."""
        places = np.empty(len(self.columns), np.int64)
        places[np.array(self.columns, np.int64)] = np.arange(len(self.columns))
        return project(rows, places)


def resolvers(program: Program, tables: Mapping[str, Table]) -> dict[int, Resolver]:
    """By source node, how the commands of each table are resolved."""
    return {program.circuit.sources[name]: Resolver.of(program, name, table) for name, table in tables.items()}


def _batch(rows: Matrix) -> Matrix:
    return arrange(np.ascontiguousarray(rows), np.arange(rows.shape[1] - 1))
