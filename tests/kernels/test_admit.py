"""Changes of a table: arranged as ever, and waved through only if the table is sound afterwards."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.kernels.admit import BAG, KEYED, UNCHECKED, admit, is_plain
from everview.kernels.pairs import INT, TUPLE, admit_pairs
from everview.kernels.sort import arrange
from everview.kernels.threads import at_most
from everview.runtimes.embedded import relation
from everview.traces.view import Batches

Row = tuple[int, int]
small = st.integers(0, 4)
rows = st.tuples(small, small)
weighted = st.lists(st.tuples(rows, st.integers(-2, 2)), max_size=8)
WORDS = np.arange(2)


def matrix(changes: list[tuple[Row, int]]) -> np.ndarray:
    return np.array([(*row, weight) for row, weight in changes], np.int64).reshape(-1, 3)


@st.composite
def held_by_key(draw: st.DrawFn) -> tuple[dict[int, int], Batches]:
    """A table with one row a key, and its batches, of which later ones take rows back and replace them."""
    table, batches = dict[int, int](), list[np.ndarray]()
    for step in draw(st.lists(st.dictionaries(small, st.none() | small, max_size=4), max_size=4)):
        changes = list[tuple[Row, int]]()
        for key, value in step.items():
            if key in table:
                changes.append(((key, table.pop(key)), -1))
            if value is not None:
                changes.append(((key, value), 1))
                table[key] = value
        batches.append(arrange(matrix(changes), WORDS))
    return table, Batches(3, batches)


def summed(table: Counter[Row], changes: list[tuple[Row, int]]) -> Counter[Row]:
    after = Counter(table)
    for row, weight in changes:
        after[row] += weight
    return after


def admitted(changes: list[tuple[Row, int]], held: Batches, key: int, rule: int) -> bool:
    delta = matrix(changes)
    out = np.empty((len(delta), 3), np.int64)
    count = int(admit(out, delta, WORDS, held.table.ctypes.data, len(held.table), key, rule))
    arranged = arrange(delta, WORDS)
    assert out[: count if count >= 0 else ~count].tolist() == arranged.tolist()
    read = np.empty((len(delta), 3), np.int64)
    table = WORDS, held.table.ctypes.data, len(held.table), key, rule
    assert admit_pairs(read, id(changes), TUPLE, INT, *table) == count, "read from Python's list, they are the same"
    assert read[: len(arranged)].tolist() == arranged.tolist()
    return count >= 0


@given(held_by_key(), weighted)
def test_only_sound_changes_by_key(held: tuple[dict[int, int], Batches], changes: list[tuple[Row, int]]) -> None:
    table, batches = held
    after = summed(Counter(table.items()), changes)
    keys = Counter(key for (key, _), weight in after.items() if weight)
    sound = all(weight in (0, 1) for weight in after.values()) and all(count == 1 for count in keys.values())
    assert sound or not admitted(changes, batches, 1, KEYED)


@given(held_by_key(), st.dictionaries(small, st.none() | small))
def test_all_plain_changes_by_key(held: tuple[dict[int, int], Batches], wanted: dict[int, int | None]) -> None:
    table, batches = held
    changes = [((key, table[key]), -1) for key in wanted if key in table]
    changes += [((key, value), 1) for key, value in wanted.items() if value is not None]
    assert admitted(changes, batches, 1, KEYED)


@given(st.lists(weighted, max_size=3), weighted)
def test_bags(held: list[list[tuple[Row, int]]], changes: list[tuple[Row, int]]) -> None:
    batches = Batches(3, [arrange(matrix(each), WORDS) for each in held])
    after = summed(summed(Counter(), [change for each in held for change in each]), changes)
    touched = summed(Counter(), changes)
    removes = any(weight < 0 for weight in touched.values())
    sound = not removes or all(after[row] >= 0 for row, weight in touched.items() if weight)
    assert admitted(changes, batches, 2, BAG) == sound
    assert admitted(changes, batches, 2, UNCHECKED)


@given(held_by_key(), weighted, st.sampled_from([KEYED, BAG]), st.integers(1, 3))
def test_parts_say_what_the_whole_says(
    held: tuple[dict[int, int], Batches], changes: list[tuple[Row, int]], rule: int, key: int
) -> None:
    change, table = arrange(matrix(changes), WORDS), held[1].table
    whole = is_plain(change, table, min(key, 2), rule)
    with pytest.MonkeyPatch.context() as patched, at_most(2):
        patched.setattr(relation, "PART", 1)
        assert relation.is_plain_in_parts(change, table, min(key, 2), rule) == whole
