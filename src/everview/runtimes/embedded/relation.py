"""A table of a running circuit, as those who change it see it: keyed, or a bag of rows.

Every method says what a command changes, given what the table holds and what is to be changed already. What cannot be,
two rows of one key or a row less than not at all, is refused here, before any operator sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from everview.circuit.program import Program
from everview.codes.dictionary import Dictionary
from everview.errors import DuplicateKey, NegativeWeight, WeightOverflow
from everview.kernels.linear import negated, project
from everview.kernels.merge import merge
from everview.kernels.probe import broken_key
from everview.kernels.probe import keys as distinct_keys
from everview.kernels.sort import arrange, sort_order
from everview.operators.exchange import Exchange
from everview.operators.operator import ByKey, Layout, word_columns
from everview.runtimes.state import State
from everview.runtimes.tables import Resolver, Table
from everview.traces.view import View
from everview.types import Schema
from everview.zset.batch import Batch

Matrix = NDArray[np.int64]
Pending = list[Matrix]  # a batch a shard, in the order of the table's trace: key first


@dataclass(frozen=True)
class Relation:
    """A table by the words of its rows. A `Pending` is a change of it that has not been made yet."""

    name: str
    source: int  # the node its rows arrive at
    schema: Schema
    stored: Schema  # of its trace: key first
    key: int  # columns of the key; all of them if it has none
    resolver: Resolver
    shards: int
    keyed: bool
    dictionary: Dictionary

    @classmethod
    def of(cls, program: Program, name: str, table: Table, dictionary: Dictionary) -> Relation:
        resolver = Resolver.of(program, name, table)
        circuit, layout = program.circuit, program.circuit.layout(resolver.trace)
        source = circuit.sources[name]
        schema = circuit.layout(source).schema
        keyed = bool(table.key)
        return cls(name, source, schema, layout.schema, layout.key, resolver, program.shards, keyed, dictionary)

    @cached_property
    def key_schema(self) -> Schema:
        return Schema(self.stored.fields[: self.key])

    # -- commands

    def add(self, rows: Matrix, state: State, pending: Pending, *, negative: bool = False) -> Pending:
        """The pending change with these weighted rows; ``negative`` lets a bag owe rows."""
        parts = self._parts(self._stored_order(rows))
        return [
            self._added(part, self._contents(state, shard), pending[shard], negative)
            for shard, part in enumerate(parts)
        ]

    def put(self, rows: Matrix, state: State, pending: Pending) -> Pending:
        """The pending change with these rows in place of those of their keys; of one key the last counts."""
        assert self.keyed, "only a table with a key is put to"
        parts = self._parts(self._last_of_key(project(rows, self._columns)))
        return [
            self._put(part, self._contents(state, shard), pending[shard]) if part.shape[0] else pending[shard]
            for shard, part in enumerate(parts)
        ]

    def remove(self, keys: Matrix, state: State, pending: Pending) -> Pending:
        """The pending change without the rows of these keys."""
        assert self.keyed, "only from a table with a key is removed by key"
        words = self.resolver.key
        parts = self._parts(_ones(arrange(np.ascontiguousarray(keys), np.arange(words))))
        return [
            merge(pending[shard], negated(self._rows_of(part, self._contents(state, shard), pending[shard])))
            for shard, part in enumerate(parts)
        ]

    def patch(self, rows: Matrix, columns: Sequence[str], state: State, pending: Pending) -> Pending:
        """The pending change with some columns of the rows of some keys set; ``rows`` are key, then columns."""
        assert self.keyed, "only a table with a key is updated by key"
        words = self.resolver.key
        targets = word_columns(self.stored, tuple(self.stored.index(name) for name in columns))
        parts = self._parts(self._last_of_key(rows))
        found = list[Matrix]()
        for shard, part in enumerate(parts):
            keys, contents = _keys(part, words), self._contents(state, shard)
            old = self._rows_of(keys, contents, pending[shard])
            known = contents.plus(pending[shard]).weights(keys, words) > 0
            new = old.copy()
            new[:, targets] = part[known, words : words + targets.size]
            found.append(merge(pending[shard], merge(negated(old), arrange(new, np.arange(new.shape[1] - 1)))))
        return found

    def count(self, rows: Matrix, state: State, pending: Pending) -> int:
        """How many different rows have the keys that these begin with."""
        words = self.resolver.key
        parts = self._parts(self._last_of_key(rows))
        views = (self._contents(state, shard).plus(pending[shard]) for shard in range(self.shards))
        return sum(int((view.weights(_keys(p, words), words) > 0).sum()) for view, p in zip(views, parts, strict=True))

    def beginning_with(self, values: Matrix, columns: int, state: State, pending: Pending) -> Batch:
        """The rows whose first columns, key first, have some values, after what is pending."""
        words = Schema(self.stored.fields[:columns]).width
        wanted = _ones(arrange(np.ascontiguousarray(values), np.arange(words)))
        whole = np.empty((0, self.stored.width + 1), np.int64)
        for shard in range(self.shards):
            found = self._contents(state, shard).plus(pending[shard]).group_rows(wanted, words)
            whole = merge(whole, arrange(found, np.arange(self.stored.width)))
        return Batch(self.stored, whole, self.dictionary)

    def nothing(self) -> Pending:
        """No change."""
        return [np.empty((0, self.stored.width + 1), np.int64)] * self.shards

    def delta(self, pending: Matrix) -> Matrix:
        """A pending change of a shard with its words as they arrive at the source."""
        return pending if self._in_place else project(pending, self._back)

    def rows(self, state: State, pending: Pending | None = None) -> Batch:
        """What the table holds, with what is pending if that is given; columns as they are declared."""
        whole = np.empty((0, self.schema.width + 1), np.int64)
        for shard, trace in enumerate(state.of(self.resolver.trace)):
            rows = trace.before.consolidated()
            rows = rows if pending is None else merge(rows, pending[shard])
            whole = merge(whole, rows if self._in_place else arrange(rows, self._back))
        return Batch(self.schema, whole, self.dictionary)

    # -- inside

    @cached_property
    def _columns(self) -> NDArray[np.int64]:
        return np.array(self.resolver.columns, np.int64)

    @cached_property
    def _back(self) -> NDArray[np.int64]:
        """Where the words of a row of the source stand in the trace."""
        back = np.empty_like(self._columns)
        back[self._columns] = np.arange(self._columns.size)
        return back

    @cached_property
    def _in_place(self) -> bool:
        return bool((self._columns == np.arange(self._columns.size)).all())

    @cached_property
    def _exchange(self) -> Exchange:
        return Exchange(Layout(self.key_schema), ByKey(tuple(range(self.key))))

    def _parts(self, rows: Matrix) -> list[Matrix]:
        if self.shards == 1:
            return [rows]
        # Splitting keeps the order of the rows of a shard.
        return self._exchange.split(rows, self.shards)

    def _stored_order(self, rows: Matrix) -> Matrix:
        try:
            return arrange(rows, self._columns)
        except OverflowError as error:
            raise WeightOverflow(f"{error}: of rows of {self.name}", hint="nothing was changed") from None

    def _contents(self, state: State, shard: int) -> View:
        return state.before(shard, self.resolver.trace)

    def _added(self, rows: Matrix, contents: View, pending: Matrix, negative: bool) -> Matrix:
        if not rows.shape[0]:
            return pending
        changed = merge(pending, rows) if pending.shape[0] else rows
        if self.keyed:
            self._check_keys(rows, contents, changed)
        elif not negative:
            self._check_bag(rows, contents, changed)
        return changed

    def _check_keys(self, rows: Matrix, contents: View, changed: Matrix) -> None:
        words = self.resolver.key
        keys = _keys(rows, words)
        if _all_once(rows, keys) and _all_once(keys, contents.plus(changed).weights(keys, words)):
            return
        after = self._rows_of(keys, contents, changed, check=False)
        broken = broken_key(after, words)
        if broken >= 0:
            row = after[broken : broken + 1]
            raise self._absent(row) if row[0, -1] < 0 else self._duplicate(row)

    def _check_bag(self, rows: Matrix, contents: View, changed: Matrix) -> None:
        if (rows[:, -1] > 0).all():
            return
        width = self.stored.width
        after = contents.plus(changed).weights(rows, width)
        if (after < 0).any():
            raise self._absent(rows[np.flatnonzero(after < 0)[:1]])

    def _rows_of(self, keys: Matrix, contents: View, pending: Matrix, *, check: bool = True) -> Matrix:
        """The rows of some keys after what is pending, in order."""
        found = contents.plus(pending).group_rows(keys, self.resolver.key)
        rows = arrange(found, np.arange(found.shape[1] - 1))
        assert not check or (rows[:, -1] == 1).all(), "a key has one row"
        return rows

    def _put(self, latest: Matrix, contents: View, pending: Matrix) -> Matrix:
        old = self._rows_of(_keys(latest, self.resolver.key), contents, pending)
        return merge(pending, merge(negated(old), _ones(latest)))

    def _last_of_key(self, rows: Matrix) -> Matrix:
        """The last row of each key, sorted by key; each of weight one."""
        words = self.resolver.key
        if rows.shape[0] == 1:
            return _ones(rows)
        rows = rows[sort_order(rows, np.arange(words))]
        last = np.ones(rows.shape[0], np.bool_)
        last[:-1] = (rows[1:, :words] != rows[:-1, :words]).any(axis=1)
        return _ones(rows[last])

    def _duplicate(self, row: Matrix) -> DuplicateKey:
        key = self._shown_key(row)
        shown = ", ".join(f"{name} = {value!r}" for name, value in key.items())
        message = f"table {self.name} would hold two rows with {shown}"
        return DuplicateKey(message, hint="upsert replaces the row that is there", key=key)

    def _absent(self, row: Matrix) -> NegativeWeight:
        return NegativeWeight(
            f"a row of table {self.name} would be removed that is not there: {self._shown(row)}",
            hint="rows are removed as they were added, column by column"
            + ("" if self.keyed else "; negative=True lets a table without a key owe rows"),
        )

    def _shown_key(self, row: Matrix) -> dict[str, object]:
        return dict(list(self._decoded(row).items())[: self.key])

    def _shown(self, row: Matrix) -> str:
        named = self._decoded(row)
        return repr(tuple(named[name] for name in self.schema.names))

    def _decoded(self, row: Matrix) -> dict[str, object]:
        (element,) = Batch.consolidated(self.stored, row, self.dictionary).elements()
        return dict(zip(self.stored.names, element, strict=True))


def _all_once(rows: Matrix, found: Matrix) -> bool:
    """Whether rows only add, each with a key of its own; or keys have one row each."""
    weights = found if found.ndim == 1 else rows[:, -1]
    if len(found) != len(rows):
        return False
    return int(weights[0]) == 1 if len(rows) == 1 else bool((weights == 1).all())


def _keys(rows: Matrix, words: int) -> Matrix:
    """The different keys of sorted rows, each with weight one."""
    return distinct_keys(rows, words)


def _ones(rows: Matrix) -> Matrix:
    """The same rows, each with weight one."""
    rows = rows.copy()
    rows[:, -1] = 1
    return rows
