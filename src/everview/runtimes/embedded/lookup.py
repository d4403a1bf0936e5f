"""Looking rows up in what a running circuit keeps, by values of any columns.

A relation has a trace of all its rows, and joins that read it may keep others, in other orders. Where one of these
begins with columns whose values are known, the rows are sought in it; else its batches are compared as whole columns.
Inside a recursion traces also say in which iteration a row came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from everview.circuit.nodes import Apply, inputs_of, reads_of
from everview.circuit.program import Loop, Program
from everview.codes import decode_rows, encode_rows
from everview.kernels.large import arrange
from everview.operators.arrange import Arrange
from everview.operators.index import Index
from everview.operators.operator import word_columns
from everview.runtimes.embedded.runtime import Embedded
from everview.traces.trace import Trace
from everview.traces.view import Batches
from everview.types import Schema
from everview.types.words import Matrix, Words

Values = Mapping[int, Any]  # of columns
Row = tuple[Any, ...]


@dataclass(frozen=True)
class OrderedTrace:
    """The traces of a relation in one order of its columns, one a shard."""

    traces: tuple[Trace, ...]
    schema: Schema  # of the relation
    columns: tuple[int, ...]  # of the relation, as the traces have them
    sought: int  # so many of the first columns are in the order of their words

    @cached_property
    def words(self) -> Words:
        """The words of a row of the relation, in the order of the traces."""
        return word_columns(self.schema, self.columns)

    @cached_property
    def back(self) -> Words:
        """The words of a row of the traces, in the order of the relation."""
        return np.argsort(self.words)

    def known(self, values: Values) -> int:
        """The number of first columns with known values, by which rows can be sought."""
        count = 0
        while count < self.sought and self.columns[count] in values:
            count += 1
        return count

    def rows(self, words: Mapping[int, int], known: int) -> Matrix:
        """The rows with these words, in the order of the traces, with weights still to be summed."""
        prefix = word_columns(self.schema, self.columns[:known]).size
        wanted = [(place, words[word]) for place, word in enumerate(self.words.tolist()) if word in words]
        parts = [self._of(trace.before, prefix, wanted) for trace in self.traces]
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def _of(self, view: Batches, prefix: int, wanted: list[tuple[int, int]]) -> Matrix:
        group = [value for _, value in wanted[:prefix]]
        parts = [batch[slice(*_between(batch, group))] for batch in view.batches]
        for place, value in wanted[prefix:]:
            parts = [rows[rows[:, place] == value] for rows in parts]
        return np.concatenate(parts) if parts else np.empty((0, view.columns), np.int64)


class LookedUp:
    """Rows of the relations of a running circuit, by values. It is read before anything changes."""

    def __init__(self, run: Embedded) -> None:
        self._run = run
        self._orders: dict[str, list[OrderedTrace]] = {}

    def rows(self, relation: str, values: Values, most: int | None = None) -> tuple[list[tuple[Row, int]], int]:
        """The rows of a relation with these values, at most so many, with weights; and how many there are."""
        orders = self.orders(relation)
        if not values and most == 0:
            return [], sum(len(trace.before) for trace in orders[0].traces)
        return self._found(orders, values, most)

    def _found(self, orders: list[OrderedTrace], values: Values, most: int | None) -> tuple[list[tuple[Row, int]], int]:
        schema, best = orders[0].schema, max(orders, key=lambda order: order.known(values))
        words = encoded(schema, values, self._run)
        if words is None:
            return [], 0
        rows = arrange(best.rows(words, best.known(values)), best.back)
        first = rows if most is None else rows[:most]
        shown = decode_rows(schema, np.ascontiguousarray(first[:, :-1]), self._run.dictionary)
        return list(zip(shown, first[:, -1].tolist(), strict=True)), rows.shape[0]

    def orders(self, relation: str) -> list[OrderedTrace]:
        """The orders in which a relation is kept; the first holds it for sure."""
        if relation not in self._orders:
            self._orders[relation] = list(self._kept(relation))
        return self._orders[relation]

    def _kept(self, relation: str) -> Iterator[OrderedTrace]:
        program, state = self._run.program, self._run.state
        circuit = program.circuit
        table = program.table(relation)
        node = program.contents(relation) if table is None else table
        assert node is not None, "the relation is kept"
        layout = circuit.layout(node)
        if table is None:
            schema, columns = layout.schema, tuple(range(len(layout.schema)))
        else:
            schema = circuit.layout(circuit.sources[relation]).schema
            columns = tuple(schema.index(name) for name in layout.schema.names)
        sought = len(columns) if not layout.by_value else layout.key
        yield OrderedTrace(tuple(state.of(node)), schema, columns, sought)
        stream = _indexed(program, node)
        for other, kept in program.traces.items():
            index = _index_of(program, other)
            if other == node or stream is None or index is None or index[1] != stream or index[0].order:
                continue
            if len(set(index[0].fields)) == len(schema):
                fields = index[0].fields
                sought = len(fields) if not kept.by_value else kept.key
                yield OrderedTrace(tuple(state.of(other)), schema, fields, sought)

    # -- recursions

    def loops_behind(self, view: str, names: tuple[str, ...]) -> list[Loop]:
        """The loops that a view depends on, and that keep relations of these names."""
        program, nodes = self._run.program, set[int]()
        waiting = [program.circuit.sinks[view]] if view in program.circuit.sinks else []
        while waiting:
            index = waiting.pop()
            if index not in nodes:
                nodes.add(index)
                waiting += [i for i in inputs_of(program.circuit[index]) if i is not None]
                waiting += [read.node for read in reads_of(program.circuit[index])]
        wanted = ", ".join(names)
        return [loop for loops in program.loops for loop in loops if loop.at in nodes and loop.name == wanted]

    def iterations(self, loop: Loop, place: int, schema: Schema) -> OrderedTrace | None:
        """The trace of a relation of a loop before its last distinct, with iterations; None if there is none."""
        node = loop.program.circuit[loop.feedbacks[place][1]]
        if not isinstance(node, Apply) or node.inputs[0] not in loop.program.traces:
            return None
        trace = node.inputs[0]
        layout = loop.program.circuit.layout(trace)
        if layout.schema.types != schema.types or layout.by_value:
            return None
        traces = tuple(self._run.state.of(trace, (loop.at,)))
        return OrderedTrace(traces, layout.schema, tuple(range(len(schema))), len(schema))

    def came(self, order: OrderedTrace, values: Values) -> list[tuple[Row, int]]:
        """The rows of a recursive relation with these values, each with the iteration in which it came."""
        words = encoded(order.schema, values, self._run)
        if words is None:
            return []
        first = dict(_came(order.rows(words, order.known(values))))
        rows = np.array(list(first), np.int64).reshape(len(first), order.schema.width)
        shown = decode_rows(order.schema, rows, self._run.dictionary) if first else []
        return list(zip(shown, first.values(), strict=True))


def _came(timed: Matrix) -> Iterator[tuple[tuple[int, ...], int]]:
    """The words of rows that are there in the end, and the first iteration in which each was."""
    steps: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for *words, came, weight in timed.tolist():
        steps.setdefault(tuple(words), []).append((came, weight))
    for words, changes in steps.items():
        sums = list(accumulate(weight for _, weight in sorted(changes)))
        if sums[-1] > 0:
            yield words, sorted(changes)[next(place for place, total in enumerate(sums) if total > 0)][0]


def _between(batch: Matrix, group: list[int]) -> tuple[int, int]:
    """The rows of a sorted batch that begin with some words, by halving."""
    low, high = 0, batch.shape[0]
    for word, value in enumerate(group):
        low, high = _cut(batch, word, value, low, high), _cut(batch, word, value + 1, low, high)
    return low, high


def _cut(batch: Matrix, word: int, value: int, low: int, high: int) -> int:
    while low < high:
        middle = (low + high) // 2
        if batch.item(middle, word) < value:
            low = middle + 1
        else:
            high = middle
    return low


def encoded(schema: Schema, values: Values, run: Embedded) -> dict[int, int] | None:
    """The words of some columns that stand for values; None if a column cannot have its value."""
    if any(value is None and not schema.fields[column].nullable for column, value in values.items()):
        return None
    if not values:
        return {}
    columns = sorted(values)
    made = Schema([schema.fields[column] for column in columns])
    row = encode_rows(made, [tuple(values[column] for column in columns)], run.dictionary)[0]
    return dict(zip(word_columns(schema, tuple(columns)).tolist(), row.tolist()[:-1], strict=True))


def _index_of(program: Program, node: int) -> tuple[Index, int] | None:
    """The index node of a trace, and the stream below the index."""
    kept = program.circuit[node]
    if not isinstance(kept, Apply) or not isinstance(kept.operator, Arrange) or kept.inputs[0] is None:
        return None
    index = program.circuit[kept.inputs[0]]
    if not isinstance(index, Apply) or not isinstance(index.operator, Index) or index.inputs[0] is None:
        return None
    return index.operator, index.inputs[0]


def _indexed(program: Program, node: int) -> int | None:
    index = _index_of(program, node)
    return None if index is None else index[1]
