"""Commands for a table with a key: one call makes the change that sorting, reading and merging make step by step."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from everview.runtimes.tables import Resolver, ones
from everview.traces.view import Batches

# Source rows are (value, key, order); the trace has the key first. Commands end in order, arrival and weight.
small = st.integers(0, 4)
commands = st.lists(st.tuples(small, small, small, small, st.sampled_from([-1, 0, 1, 2])), max_size=8)
steps = st.lists(commands, max_size=4)


def resolver(ordered: bool) -> Resolver:
    return Resolver(0, 1, 2, (1, 0, 2), 1, 2 if ordered else None)


def matrix(given: list[tuple[int, ...]], columns: int) -> np.ndarray:
    return np.array(given, np.int64).reshape(-1, columns)


def with_arrival(given: list[tuple[int, ...]]) -> np.ndarray:
    return matrix([(*row[:4], arrival, row[4]) for arrival, row in enumerate(given)], 6)


def held(given: list[list[tuple[int, ...]]], by: Resolver) -> Batches:
    """A table as a few ticks of commands have left it, in a batch each."""
    table = Batches(4)
    for step in given:
        table = table.plus(by.change_of_many(with_arrival(step), table))
    return table


@given(steps, commands, st.booleans())
def test_commands(before: list[list[tuple[int, ...]]], given: list[tuple[int, ...]], ordered: bool) -> None:
    by = resolver(ordered)
    table, rows = held(before, by), with_arrival(given)
    assert by.change(rows, table).tolist() == by.change_of_many(rows, table).tolist()


@given(steps, commands)
def test_puts_and_removals(before: list[list[tuple[int, ...]]], given: list[tuple[int, ...]]) -> None:
    by = resolver(False)
    table = held(before, by)
    rows = matrix([(*row[:3], row[4]) for row in given], 4)
    assert by.put(rows, table).tolist() == by.replace(by.last_puts(rows), table).tolist()
    keys = matrix([(row[1], 1) for row in given], 2)
    distinct = ones(matrix(sorted({(row[1], 1) for row in given}), 2))
    gone = by.rows_of(distinct, table).copy()
    gone[:, -1] = -1
    assert by.remove(keys, table).tolist() == gone.tolist()
