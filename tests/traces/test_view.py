"""Every keyed read of a spine's batches against brute force: several batches, rows that cancel across them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.kernels.linear import negated
from everview.kernels.probe import keys
from everview.kernels.sort import is_batch
from everview.kernels.tally import align
from everview.operators.index import Direction, Index
from everview.operators.operator import Layout
from everview.theory.cursor import Cursor
from everview.traces.view import Batches
from everview.types import Schema
from operators.words import Words
from strategies import changes
from traces.matrices import Matrix, Row, probes, spines, weights_of

WIDTH = 3


def groups_of(rows: Matrix, key: int) -> list[Row]:
    return sorted({tuple(row[:key]) for row in rows.tolist()})


def in_group(total: Counter[Row], group: Row) -> list[tuple[Row, int]]:
    return sorted((row, w) for row, w in total.items() if row[: len(group)] == group)


@given(batches=spines(WIDTH), delta=probes(WIDTH), key=st.integers(0, WIDTH))
def test_join(batches: list[Matrix], delta: Matrix, key: int) -> None:
    pick = np.array([0, ~1, 2, ~2, ~0])
    found = Batches(WIDTH + 1, batches).join(delta, key, pick)
    expected: Counter[Row] = Counter()
    for *left, v in delta.tolist():
        for right, w in weights_of(batches).items():
            if tuple(left[:key]) == right[:key]:
                expected[(left[0], right[1], left[2], right[2], right[0])] += v * w
    assert weights_of([found]) == Counter({row: w for row, w in expected.items() if w})


@given(batches=spines(WIDTH), rows=probes(WIDTH), key=st.integers(0, WIDTH))
def test_weights(batches: list[Matrix], rows: Matrix, key: int) -> None:
    found = Batches(WIDTH + 1, batches).weights(rows, key)
    total = weights_of(batches)
    assert found.tolist() == [sum(w for _, w in in_group(total, tuple(r[:key]))) for r in rows.tolist()]


@given(rows=probes(WIDTH), key=st.integers(0, WIDTH))
def test_keys(rows: Matrix, key: int) -> None:
    found = keys(rows, key)
    assert [tuple(row[:-1]) for row in found.tolist()] == groups_of(rows, key)
    assert (found[:, -1] == 1).all()


@given(batches=spines(WIDTH), rows=probes(WIDTH), key=st.integers(0, WIDTH))
def test_group_rows(batches: list[Matrix], rows: Matrix, key: int) -> None:
    found = Batches(WIDTH + 1, batches).group_rows(keys(rows, key), key)
    wanted = set(groups_of(rows, key))
    total = weights_of(batches)
    assert weights_of([found]) == Counter({row: w for row, w in total.items() if row[:key] in wanted})


@given(
    batches=spines(WIDTH),
    rows=probes(WIDTH),
    key=st.integers(0, WIDTH),
    skip=st.integers(0, 3),
    limit=st.integers(0, 4),
)
def test_first_rows(batches: list[Matrix], rows: Matrix, key: int, skip: int, limit: int) -> None:
    found = Batches(WIDTH + 1, batches).first_rows(keys(rows, key), key, skip, limit)
    expected = [e for group in groups_of(rows, key) for e in places(in_group(weights_of(batches), group), skip, limit)]
    assert [(tuple(row), w) for *row, w in found.tolist()] == expected


@given(
    batches=spines(WIDTH),
    change=spines(WIDTH),
    key=st.integers(0, WIDTH),
    skip=st.integers(0, 3),
    limit=st.integers(0, 4),
)
def test_first_rows_change(batches: list[Matrix], change: list[Matrix], key: int, skip: int, limit: int) -> None:
    """What the first rows of the groups that a batch touches are after it, less what they were before."""
    for delta in change:
        before, groups = Batches(WIDTH + 1, batches), keys(delta, key)
        found = before.first_rows_change(delta, groups, key, skip, limit)
        old, new = before.first_rows(groups, key, skip, limit), before.plus(delta).first_rows(groups, key, skip, limit)
        assert weights_of([found]) == weights_of([new, negated(old)])
        assert is_batch(found), "netted, and in order"


def places(entries: list[tuple[Row, int]], skip: int, limit: int) -> list[tuple[Row, int]]:
    """The rows that take places ``skip`` to ``skip + limit``, a row of weight w taking w."""
    taken = [row for row, w in entries for _ in range(w)][skip : skip + limit]
    return list(Counter(taken).items())


@given(batches=spines(WIDTH), rows=probes(WIDTH), key=st.integers(0, WIDTH))
def test_last_rows(batches: list[Matrix], rows: Matrix, key: int) -> None:
    found = Batches(WIDTH + 1, batches).last_rows(keys(rows, key), key)
    positive = {group: [e for e in in_group(weights_of(batches), group) if e[1] > 0] for group in groups_of(rows, key)}
    assert [(tuple(row), w) for *row, w in found.tolist()] == [rows[-1] for rows in positive.values() if rows]


@given(batches=spines(2, max_size=20), rows=probes(1))
def test_tally(batches: list[Matrix], rows: Matrix) -> None:
    """Of entries (group, place), the places being few."""
    entries = [b[(b[:, 1] >= 0) & (b[:, 1] < 3)].copy() for b in batches]
    dense = np.full((len(rows), 3), 5, np.int64)
    Batches(3, entries).tally(dense, rows, 1)
    total = weights_of(entries)
    assert dense.tolist() == [[5 + total[(group, place)] for place in range(3)] for group, _ in rows.tolist()]


@given(rows=probes(2), found=spines(2, max_batches=1))
def test_align(rows: Matrix, found: list[Matrix]) -> None:
    groups = keys(rows, 1)
    ends = keys(found[0], 1)[:, [0, 0, 1]] if found else np.empty((0, 3), np.int64)
    ends = np.ascontiguousarray(ends[np.isin(ends[:, 0], groups[:, 0])])
    out = np.full((len(groups), 1), 99, np.int64)
    align(out, groups, ends, 1, 1, 2)
    there = set(ends[:, 0].tolist())
    assert out[:, 0].tolist() == [g if g in there else 99 for g in groups[:, 0].tolist()]


@given(batches=spines(WIDTH), more=probes(WIDTH))
def test_a_view_after_a_delta(batches: list[Matrix], more: Matrix) -> None:
    before = Batches(WIDTH + 1, batches)
    after = before.plus(more)
    assert is_batch(after.consolidated())
    assert weights_of([after.consolidated()]) == weights_of([*batches, more])
    assert weights_of([before.consolidated()]) == weights_of(batches)
    assert len(after) == len(before) + len(more)


# -- by value

DIRECTIONS = list(Direction)
TEXT = Schema.parse("g BIGINT NOT NULL, c0 STRING, c1 STRING NOT NULL")


def value_place(direction: Direction) -> Callable[[Any], Any]:
    """A key that sorts one column of texts, NULL included."""
    descends = direction in (Direction.DESC, Direction.DESC_NULLS_FIRST)
    null_first = direction in (Direction.ASC, Direction.DESC_NULLS_FIRST)

    def place(text: str | None) -> Any:
        if text is None:
            return (0 if null_first else 2,)
        data = text.encode()
        return (1, *(-b for b in data), 1) if descends else (1, *data, -1)

    return place


@given(data=st.data(), directions=st.tuples(st.sampled_from(DIRECTIONS), st.sampled_from(DIRECTIONS)))
def test_the_ends_of_a_group_by_value(data: st.DataObject, directions: tuple[Direction, Direction]) -> None:
    """First and last rows by texts, either way, with NULL at either end, out of batches whose rows cancel."""
    w, order = Words(), ((1, directions[0]), (2, directions[1]))
    layout = Index(Layout(TEXT), (0, 1, 2), 1, order).output
    parts = data.draw(st.lists(changes(TEXT), max_size=4))
    view = w.view(layout, parts, order)
    groups = np.array([[g, 1] for g in (-3, 0, 1, 2, 10**15)])
    skip, limit = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 4))
    total: Counter[Any] = Counter()
    for row, weight in (entry for part in parts for entry in part):
        total[row] += weight
    first, last = value_place(directions[0]), value_place(directions[1])
    rows = sorted((r for r, weight in total.items() if weight > 0), key=lambda r: (r[0], first(r[1]), last(r[2])))
    by_group = {g: [(r, total[r]) for r in rows if r[0] == g] for g in groups[:, 0].tolist()}

    found = w.entries(TEXT, view.first_rows(groups, 1, skip, limit))
    assert found == [e for entries in by_group.values() for e in places(entries, skip, limit)]
    found = w.entries(TEXT, view.last_rows(groups, 1))
    assert found == [entries[-1] for entries in by_group.values() if entries]

    more = w.view(layout, [data.draw(changes(TEXT))], order)
    for delta in more.batches:
        found = w.entries(TEXT, view.first_rows_change(delta, keys(delta, 1), 1, skip, limit))
        old, new = (v.first_rows(keys(delta, 1), 1, skip, limit) for v in (view, view.plus(delta)))
        net = Counter(dict(w.entries(TEXT, new)))
        net.subtract(dict(w.entries(TEXT, old)))
        assert dict(found) == {row: weight for row, weight in net.items() if weight}


# -- cursors


@given(batches=spines(WIDTH), key=st.integers(0, WIDTH))
def test_a_cursor_walks_in_order(batches: list[Matrix], key: int) -> None:
    found = list(Cursor(Batches(WIDTH + 1, batches), key))
    expected = sorted(weights_of(batches).items())
    assert [(e.key + e.value, e.weight) for e in found] == expected
    assert all(len(e.key) == key for e in found)


@given(batches=spines(WIDTH), seeks=st.lists(st.lists(st.integers(-2, 3), min_size=1, max_size=WIDTH), max_size=5))
def test_a_cursor_seeks_forward_only(batches: list[Matrix], seeks: list[list[int]]) -> None:
    cursor = Cursor(Batches(WIDTH + 1, batches), 1)
    rest = sorted(weights_of(batches).items())
    for words in seeks:
        cursor.seek(words)
        while rest and rest[0][0][: len(words)] < tuple(words):
            rest.pop(0)
        assert cursor.at_end == (not rest)
        if rest:
            assert (cursor.entry.key + cursor.entry.value, cursor.entry.weight) == rest[0]


@given(batches=spines(WIDTH))
def test_a_cursor_goes_from_key_to_key(batches: list[Matrix]) -> None:
    cursor, found = Cursor(Batches(WIDTH + 1, batches), 1), []
    while not cursor.at_end:
        found.append(cursor.entry.key)
        cursor.next_key()
    assert found == sorted({row[:1] for row in weights_of(batches)})


@given(batches=spines(WIDTH))
def test_a_cursor_tells_times_from_values(batches: list[Matrix]) -> None:
    for entry in Cursor(Batches(WIDTH + 1, batches), 1, depth=1):
        assert (len(entry.key), len(entry.value), len(entry.time)) == (1, 1, 1)


def test_a_cursor_at_its_end_stands_on_nothing() -> None:
    cursor = Cursor(Batches(2), 1)
    assert cursor.at_end
    cursor.seek([5])
    with pytest.raises(AssertionError, match="at its end"):
        cursor.entry  # noqa: B018
