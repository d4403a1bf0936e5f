"""Kept tables of a running circuit, keyed or bags of rows: how commands change them.

Every method computes the change of one command, given the rows of the table and the pending change. A second row of a
key, and a row of negative weight, are refused here, before any operator sees them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from everview.circuit.program import Program
from everview.codes.dictionary import Dictionary
from everview.codes.packing import whole_pairs
from everview.errors import DuplicateKey, NegativeWeight, WeightOverflow
from everview.kernels.admit import BAG, KEYED, UNCHECKED, admit, is_plain
from everview.kernels.jit import CompiledKernel, cause_of, made_of
from everview.kernels.large import arrange
from everview.kernels.linear import negated
from everview.kernels.merge import merge
from everview.kernels.pairs import INT, TUPLE, UNREAD, admit_pairs
from everview.kernels.probe import broken_key
from everview.kernels.probe import keys as distinct_keys
from everview.kernels.table import with_batch
from everview.kernels.threads import each, ranges
from everview.operators.exchange import Exchange
from everview.operators.index import sorted_by
from everview.operators.operator import ByKey, Layout, word_columns
from everview.runtimes.state import ProgramState
from everview.runtimes.tables import Resolver, Table, last_of_key, ones
from everview.traces.spine import Spine
from everview.traces.view import Batches, TraceView
from everview.types import Schema
from everview.types.words import Matrix, Words
from everview.zset.batch import Batch

ADMIT = made_of(admit)
FEW = 1_000  # pairs that are read and compared in one call, which keeps the GIL
LARGE = 10_000  # rows; from here on sorting is an act of its own
PART = 2048  # rows, which a thread of its own may check
Pending = list[Matrix]  # a batch a shard, in the order of the table's trace: key first


@dataclass(frozen=True)
class KeptTable:
    """A table whose rows are words. A `Pending` is a change of the table that has not been applied yet."""

    name: str
    schema: Schema
    stored: Schema  # of its trace: key first
    key: int  # columns of the key; all of them if it has none
    resolver: Resolver
    shards: int
    dictionary: Dictionary

    @classmethod
    def of(cls, program: Program, name: str, table: Table, dictionary: Dictionary) -> KeptTable:
        resolver = Resolver.of(program, name, table)
        schema, layout = program.circuit.layout(resolver.source).schema, program.circuit.layout(resolver.trace)
        return cls(name, schema, layout.schema, layout.key, resolver, program.shards, dictionary)

    @cached_property
    def in_order(self) -> KeptTable:
        """The same table for rows that come with their words in the order of its trace."""
        resolver = replace(self.resolver, columns=tuple(range(self.stored.width)))
        return replace(self, schema=self.stored, resolver=resolver)

    @cached_property
    def key_schema(self) -> Schema:
        return Schema(self.stored.fields[: self.key])

    @cached_property
    def _admit_pairs(self) -> CompiledKernel | None:
        """The kernel of `add_pairs`; None if this table's rows cannot be read by it."""
        return None if self.shards > 1 or whole_pairs(self.schema) is None else made_of(admit_pairs)

    # -- commands

    def add(self, rows: Matrix, state: ProgramState, pending: Pending, *, negative: bool = False) -> Pending:
        """The pending change with these weighted rows; ``negative`` lets a bag owe rows."""
        if self.shards == 1:
            return [self._admitted(rows, self.resolver.words, state, 0, pending[0], negative)]
        parts = self._exchange.split(self._arranged(rows, self.resolver.words), self.shards)
        arranged = np.arange(self.stored.width)  # a row's words have been put in the order of the trace
        return [
            self._admitted(part, arranged, state, shard, pending[shard], negative) if part.shape[0] else pending[shard]
            for shard, part in enumerate(parts)
        ]

    def add_pairs(
        self, pairs: list[Any], state: ProgramState, pending: Pending, *, negative: bool = False
    ) -> Pending | None:
        """`add` of a few pairs (row, weight), read and compared in one call; None if they must be encoded first."""
        kernel = self._admit_pairs
        if kernel is None or not 0 < len(pairs) <= FEW or pending[0].shape[0]:
            return None
        out = np.empty((len(pairs), len(self.resolver.columns) + 1), np.int64)
        spine, given = state.traces[(), self.resolver.trace][0].past, (out, id(pairs), TUPLE, INT)
        count = self._compared(kernel, given, self.resolver.words, spine, self._rule(negative))
        return None if count == UNREAD else [self._accepted(out, count, state, 0, pending[0])]

    def put(self, rows: Matrix, state: ProgramState, pending: Pending) -> Pending:
        """The pending change with these rows in place of those of their keys; of one key the last counts."""
        assert self.resolver.keyed, "only a table with a key is put to"
        if self.shards == 1:
            return [_after(pending[0], self.resolver.put(rows, self._contents(state, 0, pending[0])))]
        return [
            _after(pending[shard], self.resolver.replace(part, self._contents(state, shard, pending[shard])))
            for shard, part in enumerate(self._parts(self.resolver.last_puts(rows)))
        ]

    def remove(self, keys: Matrix, state: ProgramState, pending: Pending) -> Pending:
        """The pending change without the rows of these keys."""
        assert self.resolver.keyed, "only from a table with a key is removed by key"
        return [
            _after(pending[shard], self.resolver.remove(part, self._contents(state, shard, pending[shard])))
            for shard, part in enumerate(self._parts(keys if self.shards == 1 else _distinct(keys)))
        ]

    def patch(self, rows: Matrix, columns: Sequence[str], state: ProgramState, pending: Pending) -> Pending:
        """The pending change that sets some columns in the rows of some keys; ``rows`` are key, then columns."""
        assert self.resolver.keyed, "only a table with a key is updated by key"
        words = self.resolver.key
        targets = word_columns(self.stored, tuple(self.stored.index(name) for name in columns))
        changed = list[Matrix]()
        for shard, part in enumerate(self._parts(last_of_key(rows, words))):
            keys, contents = distinct_keys(part, words), self._contents(state, shard, pending[shard])
            old = self._rows_of(keys, contents)
            new = old.copy()
            new[:, targets] = part[contents.weights(keys, words) > 0, words : words + targets.size]
            changed.append(merge(pending[shard], merge(negated(old), new)))
        return changed

    def count(self, rows: Matrix, state: ProgramState, pending: Pending) -> int:
        """The number of different rows with the keys that these rows begin with."""
        words, known = self.resolver.key, 0
        for shard, part in enumerate(self._parts(last_of_key(rows, words))):
            weights = self._contents(state, shard, pending[shard]).weights(distinct_keys(part, words), words)
            known += int((weights > 0).sum())
        return known

    def beginning_with(self, values: Matrix, columns: int, state: ProgramState, pending: Pending) -> Batch:
        """The rows that begin with some values (key first), the pending change included."""
        words, wanted = Schema(self.stored.fields[:columns]).width, _distinct(values)
        whole = np.empty((0, self.stored.width + 1), np.int64)
        for shard in range(self.shards):
            rows = self._contents(state, shard, pending[shard]).group_rows(wanted, words)
            whole = merge(whole, arrange(rows, np.arange(self.stored.width)))
        return Batch(self.stored, whole, self.dictionary)

    def rows_with(self, values: Matrix, columns: int, state: ProgramState) -> Batch:
        """`beginning_with` of what the table holds, with its columns as they are declared."""
        rows = self.beginning_with(values, columns, state, self.nothing).rows
        return Batch(
            self.schema, rows if self.resolver.in_place else arrange(rows, self.resolver.back), self.dictionary
        )

    @cached_property
    def nothing(self) -> Pending:
        """No change."""
        return [np.empty((0, self.stored.width + 1), np.int64)] * self.shards

    def rows(self, state: ProgramState, pending: Pending | None = None) -> Batch:
        """The rows of the table, after the pending change if one is given; columns as they are declared."""
        whole = np.empty((0, self.schema.width + 1), np.int64)
        for shard, trace in enumerate(state.of(self.resolver.trace)):
            rows = trace.before.consolidated()
            rows = rows if pending is None else merge(rows, pending[shard])
            whole = merge(whole, rows if self.resolver.in_place else arrange(rows, self.resolver.back))
        return Batch(self.schema, whole, self.dictionary)

    def stored_rows(self, state: ProgramState) -> int:
        """The number of stored rows, with rows that cancel each other."""
        return sum(len(trace.past) for trace in state.of(self.resolver.trace))

    # -- inside

    @cached_property
    def _exchange(self) -> Exchange:
        return Exchange(Layout(self.key_schema), ByKey(tuple(range(self.key))))

    def _parts(self, rows: Matrix) -> list[Matrix]:
        if self.shards == 1:
            return [rows]
        # Splitting keeps the order of the rows of a shard.
        return self._exchange.split(rows, self.shards)

    def _contents(self, state: ProgramState, shard: int, pending: Matrix) -> Batches:
        """The rows of a shard after its pending change."""
        return state.before(shard, self.resolver.trace).plus(pending)

    def _admitted(
        self, rows: Matrix, words: Words, state: ProgramState, shard: int, pending: Matrix, negative: bool
    ) -> Matrix:
        """The pending change of a shard with more rows, given what the shard holds.

        ``words`` are the words of a given row, in the order of the trace.
        """
        resolver, spine = self.resolver, state.traces[(), self.resolver.trace][shard].past
        rule = self._rule(negative)
        if rows.shape[0] >= LARGE or pending.shape[0]:
            table = with_batch(spine.table, pending) if pending.shape[0] else spine.table
            out = self._arranged(rows, words)
            count = len(out) if is_plain_in_parts(out, table, resolver.key, rule) else ~len(out)
        else:  # both in one call
            out = np.empty((rows.shape[0], len(resolver.columns) + 1), np.int64)
            rows = rows if rows.flags.c_contiguous else np.ascontiguousarray(rows)
            count = self._compared(ADMIT, (out, rows), words, spine, rule)
        return self._accepted(out, count, state, shard, pending)

    def _rule(self, negative: bool) -> int:
        """What is required of a change; see `everview.kernels.admit`."""
        return KEYED if self.resolver.keyed else UNCHECKED if negative else BAG

    def _compared(self, kernel: CompiledKernel, given: tuple[Any, ...], words: Words, spine: Spine, rule: int) -> int:
        """The number of rows that a kernel sorts and compares with what a spine holds; see `admit`."""
        try:
            return kernel.direct(*given, words, *spine.located, self.resolver.key, rule)
        except OverflowError as error:
            raise self._overflow(error) from None
        except SystemError as error:
            raise cause_of(error) from None

    def _accepted(self, out: Matrix, count: int, state: ProgramState, shard: int, pending: Matrix) -> Matrix:
        """The pending change with so many rows more; ~``count`` of them if they have to be looked at first."""
        if count < 0:
            count = ~count
            self._check(out[:count], self._contents(state, shard, pending).plus(out[:count]))
        change = out if count == out.shape[0] else out[:count]
        return merge(pending, change) if pending.shape[0] else change

    def _arranged(self, rows: Matrix, words: Words) -> Matrix:
        """The rows as a batch in the order of the trace."""
        try:
            return sorted_by(rows, words)
        except OverflowError as error:
            raise self._overflow(error) from None

    def _overflow(self, error: OverflowError) -> WeightOverflow:
        return WeightOverflow(f"{error}: of rows of {self.name}", hint="nothing was changed")

    def _check(self, rows: Matrix, after: TraceView) -> None:
        """Refuse added rows if one would have a negative weight, or a key two rows."""
        words = self.resolver.key
        if self.resolver.keyed:
            held = self.resolver.rows_of(distinct_keys(rows, words), after)
            broken = broken_key(held, words)
            if broken >= 0:
                row = held[broken : broken + 1]
                raise self._absent(row) if row[0, -1] < 0 else self._duplicate(row)
            return
        weights = after.weights(rows, words)
        if (weights < 0).any():
            raise self._absent(rows[np.flatnonzero(weights < 0)[:1]])

    def _rows_of(self, keys: Matrix, contents: TraceView) -> Matrix:
        rows = self.resolver.rows_of(keys, contents)
        assert (rows[:, -1] == 1).all(), "a key has one row"
        return rows

    def _duplicate(self, row: Matrix) -> DuplicateKey:
        key = self._shown_key(row)
        shown = ", ".join(f"{name} = {value!r}" for name, value in key.items())
        message = f"table {self.name} would hold two rows with {shown}"
        return DuplicateKey(message, hint="upsert replaces the row that is there", key=key)

    def _absent(self, row: Matrix) -> NegativeWeight:
        return NegativeWeight(
            f"a row of table {self.name} would be removed that is not there: {self._shown(row)}",
            hint="rows are removed as they were added, column by column"
            + ("" if self.resolver.keyed else "; negative=True lets a table without a key owe rows"),
        )

    def _shown_key(self, row: Matrix) -> dict[str, object]:
        return dict(list(self._decoded(row).items())[: self.key])

    def _shown(self, row: Matrix) -> str:
        named = self._decoded(row)
        return repr(tuple(named[name] for name in self.schema.names))

    def _decoded(self, row: Matrix) -> dict[str, object]:
        (element,) = Batch.consolidated(self.stored, row, self.dictionary).elements()
        return dict(zip(self.stored.names, element, strict=True))


def is_plain_in_parts(change: Matrix, table: Matrix, key: int, rule: int) -> bool:
    """What `is_plain` says of an arranged change: of a table with a key, part by part, each key in one of them.

    Of a bag it depends on all rows whether added ones are looked at.
    """
    parts = ranges(len(change), PART) if rule == KEYED else []
    if len(parts) < 2:
        return is_plain(change, table, key, rule)
    starts = [_of_new_key(change, start, key) for start, _ in parts]
    ends = [*starts[1:], len(change)]
    return all(each(lambda part: is_plain(change[slice(*part)], table, key, rule), zip(starts, ends, strict=True)))


def _of_new_key(rows: Matrix, row: int, key: int) -> int:
    """The first row from one on that has another key than the row before it."""
    while 0 < row < len(rows) and (rows[row, :key] == rows[row - 1, :key]).all():
        row += 1
    return row


def _after(pending: Matrix, change: Matrix) -> Matrix:
    """A pending change and another one after it."""
    return merge(pending, change) if pending.shape[0] else change


def _distinct(keys: Matrix) -> Matrix:
    """Keys in order, each once."""
    return ones(arrange(np.ascontiguousarray(keys), np.arange(keys.shape[1] - 1)))
